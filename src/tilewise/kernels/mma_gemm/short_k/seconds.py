"""How long `short_k` is expected to take: a formula for everything a warp may hold, for both numbers of waves."""

from __future__ import annotations

from functools import lru_cache
from math import sqrt
from typing import NamedTuple

from tilewise.core.machine import Machine
from tilewise.core.problem import Problem
from tilewise.kernels.mma_gemm.short_k import model
from tilewise.kernels.mma_gemm.short_k.model import HELD, READ_BYTES, ROWS, SECTOR, WARPS, WAVES, ShortConfig
from tilewise.system.machine_code import INFINITE, Formula, Row, Rows

APART = 1.6  # times as long loads of M take where its rows lie side by side, and those of a class apart
IN_L2, BEYOND_L2 = 20e6, 60e6  # bytes of P: all that is stored stays there, and hardly any of it


class Figures(NamedTuple):
    """Seconds, but for shares of the bandwidth's own time: fitted to 960 ways of 56 random products on an H200 (half of
    them 6 % off or less)."""

    start: float  # of a launch
    late: float  # where its blocks take more than half of the card's room, and the next one waits for that
    column_load: float  # of a warp alone, for each load of its columns,
    row_load: float  # and of 16 rows,
    rows: float  # for 16 rows,
    row_store: float  # and for each store of them
    columns: float  # of a multiprocessor: for a warp's load of columns,
    loads: float  # of rows,
    group: float  # for 16 rows of a warp,
    products: float  # a product of fragments,
    stores: float  # and a store
    in_l2: float  # writing P that L2 holds,
    beyond: float  # and that it does not
    turn: float  # turning an operand or both,
    transposed: float  # and each byte of them


FIGURES = {  # by bytes of an element
    2: Figures(
        1.61e-6, 0.56e-6, 28.7e-9, 59.4e-9, 2.8e-9, 67.7e-9, 5.54e-9, 2.21e-9, 11.2e-9, 2.01e-9, 3.36e-9, 2.05, 1.62,
        1.59e-6, 2.54e-12,
    ),
    4: Figures(
        2.28e-6, 0.28e-6, 1.6e-9, 37.7e-9, 39.9e-9, 57.6e-9, 4.03e-9, 3.09e-9, 0.8e-9, 3.93e-9, 0.13e-9, 1.41, 1.13,
        1.30e-6, 1.73e-12,
    ),
}  # fmt: skip


@Formula
def expected(row: Row, given: Row) -> float:
    """A launch, and the longest of: one warp's loads, products and stores one after the other; those of all warps of a
    multiprocessor; writing P. Limits that are equally near hinder each other."""
    m, n, deep, units, classes = int(given[0]), int(given[1]), int(given[2]), int(given[3]), int(given[4])
    cols, steps, resident, waves = int(row[0]), int(row[1]), int(row[2]), row[3]
    if deep > steps or (row[4] > 0.0 and given[8] == 0.0):
        return INFINITE
    across = WARPS if n > 2 * cols else 1
    strips = -(-(n + int(given[5]) - 1) // (across * cols)) * across
    rows = -(-m // classes)  # of each class
    groups = -(-rows // ROWS)
    wanted = waves * resident * WARPS * units / (strips * classes)
    each = min(groups, int(wanted) + 1)
    rounds = -(-groups // each)
    warps = strips * classes * -(-groups // rounds)
    of_m = 2 * steps * (1.0 if row[4] > 0.0 else given[6])
    of_n = cols // 8 * steps * (1.0 if row[4] > 0.0 else given[7])
    stores = cols / given[5]
    alone = row[7] * of_n + rounds * (row[9] + row[8] * of_m + row[10] * stores)
    busy = warps / units * row[11] * of_n
    busy += -(-strips * groups * classes // units) * (
        row[13] + row[12] * of_m + row[14] * (cols // 8) * deep + row[15] * stores
    )
    work = row[5] + sqrt(sqrt(alone**4 + busy**4 + given[9]))
    if warps > resident * WARPS * units // 2:
        work += row[6]
    return work + (row[16] + row[17] * given[8] if row[4] > 0.0 else 0.0)


@lru_cache(maxsize=8)
def _table(size: int) -> tuple[tuple[tuple[model.Held, float, bool], ...], Rows]:
    configs = tuple((held, waves, transposed) for transposed in (False, True) for held in HELD[size] for waves in WAVES)
    f = FIGURES[size]
    rows = [
        (
            *(held.cols, held.steps, held.resident, waves, float(transposed), f.start, f.late),
            *(f.column_load, f.row_load, f.rows, f.row_store, f.columns, f.loads, f.group, f.products, f.stores),
            *(f.turn, f.transposed),
        )
        for held, waves, transposed in configs
    ]
    return configs, Rows(rows)


def _given(p: Problem, machine: Machine) -> Row:
    size = p.dtype.itemsize
    f, slow, stored = FIGURES[size], model.slow_sides(p), p.m * p.n * size
    out = min(1.0, max(0.0, (stored - IN_L2) / (BEYOND_L2 - IN_L2)))
    writing = p.least_bytes / machine.bandwidth * (f.in_l2 * (1 - out) + f.beyond * out)
    bytes_transposed = sum([(p.m if side == "M" else p.n) * p.k * size for side in slow])
    loads = [float(READ_BYTES // model.width_of(p, side)) for side in "MN"]
    if size == 2 and p.layout_m.col != 1 and model.classes_of(p) > 2:
        loads[0] *= APART
    return (
        p.m, p.n, -(-p.k // model.step_of(p.dtype)), machine.units, model.classes_of(p), SECTOR // size,
        *loads, bytes_transposed, writing**4,
    )  # fmt: skip


@lru_cache(maxsize=64)
def best_config(problem: Problem, machine: Machine) -> tuple[float, ShortConfig]:
    """The way with the least expected seconds."""
    configs, rows = _table(problem.dtype.itemsize)
    number, least = expected.least(rows, _given(problem, machine), problem.largest)
    held, waves, transposed = configs[number]
    return least, ShortConfig(held, waves, model.slow_sides(problem) if transposed else "")


def seconds(config: ShortConfig, problem: Problem, machine: Machine) -> float:
    configs, rows = _table(problem.dtype.itemsize)
    return expected(
        rows.rows[configs.index((config.held, config.waves, bool(config.transposed)))], _given(problem, machine)
    )


def least_seconds(problem: Problem, machine: Machine) -> float:
    """What no way goes below: a launch, and a warp's first loads or writing P."""
    p, f = problem, FIGURES[problem.dtype.itemsize]
    return 0.999 * (f.start + max(f.rows + f.row_load, min(f.in_l2, f.beyond) * p.least_bytes / machine.bandwidth))
