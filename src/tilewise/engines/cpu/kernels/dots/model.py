"""`dots`: one column, and M's rows along k. N's column and P's may have any stride."""

from __future__ import annotations

from tilewise.blocking import Blocking, RegisterTile
from tilewise.engines.cpu.family import View, light
from tilewise.engines.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.engines.cpu.kernels.shared.tasks import Extents, Tasks, rows_apart
from tilewise.problem import Problem

IDEA = "one column; dot products along k"


def takes(problem: Problem, view: View, tile: RegisterTile) -> bool:
    return light(problem) and view.n == 1 and view.m_along_k


def suits(problem: Problem, view: View, tile: RegisterTile) -> str:
    return "one column, and M's rows lie along k: dot products read M once" if view.m > 1 else ""


def KC(problem: Problem) -> int:
    return 256


def tasks(a: Arithmetic, cut: Blocking, x: Extents) -> Tasks:
    return rows_apart(a, x, 0 if x.column_of_N else x.k * a.bytes)
