"""`tiny`: any strides and extents, without conversions; for so few steps that the call dominates."""

from __future__ import annotations

from tilewise.backends.cpu.family import View, is_dot
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.tasks import Extents, Tasks
from tilewise.core.blocking import Blocking, RegisterTile
from tilewise.core.problem import Problem
from tilewise.core.reproducible import CHAIN

IDEA = "a call that costs more than its arithmetic"
STEPS = 2048  # up to this many steps the call dominates
# and up to this many dependent vector steps: 100x20x1 float32 took 3.2 microseconds, with `dots` 0.8
DEPENDENT_STEPS = 256
DOTS = 6  # most k of a stack of dot products: 10000x8 float32 took 1.1 times as long as with `dots`, 10000x16 1.6 times


def takes(problem: Problem, view: View, tile: RegisterTile) -> bool:
    return problem.in_place and not (problem.ordered and problem.k > CHAIN)


def suits(problem: Problem, view: View, tile: RegisterTile) -> str:
    if view.m * view.k * view.n > STEPS:
        return ""
    columns = view.n
    if view.n_along_n and view.p_along_n:
        columns = -(-view.n * problem.algebra.partial.itemsize // tile.vector_bytes)
    dependent_steps = DOTS if problem.stack and is_dot(view) else DEPENDENT_STEPS
    if view.k == 1 and not tile.neon:  # others multiply vector by vector (1x1x1923 float64 took 1.6 times as long)
        dependent_steps //= 4
    return "so small that the call is the cost" if view.m * view.k * columns <= dependent_steps else ""


def tasks(a: Arithmetic, cut: Blocking, x: Extents) -> Tasks:
    each = max(1, -(-x.members // (4 * x.workers)))
    return Tasks(-(-x.members // each), task_m=each)
