"""Strips of M and N through shared memory: `direct` with one stage, for small products, and `buffered` with two.

A configuration: a tile, the groups of threads that split a strip's k, the blocks of a cluster that split all of k.
"""

from __future__ import annotations

import ctypes
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import Any, ClassVar, NamedTuple

from tilewise.algebra.semiring import Algebra
from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry, Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Launch
from tilewise.kernels.by_configs import Table, Tabled
from tilewise.kernels.shared.placed import Operands
from tilewise.kernels.shared.residency import MOST, UNIT_SHARED, crowded, in_waves, padded, rooms
from tilewise.kernels.shared.stack_launches import stack_launches
from tilewise.kernels.shared.steps import relative_slots
from tilewise.kernels.simt_gemm.text import render_strips
from tilewise.system.machine_code import INFINITE, Formula, Row, Rows

# If a launch's blocks take more than half of a card's capacity, the last blocks of the next launch start late. Seven
# products of 16x32 tiles with 3.3 to 4.6 blocks a multiprocessor took 0.9 to 2.4 µs longer than a model that fits those
# of 1 to 3 blocks within 0.2 µs, and those of 10 to 19 within 1.2 µs.
LATE_SECONDS = 1.8e-6


class StripTile(NamedTuple):
    """rows × cols of P a block, tm × tn of them a thread; `groups` of threads split the `deep` of k of a strip."""

    rows: int
    cols: int
    tm: int
    tn: int
    groups: int
    deep: int
    resident: int  # blocks of a multiprocessor, a limit of registers

    @property
    def threads(self) -> int:
        return self.rows // self.tm * (self.cols // self.tn) * self.groups

    def shared_bytes(self, size: int, stages: int) -> int:
        """For the strips, and then for the groups' sums, in elements of `size` bytes."""
        strips = stages * self.deep * (self.rows + self.cols + 2 * (16 // size))
        return size * max(strips, self.groups * self.rows * self.cols)


@dataclass(frozen=True)
class StripConfig:
    """A tile, and the blocks of a cluster that split k."""

    tile: StripTile
    cluster: int

    def spec(self) -> str:
        return f"{self.tile.rows}x{self.tile.cols} g{self.tile.groups} c{self.cluster}"

    def piece(self, k: int) -> int:
        """The k of a block of a cluster."""
        return math.ceil(k / self.cluster)


@lru_cache(maxsize=256)
def rate_of(algebra: Algebra, machine: Machine) -> float:
    """Steps a second of the whole card."""
    wide = "float64" if algebra.partial.name == "float64" else "float32"
    return machine.step_rate(wide) / relative_slots(algebra, machine)


ROOMS = 14  # index of the rooms in a row


@Formula
def expected(row: Row, given: Row) -> float:
    """Strips one after the other, each as long as one block alone takes or all of a unit's together; or the bytes from
    memory, or those from the L2; and what a launch takes anyway. Two limits that are equally near hinder each other."""
    m, k, n, members, units = int(given[0]), int(given[1]), int(given[2]), int(given[3]), int(given[4])
    rows, cols, depth, cluster = int(row[1]), int(row[2]), int(row[3]), int(row[11])
    if k <= int(row[0]):
        return INFINITE
    tiles, piece = members * -(-m // rows) * -(-n // cols), -(-k // cluster)
    deep = min(piece, depth)
    crowd = crowded(tiles * cluster, units, given[5])
    alone, busy = (row[4] + row[5] * deep) ** 4, deep**4 * (row[6] ** 4 + (row[7] * crowd) ** 4)
    work = in_waves(tiles, row, ROOMS, -(-piece // depth) * 1.0, alone, busy, row[8], row[9])
    read = given[7] * tiles * (rows + cols)
    if tiles > int(row[12]) and tiles <= int(row[13]):
        work += LATE_SECONDS
    return row[10] + sqrt(sqrt(work**4 + given[6] + read**4)) + given[8]


class Times(NamedTuple):
    """The numbers of a configuration's row that differ between the two kernels."""

    least_k: int  # beyond which its blocks have enough
    strip: float  # seconds until one is there,
    of_k: float  # and of each k of it, where a block has a unit to itself
    share: float  # of the plain cores' rate,
    other: float = 1.0  # and of that, over other semirings than plus_times
    late: tuple[int, int] = (0, 0)  # tiles: more than these, and no more than those, delay the next launch


class Strips(Tabled):
    """Base of direct and buffered: the formula, its table, the launches."""

    stages: ClassVar[int]
    own_shared: ClassVar[int] = 0  # bytes that a block takes beside its own

    @abstractmethod
    def every(self, size: int, machine: Machine) -> tuple[StripConfig, ...]:
        """All configurations for partial sums of `size` bytes."""

    @abstractmethod
    def figures(self, algebra: Algebra) -> Any:
        """Its coefficients."""

    @abstractmethod
    def times(self, config: StripConfig, algebra: Algebra, machine: Machine, slower: float) -> Times: ...

    def slower(self, problem: Problem) -> float:
        """The factor of the steps' time over their nominal rate."""
        return 1.0

    @lru_cache(maxsize=64)  # noqa: B019  a family lives as long as the process
    def table(self, algebra: Algebra, machine: Machine, slower: float = 1.0) -> tuple[tuple[StripConfig, ...], Rows]:
        """Every configuration, with what its seconds are computed from: k up to which its blocks would have too little;
        its sides and the depth of a strip; seconds until that is there, and of each k of it where a block has a unit to
        itself; of each k on the cores of a unit that has many, and on its way into shared memory; of a block beside its
        strips, and of its stores; of a launch; blocks of a cluster; from how many tiles on the next launch is late, and
        up to how many; rooms."""
        size, figures, rows = algebra.partial.itemsize, self.figures(algebra), list[tuple[float, ...]]()
        configs = self.every(size, machine)
        for config in configs:
            tile, cluster, own = config.tile, config.cluster, self.times(config, algebra, machine, slower)
            shared = UNIT_SHARED // (tile.shared_bytes(size, self.stages) + self.own_shared)
            held = max(1, min(machine.resident_threads // tile.threads, tile.resident, shared, MOST))
            rate = rate_of(algebra, machine) / slower / machine.units * own.share * own.other
            cells = tile.rows * tile.cols
            meeting = figures.meet + figures.met * cluster if cluster > 1 else 0.0
            loads = (tile.rows + tile.cols) * algebra.element.itemsize / figures.unit
            rows.append((
                own.least_k, tile.rows, tile.cols, tile.deep, own.strip, own.of_k, cells / rate, loads, figures.block,
                figures.cell * cells, figures.start + meeting, cluster, *own.late,
                *padded(rooms(machine.units, cluster, held)),
            ))  # fmt: skip
        return configs, Rows(rows)

    def given(self, p: Problem, machine: Machine) -> Row:
        """What all rows share."""
        f, size = self.figures(p.algebra), p.dtype.itemsize
        memory = f.reading * p.least_bytes / machine.bandwidth
        storing = f.storing * p.members * p.m * p.n * size / machine.bandwidth
        from_l2 = f.from_l2 * p.k * size / machine.bandwidth
        return p.m, p.k, p.n, p.members, machine.units, f.crowd, memory**4, from_l2, storing

    def tables(self, problem: Problem, machine: Machine) -> list[Table]:
        every, rows = self.table(problem.algebra, machine, self.slower(problem))
        return [Table(expected, rows, self.given(problem, machine), every.__getitem__)]

    def geometry(self, problem: Problem, machine: Machine, config: StripConfig) -> Geometry:
        tile, size = config.tile, problem.algebra.partial.itemsize
        return Geometry((tile.threads, 1), tile.rows, tile.cols, tile.deep, tile.shared_bytes(size, self.stages))

    def tiles(self, problem: Problem, machine: Machine, config: StripConfig) -> str:
        tile = config.tile
        down, across = math.ceil(problem.m / tile.rows), math.ceil(problem.n / tile.cols)
        return f"{down}x{across} tiles of {tile.rows}x{tile.cols}"

    def _launches(
        self, plan: Plan, given: Operands, along_k: tuple[bool, bool] | None, lies: Sequence[Any], shared: int
    ) -> list[Launch]:
        """`lies`: the arguments for the operands' layouts."""
        p, config, P = plan.problem, plan.config, given.P.layout
        assert isinstance(config, StripConfig)
        tile, across = config.tile, math.ceil(p.n / config.tile.cols)
        source = render_strips.key(p.algebra, tile, self.stages, along_k)
        rest = (int(abs(P.row) < abs(P.col)), across, config.piece(p.k), p.accumulate)
        own = (*lies, *map(ctypes.c_int, rest))
        blocks = math.ceil(p.m / tile.rows) * across * config.cluster
        return stack_launches(
            p, (given.M, given.N, given.P), source, self.name, blocks, tile.threads, own, shared, config.cluster
        )
