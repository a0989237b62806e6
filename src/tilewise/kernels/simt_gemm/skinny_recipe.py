"""The launches of the GEMV kernels: the long operand in its own layout, split-K, then `combine`."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass

from tilewise.algebra.builtin import is_plus_times
from tilewise.core.machine import Machine, has_dependent_launch
from tilewise.core.plan import Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Address, Launch, Scratch, Value, argument
from tilewise.kernels.shared.delegated import Edge
from tilewise.kernels.shared.layouts import long_lines
from tilewise.kernels.shared.placed import Operands, Placed, members
from tilewise.kernels.shared.stacked import Runs
from tilewise.kernels.simt_gemm.skinny import SkinnyTile, skinny_pieces, skinny_tile
from tilewise.kernels.simt_gemm.text import skinny_text
from tilewise.kernels.transforms.sums import combine


def launches(plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
    """The whole product; P (and `given.arg`) is row-major."""
    assert isinstance(plan.config, SkinnyTile)
    job = SkinnyJob(plan.problem, plan.machine, given.M, given.N, given.P, given.arg, plan.config.swapped)
    return by_members(job, scratch) if job.plane_bytes else stack_launches(job)


def edge_launches(edge: Edge, scratch: Scratch) -> list[Launch]:
    """The rows or columns of an `Edge`."""
    return by_members(SkinnyJob(edge.problem, edge.machine, edge.M, edge.N, edge.P, None, edge.of_columns), scratch)


def by_members(job: SkinnyJob, scratch: Scratch) -> list[Launch]:
    """Of one member after the other, which share planes."""
    planes = scratch.take(job.plane_bytes) if job.plane_bytes else None
    return [launch for member in skinny_launches(job, planes) for launch in member]


@dataclass(frozen=True)
class SkinnyJob:
    """Some rows (columns, when swapped) of P, and their operands."""

    problem: Problem
    machine: Machine
    M: Placed
    N: Placed
    P: Placed
    where: Placed | None
    swapped: bool
    in_turn: bool = False  # the first launch may start while the one before it, of the same product, still runs

    @property
    def few(self) -> int:
        return self.P.cols if self.swapped else self.P.rows

    @property
    def length(self) -> int:
        return self.P.rows if self.swapped else self.P.cols

    @property
    def k(self) -> int:
        return self.problem.k

    @property
    def operands(self) -> tuple[Placed, ...]:
        """The short one, the long one, P, and where the winning k goes."""
        both = (self.N, self.M) if self.swapped else (self.M, self.N)
        return (*both, self.P) if self.where is None else (*both, self.P, self.where)

    @property
    def tile(self) -> SkinnyTile:
        x = self.operands[1]
        lines = long_lines(x.layout, x.rows, x.cols)
        assert lines is not None
        aligned = math.gcd(x.pointer.alignment, *(s * x.dtype.itemsize for s in (lines[1], *x.layout.stack)), 16)
        tile = skinny_tile(self.problem, self.machine, self.swapped, self.few, aligned)
        assert tile is not None
        return tile

    @property
    def pieces(self) -> int:
        return skinny_pieces(self.tile, self.length, self.k, self.machine, self.problem.members)

    @property
    def in_planes(self) -> bool:
        """Whether sums go to planes first: with split-K, and with accumulate, so that the set of texts has no
        ACCUMULATE variants."""
        p = self.problem
        return self.pieces > 1 or (p.accumulate and p.members == 1 and is_plus_times(p.semiring))

    @property
    def plane_bytes(self) -> int:
        """Of the partial sums of all pieces, and of the winning k with return_arg; 0 without planes."""
        each = self.problem.algebra.partial.itemsize + (8 if self.where is not None else 0)
        return 0 if not self.in_planes else self.pieces * self.few * self.length * each


def stack_launches(job: SkinnyJob) -> list[Launch]:
    """Without planes: one launch for all members at a constant stride."""
    runs, made = Runs(job.problem.stack, [x.layout.stack for x in job.operands]), []
    for at, count in runs.starts():
        (launch,) = _member_launches(job, None, [*map(Placed.on, job.operands, at)], early=False)
        steps = tuple(argument(ctypes.c_longlong(step)) for step in runs.steps)
        grid, own = (launch.grid[0], count, launch.grid[2]), launch.arguments[: -len(steps)]
        made.append(launch._replace(grid=grid, arguments=(*own, *steps)))
    return made


def skinny_launches(job: SkinnyJob, planes: Address | None) -> list[tuple[Launch, ...]]:
    """For each member of the stack one launch, or two with `planes`."""
    early = job.in_turn and has_dependent_launch(job.machine.arch)
    stack = enumerate([x.member(index) for x in job.operands] for index in members(job.problem.stack))
    return [_member_launches(job, planes, places, early and not number) for number, places in stack]


def _member_launches(job: SkinnyJob, planes: Address | None, places: list[Address], early: bool) -> tuple[Launch, ...]:
    """`places`: of the member's operands."""
    p, tile, pieces = job.problem, job.tile, job.pieces
    short, long, *outputs = job.operands
    a_row, a_k = (short.layout.col, short.layout.row) if job.swapped else (short.layout.row, short.layout.col)
    lines = long_lines(long.layout, long.rows, long.cols)
    assert lines is not None
    each = math.ceil(math.ceil(job.k / tile.chunk) / pieces) * tile.chunk
    pieces = max(1, math.ceil(job.k / max(each, 1)))
    split = job.in_planes
    plane = job.few * job.length
    grid = (math.ceil(job.length / tile.across), 1, pieces)
    targets = [_target(at, x, job.swapped) for at, x in zip(places[2:], outputs, strict=True)]
    made = targets
    if split and planes is not None:  # planes of the k that won first, planes of sums behind them
        starts = (planes + pieces * plane * 8, planes) if job.where is not None else (planes,)
        made = [(start, job.length, 1) for start in starts]
    arguments = (
        *places[:2],
        *_pointers(made),
        *(ctypes.c_int(extent) for extent in (job.few, job.k, job.length)),
        *(ctypes.c_longlong(s) for s in (a_row, a_k, lines[1], made[0][1], made[0][2])),
        ctypes.c_int(-max(each, 1) if early else max(each, 1)),  # see skinny.cuh
        ctypes.c_longlong(plane if split else 0),
        *(ctypes.c_longlong(0) for _ in (short, long, *targets)),  # from member to member of a stack
    )
    source = skinny_text(p.algebra, tile, p.accumulate and not split, ("A", "B", "P", "Pwhere")[: 2 + len(targets)])
    reading = Launch.of(source, tile.kernel, grid, (32 * 8,), arguments, overlap=has_dependent_launch(job.machine.arch))
    return (reading, _combine(job, made, targets, pieces)) if split else (reading,)


Target = tuple[Address, int, int]  # address, stride of the few, stride of the long side


def _target(at: Address, x: Placed, swapped: bool) -> Target:
    return (at, x.layout.col, x.layout.row) if swapped else (at, x.layout.row, x.layout.col)


def _pointers(targets: list[Target]) -> tuple[Value, ...]:
    """P's address, then that of the winning k with its strides."""
    made: list[Value] = [targets[0][0]]
    for pointer, row, col in targets[1:]:
        made += [pointer, ctypes.c_longlong(row), ctypes.c_longlong(col)]
    return tuple(made)


def _combine(job: SkinnyJob, made: list[Target], targets: list[Target], pieces: int) -> Launch:
    p, places = job.problem, list[Value]()
    for source, target in zip(made[1:], targets[1:], strict=True):
        places += [source[0], target[0], *map(ctypes.c_longlong, target[1:])]
    return combine(
        p.algebra, p.accumulate, made[0][0], targets[0][0], (job.few, job.length), (job.length, *targets[0][1:]),
        pieces, where=places, overlap=has_dependent_launch(job.machine.arch),
    )  # fmt: skip
