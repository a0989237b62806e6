"""The launches of `bf16x6`: the split into three bfloat16 planes, the six products, and the fallback on plain cores.

Both are queued; a flag on the card, the verdict of the split, predicates them: where magnitudes are unsafe for the
planes, the products return at once and the plain kernel computes P, else the other way round. Members of a stack at a
constant stride are one launch with one verdict. Where sums have an order, rows must not decide about each other: all
products are computed, then each row of P whose own magnitudes are unsafe once more, in chains of multiply-adds.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import replace

from tilewise.core.plan import Plan
from tilewise.core.problem import Layout
from tilewise.core.recipe import Address, Argument, Launch, Scratch, structure
from tilewise.kernels.shared.delegated import AnyStep, Fallback
from tilewise.kernels.shared.placed import Operands, Placed
from tilewise.kernels.shared.structs import struct_of
from tilewise.kernels.shared.tensor_map import Size
from tilewise.kernels.transforms.sums import combine
from tilewise.kernels.wgmma_gemm.bf16x6.model import (
    DEPTH,
    KERNEL,
    LINES,
    SplitConfig,
    plane_bytes,
    runs_of,
    slab_of,
)
from tilewise.kernels.wgmma_gemm.bf16x6.text import render_bf16x6, render_split, render_unsafe_rows

WARPS, RESIDENT = 8, 4  # of a block that splits, and such blocks of a multiprocessor
MEMBER_BLOCKS, STACK_BLOCKS = 256, 16 * 132  # at most, that split a member of a stack, and all of it
UNSAFE_ROWS, UNSAFE_COLUMNS = 16, 1024  # of a block that computes them
UNSAFE = 1  # verdict: the plain kernel computes P


_Operand = struct_of("Operand", "transforms/split_bf16.cu")
_Stack = struct_of("Stack", "wgmma_gemm/bf16x6/bf16x6.cu")
_Lines = struct_of("Lines", "wgmma_gemm/bf16x6/unsafe_rows.cu")
_Magnitudes = struct_of("Magnitudes", "wgmma_gemm/bf16x6/unsafe_rows.cu")


def launches(plan: Plan, given: Operands, scratch: Scratch) -> list[AnyStep]:
    """M and N have any strides, P is row-major (P itself, or scratch memory with other strides). Runs of a stack's
    members reuse the scratch memory one after another."""
    m, n, p = given.M.layout, given.N.layout, given.P.layout
    plan = replace(plan, problem=replace(plan.problem, layout_m=m, layout_n=n, layout_p=p))
    runs, matrices = runs_of(plan.problem), (given.M, given.N, given.P)
    products = [
        _Product(
            _part(plan, count, runs.steps),
            *(_run(x.on(here), x, count, step) for x, here, step in zip(matrices, at, runs.steps, strict=True)),
        )
        for at, count in runs.starts()
    ]
    needs: dict[str, int] = {}
    for product in products:
        needs |= {role: max(size, needs.get(role, 0)) for role, size in product.needs().items()}
    held = scratch.take_all(needs)
    return [launch for product in products for launch in product.launches(held)]


def _part(plan: Plan, count: int, steps: list[int]) -> Plan:
    """The plan of `count` members of a stack with these strides."""
    p = plan.problem
    lie = (p.layout_m, p.layout_n, p.layout_p)
    m, n, out = (x._replace(stack=(step,) if count > 1 else ()) for x, step in zip(lie, steps, strict=True))
    stack = (count,) if count > 1 else ()
    return replace(plan, problem=replace(p, stack=stack, layout_m=m, layout_n=n, layout_p=out))


def _run(address: Address, x: Placed, count: int, step: int) -> Placed:
    """`count` members of an operand, from the one at `address` on."""
    stack = (step,) if count > 1 else ()
    return Placed(address, x.dtype, x.rows, x.cols, Layout(x.layout.row, x.layout.col, stack, address % 16))


class _Product:
    """One product, or a run of a stack."""

    def __init__(self, plan: Plan, M: Placed, N: Placed, P: Placed) -> None:
        assert isinstance(plan.config, SplitConfig)
        self._plan, self._config, self._lead = plan, plan.config, P.lead
        self._M, self._N, self._P = M, N, P
        self._members = plan.problem.members

    def needs(self) -> dict[str, int]:
        """Scratch memory by its role."""
        p = self._plan.problem
        made = {
            "planes of M": self._own(self._M) * plane_bytes(p.m, self._slab),
            "planes of N": self._own(self._N) * plane_bytes(p.n, self._slab),
            "largest": 4 * (4 * self._members * self._blocks + 1),  # of operands, of a slab of them, and the verdict
        }
        if p.ordered:
            made["magnitudes"] = self._own(self._M) * self._lines_bytes
        if self._config.splits > 1:
            made["partials"] = 4 * self._members * self._config.splits * p.m * p.n
        return made

    def launches(self, held: dict[str, Address]) -> list[AnyStep]:
        p, largest = self._plan.problem, held["largest"]
        verdict = largest + 4 * 4 * self._members * self._blocks
        slabs = range(0, max(p.k, 1), max(self._slab, 1))
        made: list[AnyStep] = []
        if len(slabs) > 1:  # the verdict over all of M and N is needed before P is accumulated
            made.append(self._split(0, p.k, (None, None), largest, held.get("magnitudes")))
        planes = held["planes of M"], held["planes of N"]
        for start in slabs:
            depth = min(self._slab, p.k - start)
            if len(slabs) > 1:
                made.append(self._split(start, depth, planes, largest + 8 * self._members * self._blocks))
            else:
                made.append(self._split(start, depth, planes, largest, held.get("magnitudes")))
            made.append(self._multiply(depth, held, verdict, onto=p.accumulate or start > 0))
            if self._config.splits > 1:
                made.append(self._gather(held, verdict, onto=p.accumulate or start > 0))
        if p.ordered:
            return [*made, self._unsafe_rows(held)]
        return [*made, Fallback(self._plan, self._M, self._N, self._P, verdict, UNSAFE)]

    def _own(self, x: Placed) -> int:
        """Members of an operand: one if it is broadcast."""
        return self._members if any(x.layout.stack) else 1

    @property
    def _slab(self) -> int:
        p = self._plan.problem
        return slab_of(p.m, p.k, p.n, p.ordered)

    @property
    def _lines_bytes(self) -> int:
        """Of the largest magnitudes of M's rows in each stage of k."""
        p = self._plan.problem
        return 4 * math.ceil(p.k / DEPTH) * math.ceil(p.m / LINES) * LINES

    @property
    def _blocks(self) -> int:
        """Blocks that split a member: as many as are resident at once, each of which writes one magnitude; for stacks
        more, which balances small members."""
        p = self._plan.problem
        pieces = math.ceil(p.k / DEPTH) * (math.ceil(p.m / LINES) + math.ceil(p.n / LINES))
        most = RESIDENT * self._plan.machine.units
        if self._members > 1:
            most = min(MEMBER_BLOCKS, math.ceil(STACK_BLOCKS / self._members))
        return max(1, min(most, math.ceil(pieces / WARPS)))

    def _split(
        self,
        start: int,
        depth: int,
        to: tuple[Address | None, Address | None],
        largest: Address,
        of_lines: Address | None = None,
    ) -> Launch:
        """The split of `depth` of k from `start` on; without memory for planes, only the largest magnitudes."""
        M, N = self._M, self._N
        arguments = (
            operand(M, to[0], M.rows, M.layout.row, M.layout.col, start, depth),
            operand(N, to[1], N.cols, N.layout.col, N.layout.row, start, depth),
            largest,
            *(() if of_lines is None else (of_lines, ctypes.c_longlong(self._apart(M, self._lines_bytes // 4)))),
        )
        grid = (self._blocks,) if self._members == 1 else (self._blocks, self._members)
        return Launch.of(render_split.key(of_lines is not None), "split", grid, (32 * WARPS,), arguments)

    def _unsafe_rows(self, held: dict[str, Address]) -> Launch:
        """Rows of P whose magnitudes are unsafe, computed on plain cores."""
        p, M, N, blocks = self._plan.problem, self._M, self._N, self._blocks
        of_n = held["largest"] + 4 * blocks
        apart = self._apart(M, self._lines_bytes // 4), self._apart(N, 2 * blocks)
        lines = [
            structure(_Lines, x.pointer, *strides, sum(x.layout.stack))
            for x, strides in ((M, (M.layout.row, M.layout.col)), (N, (N.layout.col, N.layout.row)))
        ]
        arguments = (
            *lines,
            self._P.pointer,
            *(ctypes.c_longlong(x) for x in (self._lead, sum(self._P.layout.stack))),
            *(ctypes.c_int(x) for x in (p.m, p.k, p.n)),
            structure(_Magnitudes, held["magnitudes"], of_n, *apart, blocks, self._log_k),
        )
        grid = (math.ceil(p.m / UNSAFE_ROWS), math.ceil(p.n / UNSAFE_COLUMNS), self._members)
        return Launch.of(render_unsafe_rows.key(), "unsafe_rows", grid, (256,), arguments, overlap=True)

    def _apart(self, x: Placed, step: int) -> int:
        """From member to member of what an operand has once a member."""
        return step if self._own(x) > 1 else 0

    @property
    def _log_k(self) -> int:
        return max(self._plan.problem.k - 1, 0).bit_length()

    def _multiply(self, depth: int, held: dict[str, Address], verdict: Address, onto: bool) -> Launch:
        p, config, cut = self._plan.problem, self._config, self._config.splits > 1
        apart = [self._apart(x, plane_bytes(lines, depth)) for lines, x in ((p.m, self._M), (p.n, self._N))]
        cells = config.splits * p.m * p.n if cut else sum(self._P.layout.stack)
        arguments = (
            *(held[f"planes of {side}"] for side in "MN"),
            held["partials"] if cut else self._P.pointer,
            Size(p.m, depth, p.n, config.splits),
            ctypes.c_longlong(p.n if cut else self._lead),
            ctypes.c_int(onto and not cut),
            held["largest"],
            ctypes.c_int(0 if p.ordered else self._blocks),  # without magnitudes all are safe
            ctypes.c_int(self._log_k),
            verdict,
            structure(_Stack, self._members, *apart, cells),
        )
        blocks, block = (
            config.blocks(p.m, p.n, self._plan.machine.units, self._members),
            (self._plan.geometry.block[0],),
        )
        return Launch.of(
            render_bf16x6.key(config.tile), KERNEL, (blocks,), block, arguments, config.tile.shared_bytes, True
        )

    def _gather(self, held: dict[str, Address], verdict: Address, onto: bool) -> Launch:
        p = self._plan.problem
        parts, stack = self._config.splits, (self._members, self._config.splits * p.m * p.n, sum(self._P.layout.stack))
        return combine(
            p.algebra, onto, held["partials"], self._P.pointer, (p.m, p.n), (p.n, self._lead, 1), parts,
            guard=(verdict, 1 - UNSAFE), members=stack,
        )  # fmt: skip


def operand(
    x: Placed, to: Address | None, lines: int, line_stride: int, k_stride: int, start: int, depth: int
) -> Argument:
    """Of one matrix, or of those along the one axis of a stack."""
    along_k = abs(k_stride) <= abs(line_stride) or lines == 1
    first = x.pointer + start * k_stride * x.dtype.itemsize
    step = sum(x.layout.stack)
    return structure(_Operand, first, to, lines, depth, line_stride, k_stride, along_k, step, plane_bytes(lines, depth))
