"""Problem → Plan: which kernel, tile and grid will run, and why.

Pure functions over plain values: a plan can be made for a card that is not there.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from tilewise.blocking import KERNELS as CPU_KERNELS
from tilewise.blocking import choose, has_kernel
from tilewise.card_plans import check_whole_tiles, on_card
from tilewise.errors import DeviceError, DtypeError, UsageError
from tilewise.machine import Machine
from tilewise.plans import DEFAULT_TILE, Plan, assemble, epilogue_after
from tilewise.problem import Problem
from tilewise.rungs import LADDER, Geometry, check_tile, find_rung


def make_plan(problem: Problem, machine: Machine, kernel: str | None = None, tile: object = None) -> Plan:
    """The plan for a problem on a machine; `kernel` and `tile` pin what the model would choose."""
    width = None if tile is None else check_tile(tile, LADDER.get(kernel) if kernel else None)
    if kernel is not None and not isinstance(kernel, str):
        raise UsageError(f"kernel={kernel!r} must be a name: reference, {', '.join(LADDER)}")
    return _plan(problem, machine, kernel, width)


@lru_cache(maxsize=4096)
def _plan(problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
    problem.algebra  # noqa: B018  refuses a dtype the semiring does not take, before anything else is decided
    place = {"cpu": _on_cpu, "simt": _in_the_interpreter}.get(machine.kind, on_card)
    return place(problem, machine, kernel, tile)


def _on_cpu(problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
    if problem.epilogue:
        return epilogue_after(_plan(problem.bare, machine, kernel, tile), problem)
    if kernel is not None and kernel not in ("reference", *CPU_KERNELS):
        find_rung(kernel)
        raise DeviceError(f"kernel={kernel!r} runs on a card: pass device='cuda', or leave kernel= out on the CPU")
    floor, bound = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
    compiled = machine.vector_bytes > 0 and has_kernel(problem) and (problem.k > 0 or problem.return_arg)
    notes: tuple[str, ...] = ()
    if kernel == "reference" or not compiled:
        if problem.return_arg:
            raise DtypeError(
                f"return_arg=True needs a compiled kernel, and the cpu engine has none for {problem.dtype} here: "
                "convert the operands to float64, and leave kernel='reference' out"
            )
        geometry = LADDER["tiled_edges"].geometry(tile or DEFAULT_TILE, problem.algebra)
        plan = assemble(problem, machine, "reference", "reference", tile or DEFAULT_TILE, geometry)
        why = "it was asked for" if kernel else "the cpu engine has no kernel for this, and the reference engine has"
        return replace(plan, floor=floor, bound=bound, predicted=floor, why=why, notes=notes)
    cut = choose(problem, machine.vector_bytes, machine.registers, kernel)
    packed_bytes = (cut.MC + cut.NC) * cut.KC * problem.algebra.partial.itemsize
    geometry = Geometry((1, 1), cut.MC, cut.NC, cut.KC, packed_bytes)
    plan = assemble(problem, machine, "cpu", cut.kernel, cut.NR, geometry)
    if tile is not None:
        notes = (*notes, f"tile={tile} is ignored: the cpu engine fits its own tiles to registers and caches")
    return replace(plan, floor=floor, bound=bound, predicted=floor, why=cut.why, notes=notes, blocking=cut)


def _in_the_interpreter(problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
    if problem.epilogue:
        return epilogue_after(_plan(problem.bare, machine, kernel, tile), problem)
    rung = find_rung(kernel or "tiled_edges")
    width = tile or DEFAULT_TILE
    plan = assemble(problem, machine, "simt", rung.name, width, rung.geometry(width, problem.algebra))
    if rung.whole_tiles_only:
        check_whole_tiles(problem, rung.name, width)
    floor, bound = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
    why = "device='simt' was asked for: the card's kernel text is interpreted, thread by thread, with no card"
    return replace(plan, floor=floor, bound=bound, predicted=floor, why=why)
