"""What tf32 and 8-bit elements are expected to take on Hopper's tensor cores: one formula for every way."""

from __future__ import annotations

from math import sqrt

from tilewise.kernels.shared.residency import crowded, parts_of
from tilewise.kernels.shared.triangle import tiles_in_classes, upper_tiles
from tilewise.system.machine_code import INFINITE, Formula, Row

AS_IT_IS, TRANSPOSED = "as it is", "transposed"
ACROSS, BY_CLASSES = "from registers", "by classes of rows"  # of N, and of an M that goes with it
SHARPNESS = 4  # how little two limits that are equally near hinder each other
EVEN_SHARE = (
    1.15  # a stage where rows of M that no block shares lie an even number of memory lines apart: why is not known
)
BOXED_SHARE = 0.3  # of what a tile takes longer whose N came from registers, where the copy engine stores it


# by bytes of an element: of 4 fitted to 447 random products on an H200 (rms 11 %), of 1 as docs/dtypes.md says

# forms of a way: k whole, in parts; N from registers; and M by classes of rows; tiles on and above the diagonal
WHOLE, CUT, OVER, IN_CLASSES, SYMMETRIC = range(5)
SECOND_STORE = (
    5e-6  # of the last wave, more than a store by rows: one wave of 2048² took 58.9 µs, and 52.3 with all tiles
)
FEWEST_STAGES = 4  # of a part of k
MANY_PARTS = 16  # of k, beyond which eight warps add up those of a cell
CLASSES = 4  # of lines of 4-byte elements that start equally far from a 16-byte boundary


def beside(busy: float, passing: float, size: float) -> float:
    """Waves of tiles beside the bytes, which hinder each other a little where both take as long."""
    return sqrt(sqrt(busy**4 + passing**4)) if size == 4 else max(busy, passing)


def stage_of(cores: float, l2: float, blocks: int, units: int, power: float) -> float:
    """Seconds of a stage, of the fourth powers of its limits: the tensor cores, and L2 when everybody asks."""
    crowd = crowded(blocks, units, power)
    return sqrt(sqrt(cores + l2 * crowd))


@Formula
def expected(row: Row, given: Row) -> float:
    """Members of a stack one after the other."""
    return given[21] * member_seconds(row, given)


def member_seconds(row: Row, given: Row) -> float:
    """Of a member: whole waves of tiles, or the bytes; then what comes before and after. k is cut only where sums are
    float32 (else planes of them are not of P's dtype), and both operands lie along k."""
    m, n, stages, units = int(given[0]), int(given[1]), int(given[2]), int(given[3])
    passing, turning, size, power = given[4], given[5], given[14], given[15]
    down, across, at_once, cluster, form = int(row[0]), int(row[1]), int(row[7]), int(row[8]), int(row[10])
    if row[11] == 0.0:
        return INFINITE
    end = row[5] if given[6] > 0.0 else row[4]
    tiles = -(-m // down) * -(-n // across)
    if form == SYMMETRIC:
        tiles = upper_tiles(m, down, across)
        end, turning, form = end + row[4], turning + SECOND_STORE, WHOLE  # the second store is one by rows
    if form == WHOLE:
        each = max(stages, 1) * stage_of(row[2], row[3], tiles * cluster, units, power) + end
        return beside(-(-tiles // at_once) * each, passing, size) + row[6] + turning
    if form == CUT:
        most = parts_of(tiles * cluster, units, stages // FEWEST_STAGES)
        if given[7] == 0.0 or most <= 1:
            return INFINITE
        each = -(-stages // most) * stage_of(row[2], row[3], tiles * most * cluster, units, power) + end
        work = beside(-(-tiles * most // at_once) * each, passing, size)
        cells = given[20] if most > MANY_PARTS else given[20] / 8  # one warp to a cell's parts, or eight
        return work + row[6] + turning + given[8] + cells + most * given[9]
    if form == OVER and given[10] > 0.0:
        stage = stage_of(row[2], row[3], tiles * cluster, units, power) * given[13]
        stage = stage * (EVEN_SHARE if given[11] > 0.0 and row[9] == 0.0 else 1.0)
        work = beside(-(-tiles // at_once) * (max(stages, 1) * stage + end), passing, size)
        return work + given[16] + given[17] + given[12]
    if form == IN_CLASSES and given[10] > 1.0:
        tiles = tiles_in_classes(m, n, down, across, CLASSES)
        stage = stage_of(row[2], row[3], tiles * cluster, units, power) * given[19]
        work = beside(-(-tiles // at_once) * (max(stages, 1) * stage + row[4]), passing, size)
        return work + given[16] + given[17] + given[18]
    return INFINITE
