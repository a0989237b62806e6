"""The launches of `wgmma_half`: operands realigned where the TMA needs that, the product, the parts of k added up."""

from __future__ import annotations

import ctypes
import math

from tilewise.core.epilogue import PLAIN
from tilewise.core.plan import Plan
from tilewise.core.recipe import Address, Argument, Launch, Scratch, TensorMap, Value, array, structure
from tilewise.kernels.shared.groups import OFFSETS, in_text, most_tiles, walk_launch
from tilewise.kernels.shared.layouts import BY_CLASSES, DEINTERLEAVED, REALIGNED, along_columns
from tilewise.kernels.shared.placed import Operands, Placed
from tilewise.kernels.shared.stacked import GRID_LIMIT, Levels
from tilewise.kernels.shared.structs import struct_of
from tilewise.kernels.shared.tensor_map import NO_MAP, half_map, half_map_of, row_classes
from tilewise.kernels.transforms.realign import Realigned, realign_launches, scratch_bytes
from tilewise.kernels.transforms.sums import add_parts, epilogue_argument
from tilewise.kernels.wgmma_gemm.wgmma_half import alignment_classes
from tilewise.kernels.wgmma_gemm.wgmma_half.grouped import phases_of, waves_of
from tilewise.kernels.wgmma_gemm.wgmma_half.model import KERNEL
from tilewise.kernels.wgmma_gemm.wgmma_half.text import render_wgmma_half
from tilewise.kernels.wgmma_gemm.wgmma_half.thin_edges import NO_EDGES, ThinEdges
from tilewise.kernels.wgmma_gemm.wgmma_half.tiles import DEPTH, TensorConfig

MOST_TILES = 2**30  # of one launch, which counts them in 32 bits


MEMBERS = "wgmma_gemm/wgmma_half/batch.cuh"
Size, Stack = struct_of("Size", "wgmma_gemm/wgmma_half/stage.cuh", MEMBERS), struct_of("Stack", MEMBERS)


def launches(plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
    """M and N have lines of elements side by side, P rows."""
    p, config = plan.problem, plan.config
    assert isinstance(config, TensorConfig)
    thin = ThinEdges(given.M, given.N, config) if config.edge_rows or config.edge_cols else None
    ready, moved = {"M": given.M, "N": given.N}, {}
    for role, x, how in zip("MN", (given.M, given.N), config.routes, strict=True):
        if how == REALIGNED:
            stack = p.stack_n if role == "N" else p.stack
            moved[role] = Realigned(x, stack, scratch.take(scratch_bytes(x, stack)))
            ready[role] = moved[role].placed
    edges = NO_EDGES
    if thin:
        held = scratch.take_all(thin.needs)
        made = [thin.launch(moved, held, p.dtype.name)]
        edges = thin.argument(held, ready)
    else:
        made = realign_launches(list(moved.values()))
    if config.routes[0] == DEINTERLEAVED:
        ready["M"], sorting = alignment_classes.deinterleaved(given.M, given.N.layout.row, p.stack, scratch)
        made += sorting
    product = _Product(plan, ready["M"], ready["N"], given, edges)
    return product.launches(made, scratch)


class _Product:
    """The product of operands that are where the kernel wants them."""

    def __init__(self, plan: Plan, M: Placed, N: Placed, given: Operands, edges: Argument) -> None:
        p, config, P = plan.problem, plan.config, given.P
        assert isinstance(config, TensorConfig)
        self._plan, self._config, self._lead, self._edges = plan, config, P.lead, edges
        self._m, self._n = p.m - config.edge_rows, p.n - config.edge_cols
        m_along_k, n_along_k = not along_columns(M.layout, M.rows, M.cols), along_columns(N.layout, N.rows, N.cols)
        if config.transposed:  # Pᵀ = Nᵀ Mᵀ, whose lines are the same
            M, N, m_along_k, n_along_k = N, M, n_along_k, m_along_k
            self._m, self._n = p.n, p.m
        self._M, self._N, self._P = M, N, P
        self._by_rows = p.groups is not None and p.groups.along == "rows"
        self._groups: Address | None = OFFSETS if p.groups else None  # what the kernel finds its groups by
        most = MOST_TILES // max(1, config.tiles(p.m, p.n) * config.splits)
        self._parts = config.passes
        if self._parts > 1:
            most = min(most, GRID_LIMIT)  # the gathering blocks' y
        self._levels = Levels(p.stack, [x.layout.stack for x in (M, N, P)], most)
        if self._by_rows:
            self._levels = Levels(p.stack_n, [(0,), N.layout.stack, (0,)])
        self._classes = config.classes if config.routes[0] == BY_CLASSES else 0
        self._n_along_k = n_along_k
        # of groups, each consumer's rows by themselves
        self._box_rows = 64 if self._by_rows and m_along_k else config.tile.box_lines_m(m_along_k)
        waves, phases = waves_of(config, p, plan.machine.units), phases_of(config, p)
        self._store = config.store(P.layout, P.rows, P.cols, P.pointer.alignment, waves, phases)
        if p.unrounded:  # P is its only part of k; its lead is even
            self._store = "partial"
        self._source = render_wgmma_half.key(
            p.dtype.name,
            config.tile,
            m_along_k=m_along_k,
            n_along_k=self._n_along_k,
            store=self._store,
            accumulate=p.accumulate and self._parts == 1,
            edged=config.edge_forms(m_along_k, self._n_along_k) is not None,
            classes=self._classes,
            n_by_classes=config.n_by_classes,
            narrowed=self._by_rows and not self._n_along_k and config.may_be_narrow(p.n, self._store),
            epilogue=p.epilogue if self._parts == 1 else PLAIN,
            groups=in_text(p.groups),
            serial=config.serial,
            symmetric=config.symmetric,
        )
        self._epilogue = epilogue_argument(p.epilogue, "float32", given.bias)

    def launches(self, before: list[Launch], scratch: Scratch) -> list[Launch]:
        """One launch for all members that lie evenly along two axes, after what realigns their operands."""
        p, config, made = self._plan.problem, self._config, before
        if self._by_rows:
            walk, self._groups = walk_launch(p, config.tile.rows, scratch)
            made = [walk, *before]
        starts = list(self._levels.starts())
        most = max(inner * outer for _, inner, outer in starts)
        partials = scratch.take(4 * most * config.splits * p.m * _even(p.n)) if self._parts > 1 else None
        for number, (at, inner, outer) in enumerate(starts):
            places = [x.pointer + offset * x.dtype.itemsize for x, offset in zip(self._matrices, at, strict=True)]
            made.append(self._launch(places, inner, outer, partials, overlap=number == 0))
            if partials is not None:
                made += self._gather(places[2], inner, outer, partials)
        return made

    @property
    def _stacked(self) -> bool:
        """Whether maps have the axes of a stack: in all texts but those whose ways no stack takes."""
        return not (self._classes or self._config.edge_rows or self._config.edge_cols or self._config.inside)

    @property
    def _matrices(self) -> tuple[Placed, Placed, Placed]:
        return self._M, self._N, self._P

    def _launch(self, places: list[Address], inner: int, outer: int, partials: Address | None, overlap: bool) -> Launch:
        """`inner` x `outer` members of the stack, from those at `places` on."""
        p, config, target, members = self._plan.problem, self._config, places[2], inner * outer
        lead = _even(p.n) if partials is not None else self._lead
        steps = list(self._levels.steps)
        if partials is not None:
            each = config.splits * p.m * lead
            steps[2] = each, inner * each
        if p.unrounded:
            partials = target
        stacks = [((inner, step[0]), (outer, step[1])) if self._stacked else () for step in steps]
        maps_m, misalignments = self._maps_of_m(places[0], stacks[0])
        maps_n: Value = self._map_of_n(places[1], stacks[1])
        if config.n_by_classes:
            maps_n, misalignments = alignment_classes.maps_of_n(
                self._N, places[1], config.tile.box_lines_n(False), (inner, outer), steps[1]
            )
        moves = [int(bool(step)) for pair in steps[:2] for step in pair]
        stack = structure(Stack, members, inner, *moves, *steps[2], self._groups)
        arguments = (
            maps_m,
            maps_n,
            self._map_of_p(target, stacks[2]),
            target,
            partials,
            structure(Size, self._m, p.k, self._n, config.splits, stack),
            misalignments,
            self._edges,
            ctypes.c_longlong(lead),
            self._epilogue,
        )
        units = self._plan.machine.units
        if self._by_rows:
            blocks = min(units, most_tiles(p, config.tile.rows) * math.ceil(p.n / config.cols))
        else:
            blocks = config.blocks(p.m, p.n, units, members)
        block, shared = (128 * (config.tile.groups + 1),), config.tile.shared_bytes(self._store)
        cluster = config.splits if config.inside else 1
        return Launch.of(self._source, KERNEL, (blocks,), block, arguments, shared, overlap, cluster)

    def _map_of_n(self, place: Address, stack: tuple[tuple[int, int], ...]) -> TensorMap:
        """Few lines of k across come eight side by side: the copy engine would fill up what is wider."""
        made = half_map_of(self._N, place, self._config.tile.box_lines_n(self._n_along_k), stack)
        few = self._config.inside and self._config.tile.cols < 64
        return made._replace(box=8, swizzled=False) if few and not self._n_along_k else made

    def _map_of_p(self, target: Address, stack: tuple[tuple[int, int], ...]) -> object:
        if self._store == "transposed":
            return half_map(target, self._n, self._m, self._lead, self._config.tile.cols, stack)
        if self._store == "boxes":
            return half_map(target, self._m, self._n, self._lead, DEPTH, stack)
        return NO_MAP

    def _maps_of_m(self, place: Address, stack: tuple[tuple[int, int], ...]) -> tuple[object, object]:
        """A tensor map for each class of rows, and how many elements before its rows each begins."""
        M = self._M
        if not self._classes:
            return half_map_of(M, place, self._box_rows, stack), ctypes.c_int(0)
        every = row_classes(place, self._m, M.cols, M.layout.row, 2, self._classes)
        misalignments = (ctypes.c_int * self._classes)(*(one.before for one in every))
        return array([half_map(*one[:4], self._box_rows) for one in every]), misalignments

    def _gather(self, target: Address, inner: int, outer: int, partials: Address) -> list[Launch]:
        """The parts of k of every member, one launch for those along the inner axis."""
        p, config = self._plan.problem, self._config
        each, (p_inner, p_outer) = config.splits * p.m * _even(p.n), self._levels.steps[2]
        made = []
        for at in range(outer):
            sums, into = partials + 4 * at * inner * each, target + 2 * at * p_outer
            one = add_parts(
                p, sums, _even(p.n), into, self._lead, config.splits, self._epilogue, (inner, each, p_inner)
            )
            made.append(one._replace(overlap=at == 0))
        return made


def _even(extent: int) -> int:
    """The lead of a matrix of partial sums: they are written two at a time."""
    return extent + extent % 2
