"""Groups of rows over any algebra, as the planner sees them."""

from __future__ import annotations

import math

from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry
from tilewise.core.problem import Problem
from tilewise.kernels.capabilities import Condition
from tilewise.kernels.plain.configs import step_slots
from tilewise.kernels.shared.groups import expected_tiles

KERNEL = "grouped"
IDEA = "blocks find their group's rows on the card and make 64x64 of P from tiles in shared memory, over any algebra"
SIDE, PHASE, THREADS = 64, 16, 256
GRID_Y = 65535
START_SECONDS = 6e-6  # two launches
RATE_SHARE = 0.2  # of the plain cores' rate: 4 x 4 cells a thread, operands from shared memory
READING = 0.5  # share of the memory's bandwidth


MEMBERS = Condition(
    lambda p: p.groups is not None and (p.groups.along == "rows" or p.groups.count <= GRID_Y),
    f"makes up to {GRID_Y:,} members of P along k",
)


def seconds(problem: Problem, machine: Machine) -> float:
    p, rate = problem, machine.step_rate("float32") * RATE_SHARE / max(1.0, step_slots(problem.algebra, machine) / 2)
    assert p.groups is not None
    tiles = expected_tiles(p, SIDE) if p.groups.along == "rows" else math.ceil(p.m / SIDE)
    work = tiles * SIDE * math.ceil(p.n / SIDE) * SIDE * p.k
    return START_SECONDS + max(work / rate, p.least_bytes / (READING * machine.bandwidth))


def geometry(problem: Problem) -> Geometry:
    shared = (SIDE * (PHASE + 1) + PHASE * (SIDE + 1)) * problem.algebra.partial.itemsize
    return Geometry((THREADS, 1), SIDE, SIDE, PHASE, shared)
