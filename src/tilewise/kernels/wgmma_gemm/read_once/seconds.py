"""What `read_once` is expected to take: one formula for every tile and cut of k."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from tilewise.kernels.shared.residency import in_waves
from tilewise.system.machine_code import INFINITE, Formula, Row

LONG, DEPTH = 128, 32  # lines of the long operand in a tile; k of a stage
MOST_PARTS, FEWEST_STAGES = 64, 4  # of k, and of a part
HALVES = (0, 1, 2, 4)  # half waves of blocks that parts of k make; 0: k is whole
ROOMS = 9  # where they begin in a row
FEWEST = 0.15  # share of the multiprocessors, below which nothing is faster any more


class Figures(NamedTuple):
    """Seconds, but for shares and bandwidths."""

    start: float  # a launch, the first stages' way in
    alone: float  # a stage of a block that has a multiprocessor to itself,
    column: float  # and of each column of its tile
    share: float  # of the tensor cores' rate
    unit: float  # bytes a second that a multiprocessor takes when all of them ask,
    crowd: float  # and how much more when few do, as a power of their share
    tile: float  # a tile's end,
    cell: float  # and of each cell of it
    cluster: float  # blocks of a cluster wait for one another,
    part: float  # and for each of them
    memory: float  # share of the memory's bandwidth
    gather: float  # adding up what clusters made: a launch,
    gathering: float  # and bytes a second
    before: float  # a launch that turns or splits the few lines,
    turning: float  # and bytes a second
    behind: float  # the plain kernel's launch, where it has nothing to do
    gathered: float  # a stage alone takes so much longer where its few lines are gathered,
    gathered_column: float  # and for each of them
    across: tuple[float, float]  # how much of the bytes' time lines across k take: apart, alike


# fitted to 3,386 ways of 386 products on an H200, most of them random (rms 12 and 9 %; what it chooses takes 4 and 3 %
# longer than the best of them in the mean); L2 holds stages up, never the tensor cores
FIGURES = {
    "tf32": Figures(
        2.18e-07, 1.81e-08, 5e-10, 0.9, 4.98e10, 0.289, 2.5e-06, 1.14e-10, 8.78e-07, 1.16e-07, 0.748, 1.11e-06, 1.86e12,
        1.57e-06, 2.47e12, 0.0, 9.1e-08, 1.09e-08, (0.765, 0.496),
    ),
    "high": Figures(
        3.4e-07, 2.21e-07, 5.92e-09, 0.9, 4.11e10, 0.375, 3.28e-06, 1.85e-11, 5.47e-07, 4.08e-08, 0.736, 1.02e-06,
        1.77e12, 3.6e-06, 2.38e12, 2.71e-06, 9.07e-09, 6.89e-09, (1.03, 0.865),
    ),
}  # fmt: skip


def parts_of(tiles: int, at_once: int, stages: int, least: int, halves: int, blocks: int) -> int:
    """Parts of k: as many as make so many half waves, in whole clusters; 0 where that cannot be had."""
    if halves == 0:
        return 1 if least == 1 and blocks == 1 else 0
    most = min(halves * at_once // (2 * max(1, tiles)), min(stages // FEWEST_STAGES, MOST_PARTS))
    parts = max(most, least) // blocks * blocks
    return parts if parts >= max(2, least) and parts <= stages else 0


def tiles_of(few: int, length: int, width: int) -> int:
    return -(-length // LONG) * -(-few // width)


def seconds_of(row: Row, given: Row, parts: int) -> float:
    """Waves of blocks, whose stages take as long as one alone needs or all of a multiprocessor's together, at the rate
    of the tensor cores or of L2; beside the bytes; then what comes before and after."""
    stages, units, blocks = int(given[2]), int(given[3]), int(row[2])
    each, clusters = -(-stages // parts), tiles_of(int(given[0]), int(given[1]), int(row[0])) * parts // blocks
    crowd = 1.0 if clusters * blocks >= units else max(FEWEST, clusters * blocks / units) ** given[8]
    busy = row[5] ** 4 + ((row[4] + given[5]) / given[7] * crowd) ** 4
    work = in_waves(clusters, row, ROOMS, each * 1.0, row[6] ** 4, busy, given[9], row[7])
    work = sqrt(sqrt(work**4 + given[6])) + given[10]
    if row[8] == 0.0:
        work += given[15]
    if blocks > 1:
        work += given[11] + given[12] * blocks
    if parts > blocks:
        work += given[13] + parts // blocks * given[14]
    return work


@Formula
def expected(row: Row, given: Row) -> float:
    """Of a way, where its k can be cut so."""
    few, width, blocks = int(given[0]), int(row[0]), int(row[2])
    at_once = int(row[ROOMS + int(row[ROOMS])]) * blocks
    tiles = tiles_of(few, int(given[1]), width)
    parts = parts_of(tiles, at_once, int(given[2]), int(given[4]), int(row[3]), blocks)
    if parts == 0:
        return INFINITE
    return seconds_of(row, given, parts)
