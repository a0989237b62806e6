"""`tiny`: any strides, any extents, where nothing is to be converted; for so few steps that the call is the cost."""

from __future__ import annotations

from tilewise.backends.cpu.family import View, in_place, is_dot
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.tasks import Extents, Tasks
from tilewise.core.blocking import Blocking, RegisterTile
from tilewise.core.problem import Problem

IDEA = "a call that costs more than its arithmetic"
STEPS = 2048  # up to which the call is the cost
DOT = 512  # of one cell of P, whose one sum waits for every step: 2048 of float32 took 1.7 microseconds, by `dots` 0.4


def takes(problem: Problem, view: View, tile: RegisterTile) -> bool:
    return in_place(problem)


def suits(problem: Problem, view: View, tile: RegisterTile) -> str:
    small = view.m * view.k * view.n <= (DOT if is_dot(view) else STEPS) and not view.swapped
    return "so small that the call is the cost" if small else ""


def tasks(a: Arithmetic, cut: Blocking, x: Extents) -> Tasks:
    each = max(1, -(-x.members // (4 * x.workers)))
    return Tasks(-(-x.members // each), task_m=each)
