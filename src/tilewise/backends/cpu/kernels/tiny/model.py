"""`tiny`: any strides, any extents, where nothing is to be converted; for so few steps that the call is the cost."""

from __future__ import annotations

from tilewise.backends.cpu.family import View, is_dot
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.tasks import Extents, Tasks
from tilewise.core.blocking import Blocking, RegisterTile
from tilewise.core.problem import Problem

IDEA = "a call that costs more than its arithmetic"
STEPS = 2048  # up to which the call is the cost
# and vectors of steps, each of which waits for the one before: 100x20x1 of float32 took 3.2 microseconds, by `dots` 0.8
WAITING = 256
DOTS = 6  # k of a stack of dot products: 10000x8 of float32 took 1.1 times as long as by `dots`, 10000x16 1.6 times


def takes(problem: Problem, view: View, tile: RegisterTile) -> bool:
    return problem.in_place


def suits(problem: Problem, view: View, tile: RegisterTile) -> str:
    if view.m * view.k * view.n > STEPS:
        return ""
    columns = view.n
    if view.n_along_n and view.p_along_n:
        columns = -(-view.n * problem.algebra.partial.itemsize // tile.vector_bytes)
    waiting = DOTS if problem.stack and is_dot(view) else WAITING
    return "so small that the call is the cost" if view.m * view.k * columns <= waiting else ""


def tasks(a: Arithmetic, cut: Blocking, x: Extents) -> Tasks:
    each = max(1, -(-x.members // (4 * x.workers)))
    return Tasks(-(-x.members // each), task_m=each)
