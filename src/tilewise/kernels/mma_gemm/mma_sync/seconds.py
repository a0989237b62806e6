"""What the mma.sync kernel is expected to take: one formula for every tile, pair of routes and form."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from tilewise.kernels.shared.residency import in_waves
from tilewise.system.machine_code import INFINITE, Formula, Row


class Figures(NamedTuple):
    """Seconds, but for shares: fitted to the ways of 1,490 random products on an H200 (rms 11 to 16 %; held out, the
    choice 3 % above the best of them in the mean)."""

    start: float  # of a launch
    tile: float  # of a tile beside its phases: the first loads, the stores,
    cell: float  # of a cell of it,
    odd: float  # and so many times that more where P is not stored by 16 bytes
    alone: float  # a phase of a block that has a multiprocessor to itself takes so many times what the cores need,
    phase: dict[int, float]  # and this, by bytes of a copy
    shares: tuple[float, ...]  # of a tile's own share
    small: dict[int, float]  # of a phase's time, that copies in such pieces add
    m_across: float  # over it, where k lies across the lines of M,
    n_along: float  # or along those of N
    unit: float  # bytes a second that L2 gives each multiprocessor when all of them ask,
    crowd: float  # and how much more when few do, as a power of their share
    memory: float  # share of the memory's bandwidth
    copy: float  # realigning: a launch,
    copying: float  # share of the bandwidth
    part: float  # adding up the parts of k: a launch,
    adding: float  # times the bandwidth
    edge: float  # thin edges: a launch,
    edges: float  # share of the bandwidth


FIGURES = {  # by bytes of an element
    8: Figures(
        1.13e-06, 1.16e-06, 2.09e-10, 0.0172, 1.64, {16: 2.6e-08, 8: 1.21e-07, 4: 2e-07},
        (1.1, 1.75, 1.1, 1.27), {16: 0.0, 8: 0.309, 4: 0.6}, 0.959, 1.06,
        8.81e+10, 0.367, 0.755, 1.67e-06, 0.803, 1.95e-06, 1.28, 1.82e-06,
        1.11,
    ),
    4: Figures(
        1.39e-06, 8.74e-07, 1.9e-10, 0.379, 2.52, {16: 2.95e-08, 8: 2.49e-08, 4: 7.13e-08},
        (1.73, 0.967, 0.853), {16: 0.0, 8: 0.433, 4: 1.27}, 0.797, 1.18,
        8.53e+10, 0.264, 0.688, 1.8e-06, 0.756, 1.98e-06, 0.653, 2.78e-06,
        0.846,
    ),
    2: Figures(
        9.53e-07, 1.72e-06, 5.13e-11, 7.01, 1.58, {16: 1.16e-08, 8: 1.19e-07, 4: 5.61e-07},
        (2.03, 2.05, 1.03, 3.63, 1.93, 1.88), {16: 0.0, 8: 1.3, 4: 3.04}, 0.957, 1.04,
        6.96e+10, 0.0748, 0.738, 2.64e-06, 0.783, 1.78e-06, 0.641, 5.66e-06,
        0.88,
    ),
}  # fmt: skip
FIGURES[1] = FIGURES[2]._replace(shares=(1.0,))
FEWEST = 0.15  # share of the multiprocessors, below which nothing is faster any more

WHOLE, CUT, CUT_TWICE, EDGED = range(4)  # a product whole, k in parts (of one wave, of two), or but thin edges
FORMS, PAIRS = 4, 4  # of a tile: forms, and pairs of routes at most
CORES_FROM, ROOMS, PAIRS_FROM = 8, 14, 19  # where a row's phases and rooms begin, and what is given of each pair
MAX_PARTS = 64  # of k,
FEWEST_PHASES = 4  # of each
THIN, THIN_FROM = 4, 1024  # so few rows or columns beyond whole tiles are made apart, where P has that many


def parts_of(tiles: int, phases: int, at_once: int, members: int, form: int) -> int:
    """k is cut where tiles alone would leave much of the card idle: into as many parts as make whole waves of blocks,
    one or two; 0 where it is not."""
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
    parts, edge_rows, edge_cols = 1, 0, 0
    if CUT <= form <= CUT_TWICE:
        parts = parts_of(-(-m // rows) * -(-n // cols) * members, phases, at_once, members, form)
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
    tiles = -(-(m - edge_rows) // rows) * -(-(n - edge_cols) // cols) * members * parts
    crowd = 1.0 if tiles >= units else max(FEWEST, tiles / units) ** given[14]
    busy = sqrt(sqrt((cores * given[12]) ** 4 + (row[4] * crowd) ** 4))
    alone, fourth = (busy * given[15] + given[at + 3]) ** 4, busy**4
    cells = row[5] * (1 + given[13]) if parts == 1 else row[5]
    work = in_waves(tiles, row, ROOMS, each * 1.0, alone, fourth, given[16], cells)
    work = sqrt(sqrt(work**4 + given[5])) + given[17] + given[at + 1]
    if edge_rows:
        work += members * given[7]
    if edge_cols:
        work += members * given[8]
    if parts > 1:
        work += members * (given[18] + parts * given[6])
    return work
