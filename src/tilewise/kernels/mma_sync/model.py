"""The mma.sync kernel as the planner sees it: its tiles, what it takes, how operands reach it, and its model.

It is the tensor-core kernel of cards before and beside Hopper, and of float64 on Hopper. Operands are copied where they
lie, in pieces of 16, 8 or 4 bytes as their lines allow. Lines that start on no 4 bytes are realigned first
(`kernels/shared/realign.cu`), and so are others where small copies would hold the tensor cores up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product

from tilewise.algebra.builtin import is_plus_times
from tilewise.algebra.dtypes import DType
from tilewise.kernels.gemv.model import few_tile
from tilewise.kernels.plain.model import shared_limit
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
from tilewise.machine import Machine, arch_number
from tilewise.plans import Geometry
from tilewise.problem import Layout, Problem
from tilewise.tuning import class_of, preferred

KERNEL = "mma_sync"
IDEA = "tiles come in by asynchronous copies, warps multiply them on tensor cores, from registers"
PHASE_BYTES = 128  # of k
MAX_PARTS = 64  # of k
THIN, THIN_FROM = 4, 1024  # so few rows or columns beyond whole tiles are made apart, where P has that many

# The model's figures, measured on an H200 (docs/mma-sync.md says how).
START_SECONDS = 4e-6
TILE_SECONDS = 1.5e-6  # the first tiles' way in, and the sums' way out
PART_SECONDS = 3e-6  # adding up the parts of k: a launch
COPY_SECONDS = 4e-6  # realigning: a launch
MEMORY_SHARE = 0.8
UNIT_BANDWIDTH = 60e9  # bytes a second that L2 gives each multiprocessor when all of them ask
SMALL_COPIES = {16: 0.0, 8: 0.19, 4: 0.6}  # of a phase's time, that copies in such pieces add


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
    timed = [(expected(way, problem, machine), number, way) for number, way in enumerate(ways(problem, machine))]
    seconds, best, tuned = preferred(timed, tuning_class(problem), machine.tuned)
    return replace(best, tuned=tuned), seconds


def tuning_class(problem: Problem) -> str:
    """What kind of product this is, for tables of measured ways."""
    p, size = problem, problem.dtype.itemsize
    columns = along_columns(p.layout_m, p.m, p.k), along_columns(p.layout_n, p.k, p.n)
    starts = line_bytes(p.layout_m, p.m, p.k, size), line_bytes(p.layout_n, p.k, p.n, size)
    layouts = "".join("NT"[turned] for turned in columns)
    return class_of(KERNEL, p.dtype.name, (p.m, p.k, p.n), layouts, starts == (16, 16))


def ways(problem: Problem, machine: Machine) -> list[MmaWay]:
    p, size = problem, problem.dtype.itemsize
    for_m = _routes(p.layout_m, p.m, p.k, p.dtype_m, p.dtype)
    for_n = _routes(p.layout_n, p.k, p.n, p.dtype_n, p.dtype)
    fitting = [tile for tile in TILES[size] if tile.stages(machine.arch) >= 2 + tile.rolling]
    found: list[MmaWay] = []
    n_along_k = along_k(p.layout_n, p.k, p.n, "N")
    for tile, m, n in product(fitting, for_m, for_n):
        routes, vectors = (m[0], n[0]), (min(m[1], n[1]),) * 2  # one width for both: fewer kernels
        if not tile.takes(n_along_k and n[0] != PACKED, vectors):
            continue
        found += [MmaWay(tile, routes, vectors, parts) for parts in _parts(problem, tile, machine)]
        edges = _thin_edges(problem, machine, tile)
        if any(edges) and PACKED not in routes:  # the kernels for few read operands as they lie
            found.append(MmaWay(tile, routes, vectors, 1, *edges))
    return found


def _thin_edges(p: Problem, machine: Machine, tile: MmaTile) -> tuple[int, int]:
    """Rows and columns of P beyond whole tiles, where the kernels for few can make them as they lie."""
    if p.epilogue:
        return 0, 0  # those apply none
    rows, cols = (
        extent % side if extent >= THIN_FROM and 0 < extent % side <= THIN else 0
        for extent, side in ((p.m, tile.rows), (p.n, tile.cols))
    )
    if rows and few_tile(p, machine, False, rows, p.dtype.itemsize) is None:
        rows = 0
    if cols and few_tile(p, machine, True, cols, p.dtype.itemsize) is None:
        cols = 0
    return rows, cols


def _parts(problem: Problem, tile: MmaTile, machine: Machine) -> list[int]:
    """k is cut only where tiles leave most of the card idle."""
    tiles = math.ceil(problem.m / tile.rows) * math.ceil(problem.n / tile.cols) * problem.members
    phases = math.ceil(problem.k * problem.dtype.itemsize / PHASE_BYTES)
    most = min(MAX_PARTS, machine.units * tile.resident // max(1, tiles), phases // 4)
    return [1, most] if most > 1 else [1]


def expected(way: MmaWay, problem: Problem, machine: Machine) -> float:
    """Seconds: waves of tiles at the rate of the tensor cores or of L2; then what comes before and after."""
    p, tile, size = problem, way.tile, problem.dtype.itemsize
    rate = mma_rate(problem, machine) / machine.units * tile.share  # of a multiprocessor, steps a second
    phase = tile.rows * tile.cols * (PHASE_BYTES // size) / rate
    copies = sum(SMALL_COPIES[v] * side for v, side in zip(way.vectors, (tile.rows, tile.cols), strict=True))
    phase *= 1 + copies / (tile.rows + tile.cols)
    l2 = tile.stage_bytes / UNIT_BANDWIDTH
    each = way.phases_each(p.k, size)
    down, across = math.ceil((p.m - way.edge_rows) / tile.rows), math.ceil((p.n - way.edge_cols) / tile.cols)
    blocks = down * across * p.members * way.parts
    full, rest = divmod(blocks, machine.units * tile.resident)
    # blocks of a multiprocessor share its tensor cores: a lone one is faster than one of many, but not that much
    lone = math.ceil(rest / machine.units)
    turns = full * tile.resident + (max(lone, 0.7 * tile.resident) if rest else 0)
    work = turns * (each * max(phase, l2) + TILE_SECONDS / tile.resident)
    work = max(work, p.least_bytes / (machine.bandwidth * MEMORY_SHARE)) + START_SECONDS
    moved = sum(
        2 * extent * size
        for how, extent in zip(way.routes, (p.m * p.k, p.k * p.n), strict=True)
        if how in (REALIGNED, PACKED)
    )
    if moved:
        work += COPY_SECONDS + p.members * moved / (machine.bandwidth * MEMORY_SHARE)
    for edge, extent in ((way.edge_rows, p.n), (way.edge_cols, p.m)):
        if edge:
            work += p.members * (2 * START_SECONDS + p.k * extent * size / (machine.bandwidth * MEMORY_SHARE))
    if way.parts > 1:
        sums = 2 * way.parts * p.m * p.n * sum_of(p.dtype).itemsize
        work += p.members * (PART_SECONDS + sums / machine.bandwidth)
    return work


def mma_rate(problem: Problem, machine: Machine) -> float:
    """Steps a second by mma.sync: half of what Hopper has for warpgroups, at the clock it holds; elsewhere all."""
    halved = arch_number(machine.arch) == 90 and problem.dtype.itemsize < 8
    return machine.tensor_rate(rate_name(problem)) * (0.46 if halved else 1.0)
