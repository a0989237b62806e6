"""`short_dots`: integers of one and two bytes, M's rows contiguous along k and at least a vector long; for few
columns."""

from __future__ import annotations

from tilewise.backends.cpu.family import View
from tilewise.backends.cpu.kernels.interleaved.model import AMX_FEW, SOME, STEPS, k_pack, uses_amx
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.tasks import Extents, Tasks, split_rows
from tilewise.core.blocking import Blocking, RegisterTile
from tilewise.core.problem import Problem

IDEA = "a few columns of short integers; M is read in place, several k per lane"
HIGH = 4  # rows from which copying N's columns costs little
# strided columns that cost more to copy than `interleaved` needs for packing, where rows are at most twice as many
# (8x299878x16 int8 took 6.7 times as long), by bytes of a vector, 11 for others; and columns and k whose horizontal
# sums take longer (351x34x21 int16 2.1 times)
COPIED, MANY, SHALLOW = {64: 9}, 17, 192


def elements(vector_bytes: int, k_pack: int) -> int:
    """k per vector."""
    return k_pack * vector_bytes // 4


def takes(problem: Problem, view: View, tile: RegisterTile) -> bool:
    depth = k_pack(problem, tile)
    return depth > 1 and view.m_along_k and view.k >= elements(tile.vector_bytes, depth)


def suits(problem: Problem, view: View, tile: RegisterTile) -> str:
    few = (
        view.n <= (AMX_FEW if uses_amx(problem, tile) else SOME)
        and view.m >= HIGH
        and not _better_packed(problem, view, tile)
    )
    return f"{view.n} columns of short integers: M is read once in place" if few else ""


def _better_packed(problem: Problem, view: View, tile: RegisterTile) -> bool:
    if tile.neon or view.n_along_k or view.swapped or view.m * view.k * view.n < STEPS:
        return False
    if problem.light and problem.dtype.itemsize == 1 and min(view.m, view.n) <= 16 // k_pack(problem, tile):
        return False  # `interleaved` does not take it either
    return (view.n >= COPIED.get(tile.vector_bytes, 11) and view.m <= 2 * view.n) or (
        view.n >= MANY and view.k <= SHALLOW
    )


def column_words(a: Arithmetic, k: int) -> int:
    """Words of a copied column of N, in whole vectors."""
    return -(-k // (a.k_pack * a.lanes)) * a.lanes


def tasks(a: Arithmetic, cut: Blocking, x: Extents) -> Tasks:
    return split_rows(a, x, x.n * (column_words(a, x.k) + 1) * 4)
