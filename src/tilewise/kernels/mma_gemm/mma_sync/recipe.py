"""The launches of `mma_sync`: realigning operands where needed, the product, and adding up the parts of k."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence

from tilewise.core.epilogue import PLAIN
from tilewise.core.plan import Plan
from tilewise.core.recipe import Address, Launch, Scratch
from tilewise.kernels.mma_gemm.mma_sync.model import KERNEL, MmaConfig
from tilewise.kernels.mma_gemm.mma_sync.text import form_of, generation, render_mma_sync
from tilewise.kernels.shared.delegated import AnyStep, Edge
from tilewise.kernels.shared.layouts import REALIGNED, along_k
from tilewise.kernels.shared.placed import Operands, Placed, members
from tilewise.kernels.shared.stacked import Runs, stacked
from tilewise.kernels.shared.triangle import tiles_of
from tilewise.kernels.transforms.realign import Realigned, realign_launches, scratch_bytes
from tilewise.kernels.transforms.sums import add_parts, epilogue_argument, sum_of


def launches(plan: Plan, given: Operands, scratch: Scratch) -> list[AnyStep]:
    """M and N are row-major or column-major, P is row-major."""
    p, config = plan.problem, plan.config
    assert isinstance(config, MmaConfig)
    ready, moved = [given.M, given.N], []
    for at, how in enumerate(config.routes):
        if how == REALIGNED:
            moved.append(Realigned(ready[at], p.stack, scratch.take(scratch_bytes(ready[at], p.stack))))
            ready[at] = moved[-1].placed
    apart = config.parts > 1 or _added_apart(plan)
    sums = scratch.take(config.parts * p.m * _whole(p.n) * sum_of(p.dtype).itemsize) if apart else None
    product = _Product(plan, ready[0], ready[1], given)
    made: list[AnyStep] = [*realign_launches(moved)]
    if sums is None:
        made += product.stack_launches()
    else:
        for member in members(p.stack):
            made += [product.sums_launch(member, sums), product.add_parts(member, sums)]
    return made + _edges(plan, given, config)


def _added_apart(plan: Plan) -> bool:
    """Whether `add_parts` accumulates onto P: so the set of texts has no ACCUMULATE variants."""
    p = plan.problem
    return p.accumulate and p.members == 1


def _edges(plan: Plan, given: Operands, config: MmaConfig) -> list[AnyStep]:
    """The last rows of P, and the rest of its last columns."""
    p, M, N, P, edges = plan.problem, given.M, given.N, given.P, list[AnyStep]()
    m, n = p.m - config.edge_rows, p.n - config.edge_cols
    if config.edge_rows:
        last = M.part(m, config.edge_rows, 0, p.k), N, P.part(m, config.edge_rows, 0, p.n)
        edges.append(Edge(p, plan.machine, *last, False))
    if config.edge_cols:
        last = M.part(0, m, 0, p.k), N.part(0, p.k, n, config.edge_cols), P.part(0, m, n, config.edge_cols)
        edges.append(Edge(p, plan.machine, *last, True))
    return edges


class _Product:
    """The product of operands in layouts that the kernel takes."""

    def __init__(self, plan: Plan, M: Placed, N: Placed, given: Operands) -> None:
        p, config = plan.problem, plan.config
        assert isinstance(config, MmaConfig)
        self._plan, self._config, self._lead = plan, config, given.P.lead
        self._m, self._n = p.m - config.edge_rows, p.n - config.edge_cols
        self._matrices = M, N, given.P
        self._source = source_of(plan, M, N, given.P)
        self._epilogue = epilogue_argument(p.epilogue, sum_of(p.dtype).name, given.bias)
        size = M.dtype.itemsize
        self._each = config.phases_each(p.k, size)
        self._parts = max(1, math.ceil(math.ceil(p.k * size / config.tile.phase) / self._each))

    def stack_launches(self) -> list[Launch]:
        """One launch for all members at a constant stride."""
        runs = Runs(self._plan.problem.stack, [x.layout.stack for x in self._matrices])
        return [
            self.launch([*map(Placed.on, self._matrices, at)], self._lead, count, runs.steps)
            for at, count in runs.starts()
        ]

    def sums_launch(self, member: tuple[int, ...], sums: Address) -> Launch:
        """The parts of k of one member."""
        M, N, _ = (x.member(member) for x in self._matrices)
        return self.launch([M, N, sums], _whole(self._plan.problem.n))

    def launch(self, places: list[Address], lead: int, count: int = 1, steps: Sequence[int] = ()) -> Launch:
        """`count` members of the stack, `steps` elements apart; `places`: of the first one's operands and sums."""
        p, config = self._plan.problem, self._config
        arguments = (
            *places,
            self._epilogue,
            *(ctypes.c_int(extent) for extent in (self._m, p.k, self._n)),
            *(ctypes.c_longlong(x) for x in (*(x.lines[2] for x in self._matrices[:2]), lead)),
            ctypes.c_int(self._each),
            *(ctypes.c_longlong(step) for step in steps or (0, 0, 0)),
        )
        tiles = tiles_of(self._m, self._n, config.tile.rows, config.tile.cols, p.symmetric)
        shared = config.tile.shared_bytes(self._plan.machine.arch)
        return Launch.of(self._source, KERNEL, (tiles, count, self._parts), (config.tile.threads,), arguments, shared)

    def add_parts(self, member: tuple[int, ...], sums: Address) -> Launch:
        p = self._plan.problem
        return add_parts(
            p, sums, _whole(p.n), self._matrices[2].member(member), self._lead, self._parts, self._epilogue
        )


def source_of(plan: Plan, M: Placed, N: Placed, P: Placed) -> str:
    """The text for these layouts."""
    p, config, arch = plan.problem, plan.config, plan.machine.arch
    assert isinstance(config, MmaConfig)
    store = math.gcd(16, P.pointer.alignment, *(s * P.dtype.itemsize for s in (P.lead, *P.layout.stack)))
    apart = config.parts > 1 or _added_apart(plan)
    form = form_of(
        M.dtype,
        p.result,
        along_k(M.layout, M.rows, M.cols, "M"),
        along_k(N.layout, N.rows, N.cols, "N"),
        min(_vector(M), _vector(N), config.vector),
        store,
        p.accumulate and not apart,
        apart,
        p.symmetric,
    )
    stages, right = config.tile.stages(arch), N.dtype if N.dtype != M.dtype else None
    epilogue = PLAIN if apart else p.epilogue  # `add_parts` applies it once, to the sum of all parts
    text = render_mma_sync.key(M.dtype, p.result, config.tile, stages, form, epilogue, generation(arch), right)
    return stacked.key(text, ("M", "N", "P"))


def _whole(extent: int) -> int:
    """The leading dimension of a matrix of sums, stored by 16 bytes."""
    return -(-extent // 4) * 4


def _vector(x: Placed) -> int:
    """The alignment of all lines in bytes, 16 at most: the copy width."""
    count, _, lead = x.lines
    strides = (*(() if count <= 1 else (lead,)), *x.layout.stack)
    return math.gcd(16, x.pointer.alignment, *(stride * x.dtype.itemsize for stride in strides))
