"""Launching the plain kernels: operands as they lie where they can be copied so, packed into words where not; pieces of
k into planes of sums that are combined; thin edges by the kernels for few rows.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product, zip_longest
from typing import Any

from tilewise.algebra.dtypes import DTYPES
from tilewise.engines.cuda.few import FewJob, few_launches
from tilewise.engines.cuda.placed import Placed, by_way_of_scratch
from tilewise.engines.cuda.queue import Fill, Launch, kernel_function, starts_early
from tilewise.few_tiles import FewTile, long_lines
from tilewise.kernels.guarded import guarded
from tilewise.kernels.render_plain import (
    JOINED,
    PACK_LINES,
    Form,
    combine_share,
    render_combine,
    render_join,
    render_pack_words,
    render_plain,
)
from tilewise.plain_tiles import IDEAS, KERNEL, Choice, PlainTile, Tail, choose, k_each, whole_tiles
from tilewise.plain_ways import Way
from tilewise.plans import Plan
from tilewise.problem import Layout, Problem

KERNELS = tuple(IDEAS)


@dataclass(frozen=True)
class Words:
    """An operand as the kernel reads it: lines of words along k, or across it; a stack of them by `strides`."""

    pointer: int
    lead: int  # words from line to line
    along_k: bool
    vector: int  # words one copy takes
    word_bytes: int
    strides: tuple[int, ...]

    def member(self, index: tuple[int, ...]) -> int:
        return self.pointer + sum(i * s for i, s in zip(index, self.strides, strict=True)) * self.word_bytes


@dataclass(frozen=True)
class Job:
    """What a product on the card is made of."""

    plan: Plan
    choice: Choice
    M: Placed
    N: Placed
    P: Placed
    where: Placed | None
    device: str
    stream: Any
    guard: tuple[int, int] | None = None  # the address of a word on the card, and what it must be for this to run

    @property
    def tile(self) -> PlainTile:
        assert isinstance(self.choice.tile, PlainTile)
        return self.choice.tile

    @property
    def words(self) -> int:
        """Of k."""
        return math.ceil(self.plan.problem.k / self.choice.way.per_word)

    @property
    def pieces(self) -> int:
        return max(1, math.ceil(self.words / k_each(self.words, self.tile, self.choice.pieces)))

    @property
    def starts_early(self) -> bool:
        """Whether its kernels may start while the ones before them end; under a guard they ask for a verdict first."""
        return self.guard is None and starts_early(self.plan.machine.arch)

    @property
    def plane_lead(self) -> int:
        return -(-self.choice.cols // 4) * 4


def prepare(
    plan: Plan, M: Placed, N: Placed, P: Placed, device: str, stream: Any, where: Placed | None = None
) -> Callable[[], None]:
    """Everything that can be done before the launch; P (and `where`, for the k that won) has rows side by side."""
    choice = choose(plan.problem, plan.machine, plan.kernel)
    job = Job(plan, choice, M, N, P, where, device, stream)
    edges = _few_jobs(job)
    needs = {f"few {number}": edge.plane_bytes for number, edge in enumerate(edges) if edge.plane_bytes}
    if choice.kernel == KERNEL:
        needs |= _needs(job)

    def launches(held: dict[str, int]) -> list[Callable[[], None]]:
        none: tuple[list[Launch], list[Launch]] = ([], [])
        made, after = _launches(job, held) if choice.kernel == KERNEL else none
        first = [Fill(held["found"], stream)] if choice.limit else []
        thin = [few_launches(edge, held.get(f"few {number}", 0)) for number, edge in enumerate(edges)]
        for members in zip(*thin, strict=True):  # all of them read before the first planes are added up
            made += [launch for step in zip_longest(*members) for launch in step if launch is not None]
        return [*first, *made, *after]

    return by_way_of_scratch(needs, launches, device, stream)


def whole_tiles_job(plan: Plan, M: Placed, N: Placed, P: Placed, device: str, stream: Any) -> Job:
    """The product by tiles alone, operands as they lie."""
    return Job(plan, whole_tiles(plan.problem, plan.machine), M, N, P, None, device, stream)


def planes_needed(job: Job) -> dict[str, int]:
    """Scratch memory of such a job, by its role."""
    return _needs(job)


def guarded_launches(job: Job, held: dict[str, int], verdict: int, value: int) -> list[Launch]:
    """Such a job, which does nothing unless the word at `verdict` is `value` by then."""
    made, after = _launches(replace(job, guard=(verdict, value)), held)
    return made + after


def _few_jobs(job: Job) -> list[FewJob]:
    """The whole product where it has few rows or columns; else what whole tiles leave over, below and at the right."""
    p, choice, jobs = job.plan.problem, job.choice, []

    def few(swapped: bool, top: int, rows: int, left: int, cols: int) -> FewJob:
        return FewJob(
            p, job.plan.machine, job.M.part(top, rows, 0, p.k), job.N.part(0, p.k, left, cols),
            job.P.part(top, rows, left, cols), None if job.where is None else job.where.part(top, rows, left, cols),
            swapped, job.device, job.stream, choice.kernel == KERNEL,
        )  # fmt: skip

    if isinstance(choice.tile, FewTile):
        return [few(choice.tile.swapped, 0, p.m, 0, p.n)]
    if choice.rows < p.m:
        jobs.append(few(False, choice.rows, p.m - choice.rows, 0, p.n))
    if choice.cols < p.n:
        jobs.append(few(True, 0, choice.rows, choice.cols, p.n - choice.cols))
    return jobs


def _needs(job: Job) -> dict[str, int]:
    """Scratch memory by its role: packed words, and planes of sums where k comes in pieces."""
    p, way, made = job.plan.problem, job.choice.way, {}
    for side, x in (("M", job.M), ("N", job.N)):
        if side in job.choice.packs:
            lines = x.rows if side == "M" else x.cols
            made[f"words {side}"] = math.prod(_own_stack(p, x)) * job.words * _packed_lead(lines, way) * way.word_bytes
    if job.choice.pieces > 1:
        cells = job.pieces * job.choice.rows * job.plane_lead
        made["planes"] = cells * p.algebra.partial.itemsize
        if job.where is not None:
            made["planes of k"] = cells * 8
    if job.choice.limit:
        made["found"] = 4
    if (tail := job.choice.tail) is not None:
        made["planes"] = tail.pieces * tail.tiles * job.tile.rows * job.tile.cols * p.result.itemsize
    return made


def _own_stack(p: Problem, x: Placed) -> tuple[int, ...]:
    """The members an operand really has: an axis it is broadcast over counts once."""
    return tuple(1 if stride == 0 else extent for extent, stride in zip(p.stack, x.layout.stack, strict=True))


def _packed_lead(lines: int, way: Way) -> int:
    """Whole lines of the cache: a copy that straddles two of them costs both."""
    words = 128 // way.word_bytes
    return -(-lines // words) * words


def _as_they_lie(x: Placed, side: str, way: Way, extent: int) -> Words:
    """`extent` words of it across k are read; a copy must not reach beyond them."""
    lines = long_lines(x.layout, x.rows, x.cols)
    assert lines is not None
    columns, lead = lines
    starts = (x.pointer, *(s * way.word_bytes for s in (extent, lead, *x.layout.stack)))
    along_k = columns if side == "N" else not columns
    vector = 1 if along_k else math.gcd(*starts, 16) // way.word_bytes
    return Words(x.pointer, lead, along_k, vector, way.word_bytes, x.layout.stack)


def _packed(job: Job, x: Placed, side: str, held: dict[str, int], first: bool) -> tuple[Words, list[Launch]]:
    """Words of the way, k by k, each line of them on a boundary of 128 bytes; `first`: nothing is queued before."""
    p, way = job.plan.problem, job.choice.way
    lines, own = x.rows if side == "M" else x.cols, _own_stack(p, x)
    lead, strides = _packed_lead(lines, way), []
    step = job.words * lead
    for extent in reversed(own):
        strides.append(step if extent > 1 else 0)
        step *= extent
    made = Words(held[f"words {side}"], lead, False, 16 // way.word_bytes, way.word_bytes, tuple(reversed(strides)))
    members = product(*(range(extent) for extent in own)) if job.words and lines else ()
    launches: list[Launch] = []
    for member in members:
        early = job.starts_early and not (first and not launches)
        launches.append(_pack(job, x, side, x.member(member), made.member(member), lead, held, early))
    return made, launches


def _pack(
    job: Job, x: Placed, side: str, source: int, target: int, lead: int, held: dict[str, int], early: bool
) -> Launch:
    """One matrix into words at `target`; looked through for words above the choice's limit, if it has one."""
    choice = job.choice
    lines, k = (x.rows, x.cols) if side == "M" else (x.cols, x.rows)
    across, along = (x.layout.row, x.layout.col) if side == "M" else (x.layout.col, x.layout.row)
    text = render_pack_words(job.plan.problem.algebra, choice.way, side, abs(along) < abs(across), choice.limit)
    arguments = (
        ctypes.c_void_p(source), ctypes.c_void_p(target),
        *((ctypes.c_void_p(held["found"]),) if choice.limit else ()), ctypes.c_int(lines), ctypes.c_int(k),
        *(ctypes.c_longlong(s) for s in (across, along, lead)),
    )  # fmt: skip
    grid = (math.ceil(job.words / 32), math.ceil(lines / PACK_LINES))
    function = kernel_function(text, "pack_words", job.device)
    return Launch(function, grid, (32, 8), arguments, job.stream, overlap=early)


def _launches(job: Job, held: dict[str, int]) -> tuple[list[Launch], list[Launch]]:
    """The packing, then one launch a member, two where k comes in pieces; and what comes after all of them, where only
    the last tiles do. All but the first may start while the one before ends, and wait for it by themselves."""
    p, choice, tile, way = job.plan.problem, job.choice, job.tile, job.choice.way
    m, n, split = choice.rows, choice.cols, choice.pieces > 1
    launches: list[Launch] = []
    operands = []
    for side, x in (("M", job.M), ("N", job.N)):
        if side in choice.packs:
            words, packing = _packed(job, x, side, held, not launches)
            launches += packing
        else:
            words = _as_they_lie(x, side, way, m if side == "M" else n)
            if choice.limit:
                launches.append(_pack(job, x, side, x.pointer, 0, 0, held, job.starts_early and bool(launches)))
        operands.append(words)
    M, N = operands
    target, where = job.P, job.where
    if split:
        layout = Layout(job.plane_lead, 1, (0,) * len(p.stack))
        target = Placed(held["planes"], p.algebra.partial, m, n, layout)
        where = None if where is None else Placed(held["planes of k"], DTYPES["int64"], m, n, layout)
    ldp = target.layout.row if split else target.layout.leading_dimension(p.m, p.n)
    assert ldp is not None
    quad = 16 // way.word_bytes * target.dtype.itemsize
    starts = (target.pointer, *(s * target.dtype.itemsize for s in (ldp, *target.layout.stack)))
    aligned = all(start % quad == 0 for start in starts)
    tail = choice.tail
    lie = (M.along_k, N.along_k, M.vector, N.vector, aligned, p.accumulate and not split, split, tail is not None)
    shared = tile.shared_bytes(way.word_bytes)
    tiles = math.ceil(m / tile.rows) * math.ceil(n / tile.cols)
    grid = (tiles + tail.tiles * (tail.pieces - 1) if tail else tiles, 1, job.pieces)
    for member in product(*(range(extent) for extent in p.stack)):
        arguments = (
            *(ctypes.c_void_p(x.member(member)) for x in (M, N, target)),
            *(() if where is None else (ctypes.c_void_p(where.member(member)), ctypes.c_longlong(where.layout.row))),
            *(() if tail is None else (ctypes.c_void_p(held["planes"]), *map(ctypes.c_int, tail.cut(tiles)))),
            *(ctypes.c_int(extent) for extent in (m, job.words, n)),
            *(ctypes.c_longlong(lead) for lead in (M.lead, N.lead, ldp)),
            ctypes.c_int(k_each(job.words, tile, choice.pieces)),
        )
        for under, by, of in _turns(job, held):
            source, guard = _under_guard(under, render_plain(p.algebra, of, Form(by, *lie)))
            function = kernel_function(source, KERNEL, job.device, shared)
            early = bool(launches) and under.starts_early
            launches.append(Launch(function, grid, (tile.threads,), (*arguments, *guard), job.stream, shared, early))
        if split:
            launches.append(_combine(job, target, where, member, job.pieces))
    return launches, [] if tail is None else [_join(job, tail, tiles, held["planes"])]


def _turns(job: Job, held: dict[str, int]) -> list[tuple[Job, Way, PlainTile]]:
    """The way that steps are taken, and by which tile; or two of them, of which only one has its turn, as was found on
    the card. The usual one comes last: what is queued behind may start while it runs."""
    choice = job.choice
    if choice.otherwise is None:
        return [(job, choice.way, job.tile)]
    return [
        (replace(job, guard=(held["found"], 1)), *choice.otherwise),
        (replace(job, guard=(held["found"], 0)), choice.way, job.tile),
    ]


def _join(job: Job, tail: Tail, tiles: int, planes: int) -> Launch:
    """The pieces of the last tiles into P."""
    p, tile = job.plan.problem, job.tile
    function = kernel_function(render_join(p.algebra, job.choice.way, tile), "join", job.device)
    ldp = job.P.layout.leading_dimension(p.m, p.n)
    assert ldp is not None
    arguments = (
        ctypes.c_void_p(planes), ctypes.c_void_p(job.P.pointer), ctypes.c_int(tiles - tail.tiles),
        ctypes.c_int(job.choice.rows), ctypes.c_int(job.choice.cols), ctypes.c_longlong(ldp), ctypes.c_int(tail.pieces),
    )  # fmt: skip
    grid = (tail.tiles * tile.rows * tile.cols // JOINED,)
    return Launch(function, grid, (256,), arguments, job.stream, overlap=job.starts_early)


def _combine(job: Job, planes: Placed, where: Placed | None, member: tuple[int, ...], pieces: int) -> Launch:
    p = job.plan.problem
    share = combine_share(pieces)
    source, guard = _under_guard(job, render_combine(p.algebra, job.choice.way, p.accumulate, share))
    function = kernel_function(source, "combine", job.device)
    ldp = job.P.layout.leading_dimension(p.m, p.n)
    assert ldp is not None
    places: tuple[Any, ...] = ()
    if where is not None and job.where is not None:
        pointers = (where.pointer, job.where.member(member))
        places = (*map(ctypes.c_void_p, pointers), ctypes.c_longlong(job.where.layout.row), ctypes.c_longlong(1))
    arguments = (
        ctypes.c_void_p(planes.pointer), ctypes.c_void_p(job.P.member(member)), *places,
        ctypes.c_int(planes.rows), ctypes.c_int(planes.cols), ctypes.c_longlong(planes.layout.row),
        ctypes.c_longlong(ldp), ctypes.c_longlong(1), ctypes.c_int(pieces), *guard,
    )  # fmt: skip
    grid = (math.ceil(planes.rows * planes.cols * share / 256),)
    return Launch(function, grid, (256,), arguments, job.stream, overlap=job.starts_early)


def _under_guard(job: Job, source: str) -> tuple[str, tuple[Any, ...]]:
    """The kernel's text and what its arguments end with."""
    if job.guard is None:
        return source, ()
    verdict, value = job.guard
    return guarded(source, value), (ctypes.c_void_p(verdict),)
