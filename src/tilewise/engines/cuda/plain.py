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
from tilewise.engines.cuda.placed import Placed
from tilewise.engines.cuda.queue import Launch, kernel_function
from tilewise.kernels.render_plain import Form, render_combine, render_pack_words, render_plain
from tilewise.plain_tiles import IDEAS, KERNEL, Choice, Way, choose, k_each, source_of_words
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


def prepare(
    plan: Plan, M: Placed, N: Placed, P: Placed, device: str, stream: Any, where: Placed | None = None
) -> Callable[[], None]:
    """Everything that can be done before the launch; P (and `where`, for the k that won) has rows side by side."""
    p = plan.problem
    choice = choose(p, plan.machine, plan.kernel)
    job = Job(plan, choice, P, where, device, stream)
    ready = [_as_they_lie(x, side, p.dtype, choice.way) for x, side in ((M, "M"), (N, "N"))]
    if all(ready) and choice.pieces == 1:
        launches = _launches(job, ready[0], ready[1])  # type: ignore[arg-type]

        def queue() -> None:
            for launch in launches:
                launch()

        return queue

    def by_way_of_workspaces() -> None:
        with ExitStack() as workspaces:
            words = [
                made or _packed(job, x, side, workspaces) for made, x, side in zip(ready, (M, N), "MN", strict=True)
            ]
            for launch in _launches(job, words[0], words[1], workspaces):
                launch()

    return by_way_of_workspaces


def _as_they_lie(x: Placed, side: str, dtype: Any, way: Way) -> Words | None:
    source = source_of_words(x.layout, x.rows, x.cols, x.dtype, dtype, way)
    if source is None:
        return None
    columns, lead = source
    along_k = columns if side == "N" else not columns
    aligned = math.gcd(x.pointer, *((s * way.word_bytes) for s in (lead, *x.layout.stack)), 16)
    return Words(x.pointer, lead, along_k, 1 if along_k else aligned // way.word_bytes, way.word_bytes, x.layout.stack)


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
    tile, way, split = choice.tile, choice.way, choice.pieces > 1
    words = math.ceil(p.k / way.per_word)
    each = k_each(words, tile, choice.pieces)
    pieces = max(1, math.ceil(words / each))
    target, where = job.P, job.where
    if split:
        assert workspaces is not None
        lead = -(-p.n // 4) * 4
        planes = _allocate(job, pieces * p.m * lead * p.algebra.partial.itemsize, workspaces)
        target = Placed(planes, p.algebra.partial, p.m, p.n, Layout(lead, 1, (0,) * len(p.stack)))
        if where is not None:
            places = _allocate(job, pieces * p.m * lead * 8, workspaces)
            where = Placed(places, DTYPES["int64"], p.m, p.n, target.layout)
    ldp = target.layout.leading_dimension(p.m, p.n)
    assert ldp is not None
    quad = 16 // way.word_bytes * target.dtype.itemsize
    aligned = all(x * target.dtype.itemsize % quad == 0 for x in (ldp, *target.layout.stack)) and target.pointer % quad == 0
    form = Form(way, M.along_k, N.along_k, M.vector, N.vector, aligned, p.accumulate and not split, split)
    source = render_plain(p.algebra, tile, form)
    shared = tile.shared_bytes(way.word_bytes)
    function = kernel_function(source, KERNEL, job.device, shared)
    blocks = math.ceil(p.m / tile.rows) * math.ceil(p.n / tile.cols)
    launches = []
    for member in product(*(range(extent) for extent in p.stack)):
        arguments = (
            *(ctypes.c_void_p(x.member(member)) for x in (M, N, target)),
            *(() if where is None else (ctypes.c_void_p(where.member(member)), ctypes.c_longlong(where.layout.row))),
            *(ctypes.c_int(extent) for extent in (p.m, words, p.n)),
            *(ctypes.c_longlong(lead) for lead in (M.lead, N.lead, ldp)),
            ctypes.c_int(each),
            ctypes.c_int(0),
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
        places = (*(ctypes.c_void_p(x) for x in pointers), ctypes.c_longlong(job.where.layout.row))
    arguments = (
        ctypes.c_void_p(planes.pointer), ctypes.c_void_p(job.P.member(member)), *places,
        ctypes.c_int(p.m), ctypes.c_int(p.n),
        ctypes.c_longlong(planes.layout.row), ctypes.c_longlong(ldp), ctypes.c_int(pieces),
    )  # fmt: skip
    return Launch(function, (math.ceil(p.m * p.n / 256),), (256,), arguments, job.stream)
