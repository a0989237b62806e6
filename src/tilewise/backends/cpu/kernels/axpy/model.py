"""`axpy`: contiguous rows of N, M with any strides, and P too where it has few rows; for few rows, and on NEON for a
shallow k."""

from __future__ import annotations

from tilewise.backends.cpu.family import View, is_dot, is_x86_sum
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.tasks import Extents, Tasks, pages, split_columns, split_k_far_n, split_rows
from tilewise.core.blocking import SKINNY, TALL_K, THIN_ROW, Blocking, RegisterTile, broadcast_costs, is_short
from tilewise.core.problem import Problem

IDEA = "a few rows of N at a time, walked along their columns, onto rows of P"
# Measured on one core of a Neoverse-N1 over 4,171 random products. k up to which axpy is the fastest for any M, from
# SHALLOW_COLUMNS columns on; rows up to which it is for any k; and the columns from which
PORT = 24, 26, 32  # where a broadcast takes a vector port
QUIET = 12, 26, 32  # the same, and every vector of N must be quieted
LANE = 6, 16, 64  # where a step multiplies by one lane of a vector
SHALLOW_COLUMNS = 16
HALVES = 4  # rows of half precision: each vector of N is widened once for all of them
HALF_DEPTH = 12  # k of half precision that fits registers, so that tiles round their sums and write P directly
DEPTH = 8  # k splits are multiples of it
SOME = 64  # most rows and k of a small product, where a broadcast takes a port


# x86: rows up to which it is the fastest for any k, of real (4x300x300 float32 took 1.4 times as long with `unpacked`)
# and of complex numbers; FEW_PAIRED: columns
ROWS, PAIRED_ROWS, FEW_PAIRED = 2, (4, 8), 8
NARROW = 2  # vectors of complex columns whose sums are in registers (1000x6x4 complex128 took 3.8 times as long packed)
# complex: least k, and most bytes of a row, of an N that is better read by columns (8x3353x168 complex64 took 2.2 times
# as long)
FAR_PAIRED, SHORT_PAIRED = 512, 2**11
# vectors of k from which `dots` is better for two complex columns, and for FEW_DOTTED of complex64 (300x1000x3 took 1.8
# times as long)
LONG, FEW_DOTTED = 8, 6
# vectors of columns, and bytes of N, up to which `unpacked` is better for one row or two (AVX-512: 2x800x64 float32 1.5
# times)
FEW_VECTORS, NEAR_N = 8, 2**20
FAR_N = 6 * 2**20  # bytes of a complex N of a long k that up to eight rows, and of any k that five, read as a stream
COLUMNS_FAR, NEAR_M = 64, 2**20  # columns of M, and its bytes, of a column-major M beyond L2


def takes(problem: Problem, view: View, tile: RegisterTile) -> bool:
    """NEON multiplies a float by one lane of a vector, and tiles reuse those vectors more than one row does; half
    precision: a few rows, or any where tiles round their sums."""
    if not view.n_along_n or not (view.p_along_n or (problem.light and view.m <= SKINNY)):
        return False
    if problem.halves:
        return tile.neon and problem.semiring.multiplies and (view.m <= SKINNY or _rounds(problem, view, tile))
    return problem.as_pairs or (problem.light and (not tile.neon or view.m == 1 or not problem.semiring.multiplies))


def _rounds(problem: Problem, view: View, tile: RegisterTile) -> bool:
    """Whether sums of half precision go from registers to P directly."""
    return view.k <= HALF_DEPTH and view.n * 4 >= tile.vector_bytes and not problem.accumulate


def suits(problem: Problem, view: View, tile: RegisterTile) -> str:
    if problem.halves and problem.semiring.multiplies:
        if view.n < SHALLOW_COLUMNS:
            return ""
        if _rounds(problem, view, tile):
            return f"{view.k} of k: P is the cost, and is rounded and written along its rows"
        return f"{view.m} rows: N is read along its rows, and widened as it is loaded" if view.m <= HALVES else ""
    lanes = tile.vector_bytes // problem.algebra.partial.itemsize
    if problem.as_pairs and _narrow(problem, view, tile, lanes):
        return f"{view.n} columns of complex numbers: the sums of a few rows are in registers, and nothing is packed"
    rows = 1 if tile.neon and problem.semiring.multiplies else ROWS
    if problem.as_pairs:
        far = (view.k >= FAR_PAIRED or view.m == 5) and view.k * view.n * problem.dtype.itemsize > FAR_N
        rows = PAIRED_ROWS[tile.neon or far]
    if view.m <= rows:
        thin = view.k >= TALL_K and view.n * problem.dtype.itemsize <= THIN_ROW  # `unpacked` takes it
        if problem.as_pairs:  # `dots` takes it, and `unpacked` short rows of a long N
            thin = view.m > 1 and view.n <= FEW_PAIRED and view.m_along_k
            thin |= view.m > 2 and view.k >= FAR_PAIRED and view.n * problem.dtype.itemsize <= SHORT_PAIRED
        if _in_one_tile(problem, view, tile):
            return ""
        if view.n >= lanes and not thin and not is_dot(view) and (problem.semiring.multiplies or not tile.neon):
            return f"{view.m} rows: N is read in place, along its rows, and nothing is packed"
    if problem.dtype.itemsize < 4 or is_short(problem) or not tile.neon or problem.as_pairs:
        return ""
    quiet, port = problem.signals, broadcast_costs(problem, tile)
    depth, rows, columns = QUIET if quiet else PORT if port else LANE
    if view.k <= depth and view.n >= SHALLOW_COLUMNS:
        return f"{view.k} of k: P is the cost, and is written along its rows"
    some = port and not quiet and max(view.m, view.k) <= SOME and view.n >= SHALLOW_COLUMNS
    if some or (view.m <= rows and view.n >= columns):
        return f"{view.m} rows: N is read in place, along its rows, and nothing is packed"
    return ""


def _in_one_tile(problem: Problem, view: View, tile: RegisterTile) -> bool:
    """Whether `unpacked` sums a few vectors of columns in registers, where a near N may be read by columns."""
    row = view.n * problem.dtype.itemsize
    return is_x86_sum(problem, tile) and row <= FEW_VECTORS * tile.vector_bytes and view.k * row <= NEAR_N


def _narrow(problem: Problem, view: View, tile: RegisterTile, lanes: int) -> bool:
    """Whether complex columns fill no more than two vectors. `dots` is better for a few columns with a long k, and
    `packed` for a column-major M in memory: a row uses one element of every 64 bytes."""
    if tile.neon or tile.vector_bytes < 32 or view.n > NARROW * lanes or is_dot(view):
        return False
    if view.m_along_k:
        few = FEW_DOTTED if problem.dtype.itemsize == 8 else 2
        return view.n > few or (view.n > 1 and view.k < LONG * lanes)
    near = view.m * view.k * problem.dtype.itemsize <= NEAR_M
    return near or view.k <= COLUMNS_FAR or view.m <= PAIRED_ROWS[1]


def tasks(a: Arithmetic, cut: Blocking, x: Extents) -> Tasks:
    """Half precision: each task has workspace for a few rows of sums, or of N where tiles round their sums."""
    count, each = split_k_far_n(x, a.bytes, DEPTH) if a.same_storage and x.m <= SKINNY else (1, x.k)
    separate = a.same_storage and (count > 1 or not x.rows_of_P)
    sums = x.members * count * x.m * x.n * a.bytes if separate else 0
    if (x.m <= SKINNY and not a.same_storage) or (x.m < x.n and x.m < x.workers * a.MR):
        made = split_columns(a, x, 0, 2, count, each, sums)
    else:
        made = split_rows(a, x, 0, 0, count, each, sums)
    if a.same_storage:
        return made
    rows = max(x.m if x.m <= SKINNY else 0, x.k if x.k <= HALF_DEPTH else 0)
    return made._replace(each=pages(rows * made.task_n * a.bytes))
