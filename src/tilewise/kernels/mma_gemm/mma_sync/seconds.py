"""Expected time of the mma.sync kernel: one formula for every tile, pair of routes and form."""

from __future__ import annotations

from math import sqrt

from tilewise.kernels.shared.residency import crowded, in_waves
from tilewise.kernels.shared.triangle import tiles_of
from tilewise.system.machine_code import INFINITE, Formula, Row

WHOLE, CUT, CUT_TWICE, EDGED = range(4)  # forms: whole, split-K (one wave, two waves), thin edges apart
FORMS, PAIRS = 4, 4  # of a tile: forms, and pairs of routes at most
CORES_FROM, ROOMS, PAIRS_FROM = 8, 14, 20  # where a row's phases and rooms begin, and what is given of each pair
MAX_PARTS = 64  # of k,
FEWEST_PHASES = 4  # of each
THIN, THIN_FROM = 4, 1024  # so few rows or columns beyond whole tiles are made apart, where P has that many


def parts_of(tiles: int, phases: int, at_once: int, members: int, form: int) -> int:
    """Split-K where tiles leave much of the card idle: parts that fill one or two waves of blocks; 0 where k is not
    split."""
    slots, deepest = at_once // max(1, tiles), min(MAX_PARTS, phases // FEWEST_PHASES)
    first, second = min(deepest, slots), min(deepest, 2 * at_once // max(1, tiles))
    if form == CUT:
        return first if first > 1 else 0
    return second if members == 1 and slots <= deepest and second > 1 and second != first else 0


def edge_of(extent: int, side: int) -> int:
    """Rows or columns beyond whole tiles, where they are so few that tiles for them would be nearly empty."""
    rest = extent % side
    return rest if rest <= THIN and extent >= THIN_FROM else 0


@Formula
def expected(row: Row, given: Row) -> float:
    """Waves of tiles, whose phases take as long as one block alone needs or all of a multiprocessor's together, at the
    rate of the tensor cores or of L2; then what comes before and after."""
    m, n, phases, members, units = int(given[0]), int(given[1]), int(given[2]), int(given[3]), int(given[4])
    rows, cols, at_once, pair, form = int(row[0]), int(row[1]), int(row[3]), int(row[6]), int(row[7])
    if pair >= given[11]:
        return INFINITE
    at = PAIRS_FROM + 4 * pair
    cores = row[int(given[at])]
    if cores == 0.0:  # registers do not suffice
        return INFINITE
    parts, edge_rows, edge_cols, symmetric = 1, 0, 0, int(given[19])
    if CUT <= form <= CUT_TWICE:
        parts = parts_of(tiles_of(m, n, rows, cols, symmetric) * members, phases, at_once, members, form)
        if parts == 0:
            return INFINITE
    if form == EDGED:
        if given[9] > 0.0:
            edge_rows = edge_of(m, rows)
        if given[10] > 0.0:
            edge_cols = edge_of(n, cols)
        if given[at + 2] > 0.0 or edge_rows + edge_cols == 0:  # the kernels for few read operands as they lie
            return INFINITE
    each = max(1, -(-phases // parts))
    tiles = tiles_of(m - edge_rows, n - edge_cols, rows, cols, symmetric) * members * parts
    crowd = crowded(tiles, units, given[14])
    busy = sqrt(sqrt((cores * given[12]) ** 4 + (row[4] * crowd) ** 4))
    alone, fourth = (busy * given[15] + given[at + 3]) ** 4, busy**4
    cells = row[5] * (1 + given[13]) if parts == 1 else row[5]
    if symmetric:
        cells *= 2  # most tiles are stored twice
    work = in_waves(tiles, row, ROOMS, each * 1.0, alone, fourth, given[16], cells)
    work = sqrt(sqrt(work**4 + given[5])) + given[17] + given[at + 1]
    if edge_rows:
        work += members * given[7]
    if edge_cols:
        work += members * given[8]
    if parts > 1:
        work += members * (given[18] + parts * given[6])
    return work
