"""The configurations of `bulk_lines`, and the fastest of them."""

from __future__ import annotations

from functools import lru_cache

from tilewise.core.machine import Machine
from tilewise.core.problem import Problem
from tilewise.kernels.by_configs import Table
from tilewise.kernels.shared.residency import UNIT_SHARED, UNITS, rooms
from tilewise.kernels.wgmma_gemm.bulk_lines.model import (
    MOST_STAGES,
    TILES,
    BulkConfig,
    Given,
    cut_over,
    figures_of,
    given_of,
    memory_of,
    pitch_of,
    region_of,
    row_of_given,
    row_of_tile,
    share_of,
)
from tilewise.kernels.wgmma_gemm.bulk_lines.seconds import (
    COLS,
    CUTS_FROM,
    CUTS_TRIED,
    LEAD_M,
    LEAD_N,
    M_ALONG,
    MEMBERS,
    MORE_M,
    MORE_N,
    MOST_RESIDENT,
    MOST_ROOMS,
    N_ALONG,
    NEAR_M,
    NEAR_N,
    NUMBER,
    PARTS,
    RESIDENT,
    ROOMS,
    ROWS,
    SIZE,
    STEP,
    WARPS_M,
    WARPS_N,
    K,
    M,
    N,
    expected,
)
from tilewise.system.machine_code import INFINITE, Formula, Row, Rows

DEPTHS, DEEPEST = 6, 1024  # of a stage that are tried: all of k, and halves of this
MOST_WHOLE = 2048  # of k in one stage
CUTS = (2, 3, 4, 6, 8)  # blocks of a cluster that k may be cut over
ALL_CUTS, MOST_CUTS = len(CUTS), 2  # of them that are looked at: those that leave the fewest multiprocessors idle
LEAST_CUT = 64  # of k that a block has, at least
FIXED = 128 + 16 * MOST_STAGES  # bytes of shared memory beside stages and sums


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


def resident_of(row: Row, given: Row, items: int, k: int) -> int:
    """Blocks that share a multiprocessor: the row's, or as many as hold one wave of a cut k; 0 where that is none."""
    if row[PARTS] == 1.0:
        return 0 if row[RESIDENT] > 1.0 and items <= UNITS else int(row[RESIDENT])
    if cuts_behind(row, items, k) >= given[CUTS_TRIED]:
        return 0
    resident = 0
    for number in range(int(row[MOST_RESIDENT])):
        if resident == 0 and items <= row[ROOMS + number]:
            resident = number + 1
    return resident


@Formula
def fastest(row: Row, given: Row) -> float:
    """Of a tile and its blocks on a multiprocessor, with the deepest stages of which two fit. (The fastest
    depth took 0.1 % less in the mean of 252 stacks.)"""
    m, k, n, size, parts = int(given[M]), int(given[K]), int(given[N]), int(given[SIZE]), int(row[PARTS])
    rows, cols = int(row[ROWS]), int(row[COLS])
    if (rows > 32 and m <= rows // 4) or (cols > 32 and n <= cols // 4):
        return INFINITE
    items = int(given[MEMBERS]) * max(1, -(-m // rows)) * max(1, -(-n // cols))
    resident = resident_of(row, given, items, k)
    if resident == 0:
        return INFINITE
    if parts > 1:
        k = share_of(k, parts)
    warps_m, warps_n, step = int(row[WARPS_M]), int(row[WARPS_N]), int(given[STEP])
    staged = -(-(rows // warps_m * (cols // warps_n * size + 32) + 32) // 16) * 16
    room = UNIT_SHARED // resident - (1024 if resident > 1 else 0) - FIXED - staged * warps_m * warps_n
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
            made.append((*row_of_tile(tile), resident, 1, number, *[0] * MOST_ROOMS, *ends))
        for parts, room in cuts:
            held = (*room, *[room[-1]] * (MOST_ROOMS - len(room)))
            made.append((*row_of_tile(tile), 0, parts, number, *held, *ends))
    return Rows(made)


def tables(p: Problem, machine: Machine, cuts: int = ALL_CUTS) -> list[Table]:
    """With so many cuts of k of each tile."""
    given = given_of(p)
    numbers = row_of_given(given, figures_of(p), machine.units, cuts)
    return [Table(fastest, table(), numbers, lambda number: _config(table().rows[number], given, numbers))]


def _config(row: Row, g: Given, numbers: Row) -> BulkConfig:
    """The configuration of a possible row."""
    tile, parts = TILES[int(row[NUMBER])], int(row[PARTS])
    items = g.members * -(-g.m // tile.rows) * -(-g.n // tile.cols)
    resident, part = resident_of(row, numbers, items, g.k), cut_over(g, parts)
    whole = -(-part.k // g.cores.step) * g.cores.step
    depths = [whole] * (whole <= MOST_WHOLE) + [depth for depth in _halves() if depth < whole]
    made = (BulkConfig(tile, depth, resident, parts) for depth in depths)
    return next(config for config in made if memory_of(part, config) is not None)


@lru_cache(maxsize=1)
def _halves() -> tuple[int, ...]:
    return tuple(DEEPEST >> number for number in range(1, DEPTHS))
