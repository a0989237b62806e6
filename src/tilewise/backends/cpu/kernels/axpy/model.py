"""`axpy`: rows of N side by side, M with any strides, and P too where it has few rows; for few rows, and on NEON for a
shallow k."""

from __future__ import annotations

from tilewise.backends.cpu.family import View, is_dot
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.tasks import Extents, Tasks, columns_apart, far_stretches, pages, rows_apart
from tilewise.core.blocking import SKINNY, TALL_K, THIN_ROW, Blocking, RegisterTile, broadcast_costs, is_short
from tilewise.core.problem import Problem

IDEA = "a few rows of N at a time, walked along their columns, onto rows of P"
# one core of a Neoverse-N1, 4,171 drawn products: k up to which it is the fastest for any M, from SHALLOW_COLUMNS on;
# and rows up to which it is for any k, from so many columns on
PORT = 24, 26, 32  # where an element in every lane takes a port
QUIET = 12, 26, 32  # and every vector of N has to be made quiet
LANE = 6, 16, 64  # where a step multiplies by one lane of a vector
SHALLOW_COLUMNS = 16
HALVES = 4  # rows of half precision, for each of which a vector of N is widened once
HALF_DEPTH = 12  # k of half precision that registers hold, so that tiles round their sums and write P themselves
DEPTH = 8  # k that stretches are multiples of
SOME = 64  # rows and k of a product that is little either way, where an element in every lane takes a port


# rows up to which it is the fastest for any k, of numbers that are multiplied and added on x86 (4x300x300 of float32
# took 1.4 times as long as by `unpacked`), and of complex ones
ROWS, PAIRED_ROWS, FEW_PAIRED = 2, 8, 8
PAIRED_DEPTH = 4  # k of complex numbers on x86 (20000x1x20 of complex64 took 3.4 times as long by `packed`)


def takes(problem: Problem, view: View, tile: RegisterTile) -> bool:
    """A float's multiply-and-add takes one lane of a vector on NEON, which tiles make more of than one row does; of
    halves a few rows there, or any where tiles round them."""
    if not view.n_along_n or not (view.p_along_n or (problem.light and view.m <= SKINNY)):
        return False
    if problem.halves:
        return tile.neon and problem.semiring.multiplies and (view.m <= SKINNY or _rounds(problem, view, tile))
    return problem.as_pairs or (problem.light and (not tile.neon or view.m == 1 or not problem.semiring.multiplies))


def _rounds(problem: Problem, view: View, tile: RegisterTile) -> bool:
    """Whether sums of halves go from registers to P, and nowhere else."""
    return view.k <= HALF_DEPTH and view.n * 4 >= tile.vector_bytes and not problem.accumulate


def suits(problem: Problem, view: View, tile: RegisterTile) -> str:
    if problem.halves and problem.semiring.multiplies:
        if view.n < SHALLOW_COLUMNS:
            return ""
        if _rounds(problem, view, tile):
            return f"{view.k} of k: P is the cost, and is rounded and written along its rows"
        return f"{view.m} rows: N is read along its rows, and widened as it is loaded" if view.m <= HALVES else ""
    lanes = tile.vector_bytes // problem.algebra.partial.itemsize
    if view.m <= (PAIRED_ROWS if problem.as_pairs else 1 if tile.neon and problem.semiring.multiplies else ROWS):
        thin = view.k >= TALL_K and view.n * problem.dtype.itemsize <= THIN_ROW  # by `unpacked`
        if problem.as_pairs:  # by `dots`
            thin = view.m > 1 and view.n <= FEW_PAIRED and view.m_along_k
        if view.n >= lanes and not thin and not is_dot(view) and (problem.semiring.multiplies or not tile.neon):
            return f"{view.m} rows: N is read along its rows where it lies, and nothing is packed"
    if problem.as_pairs and view.k <= PAIRED_DEPTH and not tile.neon:
        return f"{view.k} of k: P is the cost, and is written along its rows"
    if problem.dtype.itemsize < 4 or is_short(problem) or not tile.neon or problem.as_pairs:
        return ""
    quiet, port = problem.signals, broadcast_costs(problem, tile)
    depth, rows, columns = QUIET if quiet else PORT if port else LANE
    if view.k <= depth and view.n >= SHALLOW_COLUMNS:
        return f"{view.k} of k: P is the cost, and is written along its rows"
    some = port and not quiet and max(view.m, view.k) <= SOME and view.n >= SHALLOW_COLUMNS
    if some or (view.m <= rows and view.n >= columns):
        return f"{view.m} rows: N is read along its rows where it lies, and nothing is packed"
    return ""


def tasks(a: Arithmetic, cut: Blocking, x: Extents) -> Tasks:
    """Of halves each task has room for a few rows of sums, or of N, where tiles round their sums."""
    count, each = far_stretches(x, a.bytes, DEPTH) if a.same_storage and x.m <= SKINNY else (1, x.k)
    apart = a.same_storage and (count > 1 or not x.rows_of_P)
    sums = x.members * count * x.m * x.n * a.bytes if apart else 0
    if (x.m <= SKINNY and not a.same_storage) or (x.m < x.n and x.m < x.workers * a.MR):
        made = columns_apart(a, x, 0, 2, count, each, sums)
    else:
        made = rows_apart(a, x, 0, 0, count, each, sums)
    if a.same_storage:
        return made
    rows = max(x.m if x.m <= SKINNY else 0, x.k if x.k <= HALF_DEPTH else 0)
    return made._replace(each=pages(rows * made.task_n * a.bytes))
