"""The configurations of `bulk_lines`, their expected time, and the fastest of them."""

from __future__ import annotations

from functools import lru_cache
from math import sqrt

from tilewise.core.machine import Machine
from tilewise.core.problem import Problem
from tilewise.kernels.by_configs import Table, tables_for
from tilewise.kernels.coefficients import coefficients
from tilewise.kernels.family import Searched
from tilewise.kernels.shared.layouts import along_columns, lead_of, line_alignment
from tilewise.kernels.shared.residency import UNIT_SHARED, UNITS, rooms
from tilewise.kernels.wgmma_gemm.bulk_lines import model
from tilewise.kernels.wgmma_gemm.bulk_lines.model import TILES, WARP, BulkConfig, pitch_of, region_of, share_of
from tilewise.system.machine_code import INFINITE, Formula, Row, Rows

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
ROWS, COLS, PRODUCERS, MOST_RESIDENT, RESIDENT, PARTS, NUMBER, ROOMS = range(8)
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
    down, across = max(1, -(-m // int(row[ROWS]))), max(1, -(-n // int(row[COLS])))
    items, chunks, steps = int(given[MEMBERS]) * down * across * parts, -(-k // depth), -(-k // int(given[STEP]))
    height, width = m / down, n / across
    warps = min(int(row[ROWS]) // WARP, -(-m // (down * WARP))) * min(int(row[COLS]) // WARP, -(-n // (across * WARP)))
    pieces = 0.0  # of a tile, that come in 16 bytes a thread
    if pitch_m != given[LEAD_M]:
        pieces += height * k * size / 16 + (height * chunks if given[M_ALONG] > 0.0 else k * 1.0)
    if pitch_n != given[LEAD_N]:
        pieces += width * k * size / 16 + (width * chunks if given[N_ALONG] > 0.0 else k * 1.0)
    of_m, of_n = 1.0, 1.0
    if given[BY_WORDS] == 0.0:
        of_m, of_n = 1.5 if given[M_ALONG] > 0.0 else 2.0, 1.5 if given[N_ALONG] > 0.0 else 2.0
    words, products = WARP / 4 * (of_m + of_n), WARP * WARP / 128  # of a step: of a thread, and of a warp
    cells = WARP * WARP / 32 * (ODD if given[ODD_P] > 0.0 and n > row[COLS] else 1.0)  # sums of a thread
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


DEPTHS, DEEPEST = 6, 1024  # of a stage that are tried: all of k, and halves of this
MOST_WHOLE = 2048  # of k in one stage
CUTS = (2, 3, 4, 6, 8)  # blocks of a cluster that k may be cut over
ALL_CUTS, MOST_CUTS = len(CUTS), 2  # of them that are looked at: those that leave the fewest multiprocessors idle
LEAST_CUT = 64  # of k that a block has, at least
FIXED = 128 + 16 * model.MOST_STAGES  # bytes of shared memory beside stages and sums


def cuts_behind(row: Row, items: int, k: int) -> int:
    """How many cuts of k into more parts than the row's there are; as many as can be where its own is none."""
    own, behind, going_on = 0, 0, 1
    for cut in range(ALL_CUTS):
        at = CUTS_FROM + 2 * cut
        parts = int(row[at])
        if k < LEAST_CUT * parts or items > row[at + 1]:
            going_on = 0
        if going_on and share_of(k, parts) * (parts - 1) < k:
            if parts == row[PARTS]:
                own = 1
            elif parts > row[PARTS]:
                behind += 1
    return behind if own else ALL_CUTS


def resident_of(row: Row, cuts: float, items: int, k: int) -> int:
    """Blocks that share a multiprocessor: the row's, or as many as hold one wave of a cut k; 0 where that is none."""
    if row[PARTS] == 1.0:
        return 0 if row[RESIDENT] > 1.0 and items <= UNITS else int(row[RESIDENT])
    if cuts_behind(row, items, k) >= cuts:
        return 0
    resident = 0
    for number in range(int(row[MOST_RESIDENT])):
        if resident == 0 and items <= row[ROOMS + number]:
            resident = number + 1
    return resident


def fastest(row: Row, given: Row) -> float:
    """Of a tile and its blocks on a multiprocessor, with the deepest stages of which two fit. (The fastest
    depth took 0.1 % less in the mean of 252 stacks.)"""
    m, k, n, size, parts = int(given[M]), int(given[K]), int(given[N]), int(given[SIZE]), int(row[PARTS])
    rows, cols = int(row[ROWS]), int(row[COLS])
    if (rows > 32 and m <= rows // 4) or (cols > 32 and n <= cols // 4):
        return INFINITE
    items = int(given[MEMBERS]) * max(1, -(-m // rows)) * max(1, -(-n // cols))
    resident = resident_of(row, given[CUTS_TRIED], items, k)
    if resident == 0:
        return INFINITE
    if parts > 1:
        k = share_of(k, parts)
    step, staged = int(given[STEP]), -(-(WARP * (WARP * size + 32) + 32) // 16) * 16
    room = UNIT_SHARED // resident - (1024 if resident > 1 else 0) - FIXED - staged * (rows // WARP) * (cols // WARP)
    if parts > 1 and rows * (cols + 4) * 4 > room:  # sums lie where the stages were
        return INFINITE
    m_along, n_along, whole = int(given[M_ALONG]), int(given[N_ALONG]), -(-k // step) * step
    depth, found, pitch_m, pitch_n = whole, 0, 0, 0
    for number in range(DEPTHS):
        if found == 0 and (depth <= MOST_WHOLE if number == 0 else depth < whole):
            deep = min(depth, k)
            held = -(-deep // step) * step
            length_m, length_n = deep if m_along else min(m, rows), deep if n_along else min(n, cols)
            pitch_m = pitch_of(int(given[LEAD_M]), length_m * size, given[NEAR_M], given, MORE_M)
            pitch_n = pitch_of(int(given[LEAD_N]), length_n * size, given[NEAR_N], given, MORE_N)
            stage = region_of(rows, size, m_along, pitch_m, held) + region_of(cols, size, n_along, pitch_n, held)
            if 2 * stage <= room:
                found = depth
        depth = DEEPEST // 2 if number == 0 else depth // 2
    if found == 0:
        return INFINITE
    return expected(row, given, k, found, resident, parts, pitch_m, pitch_n)


@lru_cache(maxsize=1)
def table() -> Rows:
    """In order of preference among equal expected times."""
    made = list[Row]()
    for number, tile in enumerate(TILES):
        cuts = [(parts, rooms(UNITS, parts, tile.resident)) for parts in CUTS]
        ends = [word for parts, room in cuts for word in (parts, room[-1])]
        for resident in dict.fromkeys((1, -(-tile.resident // 2), tile.resident)):  # more leave each less memory
            made.append((*tile, resident, 1, number, *[0] * MOST_ROOMS, *ends))
        for parts, room in cuts:
            held = (*room, *[room[-1]] * (MOST_ROOMS - len(room)))
            made.append((*tile, 0, parts, number, *held, *ends))
    return Rows(made)


# What a kind of elements on a card has: numbers, the coefficients, and for lines that are read by words or not, along k
# or across it: by their pitch over 128 whether its banks are not all the same ones, and what it grows by.
F_SIZE, F_STEP, F_UNITS, F_CUTS, F_FIGURES = range(5)
F_NEAR = F_FIGURES + 15


def figures_of(size: int, units: int, cuts: int) -> Row:
    """`cuts`: of k of each tile, at most."""
    f = coefficients("bulk_lines half" if size == 2 else "bulk_lines tf32")
    lying = [(model.Cores(size, 32 // size, words), along) for words in (False, True) for along in (False, True)]
    near = [model.near(pitch, along, cores) for cores, along in lying for pitch in range(0, 128, size)]
    more = [model.growth(pitch, along, cores) for cores, along in lying for pitch in range(0, 128, size)]
    return (size, 32 // size, units, cuts, *(getattr(f, name) for name in FIELDS), *near, *more)


def takes(p: Problem, f: Row) -> bool:
    return min(p.m, p.n) >= 1


def given_of(p: Problem, f: Row) -> Row:
    """A problem as numbers, in the order of their names."""
    size, least = int(f[F_SIZE]), 4
    of_m, of_n = line_alignment(p.layout_m, p.m, p.k, size), line_alignment(p.layout_n, p.k, p.n, size)
    words = 1 if size == 4 or (of_m >= least and of_n >= least) else 0
    along_m, along_n = 0 if along_columns(p.layout_m, p.m, p.k) else 1, 1 if along_columns(p.layout_n, p.k, p.n) else 0
    lead_m, lead_n = lead_of(p.layout_m, p.m, p.k) * size, lead_of(p.layout_n, p.k, p.n) * size
    pitches = 128 // size
    near_m, near_n = F_NEAR + (2 * words + along_m) * pitches, F_NEAR + (2 * words + along_n) * pitches
    more_m, more_n = near_m + 4 * pitches, near_n + 4 * pitches
    return (
        p.members, p.m, p.k, p.n, size, int(f[F_STEP]), words, along_m, along_n, lead_m, lead_n,
        line_alignment(p.layout_p, p.m, p.n, size) < least, p.least_bytes, f[F_UNITS],
        f[near_m + lead_m % 128 // size], f[near_n + lead_n % 128 // size], f[F_CUTS],
        *growths(f, more_m, lead_m % 16, size), *growths(f, more_n, lead_n % 16, size), *coefficients_in(f, F_FIGURES),
    )  # fmt: skip


def growths(f: Row, at: int, pitch: int, size: int) -> Row:
    """What pitches of `pitch` and 0, 16, … 112 bytes more, over 128, grow by."""
    return (
        f[at + pitch // size], f[at + (pitch + 16) // size], f[at + (pitch + 32) // size], f[at + (pitch + 48) // size],
        f[at + (pitch + 64) // size], f[at + (pitch + 80) // size], f[at + (pitch + 96) // size],
        f[at + (pitch + 112) // size],
    )  # fmt: skip


def coefficients_in(f: Row, at: int) -> Row:
    return (
        f[at], f[at + 1], f[at + 2], f[at + 3], f[at + 4], f[at + 5], f[at + 6], f[at + 7], f[at + 8], f[at + 9],
        f[at + 10], f[at + 11], f[at + 12], f[at + 13], f[at + 14],
    )  # fmt: skip


EXPECTED = Formula(fastest, given_of, takes)


def searched(p: Problem, machine: Machine, cuts: int) -> list[Searched]:
    """With so many cuts of k of each tile."""
    return [Searched(EXPECTED, table(), _figures(p.dtype.itemsize, machine.units, cuts), _config)]


_figures = lru_cache(maxsize=16)(figures_of)


def tables(p: Problem, machine: Machine, cuts: int = ALL_CUTS) -> list[Table]:
    return tables_for(searched(p, machine, cuts), p)


def _config(number: int, p: Problem) -> BulkConfig:
    """The configuration of a possible row."""
    row, g = table().rows[number], model.given_of(p)
    tile, parts = TILES[int(row[NUMBER])], int(row[PARTS])
    items = g.members * -(-g.m // tile.rows) * -(-g.n // tile.cols)
    resident, part = resident_of(row, ALL_CUTS * 1.0, items, g.k), model.cut_over(g, parts)
    whole = -(-part.k // g.cores.step) * g.cores.step
    depths = [whole] * (whole <= MOST_WHOLE) + [depth for depth in _halves() if depth < whole]
    made = (BulkConfig(tile, depth, resident, parts) for depth in depths)
    return next(config for config in made if model.memory_of(part, config) is not None)


@lru_cache(maxsize=1)
def _halves() -> tuple[int, ...]:
    return tuple(DEEPEST >> number for number in range(1, DEPTHS))
