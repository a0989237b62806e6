"""Thin products of float32 as the planner sees them: how many warps a block has, how many blocks share a k."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter

from tilewise.algebra.builtin import is_plus_times
from tilewise.machine import Machine, arch_number
from tilewise.plans import Geometry
from tilewise.problem import Problem

KERNEL = "thin"
IDEA = "few rows or columns of float32 and a long k: a lane makes all cells of its lines of P"
CELLS = (16, 24, 32, 40, 48, 64)  # of P's short side, that a lane has room for
FEWEST = 9  # of the short side; fewer are a matrix–vector product's
PANEL, DEEP = 128, 16  # of k, as thin.cu has them
MOST_WARPS = 4
WARPS = (1, 2, 4)
RESIDENT = 3  # blocks of as many warps that share a multiprocessor: nothing spills
CLUSTERS = (1, 2, 4, 8)

START_SECONDS = 1.2e-6  # of a launch,
BLOCK_SECONDS = 2.5e-6  # of a block's first loads and its last stores,
MEET_SECONDS = 1.0e-6  # of a cluster,
DEEP_SECONDS = 0.5e-6  # and of DEEP of k, where nothing hides its loads
RATE_SHARE = 0.6  # of the cores' rate
MEMORY_SHARE = 0.7


@dataclass(frozen=True)
class ThinWay:
    """Blocks of `warps` warps; `cluster` of them share the k of the same lines."""

    warps: int
    cluster: int

    def words(self) -> str:
        return f"w{self.warps} c{self.cluster}"


def lines_of(cells: int) -> int:
    """Lines of a lane: two, as long as registers hold their sums."""
    return 2 if cells <= 32 else 1


def short_side(problem: Problem) -> int:
    return min(problem.m, problem.n)


def long_side(problem: Problem) -> int:
    return max(problem.m, problem.n)


def by_columns(problem: Problem) -> bool:
    """Whether P has few columns, so that its rows are the lines."""
    return problem.n <= problem.m


def cells_for(problem: Problem) -> int:
    return next((cells for cells in CELLS if cells >= short_side(problem)), 0)


def refusal(problem: Problem, machine: Machine) -> str | None:
    p = problem
    if machine.kind != "cuda" or arch_number(machine.arch) < 80:
        return f"kernel={KERNEL!r} needs a card from Ampere on (sm_80), and this is {machine.arch or 'no card'}"
    if {p.dtype_m.name, p.dtype_n.name, p.dtype.name, p.result.name} != {"float32"}:
        return f"kernel={KERNEL!r} multiplies float32, not {p.dtype_m} by {p.dtype_n} to {p.result}"
    if p.precision == "tf32":
        return f"kernel={KERNEL!r} rounds nothing: it is for precision='high' or 'ieee', not 'tf32'"
    if not is_plus_times(p.semiring):
        return f"kernel={KERNEL!r} knows plus_times alone, not {p.semiring}"
    if p.accumulate:
        return f"kernel={KERNEL!r} writes P, and cannot add onto it"
    if not FEWEST <= short_side(p) <= CELLS[-1]:
        return f"kernel={KERNEL!r} makes {FEWEST} to {CELLS[-1]} rows or columns of P, and this is {p.shape}"
    return None


def shared_bytes(problem: Problem, warps: int) -> int:
    cells, span = cells_for(problem), warps * 32 * lines_of(cells_for(problem))
    panels = 2 * PANEL * cells + span * (DEEP + 1)
    return 4 * max(panels, cells * (span + 1))


def tiles_of(problem: Problem, warps: int) -> int:
    """Blocks along P's long side."""
    return math.ceil(long_side(problem) / (warps * 32 * lines_of(cells_for(problem))))


def piece(problem: Problem, way: ThinWay) -> int:
    """How much of k one block of a cluster takes: DEEP at a time."""
    return max(1, math.ceil(math.ceil(problem.k / DEEP) / way.cluster)) * DEEP


def ways(problem: Problem, machine: Machine) -> Iterator[ThinWay]:
    clusters = CLUSTERS if arch_number(machine.arch) >= 90 else (1,)
    for warps in WARPS:
        for cluster in clusters:
            if cluster == 1 or problem.k > (cluster - 1) * piece(problem, ThinWay(warps, cluster)):
                yield ThinWay(warps, cluster)


def seconds(way: ThinWay, problem: Problem, machine: Machine) -> float:
    p, cells = problem, cells_for(problem)
    blocks = tiles_of(p, way.warps) * way.cluster * max(1, p.members)
    held = RESIDENT * MOST_WARPS // way.warps  # blocks of a multiprocessor
    each, waves = math.ceil(blocks / machine.units), math.ceil(blocks / (machine.units * held))
    deep = piece(p, way) / DEEP
    steps = way.warps * 32 * lines_of(cells) * cells * deep * DEEP  # of a block
    rate = machine.step_rate("float32") / machine.units * RATE_SHARE
    work = max(each * steps / rate, waves * deep * DEEP_SECONDS)
    reading = p.least_bytes / (MEMORY_SHARE * machine.bandwidth)
    return START_SECONDS + BLOCK_SECONDS + max(work, reading) + (MEET_SECONDS if way.cluster > 1 else 0.0)


@lru_cache(maxsize=64)
def best_way(problem: Problem, machine: Machine) -> tuple[float, ThinWay]:
    return min(((seconds(way, problem, machine), way) for way in ways(problem, machine)), key=itemgetter(0))


def geometry(problem: Problem, way: ThinWay) -> Geometry:
    cells = cells_for(problem)
    span = way.warps * 32 * lines_of(cells)
    rows, cols = (span, cells) if by_columns(problem) else (cells, span)
    return Geometry((32 * way.warps, 1), rows, cols, PANEL, shared_bytes(problem, way.warps))
