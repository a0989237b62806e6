"""The mma.sync kernel as the planner sees it: its tiles, what it takes, how operands reach it, and its model.

It is the tensor-core kernel of cards before and beside Hopper, and of float64 on Hopper. Operands are copied where they
lie, in pieces of 16, 8 or 4 bytes as their lines allow. Lines that start on no 4 bytes are realigned first
(`kernels/shared/realign.cu`), and so are others where small copies would hold the tensor cores up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import sqrt
from typing import NamedTuple

from tilewise.algebra.builtin import is_plus_times
from tilewise.algebra.dtypes import DType
from tilewise.kernels.gemv.model import few_tile
from tilewise.kernels.mma_sync.figures import FEWEST, FIGURES
from tilewise.kernels.shared.layouts import (
    AS_IT_IS,
    LONGEST_LINE,
    PACKED,
    REALIGNED,
    along_columns,
    along_k,
    contiguous_lines,
)
from tilewise.kernels.shared.sums import sum_of
from tilewise.machine import Machine, arch_number, shared_limit
from tilewise.plans import Geometry
from tilewise.problem import Layout, Problem
from tilewise.tuning import class_of, preferred

KERNEL = "mma_sync"
IDEA = "tiles come in by asynchronous copies, warps multiply them on tensor cores, from registers"
PHASE_BYTES = 128  # of k
MAX_PARTS = 64  # of k,
FEWEST_PHASES = 4  # of each
THIN, THIN_FROM = 4, 1024  # so few rows or columns beyond whole tiles are made apart, where P has that many


@dataclass(frozen=True)
class MmaTile:
    """A tile of P made by warps_m × warps_n warps; `resident` such blocks share a multiprocessor.

    `share` is the part of the mma.sync rate that it reaches inside a large product. `rolling`: a fragment of M is read
    while the one before is multiplied, else all of a step's at once. `step_k`: k of a product of float64 fragments.
    """

    rows: int
    cols: int
    warps_m: int
    warps_n: int
    resident: int
    share: float
    rolling: bool = False
    step_k: int = 0

    @property
    def threads(self) -> int:
        return 32 * self.warps_m * self.warps_n

    @property
    def stage_bytes(self) -> int:
        return (self.rows + self.cols) * PHASE_BYTES

    def stages(self, arch: str) -> int:
        """As many as the blocks of a multiprocessor can have, and no more than help."""
        whole = shared_limit(arch)
        each = whole if self.resident == 1 else (whole + 1024) // self.resident - 1024
        return min(5, each // self.stage_bytes)

    def takes(self, n_along_k: bool, vectors: tuple[int, int]) -> bool:
        """Whether registers suffice: beside 64 × 64 sums of a warp there are none for the addresses of many small
        copies, and with k along N's lines none for all of M's fragments."""
        crowded = self.rows // self.warps_m * (self.cols // self.warps_n) >= 64 * 64
        copies = (side * PHASE_BYTES // v for side, v in zip((self.rows, self.cols), vectors, strict=True))
        if max(copies) > 16 * self.threads:
            return False
        return not crowded or (vectors == (16, 16) and (self.rolling or not n_along_k))

    def shared_bytes(self, arch: str) -> int:
        return self.stages(arch) * self.stage_bytes

    def geometry(self, arch: str, size: int) -> Geometry:
        return Geometry((self.threads, 1), self.rows, self.cols, PHASE_BYTES // size, self.shared_bytes(arch))


# by bytes of an element, the fastest inside a large product first; none of them spills
SMALL = (
    MmaTile(128, 256, 2, 4, 1, 0.99),
    MmaTile(128, 256, 2, 4, 1, 0.96, True),
    MmaTile(128, 128, 2, 2, 2, 0.85, True),
    MmaTile(128, 128, 2, 4, 1, 0.82),
    MmaTile(64, 128, 2, 2, 2, 0.75),
    MmaTile(64, 64, 2, 2, 3, 0.6),
)
FLOATS = (MmaTile(128, 128, 2, 4, 1, 0.85), *SMALL[4:])  # rounding to tf32 takes registers,
BYTES = FLOATS[:1]  # and so does turning bytes
DOUBLES = (
    MmaTile(64, 128, 2, 2, 2, 0.92, True, 8),
    MmaTile(128, 128, 2, 4, 1, 0.925, True, 8),
    MmaTile(64, 64, 2, 2, 3, 0.9, True, 8),
    MmaTile(64, 64, 2, 2, 2, 0.8, True, 8),  # where shared memory is small
)
TILES: dict[int, tuple[MmaTile, ...]] = {1: BYTES, 2: SMALL, 4: FLOATS, 8: DOUBLES}


@dataclass(frozen=True)
class MmaWay:
    """How the mma.sync kernel takes a product."""

    tile: MmaTile
    routes: tuple[str, str]  # how M and N reach it
    vectors: tuple[int, int]  # bytes of a copy
    parts: int = 1  # that k is cut into
    edge_rows: int = 0  # last rows and columns of P that the kernels for few make: tiles for them would be nearly empty
    edge_cols: int = 0
    tuned: bool = field(default=False, compare=False)  # chosen by measurement, not by the model alone

    def spec(self) -> str:
        """As tables of measured ways name it."""
        t, edges = self.tile, " edges" if self.edge_rows or self.edge_cols else ""
        cut = f" k/{self.parts}" if self.parts > 1 else ""
        rolling = " rolling" if t.rolling else ""
        return f"{t.rows}x{t.cols}w{t.warps_m}x{t.warps_n}r{t.resident}{rolling} {', '.join(self.routes)}{edges}{cut}"

    def words(self) -> list[str]:
        """What is special about it, a sentence each."""
        reasons = {
            REALIGNED: "is realigned first, onto 128-byte lines",
            PACKED: "is packed first: elements apart, or another dtype",
        }
        words = [f"{name} {reasons[how]}" for name, how in zip("MN", self.routes, strict=True) if how in reasons]
        words += [
            f"{name} is copied {vector} bytes at a time: its lines start on no 16"
            for name, vector in zip("MN", self.vectors, strict=True)
            if vector < 16
        ]
        if self.edge_rows or self.edge_cols:
            edges = f"{self.edge_rows} rows, {self.edge_cols} columns of P"
            words.append(f"thin edges ({edges}) are made by the kernels for few rows, after the rest")
        if self.parts > 1:
            words.append(f"k is cut into {self.parts} parts, whose sums are added up in a fixed order")
        return words

    def phases_each(self, k: int, size: int) -> int:
        """Phases of a part of k."""
        return max(1, math.ceil(math.ceil(k * size / PHASE_BYTES) / self.parts))


def refusal(problem: Problem, machine: Machine) -> str | None:
    """Why the mma.sync kernel does not take this problem, or None when it does."""
    if machine.kind != "cuda" or arch_number(machine.arch) < 80:
        return f"kernel={KERNEL!r} needs a card from Ampere on (sm_80), and this is {machine.arch or 'no card'}"
    if problem.dtype.name == "float32" and problem.precision != "tf32":
        return f"kernel={KERNEL!r} multiplies float32 as tf32: pass precision='tf32'"
    if problem.dtype.name not in ("bfloat16", "float16", "float32", "float64", "int8", "uint8"):
        return f"kernel={KERNEL!r} multiplies bfloat16, float16, tf32, float64 and 8-bit integers, not {problem.dtype}"
    if not is_plus_times(problem.semiring):
        return f"kernel={KERNEL!r} knows plus_times alone, not {problem.semiring}"
    return None


def worthwhile(problem: Problem, machine: Machine) -> bool:
    """Whether the card has tensor cores for this dtype at all: float64 has them on few."""
    return machine.tensor_rate(rate_name(problem)) > 0


def rate_name(problem: Problem) -> str:
    return "tf32" if problem.dtype.name == "float32" else problem.dtype.name.removeprefix("u")


def line_bytes(layout: Layout, rows: int, cols: int, size: int) -> int:
    """What all lines of an operand start on: 16 bytes, 8, 4, or fewer; 0 where it has no lines."""
    lines = contiguous_lines(layout, rows, cols)
    if lines is None:
        return 0
    count, _, lead = lines
    strides = (*(() if count <= 1 else (lead,)), *layout.stack)
    return math.gcd(16, layout.alignment, *(stride * size for stride in strides))


def _routes(layout: Layout, rows: int, cols: int, dtype: DType, wanted: DType) -> list[tuple[str, int]]:
    """(route, bytes of a copy) that an operand can take."""
    start = line_bytes(layout, rows, cols, wanted.itemsize)
    lines = contiguous_lines(layout, rows, cols)
    if lines is None or dtype != wanted or (wanted.itemsize == 1 and start < 4):
        return [(PACKED, 16)]
    made = [(AS_IT_IS, start)] if start >= 4 else []
    if start < 16 and wanted.itemsize > 1 and lines[1] * wanted.itemsize // 2 <= LONGEST_LINE:
        made.append((REALIGNED, 16))
    return made or [(PACKED, 16)]


@lru_cache(maxsize=64)
def best_way(problem: Problem, machine: Machine) -> tuple[MmaWay, float]:
    """The way with the least expected seconds."""
    table, timed = machine.tuned, _timed(problem, machine)
    key = tuning_class(problem) if table is not None and f"{KERNEL} {problem.dtype.name}" in table.kinds else ""
    if table is None or key not in table.entries:
        seconds, _, fields = min(timed)
        return MmaWay(*fields), seconds
    every = [(seconds, number, MmaWay(*fields)) for seconds, number, fields in timed]
    seconds, best, tuned = preferred(every, key, table)
    return replace(best, tuned=tuned), seconds


def tuning_class(problem: Problem) -> str:
    """What kind of product this is, for tables of measured ways."""
    p, size = problem, problem.dtype.itemsize
    columns = along_columns(p.layout_m, p.m, p.k), along_columns(p.layout_n, p.k, p.n)
    starts = line_bytes(p.layout_m, p.m, p.k, size), line_bytes(p.layout_n, p.k, p.n, size)
    layouts = "".join("NT"[turned] for turned in columns)
    return class_of(KERNEL, p.dtype.name, (p.m, p.k, p.n), layouts, starts == (16, 16))


Fields = tuple[MmaTile, tuple[str, str], tuple[int, int], int, int, int]  # of a way


def ways(problem: Problem, machine: Machine) -> list[MmaWay]:
    return [MmaWay(*fields) for _, _, fields in _timed(problem, machine)]


def _timed(problem: Problem, machine: Machine) -> list[tuple[float, int, Fields]]:
    """(expected seconds, number, fields) of every way."""
    p, figures = problem, _Figures(problem, machine)
    for_m = _routes(p.layout_m, p.m, p.k, p.dtype_m, p.dtype)
    for_n = _routes(p.layout_n, p.k, p.n, p.dtype_n, p.dtype)
    n_along_k = along_k(p.layout_n, p.k, p.n, "N")
    pairs = [((m[0], n[0]), min(m[1], n[1])) for m in for_m for n in for_n]  # one width for both: fewer kernels
    found: list[tuple[float, int, Fields]] = []
    for cost in _costs(rate_name(p), p.dtype.itemsize, machine):
        tile = cost.tile
        parts, edges = _parts(problem, tile, machine), _thin_edges(problem, machine, tile)
        for routes, vector in pairs:
            if not _fits(tile, n_along_k and routes[1] != PACKED, vector):
                continue
            moved = figures.moved(routes)
            for cut in parts:
                seconds = figures.seconds(cost, vector, moved, cut, 0, 0)
                found.append((seconds, len(found), (tile, routes, (vector, vector), cut, 0, 0)))
            if (edges[0] or edges[1]) and PACKED not in routes:  # the kernels for few read operands as they lie
                seconds = figures.seconds(cost, vector, moved, 1, *edges)
                found.append((seconds, len(found), (tile, routes, (vector, vector), 1, *edges)))
    return found


@lru_cache(maxsize=256)
def _fits(tile: MmaTile, n_along_k: bool, vector: int) -> bool:
    return tile.takes(n_along_k, (vector, vector))


def _thin_edges(p: Problem, machine: Machine, tile: MmaTile) -> tuple[int, int]:
    """Rows and columns of P beyond whole tiles, where the kernels for few can make them as they lie."""
    if p.epilogue or p.members > 1:
        return 0, 0  # those apply none, and are launched member by member
    rows, cols = p.m % tile.rows if p.m >= THIN_FROM else 0, p.n % tile.cols if p.n >= THIN_FROM else 0
    rows, cols = rows if rows <= THIN else 0, cols if cols <= THIN else 0
    if rows and few_tile(p, machine, False, rows, p.dtype.itemsize) is None:
        rows = 0
    if cols and few_tile(p, machine, True, cols, p.dtype.itemsize) is None:
        cols = 0
    return rows, cols


def _parts(problem: Problem, tile: MmaTile, machine: Machine) -> list[int]:
    """k is cut where tiles alone would leave much of the card idle: into as many parts as make whole waves of blocks,
    one or two."""
    tiles = -(-problem.m // tile.rows) * -(-problem.n // tile.cols) * problem.members
    phases = -(-problem.k * problem.dtype.itemsize // PHASE_BYTES)
    slots, deepest = machine.units * tile.resident // max(1, tiles), min(MAX_PARTS, phases // FEWEST_PHASES)
    waves = [slots]
    if problem.members == 1 and slots <= deepest:
        waves.append(2 * machine.units * tile.resident // max(1, tiles))
    return [1, *dict.fromkeys(parts for parts in (min(deepest, wave) for wave in waves) if parts > 1)]


class _Cost(NamedTuple):
    """What a tile's seconds are reckoned from, the same for every product of a dtype on a machine."""

    tile: MmaTile
    rows: int
    cols: int
    resident: int
    at_once: int  # blocks that the card holds
    cores: dict[int, float]  # seconds of a phase, by bytes of a copy
    l2: float
    cells: float  # seconds of a tile's stores


@lru_cache(maxsize=64)
def _costs(rate: str, size: int, machine: Machine) -> tuple[_Cost, ...]:
    """Of the tiles that fit the machine."""
    made, figures = [], FIGURES[size]
    for tile, share in zip(TILES[size], figures.shares, strict=True):
        if tile.stages(machine.arch) < 2 + tile.rolling:
            continue
        steps = _mma_rate(rate, size, machine) / machine.units * tile.share * share  # of a multiprocessor, a second
        phase = tile.rows * tile.cols * (PHASE_BYTES // size) / steps
        cores = {vector: phase * (1 + slow) for vector, slow in figures.small.items()}
        at_once, cells = machine.units * tile.resident, figures.cell * tile.rows * tile.cols
        l2 = tile.stage_bytes / figures.unit
        made.append(_Cost(tile, tile.rows, tile.cols, tile.resident, at_once, cores, l2, cells))
    return tuple(made)


class _Figures:
    """What the seconds of every way of a product are reckoned from."""

    def __init__(self, p: Problem, machine: Machine) -> None:
        self._p, self._machine, self._figures = p, machine, FIGURES[p.dtype.itemsize]
        self._units, f = machine.units, self._figures
        self._passing = (p.least_bytes / (machine.bandwidth * f.memory)) ** 4
        self._phases = -(-p.k * p.dtype.itemsize // PHASE_BYTES)
        self._sums = 2 * p.m * p.n * sum_of(p.dtype).itemsize / (machine.bandwidth * f.adding)
        self._slow = (f.m_across if not along_k(p.layout_m, p.m, p.k, "M") else 1.0) * (
            f.n_along if along_k(p.layout_n, p.k, p.n, "N") else 1.0
        )
        self._odd = f.odd if p.n * p.dtype.itemsize % 16 else 0.0

    def moved(self, routes: tuple[str, str]) -> float:
        """Seconds to realign or pack operands first."""
        p, f = self._p, self._figures
        cells = (p.m * p.k if routes[0] != AS_IT_IS else 0) + (p.k * p.n if routes[1] != AS_IT_IS else 0)
        moving = p.members * 2 * cells * p.dtype.itemsize / (self._machine.bandwidth * f.copying)
        return f.copy + moving if cells else 0.0

    def seconds(self, cost: _Cost, vector: int, moved: float, parts: int, edge_rows: int, edge_cols: int) -> float:
        """Waves of tiles, whose phases take as long as one block alone needs or all of a multiprocessor's together, at
        the rate of the tensor cores or of L2; then what comes before and after."""
        p, units, f = self._p, self._units, self._figures
        each = max(1, -(-self._phases // parts))
        tiles = -(-(p.m - edge_rows) // cost.rows) * -(-(p.n - edge_cols) // cost.cols) * p.members * parts
        crowd = 1.0 if tiles >= units else max(FEWEST, tiles / units) ** f.crowd
        busy = sqrt(sqrt((cost.cores[vector] * self._slow) ** 4 + (cost.l2 * crowd) ** 4))
        alone, fourth = (busy * f.alone + f.phase[vector]) ** 4, busy**4
        cells = cost.cells * (1 + self._odd) if parts == 1 else cost.cells
        full, rest = divmod(tiles, cost.at_once)
        work = 0.0
        if full:
            held = cost.resident
            work = full * (each * sqrt(sqrt(alone + fourth * held**4)) + f.tile + cells * held)
        if rest:
            last = -(-rest // units)
            work += each * sqrt(sqrt(alone + fourth * last**4)) + f.tile + cells * last
        work = sqrt(sqrt(work**4 + self._passing)) + f.start + moved
        for edge, extent in ((edge_rows, p.n), (edge_cols, p.m)):
            if edge:
                reading = p.k * extent * p.dtype.itemsize / (self._machine.bandwidth * f.edges)
                work += p.members * (f.edge + reading)
        if parts > 1:
            work += p.members * (f.part + parts * self._sums)
        return work


def expected(way: MmaWay, problem: Problem, machine: Machine) -> float:
    """Seconds of one way; both operands are copied by one width."""
    costs = _costs(rate_name(problem), problem.dtype.itemsize, machine)
    cost = next(cost for cost in costs if cost.tile == way.tile)
    figures = _Figures(problem, machine)
    return figures.seconds(cost, way.vectors[0], figures.moved(way.routes), way.parts, way.edge_rows, way.edge_cols)


def least_seconds(problem: Problem, machine: Machine) -> float:
    """A launch, and every step at the best share that a tile reaches, or the bytes."""
    figures = FIGURES[problem.dtype.itemsize]
    best = max(t.share * share for t, share in zip(TILES[problem.dtype.itemsize], figures.shares, strict=True))
    best /= min(1.0, figures.m_across) * min(1.0, figures.n_along)
    steps, reading = problem.steps / (mma_rate(problem, machine) * best), problem.least_bytes / machine.bandwidth
    return 0.999 * (figures.start + figures.tile + max(steps, reading / figures.memory - figures.tile))


def mma_rate(problem: Problem, machine: Machine) -> float:
    """Steps a second by mma.sync: half of what Hopper has for warpgroups, at the clock it holds; elsewhere all."""
    return _mma_rate(rate_name(problem), problem.dtype.itemsize, machine)


def _mma_rate(name: str, size: int, machine: Machine) -> float:
    halved = arch_number(machine.arch) == 90 and size < 8
    whole = machine.tensor_rate(name) or machine.step_rate(name)  # a card without them multiplies by its plain cores
    return whole * (0.46 if halved else 1.0)
