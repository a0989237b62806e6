"""The best configuration for a product, and lower bounds of its time."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from tilewise.core.machine import Machine
from tilewise.core.problem import Problem
from tilewise.core.tuning import preferred
from tilewise.kernels.bounds import Bound
from tilewise.kernels.by_configs import soonest, timed
from tilewise.kernels.wgmma_gemm.wgmma_half import alone, inside, stacked
from tilewise.kernels.wgmma_gemm.wgmma_half.model import KERNEL, configs, expected, tables, tuning_class
from tilewise.kernels.wgmma_gemm.wgmma_half.tiles import DEPTH, FEW_INSIDE, LEAST_PHASES, TILES, TensorConfig


@lru_cache(maxsize=64)
def best_config(problem: Problem, machine: Machine) -> tuple[TensorConfig, float]:
    """The one with the least expected seconds; a table of measured ones decides between those that are close."""
    tuned = machine.tuned
    sizes = problem.m, problem.k, problem.n
    tuned_here = tuned is not None and tuned.measured(f"{KERNEL} {problem.dtype.name}", sizes)
    key = tuning_class(problem) if tuned_here else ""
    known = tuned is not None and key in tuned.entries
    if problem.groups:
        every = [(config, expected(config, problem, machine)) for config in configs(problem, machine)]
    elif known:
        every = list(timed(tables(problem, machine)))
    else:
        seconds, best = soonest(tables(problem, machine), problem.largest)
        return best, seconds
    numbered = [(seconds, at, config) for at, (config, seconds) in enumerate(every)]
    seconds, best, by_table = preferred(numbered, key, tuned)
    return replace(best, tuned=True) if by_table else best, seconds


def bounds(some: Problem, machine: Machine) -> tuple[Bound, ...]:
    """Tensor cores or the memory, thin edges being made beside; or one tile's phases: all of k, or the fewest of a
    part. Where k is cut inside the launch, as its formula has it."""
    rate = machine.tensor_rate(some.dtype.name)
    if some.members > 1:
        byte, inner = 1 / (machine.bandwidth * stacked.MEMORY_SHARE), 1 / (rate * stacked.TENSOR_SHARE)
        return (Bound(stacked.START_SECONDS + stacked.GROUP_SECONDS, inner=inner, byte=byte),)
    byte, least = 1 / (machine.bandwidth * alone.MEMORY_SHARE), min(tile.rows * tile.cols for tile in TILES)
    phase = alone.PHASE_SECONDS + least * DEPTH * machine.units / (rate * alone.TENSOR_SHARE)
    tile, part = (
        min(alone.tile_seconds(store, min(tile.cols for tile in TILES)) for store in stores)
        for stores in (range(alone.PARTIAL), (alone.PARTIAL,))
    )
    lines = (phase / DEPTH, tile), (0.0, LEAST_PHASES * phase + part)
    start = alone.START_SECONDS + alone.GROUP_SECONDS
    whole = Bound(start, inner=1 / (rate * alone.TENSOR_SHARE), byte=byte, lines=lines)
    cluster = inside.TILE_SECONDS + inside.CLUSTER_SECONDS + 2 * inside.PART_SECONDS
    of_k = inside.PHASE_SECONDS / DEPTH
    lines = (of_k, inside.TILE_SECONDS), (of_k / inside.PARTS[-1], cluster)
    cut = Bound(inside.START_SECONDS, byte=byte, lines=lines)
    squares = inside.MOST_SQUARES * inside.SQUARE**2
    return whole, cut._replace(few=FEW_INSIDE[-1].cols), cut._replace(cells=squares)
