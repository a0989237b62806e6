"""The course's kernels, rung by rung: for learning, and for what no other family takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from tilewise.errors import UsageError
from tilewise.kernels.family import Family
from tilewise.kernels.ladder.model import LADDER, check_whole_tiles, find_rung
from tilewise.kernels.ladder.recipe import launches
from tilewise.kernels.plain.ways import step_slots
from tilewise.kernels.shared.placed import Operands
from tilewise.machine import Machine
from tilewise.plans import LAUNCH_SECONDS, Plan, assemble
from tilewise.problem import Problem
from tilewise.recipe import Scratch, Step


class Ladder(Family):
    name = "ladder"
    kernels: ClassVar = {name: rung.idea for name, rung in LADDER.items()}
    beside_tile = True
    precisions = ("ieee",)

    def refusal(self, problem: Problem, machine: Machine, kernel: str | None = None) -> str | None:
        return None

    def plan(self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
        candidates = [kernel] if kernel else ["tiled_edges", "coarsened", "register_tiled"]
        if not kernel and problem.algebra.partial.itemsize > 8:
            candidates.remove("register_tiled")  # 64 complex128 sums spill out of the registers
        choices = []
        for name in candidates:
            rung = find_rung(name)
            widths = [tile] if tile else [t for t in (8, 16, 32) if t <= rung.max_tile]
            choices += [_candidate(problem, machine, name, width) for width in widths if width <= rung.max_tile]
        if not choices:
            raise UsageError(f"tile={tile} fits no kernel; name one with kernel=, or leave tile= out")
        best = min(choices, key=lambda plan: plan.predicted)
        if kernel and LADDER[kernel].whole_tiles_only:
            check_whole_tiles(problem, kernel, best.tile)
        notes = (f"{' and '.join(best.packs)} packed first: columns apart, or another dtype",) if best.packs else ()
        return replace(best, notes=notes, why=_reason(best, kernel, tile))

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)


def _candidate(problem: Problem, machine: Machine, kernel: str, tile: int) -> Plan:
    """One rung at one tile, with the model's time.

    The busiest multiprocessor sets it: its blocks, one after the other, at the rung's share of the peak. A narrow tile
    reuses less, and a multiprocessor with few threads waits for memory.
    """
    rung = LADDER[kernel]
    geometry = rung.geometry(tile, problem.algebra)
    plan = replace(assemble(problem, machine, "cuda", kernel, rung.idea, tile, geometry), family=Ladder.name)
    blocks = math.ceil(plan.blocks / machine.units)
    threads = min(blocks * geometry.block[0] * geometry.block[1], machine.resident_threads)
    share = rung.share * (tile / rung.max_tile) ** 0.25 * min(1.0, threads / rung.saturation)
    steps = blocks * geometry.rows * geometry.cols * max(1, plan.phases) * geometry.depth
    rate = machine.step_rate("float32") / machine.units / step_slots(problem.algebra, machine)
    compute = steps / (rate * share) if share else 0.0
    floor, bound = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
    return replace(plan, predicted=max(compute, floor) + LAUNCH_SECONDS, floor=floor, bound=bound)


def _reason(plan: Plan, kernel: str | None, tile: int | None) -> str:
    g = plan.geometry
    waves = plan.blocks / plan.machine.units if plan.machine.units else 0
    pieces = f"{plan.grid[0]}x{plan.grid[1]} blocks of {g.rows}x{g.cols} give {waves:.3g} blocks a multiprocessor"
    if kernel and tile:
        return f"kernel and tile were asked for; {pieces}"
    if kernel:
        return f"the kernel was asked for; tile {plan.tile} has the least expected time; {pieces}"
    return f"{plan.kernel} at tile {plan.tile} has the least expected time; {pieces}"
