"""`few_columns`: one pass over M for as many columns as its widest tile has. M's rows contiguous along k, P's along n;
for half precision, wide vectors and a k of at least one."""

from __future__ import annotations

from tilewise.backends.cpu.family import View, light_or_halves
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.tasks import Extents, Tasks, pages, split_rows
from tilewise.core.blocking import SKINNY, Blocking, RegisterTile, even_strips
from tilewise.core.problem import Problem

HALF_DEPTH = 1024  # KC for half precision
IDEA = "a handful of columns; M is read once, in place"


def takes(problem: Problem, view: View, tile: RegisterTile) -> bool:
    wide = tile.vector_bytes >= 32 and view.k >= tile.vector_bytes // 4  # of half precision
    numbers = problem.light or (wide and light_or_halves(problem))
    return numbers and view.n <= tile.NR and view.m_along_k and view.p_along_n


def suits(problem: Problem, view: View, tile: RegisterTile) -> str:
    if problem.halves:
        return f"{view.n} columns: M is read once in place, and widened as it is loaded" if view.m > SKINNY else ""
    lanes = tile.vector_bytes // problem.algebra.partial.itemsize
    packs = view.n > lanes and view.n_along_n and not tile.neon  # `packed_n` hides the overhead of its loop
    few = view.m > SKINNY and not packs
    return f"{view.n} columns: M is read once in place, packing it would cost more" if few else ""


def KC(problem: Problem) -> int:
    return even_strips(problem.k, HALF_DEPTH) if problem.halves else 1024


def tasks(a: Arithmetic, cut: Blocking, x: Extents) -> Tasks:
    packed = min(cut.KC, x.k) * a.NR * a.bytes
    made = split_rows(a, x, packed)
    return made if a.same_storage else made._replace(each=pages(packed + made.task_m * x.n * a.bytes))
