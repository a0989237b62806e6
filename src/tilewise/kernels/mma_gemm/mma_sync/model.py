"""The mma.sync kernel for the planner: the routes of operands, and its cost model.

It is the tensor-core kernel of all cards from Turing on except Hopper, and of float64 on Hopper. Operands are copied by
16, 8 or 4 bytes, as their alignment allows. Lines that are not aligned to 4 bytes are realigned first
(`kernels/transforms/realign.cu`), and so are others where small copies would stall the tensor cores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from math import sqrt

from tilewise.algebra.dtypes import DType
from tilewise.core.machine import Machine, arch_number
from tilewise.core.problem import Layout, Problem
from tilewise.kernels.by_configs import Table, fastest, preferring_measured, tuned_class
from tilewise.kernels.capabilities import HOPPER, elements_of, rate_name, tensor_name
from tilewise.kernels.coefficients import coefficients
from tilewise.kernels.mma_gemm.mma_sync.tiles import PHASE_BYTES, TILES, MmaTile, tiles_of
from tilewise.kernels.shared.layouts import (
    AS_IT_IS,
    LONGEST_LINE,
    PACKED,
    REALIGNED,
    along_k,
    contiguous_lines,
    lines_of_long,
)
from tilewise.kernels.shared.residency import crowded, in_waves, padded
from tilewise.kernels.shared.triangle import tiles_of as computed_tiles
from tilewise.kernels.transforms.sums import sum_of
from tilewise.system.machine_code import INFINITE, Formula, Row, Rows

KERNEL = "mma_sync"
IDEA = "tiles are copied asynchronously to shared memory, warps multiply them on tensor cores (mma.sync)"
VECTORS = (16, 8, 4)  # bytes of a copy, the same for both operands
WHOLE, CUT, CUT_TWICE, EDGED = range(4)  # forms: whole, split-K (one wave, two waves), thin edges apart
FORMS, PAIRS = 4, 4  # of a tile: forms, and pairs of routes at most
CORES_FROM, ROOMS, PAIRS_FROM = 8, 14, 20  # where a row's phases and rooms begin, and what is given of each pair
MAX_PARTS = 64  # of k,
FEWEST_PHASES = 4  # of each
THIN, THIN_FROM = 4, 1024  # so few rows or columns beyond whole tiles are made apart, where P has that many


@dataclass(frozen=True)
class MmaConfig:
    """How the mma.sync kernel takes a product."""

    tile: MmaTile
    routes: tuple[str, str]  # how M and N reach it
    vector: int  # bytes of a copy of either
    parts: int = 1  # that k is cut into
    edge_rows: int = 0  # last rows and columns of P, computed by the GEMV kernels: tiles for them would be nearly empty
    edge_cols: int = 0
    tuned: bool = field(default=False, compare=False)  # by a tuned table

    def spec(self) -> str:
        """Its name in tuned tables."""
        t, edges = self.tile, " edges" if self.edge_rows or self.edge_cols else ""
        cut = f" k/{self.parts}" if self.parts > 1 else ""
        rolling = " rolling" * t.rolling + f" p{t.phase}" * (t.phase < PHASE_BYTES)
        return f"{t.rows}x{t.cols}w{t.warps_m}x{t.warps_n}r{t.resident}{rolling} {', '.join(self.routes)}{edges}{cut}"

    def notes(self) -> list[str]:
        """Notes of the plan."""
        reasons = {
            REALIGNED: "is realigned first, onto 128-byte lines",
            PACKED: "is packed first: elements apart, or another dtype",
        }
        words = [f"{name} {reasons[how]}" for name, how in zip("MN", self.routes, strict=True) if how in reasons]
        if self.vector < 16:
            words += [f"{name} is copied {self.vector} bytes at a time: it is not aligned to 16" for name in "MN"]
        if self.edge_rows or self.edge_cols:
            edges = f"{self.edge_rows} rows, {self.edge_cols} columns of P"
            words.append(f"thin edges ({edges}) are computed by the GEMV kernels, after the rest")
        if self.parts > 1:
            words.append(f"k is cut into {self.parts} parts, whose sums are added up in a fixed order")
        return words

    def phases_each(self, k: int, size: int) -> int:
        """Phases of a part of k."""
        return max(1, math.ceil(math.ceil(k * size / self.tile.phase) / self.parts))


def line_bytes(layout: Layout, rows: int, cols: int, size: int) -> int:
    """The alignment of an operand's lines in bytes, 16 at most; 0 where it has no lines."""
    lines = contiguous_lines(layout, rows, cols)
    return 0 if lines is None else _start(layout, lines, size)


def _start(layout: Layout, lines: tuple[int, int, int], size: int) -> int:
    count, _, lead = lines
    step = math.gcd(0 if count <= 1 else lead, *layout.stack)
    return math.gcd(16, layout.misalignment, step * size)


def _routes(layout: Layout, rows: int, cols: int, dtype: DType, wanted: DType) -> list[tuple[str, int]]:
    """(route, bytes of a copy) that an operand can take."""
    lines = contiguous_lines(layout, rows, cols)
    start = 0 if lines is None else _start(layout, lines, wanted.itemsize)
    if lines is None or dtype != wanted or (wanted.itemsize == 1 and start < 4):
        return [(PACKED, 16)]
    made = [(AS_IT_IS, start)] if start >= 4 else []
    if start < 16 and wanted.itemsize > 1 and lines[1] * wanted.itemsize // 2 <= LONGEST_LINE:
        made.append((REALIGNED, 16))
    return made or [(PACKED, 16)]


def in_the_set(
    rate: str, size: int, machine: Machine, requested: bool = False
) -> tuple[tuple[MmaTile, ...], tuple[int, ...]]:
    """The tiles and copy widths to choose from: all where this kernel is `requested` by name. On Hopper halves use
    wgmma_half except small ones with unaligned lines (the other tiles would gain 0.05 % of 447 random shapes)."""
    tiles = tiles_of(rate, size, machine.arch)
    if size == 2 and arch_number(machine.arch) == HOPPER and not requested:
        return tiles[5:], VECTORS[2:]
    return tiles, VECTORS


def best_config(problem: Problem, machine: Machine, requested: bool = False) -> tuple[float, MmaConfig]:
    """The least expected seconds, and their configuration; `requested`: this kernel by its name, so that every tile
    counts."""
    known = preferring_measured(KERNEL, tuning_class, problem, machine, lambda: tables(problem, machine))
    return known or fastest(tables(problem, machine, requested), problem.largest)


def tuning_class(problem: Problem) -> str:
    """The key of the product's class in tuned tables."""
    p, size = problem, problem.dtype.itemsize
    starts = line_bytes(p.layout_m, p.m, p.k, size), line_bytes(p.layout_n, p.k, p.n, size)
    return tuned_class(KERNEL, p, starts == (16, 16))


Pair = tuple[tuple[str, str], int]  # routes, bytes of a copy


def size_of(p: Problem, machine: Machine) -> int:
    """Bytes of an element as it is multiplied."""
    return elements_of(p, machine)[0].itemsize


@lru_cache(maxsize=64)
def _table(rate: str, size: int, machine: Machine, requested: bool) -> tuple[tuple[MmaTile, ...], Rows]:
    """The tiles that fit a machine, and a row for each of them, pair of routes and form: its sides, blocks of a
    multiprocessor and of the card, seconds of L2 for a phase and of a tile's stores; and of the cores for a phase, by k
    along N's lines and by bytes of a copy: 0 where registers do not suffice."""
    tiles, rows, figures = list[MmaTile](), list[tuple[float, ...]](), coefficients(f"mma_sync {size}")
    among, _ = in_the_set(rate, size, machine, requested)
    hopper = arch_number(machine.arch) == HOPPER
    fitted = dict(zip(TILES[size], figures.shares, strict=True)) if hopper else {}
    for tile in tiles_of(rate, size, machine.arch):
        if tile not in among or not tile.fits(machine.arch):
            continue
        full = (figures.alone**4 + tile.resident**4) ** 0.25 / tile.resident  # of a full multiprocessor, over its cores
        share = fitted.get(tile, full)
        steps = _mma_rate(rate, size, machine) / machine.units * tile.share * share  # of a multiprocessor, a second
        phase = tile.rows * tile.cols * (PHASE_BYTES // size) / steps
        other = tile.share / (tile.along or tile.share)
        cores = [
            phase * (other if along else 1.0) * (1 + slow) if tile.takes(along, vector) else 0.0
            for along, (vector, slow) in product((False, True), figures.small.items())
        ]
        sides = tile.rows, tile.cols, tile.resident, machine.units * tile.resident
        times = (tile.rows + tile.cols) * PHASE_BYTES / figures.unit, figures.cell * tile.rows * tile.cols
        tiles.append(tile)
        held = padded(tuple(machine.units * blocks for blocks in range(1, tile.resident + 1)))
        rows += [(*sides, *times, pair, form, *cores, *held) for pair, form in product(range(PAIRS), range(FORMS))]
    return tuple(tiles), Rows(rows)


def parts_of(tiles: int, phases: int, at_once: int, members: int, form: int) -> int:
    """Split-K where tiles leave much of the card idle: parts that fill one or two waves of blocks; 0 where k is not
    split."""
    slots, deepest = at_once // max(1, tiles), min(MAX_PARTS, phases // FEWEST_PHASES)
    first, second = min(deepest, slots), min(deepest, 2 * at_once // max(1, tiles))
    if form == CUT:
        return first if first > 1 else 0
    return second if members == 1 and slots <= deepest and second > 1 and second != first else 0


def edge_of(extent: int, side: int) -> int:
    """Rows or columns beyond whole tiles, where they are so few that tiles for them would be nearly empty."""
    rest = extent % side
    return rest if rest <= THIN and extent >= THIN_FROM else 0


@Formula
def expected(row: Row, given: Row) -> float:
    """Waves of tiles, whose phases take as long as one block alone needs or all of a multiprocessor's together, at the
    rate of the tensor cores or of L2; then what comes before and after."""
    m, n, phases, members, units = int(given[0]), int(given[1]), int(given[2]), int(given[3]), int(given[4])
    rows, cols, at_once, pair, form = int(row[0]), int(row[1]), int(row[3]), int(row[6]), int(row[7])
    if pair >= given[11]:
        return INFINITE
    at = PAIRS_FROM + 4 * pair
    cores = row[int(given[at])]
    if cores == 0.0:  # registers do not suffice
        return INFINITE
    parts, edge_rows, edge_cols, symmetric = 1, 0, 0, int(given[19])
    if CUT <= form <= CUT_TWICE:
        parts = parts_of(computed_tiles(m, n, rows, cols, symmetric) * members, phases, at_once, members, form)
        if parts == 0:
            return INFINITE
    if form == EDGED:
        if given[9] > 0.0:
            edge_rows = edge_of(m, rows)
        if given[10] > 0.0:
            edge_cols = edge_of(n, cols)
        if given[at + 2] > 0.0 or edge_rows + edge_cols == 0:  # the kernels for few read operands as they lie
            return INFINITE
    each = max(1, -(-phases // parts))
    tiles = computed_tiles(m - edge_rows, n - edge_cols, rows, cols, symmetric) * members * parts
    crowd = crowded(tiles, units, given[14])
    busy = sqrt(sqrt((cores * given[12]) ** 4 + (row[4] * crowd) ** 4))
    alone, fourth = (busy * given[15] + given[at + 3]) ** 4, busy**4
    cells = row[5] * (1 + given[13]) if parts == 1 else row[5]
    if symmetric:
        cells *= 2  # most tiles are stored twice
    work = in_waves(tiles, row, ROOMS, each * 1.0, alone, fourth, given[16], cells)
    work = sqrt(sqrt(work**4 + given[5])) + given[17] + given[at + 1]
    if edge_rows:
        work += members * given[7]
    if edge_cols:
        work += members * given[8]
    if parts > 1:
        work += members * (given[18] + parts * given[6])
    return work


def _given(p: Problem, machine: Machine, elements: tuple[DType, DType], widest: int) -> tuple[list[Pair], Row]:
    """Pairs of routes, and the numbers that all rows share; `widest`: bytes of a copy, at most."""
    (of_m, of_n), bandwidth = elements, machine.bandwidth
    size, f = of_m.itemsize, coefficients(f"mma_sync {of_m.itemsize}")
    for_m = _routes(p.layout_m, p.m, p.k, p.dtype_m, of_m)
    for_n = _routes(p.layout_n, p.k, p.n, p.dtype_n, of_n)
    pairs = [((m[0], n[0]), min(widest, m[1], n[1])) for m in for_m for n in for_n]  # one width for both: fewer kernels
    lies, vectors, numbers = along_k(p.layout_n, p.k, p.n, "N"), tuple(f.small), list[float]()
    for routes, vector in pairs:
        cells = (p.m * p.k if routes[0] != AS_IT_IS else 0) + (p.k * p.n if routes[1] != AS_IT_IS else 0)
        moved = f.copy + p.members * 2 * cells * size / (bandwidth * f.copying) if cells else 0.0
        along = lies and routes[1] != PACKED
        numbers += (CORES_FROM + 3 * along + vectors.index(vector), moved, PACKED in routes, f.phase[vector])
    slow = (f.m_across if not along_k(p.layout_m, p.m, p.k, "M") else 1.0) * (f.n_along if lies else 1.0)
    edges = [f.edge + p.k * extent * size / (bandwidth * f.edges) for extent in (p.n, p.m)]
    return pairs, (
        p.m, p.n, -(-p.k * size // PHASE_BYTES), p.members, machine.units,
        (p.least_bytes / (bandwidth * f.memory)) ** 4,
        2 * p.m * p.n * sum_of(p.dtype).itemsize / (bandwidth * f.adding), *edges, *_may_have_edges(p),
        len(pairs), slow, f.odd if p.n * size % 16 else 0.0, f.crowd, f.alone, f.block, f.start, f.gather,
        p.symmetric, *numbers,
    )  # fmt: skip


def _may_have_edges(p: Problem) -> tuple[bool, bool]:
    """Whether the GEMV kernels can compute the last rows and columns of P with these layouts."""
    if p.epilogue or p.members > 1 or p.symmetric or max(p.m, p.n) < THIN_FROM:
        return False, False  # the GEMV kernels apply no epilogue, and are launched member by member
    return lines_of_long(p, False) is not None, lines_of_long(p, True) is not None


def _config(number: int, tile: MmaTile, pairs: list[Pair], p: Problem, machine: Machine) -> MmaConfig:
    """The configuration of a row."""
    (routes, vector), form = pairs[number // FORMS % PAIRS], number % FORMS
    if form == EDGED:
        may = zip(_may_have_edges(p), (p.m, p.n), (tile.rows, tile.cols), strict=True)
        edges = [edge_of(extent, side) if can else 0 for can, extent, side in may]
        return MmaConfig(tile, routes, vector, 1, edges[0], edges[1])
    return MmaConfig(tile, routes, vector, 1 if form == WHOLE else _parts(p, tile, machine, form))


def _parts(p: Problem, tile: MmaTile, machine: Machine, form: int) -> int:
    tiles = computed_tiles(p.m, p.n, tile.rows, tile.cols, p.symmetric) * p.members
    phases = -(-p.k * size_of(p, machine) // PHASE_BYTES)
    return parts_of(tiles, phases, machine.units * tile.resident, p.members, form)


def tables(problem: Problem, machine: Machine, requested: bool = True) -> list[Table]:
    elements = elements_of(problem, machine)
    rate, size = rate_name(elements[0]), elements[0].itemsize
    tiles, rows = _table(rate, size, machine, requested)
    pairs, given = _given(problem, machine, elements, in_the_set(rate, size, machine, requested)[1][0])

    def config(number: int) -> MmaConfig:
        return _config(number, tiles[number // (FORMS * PAIRS)], pairs, problem, machine)

    return [Table(expected, rows, given, config)]


def mma_rate(problem: Problem, machine: Machine) -> float:
    """Steps a second by mma.sync: on Hopper 0.46 of wgmma's rate, elsewhere the whole rate."""
    return _mma_rate(tensor_name(problem), problem.dtype.itemsize, machine)


def _mma_rate(name: str, size: int, machine: Machine) -> float:
    halved = arch_number(machine.arch) == HOPPER and size < 8
    whole = machine.tensor_rate(name) or machine.step_rate(name)  # without tensor cores: the plain cores' rate
    return whole * (0.46 if halved else 1.0)
