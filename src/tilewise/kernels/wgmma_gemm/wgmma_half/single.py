"""How long the tensor-core kernel is expected to take over one product that is neither a stack nor in groups: one
formula for every tile, pair of routes and form.

Coefficients were fitted to 7,000 configurations of 1,362 mostly random products on an H200, then refined on 6,300
configurations of 350 bfloat16 products of up to 0.1 ms, half of them aligned (rms 14 %; on 80 other products the choice
takes 3.3 % longer than the fastest). Stacks and groups have their own (`batched.py`, `grouped.py`).
"""

from __future__ import annotations

from math import log2, sqrt

from tilewise.kernels.coefficients import Numbers, coefficients
from tilewise.kernels.shared.residency import HELD, UNITS, crowded, parts_of
from tilewise.kernels.shared.triangle import tiles_in_classes, upper_tiles
from tilewise.kernels.wgmma_gemm.wgmma_half.tiles import (
    BOXES,
    CARRIED,
    CLASSES,
    DEPTH,
    LEAST_PHASES,
    LEAVES,
    PARTIAL,
    ROWS,
    TRANSPOSED_OUT,
    store_of,
)
from tilewise.system.machine_code import INFINITE, Row

FIGURES: Numbers = coefficients("wgmma_half")
STORES = len(LEAVES)
LARGEST = 192 * 192  # cells of a tile of three consumers, with 192 columns each
# a tile's start and its stores, and of each of its columns, of 64 rows
HOT_SECONDS = 1e-3  # from here on the card lowers its clock: so much slower with each doubling, by the tile's area
LARGE = 128 * 256

WHOLE, CUT, EDGED, TRANSPOSED = range(4)  # k whole or in parts of one wave of tiles; but thin edges; Pᵀ;
N_BY_CLASSES = 4  # of stacks, lines of N by classes: its pair of routes stands behind the others
SYMMETRIC = 5  # tiles on and above the diagonal, stored twice: rows of their own table
FOURS = HELD[4][0]
GROUP = 16  # rows of tiles that are walked together, as the kernel has it
PAIRS = 4  # of routes at most
STORES_FROM, BESIDE_AT, SERIAL_AT = 9, 19, 20  # where a row's stores begin, and what stands behind them;
SERIAL_SECONDS = 0.3e-6  # between two parts of k of a tile, while its tensor cores wait (assumed)
PAIRS_FROM, EACH_PAIR, MOVES = 17, 9, 8  # what is given of each pair of routes; and there, whether operands are moved


def transposed_columns(m: int) -> int:
    """A few hundred rows as a tile's columns, in steps of 16."""
    return -(-m // (-(-m // 256) * 16)) * 16


def held(units: int, together: int) -> int:
    """Clusters of one, two or four blocks that a card holds, as `residency.py` has counted them."""
    return units // together if together < 4 else max(1, FOURS * units // UNITS)


def tile_seconds(store: int, cols: int) -> float:
    if store == BOXES:
        return FIGURES.boxes + FIGURES.boxes_column * cols
    if store == TRANSPOSED_OUT:
        return FIGURES.transposed_out + FIGURES.transposed_out_column * cols
    if store == ROWS:
        return FIGURES.rows_out + FIGURES.rows_out_column * cols
    if store == CARRIED:
        return FIGURES.carried + FIGURES.carried_column * cols
    return FIGURES.partial + FIGURES.partial_column * cols


def loaded_columns(cols: int, cluster: int, rows: int) -> float:
    """Columns of a tile that a block brings, as far as that takes time: small tiles gain less by what others bring."""
    return cols * 1.0 if cluster == 1 else cols / cluster if rows > 64 else cols * FIGURES.narrow_share


def wanted(tiles: int, across: int, at_once: int, cluster: int, lines_m: float, lines_n: float) -> float:
    """How many clusters of a wave want the same line at the same time, as tiles are walked (GROUP rows of them, column
    by column); each tile's row of M and column of N lies in so many lines."""
    tall, wave = max(1, min(tiles // across, GROUP // cluster)), min(tiles, at_once)
    of_m = min(across * 1.0, wave / tall)
    return max(of_m * lines_m, wave / of_m * lines_n)


def leaving_seconds(each: float, store: int, waves: int, cells: int) -> float:
    """Of a tile and its sums, which leave line by line, in the background or not, where tiles come one after the
    other."""
    if waves > 1 and store == ROWS:
        return each + FIGURES.rows_out_cell * cells
    return max(each, FIGURES.carried_cell * cells) if waves > 1 and store == CARRIED else each


def phase_seconds(rows: int, cols: int, coming: float, lines: float, rate: float, share: float, same: float) -> float:
    """By the tensor cores, or by L2 and the copy engine, which take less where few multiprocessors ask: `share` of what
    they take when all do, as a fourth power; or by as many as want the `same` line, one after the other. `coming`: rows
    and columns that a block brings; `lines` of memory are touched; `rate`: steps a second of a multiprocessor."""
    slow = FIGURES.largest_slow if rows * cols == LARGEST else 1.0
    cores = rows * cols * DEPTH / (rate * FIGURES.share) * slow
    l2 = coming * 2 * DEPTH / FIGURES.unit
    return sqrt(sqrt(cores**4 + (l2**4 + (lines * FIGURES.line) ** 4) * share + (same * FIGURES.same_line) ** 4))


def hot_seconds(work: float, area: int) -> float:
    """The same work on a card that lowers its clock."""
    if work <= HOT_SECONDS:
        return work
    hot = FIGURES.largest_hot if area >= LARGEST else FIGURES.large_hot if area >= LARGE else FIGURES.hot
    return work * (1 + hot * log2(work / HOT_SECONDS))


def leaves(form: int, parts: int, by_classes: int, boxed: float, wide: int, waves: int, phases: int) -> int:
    """How sums leave."""
    if parts > 1:
        return PARTIAL
    if form == TRANSPOSED:
        return TRANSPOSED_OUT
    if form == SYMMETRIC:
        return BOXES if boxed > 0.0 else ROWS
    return store_of(by_classes, boxed, wide, waves, phases)


def covers_more(m: int, n: int, rows: int, cols: int, cluster: int, beside: int) -> int:
    """Whether a smaller tile covers as much, and takes less over its phases, or a smaller cluster."""
    tall, broad = 64 if m <= 64 else 128 if m <= 128 else 192, min(256, max(1, -(-n // 64)) * 64)
    idle = rows * (cluster - 1) >= m or cols * (beside - 1) >= n
    return 1 if rows > tall or cols > broad or idle else 0


def expected(row: Row, given: Row) -> float:
    """Waves of tiles beside the bytes, which hinder each other where both take as long; the card's heat; the start; and
    what comes before and after. `table.py` makes the rows and says what is given."""
    m, n, phases, units = int(given[0]), int(given[1]), int(given[2]), int(given[3])
    rows, cols, cluster, pair, form = int(row[0]), int(row[1]), int(row[2]), int(row[3]), int(row[4])
    if pair >= given[4]:
        return INFINITE
    at = PAIRS_FROM + EACH_PAIR * pair
    beside = int(row[BESIDE_AT])
    by_classes, at_once, parts, edge_rows, edge_cols = int(given[at + 4]), held(units, cluster * beside), 1, 0, 0
    of_m, of_n = rows / beside, loaded_columns(cols, cluster, rows)
    lines = of_m * given[at] + of_n * given[at + 1]
    if form == TRANSPOSED:
        if given[5] == 0.0 or by_classes:
            return INFINITE
        cols = transposed_columns(m)
        of_n, lines = cols * 1.0, cols * given[at] + rows * given[at + 1]
        m, n = n, m
    elif covers_more(m, n, rows, cols, cluster, beside) or given[6] > row[5] or (form == SYMMETRIC and by_classes):
        return INFINITE  # given[6] > row[5]: P read first takes registers
    if form == CUT:
        parts = parts_of(tiles_in_classes(m, n, rows * cluster, cols * beside, 1), at_once, phases // LEAST_PHASES)
        parts = int(given[14]) if given[14] > 0.0 else parts
        if parts <= 1 or given[7] == 0.0 or row[6] == 0.0 or by_classes:
            return INFINITE
    if form == EDGED:  # of several waves, whose k is never cut
        edge_rows, edge_cols = 1 if m % rows == 1 < m else 0, 1 if n % cols == 1 < n else 0
        if given[at + 5] > 0.0 or given[8] > row[7] or edge_rows + edge_cols == 0:
            return INFINITE
    if form == WHOLE and given[14] > 1.0 and row[SERIAL_AT] == 0.0:
        return INFINITE
    rest_m, rest_n = m - edge_rows, n - edge_cols
    tiles = tiles_in_classes(rest_m, rest_n, rows * cluster, cols * beside, CLASSES if by_classes else 1)
    if form == SYMMETRIC:
        tiles = upper_tiles(m, rows * cluster, cols * beside)
    waves, wide = -(-tiles * parts // at_once), 1 if cols >= 192 and rows > 64 else 0
    phases = max(1, -(-phases // parts))
    store = leaves(form, parts, by_classes, given[9] if edge_cols == 0 else given[10], wide, waves, phases)
    kept = row[STORES_FROM + store + (STORES if by_classes else 0)] + given[11]
    if form != SYMMETRIC and (kept == 0.0 or (form == EDGED and store != CARRIED)):  # carriers make thin edges
        return INFINITE
    blocks = tiles * cluster * beside * parts
    share = crowded(blocks, units, 4 * FIGURES.crowd)
    swapped = 1 if form == TRANSPOSED else 0
    same = wanted(tiles, -(-n // (cols * beside)), at_once, cluster, given[at + swapped], given[at + 1 - swapped])
    phase = phase_seconds(rows, cols, of_m + of_n, lines, given[12], share, same)
    each = phases * (phase * (FIGURES.classes_slow if by_classes else 1.0) + FIGURES.phase) + tile_seconds(store, cols)
    each = leaving_seconds(each, store, waves, rows * cols)
    if form == WHOLE and given[14] > 1.0:
        each += given[14] * SERIAL_SECONDS
    if form == SYMMETRIC:
        each += leaving_seconds(tile_seconds(store, cols), store, waves, rows * cols)
    work = hot_seconds(sqrt(sqrt((waves * each) ** 4 + given[at + 2])), rows * cols)
    work += FIGURES.start + same * FIGURES.same_first + (row[8] if waves == 1 else 2) * FIGURES.group_start
    if cluster * beside > 1:
        work += FIGURES.wide_meet if wide else FIGURES.narrow_meet
    if form == EDGED:
        work = max(work, edge_cols * given[at + 6] + edge_rows * given[at + 7]) + FIGURES.edge
    work += given[at + 3] + (FIGURES.classes if by_classes else 0.0)
    return work + (FIGURES.gather + 8 * parts * m * n / given[13]) if parts > 1 else work
