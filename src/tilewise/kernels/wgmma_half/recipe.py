"""The launches of `wgmma_half`: operands realigned where the TMA needs that, the product, the parts of k added up."""

from __future__ import annotations

import ctypes
import math
from dataclasses import replace

from tilewise.epilogue import PLAIN
from tilewise.kernels.shared.layouts import BY_CLASSES, REALIGNED, along_columns
from tilewise.kernels.shared.placed import Operands, Placed, members
from tilewise.kernels.shared.realign import Realigned, realign_launches, scratch_bytes
from tilewise.kernels.shared.split_k import epilogue_argument
from tilewise.kernels.shared.tensor_map import NO_MAP, Size, half_map, half_map_of
from tilewise.kernels.wgmma_half.model import DEPTH, KERNEL, TensorWay
from tilewise.kernels.wgmma_half.text import render_gather, render_wgmma_half
from tilewise.kernels.wgmma_half.thin_edges import NO_EDGES, ThinEdges
from tilewise.plans import Plan
from tilewise.recipe import Address, Argument, Launch, Scratch, array


def launches(plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
    """M and N have lines of elements side by side, P rows."""
    p, way = plan.problem, plan.way
    assert isinstance(way, TensorWay)
    thin = ThinEdges(given.M, given.N, way) if way.edge_rows or way.edge_cols else None
    ready, moved = {"M": given.M, "N": given.N}, {}
    for role, x, how in zip("MN", (given.M, given.N), way.routes, strict=True):
        if how == REALIGNED:
            moved[role] = Realigned(x, p.stack, scratch.take(scratch_bytes(x, p.stack)))
            ready[role] = moved[role].placed
    edges = NO_EDGES
    if thin:
        held = scratch.take_all(thin.needs)
        made = [thin.launch(moved, held, p.dtype.name)]
        edges = thin.argument(held, ready)
    else:
        made = realign_launches(list(moved.values()))
    partials = scratch.take(4 * way.splits * p.m * _even(p.n)) if way.splits > 1 else None
    product, before = _Product(plan, ready["M"], ready["N"], given, edges), bool(made)
    for number, member in enumerate(members(p.stack)):
        made.append(product.launch(member, partials, overlap=number == 0 and before))
        if partials is not None:
            made.append(product.gather(member, partials))
    return made


class _Product:
    """The product of operands that are where the kernel wants them."""

    def __init__(self, plan: Plan, M: Placed, N: Placed, given: Operands, edges: Argument) -> None:
        p, way, P = plan.problem, plan.way, given.P
        assert isinstance(way, TensorWay)
        self._plan, self._way, self._lead, self._edges = plan, way, P.lead, edges
        self._m, self._n = p.m - way.edge_rows, p.n - way.edge_cols
        if way.turned:  # Pᵀ = Nᵀ Mᵀ
            M, N = _transposed(N), _transposed(M)
            self._m, self._n = p.n, p.m
        self._M, self._N, self._P = M, N, P
        self._classes = way.classes if way.routes[0] == BY_CLASSES else 0
        m_along_k = not along_columns(M.layout, M.rows, M.cols)
        self._n_along_k = along_columns(N.layout, N.rows, N.cols)
        self._box_rows = min(way.tile.rows, -(-M.rows // 8) * 8) if m_along_k else DEPTH
        self._store = way.store(P.layout, P.rows, P.cols, P.pointer.alignment, plan.machine.units)
        if p.unrounded:  # P is its only part of k; its lead is even
            self._store = "partial"
        self._source = render_wgmma_half(
            p.dtype.name,
            way.tile,
            m_along_k=m_along_k,
            n_along_k=self._n_along_k,
            store=self._store,
            accumulate=p.accumulate and way.splits == 1,
            box_rows=self._box_rows if m_along_k else None,
            edges=way.edge_forms(m_along_k, self._n_along_k),
            classes=self._classes,
            epilogue=p.epilogue if way.splits == 1 else PLAIN,
        )
        self._epilogue = epilogue_argument(p.epilogue, "float32", given.bias)

    def launch(self, member: tuple[int, ...], partials: Address | None, overlap: bool) -> Launch:
        p, way = self._plan.problem, self._way
        target = self._P.member(member)
        lead = _even(p.n) if partials is not None else self._lead
        if p.unrounded:
            partials = target
        maps_m, skews = self._maps_of_m(member)
        arguments = (
            maps_m,
            half_map_of(self._N, member, way.tile.box_lines_n(self._n_along_k)),
            self._map_of_p(target),
            target,
            partials,
            Size(self._m, p.k, self._n, way.splits),
            skews,
            self._edges,
            ctypes.c_longlong(lead),
            self._epilogue,
        )
        blocks = way.blocks(p.m, p.n, self._plan.machine.units)
        block, shared = (128 * (way.tile.groups + 1),), way.tile.shared_bytes(self._store)
        return Launch.of(self._source, KERNEL, (blocks,), block, arguments, shared, overlap)

    def _map_of_p(self, target: Address) -> object:
        if self._store == "turned":
            return half_map(target, self._n, self._m, self._lead, self._way.tile.cols)
        if self._store == "boxes":
            return half_map(target, self._m, self._n, self._lead, DEPTH)
        return NO_MAP

    def _maps_of_m(self, member: tuple[int, ...]) -> tuple[object, object]:
        """A tensor map for each class of rows, and how many elements before its rows each begins."""
        M = self._M
        if not self._classes:
            return half_map_of(M, member, self._box_rows), ctypes.c_int(0)
        maps, skews = [], (ctypes.c_int * self._classes)()
        step = self._classes * M.layout.row
        for at in range(self._classes):
            address = M.member(member) + 2 * at * M.layout.row
            skews[at] = address % 16 // 2
            rows = max(1, (self._m - at + self._classes - 1) // self._classes)
            maps.append(half_map(address - address % 16, rows, M.cols + skews[at], step, self._box_rows))
        return array(maps), skews

    def gather(self, member: tuple[int, ...], partials: Address) -> Launch:
        p = self._plan.problem
        shares = 8 if self._way.splits >= 16 else 1
        arguments = (
            partials,
            self._P.member(member),
            self._epilogue,
            *(ctypes.c_int(extent) for extent in (p.m, p.n, self._way.splits)),
            ctypes.c_longlong(_even(p.n)),
            ctypes.c_longlong(self._lead),
        )
        blocks = math.ceil(p.m * math.ceil(p.n / 2) * shares / 256)
        source = render_gather(p.dtype.name, p.accumulate, shares, p.epilogue)
        return Launch.of(source, "gather", (blocks,), (256,), arguments, 0, True)


def _transposed(matrix: Placed) -> Placed:
    layout = replace(matrix.layout, row=matrix.layout.col, col=matrix.layout.row)
    return Placed(matrix.pointer, matrix.dtype, matrix.cols, matrix.rows, layout)


def _even(extent: int) -> int:
    """The lead of a matrix of partial sums: they are written two at a time."""
    return extent + extent % 2
