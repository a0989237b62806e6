"""`unpacked`: rows of N side by side, M with any strides, and P too where it has few rows; for what lies in the caches,
or has few rows."""

from __future__ import annotations

import math

from tilewise.backends.cpu.family import View, rows_collide, whole_pages_apart
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.tasks import Extents, Tasks, columns_apart, rows_apart, short_stretches
from tilewise.core.blocking import SKINNY, TALL_K, THIN_ROW, Blocking, RegisterTile, broadcast_costs, is_short
from tilewise.core.problem import Problem

IDEA = "everything lies in the caches; M and N are read where they lie"
STEPS = 2**23  # times bytes, up to which packing costs more than it brings: 128³ in float32
PANELS = 6  # of M's rows, up to which a packed N is read too seldom
SECOND_CACHE = 2**20  # bytes that it holds of each operand
FAR_N = 2**20  # bytes of N that a few rows wait for, where it is not prefetched; one tile of rows waits for more
DEPTH = 512  # of a strip of k
P_NEAR = 2**19  # bytes of P up to which it may be written in any order; beyond, along its rows
N_NEAR = 2**15  # bytes of N that stay in the first cache while P is written along its rows
COLUMNS = 16  # vectors of them from which packing a handful of rows pays, where nothing is multiplied and added (NEON)
PACKED = 32, 8  # columns and k from which packing M and N pays, where an element in every lane takes a port
PACKED_QUIET = 24, 4  # and where every load would have to make signalling NaN quiet too
PACKED_ROWS = 8  # of M, from which packing N pays where its rows collide (NEON)
SHALLOW = 32  # k up to which P is the cost, and M and N are read where they lie
# on NEON, whose second cache has a megabyte: bytes of N up to which one row, a few, and some find it near
NEON_ONE, NEON_FEW, NEON_SOME = 3 * 2**17, 11 * 2**16, 5 * 2**16
WORTH_PACKING = 2**16  # steps
SHALLOWEST, WIDE_P, WIDE_ROW = 6, 2**18, 1200  # k; bytes of P, and of a row of it, of which that is so with more k
NEON_SHALLOW = 16  # there, where the first cache does not hold N: it is read again for every tile of rows
NEON_WIDTH = 5  # vectors of a tile that is as wide as P, so that M is read once
FEWEST = 4  # rows that read N once, wherever it lies, where no other family makes a P whose rows lie apart
P_APART = 8  # k from which a P whose rows are not side by side is made apart and then written
NEON_DEEP = 384  # k of float64 up to which that is the faster: 600x500x9 took 1.08 times as long as by `packed_n`


def takes(problem: Problem, view: View, tile: RegisterTile) -> bool:
    return problem.light and view.n_along_n and (view.p_along_n or view.m <= SKINNY)


def suits(problem: Problem, view: View, tile: RegisterTile) -> str:
    if view.m <= FEWEST and not (view.p_along_n or tile.neon):
        return f"{view.m} rows of a P that lies apart: N is read once where it lies"
    if _better_packed(problem, view, tile) or not (view.p_along_n or view.k >= P_APART):
        return ""
    size = problem.dtype.itemsize
    m, k, n = view.m * size, view.k * size, view.n * size
    if _thin(problem, view, tile):
        return f"{view.m} rows and {view.n} columns of a long k: M and N are read once where they lie"
    neon = tile.neon and problem.dtype.kind == "f" and problem.semiring.multiplies
    if neon and _writes_more_than_it_reads(view, n):
        return ""
    shallow = NEON_SHALLOW if neon and view.k * n > 2 * N_NEAR else SHALLOW
    if view.k <= shallow and view.k * n <= SECOND_CACHE:
        return "P is the cost, and is written once along its rows"
    if neon:
        return _on_neon(problem, view, tile)
    if view.m * n > SECOND_CACHE or view.m * k > SECOND_CACHE or view.k * n > 2 * SECOND_CACHE:
        return ""
    if view.k * n == 2 * SECOND_CACHE and view.m > SKINNY and _floats_fall_together(problem, view, tile):
        return ""
    far = view.k * n > (FAR_N if view.m > tile.MR else FAR_N * 5 // 4)
    if 3 < view.m <= SKINNY and far and view.n >= 4 * tile.NR and not tile.neon:
        return ""  # `few_rows` prefetches N
    few = view.m <= PANELS * tile.MR
    return "little enough for N to be read where it lies" if few or m * view.k * view.n <= STEPS else ""


def _thin(problem: Problem, view: View, tile: RegisterTile) -> bool:
    """Whether P is small and k long, so that M and N are read once and nothing is left to be packed for. One row of a
    few columns goes by `few_rows` on NEON, which prefetches rows of N (1x10^5x16 of float32 2.7 times as fast)."""
    one_row = tile.neon and view.m == 1 and view.n > 3 and problem.dtype.kind == "f" and problem.semiring.multiplies
    return view.k >= TALL_K and view.m <= SKINNY and view.n * problem.dtype.itemsize <= THIN_ROW and not one_row


def _writes_more_than_it_reads(view: View, n: int) -> bool:
    """On NEON, of `n` bytes a row of P: whether P is the cost and large, so that `packed_n`'s tiles, each of which
    prefetches its cells of P, are the faster (155x10x1243 of float32 1.17 times, 987x14x2174 of float64
    1.44 times; 73x14x161 0.96 times)."""
    wide = view.m * n >= WIDE_P and n >= WIDE_ROW
    shallow = 1 < view.k <= SHALLOWEST or (wide and view.k <= SHALLOW)
    return shallow and min(view.m, view.n) > SKINNY and view.m_along_k and view.m * view.k * view.n >= WORTH_PACKING


def _floats_fall_together(problem: Problem, view: View, tile: RegisterTile) -> bool:
    """512² and 256x1024 of float64, 512x1024 of float32: 17 to 48 rows took 1.08 to 1.67 times as long as packed, where
    widths 16 wider took no longer; an N of half the size (256x512 of float64) loses nothing."""
    return problem.dtype.kind == "f" and problem.semiring.multiplies and whole_pages_apart(problem, view, tile)


def _on_neon(problem: Problem, view: View, tile: RegisterTile) -> str:
    """By bytes of N: without masks and with short vectors, reading it by columns from afar costs more than packing."""
    size = problem.dtype.itemsize
    m, bytes_n = view.m, view.k * view.n * size
    if m >= PACKED_ROWS and rows_collide(problem, view, tile):
        return ""
    deep = size == 8 and view.k > NEON_DEEP
    if tile.NR < view.n <= NEON_WIDTH * tile.vector_bytes // size and m > SKINNY and not deep:
        return "a tile is as wide as P, and M is read once where it lies"
    near = NEON_ONE if m == 1 else NEON_FEW if m <= SKINNY else NEON_SOME if m <= PANELS * tile.MR else STEPS // m
    return "little enough for N to be read where it lies" if bytes_n <= near else ""


def _better_packed(problem: Problem, view: View, tile: RegisterTile) -> bool:
    """On NEON: a handful of rows by `few_rows`, more by `packed`; both repeat M's elements once for many columns."""
    if not tile.neon or problem.semiring.multiplies or problem.dtype.itemsize < 4 or is_short(problem):
        return False
    if view.m <= SKINNY:
        return view.m > 2 and view.n * problem.dtype.itemsize >= COLUMNS * tile.vector_bytes
    columns, depth = PACKED_QUIET if problem.signals else PACKED
    return broadcast_costs(problem, tile) and view.n >= columns and view.k >= depth


def KC(problem: Problem) -> int:
    """Strips of k alike, near DEPTH."""
    return math.ceil(problem.k / max(1, round(problem.k / DEPTH)))


def tasks(a: Arithmetic, cut: Blocking, x: Extents) -> Tasks:
    """Stretches of a long k where P is small. Else rows or columns of P, whichever are more; where P is the cost rows,
    as long as there are enough: columns would be written in pieces, and what lies between them is another worker's (two
    threads took up to 2.5 times as long)."""
    if x.k >= TALL_K and x.m <= SKINNY and x.n * a.bytes <= THIN_ROW:
        count, each = short_stretches(x, (x.m + x.n) * a.bytes)
        if count > 1:
            sums = x.members * count * x.m * x.n * a.bytes
            return Tasks(x.members * count, tasks_k=count, task_m=x.m, task_n=x.n, task_k=each, sums=sums)
    sums = 0 if x.rows_of_P else x.members * x.m * x.n * a.bytes
    if x.m < x.n and (x.k > SHALLOW or x.m < x.workers * a.MR):
        return columns_apart(a, x, 0, 2, 1, x.k, sums)
    return rows_apart(a, x, 0, 0, 1, x.k, sums)
