"""`dots`: any number of columns, M's rows contiguous along k; for few columns and a long k. N and P have any strides,
and so may M where P is one cell."""

from __future__ import annotations

from tilewise.backends.cpu.family import PERIOD, View, is_dot, is_x86_sum, light_or_halves
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.convert import HALVES as HALF_DTYPES
from tilewise.backends.cpu.kernels.shared.tasks import Extents, Tasks, pages, split_k_contiguous, split_rows
from tilewise.core.blocking import SKINNY, TALL_K, Blocking, RegisterTile, broadcast_costs, is_short
from tilewise.core.problem import Problem

IDEA = "a column or a few; dot products along k"
# cells of P for which M and N are read again for each, where no tile applies: with N contiguous along k, or more than
# one row; and one row with a strided N (1x10^6x8 complex64 took 1.15 times as long with `packed`, 1x10^6x3 a third)
CELLS, CELLS_APART = 9, 4
PAIRED, PAIRS = 8, 4  # complex: most columns, least vectors of k (66x458x7 took 1.8 times as long with `packed`)
# complex: rows of a P without contiguous rows (806486x2x2 complex64, column-major: 2.0 times as long with `packed`);
# bytes of more columns than rows that are copied first (966x511x8 complex64, both column-major: 2.6 times as long as
# packed)
FEW_PAIRED, COPIED_PAIRED = 4, 2**17
NEAR_PAIRED = 2**21  # bytes of N's columns that many rows may read again (8x47202x64, column-major: 2.4 times as long)
HALVES = 8  # most columns of half precision: M's rows are widened again for every tile of columns
NEON_HALVES = 5  # on NEON, where `packed_n` widens M's rows once
# most columns of half precision on AVX-512, from this many vectors of k, which amortise the horizontal sums
MORE, LONGER = 12, 24
LONG = 4  # vectors of k from which horizontal sums cost little
ROWS = 256  # rows from which more columns pay: other kernels read such an M element by element from L2
# by bytes of a vector and of an element: (most columns, least vectors of k, most bytes of N); float32 only if k is
# whole vectors (284 of k and 12 columns took half as long again with `unpacked`)
WIDER = {(64, 4): ((12, 8, 2**15), (16, 16, 3 * 2**13)), (64, 8): ((6, 16, 3 * 2**13),), (32, 4): ((6, 16, 2**16),)}
NEON_COLUMNS, NEON_LONG = 3, 24  # most columns on NEON, and least k, for floats and other semirings
# NEON, by the bytes of a float: columns that would leave lanes of other tiles idle; least k; most bytes of N, which fit
# L1 (2000x300x6 float32 took 1.13 times as long with `few_columns`, 600x500x9 likewise)
UNEVEN, UNEVEN_LONG, UNEVEN_NEAR = {4: (5, 6, 9), 8: (7,)}, 128, 2**16
FAR, FAR_M = {4: (4,), 8: (4, 8)}, 3 * 2**20  # columns, where M has this many bytes: few long streams of M are faster
# columns where M's rows map to the same sets of L1; other kernels read eight rows at a time: 4096 rows of 4096 float64
# and 16 columns took 1.21 times as long with `packed_n`, 1500 and 8 columns 1.50 times
COLLIDING = {4: range(13, 17), 8: range(7, 25)}
# NEON, semirings other than plus_times: most columns where a broadcast takes a port, where also every load quiets
# signalling NaN, and elsewhere; VECTORS: least vectors of k for one or two vectors of columns, and for more
PORT, QUIET, MULTIPLIED = 48, 12, 32
VECTORS = 8, 16
NEAR = 2**18  # bytes of N's columns, contiguous along k, that stay in L2


# k up to which rows are summed element by element, and the same in vectors where many rows are summed together
SHORT, SHORT_VECTORS = 8, 2
SHORTER = 6  # complex: k from which, up to SHORT, summing element by element takes longer than packing
# AVX-512: least rows of a short k; columns, and twice as many with the shortest, or three and six times with a k of
# four or two, of which whole vectors are loaded (20x2x29769 float64, N column-major, took 1.9 times as long packed)
MANY_ROWS, TOGETHER = 32, 4
FEW_ROWS, FEW_CELLS = 128, 512  # rows and cells up to which horizontal sums cost less than packing columns


def takes(problem: Problem, view: View, tile: RegisterTile) -> bool:
    return (view.m_along_k or is_dot(view)) and not problem.return_arg


def by_vectors(a: Arithmetic) -> bool:
    """Whether rows of a short k are loaded under masks, and as many as a vector has lanes are summed together."""
    return a.same_storage and a.target.masks and not a.heavy


def shortest(a: Arithmetic) -> int:
    """k up to which rows are short."""
    return SHORT_VECTORS * a.lanes if by_vectors(a) else SHORT


def in_pairs(a: Arithmetic) -> bool:
    """Whether complex numbers are multiplied in place, as pairs of real ones."""
    return a.parts == 2 and a.fused and a.source_m == a.source_n == a.partial


def tiled(a: Arithmetic) -> bool:
    """Whether it is computed by tiles of several rows and columns: light steps on whole vectors."""
    return (a.same_storage or widens(a) or in_pairs(a)) and not a.heavy


def widens(a: Arithmetic) -> bool:
    """Whether N's columns are copied as float32, for tiles of half precision."""
    half = a.source_m == a.source_n and a.source_m.name in HALF_DTYPES and a.partial.name == "float32"
    return half and not a.heavy


def suits(problem: Problem, view: View, tile: RegisterTile) -> str:
    if is_dot(view):
        return "one cell of P: a dot product reads M and N once, by whole vectors"
    if view.n == 1 and view.m > 1:
        return "one column, and M's rows are contiguous along k: dot products read M once"
    paired = problem.as_pairs and 1 < view.n <= PAIRED and view.m > 1 and _vectors(problem, view, tile) >= PAIRS
    if paired and (view.m <= PAIRED or view.k * view.n * problem.dtype.itemsize <= NEAR_PAIRED):
        return f"{view.n} columns of complex numbers: dot products along k read them in place"
    if problem.as_pairs and not tile.neon and _few_pairs(problem, view, tile):
        return f"{view.m} rows and {view.n} columns of complex numbers: dot products along k read them in place"
    if not light_or_halves(problem):
        most = CELLS if view.n_along_k or view.m > 1 else CELLS_APART
        few_cells = view.k >= TALL_K and view.m * view.n <= most
        return f"{view.m * view.n} cells of P: a dot product for each costs less than packing" if few_cells else ""
    if problem.light and view.n_along_k and view.k >= TALL_K and max(view.m, view.n) <= SKINNY:
        return (
            f"{view.m} rows and {view.n} columns, contiguous along a long k: packing would cost more than dot products"
        )
    lanes = tile.vector_bytes // problem.algebra.partial.itemsize
    on_avx512 = is_x86_sum(problem, tile)
    if on_avx512 and few_of_a_long_k(problem, view):
        return ""
    if on_avx512 and _few_apart(problem, view, lanes):
        return f"{view.n} columns, and rows of N or P are not contiguous: packing would cost more than dot products"
    if on_avx512 and _short(view, lanes):
        return f"{view.n} columns of {view.k} k: a vector of rows is summed together"
    few = _few(problem, view, tile, lanes)
    # else copying N's columns is the cost, or `unpacked` takes it
    reads = view.n_along_k or view.m > (SKINNY if on_avx512 and not view.p_along_n else lanes // 2 - 1)
    if 1 < view.n <= few and view.m > 1 and reads and view.k >= LONG * lanes:
        return f"{view.n} columns: dot products along k use whole vectors"
    if (
        tile.neon
        and view.m > SKINNY
        and problem.dtype.kind == "f"
        and problem.semiring.multiplies
        and _reads_best(problem, view)
    ):
        return f"{view.n} columns: dot products along k read M in few streams, and use all lanes"
    if tile.neon and view.m > SKINNY and 1 < view.n <= _without_broadcasts(problem, view, tile, lanes):
        return f"{view.n} columns: dot products along k need no broadcasts"
    return ""


def _few_apart(problem: Problem, view: View, lanes: int) -> bool:
    """AVX-512: whether columns are so few, and k so long, that packing takes longer, where N's or P's rows are strided
    and tiles cannot read and write them (9x514x109 float32, N column-major, took 3.4 times as long with `packed`).
    Columns that L2 does not hold are read again for each few rows, unless k is cut, as for a few rows it is."""
    if (view.n_along_n and view.p_along_n) or view.m == 1 or view.n == 1:
        return False
    if view.k * view.n * problem.dtype.itemsize > NEAR:
        return view.n_along_k and view.m <= SKINNY and view.n <= 6 * SKINNY
    if view.n > min(view.m, SKINNY) or not (view.n_along_k or view.m > SKINNY):
        return False
    if view.p_along_n and view.m > FEW_ROWS and view.n * problem.dtype.itemsize > 32:  # `few_columns` takes it
        return False
    if view.m * view.n <= FEW_CELLS and view.k > SHORT_VECTORS * lanes:
        return True
    return view.k >= (16 if view.n <= 4 else 64 if view.n <= 8 else 128 if view.n_along_k else 512)


def few_of_a_long_k(problem: Problem, view: View) -> bool:
    """AVX-512: whether Pᵀ is better made of dot products than P of rows: few columns, contiguous along a k whose
    columns L2 does not hold (34x9720x11 float32 took 2.2 times as long with `few_columns`)."""
    if not (view.m_along_k and view.n_along_k and SKINNY < view.m <= 6 * SKINNY):
        return False
    row = view.n * problem.dtype.itemsize
    return row <= 64 and view.k * row > NEAR


def _short(view: View, lanes: int) -> bool:
    """AVX-512: whether a vector of rows with a short k are best summed together: two columns, or several of a P that is
    contiguous along its columns (4x2x10000 float64, column-major, took 3.6 times as long with `packed`)."""
    if view.m < MANY_ROWS:
        return False
    if view.p_along_n:
        return view.n == 2 and view.k >= SHORT
    few = view.n <= TOGETHER or (view.n <= 2 * TOGETHER and view.k <= lanes // TOGETHER)
    few |= (view.n <= 6 * TOGETHER and view.k == 2) or (view.n <= 3 * TOGETHER and view.k == 4)
    return view.n > 1 and few and view.k <= SHORT_VECTORS * lanes


def _few_pairs(problem: Problem, view: View, tile: RegisterTile) -> bool:
    """Whether packing complex operands would cost more than horizontal sums: few rows or columns."""
    least, vectors = min(view.m, view.n), _vectors(problem, view, tile)
    if least == 1 or (view.n_along_n and view.p_along_n):
        return False
    # columns are read again for every few rows: the fewer the better
    far = view.n_along_k or view.k * view.n * problem.dtype.itemsize > COPIED_PAIRED
    if view.m < view.n and far:
        return False
    if view.k <= SHORT:  # multiplied element by element
        return least == 2 and view.k <= SHORTER
    return least <= (PAIRED if vectors >= PAIRED else FEW_PAIRED)


def _vectors(problem: Problem, view: View, tile: RegisterTile) -> int:
    """Whole vectors along k."""
    return view.k * problem.algebra.partial.itemsize // tile.vector_bytes


def _reads_best(problem: Problem, view: View) -> bool:
    """NEON: whether a few rows of M at a time, by whole vectors, are better than eight, for few columns."""
    size = problem.dtype.itemsize
    if size < 4 or view.k < UNEVEN_LONG:
        return False
    if view.n in UNEVEN[size] and view.k * view.n * size <= UNEVEN_NEAR:
        return True
    if view.n in FAR[size] and view.m * view.k * size >= FAR_M:
        return True
    stride = size * (problem.layout_n.col if view.swapped else problem.layout_m.row)
    return stride != 0 and stride % PERIOD == 0 and view.n in COLLIDING[size]


def _without_broadcasts(problem: Problem, view: View, tile: RegisterTile, lanes: int) -> int:
    """NEON: most columns for which dot products, which need no broadcasts, are faster; multiply by lane needs none
    either."""
    if problem.halves or problem.semiring.multiplies or problem.dtype.itemsize < 4 or is_short(problem):
        return 0
    vectors = VECTORS[0] if view.n <= 2 * lanes else VECTORS[1]
    if view.k < vectors * lanes or view.k * view.n * problem.dtype.itemsize > NEAR:
        return 0
    most = PORT if broadcast_costs(problem, tile) else MULTIPLIED
    return QUIET * lanes // 4 if problem.signals else most


def _few(problem: Problem, view: View, tile: RegisterTile, lanes: int) -> int:
    """Most columns for which whole vectors along k are worth the horizontal sums."""
    if problem.halves:
        long = tile.vector_bytes == 64 and view.m > SKINNY and view.k >= LONGER * lanes
        if tile.neon and problem.semiring.multiplies:
            return NEON_HALVES
        return MORE if long else HALVES if tile.registers >= 32 else HALVES * 3 // 4
    few, size = min(lanes // 2, SKINNY), problem.dtype.itemsize
    if (
        tile.neon
        and size >= 4
        and view.k >= NEON_LONG
        and (problem.dtype.kind == "f" or not problem.semiring.multiplies)
    ):
        return NEON_COLUMNS
    whole = size == 8 or view.k % lanes == 0
    if view.m >= ROWS and whole and problem.dtype.kind == "f" and problem.semiring.multiplies:
        for columns, vectors, near in WIDER.get((tile.vector_bytes, size), ()):
            if view.k >= vectors * lanes and view.k * view.n * size <= near:
                few = max(few, columns)
    return few


def tasks(a: Arithmetic, cut: Blocking, x: Extents) -> Tasks:
    count, depth, one = 1, x.k, x.m * x.n == 1
    if x.m <= SKINNY and (one or not widens(a)):  # tiles of half precision round their sums
        count, depth = split_k_contiguous(x, x.m * a.source_m.itemsize + x.n * a.source_n.itemsize)
    if one and count == 1:
        each = -(-x.members // (4 * x.workers))
        return Tasks(-(-x.members // each), task_m=each)
    alone = one if tiled(a) else x.m == 1
    copied = 0 if alone or x.k <= shortest(a) or (x.column_of_N and not widens(a)) else x.n * depth
    packed = copied * (a.bytes if widens(a) else a.source_n.itemsize)
    if count == 1:  # rows that are summed together have another order of sums than a single row
        return split_rows(a, x, packed, a.lanes if by_vectors(a) and x.k <= shortest(a) else 0, 1, x.k)
    sums = x.members * count * x.m * x.n * a.parts * a.bytes
    return Tasks(x.members * count, 1, 1, count, x.m, x.n, depth, pages(packed), sums)
