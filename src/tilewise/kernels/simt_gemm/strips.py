"""Strips of M and N through shared memory: `direct` with one stage, for small products, and `buffered` with two.

A configuration: a tile, the groups of threads that split a strip's k, the blocks of a cluster that split all of k.
"""

from __future__ import annotations

import ctypes
import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import sqrt
from typing import Any, ClassVar, NamedTuple

from tilewise.algebra.builtin import is_plus_times
from tilewise.algebra.semiring import Algebra
from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry, Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Launch, Scratch
from tilewise.kernels.by_configs import Tabled
from tilewise.kernels.capabilities import Capabilities, Condition
from tilewise.kernels.coefficients import coefficients
from tilewise.kernels.family import Searched, numbered
from tilewise.kernels.shared.placed import Operands
from tilewise.kernels.shared.residency import MOST, UNIT_SHARED, clusters_of, crowded, in_waves, padded, rooms
from tilewise.kernels.shared.stack_launches import along_k, stack_launches, strides
from tilewise.kernels.shared.steps import relative_slots, step_slots
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


class Figures(NamedTuple):
    """What times depend on besides sizes: a kind of elements on a card."""

    units: int  # multiprocessors
    bandwidth: float  # bytes a second
    size: int  # bytes of an element
    crowd: float  # exponent: how L2's time grows with the blocks that load
    reading: float  # factors of the time that the bandwidth makes: of all bytes,
    storing: float  # and of P's,
    from_l2: float  # and of a block's loads
    slow: bool  # of problems with sides from `slow_from` on, whose steps are slower than nominal; else of the others
    slow_from: float
    contiguous: bool  # M and N have contiguous rows or columns


def takes(p: Problem, f: Figures) -> bool:
    return (min(p.m, p.k, p.n) >= f.slow_from) == f.slow and (not f.contiguous or is_contiguous(p))


def given_of(p: Problem, f: Figures) -> Row:
    """What all rows share."""
    memory = f.reading * p.least_bytes / f.bandwidth
    storing = f.storing * p.members * p.m * p.n * f.size / f.bandwidth
    from_l2 = f.from_l2 * p.k * f.size / f.bandwidth
    return p.m, p.k, p.n, p.members, f.units, f.crowd, memory**4, from_l2, storing


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


EXPECTED = Formula(expected, given_of, takes)


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

    def slower(self, problem: Problem) -> tuple[float, float]:
        """The factor of the steps' time over their nominal rate, and the least side of a problem that has it."""
        return 1.0, math.inf

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

    def searched(self, problem: Problem, machine: Machine) -> list[Searched]:
        algebra, made = problem.algebra, list[Searched]()
        factor, slow_from = self.slower(problem)
        f, size = self.figures(algebra), problem.dtype.itemsize
        for slow in (False, True)[: 1 + (slow_from < math.inf)]:
            every, rows = self.table(algebra, machine, factor if slow else 1.0)
            figures = Figures(
                machine.units, machine.bandwidth, size, f.crowd, f.reading, f.storing, f.from_l2, slow, slow_from,
                CONTIGUOUS in self.can.problem,
            )  # fmt: skip
            made.append(Searched(EXPECTED, rows, figures, numbered(every)))
        return made

    def geometry(self, problem: Problem, machine: Machine, config: StripConfig) -> Geometry:
        tile, size = config.tile, problem.algebra.partial.itemsize
        return Geometry((tile.threads, 1), tile.rows, tile.cols, tile.deep, tile.shared_bytes(size, self.stages))

    def tiles(self, problem: Problem, machine: Machine, config: StripConfig) -> str:
        tile = config.tile
        down, across = math.ceil(problem.m / tile.rows), math.ceil(problem.n / tile.cols)
        return f"{down}x{across} tiles of {tile.rows}x{tile.cols}"

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        tiles = dict.fromkeys(config.tile for config in self.every(problem.algebra.partial.itemsize, machine))
        lies = product((False, True), (False, True)) if self.stages > 1 else (None,)
        return (render_strips.key(problem.algebra, tile, lie, self.stages) for lie, tile in product(lies, tiles))

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
        """P has any strides, and with one stage M and N, too; with two they have contiguous rows or columns."""
        p, config, P, lies = plan.problem, plan.config, given.P.layout, None
        assert isinstance(config, StripConfig)
        tile, across, shared = config.tile, math.ceil(p.n / config.tile.cols), 0
        own = [*strides(given), *map(ctypes.c_int, along_k(given))]
        if self.stages > 1:
            m, n, shared = given.M.layout, given.N.layout, tile.shared_bytes(4, self.stages)
            of_m, of_n = lead_of(m.row, m.col, p.m, p.k), lead_of(n.col, n.row, p.n, p.k)
            lies = of_m[0], of_n[0]
            own = [ctypes.c_longlong(s) for s in (of_m[1], of_n[1], P.row, P.col)]
        own += map(ctypes.c_int, (int(abs(P.row) < abs(P.col)), across, config.piece(p.k), p.accumulate))
        source, blocks = render_strips.key(p.algebra, tile, lies, self.stages), math.ceil(p.m / tile.rows) * across
        return stack_launches(
            p, (given.M, given.N, given.P), source, self.name, blocks * config.cluster, tile.threads, own, shared,
            config.cluster,
        )  # fmt: skip


DIRECT_TILES = ((16, 32, 2, 2), (32, 32, 2, 4), (64, 32, 4, 4), (8, 128, 2, 4), (128, 8, 4, 2))
SHARED_BYTES = 40 * 1024  # of a block, for its strips and then for its sums
BYTES_AT_ONCE = 144  # loads in flight of a thread
GROUPS = (4, 2)  # of threads that share a strip's k,
LARGE = 2048  # unless their tile has so many cells: of 82,000 drawn products 19 would take that
RESIDENT_REGISTERS = 65536 // 88  # threads that a unit's registers allow


def tile_of(sides: tuple[int, int, int, int], groups: int, size: int) -> StripTile | None:
    """The longest strip that fits shared memory and the loads in flight; None where threads would have unequal loads,
    or the groups' sums do not fit."""
    rows, cols, tm, tn = sides
    threads, deep = rows // tm * (cols // tn) * groups, 256
    loads = BYTES_AT_ONCE // max(4, size) * threads
    while deep * (rows + cols) > loads or deep * (rows + cols + 2 * (16 // size)) * size > SHARED_BYTES:
        deep //= 2
    even = min(rows, cols) * deep % threads == 0
    fits = groups * rows * cols * size <= SHARED_BYTES
    return StripTile(*sides, groups, deep, RESIDENT_REGISTERS // threads) if even and fits else None


@lru_cache(maxsize=64)
def every_config(size: int, clusters: tuple[int, ...]) -> tuple[StripConfig, ...]:
    """Every configuration: one group for a short k, as many as fit for a longer one, alone and in clusters."""
    made: list[StripConfig] = []
    for sides in DIRECT_TILES:
        one = tile_of(sides, 1, size)
        if one is not None:
            made.append(StripConfig(one, 1))
        if sides[0] * sides[1] < LARGE:
            several = next((t for groups in GROUPS if (t := tile_of(sides, groups, size))), one)
            if several is not None:
                made += [StripConfig(several, cluster) for cluster in clusters if several.groups * cluster > 1]
    return tuple(made)


class Direct(Strips):
    """Products too small for a pipeline, in one launch, for any algebra, layout and stack. Fitted
    to the configurations of 1,200 random products (rms 11 %; held out, the choice 2 % above the best in the mean)."""

    name = "direct"
    kernels: ClassVar = {
        name: "whole strips of M and N are loaded into shared memory: small products, any layout, one launch"
    }
    stages = 1
    can = Capabilities(  # strips of wider sums do not fit, and beyond these steps pipelines always win
        one_dtype=True, partial_bytes=(1, 8), steps=2**29, stores_anywhere=True, precisions=("ieee",)
    )

    def every(self, size: int, machine: Machine) -> tuple[StripConfig, ...]:
        return every_config(size, clusters_of(machine))

    def figures(self, algebra: Algebra) -> Any:
        size = 8 if algebra.partial.itemsize == 8 else min(8, algebra.element.itemsize)  # complex128 to truth values
        return coefficients(f"direct {max(2, size)}")

    def times(self, config: StripConfig, algebra: Algebra, machine: Machine, slower: float) -> Times:
        f, tile, cluster = self.figures(algebra), config.tile, config.cluster
        room = f.room * machine.units
        smallest = config == every_config(algebra.partial.itemsize, (1,))[0]
        return Times(
            tile.deep * cluster // 2 if cluster > 1 else -1, f.strip[tile.groups], f.of_k[tile.groups],
            f.shares[f"{tile.rows}x{tile.cols}"], late=(room // 2, room) if smallest else (0, 0),
        )  # fmt: skip


BUFFERED_TILES = (  # of 19 that were timed; without the others random stacks take 0.1 % longer in the mean
    StripTile(16, 32, 4, 4, 4, 32, 6),
    StripTile(16, 64, 4, 4, 2, 32, 6),
    StripTile(64, 16, 4, 4, 2, 32, 6),
    StripTile(32, 32, 4, 4, 2, 32, 6),
    StripTile(32, 32, 4, 4, 4, 32, 3),
    StripTile(64, 32, 8, 4, 2, 16, 5),
    StripTile(32, 64, 8, 4, 2, 16, 5),
    StripTile(128, 32, 8, 4, 1, 16, 4),
    StripTile(32, 128, 8, 4, 1, 16, 4),
    StripTile(64, 64, 8, 4, 1, 16, 4),
    StripTile(128, 64, 8, 8, 1, 16, 3),
    StripTile(16, 128, 4, 4, 1, 16, 6),
)
FARTHEST = 2**31 // 256  # elements from row to row: offsets in a tile have 32 bits
# From these sides on other semirings are slower, by a factor for steps of two slots and one for longer ones:
SLOWER_SIDE, SLOWER_PAIR, SLOWER_REST = 200, 1.7, 1.21  # as stacks of min_plus and max_min of 256 to 1000 took
SLOWER_WHOLE = 1.12  # where such a step is one instruction on whole numbers


def along(of_line: int, of_k: int, lines: int, k: int) -> bool:
    """Whether an operand is contiguous along k, by its strides."""
    nearer = (of_line == 1 or lines == 1) and abs(of_k) > abs(of_line)
    return (of_k == 1 or k == 1) and not nearer and (lines <= 1 or abs(of_line) < FARTHEST)


def across(of_line: int, of_k: int, lines: int, k: int) -> bool:
    """Whether it is across k."""
    return (of_line == 1 or lines == 1) and (k <= 1 or abs(of_k) < FARTHEST)


def has_lines(of_line: int, of_k: int, lines: int, k: int) -> bool:
    return along(of_line, of_k, lines, k) or across(of_line, of_k, lines, k)


def is_contiguous(p: Problem) -> bool:
    of_m = has_lines(p.layout_m.row, p.layout_m.col, p.m, p.k)
    return of_m and has_lines(p.layout_n.col, p.layout_n.row, p.n, p.k)


def lead_of(of_line: int, of_k: int, lines: int, k: int) -> tuple[bool, int]:
    """(whether an operand is contiguous along k, leading dimension)."""
    if along(of_line, of_k, lines, k):
        return True, of_line if lines > 1 else 0
    return False, of_k if k > 1 else 0


CONTIGUOUS = Condition(is_contiguous, f"takes contiguous rows or columns, less than {FARTHEST:,} elements apart")


class Buffered(Strips):
    """Medium-sized products and stacks of 4-byte elements, any algebra. Fitted to 1,146 configurations of
    205 random stacks (rms 10 % near the best; the choice 2 % above the best of them in the mean)."""

    name = "buffered"
    kernels: ClassVar = {
        name: "strips in two buffers, loaded through registers, many cells a thread: medium-sized products and stacks"
    }
    stages, own_shared = 2, 1024
    can = Capabilities(
        one_dtype=True, element_bytes=4, partial_bytes=(4, 4), float32_as=("ieee", "high"), steps=2**31,
        problem=(CONTIGUOUS,), stores_anywhere=True, precisions=("ieee",),
    )  # fmt: skip

    def every(self, size: int, machine: Machine) -> tuple[StripConfig, ...]:
        return tuple(StripConfig(tile, cluster) for tile in BUFFERED_TILES for cluster in clusters_of(machine))

    def figures(self, algebra: Algebra) -> Any:
        return coefficients("buffered 4")

    def times(self, config: StripConfig, algebra: Algebra, machine: Machine, slower: float) -> Times:
        f, tile, cluster = self.figures(algebra), config.tile, config.cluster
        key = f"{tile.rows}x{tile.cols} g{tile.groups}"
        other = f.other_shares.get(key, 1.0) if slower > 1 else 1.0
        least_k = tile.deep * cluster if cluster > 1 else -1
        return Times(least_k, f.strip[key] + f.of_k * tile.deep, 0.0, f.shares[key], other)

    def slower(self, problem: Problem) -> tuple[float, float]:
        """Of larger members in other semirings than plus_times."""
        p = problem
        if is_plus_times(p.semiring):
            return super().slower(p)
        pair = SLOWER_PAIR if p.dtype.kind == "f" else SLOWER_WHOLE
        return pair if step_slots(p.algebra) <= 2 else SLOWER_REST, SLOWER_SIDE
