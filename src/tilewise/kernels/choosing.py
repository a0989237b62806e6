"""Choosing a family on a card: the least expected time including launches, or the family of the requested kernel.

Imported with the families for plans of a card; products on the CPU do not import it.
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
from tilewise.kernels.calibration import calibrated, corrected_seconds, regressors
from tilewise.kernels.capabilities import why_not_of_kind, why_not_of_problem
from tilewise.kernels.family import Family, Offer
from tilewise.kernels.registry import FAMILIES, family_of
from tilewise.kernels.transforms.as_reals import form_of, has_real_form, real_form, seconds_beside
from tilewise.system.quantities import seconds as quantity

# Added for each launch besides the product's own when families are compared. On the card most of it overlaps, on the
# host it does not: 4, 8 and 11 µs for one, two and three launches, and 2 µs for scratch memory.
PASS_SECONDS = 1e-6

Kind = tuple[DType, DType, DType | None, str, Semiring, bool]


def on_card(problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
    """The plan with the least expected time, or that of the requested kernel."""
    if problem.stack and not problem.groups and (folded := problem.folded) is not problem:
        plan = of_members(folded, machine, kernel, tile)
        note = f"members share N: {problem.members:,} of {problem.m:,} rows are {folded.members:,} of {folded.m:,}"
        return replace(plan, notes=(*plan.notes, note))
    return of_members(problem, machine, kernel, tile)


def of_members(problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
    """The same for the members of the stack that there are: the plan's problem is this one."""
    if kernel is not None:
        best = _requested(problem, machine, kernel, tile)
    else:
        best = _fastest(problem, machine, tile)
        if tile is None and has_real_form(problem) and not problem.ordered:
            best = min(best, _plan_by_reals(problem, machine), key=_cost)
    notes = _precision_notes(best, problem, machine) + _bound_note(best)
    return best.but(notes=(*best.notes, *notes)) if notes else best


def _fastest(problem: Problem, machine: Machine, tile: int | None) -> Plan:
    """The plan of the family with the least corrected time, with `PASS_SECONDS` for each launch besides."""
    able = competing(problem, machine, tile)
    if not able:
        raise UsageError(f"scales= has no kernel on {machine.name} for {problem.dtype_m} by {problem.dtype_n}")
    if len(able) == 1:
        return _family_plan(able[0], problem, machine, None, tile)
    bare, plain = _bare(problem), problem.plain
    known = regressors(problem) if machine.tuned else None
    of_bare = known if bare is problem or known is None else regressors(bare)
    best: tuple[float, float, Family, Offer] | None = None
    for family in able:
        fuses = family.can.fuses
        offer = family.offer(problem if fuses else bare, machine, tile)
        corrected = corrected_seconds(offer, known if fuses else of_bare)
        seconds = corrected + PASS_SECONDS * offer.passes
        if not (plain or fuses):
            seconds = after_epilogue(seconds, problem, machine)
        if best is None or seconds < best[0]:
            best = seconds, corrected, family, offer
    assert best is not None
    _, corrected, family, offer = best
    plan = family.accepted(offer, tile)
    plan = plan if corrected == plan.predicted else plan.but(predicted=corrected)
    return plan if family.can.fuses else epilogue_after(plan, problem)


def _candidate_sets(problem: Problem, tile: int | None) -> tuple[str, ...]:
    """The sets of families to choose from, in order: the second where no family of the first takes the problem. With
    k = 0 only P is written, and any kernel does."""
    if tile is not None and not (problem.return_arg or problem.scaled):
        return ("beside tile=",)
    return ("every",) if tile is not None or problem.k == 0 else ("fast", "taught")


def ranked_plans(problem: Problem, machine: Machine) -> list[Plan]:
    """The plan of every family that takes a problem, best first."""
    plans = [_family_plan(family, problem, machine, None, None) for family in competing(problem, machine, None)]
    plans += [_plan_by_reals(problem, machine)] if has_real_form(problem) else []
    return sorted(plans, key=_cost)


def _cost(plan: Plan) -> float:
    return plan.predicted + PASS_SECONDS * plan.passes


def _plan_by_reals(problem: Problem, machine: Machine) -> Plan:
    """The plan of a complex product as a real one."""
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


def _requested(problem: Problem, machine: Machine, kernel: str, tile: int | None) -> Plan:
    family = family_of(kernel)
    if refusal := family.refusal(problem_for(family, problem), machine, kernel):
        raise UsageError(refusal)
    return _family_plan(family, problem, machine, kernel, tile)


def competing(problem: Problem, machine: Machine, tile: int | None) -> list[Family]:
    """The families that take a problem with all its options."""
    bare, kind = _bare(problem), _kind(problem)
    for among in _candidate_sets(problem, tile):
        taking = [
            family
            for family in _of_kind(kind, machine, among)
            if why_not_of_problem(family.can, seen := problem if family.can.fuses else bare) is None
            and family.takes(seen, machine)
        ]
        if problem.reproducible == "batch" and problem.ordered:  # one family for every m
            fixed = [family for family in taking if (family.can.batch if problem.k else family.can.ordered)]
            taking = fixed or taking
        if taking:
            return taking
    return []


def _kind(p: Problem) -> Kind:
    """The part of a problem that `_of_kind` depends on."""
    return p.dtype_m, p.dtype_n, p.requested, p.precision, p.semiring, p.unrounded


@lru_cache(maxsize=256)
def _of_kind(kind: Kind, machine: Machine, among: str) -> list[Family]:
    """The families of a candidate set that take problems of a kind."""
    dtype_m, dtype_n, requested, precision, semiring, unrounded = kind
    layout = row_major(1, 1)
    some = Problem(
        1, 1, 1, (), dtype_m, dtype_n, semiring, layout, layout, layout, precision=precision, requested=requested,
        unrounded=unrounded,
    )  # fmt: skip
    fitting = []
    for family in FAMILIES:
        within = {"fast": not family.teaches, "taught": family.teaches, "beside tile=": family.beside_tile}
        if within.get(among, True) and why_not_of_kind(family.can, some, machine) is None:
            fitting.append(family)
    return fitting


def problem_for(family: Family, problem: Problem) -> Problem:
    """The problem as the family gets it: without the epilogue where a separate pass applies that."""
    return problem if family.can.fuses else _bare(problem)


def _bare(problem: Problem) -> Problem:
    """The problem without its epilogue."""
    return problem if problem.plain or not problem.epilogue else problem.bare


def _family_plan(family: Family, problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
    plan = calibrated(family.plan(problem_for(family, problem), machine, kernel, tile))
    return plan if family.can.fuses else epilogue_after(plan, problem)


def _bound_note(plan: Plan) -> tuple[str, ...]:
    bound = plan.machine.launch_seconds
    if not bound or plan.predicted <= bound:
        return ()
    return (f"launched in pieces of P of about {quantity(bound)}: a display waits for kernels",)


def _precision_notes(plan: Plan, problem: Problem, machine: Machine) -> tuple[str, ...]:
    """Notes where precision= is not implemented as requested."""
    chosen = family_of(plan.kernel)
    if (
        problem.dtype.name != "float32"
        or problem.semiring.name != "plus_times"
        or problem.precision in chosen.can.precisions
    ):
        return ()
    able = (f for f in _of_kind(_kind(problem), machine, "every") if problem.precision in f.can.precisions)
    others = any(why_not_of_problem(f.can, problem_for(f, problem)) is None for f in able)
    if others:
        return (f"precision={problem.precision!r} runs as 'ieee' here: splitting operands would take longer",)
    return (f"precision={problem.precision!r} runs as 'ieee': there is no tensor-core path for it here",)
