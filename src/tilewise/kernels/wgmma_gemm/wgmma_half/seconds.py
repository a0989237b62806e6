"""How long the tensor-core kernel is expected to take, by a model of waves, bytes and lines: of stacks and of groups;
`alone.py` has single products."""

from __future__ import annotations

import math

from tilewise.core.machine import Machine
from tilewise.core.problem import Problem
from tilewise.kernels.shared.groups import expected_tiles
from tilewise.kernels.shared.layouts import PACKED, REALIGNED, along_columns
from tilewise.kernels.shared.stacked import Levels
from tilewise.kernels.wgmma_gemm.wgmma_half import lags, table
from tilewise.kernels.wgmma_gemm.wgmma_half.routes import lines_touched, moved_bytes
from tilewise.kernels.wgmma_gemm.wgmma_half.tiles import DEPTH, TensorConfig

# The model's figures, measured on an H200 (docs/tensor-cores.md says how).
TENSOR_SHARE = 0.76  # of the peak at the highest clock, which the card cannot hold under this load
UNIT_BANDWIDTH = 76e9  # bytes a second that L2 gives each multiprocessor when all of them ask
SHARPNESS = 4  # how little two limits that are equally near hinder each other
LINE_SECONDS = 1.5e-9  # the copy engine's time for each 128-byte line it touches
TILE_SECONDS = {
    "boxes": 0.4e-6,
    "turned": 0.6e-6,
    "rows": 1.2e-6,
    "carried": 0.6e-6,
    "partial": 0.4e-6,
}  # a tile's start and its stores, as far as nothing hides them
LINES_OUT_SECONDS = {"carried": 14.5e-6 / 2**15, "rows": 5.4e-6 / 2**15}  # a cell of a tile that leaves in lines
UNEVEN = 3  # how little cores and memory work side by side on groups of unknown sizes;
THREE_SLOW = 1.08  # by so much three consumers are slower there than two,
IDLE_SLOW = 0.05  # and each one that has no rows of its own, by stages that stay empty;
UNSURE = 0.35  # tiles a group, by which their number is off from what is expected
NARROWER = 0.5  # of a tile is spared where it is multiplied by half
NARROW, WIDE_SLOW = 128, 1.15  # along k, tiles of more columns store as long as they multiply
START_SECONDS = 3.5e-6  # the launch, the first tiles' way in, the last one's way out,
GROUP_SECONDS = 0.5e-6  # and each warpgroup's share in that, where it is all there is
HOT_SECONDS = 1e-3  # from here on the card lowers its clock: so much slower with each doubling, by the tile's area
HOT_SLOW = ((192 * 192, 0.005), (128 * 256, 0.03), (0, 0.045))
MOVE_SECONDS = 0.2e-6 / 256  # a column of sums that move between classes of lines
CLUSTER_SECONDS = 2.5e-6  # blocks of a cluster wait for one another
MEMORY_SHARE = 0.87  # of the memory's bandwidth on paper
LAUNCH_SECONDS = 3e-6  # each launch more, where a stack has more axes than one launch walks
COPY_SECONDS = 4e-6  # realigning: its launch and its tail, most of it overlapped
GATHER_SECONDS = 4e-6  # adding up the parts of k: its launch,
GATHER_BANDWIDTH = 4e12  # and the bytes, which lie in L2


def expected(config: TensorConfig, problem: Problem, machine: Machine) -> float:
    """Seconds: whole waves of tiles, or the bytes; then what comes before and after.

    A phase takes as long as the tensor cores need for it, or L2 for its bytes, or the copy engine for its lines, and a
    little longer where two of them are equally busy.
    """
    if problem.groups is None and problem.members == 1:
        return table.expected(config, problem, machine)
    tile, (m, k, n) = config.tile, (problem.m, problem.k, problem.n)
    rows, cols = busy_rows(config, problem), tile.cols / tile.cluster
    cores = rows * tile.cols * DEPTH / (machine.tensor_rate(problem.dtype.name) / machine.units * TENSOR_SHARE)
    of_m, of_n = (cols, rows) if config.transposed else (rows, cols)
    touched = 2 if config.lagged else lines_touched(config.routes[1], problem.layout_n, k, n)
    lines = of_m * lines_touched(config.routes[0], problem.layout_m, m, k) + of_n * touched
    limits = (cores, (rows + cols) * 2 * DEPTH / UNIT_BANDWIDTH, lines * LINE_SECONDS)
    phase: float = math.hypot(*(limit**SHARPNESS for limit in limits)) ** (1 / SHARPNESS)
    phases, waves = phases_of(config, problem), waves_of(config, problem, machine.units)
    store = config.store(problem.layout_p, m, n, problem.layout_p.alignment, waves, phases)
    memory = machine.bandwidth * MEMORY_SHARE
    each = phases * phase + TILE_SECONDS[store]
    if config.lagged:
        each += (lags.classes_of(problem.layout_n.row) - 1) * MOVE_SECONDS * tile.cols
    if waves > 1 and store in LINES_OUT_SECONDS:  # sums leave line by line, in the background or not
        out = LINES_OUT_SECONDS[store] * tile.rows * tile.cols
        each = max(each, out) if store == "carried" else each + out
    bytes_seconds = problem.least_bytes / memory
    work = max(waves * each, bytes_seconds)
    if problem.groups:  # uneven groups leave neither the cores nor the memory busy all the time
        turns: float = waves
        if problem.groups.along == "rows":
            turns = drawn_turns(config, problem, machine.units) * (THREE_SLOW if tile.groups > 2 else 1.0)
        elif tile.cols > NARROW:
            turns *= WIDE_SLOW
        work = ((turns * each) ** UNEVEN + bytes_seconds**UNEVEN) ** (1 / UNEVEN)
        work *= 1 + IDLE_SLOW * (tile.groups - rows / 64)
    work += (_launches(problem) - 1) * LAUNCH_SECONDS
    if work > HOT_SECONDS:
        hot = next(share for area, share in HOT_SLOW if tile.rows * tile.cols >= area)
        work *= 1 + hot * math.log2(work / HOT_SECONDS)
    work += START_SECONDS + (tile.groups if waves == 1 else 2) * GROUP_SECONDS
    work += CLUSTER_SECONDS if tile.cluster > 1 else 0.0
    sides = ((problem.layout_m, m, k), (problem.layout_n, k, n))
    moved = sum(
        moved_bytes(*side, problem)
        for how, side in zip(config.routes, sides, strict=True)
        if how in (REALIGNED, PACKED)
    )
    if config.lagged:
        moved = lags.moved_bytes(problem)
    if moved:
        work += COPY_SECONDS + moved / memory
    if config.splits > 1:
        work += GATHER_SECONDS + problem.members * 8 * config.splits * m * n / GATHER_BANDWIDTH
    return work


def waves_of(config: TensorConfig, problem: Problem, units: int) -> int:
    """Whole waves of tiles; of groups, as many as sizes that nobody knows are likely to make."""
    if problem.groups and problem.groups.along == "rows":
        return math.ceil(expected_tiles(problem, config.tile.rows) * math.ceil(problem.n / config.cols) / units)
    return config.waves(problem.m, problem.n, units, problem.members)


def across(config: TensorConfig, problem: Problem) -> float:
    """Tiles side by side of groups of rows: half of the last one, where its left half has all columns that are left."""
    narrowed = not along_columns(problem.layout_n, problem.k, problem.n) and config.narrowed(problem.n)
    return math.ceil(problem.n / config.cols) - (NARROWER if narrowed else 0.0)


def busy_rows(config: TensorConfig, problem: Problem) -> float:
    """Rows of a tile that are multiplied: of groups, those of the consumers that have any."""
    if not problem.groups or problem.groups.along != "rows":
        return config.tile.rows
    return min(config.tile.rows, 64 * expected_tiles(problem, 64) / expected_tiles(problem, config.tile.rows))


def drawn_turns(config: TensorConfig, problem: Problem, units: int) -> float:
    """Tiles of a multiprocessor, one after the other, where each draws the next when it is done: whole rounds, where
    there are one or two, a little more of them if sizes that nobody knows make a few tiles more than one fills."""
    wide = math.ceil(problem.n / config.cols)
    down = expected_tiles(problem, config.tile.rows)
    rounds = down * wide / units
    if rounds > 2 or problem.groups is None:
        return down * across(config, problem) / units + 0.5
    unsure = UNSURE * wide * math.sqrt(problem.groups.count) / units
    return 1 + sum(0.5 + 0.5 * math.erf((rounds - whole) / unsure) for whole in (1, 2, 3))


def phases_of(config: TensorConfig, problem: Problem) -> int:
    """Of one tile; along groups of k, of a group as large as the others."""
    along_k = problem.groups is not None and problem.groups.along == "k"
    depth = problem.k / problem.groups.count if problem.groups and along_k else problem.k
    if config.lagged:
        depth = lags.depth_of(problem)
    return max(1, math.ceil(math.ceil(depth / DEPTH) / config.splits))


def store_of(config: TensorConfig, problem: Problem, units: int) -> str:
    """How sums leave for a P that lies as the problem says."""
    lies, waves = problem.layout_p, waves_of(config, problem, units)
    return config.store(lies, problem.m, problem.n, lies.alignment, waves, phases_of(config, problem))


def _launches(problem: Problem) -> int:
    """How many launches a stack's axes take."""
    if problem.groups:
        return 2  # tiles are found before
    if not problem.stack:
        return 1
    strides = [layout.stack for layout in (problem.layout_m, problem.layout_n, problem.layout_p)]
    return max(1, problem.members // Levels(problem.stack, strides).members)
