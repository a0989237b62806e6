"""The tensor-core kernel as the planner sees it: what it takes, how operands reach it, and which way is the best.

The copy engine wants rows that start on 16-byte boundaries. An operand whose rows do not is realigned into a workspace
first (`kernels/shared/realign.cu`); M can often be taken by classes of rows instead (`wgmma_half.cu`). One with holes
between its elements, or of another dtype, is packed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import product

from tilewise.algebra.builtin import SEMIRINGS
from tilewise.algebra.dtypes import DType
from tilewise.kernels.shared.layouts import (
    AS_IT_IS,
    BY_CLASSES,
    LONGEST_LINE,
    PACKED,
    REALIGNED,
    along_columns,
    contiguous_lines,
)
from tilewise.kernels.wgmma_half.seconds import expected, store_of
from tilewise.kernels.wgmma_half.tiles import DEPTH, TILES, TensorTile, TensorWay, parts_of, takes_boxes, worthwhile
from tilewise.machine import Machine
from tilewise.problem import Layout, Problem
from tilewise.tuning import class_of

__all__ = ["DEPTH", "IDEA", "KERNEL", "TILES", "TensorTile", "TensorWay", "expected", "refusal", "ways"]

KERNEL = "wgmma_half"
IDEA = "tiles stream in by the copy engine, warpgroups multiply them on tensor cores"
THIN = 1  # rows or columns beyond whole tiles that `thin_edges.cuh` makes in the background
CLASSES = 8  # every so many rows of 2-byte elements one starts equally far from a 16-byte boundary, if not sooner
FEW = (64, 512)  # more rows than this and no more than that: worth to be a tile's columns


def refusal(problem: Problem, machine: Machine) -> str | None:
    """Why the tensor-core kernel does not take this problem, or None when it does."""
    if not machine.arch.startswith("sm_90"):
        return f"kernel={KERNEL!r} is made for Hopper (sm_90), and this is {machine.arch or 'no card'}"
    if problem.dtype.name not in ("bfloat16", "float16"):
        return f"kernel={KERNEL!r} multiplies bfloat16 and float16, not {problem.dtype}"
    lead = problem.layout_p.leading_dimension(problem.m, problem.n)
    if problem.unrounded and (lead is None or lead % 2 or any(stride % 2 for stride in problem.layout_p.stack)):
        return f"kernel={KERNEL!r} keeps unrounded sums in rows that start on 8 bytes"
    ring, plain = problem.semiring, SEMIRINGS["plus_times"]
    if (ring.add, ring.mul, ring.zero) != (plain.add, plain.mul, plain.zero):
        return f"kernel={KERNEL!r} knows plus_times alone, not {ring}"
    if problem.groups:
        return _refused_groups(problem)
    return None


def _refused_groups(p: Problem) -> str | None:
    if p.accumulate or p.epilogue or p.unrounded:
        return f"kernel={KERNEL!r} stores groups as they are: no accumulate, no epilogue"
    if not p.k:
        return f"kernel={KERNEL!r} adds up at least one k"
    sides = (p.layout_m, p.m, p.k, p.dtype_m), (p.layout_n, p.k, p.n, p.dtype_n)
    routes = [route(layout, rows, cols, dtype, p.dtype) for layout, rows, cols, dtype in sides]
    across = along_columns(p.layout_m, p.m, p.k), not along_columns(p.layout_n, p.k, p.n)
    if p.groups and p.groups.along == "k" and (PACKED in routes or not all(across)):
        return f"kernel={KERNEL!r} takes groups along k of operands whose rows lie side by side"
    return None


def route(layout: Layout, rows: int, cols: int, dtype: DType, wanted: DType) -> str:
    """How an operand reaches the kernel if nothing better is known: `as it is`, `realigned` or `packed`."""
    lines = contiguous_lines(layout, rows, cols)
    if lines is None or dtype != wanted or lines[1] > LONGEST_LINE:
        return PACKED
    count, _, lead = lines
    strides = (*(() if count <= 1 else (lead,)), *layout.stack)
    whole = all(stride % 8 == 0 <= stride for stride in strides) and layout.alignment >= 16
    return AS_IT_IS if whole else REALIGNED


def tuning_class(problem: Problem) -> str:
    """What kind of product this is, for tables of measured ways."""
    p = problem
    columns = along_columns(p.layout_m, p.m, p.k), along_columns(p.layout_n, p.k, p.n)
    routes = route(p.layout_m, p.m, p.k, p.dtype, p.dtype), route(p.layout_n, p.k, p.n, p.dtype, p.dtype)
    layouts = "".join("NT"[turned] for turned in columns)
    return class_of(KERNEL, p.dtype.name, (p.m, p.k, p.n), layouts, routes == (AS_IT_IS, AS_IT_IS))


@lru_cache(maxsize=64)
def options(problem: Problem) -> tuple[list[str], list[str]]:
    """How M and how N can reach the kernel."""
    m, k, n = problem.m, problem.k, problem.n
    for_m = [route(problem.layout_m, m, k, problem.dtype_m, problem.dtype)]
    for_n = [route(problem.layout_n, k, n, problem.dtype_n, problem.dtype)]
    lines_m, lines_n = contiguous_lines(problem.layout_m, m, k), contiguous_lines(problem.layout_n, k, n)
    for how, lines in ((for_m, lines_m), (for_n, lines_n)):
        if how == [AS_IT_IS] and lines and lines[0] > 1 and lines[2] % DEPTH:
            how.append(REALIGNED)  # lines that straddle 128 bytes cost the copy engine twice
    skewed = not along_columns(problem.layout_m, m, k) and not along_columns(problem.layout_n, k, n)
    if for_m == [REALIGNED] and skewed and not problem.stack and m >= CLASSES and not problem.unrounded:
        for_m.append(BY_CLASSES)
    return for_m, for_n


def ways(problem: Problem, machine: Machine, among: Sequence[TensorTile] | None = None) -> list[TensorWay]:
    """Every way, or those with tiles `among` these; ways that turn P have tiles of their own."""
    if problem.groups:
        return _grouped_ways(problem, TILES if among is None else among)
    m, n, (for_m, for_n), everything = problem.m, problem.n, options(problem), among is None
    ways = []
    rounded = problem.accumulate and not problem.unrounded
    if among is None:
        among = [TILES[number] for number in worthwhile(m, n)]
    tiles = [tile for tile in among if tile.takes_accumulate or not rounded]
    for tile, *routes in product(tiles, for_m, for_n):
        if routes[0] == BY_CLASSES and not tile.wide:
            continue
        if routes[0] == BY_CLASSES:
            ways.append(TensorWay(tile, (routes[0], routes[1]), 1, CLASSES))
        else:
            splits = _splits(problem, tile, machine)
            ways += [TensorWay(tile, (routes[0], routes[1]), parts) for parts in splits]
        thin_can_be = tile.takes_edges and not (problem.stack or problem.unrounded or problem.accumulate)
        thin_can_be &= tile.takes_edges_with_bias or problem.epilogue.bias is None
        if PACKED not in routes and thin_can_be and ways[-1].splits == 1:
            thin = [extent % size for extent, size in ((m, tile.rows), (n, tile.cols))]
            rows, cols = (
                edge if edge <= THIN and extent > edge else 0 for edge, extent in zip(thin, (m, n), strict=True)
            )
            if rows or cols:
                thin_way = TensorWay(tile, ways[-1].routes, 1, ways[-1].classes, rows, cols)
                if store_of(thin_way, problem, machine.units) == "carried":
                    ways.append(thin_way)  # the warps that carry sums out make them; where none do it does not pay
    return ways + turned_ways(problem) if everything else ways


def _grouped_ways(p: Problem, among: Sequence[TensorTile]) -> list[TensorWay]:
    """Groups begin at any row, which the copy engine can do across lines, not along them."""
    for_m, for_n = route(p.layout_m, p.m, p.k, p.dtype_m, p.dtype), route(p.layout_n, p.k, p.n, p.dtype_n, p.dtype)
    if p.groups and p.groups.along == "rows" and along_columns(p.layout_m, p.m, p.k):
        for_m = PACKED
    return [TensorWay(tile, (for_m, for_n)) for tile in among if tile.cluster == 1]


def turned_ways(problem: Problem) -> list[TensorWay]:
    """A few hundred rows fill whole tiles badly; as a tile's columns they come in finer steps."""
    m, k, n = problem.m, problem.k, problem.n
    if problem.groups or not FEW[0] < m <= FEW[1]:
        return []
    for_m, for_n = options(problem)
    odd = problem.accumulate or problem.unrounded or problem.epilogue or along_columns(problem.layout_m, m, k)
    if odd or not takes_boxes(problem.layout_p, m, n):
        return []
    cols = math.ceil(m / math.ceil(m / 256) / 16) * 16
    routes = product([how for how in for_m if how != BY_CLASSES], for_n)
    return [TensorWay(TensorTile(128, cols, c), pair, turned=True) for pair in routes for c in (1, 2)]


def _splits(problem: Problem, tile: TensorTile, machine: Machine) -> tuple[int, ...]:
    """k is cut only where its tiles leave much of the card idle."""
    if not tile.takes_parts or problem.unrounded:
        return (1,)
    tiles, phases = TensorWay(tile, ("", "")).tiles(problem.m, problem.n), math.ceil(problem.k / DEPTH)
    if problem.members == 1:
        return (1, *parts_of(tiles, machine.units // tile.cluster, phases))
    most = min(machine.units // max(1, tiles * tile.cluster * problem.members), phases // 4)
    return (1, most) if most > 1 else (1,)
