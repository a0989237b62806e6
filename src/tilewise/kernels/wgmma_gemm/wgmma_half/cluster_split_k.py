"""The tensor-core kernel over few rows or columns of P, which are a tile's columns: Pᵀ = NᵀMᵀ of few rows, M and N as
they are of few columns. Its configurations, and their time.

Every tile has blocks of its own, k cut over a cluster of them: parts are added up inside the launch (`cut.cuh`). Tiles
of 64 rows share a multiprocessor by threes, those of 128 have it for themselves, and more stages. Tiles of 64 x 64 are
for any number of rows and columns, as long as they are one wave.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import sqrt

from tilewise.core.problem import Problem
from tilewise.kernels.coefficients import Numbers, coefficients
from tilewise.kernels.shared.residency import in_waves, padded, rooms
from tilewise.kernels.wgmma_gemm.wgmma_half.routes import routes_of
from tilewise.kernels.wgmma_gemm.wgmma_half.single import EACH_PAIR, MOVES, PAIRS, PAIRS_FROM
from tilewise.kernels.wgmma_gemm.wgmma_half.table import Figures, given_of
from tilewise.kernels.wgmma_gemm.wgmma_half.tiles import FEW_INSIDE, SQUARE_INSIDE, TensorConfig, TensorTile
from tilewise.system.machine_code import INFINITE, Formula, Row, Rows

PARTS = (1, 2, 3, 4, 8)  # blocks of a cluster: of others few fit on a card, or their number was not measured
LEAST_PHASES = 2  # of a part of k
MOST_WAVES = 3
# Fitted to 624 configurations of about 250 products with few columns on an H200 (rms 13 %; the choice takes 2.3 %
# longer than the fastest in the mean, on the fitted data).
FIGURES: Numbers = coefficients("wgmma_half inside")
MOST_COLUMNS = FEW_INSIDE[-1].cols  # that one tile has
SQUARE, MOST_SQUARES = SQUARE_INSIDE.cols, 132  # tiles, of which two parts each are a wave
ROOM_FROM = 5  # where a row's rooms begin


def expected(row: Row, given: Row) -> float:
    """Waves of tiles, whose phases take as long as the copy engine needs for their lines; beside the bytes; then what
    comes before and after. `given` is what `single.expected` is given."""
    m, n, phases = int(given[0]), int(given[1]), int(given[2])
    rows, cols, parts, pair, transposed = int(row[0]), int(row[1]), int(row[2]), int(row[3]), int(row[4])
    at = PAIRS_FROM + EACH_PAIR * pair
    if pair >= given[4] or given[11] > 0.0 or parts * LEAST_PHASES > max(phases, LEAST_PHASES):
        return INFINITE
    few, length = m if transposed else n, n if transposed else m
    across = -(-few // cols) if cols == SQUARE else 1
    if few > cols * across or (cols > 8 and 2 * few <= cols) or n < 2:
        return INFINITE
    if m < 2 and (transposed == 0 or given[14] == 0.0):  # the GEMV kernels'; with an order of sums all rows are alike
        return INFINITE
    if given[at + 4] + given[at + 5] > 0.0:  # classes; packing
        return INFINITE
    tiles, held = -(-length // rows) * across, int(row[ROOM_FROM + int(row[ROOM_FROM])])
    if tiles // held >= MOST_WAVES or (cols == SQUARE and tiles > held):
        return INFINITE
    lines = rows * given[at + (1 if transposed else 0)]
    if given[15 if transposed else 16] > 0.0 and cols < SQUARE:
        lines += -(-few // 8) * FIGURES.strip_lines
    else:
        lines += cols * given[at + (0 if transposed else 1)]
    same = 0.0 if cols == SQUARE else min(tiles, held) * given[at + (0 if transposed else 1)]
    each, cells = -(-phases // parts), FIGURES.cell * rows * min(few, cols) / parts
    waiting = FIGURES.phase**4 + (same * FIGURES.same_line) ** 4
    work = in_waves(tiles, row, ROOM_FROM, each * 1.0, waiting, (lines * FIGURES.line) ** 4, FIGURES.block, cells)
    work = sqrt(sqrt(work**4 + given[at + 2])) + FIGURES.start + same * FIGURES.same_first
    if cols == SQUARE:
        work *= FIGURES.square_slow
    if parts > 1:
        work += FIGURES.meet + FIGURES.met * parts
    return work + given[at + 3]


@lru_cache(maxsize=4)
def table(units: int) -> tuple[tuple[tuple[TensorTile, int, int, bool], ...], Rows]:
    """(tile, parts of k, pair of routes, whether operands change places), and a row for each."""
    squares = product((SQUARE_INSIDE,), PARTS[1:], range(PAIRS), (False,))
    places = (*product(FEW_INSIDE, PARTS, range(PAIRS), (False, True)), *squares)
    made = []
    for tile, parts, pair, transposed in places:
        room = padded(rooms(units, parts, tile.resident("cut")))
        made.append((tile.rows, tile.cols, parts, pair, transposed, *room))
    return places, Rows(made)


def config_of(number: int, p: Problem, units: int) -> TensorConfig:
    tile, parts, pair, transposed = table(units)[0][number]
    return TensorConfig(tile, routes_of(p, pair), parts, inside=True, transposed=transposed)


def takes(p: Problem, f: Figures) -> bool:
    """One k is one line of N, which transposed would be as many lines of one element."""
    few = min(p.m, p.n) <= MOST_COLUMNS
    return p.k > 1 and not p.unrounded and (few or -(-p.m // SQUARE) * -(-p.n // SQUARE) <= MOST_SQUARES)


def passes(row: Row, given: Row) -> int:
    """One to move operands."""
    return int(given[PAIRS_FROM + EACH_PAIR * int(row[3]) + MOVES])


EXPECTED = Formula(expected, given_of, takes, passes)
