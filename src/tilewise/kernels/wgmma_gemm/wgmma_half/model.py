"""The tensor-core kernel as the planner sees it: what it takes, and the ways it could go."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from tilewise.core.machine import Machine
from tilewise.core.problem import Problem
from tilewise.core.tuning import class_of
from tilewise.kernels.capabilities import Condition
from tilewise.kernels.shared.layouts import AS_IT_IS, PACKED, along_columns
from tilewise.kernels.wgmma_gemm.wgmma_half import lags, table
from tilewise.kernels.wgmma_gemm.wgmma_half.alone import transposed_columns
from tilewise.kernels.wgmma_gemm.wgmma_half.routes import options, route
from tilewise.kernels.wgmma_gemm.wgmma_half.seconds import expected, store_of
from tilewise.kernels.wgmma_gemm.wgmma_half.tiles import (
    CLASSES,
    DEPTH,
    FEW,
    STORES,
    TILES,
    TRANSPOSED_CLUSTERS,
    TRANSPOSED_ROWS,
    TensorConfig,
    TensorTile,
    worthwhile,
)

__all__ = [
    "CLASSES",
    "DEPTH",
    "FEW",
    "IDEA",
    "KERNEL",
    "TILES",
    "TensorConfig",
    "TensorTile",
    "configs",
    "expected",
]

KERNEL = "wgmma_half"
IDEA = "tiles stream in by the copy engine, warpgroups multiply them on tensor cores"


def _stores_unrounded(p: Problem) -> bool:
    lead = p.layout_p.leading_dimension(p.m, p.n)
    return not p.unrounded or not (lead is None or lead % 2 or any(stride % 2 for stride in p.layout_p.stack))


def _groups(p: Problem) -> bool:
    if p.groups is None:
        return True
    if p.accumulate or p.epilogue or p.unrounded or not p.k:
        return False
    sides = (p.layout_m, p.m, p.k, p.dtype_m), (p.layout_n, p.k, p.n, p.dtype_n)
    packed = PACKED in [route(layout, rows, cols, dtype, p.dtype) for layout, rows, cols, dtype in sides]
    rows = along_columns(p.layout_m, p.m, p.k) and not along_columns(p.layout_n, p.k, p.n)
    return p.groups.along == "rows" or (rows and not packed)


UNROUNDED = Condition(_stores_unrounded, "keeps unrounded sums in rows that start on 8 bytes")
GROUPS = Condition(_groups, "stores groups as they are, and takes those along k of operands whose rows are contiguous")


def tuning_class(problem: Problem) -> str:
    """What kind of product this is, for tables of measured ways."""
    p = problem
    columns = along_columns(p.layout_m, p.m, p.k), along_columns(p.layout_n, p.k, p.n)
    routes = route(p.layout_m, p.m, p.k, p.dtype, p.dtype), route(p.layout_n, p.k, p.n, p.dtype, p.dtype)
    layouts = "".join("NT"[transposed] for transposed in columns)
    return class_of(KERNEL, p.dtype.name, (p.m, p.k, p.n), layouts, routes == (AS_IT_IS, AS_IT_IS))


def configs(problem: Problem, machine: Machine, among: Sequence[TensorTile] | None = None) -> list[TensorConfig]:
    """Every way; of a stack or of groups, or those with tiles `among` these."""
    everything = among is None
    if problem.groups:
        return _grouped_configs(problem, TILES if among is None else among)
    if problem.members == 1:
        return [config for config, _ in table.every(problem, machine)]
    for_m, for_n = options(problem)
    rounded = problem.accumulate and not problem.unrounded
    if among is None:
        among = [TILES[number] for number in worthwhile(problem.m, problem.n)]
    tiles = [tile for tile in among if tile.takes_accumulate or not rounded]
    made = [
        TensorConfig(tile, (how_m, how_n), parts)
        for tile, how_m, how_n in product(tiles, for_m, for_n)
        for parts in _splits(problem, tile, machine)
    ]
    made = [
        config
        for config in made
        if problem.unrounded or store_of(config, problem, machine.units) in STORES[config.tile][0]
    ]
    return made + transposed_configs(problem) + lags.configs(problem) if everything else made


def transposed_configs(problem: Problem) -> list[TensorConfig]:
    """A few hundred rows fill whole tiles badly; as a tile's columns they come in finer steps."""
    if not table.may_be_transposed(problem):
        return []
    cols = transposed_columns(problem.m)
    pairs = product(*options(problem))
    return [
        TensorConfig(TensorTile(TRANSPOSED_ROWS, cols, c), pair, transposed=True)
        for pair in pairs
        for c in TRANSPOSED_CLUSTERS
    ]


def _grouped_configs(p: Problem, among: Sequence[TensorTile]) -> list[TensorConfig]:
    """Groups begin at any row, which the copy engine can do across lines, not along them."""
    for_m, for_n = route(p.layout_m, p.m, p.k, p.dtype_m, p.dtype), route(p.layout_n, p.k, p.n, p.dtype_n, p.dtype)
    if p.groups and p.groups.along == "rows" and along_columns(p.layout_m, p.m, p.k):
        for_m = PACKED
    made = [TensorConfig(tile, (for_m, for_n)) for tile in among if tile.together == 1]
    return made + [config for config in lags.configs(p) if config.tile in among]


def _splits(problem: Problem, tile: TensorTile, machine: Machine) -> tuple[int, ...]:
    """k of a stack is cut only where its tiles leave much of the card idle."""
    if not tile.takes_parts or problem.unrounded:
        return (1,)
    tiles, phases = TensorConfig(tile, ("", "")).tiles(problem.m, problem.n), -(-problem.k // DEPTH)
    most = min(machine.units // max(1, tiles * tile.cluster * problem.members), phases // 4)
    return (1, most) if most > 1 else (1,)
