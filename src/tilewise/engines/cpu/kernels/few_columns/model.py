"""`few_columns`: no more columns than its widest tile has: it makes one pass over M. M's rows along k, P's along n."""

from __future__ import annotations

from tilewise.blocking import FEW, Blocking, RegisterTile
from tilewise.engines.cpu.family import View, light
from tilewise.engines.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.engines.cpu.kernels.shared.tasks import Extents, Tasks, rows_apart
from tilewise.problem import Problem

IDEA = "a handful of columns; M is read once, where it lies"


def takes(problem: Problem, view: View, tile: RegisterTile) -> bool:
    return light(problem) and view.n <= tile.NR and view.m_along_k and view.p_along_n


def suits(problem: Problem, view: View, tile: RegisterTile) -> str:
    lanes = tile.vector_bytes // problem.algebra.partial.itemsize
    packs = view.n > lanes and view.n_along_n and not tile.neon  # `packed_n` hides its loop's counting
    few = view.m > FEW and not packs
    return f"{view.n} columns: M is read once where it lies, packing it would cost more" if few else ""


def KC(problem: Problem) -> int:
    return 1024


def tasks(a: Arithmetic, cut: Blocking, x: Extents) -> Tasks:
    return rows_apart(a, x, min(cut.KC, x.k) * a.NR * a.bytes)
