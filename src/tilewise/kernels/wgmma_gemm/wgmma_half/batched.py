"""How long the tensor-core kernel is expected to take over a stack: a formula for every tile, pair of routes and form.

Single products have their own coefficients (`single.py`); groups use these (`grouped.py`).
"""

from __future__ import annotations

from math import sqrt

from tilewise.core.problem import Problem
from tilewise.kernels.coefficients import Numbers, coefficients
from tilewise.kernels.shared.layouts import NO_ROUTE, REALIGNS
from tilewise.kernels.shared.residency import parts_of
from tilewise.kernels.shared.triangle import upper_tiles
from tilewise.kernels.wgmma_gemm.wgmma_half.alignment_classes import classes_of, depth_of, sorted_bytes, takes_lines
from tilewise.kernels.wgmma_gemm.wgmma_half.routes import (
    first_route,
    lines_touched,
    may_be_classed,
    moved_bytes,
    second_route,
)
from tilewise.kernels.wgmma_gemm.wgmma_half.single import (
    BESIDE_AT,
    CUT,
    EDGED,
    N_BY_CLASSES,
    SERIAL_AT,
    STORES_FROM,
    SYMMETRIC,
    TRANSPOSED,
    WHOLE,
    held,
    hot_seconds,
    leaves,
    transposed_columns,
)
from tilewise.kernels.wgmma_gemm.wgmma_half.table import Figures, may_be_transposed
from tilewise.kernels.wgmma_gemm.wgmma_half.tiles import (
    BOXES,
    CARRIED,
    DEPTH,
    LEAST_PHASES,
    PARTIAL,
    SHIFTED_COLUMNS,
    TRANSPOSED_OUT,
    boxes,
    fixed_parts,
)
from tilewise.system.machine_code import INFINITE, Row

# The model's figures, measured on an H200 (docs/tensor-cores.md says how).
FIGURES: Numbers = coefficients("wgmma_half stack")
# a tile's start and its stores, as far as nothing hides them, by how sums leave

PAIRS_FROM, EACH_PAIR, MOVES = 15, 4, 3  # what is given of each pair of routes; and there, whether operands are moved


def phase_seconds(rows: float, wide: int, cols: float, lines: float, rate: float) -> float:
    """As long as the tensor cores need, or L2 for its bytes, or the copy engine for its lines, and a little longer
    where two are equally busy. `cols` of the tile's `wide` are loaded; `rate`: steps a second of a multiprocessor."""
    cores, l2 = rows * wide * DEPTH / (rate * FIGURES.share), (rows + cols) * 2 * DEPTH / FIGURES.unit
    return sqrt(sqrt(sqrt(cores**8 + l2**8 + (lines * FIGURES.line) ** 8)))


def tile_seconds(phases: float, store: int, waves: int, cells: int) -> float:
    """Of a tile whose phases take so long; sums that leave line by line do that in the background or not."""
    if store == BOXES:
        return phases + FIGURES.boxes
    if store == TRANSPOSED_OUT:
        return phases + FIGURES.transposed_out
    if store == PARTIAL:
        return phases + FIGURES.partial
    if store == CARRIED:
        return max(phases + FIGURES.carried, FIGURES.carried_cell * cells if waves > 1 else 0.0)
    return phases + FIGURES.rows_out + (FIGURES.rows_out_cell * cells if waves > 1 else 0.0)


def whole_seconds(work: float, cells: int, waves: int, groups: float, cluster: int) -> float:
    """The same work on a card that lowers its clock, with its start."""
    work = hot_seconds(work, cells)
    work += FIGURES.start + (groups if waves == 1 else 2.0) * FIGURES.group_start
    return work + (FIGURES.meet if cluster > 1 else 0.0)


def expected(row: Row, given: Row) -> float:
    """Whole waves of tiles, or the bytes; then what comes before and after."""
    m, n, phases, units, members = int(given[0]), int(given[1]), int(given[2]), int(given[3]), int(given[4])
    rows, cols, cluster, pair, form = int(row[0]), int(row[1]), int(row[2]), int(row[3]), int(row[4])
    at = PAIRS_FROM + EACH_PAIR * pair
    lines_m, lines_n, unrounded = given[at], given[at + 1], given[7]
    if lines_m == 0.0 or form == EDGED or (form == TRANSPOSED and given[5] == 0.0):
        return INFINITE
    tall, broad, made, parts = m, n, cols, 1
    if form == TRANSPOSED:
        tall, broad, cols = n, m, transposed_columns(m)
        made = cols
    elif form == N_BY_CLASSES:
        made, phases = cols - SHIFTED_COLUMNS, int(given[11])
    else:  # where a smaller tile covers as much, a larger one only takes longer over its phases
        high = 64 if m <= 64 else 128 if m <= 128 else 192
        if rows > high or cols > 64 * min(4, max(1, -(-n // 64))) or (m <= 64 and cluster > 1):
            return INFINITE
        if (given[6] > 0.0 and row[5] == 0.0) or cluster * int(
            row[BESIDE_AT]
        ) > 2:  # single products have larger clusters
            return INFINITE
    tiles = members * -(-tall // (rows * cluster)) * -(-broad // made)
    if form == WHOLE and given[14] > 1.0 and row[SERIAL_AT] == 0.0:
        return INFINITE
    if form == SYMMETRIC:
        tiles = members * upper_tiles(m, rows * cluster, cols * int(row[BESIDE_AT]))
    if form == CUT:
        parts = parts_of(tiles, held(units, cluster), phases // LEAST_PHASES)
        parts = int(given[14]) if given[14] > 0.0 else parts
        if parts <= 1 or unrounded > 0.0:
            return INFINITE
    waves, wide = -(-tiles * parts // held(units, cluster)), 1 if cols >= 192 and rows > 64 else 0
    phases = max(1, -(-phases // parts))
    store = leaves(form, parts, 1 if form == N_BY_CLASSES else 0, given[8], wide, waves, phases)
    if form <= CUT and row[STORES_FROM + store] + unrounded == 0.0:
        return INFINITE
    loaded, moving = cols / cluster, given[at + 2]
    lines = loaded * lines_m + rows * lines_n if form == TRANSPOSED else rows * lines_m + loaded * lines_n
    each = phases * phase_seconds(rows * 1.0, cols, loaded, lines, given[9])
    each = tile_seconds(each + (given[12] * cols if form == N_BY_CLASSES else 0.0), store, waves, rows * cols)
    if form == SYMMETRIC:
        each += tile_seconds(0.0, store, waves, rows * cols)
    work = max(waves * each, given[10]) + given[13]
    work = whole_seconds(work, rows * cols, waves, row[8], cluster) + moving
    return work + (FIGURES.gather + members * 8 * parts * m * n / FIGURES.gathering if parts > 1 else 0.0)


def given_of(p: Problem, f: Figures) -> Row:
    """What all rows share; at last four pairs of routes, as far as there are so many, and N by classes."""
    memory = f.bandwidth * FIGURES.memory
    m = first_route(p.layout_m, p.m, p.k, f.converted_m)
    n = first_route(p.layout_n, p.k, p.n, f.converted_n)
    other_m = second_route(p.layout_m, p.m, p.k, m, may_be_classed(p))
    other_n = second_route(p.layout_n, p.k, p.n, n, False)
    by_classes, classes, deep, sorting = f.n_by_classes and takes_lines(p), 1, 0, 0.0
    if by_classes:
        classes, deep = classes_of(p.layout_n.row), depth_of(p)
        sorting = moving_seconds(sorted_bytes(p), memory)
    launches = max(1, p.members // max(1, p.together))
    return (
        p.m, p.n, -(-p.k // DEPTH), f.units, p.members, may_be_transposed(p, f.fused),
        p.accumulate and not p.unrounded, p.unrounded, boxes(p.layout_p, p.m, p.n, 0, p.layout_p.alignment), f.rate,
        p.least_bytes / memory, -(-deep // DEPTH), (classes - 1) * FIGURES.moved_column,
        (launches - 1) * FIGURES.other_launch, fixed_parts(p, f.units),
        *numbers_of(p, memory, m, n),
        *numbers_of(p, memory, other_m if other_n == NO_ROUTE else m, n if other_n == NO_ROUTE else other_n),
        *numbers_of(p, memory, NO_ROUTE if other_n == NO_ROUTE else other_m, n),
        *numbers_of(p, memory, other_m, other_n),
        1 if by_classes else 0, 2 if by_classes else 0, sorting, 1,
    )  # fmt: skip


def numbers_of(p: Problem, memory: float, m: int, n: int) -> Row:
    """Of a pair of routes: lines of memory that a tile's rows of M and N lie in (0 where there is no such pair),
    seconds that operands are moved before, whether they are."""
    if m == NO_ROUTE or n == NO_ROUTE:
        return 0.0, 0.0, 0.0, 0.0
    lines_m, lines_n = lines_touched(m, p.layout_m, p.m, p.k), lines_touched(n, p.layout_n, p.k, p.n)
    moved = moved_bytes(m, p.layout_m, p.m, p.k, p.own_m) + moved_bytes(n, p.layout_n, p.k, p.n, p.own_n)
    return lines_m, lines_n, moving_seconds(moved, memory), m >= REALIGNS or n >= REALIGNS


def moving_seconds(moved: int, memory: float) -> float:
    return FIGURES.copy + moved / memory if moved else 0.0


def passes(row: Row, given: Row) -> int:
    """One to move operands, one to add up the parts of k."""
    return int(given[PAIRS_FROM + EACH_PAIR * int(row[3]) + MOVES]) + (1 if row[4] == CUT else 0)
