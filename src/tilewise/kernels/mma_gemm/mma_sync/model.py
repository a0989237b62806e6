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
from typing import NamedTuple

from tilewise.core.machine import Machine, arch_number
from tilewise.core.problem import Problem
from tilewise.kernels.by_configs import Table, fastest, preferring_measured, tables_for, tuned_class
from tilewise.kernels.capabilities import HOPPER, elements_of, rate_name, tensor_name
from tilewise.kernels.coefficients import coefficients
from tilewise.kernels.family import Searched
from tilewise.kernels.mma_gemm.mma_sync.routes import first_route, line_bytes, second_route, width_of
from tilewise.kernels.mma_gemm.mma_sync.tiles import PHASE_BYTES, TILES, MmaTile, tiles_of
from tilewise.kernels.shared.layouts import (
    NO_ROUTE,
    PACKED,
    PACKS,
    REALIGNED,
    ROUTES,
    STAYS,
    along_columns,
    has_lines,
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
CORES_FROM, ROOMS = 8, 14  # where a row's phases and rooms begin
PAIRS_FROM, EACH_PAIR = 20, 5  # and what is given of each pair
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


def expected(row: Row, given: Row) -> float:
    """Waves of tiles, whose phases take as long as one block alone needs or all of a multiprocessor's together, at the
    rate of the tensor cores or of L2; then what comes before and after."""
    m, n, phases, members, units = int(given[0]), int(given[1]), int(given[2]), int(given[3]), int(given[4])
    rows, cols, at_once, pair, form = int(row[0]), int(row[1]), int(row[3]), int(row[6]), int(row[7])
    if pair >= given[11]:
        return INFINITE
    at = PAIRS_FROM + EACH_PAIR * pair
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


class Figures(NamedTuple):
    """What times depend on besides sizes: a kind of product on a card."""

    units: int  # multiprocessors
    bandwidth: float  # bytes a second
    size: int  # bytes of an element as it is multiplied,
    sum_size: int  # and of a partial sum
    widest: int  # bytes of a copy, at most
    converted_m: bool  # packed into elements of another dtype
    converted_n: bool
    edges: bool  # thin edges may be computed apart
    memory: float  # shares of the bandwidth: of all bytes,
    copying: float  # of operands that are moved,
    adding: float  # of partial sums that are added up,
    edge_reading: float  # of an edge's operand
    copy: float  # seconds: of moving an operand,
    edge: float  # of an edge,
    phase_16: float  # of a phase, by bytes of a copy
    phase_8: float
    phase_4: float
    block: float  # of a block,
    start: float  # of a launch,
    gather: float  # of adding up
    m_across: float  # factors of a phase's cores, by how M and N lie,
    n_along: float
    odd: float  # of a store of rows that start on no 16 bytes, more
    crowd: float  # exponent: how L2's time grows with the blocks that load
    alone: float  # of a block alone on a multiprocessor, over its share


def figures_of(p: Problem, machine: Machine, requested: bool) -> Figures:
    of_m, of_n = elements_of(p, machine)
    f, widest = (
        coefficients(f"mma_sync {of_m.itemsize}"),
        in_the_set(rate_name(of_m), of_m.itemsize, machine, requested),
    )
    # the GEMV kernels, which make thin edges, apply no epilogue, convert nothing, and are launched member by member
    edges = not p.epilogue and p.members <= 1 and p.dtype_m == p.dtype_n == p.dtype
    return Figures(
        machine.units, machine.bandwidth, of_m.itemsize, sum_of(p.dtype).itemsize, widest[1][0], p.dtype_m != of_m,
        p.dtype_n != of_n, edges, f.memory, f.copying, f.adding, f.edges, f.copy, f.edge, f.phase[16], f.phase[8],
        f.phase[4], f.block, f.start, f.gather, f.m_across, f.n_along, f.odd, f.crowd, f.alone,
    )  # fmt: skip


def given_of(p: Problem, f: Figures) -> Row:
    """The numbers that all rows share; at last four pairs of routes, as far as there are so many."""
    m, n = (
        first_route(p.layout_m, p.m, p.k, f.converted_m, f.size),
        first_route(p.layout_n, p.k, p.n, f.converted_n, f.size),
    )
    other_m, other_n = second_route(p.layout_m, p.m, p.k, m, f.size), second_route(p.layout_n, p.k, p.n, n, f.size)
    pairs = (1 if other_m == NO_ROUTE else 2) * (1 if other_n == NO_ROUTE else 2)
    slow = 1.0 if not along_columns(p.layout_m, p.m, p.k) else f.m_across
    if along_columns(p.layout_n, p.k, p.n):
        slow = slow * f.n_along
    return (
        p.m, p.n, -(-p.k * f.size // PHASE_BYTES), p.members, f.units,
        (p.least_bytes / (f.bandwidth * f.memory)) ** 4, 2 * p.m * p.n * f.sum_size / (f.bandwidth * f.adding),
        f.edge + p.k * p.n * f.size / (f.bandwidth * f.edge_reading),
        f.edge + p.k * p.m * f.size / (f.bandwidth * f.edge_reading),
        may_have_edges(p, f) and has_lines(p.layout_n, p.k, p.n),
        may_have_edges(p, f) and has_lines(p.layout_m, p.m, p.k),
        pairs, slow, f.odd if p.n * f.size % 16 else 0.0, f.crowd, f.alone, f.block, f.start, f.gather, p.symmetric,
        *numbers_of(p, f, m, n),
        *numbers_of(p, f, other_m if other_n == NO_ROUTE else m, n if other_n == NO_ROUTE else other_n),
        *numbers_of(p, f, NO_ROUTE if other_n == NO_ROUTE else other_m, n),
        *numbers_of(p, f, other_m, other_n),
    )  # fmt: skip


def numbers_of(p: Problem, f: Figures, m: int, n: int) -> Row:
    """Of a pair of routes: where a row has its phases, seconds that operands are moved before, whether one is packed,
    seconds of a phase, whether operands are moved."""
    vector = vector_of(p, m, n, f.size, f.widest)
    cells = (p.m * p.k if m != STAYS else 0) + (p.k * p.n if n != STAYS else 0)
    moved = f.copy + p.members * 2 * cells * f.size / (f.bandwidth * f.copying) if cells else 0.0
    cores = CORES_FROM + (0 if vector == 16 else 1 if vector == 8 else 2)
    if along_columns(p.layout_n, p.k, p.n) and n != PACKS:
        cores = cores + 3
    phase = f.phase_16 if vector == 16 else f.phase_8 if vector == 8 else f.phase_4
    return cores, moved, m == PACKS or n == PACKS, phase, m != STAYS or n != STAYS


def vector_of(p: Problem, m: int, n: int, size: int, widest: int) -> int:
    """Bytes of a copy, one width for both operands: fewer kernels."""
    of_m, of_n = width_of(m, p.layout_m, p.m, p.k, size), width_of(n, p.layout_n, p.k, p.n, size)
    return min(widest, of_m, of_n)


def passes(row: Row, given: Row) -> int:
    """One to move operands, one to add up the parts of k."""
    moves = int(given[PAIRS_FROM + EACH_PAIR * int(row[6]) + 4])
    return moves + (1 if CUT <= row[7] <= CUT_TWICE else 0)


def may_have_edges(p: Problem, f: Figures) -> bool:
    """Whether the GEMV kernels can compute the last rows and columns of P, if their lines allow it."""
    return f.edges and p.symmetric == 0 and max(p.m, p.n) >= THIN_FROM


EXPECTED = Formula(expected, given_of, passes=passes)


def config_of(number: int, tile: MmaTile, p: Problem, machine: Machine, figures: Figures) -> MmaConfig:
    """The configuration of a row."""
    f, form = figures, number % FORMS
    m = first_route(p.layout_m, p.m, p.k, f.converted_m, f.size)
    n = first_route(p.layout_n, p.k, p.n, f.converted_n, f.size)
    of_m, of_n = (
        (m, second_route(p.layout_m, p.m, p.k, m, f.size)),
        (n, second_route(p.layout_n, p.k, p.n, n, f.size)),
    )
    pairs = [(m, n) for m in of_m for n in of_n if NO_ROUTE not in (m, n)]
    m, n = pairs[number // FORMS % PAIRS]
    routes, vector = (ROUTES[m], ROUTES[n]), vector_of(p, m, n, f.size, f.widest)
    if form == EDGED:
        may = may_have_edges(p, f)
        can = may and has_lines(p.layout_n, p.k, p.n), may and has_lines(p.layout_m, p.m, p.k)
        sides = zip(can, (p.m, p.n), (tile.rows, tile.cols), strict=True)
        edges = [edge_of(extent, side) if able else 0 for able, extent, side in sides]
        return MmaConfig(tile, routes, vector, 1, edges[0], edges[1])
    return MmaConfig(tile, routes, vector, 1 if form == WHOLE else _parts(p, tile, machine, form))


def _parts(p: Problem, tile: MmaTile, machine: Machine, form: int) -> int:
    tiles = computed_tiles(p.m, p.n, tile.rows, tile.cols, p.symmetric) * p.members
    phases = -(-p.k * size_of(p, machine) // PHASE_BYTES)
    return parts_of(tiles, phases, machine.units * tile.resident, p.members, form)


def searched(problem: Problem, machine: Machine, requested: bool = False) -> list[Searched]:
    element, figures = elements_of(problem, machine)[0], figures_of(problem, machine, requested)
    tiles, rows = _table(rate_name(element), element.itemsize, machine, requested)

    def config(number: int, p: Problem) -> MmaConfig:
        return config_of(number, tiles[number // (FORMS * PAIRS)], p, machine, figures)

    return [Searched(EXPECTED, rows, figures, config)]


def tables(problem: Problem, machine: Machine, requested: bool = True) -> list[Table]:
    return tables_for(searched(problem, machine, requested), problem)


def mma_rate(problem: Problem, machine: Machine) -> float:
    """Steps a second by mma.sync: on Hopper 0.46 of wgmma's rate, elsewhere the whole rate."""
    return _mma_rate(tensor_name(problem), problem.dtype.itemsize, machine)


def _mma_rate(name: str, size: int, machine: Machine) -> float:
    halved = arch_number(machine.arch) == HOPPER and size < 8
    whole = machine.tensor_rate(name) or machine.step_rate(name)  # without tensor cores: the plain cores' rate
    return whole * (0.46 if halved else 1.0)
