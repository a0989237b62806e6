"""The rows that `single.expected` is evaluated on (every tile, pair of routes and form of a single product), what it is
given of a product, and which way a row stands for."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import NamedTuple

from tilewise.core.machine import Machine
from tilewise.core.problem import Problem
from tilewise.kernels.shared.layouts import (
    BY_CLASSES,
    CLASSED,
    DEINTERLEAVED,
    NO_ROUTE,
    PACKS,
    REALIGNS,
    along_columns,
)
from tilewise.kernels.shared.residency import parts_of, rounded_up
from tilewise.kernels.shared.triangle import tiles_in_classes
from tilewise.kernels.wgmma_gemm.wgmma_half import alignment_classes, single
from tilewise.kernels.wgmma_gemm.wgmma_half.routes import (
    first_route,
    lines_touched,
    may_be_classed,
    moved_bytes,
    routes_of,
    second_route,
)
from tilewise.kernels.wgmma_gemm.wgmma_half.single import (
    CUT,
    EACH_PAIR,
    EDGED,
    FIGURES,
    MOVES,
    N_BY_CLASSES,
    PAIRS,
    PAIRS_FROM,
    SYMMETRIC,
    TRANSPOSED,
    WHOLE,
)
from tilewise.kernels.wgmma_gemm.wgmma_half.tiles import (
    CLASSES,
    DEPTH,
    DOTS,
    FEW,
    LEAST_PHASES,
    LEAVES,
    STORES,
    SUMS,
    TRANSPOSED_ROWS,
    TensorConfig,
    TensorTile,
    boxes,
    edge_form,
    fixed_parts,
)
from tilewise.system.machine_code import Row, Rows

MORE_THAN, NO_MORE_THAN = FEW
THIN = 1  # rows or columns beyond whole tiles that `thin_edges.cuh` makes in the background
NO_EDGES = 2  # more than any tile has
DOTS_TRIP_SECONDS, SUMS_TRIP_SECONDS = 1.2e-6, 4e-6  # to L2 and back, while everybody asks


class Place(NamedTuple):
    """What a row stands for."""

    tile: TensorTile
    pair: int
    form: int


@lru_cache(maxsize=1)
def table() -> tuple[tuple[Place, ...], Rows]:
    """In order of preference among equal expected times."""
    places, rows = list[Place](), list[Row]()
    for tile, (stores, by_classes) in STORES.items():
        forms = (WHOLE, CUT) if tile.takes_parts else (WHOLE,)
        if tile.takes_edges:
            forms = (*forms, EDGED)
        for pair, form in product(range(PAIRS), forms):
            places.append(Place(tile, pair, form))
            rows.append(_row(tile, pair, form, stores, by_classes))
    for pair in range(PAIRS):
        places.append(Place(TensorTile(TRANSPOSED_ROWS, 0), pair, TRANSPOSED))
        rows.append(_row(places[-1].tile, pair, TRANSPOSED, frozenset(("transposed",)), frozenset()))
    for tile in alignment_classes.IN_STACKS:
        places.append(Place(tile, PAIRS, N_BY_CLASSES))
        rows.append(_row(*places[-1], frozenset(), frozenset()))
    return tuple(places), Rows(rows)


@lru_cache(maxsize=1)
def symmetric_table() -> tuple[tuple[Place, ...], Rows]:
    """The same for a symmetric P."""
    places = tuple(Place(tile, pair, SYMMETRIC) for tile, pair in product(STORES, range(PAIRS)))
    return places, Rows([_row(*place, *STORES[place.tile]) for place in places])


def _row(tile: TensorTile, pair: int, form: int, stores: frozenset[str], by_classes: frozenset[str]) -> Row:
    return (
        tile.rows, tile.cols, tile.cluster, pair, form, tile.takes_accumulate, "partial" in stores,
        tile.takes_edges, tile.groups,
        *(how in stores for how in LEAVES), *(how in by_classes for how in LEAVES), tile.beside, tile.takes_serial,
    )  # fmt: skip


class Figures(NamedTuple):
    """What times depend on besides sizes: a kind of product on a card."""

    units: int  # multiprocessors
    bandwidth: float  # bytes a second
    rate: float  # steps a second of a multiprocessor's tensor cores
    converted_m: bool  # the operand is of another dtype than the product
    converted_n: bool
    fused: bool  # an epilogue is applied
    n_by_classes: bool  # lines of N may come by alignment classes


def figures_of(p: Problem, machine: Machine) -> Figures:
    rate, converted = machine.tensor_rate(p.dtype.name) / machine.units, (p.dtype_m != p.dtype, p.dtype_n != p.dtype)
    by_classes = alignment_classes.takes_kind(p)
    return Figures(machine.units, machine.bandwidth, rate, *converted, bool(p.epilogue), by_classes)


def given_of(p: Problem, f: Figures) -> Row:
    """What all rows share; at last four pairs of routes, as far as there are so many."""
    m = first_route(p.layout_m, p.m, p.k, f.converted_m)
    n = first_route(p.layout_n, p.k, p.n, f.converted_n)
    other_m = second_route(p.layout_m, p.m, p.k, m, may_be_classed(p))
    other_n = second_route(p.layout_n, p.k, p.n, n, False)
    edged, demand = p.n % 64 == THIN, NO_EDGES
    if (edged or p.m % 64 == THIN) and not (p.accumulate or p.unrounded) and p.axes == 0:
        demand = 1
    pairs = (1 if other_m == NO_ROUTE else 2) * (1 if other_n == NO_ROUTE else 2)
    m_across, n_across = along_columns(p.layout_m, p.m, p.k), not along_columns(p.layout_n, p.k, p.n)
    return (
        p.m, p.n, -(-p.k // DEPTH), f.units, pairs, may_be_transposed(p, f.fused), p.accumulate and not p.unrounded,
        not p.unrounded, demand, boxes(p.layout_p, p.m, p.n, 0, p.layout_p.alignment),
        edged and boxes(p.layout_p, p.m, p.n, THIN, p.layout_p.alignment), p.unrounded, f.rate,
        f.bandwidth * FIGURES.gathering_share, fixed_parts(p, f.units), m_across, n_across,
        *numbers_of(p, f, m, n, demand),
        *numbers_of(p, f, other_m if other_n == NO_ROUTE else m, n if other_n == NO_ROUTE else other_n, demand),
        *numbers_of(p, f, NO_ROUTE if other_n == NO_ROUTE else other_m, n, demand),
        *numbers_of(p, f, other_m, other_n, demand),
    )  # fmt: skip


def numbers_of(p: Problem, f: Figures, m: int, n: int, demand: int) -> Row:
    """Of a pair of routes: lines of memory that a tile's rows of M and N lie in; the fourth power of the seconds that
    the memory needs, and seconds that operands are moved before; whether M comes by classes, one is packed; seconds of
    thin edges of columns and rows; whether one is moved."""
    if m == NO_ROUTE or n == NO_ROUTE:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    lines_m, lines_n = lines_touched(m, p.layout_m, p.m, p.k), lines_touched(n, p.layout_n, p.k, p.n)
    more = p.m * p.k * (lines_m - 1) + p.k * p.n * (lines_n - 1)
    passing = ((p.least_bytes + FIGURES.straddling * 2 * more) / (f.bandwidth * FIGURES.memory)) ** 4
    moved = moved_bytes(m, p.layout_m, p.m, p.k, p.own_m) + moved_bytes(n, p.layout_n, p.k, p.n, p.own_n)
    moving = FIGURES.copy + moved / (f.bandwidth * FIGURES.copying) if moved else 0.0
    cols, rows, packed = 0.0, 0.0, m == PACKS or n == PACKS
    if demand < NO_EDGES and not packed:
        both = m == REALIGNS and n == REALIGNS
        m_along, n_along = not along_columns(p.layout_m, p.m, p.k), along_columns(p.layout_n, p.k, p.n)
        cols = edge_seconds(edge_form(THIN, m_along, n_along, both), p.m, p.k, f.units)
        rows = edge_seconds(edge_form(THIN, n_along, m_along, both), p.n, p.k, f.units)
    return lines_m, lines_n, passing, moving, m == CLASSED, packed, cols, rows, m >= REALIGNS or n >= REALIGNS


def passes(row: Row, given: Row) -> int:
    """One to move operands, one to add up the parts of k."""
    moves = int(given[PAIRS_FROM + EACH_PAIR * int(row[3]) + MOVES])
    return moves + (1 if row[4] == CUT else 0)


def may_be_transposed(p: Problem, fused: bool) -> bool:
    """Whether a few hundred rows may be a tile's columns."""
    if p.k < 2 or not MORE_THAN < p.m <= NO_MORE_THAN or p.accumulate or p.unrounded or fused:
        return False
    return boxes(p.layout_p, p.m, p.n, 0, p.layout_p.alignment) and not along_columns(p.layout_m, p.m, p.k)


def edge_seconds(form: int, extent: int, k: int, units: int) -> float:
    """Of a thin edge of so many cells, in the background: trips to L2, one after the other. Dot products take 32 lines
    and 256 of k a trip, sums over lines 32 columns and 144 of k, and wait longer for so many short pieces. Of planes
    little is left."""
    if form == DOTS:
        return rounded_up(extent / 32 * 8 / 3 / units) * -(-k // 256) * DOTS_TRIP_SECONDS
    if form == SUMS:
        return rounded_up(extent / 32 / units) * -(-k // 144) * SUMS_TRIP_SECONDS
    return 0.0


def config_of(place: Place, p: Problem, machine: Machine) -> TensorConfig:
    tile, pair, form = place
    if form == N_BY_CLASSES:
        return TensorConfig(tile, (DEINTERLEAVED, BY_CLASSES))
    routes = routes_of(p, pair)
    if form == SYMMETRIC:
        return TensorConfig(tile, routes, symmetric=True)
    if form == TRANSPOSED:
        return TensorConfig(TensorTile(tile.rows, single.transposed_columns(p.m)), routes, transposed=True)
    classes = CLASSES if routes[0] == BY_CLASSES else 1
    if form == EDGED:
        rows, cols = (
            THIN if extent % side == THIN < extent else 0 for extent, side in ((p.m, tile.rows), (p.n, tile.cols))
        )
        return TensorConfig(tile, routes, 1, classes, rows, cols)
    parts = _parts(p, tile, machine) if form == CUT else max(1, fixed_parts(p, machine.units))
    return TensorConfig(tile, routes, parts, classes, serial=form == WHOLE and parts > 1)


def _parts(p: Problem, tile: TensorTile, machine: Machine) -> int:
    if parts := fixed_parts(p, machine.units):
        return parts
    tiles = p.members * tiles_in_classes(p.m, p.n, tile.rows * tile.cluster, tile.cols * tile.beside, 1)
    return parts_of(tiles, tile.at_once(machine.units), -(-p.k // DEPTH) // LEAST_PHASES)
