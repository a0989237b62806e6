"""Expected time of the plain kernels: a row for every tile, packing and split of k, one formula for all rows."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from tilewise.kernels.shared.triangle import tiles_of
from tilewise.kernels.simt_gemm.skinny import FEW
from tilewise.kernels.simt_gemm.tiled.tiles import PlainTile
from tilewise.system.machine_code import INFINITE, Row, Rows

START_SECONDS = 4e-6
COMBINE_SECONDS = 3e-6  # a second launch
MAX_PIECES = 256  # of k
ALONE = 0.45  # time of a block alone on a multiprocessor, at least, relative to a full one's
TAIL_PIECES = 16  # of k, of one of the last tiles, at most
MOST_DOUBLINGS = 8  # of the pieces of k: MAX_PIECES
ONE_WAVE = MOST_DOUBLINGS + 1
PACKINGS = 4  # each operand packed or not
PACKINGS_FROM, EACH_PACKING = 17, 4  # what is given of each of them
FULL_POWER = 0.4  # share of a tail's saving that remains at the card's power limit
PIECE_SECONDS = 3e-6  # a block's start, and storing its sums
IDLE_READING = 2.0  # bandwidth of multiprocessors without a tile, relative to their share of the card


class Cuts(NamedTuple):
    """Every configuration of some tiles: (tile's number, packing, doublings of the pieces of k, pieces of a tail after
    the first), and its row. `ONE_WAVE`: as many pieces as fill the card once."""

    tiles: tuple[PlainTile, ...]
    configs: tuple[tuple[int, int, int, int], ...]
    rows: Rows


@lru_cache(maxsize=64)
def cuts(tiles: tuple[PlainTile, ...], whole_k: bool = False) -> Cuts:
    """`whole_k`: k in one piece."""
    configs, rows = list[tuple[int, int, int, int]](), list[tuple[float, ...]]()
    for number, tile in enumerate(tiles):
        for packing in range(PACKINGS):
            tails = range(1, TAIL_PIECES) if tile.resident == 1 else ()
            splits = (*((0, n) for n in tails), *((d, 0) for d in range(1, ONE_WAVE + 1)))
            for doublings, others in ((0, 0), *(() if whole_k else splits)):
                configs.append((number, packing, doublings, others))
                rows.append((tile.rows, tile.cols, tile.depth, tile.resident, tile.share, packing, doublings, others))
    return Cuts(tiles, tuple(configs), Rows(rows))


def pieces_of(doublings: int, tiles: int, slots: int, phases: int) -> int:
    """Pieces of k after so many doublings, two waves at most, so that planes of sums stay small; 0 where tiles fill the
    card, or k is too short."""
    pieces = 1
    if doublings > 0:
        if not tiles or tiles >= slots:
            return 0
        most = min(MAX_PIECES, max(1, phases) // 4)
        for _ in range(min(doublings, MOST_DOUBLINGS)):
            if tiles * pieces * 2 <= 2 * slots and pieces * 2 <= most:
                pieces = pieces * 2
            elif doublings < ONE_WAVE:
                return 0
        if doublings == ONE_WAVE:
            if pieces == 1 or slots // tiles > pieces:
                return 0
            pieces = slots // tiles
    return pieces


def covered(extent: int, side: int, thin: float) -> int:
    """Rows or columns of P that tiles cover: without a rest so thin that its tiles would be nearly empty."""
    return extent - extent % side if thin > 0.0 and extent % side <= FEW else extent


def expected(row: Row, given: Row) -> float:
    """The packing before, the multiprocessors' blocks one after the other, the planes and the thin edges after."""
    m, n, words, members, units = int(given[0]), int(given[1]), int(given[2]), int(given[3]), int(given[4])
    unit_rate, slots_of_step, per_word, bandwidth, memory = given[5], given[6], given[7], given[8], given[9]
    planes, thin_m, thin_n, may_tail, itemsize = given[10], given[11], given[12], given[13], given[14]
    high, wide, depth, resident, packing = int(row[0]), int(row[1]), int(row[2]), int(row[3]), int(row[5])
    doublings, others = int(row[6]), int(row[7])
    if packing >= given[16]:
        return INFINITE
    rows, cols, edges = covered(m, high, thin_m), covered(n, wide, thin_n), START_SECONDS
    if rows < m:
        edges = edges + thin_m
    if cols < n:
        edges = edges + thin_n
    tiles = tiles_of(rows, cols, high, wide, int(given[15])) * members
    slots, phases = units * resident, -(-words // depth)
    pieces = pieces_of(doublings, tiles, slots, phases)
    if not pieces:
        return INFINITE
    each = max(1, -(-phases // pieces)) * depth  # words of k, whole phases
    full, rest = tiles * pieces // slots, tiles * pieces % slots
    # a multiprocessor with one block of two is not half as fast, and no block runs at the whole rate alone
    rounds_of_blocks = float(full * resident)
    if rest:
        rounds_of_blocks = full * resident + max(-(-rest // units), ALONE * resident)
    reading = memory * (1.1 - 0.1 * min(1.0, tiles * pieces / slots))  # few blocks read slower
    after = 0.0
    if pieces > 1:
        after = members * COMBINE_SECONDS + (members - 1) * START_SECONDS + pieces * planes
    rate = unit_rate / slots_of_step * row[4]  # steps a second of a multiprocessor
    slower = given[PACKINGS_FROM + EACH_PACKING * packing + 1]
    if high == FEW:  # a wide tile for few rows has little to do beside its copies, and these take longer
        slower = slower * slower * slower
    wave = row[0] * row[1] * per_word / rate * min(words, each) * slower
    idle = 0  # multiprocessors beside the last tiles
    if resident == 1 and tiles > units:
        idle = -tiles % units
    hidden = min(edges - START_SECONDS, IDLE_READING * idle / units * wave)
    whole = (
        given[PACKINGS_FROM + EACH_PACKING * packing] + max(rounds_of_blocks * wave, reading) + after + edges - hidden
    )
    if not others:
        return whole
    if not idle or not may_tail:
        return INFINITE
    last = tiles % units
    rounds = -(-last * others // idle)  # of pieces on a multiprocessor without a first one
    first = -(-phases * rounds // (rounds + others))
    other = max(1, -(-(phases - first) // others))
    in_all = 1 + -(-(phases - first) // other)
    gathered = (2 * in_all + 1) * last * high * wide * itemsize / bandwidth
    longest = max(first, rounds * other) / phases * wave + rounds * PIECE_SECONDS
    saved = wave - longest - gathered - COMBINE_SECONDS
    if slots_of_step <= 1.0:
        saved = saved * FULL_POWER
    if saved > max(hidden, 0.01 * whole):
        return whole + hidden - saved
    return INFINITE
