"""How long `half_dots` is expected to take: one formula for every tile and cut of k.

Fitted to 298 ways of 54 random products with odd lines on an H200 (rms 11 %; what it chooses takes 1.7 % longer than
the best of them in the mean).
"""

from __future__ import annotations

from math import sqrt

from tilewise.kernels.shared.residency import in_waves
from tilewise.system.machine_code import INFINITE, Formula, Row

START_SECONDS, TILE_SECONDS = 6.5e-8, 4.23e-6  # a launch; a block's, the first words and the stores
STEP_SECONDS, STEP_LINE_SECONDS = (
    1.26e-7,
    8e-9,
)  # a warp's step if nobody hinders it, and for each line of a tile
UNIT_BANDWIDTH = 6.35e10  # bytes a second of the long operand that a multiprocessor takes
ALONG_SECONDS, BESIDE_SECONDS = 1.13e-10, 1.86e-10  # an element of the few lines, along k or side by side
CELL_SECONDS, SLICE_SECONDS = 5.65e-10, 2.9e-11  # a cell that a block stores, and each slice's of it
CLUSTER_SECONDS, PART_SECONDS = 6.48e-7, 9.2e-8  # blocks of a cluster wait for one another
MEMORY_SHARE = 0.565  # of the bandwidth
ROOMS = 5  # where they begin in a row
ONE_LAUNCH = 0.9  # of its time it is offered for: queued, a launch more of others costs the host 7 µs


@Formula
def expected(row: Row, given: Row) -> float:
    """Waves of blocks: each its steps one after the other, or a multiprocessor's words of the long operand, what is
    brought before them and stored after; beside the bytes. `model.py` makes the rows and says what is given."""
    height, slices, cluster = int(row[0]), int(row[1]), int(row[2])
    length, k, steps, classes = int(given[0]), int(given[1]), int(given[2]), int(given[3])
    if slices * cluster > steps:
        return INFINITE
    lines, each = -(-length // classes), -(-steps // cluster)
    tiles = -(-lines // height) * classes
    alone, words = (-(-each // slices) * row[3]) ** 4, 2 * height * k / cluster / UNIT_BANDWIDTH
    work = in_waves(tiles, row, ROOMS, 1.0, alone, words**4, TILE_SECONDS, given[4] / cluster + row[4])
    work = START_SECONDS + sqrt(sqrt(work**4 + given[5]))
    return work + (CLUSTER_SECONDS + PART_SECONDS * cluster if cluster > 1 else 0.0)
