"""`dots`: any number of columns, and M's rows along k; for few, and a long k. N's columns and P's cells lie anyhow, and
so may M where P is one cell."""

from __future__ import annotations

from tilewise.backends.cpu.family import PERIOD, View, is_dot, light_or_halves
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.convert import HALVES as HALF_DTYPES
from tilewise.backends.cpu.kernels.shared.tasks import Extents, Tasks, pages, rows_apart, short_stretches
from tilewise.core.blocking import SKINNY, TALL_K, Blocking, RegisterTile, broadcast_costs, is_short
from tilewise.core.problem import Problem

IDEA = "a column or a few; dot products along k"
# cells of P up to which a long k of what no tile takes is read again for each; of one row, whose N is read as it lies,
# element by element (1x10^6x8 of complex64 took 1.15 times as long as by `packed`, 1x10^6x3 a third)
CELLS, CELLS_APART = 9, 4
PAIRED, PAIRS = (
    8,
    4,
)  # columns of complex numbers, from so many vectors of k (66x458x7 took 1.8 times as long by `packed`)
HALVES = 8  # columns of half precision: M's rows are widened for every tile of columns
NEON_HALVES = 5  # there, where M's rows are widened once by `packed_n`
MORE, LONGER = 12, 24  # columns of it, from so many vectors of k, which pay for adding across their lanes
LONG = 4  # vectors of k, from which adding across their lanes is little beside the rest
ROWS = 256  # from which more columns pay: other kernels read such an M, element by element, from the second cache
# by bytes of a vector and of a float: columns, from so many vectors of k, to so many bytes of N; of float32 where k is
# whole vectors (284 of k and 12 columns took half as long again as by `unpacked`)
WIDER = {(64, 4): ((12, 8, 2**15), (16, 16, 3 * 2**13)), (64, 8): ((6, 16, 3 * 2**13),), (32, 4): ((6, 16, 2**16),)}
NEON_COLUMNS, NEON_LONG = 3, 24  # columns on NEON, from so many k, of either float and of semirings
# there, of floats by their bytes: columns that would leave lanes of other tiles empty, from so many k, to so many bytes
# of N, which the first cache holds (2000x300x6 of float32 took 1.13 times as long by `few_columns`, 600x500x9 likewise)
UNEVEN, UNEVEN_LONG, UNEVEN_NEAR = {4: (5, 6, 9), 8: (7,)}, 128, 2**16
FAR, FAR_M = {4: (4,), 8: (4, 8)}, 3 * 2**20  # columns, where M has so many bytes: few streams of it come sooner
# columns where M's rows fall onto the same sets of a first cache, of which other kernels read eight at a time: 4096
# rows of 4096 float64 and 16 columns took 1.21 times as long by `packed_n`, 1500 and 8 columns 1.50 times
COLLIDING = {4: range(13, 17), 8: range(7, 25)}
# on NEON, where steps do not multiply and add: columns, by whether an element in every lane takes a port; fewer where
# every load makes signalling NaN quiet; from so many vectors of k, where columns are a vector or two and where more
PORT, QUIET, MULTIPLIED = 48, 12, 32
VECTORS = 8, 16
NEAR = 2**18  # bytes of N's columns, side by side along k, that the second cache keeps


# k that is short, where rows are added up element by element, and vectors of it where many are together
SHORT, SHORT_VECTORS = 8, 2


def takes(problem: Problem, view: View, tile: RegisterTile) -> bool:
    return (view.m_along_k or is_dot(view)) and not problem.return_arg


def by_vectors(a: Arithmetic) -> bool:
    """Whether rows of a short k are loaded under masks, and added up by as many as a vector has lanes."""
    return a.same_storage and a.target.masks and not a.heavy


def shortest(a: Arithmetic) -> int:
    """k that is short."""
    return SHORT_VECTORS * a.lanes if by_vectors(a) else SHORT


def in_pairs(a: Arithmetic) -> bool:
    """Complex numbers that are multiplied and added where they lie."""
    return a.parts == 2 and a.fused and a.source_m == a.source_n == a.partial


def tiled(a: Arithmetic) -> bool:
    """Whether tiles of several rows and columns are made of it: steps of a few instructions on whole vectors."""
    return (a.same_storage or widens(a) or in_pairs(a)) and not a.heavy


def widens(a: Arithmetic) -> bool:
    """Whether N's columns are copied in another dtype, for tiles of half precision."""
    half = a.source_m == a.source_n and a.source_m.name in HALF_DTYPES and a.partial.name == "float32"
    return half and not a.heavy


def suits(problem: Problem, view: View, tile: RegisterTile) -> str:
    if is_dot(view):
        return "one cell of P: a dot product reads M and N once, by whole vectors"
    if view.n == 1 and view.m > 1:
        return "one column, and M's rows lie along k: dot products read M once"
    if problem.as_pairs and 1 < view.n <= PAIRED and view.m > 1 and _vectors(problem, view, tile) >= PAIRS:
        return f"{view.n} columns of complex numbers: dot products along k read them where they lie"
    if not light_or_halves(problem):
        most = CELLS if view.n_along_k or view.m > 1 else CELLS_APART
        few_cells = view.k >= TALL_K and view.m * view.n <= most
        return f"{view.m * view.n} cells of P: a dot product for each costs less than packing" if few_cells else ""
    if problem.light and view.n_along_k and view.k >= TALL_K and max(view.m, view.n) <= SKINNY:
        return f"{view.m} rows and {view.n} columns that lie along a long k: packing would cost more than dot products"
    lanes = tile.vector_bytes // problem.algebra.partial.itemsize
    few = _few(problem, view, tile, lanes)
    reads = view.n_along_k or view.m >= lanes // 2  # else copying N's columns is the cost
    if 1 < view.n <= few and view.m > 1 and reads and view.k >= LONG * lanes:
        return f"{view.n} columns: dot products along k use whole vectors"
    if (
        tile.neon
        and view.m > SKINNY
        and problem.dtype.kind == "f"
        and problem.semiring.multiplies
        and _reads_best(problem, view)
    ):
        return f"{view.n} columns: dot products along k read M in few streams, and fill their lanes"
    if tile.neon and view.m > SKINNY and 1 < view.n <= _without_broadcasts(problem, view, tile, lanes):
        return f"{view.n} columns: dot products along k take no element into every lane"
    return ""


def _vectors(problem: Problem, view: View, tile: RegisterTile) -> int:
    """Whole vectors along k."""
    return view.k * problem.algebra.partial.itemsize // tile.vector_bytes


def _reads_best(problem: Problem, view: View) -> bool:
    """Whether a few rows of M at a time, whole vectors of each, are better than eight, where columns are few (NEON)."""
    size = problem.dtype.itemsize
    if size < 4 or view.k < UNEVEN_LONG:
        return False
    if view.n in UNEVEN[size] and view.k * view.n * size <= UNEVEN_NEAR:
        return True
    if view.n in FAR[size] and view.m * view.k * size >= FAR_M:
        return True
    apart = size * (problem.layout_n.col if view.swapped else problem.layout_m.row)
    return apart != 0 and apart % PERIOD == 0 and view.n in COLLIDING[size]


def _without_broadcasts(problem: Problem, view: View, tile: RegisterTile, lanes: int) -> int:
    """Columns up to which that is the faster, on NEON; its multiply-and-add needs no such thing."""
    if problem.halves or problem.semiring.multiplies or problem.dtype.itemsize < 4 or is_short(problem):
        return 0
    vectors = VECTORS[0] if view.n <= 2 * lanes else VECTORS[1]
    if view.k < vectors * lanes or view.k * view.n * problem.dtype.itemsize > NEAR:
        return 0
    most = PORT if broadcast_costs(problem, tile) else MULTIPLIED
    return QUIET * lanes // 4 if problem.signals else most


def _few(problem: Problem, view: View, tile: RegisterTile, lanes: int) -> int:
    """Columns up to which whole vectors along k are worth their sums across lanes."""
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
    if x.m <= SKINNY and (one or not widens(a)):  # tiles of halves leave no sums unrounded
        count, depth = short_stretches(x, x.m * a.source_m.itemsize + x.n * a.source_n.itemsize)
    if one and count == 1:
        each = -(-x.members // (4 * x.workers))
        return Tasks(-(-x.members // each), task_m=each)
    alone = one if tiled(a) else x.m == 1
    copied = 0 if alone or x.k <= shortest(a) or (x.column_of_N and not widens(a)) else x.n * depth
    packed = copied * (a.bytes if widens(a) else a.source_n.itemsize)
    if count == 1:  # rows that are added up by vectors take another order than one
        return rows_apart(a, x, packed, a.lanes if by_vectors(a) and x.k <= shortest(a) else 0, 1, x.k)
    sums = x.members * count * x.m * x.n * a.parts * a.bytes
    return Tasks(x.members * count, 1, 1, count, x.m, x.n, depth, pages(packed), sums)
