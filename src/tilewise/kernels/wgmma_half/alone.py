"""How long the tensor-core kernel is expected to take over one product that is neither a stack nor in groups.

The figures are fitted to 6,700 ways of 596 random products on an H200 (rms 11 %; held out, the choice 2.5 % above the
best of them in the mean). Stacks and groups have figures of their own (`seconds.py`).
"""

from __future__ import annotations

from functools import lru_cache
from math import log2, sqrt

from tilewise.kernels.wgmma_half.tiles import DEPTH, TensorTile
from tilewise.machine import Machine
from tilewise.problem import Problem

TENSOR_SHARE = 0.85  # of the peak at the highest clock, while nothing else holds a phase up,
LARGEST_SLOW = 1.06  # and by how much less three consumers with 192 columns each have
UNIT_BANDWIDTH = 1.65e11  # bytes a second that L2 gives each multiprocessor when all of them ask
LINE_SECONDS = 1.3e-09  # the copy engine's time for each 128-byte line it touches then
CROWD, FEWEST = 0.869, 0.15  # how much less both take where few multiprocessors ask, as a power of their share
PHASE_SECONDS = 2.29e-08  # barriers
CLASSES_SLOW, CLASSES_SECONDS = 1.04, 1.84e-07  # rows of M by classes: a phase, and their descriptors' way in
# a tile's start and its stores, by how sums leave; and of each of its columns, of 64 rows
TILE_SECONDS = {"boxes": 9.46e-08, "turned": 2.21e-07, "rows": 2.25e-07, "carried": 2.08e-06, "partial": 2.18e-06}
COLUMN_SECONDS = {"boxes": 4.33e-09, "turned": 3.27e-09, "rows": 1.77e-08, "carried": 1.17e-09, "partial": 1.27e-09}
OUT_SECONDS = {"rows": 5.44e-11, "carried": 5.65e-10}  # of a cell, where tiles come one after the other
MEMORY_SHARE = 0.84  # of the bandwidth on paper;
STRADDLING = 0.105  # of an operand's bytes, that are read more where its lines straddle those of the memory
START_SECONDS, GROUP_SECONDS = 1.58e-06, 5.61e-07
CLUSTER_SECONDS = {False: 5.15e-07, True: 2e-6}  # blocks of a cluster wait for one another, the wide ones longer
COPY_SECONDS, COPYING = 1.37e-06, 0.785  # realigning: its launch, and share of the bandwidth
GATHER_SECONDS, GATHERING = 3.14e-07, 0.892  # adding up the parts of k: the same
EDGE_SECONDS = 2.89e-06  # thin edges, beside what they take in the background
HOT_SECONDS = 1e-3  # from here on the card lowers its clock: so much slower with each doubling, by the tile's area
HOT_SLOW = ((192 * 192, 0.005), (128 * 256, 0.03), (0, 0.045))


@lru_cache(maxsize=256)
def limits(tile: TensorTile, lines: float, rate: float) -> tuple[float, float]:
    """Fourth powers of the seconds of a phase: by the tensor cores, and by L2 and the copy engine when all of them ask.
    `lines` of memory are touched; `rate`: steps a second of a multiprocessor."""
    slow = LARGEST_SLOW if tile.rows * tile.cols == 192 * 192 else 1.0
    cores = tile.rows * tile.cols * DEPTH / (rate * TENSOR_SHARE) * slow
    l2 = (tile.rows + tile.cols / tile.cluster) * 2 * DEPTH / UNIT_BANDWIDTH
    return cores**4, l2**4 + (lines * LINE_SECONDS) ** 4


def crowd(blocks: int, units: int) -> float:
    """The fourth power of how long L2 and the copy engine take, over what they take when every multiprocessor asks."""
    return 1.0 if blocks >= units else max(FEWEST, blocks / units) ** (4 * CROWD)


def waves_seconds(
    tile: TensorTile,
    store: str,
    phases: int,
    waves: int,
    blocks: int,
    both: tuple[float, float],
    units: int,
    slow: float,
) -> float:
    """Of tiles in waves, as far as the memory does not set the time."""
    each = phases * (sqrt(sqrt(both[0] + both[1] * crowd(blocks, units))) * slow + PHASE_SECONDS)
    each += TILE_SECONDS[store] + COLUMN_SECONDS[store] * tile.cols
    if waves > 1 and store in OUT_SECONDS:  # sums leave line by line, in the background or not
        out = OUT_SECONDS[store] * tile.rows * tile.cols
        each = max(each, out) if store == "carried" else each + out
    return waves * each


def whole_seconds(tile: TensorTile, busy: float, passing: float, waves: int) -> float:
    """Waves beside the bytes, which hinder each other where both take as long; the card's heat; and the start.
    `passing`: the fourth power of the seconds that the memory needs."""
    work = sqrt(sqrt(busy**4 + passing))
    if work > HOT_SECONDS:
        hot = next(share for area, share in HOT_SLOW if tile.rows * tile.cols >= area)
        work *= 1 + hot * log2(work / HOT_SECONDS)
    work += START_SECONDS + (tile.groups if waves == 1 else 2) * GROUP_SECONDS
    return work + (CLUSTER_SECONDS[tile.wide] if tile.cluster > 1 else 0.0)


def passing_seconds(problem: Problem, touched: tuple[int, int], machine: Machine) -> float:
    """The fourth power of the seconds that the memory needs, where a tile's rows of M and N lie in so many lines."""
    p = problem
    more = p.m * p.k * (touched[0] - 1) + p.k * p.n * (touched[1] - 1)
    return ((p.least_bytes + STRADDLING * 2 * more) / (machine.bandwidth * MEMORY_SHARE)) ** 4


def moving_seconds(moved: int, machine: Machine) -> float:
    return COPY_SECONDS + moved / (machine.bandwidth * COPYING) if moved else 0.0


def gathering_seconds(parts: int, m: int, n: int, machine: Machine) -> float:
    return GATHER_SECONDS + 8 * parts * m * n / (machine.bandwidth * GATHERING) if parts > 1 else 0.0
