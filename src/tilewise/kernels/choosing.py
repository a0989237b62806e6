"""Which family multiplies on a card: the one with the least expected time, its launches weighed in, or the one whose
kernel was requested.

Loaded with the families when a card is planned for; a product on the CPU needs none of them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from tilewise.algebra.dtypes import DType
from tilewise.algebra.semiring import Semiring
from tilewise.core.machine import Machine
from tilewise.core.plan import Plan, after_epilogue, epilogue_after
from tilewise.core.problem import Problem, row_major
from tilewise.errors import UsageError
from tilewise.kernels.calibration import calibrated, mended
from tilewise.kernels.capabilities import why_not_of_kind, why_not_of_problem
from tilewise.kernels.family import Family
from tilewise.kernels.registry import FAMILIES, family_of
from tilewise.kernels.transforms.as_reals import form_of, has_real_form, real_form, seconds_beside

# What a launch beside the product's own weighs when families are compared. The card hides most of it, the host does
# not: 4, 8 and 11 µs of one, two and three launches and 2 of their scratch memory, for which calls in a queue wait.
PASS_SECONDS = 1e-6

Kind = tuple[DType, DType, DType | None, str, Semiring, bool]


def on_card(problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
    """The family whose plan has the least expected time, or the one whose kernel was requested."""
    if problem.stack and not problem.groups and (folded := problem.folded) is not problem:
        plan = on_card(folded, machine, kernel, tile)
        note = f"members share N: {problem.members:,} of {problem.m:,} rows are {folded.members:,} of {folded.m:,}"
        return replace(plan, notes=(*plan.notes, note))
    if kernel is not None:
        best = _asked_for(problem, machine, kernel, tile)
    else:
        best = _by(_soonest(problem, machine, tile), problem, machine, None, tile)
        if tile is None and has_real_form(problem):
            best = min(best, _by_reals(problem, machine), key=_weight)
    notes = _precision_notes(best, problem, machine)
    return best.but(notes=(*best.notes, *notes)) if notes else best


def _soonest(problem: Problem, machine: Machine, tile: int | None) -> Family:
    """The family with the least expected time."""
    able = competing(problem, machine, tile)
    if not able:
        raise UsageError(f"scales= has no kernel on {machine.name} for {problem.dtype_m} by {problem.dtype_n}")
    return min(able, key=lambda family: _expected(family, problem, machine, tile)) if len(able) > 1 else able[0]


def _expected(family: Family, problem: Problem, machine: Machine, tile: int | None) -> float:
    """The time of its best plan, its launches weighed in."""
    offer = family.offer(seen_by(family, problem), machine, tile)
    seconds = mended(offer) + PASS_SECONDS * offer.passes
    return after_epilogue(seconds, problem, machine) if problem.epilogue and not family.can.fuses else seconds


def _in_question(problem: Problem, tile: int | None) -> tuple[str, ...]:
    """Among which families the fastest is sought, and then, where none of them takes it. Where k is 0 there is only P
    to be written, and the simplest kernel does that."""
    if tile is not None and not (problem.return_arg or problem.scaled):
        return ("beside tile=",)
    return ("every",) if tile is not None or problem.k == 0 else ("fast", "taught")


def plans_in_turn(problem: Problem, machine: Machine) -> list[Plan]:
    """The plan of every family that takes a problem, in the order of preference."""
    plans = [_by(family, problem, machine, None, None) for family in competing(problem, machine, None)]
    plans += [_by_reals(problem, machine)] if has_real_form(problem) else []
    return sorted(plans, key=_weight)


def _weight(plan: Plan) -> float:
    return plan.predicted + PASS_SECONDS * plan.passes


def _by_reals(problem: Problem, machine: Machine) -> Plan:
    """The plan of a complex product by a real one."""
    pairs = problem.bare if problem.epilogue else problem
    real, form = on_card(real_form(pairs), machine, None, None), form_of(pairs)
    plan = real.but(
        problem=pairs,
        real=real,
        predicted=real.predicted + seconds_beside(pairs, machine),
        passes=real.passes + form.passes,
        notes=(*real.notes, f"complex numbers are multiplied as pairs of {real.problem.dtype}: {form.note()}"),
    )
    return epilogue_after(plan, problem)


def _asked_for(problem: Problem, machine: Machine, kernel: str, tile: int | None) -> Plan:
    family = family_of(kernel)
    if refusal := family.refusal(seen_by(family, problem), machine, kernel):
        raise UsageError(refusal)
    return _by(family, problem, machine, kernel, tile)


def competing(problem: Problem, machine: Machine, tile: int | None) -> list[Family]:
    """The families that take a problem and can do all that is requested with it."""
    for among in _in_question(problem, tile):
        taking = []
        for family in _of_kind(_kind(problem), machine, among):
            seen = seen_by(family, problem)
            if why_not_of_problem(family.can, seen) is None and family.takes(seen, machine):
                taking.append(family)
        if taking:
            return taking
    return []


def _kind(p: Problem) -> Kind:
    """What decides, whatever a problem's shape is."""
    return p.dtype_m, p.dtype_n, p.requested, p.precision, p.semiring, p.unrounded


@lru_cache(maxsize=256)
def _of_kind(kind: Kind, machine: Machine, among: str) -> list[Family]:
    """The families that take problems of a kind; of those that teach, where they are "taught" or "every" one counts."""
    dtype_m, dtype_n, requested, precision, semiring, unrounded = kind
    lies = row_major(1, 1)
    some = Problem(
        1, 1, 1, (), dtype_m, dtype_n, semiring, lies, lies, lies, precision=precision, requested=requested,
        unrounded=unrounded,
    )  # fmt: skip
    fitting = []
    for family in FAMILIES:
        within = {"fast": not family.teaches, "taught": family.teaches, "beside tile=": family.beside_tile}
        if within.get(among, True) and why_not_of_kind(family.can, some, machine) is None:
            fitting.append(family)
    return fitting


def seen_by(family: Family, problem: Problem) -> Problem:
    """The problem, without its epilogue where the family leaves that to a pass of its own."""
    return problem if family.can.fuses or not problem.epilogue else problem.bare


def _by(family: Family, problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
    plan = calibrated(family.plan(seen_by(family, problem), machine, kernel, tile))
    return plan if family.can.fuses else epilogue_after(plan, problem)


def _precision_notes(plan: Plan, problem: Problem, machine: Machine) -> tuple[str, ...]:
    """What becomes of float32 that might have run on tensor cores."""
    chosen = family_of(plan.kernel)
    if (
        problem.dtype.name != "float32"
        or problem.semiring.name != "plus_times"
        or problem.precision in chosen.can.precisions
    ):
        return ()
    able = (f for f in _of_kind(_kind(problem), machine, "every") if problem.precision in f.can.precisions)
    others = any(why_not_of_problem(f.can, seen_by(f, problem)) is None for f in able)
    if others:
        return (f"precision={problem.precision!r} runs as 'ieee' here: splitting operands would take longer",)
    return (f"precision={problem.precision!r} runs as 'ieee': there is no tensor-core path for it here",)
