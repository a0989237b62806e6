"""Problem → Plan: which kernel, tile and grid will run, and why.

Pure functions: a plan for a card needs no card. The card's families are imported inside functions: without them a
product on the CPU starts 0.1 s earlier.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from tilewise.core.blocking import has_kernel
from tilewise.core.machine import Machine
from tilewise.core.plan import DEFAULT_TILE, Geometry, Plan, assemble, epilogue_after
from tilewise.core.problem import Problem
from tilewise.core.reproducible import BATCH_NOTE, order_note
from tilewise.errors import DeviceError, DtypeError, UsageError

REFERENCE = "the notes' algorithm in NumPy, phase by phase"


def make_plan(problem: Problem, machine: Machine, kernel: str | None = None, tile: object = None) -> Plan:
    """The plan for a problem on a machine; `kernel` and `tile` pin what the model would choose."""
    if tile is None and (kernel is None or isinstance(kernel, str)):
        return _plan(problem, machine, kernel, None)
    from tilewise.kernels.registry import COURSE

    width = None if tile is None else COURSE.checked_tile(tile, kernel)
    if kernel is not None and not isinstance(kernel, str):
        raise UsageError(f"kernel={kernel!r} must be a name: reference, {', '.join(COURSE.kernels)}")
    return _plan(problem, machine, kernel, width)


@lru_cache(maxsize=4096)
def _plan(problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
    problem.algebra  # noqa: B018  raises first for a dtype that the semiring does not support
    if problem.return_arg:
        problem.semiring.check_selective()
    if problem.reproducible is not None:
        _check_ordered(problem, machine)
    place = {"cpu": _on_cpu, "simt": _in_the_interpreter}.get(machine.kind, _on_card)
    return place(problem, machine, kernel, tile)


def _check_ordered(problem: Problem, machine: Machine) -> None:
    """Refuse what has no defined bits, and machines without kernels for them."""
    if problem.ordered and machine.kind == "simt":
        raise DeviceError(
            f"reproducible={problem.reproducible!r} of {problem.dtype} has no kernel on {machine.name}: "
            "copy the operands to the host, where it has one"
        )


def _on_cpu(problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
    from tilewise.backends.cpu.kernels.interleaved.model import is_for_amx
    from tilewise.backends.cpu.registry import FAMILIES, choose, tile_of

    if problem.epilogue:
        return epilogue_after(_plan(problem.bare, machine, kernel, tile), problem)
    if kernel is not None and kernel not in ("reference", *FAMILIES):
        from tilewise.kernels.registry import family_of

        try:
            family_of(kernel)
        except UsageError as error:
            raise UsageError(f"{error}; on the CPU there are reference, {', '.join(FAMILIES)}") from None
        raise DeviceError(f"kernel={kernel!r} runs on a card: pass device='cuda', or leave kernel= out on the CPU")
    steps = problem.least_steps
    compiled = machine.vector_bytes > 0 and has_kernel(problem) and (problem.k > 0 or problem.return_arg)
    if kernel == "reference" or not compiled:
        floor, bound = machine.floor(steps, problem.least_bytes, problem.dtype.name)
        return replace(_by_reference(problem, machine, kernel, tile), floor=floor, bound=bound, predicted=floor)
    cut = choose(problem, machine, kernel)
    floor, bound = machine.floor(steps, problem.least_bytes, cut.rate(problem.dtype.name))
    packed_bytes = (cut.MC + cut.NC) * cut.KC * problem.algebra.partial.itemsize
    geometry = Geometry((1, 1), cut.MC, cut.NC, cut.KC, packed_bytes)
    plan = assemble(problem, machine, "cpu", cut.kernel, FAMILIES[cut.kernel].idea, cut.NR, geometry)
    where = "AMX tiles" if cut.amx else "registers"
    text = f"MR {cut.MR} x NR {cut.NR} in {where}; strips of KC {cut.KC}, MC {cut.MC}, NC {cut.NC}"
    ignored = f"tile={tile} is ignored: the cpu engine fits its own tiles to registers and caches"
    notes: tuple[str, ...] = () if tile is None else (ignored,)
    if machine.refused and is_for_amx(problem, tile_of(problem, replace(machine, matrix_tiles=True))):
        notes += (machine.refused,)
    if problem.ordered:
        notes += (order_note(problem.semiring),)
    if cut.symmetric:
        notes += (f"symmetric: {cut.computed_share(problem.m):.2f} of the tiles",)
    return plan.but(floor=floor, bound=bound, predicted=floor, why=cut.why, notes=notes, blocking=cut, cut=text)


def _by_reference(problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
    if problem.return_arg:
        raise DtypeError(
            f"return_arg=True needs a compiled kernel, and the cpu engine has none for {problem.dtype} here: "
            "convert the operands to float64, and leave kernel='reference' out"
        )
    from tilewise.kernels.registry import COURSE

    geometry = COURSE.geometry(tile or DEFAULT_TILE, problem.algebra)
    plan = assemble(problem, machine, "reference", "reference", REFERENCE, tile or DEFAULT_TILE, geometry)
    why = "it was requested" if kernel else "the cpu engine has no kernel for this, and the reference engine has"
    return replace(plan, why=why)


def _in_the_interpreter(problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
    if problem.epilogue:
        return epilogue_after(_plan(problem.bare, machine, kernel, tile), problem)
    from tilewise.kernels.registry import COURSE

    plan = COURSE.interpreted(problem, machine, kernel, tile)
    floor, bound = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
    why = "device='simt' was requested: the card's kernel text is interpreted, thread by thread, with no card"
    return replace(plan, floor=floor, bound=bound, predicted=floor, why=why)


def _on_card(problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
    from tilewise.kernels.choosing import on_card
    from tilewise.kernels.registry import family_named

    if problem.dtype.name.endswith("longdouble"):
        raise DtypeError(f"{problem.dtype} is no dtype of a card, where a long double is a double: convert to float64")
    plan = on_card(problem, machine, kernel, tile)
    if not problem.ordered:
        return plan
    note = order_note(problem.semiring) if family_named(plan.family).can.ordered else BATCH_NOTE
    return plan.but(notes=(*plan.notes, note))
