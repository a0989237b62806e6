"""Launching `kernels/hopper/`: descriptors for the copy engine, operands realigned where it needs that, the product.

Descriptors are made once for each (address, shape, box) and kept.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any

from tilewise.engines.cuda.by_value import Size, bits
from tilewise.engines.cuda.finish import epilogue_argument
from tilewise.engines.cuda.placed import Placed, by_way_of_scratch
from tilewise.engines.cuda.queue import Launch, kernel_function
from tilewise.engines.cuda.realign import realign_launches, realigned, scratch_bytes
from tilewise.engines.cuda.thin_edges import ThinEdges, ThinEdgesArgument
from tilewise.epilogue import PLAIN
from tilewise.errors import EngineError
from tilewise.kernels.render_hopper import render_gather, render_tensor_cores
from tilewise.plans import Plan
from tilewise.tensor_tiles import (
    BY_CLASSES,
    DEPTH,
    KERNEL,
    REALIGNED,
    TensorWay,
    along_columns,
    contiguous_lines,
)

__all__ = ["KERNEL", "prepare"]


def prepare(plan: Plan, M: Placed, N: Placed, P: Placed, device: str, stream: Any, bias: int = 0) -> Callable[[], None]:
    """Everything that can be done before the launch; M and N have lines of elements side by side, P rows."""
    p, way = plan.problem, plan.tensor
    assert way is not None
    needs = {role: scratch_bytes(x, p.stack) for role, x, how in _operands(M, N, way) if how == REALIGNED}
    if thin := _thin_edges(M, N, way):
        needs |= thin.needs
    if way.splits > 1:
        needs["partials"] = 4 * way.splits * p.m * _even(p.n)
    return by_way_of_scratch(
        needs, lambda addresses: _product_launches(plan, M, N, P, bias, addresses, device, stream), device, stream
    )


def _operands(M: Placed, N: Placed, way: TensorWay) -> tuple[tuple[str, Placed, str], ...]:
    return ("M", M, way.routes[0]), ("N", N, way.routes[1])


def _thin_edges(M: Placed, N: Placed, way: TensorWay) -> ThinEdges | None:
    return ThinEdges(M, N, way) if way.edge_rows or way.edge_cols else None


def _product_launches(
    plan: Plan, M: Placed, N: Placed, P: Placed, bias: int, addresses: dict[str, int], device: str, stream: Any
) -> list[Launch]:
    """Realign what must be, multiply, and add up the parts of k if it was cut; `addresses` are of scratch buffers."""
    p, way = plan.problem, plan.tensor
    assert way is not None
    ready, jobs = {"M": M, "N": N}, {}
    for role, source, _ in _operands(M, N, way):
        if role in addresses:
            ready[role], jobs[role] = realigned(source, p.stack, addresses[role])
    if thin := _thin_edges(M, N, way):
        single = {role: work[0] for role, work in jobs.items()}  # stacks have no thin edges
        launches = [thin.launch(single, addresses, p.dtype.name, device, stream)]
    else:
        launches = realign_launches([line for work in jobs.values() for line in work], device, stream)
    edges = thin.argument(addresses, ready) if thin else ThinEdgesArgument()
    make, before = _Product(plan, ready["M"], ready["N"], P, bias, edges, device, stream), bool(launches)
    for number, member in enumerate(product(*(range(extent) for extent in p.stack))):
        launches.append(make.launch(member, addresses.get("partials", 0), overlap=number == 0 and before))
        if way.splits > 1:
            launches.append(make.gather(member, addresses["partials"]))
    return launches


class _Product:
    """The product of operands that are where the kernel wants them."""

    def __init__(
        self,
        plan: Plan,
        M: Placed,
        N: Placed,
        P: Placed,
        bias: int,
        edges: ThinEdgesArgument,
        device: str,
        stream: Any,
    ) -> None:
        p, way = plan.problem, plan.tensor
        lead = P.layout.leading_dimension(P.rows, P.cols)
        assert way is not None
        assert lead is not None
        self._plan, self._way, self._lead, self._device, self._stream = plan, way, lead, device, stream
        self._m, self._n = p.m - way.edge_rows, p.n - way.edge_cols
        if way.turned:  # Pᵀ = Nᵀ Mᵀ
            M, N = _turned(N), _turned(M)
            self._m, self._n = p.n, p.m
        self._M, self._N, self._P = M, N, P
        self._classes = way.classes if way.routes[0] == BY_CLASSES else 0
        m_along_k = not along_columns(M.layout, M.rows, M.cols)
        self._n_along_k = along_columns(N.layout, N.rows, N.cols)
        self._box_rows = min(way.tile.rows, -(-M.rows // 8) * 8) if m_along_k else DEPTH
        self._store = way.store(P.layout, P.rows, P.cols, P.pointer & -P.pointer, plan.machine.units)
        if p.unrounded:  # P is its only part of k; its lead is even
            self._store = "partial"
        source = render_tensor_cores(
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
        self._epilogue = epilogue_argument(p.epilogue, "float32", bias)
        self._shared_bytes = way.tile.shared_bytes(self._store)
        self._function = kernel_function(source, KERNEL, device, self._shared_bytes)
        self._edges = edges

    def launch(self, member: tuple[int, ...], partials: int, overlap: bool) -> Launch:
        p, way = self._plan.problem, self._way
        target = self._P.member(member)
        lead = _even(p.n) if partials else self._lead
        if p.unrounded:
            partials = target
        maps_m, skews = self._maps_of_m(member)
        arguments = (
            maps_m,
            bits(_box_map(self._N, member, way.tile.box_lines_n(self._n_along_k))),
            self._map_of_p(target),
            ctypes.c_void_p(target),
            ctypes.c_void_p(partials),
            Size(self._m, p.k, self._n, way.splits),
            skews,
            self._edges,
            ctypes.c_longlong(lead),
            self._epilogue,
        )
        blocks = way.blocks(p.m, p.n, self._plan.machine.units)
        block = (128 * (way.tile.groups + 1),)
        return Launch(self._function, (blocks,), block, arguments, self._stream, self._shared_bytes, overlap)

    def _map_of_p(self, target: int) -> Any:
        if self._store == "turned":
            return bits(tensor_map(target, self._n, self._m, self._lead, self._way.tile.cols))
        if self._store == "boxes":
            return bits(tensor_map(target, self._m, self._n, self._lead, DEPTH))
        return (ctypes.c_ulonglong * 16)()

    def _maps_of_m(self, member: tuple[int, ...]) -> tuple[Any, Any]:
        """One descriptor for each class of rows, and how many elements before its rows each begins."""
        M = self._M
        if not self._classes:
            return bits(_box_map(M, member, self._box_rows)), (ctypes.c_int * 1)(0)
        maps, skews = (ctypes.c_ulonglong * (16 * self._classes))(), (ctypes.c_int * self._classes)()
        step = self._classes * M.layout.row
        for at in range(self._classes):
            address = M.member(member) + 2 * at * M.layout.row
            skews[at] = address % 16 // 2
            rows = max(1, (self._m - at + self._classes - 1) // self._classes)
            made = tensor_map(address - address % 16, rows, M.cols + skews[at], step, self._box_rows)
            maps[16 * at : 16 * at + 16] = list(bits(made))
        return maps, skews

    def gather(self, member: tuple[int, ...], partials: int) -> Launch:
        p = self._plan.problem
        shares = 8 if self._way.splits >= 16 else 1
        function = kernel_function(
            render_gather(p.dtype.name, p.accumulate, shares, p.epilogue), "gather", self._device
        )
        arguments = (
            ctypes.c_void_p(partials),
            ctypes.c_void_p(self._P.member(member)),
            self._epilogue,
            *(ctypes.c_int(extent) for extent in (p.m, p.n, self._way.splits)),
            ctypes.c_longlong(_even(p.n)),
            ctypes.c_longlong(self._lead),
        )
        blocks = math.ceil(p.m * math.ceil(p.n / 2) * shares / 256)
        return Launch(function, (blocks,), (256,), arguments, self._stream, 0, True)


def _turned(matrix: Placed) -> Placed:
    layout = replace(matrix.layout, row=matrix.layout.col, col=matrix.layout.row)
    return Placed(matrix.pointer, matrix.dtype, matrix.cols, matrix.rows, layout)


def _even(extent: int) -> int:
    """The lead of a matrix of partial sums: they are written two at a time."""
    return extent + extent % 2


def _box_map(matrix: Placed, member: tuple[int, ...], box_lines: int) -> Any:
    lines = contiguous_lines(matrix.layout, matrix.rows, matrix.cols)
    assert lines is not None
    count, length, lead = lines
    return tensor_map(matrix.member(member), count, length, lead if count > 1 else -(-length // 8) * 8, box_lines)


@lru_cache(maxsize=4096)
def tensor_map(pointer: int, lines: int, length: int, lead: int, box_lines: int) -> Any:
    """The copy engine's description of a matrix of 2-byte elements: boxes of 64 elements × `box_lines`, swizzled."""
    from cuda.bindings import driver

    code, made = driver.cuTensorMapEncodeTiled(
        driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_UINT16,
        2,
        pointer,
        [driver.cuuint64_t(length), driver.cuuint64_t(lines)],
        [driver.cuuint64_t(2 * lead)],
        [driver.cuuint32_t(DEPTH), driver.cuuint32_t(box_lines)],
        [driver.cuuint32_t(1), driver.cuuint32_t(1)],
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
        # no more than a box's own lines come to L2: with 256 bytes, rows that straddle lines cost a tenth more
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    if int(code):
        raise EngineError(f"the copy engine refused a matrix of {lines} lines of {length}, {lead} apart: {code}")
    return made
