"""A lower bound of every kernel's expected seconds: one formula over one table, for all kernels of a kind at once.

What a product cannot do without is the same for all of them: a launch, its steps at the best rate that a tile reaches,
the k of one block, the bytes. A kernel gives its numbers as `Bound`; the limits of its `Capabilities` that are numbers
stand in the same row, so that a kernel that does not take a shape has an infinite bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tilewise.core.problem import Problem
from tilewise.kernels.capabilities import Capabilities
from tilewise.system.machine_code import INFINITE, Formula, Row

MOST_LINES = 8


class Bound(NamedTuple):
    """Seconds below which no configuration is expected: a start, and then the longest of these."""

    start: float = 0.0  # a launch
    operand: float = 0.0  # and each element of M and N
    step: float = 0.0  # each step of the product, with every multiprocessor busy,
    block: float = 0.0  # and what a block does beside
    inner: float = 0.0  # each step of a product without its last row and column
    byte: float = 0.0  # each byte of M, N and P
    lines: tuple[tuple[float, float], ...] = ()  # one block: (each k, beside), the least of them
    each: bool = False  # members of a stack come one after the other
    few: float = math.inf  # rows or columns of P, at most, that this holds for,
    cells: float = math.inf  # and cells
    share: float = 0.999  # of all that: sums in another order round otherwise


def by_parts(
    rows: Iterable[Row], parts: Callable[[Row], float], of_k: Callable[[Row], float], end: Callable[[Row], float]
) -> tuple[tuple[float, float], ...]:
    """`Bound.lines` of a table whose rows cut k into `parts`: for each number of them, the least seconds of a k of one
    part, and beside."""
    alike = dict[float, list[Row]]()
    for row in rows:
        alike.setdefault(parts(row), []).append(row)
    return tuple((min(map(of_k, some)) / cut, min(map(end, some))) for cut, some in sorted(alike.items()))


# The columns of a row; the lines of `Bound` stand behind them.
(
    START, OPERAND, STEP, BLOCK, INNER, BYTE, EACH, SHARE, FEW, CELLS, LEAST_K, MOST_K, STEPS, LEAST_MEMBERS,
    MOST_MEMBERS, LINES,
) = range(16)  # fmt: skip
# What all rows share.
M, K, N, MEMBERS, OPERANDS, ALL_STEPS, INNER_STEPS, BYTES = range(8)


@Formula
def bound(row: Row, given: Row) -> float:
    """Infinite where a shape is not taken."""
    k, cells, few = given[K], given[M] * given[N], min(given[M], given[N])
    if k < row[LEAST_K] or k > row[MOST_K] or few > row[FEW] or cells > row[CELLS] or cells * k > row[STEPS]:
        return INFINITE
    if given[MEMBERS] < row[LEAST_MEMBERS] or given[MEMBERS] > row[MOST_MEMBERS]:
        return INFINITE
    alone = row[LINES] * k + row[LINES + 1]
    for line in range(1, MOST_LINES):
        alone = min(alone, row[LINES + 2 * line] * k + row[LINES + 2 * line + 1])
    times = given[MEMBERS] if row[EACH] > 0.0 else 1.0
    work = max(row[BLOCK] + row[STEP] * given[ALL_STEPS], row[INNER] * given[INNER_STEPS])
    work = max(work, max(times * alone, row[BYTE] * given[BYTES]))
    return row[SHARE] * (times * row[START] + row[OPERAND] * given[OPERANDS] + work)


def given_of(p: Problem) -> Row:
    """A problem, as numbers."""
    inner = p.members * max(0, p.m - 1) * p.k * max(0, p.n - 1)
    return p.m, p.k, p.n, p.members, (p.m + p.n) * p.k, p.steps, inner, p.least_bytes


def rows_of(bounds: Iterable[Bound], where: Iterable[Capabilities], scale: float) -> list[Row]:
    """A row for each bound and each of the capabilities one of which must hold; times by `scale`."""
    made = list[Row]()
    for one in bounds:
        lines = one.lines or ((0.0, 0.0),)
        assert len(lines) <= MOST_LINES
        padded = [x for line in (*lines, *[lines[-1]] * (MOST_LINES - len(lines))) for x in line]
        for can in where:
            members = 0 if can.alone else 2, math.inf if can.stacks else 1
            made.append((
                one.start, one.operand, one.step, one.block, one.inner, one.byte, one.each, one.share * scale,
                min(one.few, can.few), one.cells, can.least_k, can.most_k, can.steps, *members, *padded,
            ))  # fmt: skip
    return made
