"""Launching the plain kernels: operands as they lie where they can be copied so, packed into words where not; pieces of
k into planes of sums that are combined; thin edges by the kernels for few rows.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from typing import Any

from tilewise.algebra.dtypes import DTYPES
from tilewise.arrays.card import allocate
from tilewise.engines.cuda.few import FewJob, few_launches
from tilewise.engines.cuda.placed import Placed
from tilewise.engines.cuda.queue import Launch, kernel_function
from tilewise.few_tiles import FewTile
from tilewise.kernels.render_plain import Form, render_combine, render_pack_words, render_plain
from tilewise.plain_tiles import IDEAS, KERNEL, Choice, PlainTile, choose, k_each, source_of_words
from tilewise.plain_ways import Way
from tilewise.planning import Plan
from tilewise.problem import Layout

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
    P: Placed
    where: Placed | None
    device: str
    stream: Any

    @property
    def tile(self) -> PlainTile:
        assert isinstance(self.choice.tile, PlainTile)
        return self.choice.tile


def prepare(
    plan: Plan, M: Placed, N: Placed, P: Placed, device: str, stream: Any, where: Placed | None = None
) -> Callable[[], None]:
    """Everything that can be done before the launch; P (and `where`, for the k that won) has rows side by side."""
    p = plan.problem
    choice = choose(p, plan.machine, plan.kernel)
    few = _few_jobs(plan, choice, M, N, P, where, device, stream)
    static = [launch for job in few if not job.plane_bytes for launch in few_launches(job, None)]
    dynamic = [job for job in few if job.plane_bytes]
    job = Job(plan, choice, P, where, device, stream)
    ready: list[Words | None] = []
    if choice.kernel == KERNEL:
        ready = [_as_they_lie(x, side, p.dtype, choice.way) for x, side in ((M, "M"), (N, "N"))]
        if all(ready) and choice.pieces == 1:
            static = _launches(job, ready[0], ready[1]) + static  # type: ignore[arg-type]
            ready = []

    def queue() -> None:
        for launch in static:
            launch()
        if not (dynamic or ready):
            return
        with ExitStack() as workspaces:
            if ready:
                words = [
                    made or _packed(job, x, side, workspaces) for made, x, side in zip(ready, (M, N), "MN", strict=True)
                ]
                for launch in _launches(job, words[0], words[1], workspaces):
                    launch()
            for edge in dynamic:
                for launch in few_launches(edge, workspaces):
                    launch()

    return queue


def _few_jobs(
    plan: Plan, choice: Choice, M: Placed, N: Placed, P: Placed, where: Placed | None, device: str, stream: Any
) -> list[FewJob]:
    """The whole product where it has few rows or columns; else what whole tiles leave over, below and at the right."""
    p, jobs = plan.problem, []

    def job(swapped: bool, top: int, rows: int, left: int, cols: int) -> FewJob:
        return FewJob(
            p, plan.machine, _part(M, top, rows, 0, p.k), _part(N, 0, p.k, left, cols), _part(P, top, rows, left, cols),
            None if where is None else _part(where, top, rows, left, cols), swapped, device, stream,
        )  # fmt: skip

    if isinstance(choice.tile, FewTile):
        return [job(choice.tile.swapped, 0, p.m, 0, p.n)]
    if choice.rows < p.m:
        jobs.append(job(False, choice.rows, p.m - choice.rows, 0, p.n))
    if choice.cols < p.n:
        jobs.append(job(True, 0, choice.rows, choice.cols, p.n - choice.cols))
    return jobs


def _part(x: Placed, top: int, rows: int, left: int, cols: int) -> Placed:
    offset = (top * x.layout.row + left * x.layout.col) * x.dtype.itemsize
    return Placed(x.pointer + offset, x.dtype, rows, cols, x.layout)


def _as_they_lie(x: Placed, side: str, dtype: Any, way: Way) -> Words | None:
    source = source_of_words(x.layout, x.rows, x.cols, x.dtype, dtype, way)
    if source is None:
        return None
    columns, lead = source
    along_k = columns if side == "N" else not columns
    aligned = math.gcd(x.pointer, *((s * way.word_bytes) for s in (lead, *x.layout.stack)), 16)
    return Words(x.pointer, lead, along_k, aligned // way.word_bytes, way.word_bytes, x.layout.stack)


def _packed(job: Job, x: Placed, side: str, workspaces: ExitStack) -> Words:
    """Words of the way, k by k, each line of them on a boundary of 16 bytes."""
    p, way = job.plan.problem, job.choice.way
    lines, k = (x.rows, x.cols) if side == "M" else (x.cols, x.rows)
    across, along = (x.layout.row, x.layout.col) if side == "M" else (x.layout.col, x.layout.row)
    own = tuple(1 if s == 0 else e for e, s in zip(p.stack, x.layout.stack, strict=True))
    many, vector = math.ceil(k / way.per_word), 16 // way.word_bytes
    lead = -(-lines // vector) * vector
    buffer = _allocate(job, math.prod(own) * many * lead * way.word_bytes, workspaces)
    along_k = abs(along) < abs(across)
    function = kernel_function(render_pack_words(p.algebra, way, side, along_k), "pack_words", job.device)
    strides, step = [], many * lead
    for extent in reversed(own):
        strides.append(step if extent > 1 else 0)
        step *= extent
    made = Words(buffer, lead, False, vector, way.word_bytes, tuple(reversed(strides)))
    for member in product(*(range(extent) for extent in own)):
        arguments = (
            ctypes.c_void_p(x.member(member)), ctypes.c_void_p(made.member(member)), ctypes.c_int(lines),
            ctypes.c_int(k), *(ctypes.c_longlong(s) for s in (across, along, lead)),
        )  # fmt: skip
        if many and lines:
            grid = (math.ceil(many / 32), math.ceil(lines / 32))
            Launch(function, grid, (32, 8), arguments, job.stream)()
    return made


def _allocate(job: Job, nbytes: int, workspaces: ExitStack) -> int:
    buffer = allocate(max(nbytes, 16), job.device, job.stream)
    workspaces.callback(buffer.close, job.stream)
    return int(buffer.handle)


def _launches(job: Job, M: Words, N: Words, workspaces: ExitStack | None = None) -> list[Launch]:
    p, choice = job.plan.problem, job.choice
    tile, way, split = job.tile, choice.way, choice.pieces > 1
    m, n = choice.rows, choice.cols
    words = math.ceil(p.k / way.per_word)
    each = k_each(words, tile, choice.pieces)
    pieces = max(1, math.ceil(words / each))
    target, where = job.P, job.where
    if split:
        assert workspaces is not None
        lead = -(-n // 4) * 4
        planes = _allocate(job, pieces * m * lead * p.algebra.partial.itemsize, workspaces)
        target = Placed(planes, p.algebra.partial, m, n, Layout(lead, 1, (0,) * len(p.stack)))
        if where is not None:
            places = _allocate(job, pieces * m * lead * 8, workspaces)
            where = Placed(places, DTYPES["int64"], m, n, target.layout)
    ldp = target.layout.row if split else target.layout.leading_dimension(p.m, p.n)
    assert ldp is not None
    quad = 16 // way.word_bytes * target.dtype.itemsize
    starts = (target.pointer, *(s * target.dtype.itemsize for s in (ldp, *target.layout.stack)))
    aligned = all(start % quad == 0 for start in starts)
    form = Form(way, M.along_k, N.along_k, M.vector, N.vector, aligned, p.accumulate and not split, split)
    shared = tile.shared_bytes(way.word_bytes)
    function = kernel_function(render_plain(p.algebra, tile, form), KERNEL, job.device, shared)
    blocks = math.ceil(m / tile.rows) * math.ceil(n / tile.cols)
    launches = []
    for member in product(*(range(extent) for extent in p.stack)):
        arguments = (
            *(ctypes.c_void_p(x.member(member)) for x in (M, N, target)),
            *(() if where is None else (ctypes.c_void_p(where.member(member)), ctypes.c_longlong(where.layout.row))),
            *(ctypes.c_int(extent) for extent in (m, words, n)),
            *(ctypes.c_longlong(lead) for lead in (M.lead, N.lead, ldp)),
            ctypes.c_int(each),
        )
        launches.append(Launch(function, (blocks, 1, pieces), (tile.threads,), arguments, job.stream, shared))
        if split:
            launches.append(_combine(job, target, where, member, pieces))
    return launches


def _combine(job: Job, planes: Placed, where: Placed | None, member: tuple[int, ...], pieces: int) -> Launch:
    p = job.plan.problem
    function = kernel_function(render_combine(p.algebra, job.choice.way, p.accumulate), "combine", job.device)
    ldp = job.P.layout.leading_dimension(p.m, p.n)
    assert ldp is not None
    places: tuple[Any, ...] = ()
    if where is not None and job.where is not None:
        pointers = (where.pointer, job.where.member(member))
        places = (*map(ctypes.c_void_p, pointers), ctypes.c_longlong(job.where.layout.row), ctypes.c_longlong(1))
    arguments = (
        ctypes.c_void_p(planes.pointer), ctypes.c_void_p(job.P.member(member)), *places,
        ctypes.c_int(planes.rows), ctypes.c_int(planes.cols), ctypes.c_longlong(planes.layout.row),
        ctypes.c_longlong(ldp), ctypes.c_longlong(1), ctypes.c_int(pieces),
    )  # fmt: skip
    return Launch(function, (math.ceil(planes.rows * planes.cols / 256),), (256,), arguments, job.stream)
