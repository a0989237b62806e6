"""Small products, a thread to a few cells of P, as the planner sees them."""

from __future__ import annotations

import math
from typing import NamedTuple

from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry
from tilewise.core.problem import Problem
from tilewise.kernels.capabilities import Condition
from tilewise.kernels.plain.configs import step_slots

KERNEL = "cells"
IDEA = "a thread makes a few cells of P from the caches: small products, and stacks of thousands of them"
THREADS = 256  # of a block
LONGEST = 256  # k: beyond it sums one after the other are less exact than a tile's, and slower
LARGEST = 2**22  # steps of one member beyond which tiles always win,
SHALLOW, LARGEST_SHALLOW = 16, 2**26  # and in stacks where k is so small that writing P is all there is to do
MANY_CELLS, MOST_WIDE = 2**17, 4  # a thread makes several where there are so many
START_SECONDS = {False: 1.9e-6, True: 2.5e-6}  # by whether it is a stack
STEP_SECONDS = 50e-9  # of one k of 4 bytes, where threads are too few to hide the way to the caches
RATE_SHARE = 0.05  # of the plain cores' rate: loads set the pace, not the steps
READING = 0.6  # share of the memory's bandwidth
# Where columns are few, each thread of a warp walks lines of M of its own, and a line is one access to the first cache:
FEW_COLUMNS, LONG_LINE = 4, 100  # so few, along lines of M of so many bytes and more,
LINE_STEPS = {False: 145, True: 87}  # an element of M takes as long as so many steps; by whether two fit into a word


class Cut(NamedTuple):
    """A thread's cells: so many, down a column or along a row."""

    width: int
    down: bool


CUTS = (Cut(1, False), *(Cut(width, down) for width in (2, MOST_WIDE) for down in (False, True)))


def cut(problem: Problem) -> Cut:
    """More cells of a thread read operands less often, and leave fewer threads."""
    p = problem
    if p.members * p.m * p.n < MANY_CELLS:
        return CUTS[0]
    down = p.m >= MOST_WIDE or p.m >= p.n
    longest = p.m if down else p.n
    width = MOST_WIDE if longest >= MOST_WIDE else 2 if longest >= 2 else 1
    return Cut(width, down and width > 1)


def along_columns(problem: Problem) -> bool:
    """Whether neighbouring threads go down P's columns, because those lie side by side."""
    return problem.m > 1 and abs(problem.layout_p.row) < abs(problem.layout_p.col)


def threads(problem: Problem) -> int:
    """Of all members."""
    return problem.members * threads_of_a_member(problem)


def threads_of_a_member(problem: Problem) -> int:
    p, (width, down) = problem, cut(problem)
    return math.ceil(p.m / width) * p.n if down else p.m * math.ceil(p.n / width)


def _is_small(p: Problem) -> bool:
    return p.m * p.k * p.n <= (LARGEST_SHALLOW if p.k <= SHALLOW and p.members > 1 else LARGEST)


SMALL = Condition(_is_small, f"is for up to {LARGEST:,} steps, and {LARGEST_SHALLOW:,} in stacks with a short k")


def seconds(problem: Problem, machine: Machine) -> float:
    p = problem
    waves = math.ceil(max(1.0, threads(p) / (machine.units * machine.resident_threads)))
    latency = p.k * STEP_SECONDS * max(1.0, p.dtype.itemsize / 4) * waves
    rate = machine.step_rate("float32") * RATE_SHARE / max(1.0, step_slots(p.algebra, machine) / 2)
    reading = p.least_bytes / (READING * machine.bandwidth)
    return START_SECONDS[problem.members > 1] + max(latency, p.steps / rate, reading, _line_seconds(p, machine))


def least_seconds(p: Problem, machine: Machine) -> float:
    """A launch, and the longer of one thread's k and the bytes."""
    deep = p.k * STEP_SECONDS * max(1.0, p.dtype.itemsize / 4)
    return START_SECONDS[p.members > 1] + max(deep, p.least_bytes / (READING * machine.bandwidth))


def _line_seconds(p: Problem, machine: Machine) -> float:
    """Those that lines of M take which no two rows of P share, if they are what is waited for."""
    scattered = p.n <= FEW_COLUMNS < p.m and abs(p.layout_m.col) == 1 and p.k * p.dtype.itemsize >= LONG_LINE
    if not scattered:
        return 0.0
    return p.members * p.m * p.k * LINE_STEPS[p.dtype.itemsize <= 2] / machine.step_rate("float32")


def geometry(problem: Problem) -> Geometry:
    """A block as people count it: so many cells of P side by side."""
    cells = THREADS * cut(problem).width
    cols = min(problem.n, cells)
    return Geometry((THREADS, 1), max(1, cells // max(1, cols)), max(1, cols), 1, 0)
