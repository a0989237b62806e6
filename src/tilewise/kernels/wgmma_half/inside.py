"""The tensor-core kernel over up to 32 rows of P, which are a tile's columns: Pᵀ = NᵀMᵀ. Its ways, and their time.

Every tile has blocks of its own, k cut over a cluster of them: parts are added up inside the launch (`cut.cuh`), and
two blocks share a multiprocessor. M's k lies side by side: few rows that lie across are too short for the copy engine.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import sqrt

from tilewise.kernels.shared.layouts import along_columns
from tilewise.kernels.wgmma_half.alone import EACH_PAIR, PAIRS, PAIRS_FROM
from tilewise.kernels.wgmma_half.tiles import DEPTH, INSIDE, TensorTile, TensorWay
from tilewise.problem import Problem
from tilewise.system.machine_code import INFINITE, Formula, Row, Rows

MOST_PARTS = 8  # blocks of a cluster
LEAST_PHASES = 2  # of a part of k
MOST_WAVES = 3
# Fitted to 3,600 ways of 690 random products on an H200 (rms 14 %).
TENSOR_SHARE = 1.14  # of the peak, as far as nothing else holds a phase up
LINE_SECONDS = 6.93e-10  # of the copy engine and L2 for each 128-byte line, when all multiprocessors ask,
CROWD, FEWEST = 0.766, 0.15  # and how much less where few do, as a power of their share
PHASE_SECONDS = 1.35e-07  # barriers
TILE_SECONDS, CELL_SECONDS = 1.01e-6, 2.04e-10  # a tile's start and its stores; and of each cell that a block stores
MEMORY_SLOW = 1.21  # the bytes take so many times what others need
START_SECONDS = 2.38e-6
FULL_SECONDS = 1.1e-6  # where blocks leave no room for those of the launch behind
CLUSTER_SECONDS, PART_SECONDS = 3.02e-7, 1.12e-7  # blocks of a cluster wait for one another
SHARE = 0.815  # of all that, which was fitted to larger tiles, too
LEAST_SHARE = 0.95  # of what other ways never go below, and these neither


@Formula
def expected(row: Row, given: Row) -> float:
    """Waves of tiles, whose phases take as long as the tensor cores need, or L2 and the copy engine; beside the bytes;
    then what comes before and after. `given` is what `alone.expected` is given."""
    m, n, phases, units = int(given[0]), int(given[1]), int(given[2]), int(given[3])
    rows, cols, parts, pair, held = int(row[0]), int(row[1]), int(row[2]), int(row[3]), int(row[4])
    at = PAIRS_FROM + EACH_PAIR * pair
    if pair >= given[4] or given[11] > 0.0 or parts * LEAST_PHASES > max(phases, LEAST_PHASES):
        return INFINITE
    if m > cols or min(m, n) < 2 or given[at + 4] + given[at + 5] > 0.0:  # one line turned is none; classes; packing
        return INFINITE
    blocks = -(-n // rows) * parts
    at_once = units * held // parts * parts
    waves = -(-blocks // at_once)
    if waves > MOST_WAVES:
        return INFINITE
    together = min(held, -(-blocks // units))
    share = min(1.0, max(FEWEST, blocks / units)) ** CROWD
    cores = together * rows * cols * DEPTH / (given[12] * TENSOR_SHARE)
    lines = together * (rows * given[at + 1] + cols * given[at]) * LINE_SECONDS * share
    phase = sqrt(sqrt(cores**4 + lines**4)) + PHASE_SECONDS
    stored = min(n, rows) * m / parts
    work = waves * (-(-phases // parts) * phase + TILE_SECONDS + CELL_SECONDS * together * stored)
    work = sqrt(sqrt(work**4 + given[at + 2] * MEMORY_SLOW**4)) + START_SECONDS
    if blocks > units:
        work += FULL_SECONDS
    if parts > 1:
        work += CLUSTER_SECONDS + PART_SECONDS * parts
    return work * SHARE + given[at + 3]


@lru_cache(maxsize=1)
def table() -> tuple[tuple[tuple[TensorTile, int, int], ...], Rows]:
    """(tile, parts of k, pair of routes), and a row for each."""
    places = tuple(product(INSIDE, range(1, MOST_PARTS + 1), range(PAIRS)))
    return places, Rows([(t.rows, t.cols, parts, pair, t.resident("cut")) for t, parts, pair in places])


def way_of(number: int, pairs: list[tuple[str, str]]) -> TensorWay:
    tile, parts, pair = table()[0][number]
    return TensorWay(tile, pairs[pair], parts, inside=True, turned=True)


def takes(p: Problem) -> bool:
    """One k is one line of N, which turned would be as many lines of one element."""
    return p.k > 1 and p.m <= INSIDE[-1].cols and not p.unrounded and not along_columns(p.layout_m, p.m, p.k)


def least(pairs: list[tuple[str, str]], given: Row, p: Problem) -> tuple[TensorWay | None, float]:
    """The way with the least expected seconds, if there is one."""
    number, seconds = expected.least(table()[1], given, p.largest) if takes(p) else (0, INFINITE)
    return (way_of(number, pairs), seconds) if seconds < INFINITE else (None, INFINITE)


def every(pairs: list[tuple[str, str]], given: Row, p: Problem) -> list[tuple[TensorWay, float]]:
    """The ways that there are, each with its expected seconds."""
    timed = [(number, expected(row, given)) for number, row in enumerate(table()[1].rows) if takes(p)]
    return [(way_of(number, pairs), seconds) for number, seconds in timed if seconds < INFINITE]
