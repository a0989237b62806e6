"""`little`: rows of N and of P side by side, M with any strides; for what lies in the caches whole."""

from __future__ import annotations

from tilewise.blocking import Blocking, RegisterTile
from tilewise.engines.cpu.family import View, light
from tilewise.engines.cpu.kernels.few_rows.model import KC
from tilewise.engines.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.engines.cpu.kernels.shared.tasks import Extents, Tasks, columns_apart
from tilewise.problem import Problem

IDEA = "everything lies in the caches; M and N are read where they lie"
STEPS = 2**20  # times bytes, up to which packing costs more than it brings: 64³ in float32

__all__ = ["IDEA", "KC", "suits", "takes", "tasks"]


def takes(problem: Problem, view: View, tile: RegisterTile) -> bool:
    return light(problem) and view.n_along_n and view.p_along_n


def suits(problem: Problem, view: View, tile: RegisterTile) -> str:
    small = view.m * view.k * view.n * problem.dtype.itemsize <= STEPS
    return "little enough for N to be read where it lies" if small else ""


def tasks(a: Arithmetic, cut: Blocking, x: Extents) -> Tasks:
    return columns_apart(a, x, 0)
