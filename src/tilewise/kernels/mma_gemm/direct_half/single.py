"""How long `direct_half` is expected to take over one product: a formula for every tile and cluster."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import product
from math import sqrt

from tilewise.core.machine import Machine, arch_number
from tilewise.core.problem import Problem
from tilewise.kernels.by_configs import Table
from tilewise.kernels.coefficients import Numbers, coefficients
from tilewise.kernels.mma_gemm.direct_half.model import DEPTH, TILES, HalfTile
from tilewise.kernels.shared.residency import busiest, padded, rooms
from tilewise.system.machine_code import INFINITE, Formula, Row, Rows

MOST_BLOCKS = 8  # of a cluster
LEAST_PHASES = 2  # of a part of k
# Fitted to the configurations of about 900 random products on an H200 (median error 8 %; the choice takes 5 % longer
# than the fastest configuration, in the mean).
FIGURES: Numbers = coefficients("direct_half")


@Formula
def expected(row: Row, given: Row) -> float:
    """Waves of blocks, each as long as its phases one after the other, or a multiprocessor's loads or products; beside
    the bytes."""
    m, n, phases = int(given[0]), int(given[1]), int(given[2])
    rows, cols, threads, parts = int(row[0]), int(row[1]), int(row[2]), int(row[3])
    if parts * LEAST_PHASES > max(phases, LEAST_PHASES):
        return INFINITE
    if parts > 1 and (row[4] == 0.0 or given[3] == 0.0):  # sums do not fit where the phases were; no clusters
        return INFINITE
    tiles, room = -(-m // rows) * -(-n // cols), int(row[ROOMS + int(row[ROOMS])])
    together, waves = busiest(tiles, row, ROOMS), tiles / room + 0.5
    if tiles < 4 * room:
        waves = -(-tiles // room) * 1.0
    loads = together * (min(m, rows) + min(n, cols)) * given[4]
    products = together * rows * cols * given[5]
    alone = FIGURES.load_chunk * (rows + cols) * 8 / threads
    phase = sqrt(sqrt(alone**4 + loads**4 + products**4))
    each = (-(-phases // parts) - 1) * phase + FIGURES.block + FIGURES.other_block * (together - 1)
    each += FIGURES.cell * together * rows * cols / parts
    work = FIGURES.start + sqrt(sqrt((waves * each) ** 4 + given[6]))
    return work + (FIGURES.meet + FIGURES.met_cell * rows * cols if parts > 1 else 0.0)


ROOMS = 5  # index of the rooms in a row


@lru_cache(maxsize=16)
def table(units: int) -> tuple[tuple[HalfTile, ...], Rows]:
    configs = [replace(tile, cluster=parts) for tile, parts in product(TILES, range(1, MOST_BLOCKS + 1))]
    rows = [
        (t.rows, t.cols, t.threads, t.cluster, t.takes_cluster, *padded(rooms(units, t.cluster, t.resident)))
        for t in configs
    ]
    return tuple(configs), Rows(rows)


def given_of(p: Problem, machine: Machine) -> Row:
    deep = min(p.k, DEPTH)
    rate = machine.tensor_rate(p.dtype.name) / machine.units * FIGURES.share
    passing = p.least_bytes / (machine.bandwidth * FIGURES.memory)
    return (
        p.m, p.n, max(1, -(-p.k // DEPTH)), arch_number(machine.arch) >= 90, 2 * deep / FIGURES.unit,
        16 * -(-deep // 16) / rate, passing**4,
    )  # fmt: skip


def tables(p: Problem, machine: Machine) -> list[Table]:
    configs, rows = table(machine.units)
    return [Table(expected, rows, given_of(p, machine), configs.__getitem__)]
