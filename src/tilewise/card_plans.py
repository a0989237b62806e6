"""Problem → Plan on a card: tensor cores, plain kernels and the ladder, whichever has the least expected time.

The choice is an analytic model: each kernel's own (`*_tiles`), and for the ladder the blocks of the busiest
multiprocessor over its rate (`rungs` holds what each rung reaches).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tilewise.errors import ShapeError, UsageError
from tilewise.few_tiles import long_lines
from tilewise.k_major_tiles import KERNEL as K_MAJOR
from tilewise.k_major_tiles import best_way as best_k_major
from tilewise.k_major_tiles import kind_of
from tilewise.k_major_tiles import refusal as k_major_refusal
from tilewise.machine import Machine
from tilewise.mma_tiles import KERNEL as MMA
from tilewise.mma_tiles import MmaWay, worthwhile
from tilewise.mma_tiles import best_way as best_mma_way
from tilewise.mma_tiles import refusal as mma_refusal
from tilewise.plain_tiles import IDEAS as PLAIN_KERNELS
from tilewise.plain_tiles import Choice
from tilewise.plain_tiles import choose as choose_plain
from tilewise.plain_ways import step_slots
from tilewise.plans import DEFAULT_TILE, LAUNCH_SECONDS, Plan, assemble, epilogue_after
from tilewise.problem import Problem
from tilewise.rungs import LADDER, Geometry, find_rung
from tilewise.split_tiles import KERNEL as SPLIT_KERNEL
from tilewise.split_tiles import PRODUCTS
from tilewise.split_tiles import best_way as best_split
from tilewise.split_tiles import refusal as split_refusal
from tilewise.tensor_tiles import KERNEL, TensorWay, best_way, refusal


def on_card(problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
    """The tensor cores, the plain kernels and the ladder: whichever takes the problem in the least expected time."""
    for name, refuses in (
        (KERNEL, refusal),
        (SPLIT_KERNEL, split_refusal),
        (K_MAJOR, k_major_refusal),
        (MMA, mma_refusal),
    ):
        if kernel == name and (why_not := refuses(problem, machine)):
            raise UsageError(why_not)
    if problem.scaled:
        if why_not := k_major_refusal(problem, machine):
            raise UsageError(f"scales= has one kernel on a card: {why_not}")
        return _with_k_side_by_side(problem, machine, kernel, tile)
    bare = problem.bare if problem.epilogue else problem  # for kernels that apply no epilogue
    if kernel in PLAIN_KERNELS or problem.return_arg:
        return epilogue_after(_on_plain_cores(bare, machine, kernel, tile), problem)
    plans = []
    if kernel in (None, KERNEL) and refusal(problem, machine) is None:
        plans.append(_on_tensor_cores(problem, machine, kernel, tile))
    if (kernel == K_MAJOR or (kernel is None and tile is None)) and k_major_refusal(bare, machine) is None:
        plans.append(epilogue_after(_with_k_side_by_side(bare, machine, kernel, tile), problem))
    if (kernel == SPLIT_KERNEL or (kernel is None and tile is None)) and split_refusal(bare, machine) is None:
        plans.append(epilogue_after(_in_planes(bare, machine, kernel, tile), problem))
    if kernel == MMA or (  # where Hopper's own kernels do not take it
        kernel is None and not plans and mma_refusal(problem, machine) is None and worthwhile(problem, machine)
    ):
        plans.append(_by_mma_sync(problem, machine, kernel, tile))
    if kernel is None and tile is None:
        plans.append(epilogue_after(_on_plain_cores(bare, machine, kernel, tile), problem))
    if kernel not in (KERNEL, SPLIT_KERNEL, K_MAJOR, MMA):
        plans.append(epilogue_after(_on_the_ladder(bare, machine, kernel, tile), problem))
    return min(plans, key=lambda plan: plan.predicted)


def _fused(problem: Problem) -> list[str]:
    return [f"P is {problem.epilogue.words()}, made before it is stored"] if problem.epilogue else []


def _own_tiles(
    problem: Problem,
    machine: Machine,
    kernel: str,
    tile: int | None,
    geometry: Geometry,
    predicted: float,
    limits: tuple[float, str],
    notes: Iterable[str],
    **fields: Any,
) -> Plan:
    """The plan of a kernel whose tiles are not TILE_WIDTH's: no faster than `limits` say, with the reason."""
    floor, bound = limits
    plan = assemble(problem, machine, "cuda", kernel, DEFAULT_TILE if tile is None else tile, geometry)
    if tile is not None:
        notes = (*notes, f"tile={tile} is TILE_WIDTH of the ladder's kernels; this one has tiles of its own")
    return replace(plan, predicted=max(predicted, floor), floor=floor, bound=bound, notes=tuple(notes), **fields)


def _limits(compute: float, problem: Problem, machine: Machine) -> tuple[float, str]:
    """The floor of a product that takes so long on its cores, and what sets it."""
    memory = problem.least_bytes / machine.bandwidth
    return max(compute, memory), "arithmetic" if compute >= memory else "memory"


def _tensor_reason(plan: Plan, kernel: str | None, tiles: str) -> Plan:
    asked = "the kernel was asked for" if kernel else "tensor cores have the least expected time"
    return replace(plan, why=f"{asked}; {plan.grid[0]}x{plan.grid[1]} tiles of {tiles}")


def _on_plain_cores(problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
    if kernel not in (None, *PLAIN_KERNELS):
        raise UsageError(f"kernel={kernel!r} does not tell which k won: leave kernel= out, or return_arg=True")
    chosen = choose_plain(problem, machine, kernel)
    converted = tuple(x for x, d in (("M", problem.dtype_m), ("N", problem.dtype_n)) if d != problem.dtype)
    notes = [f"{' and '.join(converted)} converted to {problem.dtype} first"] if converted else []
    plan = _own_tiles(
        problem,
        machine,
        chosen.kernel,
        tile,
        chosen.geometry,
        chosen.predicted,
        machine.floor(problem.steps, problem.least_bytes, problem.dtype.name),
        (*notes, *_precision_notes(problem, machine)),
        packs=converted,
    )
    return replace(plan, why=_plain_reason(chosen, plan, kernel))


def _plain_reason(chosen: Choice, plan: Plan, kernel: str | None) -> str:
    asked = "the kernel was asked for" if kernel else f"{chosen.kernel} has the least expected time"
    pieces = f", k in {chosen.pieces} pieces" if chosen.pieces > 1 else ""
    found = ", where no element is found below 0" if chosen.otherwise else ""
    return f"{asked}; steps: {chosen.way.idea}{found}; {plan.grid[0]}x{plan.grid[1]} tiles{pieces}"


def pinned(problem: Problem, machine: Machine, way: TensorWay | MmaWay) -> Plan:
    """The plan that takes this very way, whatever the model thinks of it."""
    if isinstance(way, TensorWay):
        return _on_tensor_cores(problem, machine, KERNEL, None, (way, 0.0))
    return _by_mma_sync(problem, machine, MMA, None, (way, 0.0))


def _on_tensor_cores(
    problem: Problem, machine: Machine, kernel: str | None, tile: int | None, pin: tuple[TensorWay, float] | None = None
) -> Plan:
    way, predicted = pin or best_way(problem, machine)
    plan = _own_tiles(
        problem,
        machine,
        KERNEL,
        tile,
        way.tile.geometry,
        predicted,
        machine.floor(problem.steps, problem.least_bytes, problem.dtype.name),
        way.words() + _fused(problem),
        packs=_packed(way.routes),
        tensor=way,
    )
    waves = way.waves(problem.m, problem.n, machine.units)
    chosen_by = "tuned" if way.tuned else "by the model"
    tiles = f"{way.tile.rows}x{way.tile.cols} are {waves} waves on {machine.units} multiprocessors ({chosen_by})"
    return _tensor_reason(plan, kernel, tiles)


def _by_mma_sync(
    problem: Problem, machine: Machine, kernel: str | None, tile: int | None, pin: tuple[MmaWay, float] | None = None
) -> Plan:
    way, predicted = pin or best_mma_way(problem, machine)
    plan = _own_tiles(
        problem,
        machine,
        MMA,
        tile,
        way.tile.geometry(machine.arch, problem.dtype.itemsize),
        predicted,
        machine.floor(problem.steps, problem.least_bytes, problem.dtype.name),
        way.words() + _fused(problem),
        packs=_packed(way.routes),
        mma=way,
    )
    chosen_by = "tuned" if way.tuned else "by the model"
    tiles = f"{way.tile.rows}x{way.tile.cols}, {way.tile.resident} a multiprocessor ({chosen_by})"
    return _tensor_reason(plan, kernel, tiles)


def _packed(routes: tuple[str, str]) -> tuple[str, ...]:
    return tuple(name for name, how in zip("MN", routes, strict=True) if how == "packed")


def _in_planes(problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
    """float32 on tensor cores."""
    way, predicted = best_split(problem, machine)
    operands = (
        ("M", problem.layout_m, problem.m, problem.k, problem.dtype_m),
        ("N", problem.layout_n, problem.k, problem.n, problem.dtype_n),
    )
    packs = tuple(
        name
        for name, layout, rows, cols, dtype in operands
        if dtype != problem.dtype or long_lines(layout, rows, cols) is None
    )
    notes = [f"{' and '.join(packs)} packed first: elements apart, or another dtype"] if packs else []
    plan = _own_tiles(
        problem,
        machine,
        SPLIT_KERNEL,
        tile,
        way.tile.geometry,
        predicted,
        _limits(PRODUCTS * problem.steps / machine.tensor_rate("bfloat16"), problem, machine),
        (*notes, *way.words()),
        packs=packs,
        split=way,
    )
    waves = way.waves(problem.m, problem.n, machine.units)
    tiles = f"{way.tile.rows}x{way.tile.cols} are {waves} waves on {machine.units} multiprocessors"
    return _tensor_reason(plan, kernel, tiles)


def _with_k_side_by_side(problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
    """tf32 and 8-bit elements on tensor cores."""
    way, predicted = best_k_major(problem, machine)
    kind = kind_of(problem)
    assert kind is not None
    plan = _own_tiles(
        problem,
        machine,
        K_MAJOR,
        tile,
        way.tile.geometry(problem.dtype_m.itemsize),
        predicted,
        _limits(problem.steps / (kind.rate * machine.tensor_rate("bfloat16")), problem, machine),
        way.words(),
        packs=(),
        k_major=way,
    )
    waves = way.waves(problem.m, problem.n, machine.units)
    tiles = f"{way.tile.rows}x{way.tile.cols} are {waves} waves on {machine.units} multiprocessors"
    return _tensor_reason(plan, kernel, tiles)


def _on_the_ladder(problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
    candidates = [kernel] if kernel else ["tiled_edges", "coarsened", "register_tiled"]
    if not kernel and problem.algebra.partial.itemsize > 8:
        candidates.remove("register_tiled")  # 64 complex128 sums spill out of the registers
    choices = []
    for name in candidates:
        rung = find_rung(name)
        widths = [tile] if tile else [t for t in (8, 16, 32) if t <= rung.max_tile]
        for width in widths:
            if width <= rung.max_tile:
                choices.append(_candidate(problem, machine, name, width))
    if not choices:
        raise UsageError(f"tile={tile} fits no kernel; name one with kernel=, or leave tile= out")
    best = min(choices, key=lambda plan: plan.predicted)
    if kernel and LADDER[kernel].whole_tiles_only:
        check_whole_tiles(problem, kernel, best.tile)
    notes = [f"{' and '.join(best.packs)} packed first: columns apart, or another dtype"] if best.packs else []
    return replace(best, notes=(*notes, *_precision_notes(problem, machine)), why=_reason(best, kernel, tile))


def _candidate(problem: Problem, machine: Machine, kernel: str, tile: int) -> Plan:
    """One rung at one tile, with the model's time.

    The busiest multiprocessor sets it: its blocks, one after the other, at the rung's share of the peak. A narrow tile
    reuses less, and a multiprocessor with few threads waits for memory.
    """
    rung = LADDER[kernel]
    geometry = rung.geometry(tile, problem.algebra)
    plan = assemble(problem, machine, "cuda", kernel, tile, geometry)
    blocks = math.ceil(plan.blocks / machine.units)
    threads = min(blocks * geometry.block[0] * geometry.block[1], machine.resident_threads)
    share = rung.share * (tile / rung.max_tile) ** 0.25 * min(1.0, threads / rung.saturation)
    steps = blocks * geometry.rows * geometry.cols * max(1, plan.phases) * geometry.depth
    rate = machine.step_rate("float32") / machine.units / step_slots(problem.algebra, machine)
    compute = steps / (rate * share) if share else 0.0
    floor, bound = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
    return replace(plan, predicted=max(compute, floor) + LAUNCH_SECONDS, floor=floor, bound=bound)


def check_whole_tiles(problem: Problem, kernel: str, tile: int) -> None:
    if problem.m % tile or problem.k % tile or problem.n % tile:
        raise ShapeError(
            f"kernel={kernel!r} takes multiples of TILE_WIDTH only, and {problem.shape} is not made of whole tiles "
            f"of {tile}: use kernel='tiled_edges', which has the boundary checks"
        )


def _reason(plan: Plan, kernel: str | None, tile: int | None) -> str:
    g = plan.geometry
    waves = plan.blocks / plan.machine.units if plan.machine.units else 0
    pieces = f"{plan.grid[0]}x{plan.grid[1]} blocks of {g.rows}x{g.cols} give {waves:.3g} blocks a multiprocessor"
    if kernel and tile:
        return f"kernel and tile were asked for; {pieces}"
    if kernel:
        return f"the kernel was asked for; tile {plan.tile} has the least expected time; {pieces}"
    return f"{plan.kernel} at tile {plan.tile} has the least expected time; {pieces}"


def _precision_notes(problem: Problem, machine: Machine) -> tuple[str, ...]:
    """What becomes of float32 that might have run on tensor cores."""
    if problem.dtype.name != "float32" or problem.semiring.name != "plus_times" or problem.precision == "ieee":
        return ()
    if split_refusal(problem, machine) is None:
        return (f"precision={problem.precision!r} runs as 'ieee' here: splitting operands would take longer",)
    return (f"precision={problem.precision!r} runs as 'ieee': there is no tensor-core path for it here",)
