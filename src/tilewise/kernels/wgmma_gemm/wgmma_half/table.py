"""The rows that `single.expected` is evaluated on (every tile, pair of routes and form of a single product), what it is
given of a product, and which way a row stands for."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from tilewise.core.machine import Machine
from tilewise.core.problem import Layout, Problem
from tilewise.kernels.shared.layouts import BY_CLASSES, DEINTERLEAVED, PACKED, REALIGNED, along_columns
from tilewise.kernels.shared.residency import parts_of
from tilewise.kernels.shared.triangle import tiles_in_classes
from tilewise.kernels.wgmma_gemm.wgmma_half import alignment_classes, single
from tilewise.kernels.wgmma_gemm.wgmma_half.routes import lines_touched, moved_bytes, options
from tilewise.kernels.wgmma_gemm.wgmma_half.single import CUT, EDGED, N_BY_CLASSES, PAIRS, SYMMETRIC, TRANSPOSED, WHOLE
from tilewise.kernels.wgmma_gemm.wgmma_half.tiles import (
    CLASSES,
    DEPTH,
    FEW,
    LEAST_PHASES,
    LEAVES,
    STORES,
    TRANSPOSED_ROWS,
    TensorConfig,
    TensorTile,
    fixed_parts,
    takes_boxes,
)
from tilewise.system.machine_code import Row, Rows

MOVED = (REALIGNED, PACKED)
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


def given_of(p: Problem, machine: Machine) -> tuple[list[tuple[str, str]], Row]:
    """The pairs of routes, and what all rows share."""
    m, k, n, units = p.m, p.k, p.n, machine.units
    for_m, for_n = options(p)
    pairs = [(how_m, how_n) for how_m in for_m for how_n in for_n]
    boxed, plain = takes_boxes(p.layout_p, m, n), not (p.accumulate or p.unrounded)
    transposed = may_be_transposed(p)
    edged, demand = n % 64 == THIN, NO_EDGES
    if (edged or m % 64 == THIN) and plain and not p.stack:
        demand = 1
    numbers: list[float] = []
    of_m = {how: coming(how, p.layout_m, m, k, p) for how in for_m}
    of_n = {how: coming(how, p.layout_n, k, n, p) for how in for_n}
    for how_m, how_n in pairs:
        (lines_m, moved_m), (lines_n, moved_n) = of_m[how_m], of_n[how_n]
        touched, moved = (lines_m, lines_n), moved_m + moved_n
        packed = how_m == PACKED or how_n == PACKED
        edges = edge_seconds(p, (how_m, how_n), machine) if demand < NO_EDGES and not packed else (0.0, 0.0)
        numbers += (
            *touched, single.passing_seconds(p, touched, machine), single.moving_seconds(moved, machine),
            how_m == BY_CLASSES, packed, *edges,
        )  # fmt: skip
    return pairs, (
        m, n, -(-k // DEPTH), units, len(pairs), transposed, p.accumulate and not p.unrounded, not p.unrounded, demand,
        boxed, edged and takes_boxes(p.layout_p, m, n, THIN), p.unrounded,
        machine.tensor_rate(p.dtype.name) / units, machine.bandwidth * single.FIGURES.gathering_share,
        fixed_parts(p, units), *numbers,
    )  # fmt: skip


def coming(how: str, layout: Layout, rows: int, cols: int, p: Problem) -> tuple[int, int]:
    """Lines of memory that a tile's row of an operand lies in, and the bytes that are moved before."""
    return lines_touched(how, layout, rows, cols), moved_bytes(layout, rows, cols, p) if how in MOVED else 0


def may_be_transposed(p: Problem) -> bool:
    """Whether a few hundred rows may be a tile's columns."""
    if p.k < 2 or not FEW[0] < p.m <= FEW[1] or p.accumulate or p.unrounded or p.epilogue:
        return False
    return takes_boxes(p.layout_p, p.m, p.n) and not along_columns(p.layout_m, p.m, p.k)


def edge_seconds(p: Problem, routes: tuple[str, str], machine: Machine) -> tuple[float, float]:
    """Of a thin edge of columns and of rows, in the background: trips to L2, one after the other. Dot products take 32
    lines and 256 of k a trip, sums over lines 32 columns and 144 of k, and wait longer for so many short pieces. Of
    planes little is left."""
    m_along_k, n_along_k = not along_columns(p.layout_m, p.m, p.k), along_columns(p.layout_n, p.k, p.n)
    config = TensorConfig(TensorTile(128, 256), routes, edge_rows=THIN, edge_cols=THIN)
    made = []
    for form, extent in zip(config.edge_forms(m_along_k, n_along_k) or (), (p.m, p.n), strict=True):
        seconds = 0.0
        if form == "dots":
            seconds = math.ceil(extent / 32 * 8 / 3 / machine.units) * math.ceil(p.k / 256) * DOTS_TRIP_SECONDS
        elif form == "sums":
            seconds = math.ceil(extent / 32 / machine.units) * math.ceil(p.k / 144) * SUMS_TRIP_SECONDS
        made.append(seconds)
    return made[0], made[1]


def config_of(place: Place, pairs: list[tuple[str, str]], p: Problem, machine: Machine) -> TensorConfig:
    tile, pair, form = place
    if form == N_BY_CLASSES:
        return TensorConfig(tile, (DEINTERLEAVED, BY_CLASSES))
    routes = pairs[pair]
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
