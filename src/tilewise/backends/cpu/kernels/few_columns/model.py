"""`few_columns`: one pass over M for as many columns as its widest tile has. P's rows contiguous, and M's along k for
half precision, which needs wide vectors and a k of at least one, and on NEON."""

from __future__ import annotations

from tilewise.backends.cpu.family import View, is_x86_sum, light_or_halves
from tilewise.backends.cpu.kernels.dots.model import few_of_a_long_k
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.tasks import Extents, Tasks, pages, split_rows
from tilewise.core.blocking import SKINNY, SMALL_P, TALL_K, Blocking, RegisterTile, even_strips
from tilewise.core.problem import Problem

# k up to which it is the best for a column-major M on AVX-512, where `unpacked` takes Pᵀ of up to SKINNY rows
# (10000x8x6 float64 took 3.4 times as long, 1000x100x8 float32 0.6); and bytes of M beside more columns (5000x300x20
# float32 takes 1.7 times as long as packed) and for twice the k (1998x27x14 float64 0.4; 25139x35x21 float32 3.4)
SHALLOW, NEAR_M, SOME_M = 24, 2**18, 2**20
DEEP = 192  # k up to which two vectors of columns are best here, too, on AVX-512
HALF_DEPTH = 1024  # KC for half precision
IDEA = "a handful of columns; M is read once, in place"


def takes(problem: Problem, view: View, tile: RegisterTile) -> bool:
    wide = tile.vector_bytes >= 32 and view.k >= tile.vector_bytes // 4  # of half precision
    numbers = problem.light or (wide and light_or_halves(problem))
    strides = view.m_along_k or (problem.light and not tile.neon)
    return numbers and view.n <= tile.NR and strides and view.p_along_n


def suits(problem: Problem, view: View, tile: RegisterTile) -> str:
    if problem.halves:
        return f"{view.n} columns: M is read once in place, and widened as it is loaded" if view.m > SKINNY else ""
    lanes = tile.vector_bytes // problem.algebra.partial.itemsize
    if view.m <= SKINNY or not (view.m_along_k or (is_x86_sum(problem, tile) and _near(problem, view))):
        return ""
    packs = view.n_along_n and not tile.neon and view.n > lanes  # `packed_n` hides the overhead of its loop
    if packs and is_x86_sum(problem, tile):  # it does not take a long k; 20000x15x12 float64 takes 1.1 times as long
        packs = (view.n > 2 * lanes or view.k > DEEP) and (view.k < TALL_K or view.m * view.n > SMALL_P)
    few = not packs and not (is_x86_sum(problem, tile) and few_of_a_long_k(problem, view))
    return f"{view.n} columns: M is read once in place, packing it would cost more" if few else ""


def _near(problem: Problem, view: View) -> bool:
    """Whether a column-major M, of which each row uses an element of every column, is best read in place."""
    if view.k <= SHALLOW:
        return True
    m_bytes = view.m * view.k * problem.dtype.itemsize
    if view.k <= 2 * SHALLOW and view.n > SKINNY // 2 and m_bytes <= SOME_M:
        return True
    return view.n > SKINNY and m_bytes <= NEAR_M


def KC(problem: Problem) -> int:
    return even_strips(problem.k, HALF_DEPTH) if problem.halves else 1024


def tasks(a: Arithmetic, cut: Blocking, x: Extents) -> Tasks:
    packed = min(cut.KC, x.k) * a.NR * a.bytes
    made = split_rows(a, x, packed)
    return made if a.same_storage else made._replace(each=pages(packed + made.task_m * x.n * a.bytes))
