"""Choosing a family on a card: the least expected time including launches, or the family of the requested kernel.

Imported with the families for plans of a card; products on the CPU do not import it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from tilewise.algebra.dtypes import DType
from tilewise.algebra.semiring import Semiring
from tilewise.core.epilogue import PLAIN, Epilogue
from tilewise.core.machine import Machine
from tilewise.core.plan import Plan, after_epilogue, epilogue_after
from tilewise.core.problem import Groups, Problem, row_major
from tilewise.errors import UsageError
from tilewise.kernels.by_configs import ByConfigs
from tilewise.kernels.calibration import calibrated, corrected, corrected_seconds, elements_of, fit_of, regressors
from tilewise.kernels.capabilities import (
    Limits,
    admits,
    floor_of,
    why_not_of_kind,
    why_not_of_options,
    why_not_of_problem,
)
from tilewise.kernels.family import Family, Offer, Searched
from tilewise.kernels.registry import FAMILIES, family_of
from tilewise.kernels.transforms.as_reals import form_of, has_real_form, real_form, seconds_beside
from tilewise.system.machine_code import Candidates, Row, Search, Weighing
from tilewise.system.quantities import seconds as quantity

# Added for each launch besides the product's own when families are compared. On the card most of it overlaps, on the
# host it does not: 4, 8 and 11 µs for one, two and three launches, and 2 µs for scratch memory.
PASS_SECONDS = 1e-6


def cost(p: Problem, limits: Limits, fit: Row, known: Row, seconds: float, passes: int) -> Row:
    """What families are compared by; its part without launches; and expected seconds before they are corrected."""
    floor = floor_of(p, limits)
    predicted = max(seconds, floor)
    made = corrected(fit, known, predicted, floor, passes)
    return made + PASS_SECONDS * passes, made, predicted


WEIGHING = Weighing(admits, regressors, cost)


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
    kind = kind_of(problem)
    for among in _candidate_sets(problem, tile):
        field = field_of(kind, machine, among)
        choice = _searched(field, problem, machine, tile)
        if choice is not None:
            family, offer, seconds = choice
            plan = family.accepted(offer, tile)
            plan = plan if seconds == plan.predicted else plan.but(predicted=seconds)
            return plan if family.can.fuses else epilogue_after(plan, problem)
    raise UsageError(f"scales= has no kernel on {machine.name} for {problem.dtype_m} by {problem.dtype_n}")


Choice = tuple[Family, Offer, float]  # and its corrected seconds


def _searched(field: Field, problem: Problem, machine: Machine, tile: int | None) -> Choice | None:
    """The best family of a field; of several that are equally fast the first."""
    by_search = tile is None and not problem.ordered and not _measured(field, problem, machine)
    best: tuple[float, int, Choice] | None = None
    for fuses, search, owners in field.searches if by_search else ():
        seen = problem if fuses else _bare(problem)
        found = search.least(seen, seen.largest)
        if found is None:
            continue
        family, place, table = owners[found.table]
        cost = found.cost if fuses else _after_epilogue(found.cost, problem, machine)
        if best is None or (cost, place) < best[:2]:
            kernel, config = table.kernel or family.name, table.config(found.row, seen)
            offer = Offer(seen, machine, kernel, found.predicted, 0.0, found.passes, config)
            best = cost, place, (family, offer, found.corrected)
    rest = field.rest if by_search else [*enumerate(field.families)]
    for place, family in _able(rest, problem, machine):
        offer = family.offer(problem_for(family, problem), machine, tile)
        seconds = corrected_seconds(offer)
        cost = seconds + PASS_SECONDS * offer.passes
        cost = cost if family.can.fuses else _after_epilogue(cost, problem, machine)
        if best is None or (cost, place) < best[:2]:
            best = cost, place, (family, offer, seconds)
    return best and best[2]


def _measured(field: Field, p: Problem, machine: Machine) -> bool:
    """Whether a class of such sizes was measured: the table then decides between configurations."""
    return any(machine.tuned is not None and machine.tuned.measured(one, (p.m, p.k, p.n)) for one in field.tuned)


def _after_epilogue(seconds: float, problem: Problem, machine: Machine) -> float:
    return seconds if problem.plain else after_epilogue(seconds, problem, machine)


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
    for among in _candidate_sets(problem, tile):
        families = field_of(kind_of(problem), machine, among).families
        if taking := [family for _, family in _able(enumerate(families), problem, machine)]:
            return taking
    return []


def _able(families: Iterable[tuple[int, Family]], problem: Problem, machine: Machine) -> list[tuple[int, Family]]:
    """Those of a field, numbered, that take a problem."""
    taking = [
        (place, family)
        for place, family in families
        if why_not_of_problem(family.can, seen := problem_for(family, problem)) is None and family.takes(seen, machine)
    ]
    if problem.reproducible == "batch" and problem.ordered:  # one family for every m
        fixed = [one for one in taking if (one[1].can.batch if problem.k else one[1].can.ordered)]
        taking = fixed or taking
    return taking


class Kind(NamedTuple):
    """The part of a problem that the families which may take it depend on, and the kind of what they compute."""

    dtype_m: DType
    dtype_n: DType
    requested: DType | None
    precision: str
    semiring: Semiring
    unrounded: bool
    accumulate: bool
    nonnegative: bool
    return_arg: bool
    scaled: bool
    epilogue: bool
    members: int  # 2: or more
    along: str | None  # which extent is in groups
    reproducible: str | None
    symmetric: bool


def kind_of(p: Problem) -> Kind:
    return Kind(
        p.dtype_m, p.dtype_n, p.requested, p.precision, p.semiring, p.unrounded, p.accumulate, p.nonnegative,
        p.return_arg, p.scaled, bool(p.epilogue), min(p.members, 2), p.groups.along if p.groups else None,
        p.reproducible, p.symmetric,
    )  # fmt: skip


def _smallest(kind: Kind) -> Problem:
    """A problem of this kind."""
    stack = () if kind.members == 1 else (kind.members,)
    layout = row_major(1, 1, stack)
    return Problem(
        1, 1, 1, stack, kind.dtype_m, kind.dtype_n, kind.semiring, layout, layout, layout, kind.accumulate,
        kind.precision, kind.return_arg, kind.nonnegative, kind.unrounded, kind.requested, kind.scaled,
        Epilogue(2.0) if kind.epilogue else PLAIN, Groups(1, kind.along) if kind.along else None,
        reproducible=kind.reproducible, symmetric=kind.symmetric,
    )  # fmt: skip


class Field(NamedTuple):
    """The families of a candidate set for problems of a kind."""

    families: tuple[Family, ...]
    searches: tuple[tuple[bool, Search, tuple[tuple[Family, int, Searched], ...]], ...]  # of those that fuse, and not
    rest: tuple[tuple[int, Family], ...]  # those without tables for a search
    tuned: tuple[str, ...]  # kernels and dtypes with classes in the machine's table


@lru_cache(maxsize=256)
def field_of(kind: Kind, machine: Machine, among: str) -> Field:
    some, families = _smallest(kind), list[Family]()
    for family in FAMILIES:
        within = {"fast": not family.teaches, "taught": family.teaches, "beside tile=": family.beside_tile}
        if not within.get(among, True) or why_not_of_kind(family.can, some, machine) is not None:
            continue
        seen = problem_for(family, some)
        if not family.suits(seen, machine):
            continue
        if (not seen.plain or family.can.only_groups) and why_not_of_options(family.can, seen) is not None:
            continue
        families.append(family)
    searches, rest = list[tuple[bool, Search, tuple[tuple[Family, int, Searched], ...]]](), []
    may_search = not (kind.return_arg or kind.unrounded)  # which have conditions of their own
    for fuses in (True, False) if kind.epilogue else (True,):
        owners, tables = list[tuple[Family, int, Searched]](), list[Candidates]()
        for place, family in enumerate(families):
            if kind.epilogue and family.can.fuses != fuses:
                continue
            seen = problem_for(family, some)
            every = family.searched(seen, machine) if isinstance(family, ByConfigs) and may_search else ()
            if not every or not isinstance(family, ByConfigs):
                rest.append((place, family))
                continue
            limits = family.demands(seen, machine)
            for one in every:
                fit = fit_of(seen, machine, one.kernel or family.name)
                owners.append((family, place, one))
                tables.append(Candidates(one.formula, one.rows, one.figures, limits, fit, one is every[-1]))
        if tables:
            known = elements_of(some if fuses else some.bare)
            searches.append((fuses, Search(WEIGHING, tables, known), tuple(owners)))
    classes = [f"{family.name} {some.dtype.name}" for family in families]
    tuned = [one for one in classes if machine.tuned is not None and one in machine.tuned.kinds]
    return Field(tuple(families), tuple(searches), tuple(rest), tuple(tuned))


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
    families = field_of(kind_of(problem), machine, "every").families
    able = (f for f in families if problem.precision in f.can.precisions)
    others = any(why_not_of_problem(f.can, problem_for(f, problem)) is None for f in able)
    if others:
        return (f"precision={problem.precision!r} runs as 'ieee' here: splitting operands would take longer",)
    return (f"precision={problem.precision!r} runs as 'ieee': there is no tensor-core path for it here",)
