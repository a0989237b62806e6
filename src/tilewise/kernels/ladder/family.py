"""The course's kernels, rung by rung: for learning, and for what no other family takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from tilewise.algebra.semiring import Algebra
from tilewise.core.machine import Machine
from tilewise.core.plan import DEFAULT_TILE, LAUNCH_SECONDS, Geometry, Plan, assemble
from tilewise.core.problem import Problem
from tilewise.core.recipe import Scratch, Step
from tilewise.errors import UsageError
from tilewise.kernels.capabilities import Capabilities
from tilewise.kernels.family import Family
from tilewise.kernels.ladder.model import LADDER, Rung, check_tile, check_whole_tiles, find_rung
from tilewise.kernels.ladder.recipe import launches
from tilewise.kernels.ladder.text import render
from tilewise.kernels.shared.placed import Operands
from tilewise.kernels.shared.steps import step_slots

ANY_SIZE = "tiled_edges"  # the notes' kernel with its boundary checks


class Ladder(Family):
    name = "ladder"
    kernels: ClassVar = {name: rung.idea for name, rung in LADDER.items()}
    can = Capabilities(precisions=("ieee",))
    beside_tile = True
    teaches = True

    def text(self, plan: Plan) -> str:
        """The CUDA C of a plan, which the interpreter reads as the card's compiler does."""
        return render(plan)

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

    def interpreted(self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
        """What the interpreter runs; where no rung is named, the first that takes any size."""
        rung, width = find_rung(kernel or ANY_SIZE), tile or DEFAULT_TILE
        if rung.whole_tiles_only:
            check_whole_tiles(problem, rung.name, width)
        return _assembled(problem, machine, "simt", rung, width)

    def geometry(self, tile: int, algebra: Algebra) -> Geometry:
        """What one block of the notes' own kernel does."""
        return LADDER[ANY_SIZE].geometry(tile, algebra)

    def checked_tile(self, tile: object, kernel: str | None) -> int:
        """TILE_WIDTH as an int that the rung can have, or one clear sentence."""
        return check_tile(tile, LADDER.get(kernel) if kernel else None)

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)


def _assembled(problem: Problem, machine: Machine, engine: str, rung: Rung, tile: int) -> Plan:
    plan = assemble(problem, machine, engine, rung.name, rung.idea, tile, rung.geometry(tile, problem.algebra))
    vectors = plan.aligned and rung.name == "register_tiled"  # the only rung that loads four at a time
    return replace(plan, family=Ladder.name, shares=rung.name != "naive", aligned=vectors)


def _candidate(problem: Problem, machine: Machine, kernel: str, tile: int) -> Plan:
    """One rung at one tile, with the model's time.

    The busiest multiprocessor sets it: its blocks, one after the other, at the rung's share of the peak. A narrow tile
    reuses less, and a multiprocessor with few threads waits for memory.
    """
    rung = LADDER[kernel]
    geometry = rung.geometry(tile, problem.algebra)
    plan = _assembled(problem, machine, "cuda", rung, tile)
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
        return f"kernel and tile were requested; {pieces}"
    if kernel:
        return f"the kernel was requested; tile {plan.tile} has the least expected time; {pieces}"
    return f"{plan.kernel} at tile {plan.tile} has the least expected time; {pieces}"
