"""A long product on the CPU in pieces, for Ctrl-C: Python handles signals only between two native calls.

Pieces depend on the problem and the vector width alone, not on a measured rate or the number of threads, so that the
order of sums, and with it the bits of P, is fixed. k is split first, with the sums in P itself, as kernels do between
blocks of KC; then columns, then rows, in pieces wide enough for the repeated packing to be cheap.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import Array
from tilewise.algebra.expression import uses
from tilewise.core.machine import Machine
from tilewise.core.problem import Layout, Problem
from tilewise.core.reproducible import CHAIN
from tilewise.planning.choose import make_plan

PER_LANE = 2e9  # steps a second of one lane of a core
SECONDS = 0.2  # target duration of a piece on one core
FEWEST = 2**20  # smallest product that is split, in steps
DEEP, WIDE, TALL = 1024, 2048, 4096  # smallest k, columns and rows of a piece, if they fit the target duration
LEAST = 256  # smallest columns and rows of a piece in any case
SLOW = {40: ("exp", "log", "log1p", "logaddexp", "sqrt"), 8: ("div", "floordiv", "mod")}  # cost in multiplies


def piece_steps(problem: Problem, machine: Machine) -> int:
    """Steps of a piece: about those that one core takes in SECONDS."""
    dtype = problem.algebra.partial
    rate = PER_LANE * max(1, (machine.vector_bytes or 16) // max(1, dtype.itemsize))
    if dtype.kind == "c":
        rate /= 2
    if dtype.is_integer and dtype.itemsize == 8:
        rate /= 4
    if dtype != problem.dtype:
        rate /= 2  # halves are widened while they are packed
    if problem.semiring.name not in ("plus_times", "lor_land"):
        rate /= 2  # two instructions a step, and compares
    trees = problem.semiring.add, problem.semiring.mul
    slower = (times for times, names in SLOW.items() if any(uses(tree, names) for tree in trees))
    return int(rate / max(slower, default=1) * SECONDS)


def is_long(problem: Problem, machine: Machine) -> bool:
    steps = problem.least_steps
    return steps > FEWEST and steps > 2 * piece_steps(problem, machine)


def run_in_pieces(
    problem: Problem, machine: Machine, M: Array, N: Array, P: Array, arg: Array | None = None, *pinned: Any
) -> None:
    """A long product in pieces, between which Python handles signals. `pinned`: the caller's kernel and tile."""
    if problem.stack:
        _members(problem, machine, M, N, P, arg, *pinned)
        return
    from tilewise.backends.cpu.run import run as run_on_cpu  # lazy: its kernels take 40 ms to import

    most, rounds = piece_steps(problem, machine), problem.algebra.partial != problem.result
    m, k, n = problem.m, problem.k, problem.n
    if arg is not None:
        most //= 2  # every step also chooses a k
    cuts_k = arg is None and not (rounds and problem.accumulate)
    symmetric = problem.symmetric and arg is None and not problem.accumulate
    side = max(LEAST, math.isqrt(most // DEEP))  # with slow steps, packing even narrow pieces is cheap
    wide, tall = min(WIDE, side), min(TALL, side)
    depth = _even(k, max(DEEP, most // (m * n))) if cuts_k else k
    if problem.ordered:
        depth = min(k, -(-depth // CHAIN) * CHAIN)
    cols = _even(n, max(wide, most // (m * depth)))
    rows = m if m * cols * depth <= 3 * most // 2 else _even(m, max(tall, most // (cols * depth)))
    if symmetric:
        rows = cols = _even(n, max(wide, math.isqrt(most // depth)))
    for i in _slices(m, rows):
        for j in _slices(n, cols):
            if symmetric and j.start < i.start:
                np.copyto(P[i, j], P[j, i].T)
                continue
            sums, unrounded = P[i, j], problem
            if rounds and depth < k:  # half precision is rounded once, at the end
                sums = np.empty(sums.shape, problem.algebra.partial.numpy)
                unrounded = replace(problem, unrounded=True)
            for at in _slices(k, depth):
                where = None if arg is None else arg[i, j]
                onto = problem.accumulate or at.start > 0
                part = of_panels(unrounded, M[i, at], N[at, j], sums, onto, symmetric and i == j)
                run_on_cpu(make_plan(part, machine, *pinned), M[i, at], N[at, j], sums, where)
            if unrounded is not problem:
                with np.errstate(all="ignore"):
                    P[i, j] = sums.astype(P.dtype)


def _members(problem: Problem, machine: Machine, M: Array, N: Array, P: Array, arg: Array | None, *pinned: Any) -> None:
    """A stack in pieces of members along its first axis."""
    from tilewise.backends.cpu.run import run as run_on_cpu  # lazy: its kernels take 40 ms to import

    count, rest = problem.stack[0], problem.stack[1:]
    each = max(1, problem.steps // count)
    step = max(1, piece_steps(problem, machine) // each)
    M, N = (np.broadcast_to(x, (*problem.stack, *x.shape[-2:])) for x in (M, N))
    for at in _slices(count, step):
        one = at.stop - at.start == 1
        stack = rest if one else (at.stop - at.start, *rest)
        parts: list[Any] = [None if x is None else x[at.start] if one else x[at] for x in (M, N, P, arg)]
        part = _with_layouts(replace(problem, stack=stack), *parts[:3])
        if one and is_long(part, machine):
            run_in_pieces(part, machine, *parts, *pinned)
        else:
            run_on_cpu(make_plan(part, machine, *pinned), *parts)


def of_panels(problem: Problem, M: Array, N: Array, P: Array, accumulate: bool, symmetric: bool = False) -> Problem:
    """The problem of two panels and P; `symmetric`: N is M transposed."""
    (m, k), n = M.shape, N.shape[1]
    whole = problem.whole or problem.m * problem.k * problem.n
    part = replace(problem, m=m, k=k, n=n, accumulate=accumulate, symmetric=symmetric, whole=whole)
    return _with_layouts(part, M, N, P)


def _with_layouts(problem: Problem, M: Array, N: Array, P: Array) -> Problem:
    """The problem with the layouts of these arrays."""
    made = []
    for x in (M, N, P):
        *own, row, col = (stride // x.itemsize for stride in x.strides)
        made.append(Layout(row, col, (*[0] * (len(problem.stack) - len(own)), *own)))
    return replace(problem, layout_m=made[0], layout_n=made[1], layout_p=made[2])


def _even(extent: int, most: int) -> int:
    """The size of nearly equal parts, at most `most`, a multiple of 64: a short remainder would need another kernel."""
    parts = math.ceil(extent / max(1, most))
    return min(extent, math.ceil(math.ceil(extent / parts) / 64) * 64)


def _slices(extent: int, step: int) -> Iterator[slice]:
    for start in range(0, extent, step):
        yield slice(start, min(start + step, extent))
