"""`unpacked`: contiguous rows of N, M with any strides, and P too where it has few rows; for operands in cache, or few
rows."""

from __future__ import annotations

import math

from tilewise.backends.cpu.family import View, is_x86_sum, rows_alias_4k, rows_collide
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.tasks import Extents, Tasks, split_columns, split_k_contiguous, split_rows
from tilewise.core.blocking import SKINNY, TALL_K, THIN_ROW, Blocking, RegisterTile, broadcast_costs, is_short
from tilewise.core.problem import Problem

IDEA = "everything fits the caches; M and N are read in place"
STEPS = 2**23  # steps × bytes of an element up to which packing does not pay: 128³ in float32
PANELS = 6  # panels of M up to which packed N would be read too few times
SECOND_CACHE = 2**20  # most bytes of each operand in L2
FAR_N = 2**20  # bytes of N from which a few rows need its prefetching; more for one tile of rows
DEPTH = 512  # KC
P_NEAR = 2**19  # bytes of P up to which the order of its stores does not matter; beyond, it is written along its rows
N_NEAR = 2**15  # bytes of N that stay in L1 while P is written along its rows
COLUMNS = 16  # vectors of columns from which packing a handful of rows pays for semirings other than plus_times (NEON)
PACKED = 32, 8  # columns and k from which packing M and N pays, where a broadcast takes a port
PACKED_QUIET = 24, 4  # the same where every load would also quiet signalling NaN
PACKED_ROWS = 8  # rows from which packing N pays where its rows collide in L1 (NEON)
SHALLOW = 32  # k up to which writing P is the cost, and M and N are read in place
# NEON, with an L2 of 1 MB: most bytes of N for one row, a few, and some
NEON_ONE, NEON_FEW, NEON_SOME = 3 * 2**17, 11 * 2**16, 5 * 2**16
WORTH_PACKING = 2**16  # steps
# NEON: k up to which writing P is the cost; bytes of P and of its rows for which it is with more k
SHALLOWEST, WIDE_P, WIDE_ROW = 6, 2**18, 1200
NEON_SHALLOW = 16  # SHALLOW on NEON where N exceeds L1: it is read again for every tile of rows
NEON_WIDTH = 5  # most vectors of a tile that is as wide as P, so that M is read once
FEWEST = 4  # most rows for which N is read once from any memory, where no other family takes a P with strided rows
# AVX-512: rows from which `few_columns` is better for a vector of columns; least k, bytes of N and bytes of its rows,
# from which N is better read once
MANY, SHALLOWER, IN_L2, WIDE = 500, 4, 2**16, 2**13
PAIRED_ROWS, PAIRED_N = 8, 6 * 2**20  # most rows, and most bytes of N, of complex numbers
LOW = 30  # rows of a column-major M below which packing it and N takes longer (17x8x8463 float64 1.9 times as long)
NARROW = 2**10  # bytes of N's rows up to which a few rows are best multiplied in place, however many rows N has
# k from which a P without contiguous rows is summed in a buffer and then stored; the same for more rows (AVX-512)
P_APART, APART_DEEP = 8, 32
NEON_DEEP = 384  # k of float64 up to which such a tile is faster: 600x500x9 took 1.08 times as long as with `packed_n`


def takes(problem: Problem, view: View, tile: RegisterTile) -> bool:
    if problem.as_pairs:
        return not tile.neon and view.n_along_n and view.p_along_n
    return problem.light and view.n_along_n and (view.p_along_n or view.m <= SKINNY)


def suits(problem: Problem, view: View, tile: RegisterTile) -> str:
    if not (view.p_along_n or tile.neon) and (view.m <= FEWEST or sums_apart(problem, view, tile)):
        return f"{view.m} rows of a P with strided rows: N is read once in place"
    if _better_packed(problem, view, tile) or not (view.p_along_n or view.k >= P_APART):
        return ""
    size = problem.dtype.itemsize
    m, k, n = view.m * size, view.k * size, view.n * size
    if _thin(problem, view, tile):
        return f"{view.m} rows and {view.n} columns of a long k: M and N are read once in place"
    if is_x86_sum(problem, tile) and _reads_too_often(view, k, n, tile.vector_bytes):
        return ""
    neon = tile.neon and problem.dtype.kind == "f" and problem.semiring.multiplies
    if neon and _p_dominates(view, n):
        return ""
    shallow = NEON_SHALLOW if neon and view.k * n > 2 * N_NEAR else SHALLOW
    if problem.as_pairs and not view.m_along_k:
        shallow = SHALLOW // 2  # 480x26x537 complex64 took 1.7 times as long
    if view.k <= shallow and view.k * n <= SECOND_CACHE:
        return "P is the cost, and is written once along its rows"
    if neon:
        return _on_neon(problem, view, tile)
    if view.m <= SKINNY and n <= (2 * NARROW if problem.as_pairs else NARROW if is_x86_sum(problem, tile) else 0):
        return f"{view.m} rows, and N's are short: N is read once in place"
    if problem.as_pairs and view.m <= PAIRED_ROWS and view.k * n <= PAIRED_N:
        return f"{view.m} rows of complex numbers: N is read in place"
    if view.m * n > SECOND_CACHE or view.m * k > SECOND_CACHE or view.k * n > 2 * SECOND_CACHE:
        return ""
    if view.k * n == 2 * SECOND_CACHE and view.m > SKINNY and _rows_alias(problem, view, tile):
        return ""
    far = view.k * n > (FAR_N if view.m > tile.MR else FAR_N * 5 // 4)
    if 3 < view.m <= SKINNY and far and view.n >= 4 * tile.NR and not tile.neon:
        return ""  # `few_rows` prefetches N
    few = view.m <= PANELS * tile.MR
    return "N is small enough to be read in place" if few or m * view.k * view.n <= STEPS else ""


def _reads_too_often(view: View, k: int, n: int, vector: int) -> bool:
    """AVX-512, bytes of a row of M and of N: whether many rows are better read by tiles that are as wide as P
    (`few_columns`; 10000x3x4 float64 took 1.4 times as long here), or N is in L2 and read again for each tile of rows
    (`few_rows`: 4x8x10000 float64 2.4 times; or packed: 40x8x10000 1.4)."""
    if view.m >= MANY and n <= 2 * vector:
        return view.p_along_n and (view.m_along_k or view.k <= SHALLOW)
    if view.k < SHALLOWER or not view.p_along_n or (SKINNY < view.m < LOW and not view.m_along_k):
        return False
    return view.m > 2 and view.k * n >= (IN_L2 if view.m <= SKINNY else 8 * IN_L2) and n >= WIDE


def sums_apart(problem: Problem, view: View, tile: RegisterTile) -> bool:
    """AVX-512: whether some rows of a P without contiguous rows are summed in a buffer from an N of any size read in
    place: `packed` takes 1.5 to 4 times as long."""
    if view.p_along_n or view.m > SKINNY or not is_x86_sum(problem, tile):
        return False
    deep = APART_DEEP * (1 if view.m <= SKINNY // 2 else 4 if problem.dtype.itemsize == 4 else 16)
    return view.k >= deep


def _thin(problem: Problem, view: View, tile: RegisterTile) -> bool:
    """Whether P is small and k long: M and N are read once, and packing would not pay. One row of a few columns is left
    to `few_rows` on NEON, which prefetches rows of N (1x10^5x16 float32 2.7 times as fast)."""
    one_row = tile.neon and view.m == 1 and view.n > 3 and problem.dtype.kind == "f" and problem.semiring.multiplies
    return view.k >= TALL_K and view.m <= SKINNY and view.n * problem.dtype.itemsize <= THIN_ROW and not one_row


def _p_dominates(view: View, n: int) -> bool:
    """NEON, `n` bytes per row of P: whether writing a large P dominates, so that `packed_n`, whose tiles prefetch their
    cells of P, is faster (155x10x1243 float32 1.17 times, 987x14x2174 float64 1.44 times; 73x14x161 0.96 times)."""
    wide = view.m * n >= WIDE_P and n >= WIDE_ROW
    shallow = 1 < view.k <= SHALLOWEST or (wide and view.k <= SHALLOW)
    return shallow and min(view.m, view.n) > SKINNY and view.m_along_k and view.m * view.k * view.n >= WORTH_PACKING


def _rows_alias(problem: Problem, view: View, tile: RegisterTile) -> bool:
    """Whether rows of N alias in L1, for floats: with 512² and 256x1024 float64 and 512x1024 float32, 17 to 48 rows
    took 1.08 to 1.67 times as long as packed; widths 16 wider took no longer, and an N of half the size loses
    nothing."""
    return problem.dtype.kind == "f" and problem.semiring.multiplies and rows_alias_4k(problem, view, tile)


def _on_neon(problem: Problem, view: View, tile: RegisterTile) -> str:
    """NEON: by the bytes of N, because without masks and with short vectors reading it by columns from memory costs
    more than packing."""
    size = problem.dtype.itemsize
    m, bytes_n = view.m, view.k * view.n * size
    if m >= PACKED_ROWS and rows_collide(problem, view, tile):
        return ""
    deep = size == 8 and view.k > NEON_DEEP
    if tile.NR < view.n <= NEON_WIDTH * tile.vector_bytes // size and m > SKINNY and not deep:
        return "a tile is as wide as P, and M is read once in place"
    near = NEON_ONE if m == 1 else NEON_FEW if m <= SKINNY else NEON_SOME if m <= PANELS * tile.MR else STEPS // m
    return "N is small enough to be read in place" if bytes_n <= near else ""


def _better_packed(problem: Problem, view: View, tile: RegisterTile) -> bool:
    """NEON: whether `few_rows` (a handful of rows) or `packed` is better; both replicate M's elements once for many
    columns."""
    if not tile.neon or problem.semiring.multiplies or problem.dtype.itemsize < 4 or is_short(problem):
        return False
    if view.m <= SKINNY:
        return view.m > 2 and view.n * problem.dtype.itemsize >= COLUMNS * tile.vector_bytes
    columns, depth = PACKED_QUIET if problem.signals else PACKED
    return broadcast_costs(problem, tile) and view.n >= columns and view.k >= depth


def KC(problem: Problem) -> int:
    """Equal strips of k, near DEPTH."""
    return math.ceil(problem.k / max(1, round(problem.k / DEPTH)))


def tasks(a: Arithmetic, cut: Blocking, x: Extents) -> Tasks:
    """K splits of a long k where P is small. Else rows or columns of P, whichever are more; rows where writing P
    dominates and there are enough: columns would be written in pieces, and two threads took up to 2.5 times as long."""
    if x.k >= TALL_K and x.m <= SKINNY and x.n * a.bytes <= THIN_ROW and not a.ordered:
        count, each = split_k_contiguous(x, (x.m + x.n) * a.bytes)
        if count > 1:
            sums = x.members * count * x.m * x.n * a.bytes
            return Tasks(x.members * count, tasks_k=count, task_m=x.m, task_n=x.n, task_k=each, sums=sums)
    sums = 0 if x.rows_of_P else x.members * x.m * x.n * a.bytes
    if x.m < x.n and (x.k > SHALLOW or x.m < x.workers * a.MR):
        return split_columns(a, x, 0, 2, 1, x.k, sums)
    return split_rows(a, x, 0, 0, 1, x.k, sums)
