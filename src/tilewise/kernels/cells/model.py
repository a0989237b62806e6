"""Small products, a thread to a few cells of P, as the planner sees them."""

from __future__ import annotations

import math

from tilewise.kernels.plain.ways import step_slots
from tilewise.machine import Machine
from tilewise.plans import Geometry
from tilewise.problem import Problem

KERNEL = "cells"
IDEA = "a thread makes a few cells of P from the caches: small products, and stacks of thousands of them"
THREADS = 256  # of a block
LONGEST = 256  # k: beyond it sums one after the other are less exact than a tile's, and slower
LARGEST = 2**22  # steps of one member beyond which tiles always win
START_SECONDS = 2.5e-6
STEP_SECONDS = 50e-9  # of one k of 4 bytes, where threads are too few to hide the way to the caches
RATE_SHARE = 0.05  # of the plain cores' rate: loads set the pace, not the steps
READING = 0.6  # share of the memory's bandwidth


def width(problem: Problem) -> int:
    """Cells of a thread: more of them read M less often, and leave fewer threads."""
    wide = problem.members * problem.m * problem.n >= 2**17
    return 4 if wide and problem.n >= 4 else 2 if wide and problem.n >= 2 else 1


def threads(problem: Problem) -> int:
    return problem.members * problem.m * math.ceil(problem.n / width(problem))


def refusal(problem: Problem) -> str | None:
    p = problem
    if p.dtype_m != p.dtype or p.dtype_n != p.dtype:
        return f"kernel={KERNEL!r} multiplies operands of one dtype, not {p.dtype_m} by {p.dtype_n}"
    if p.m * p.k * p.n > LARGEST or p.k > LONGEST:
        limits = f"up to {LARGEST:,} steps with k up to {LONGEST}"
        return f"kernel={KERNEL!r} is for small products, {limits}, and this is {p.shape}"
    return None


def seconds(problem: Problem, machine: Machine) -> float:
    p = problem
    waves = math.ceil(max(1.0, threads(p) / (machine.units * machine.resident_threads)))
    latency = p.k * STEP_SECONDS * max(1.0, p.dtype.itemsize / 4) * waves
    rate = machine.step_rate("float32") * RATE_SHARE / max(1.0, step_slots(p.algebra, machine) / 2)
    reading = p.least_bytes / (READING * machine.bandwidth)
    return START_SECONDS + max(latency, p.steps / rate, reading)


def geometry(problem: Problem) -> Geometry:
    """A block as people count it: so many cells of P side by side."""
    cells = THREADS * width(problem)
    cols = min(problem.n, cells)
    return Geometry((THREADS, 1), max(1, cells // max(1, cols)), max(1, cols), 1, 0)
