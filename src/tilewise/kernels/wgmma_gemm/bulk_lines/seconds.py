"""Expected time of `bulk_lines`: the resources that a configuration uses, and the cost of each."""

from __future__ import annotations

from math import sqrt

from tilewise.system.machine_code import Row

# Fitted to 2,527 configurations of 943 products and stacks of halves and 396 of 196 of tf32 (rms 15 and 16 %; the
# choice takes 2 and 1 % longer than the fastest, in the mean, on the fitted data).
# The numbers that all rows share, then the coefficients:
(
    MEMBERS, M, K, N, SIZE, STEP, BY_WORDS, M_ALONG, N_ALONG, LEAD_M, LEAD_N, ODD_P, LEAST, UNITS_HELD, NEAR_M, NEAR_N,
    CUTS_TRIED, MORE_M,
) = range(18)  # fmt: skip
MORE_N = MORE_M + 8
FIGURES = MORE_N + 8
# A row: a tile, with so many blocks of a multiprocessor, or (0 there) with k over so many blocks of a cluster.
ROWS, COLS, WARPS_M, WARPS_N, PRODUCERS, MOST_RESIDENT, RESIDENT, PARTS, NUMBER, ROOMS = range(10)
MOST_ROOMS = 8
CUTS_FROM = ROOMS + MOST_ROOMS  # (blocks of a cluster, tiles of a wave of them at most) of every cut
ODD = 2.0  # times as long sums take that leave row by row, element by element


def rounds(items: int, room: int) -> float:
    """How often `room` places are taken; tiles of many rounds do not wait for one another."""
    return float(-(-items // room)) if items < 4 * room else items / room + 0.5


def expected(row: Row, given: Row, k: int, depth: int, resident: int, parts: int, pitch_m: int, pitch_n: int) -> float:
    """A block's tiles one after the other, or what a multiprocessor or the card has to do, whichever is more. `k`: of
    one block; `depth` of it a stage, whose lines lie so many bytes apart."""
    m, n, size, units, f = int(given[M]), int(given[N]), int(given[SIZE]), int(given[UNITS_HELD]), FIGURES
    warps_m, warps_n = int(row[WARPS_M]), int(row[WARPS_N])
    down, across = max(1, -(-m // int(row[ROWS]))), max(1, -(-n // int(row[COLS])))
    items, chunks, steps = int(given[MEMBERS]) * down * across * parts, -(-k // depth), -(-k // int(given[STEP]))
    rows, cols, height, width = int(row[ROWS]) // warps_m, int(row[COLS]) // warps_n, m / down, n / across
    warps = min(warps_m, -(-m // (down * rows))) * min(warps_n, -(-n // (across * cols)))  # that have any sums
    pieces = 0.0  # of a tile, that come in 16 bytes a thread
    if pitch_m != given[LEAD_M]:
        pieces += height * k * size / 16 + (height * chunks if given[M_ALONG] > 0.0 else k * 1.0)
    if pitch_n != given[LEAD_N]:
        pieces += width * k * size / 16 + (width * chunks if given[N_ALONG] > 0.0 else k * 1.0)
    of_m, of_n = 1.0, 1.0
    if given[BY_WORDS] == 0.0:
        of_m, of_n = 1.5 if given[M_ALONG] > 0.0 else 2.0, 1.5 if given[N_ALONG] > 0.0 else 2.0
    words, products = rows / 4 * of_m + cols / 4 * of_n, rows * cols / 128  # of a step: of a thread, and of a warp
    cells = rows * cols / 32 * (ODD if given[ODD_P] > 0.0 and n > row[COLS] else 1.0)  # sums of a thread
    moved = ((height + width) * k + height * width) * size  # bytes of a tile, that come and go
    block_rounds, tiles = rounds(items, units * resident), rounds(items, units)  # of a block, and of a multiprocessor
    reading = steps * words
    block = block_rounds * (
        given[f + ITEM] + given[f + CHUNK] * chunks + given[f + WORD] * (reading + steps * products)
        + given[f + EACH_STEP] * steps + given[f + CELL] * cells
    )  # fmt: skip
    copying = block_rounds * given[f + COPIED] * pieces / (32 * int(row[PRODUCERS]))
    unit = tiles * warps * (given[f + READ] * reading + given[f + STORED] * cells)
    multiplying = tiles * warps * given[f + PRODUCT] * steps * products
    moving = tiles * (given[f + BYTE] * moved + given[f + PIECE_COPIED] * pieces)
    memory = given[f + MEMORY] * given[LEAST]
    meeting = 0.0 if parts == 1 else given[f + CLUSTER] + given[f + PART] * parts
    busy = block**4 + copying**4 + unit**4 + multiplying**4 + moving**4 + memory**4
    return meeting + given[f + START] + sqrt(sqrt(busy))


FIELDS = (
    "start", "block", "chunk", "word", "step", "cell", "read", "stored", "byte", "piece", "copied", "memory_byte",
    "product", "meet", "met",
)  # fmt: skip
START, ITEM, CHUNK, WORD, EACH_STEP, CELL, READ, STORED, BYTE, PIECE_COPIED, COPIED, MEMORY, PRODUCT, CLUSTER, PART = (
    range(len(FIELDS))
)
