"""Which family multiplies on a card: the one with the least expected time, its launches weighed in, or the one whose
kernel was asked for.

Loaded with the families when a card is planned for; a product on the CPU needs none of them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from operator import itemgetter

from tilewise.algebra.dtypes import DType
from tilewise.algebra.semiring import Semiring
from tilewise.core.machine import Machine
from tilewise.core.plan import Plan, after_epilogue, epilogue_after
from tilewise.core.problem import Problem, row_major
from tilewise.errors import UsageError
from tilewise.kernels.calibration import calibrated, mending_of
from tilewise.kernels.capabilities import Capabilities, why_not_of_kind, why_not_of_problem
from tilewise.kernels.family import Family
from tilewise.kernels.registry import FAMILIES, family_of

# What a launch beside the product's own weighs when families are compared. The card hides most of it, the host does
# not: 4, 8 and 11 µs of one, two and three launches and 2 of their scratch memory, for which calls in a queue wait.
PASS_SECONDS = 1e-6


def on_card(problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
    """The family whose plan has the least expected time, or the one whose kernel was asked for."""
    if problem.stack and not problem.groups and (folded := problem.folded) is not problem:
        plan = on_card(folded, machine, kernel, tile)
        note = f"members share N: {problem.members:,} of {problem.m:,} rows are {folded.members:,} of {folded.m:,}"
        return replace(plan, notes=(*plan.notes, note))
    if kernel is not None:
        best = _asked_for(problem, machine, kernel, tile)
    else:
        best = _by(_soonest(problem, machine, tile), problem, machine, None, tile)
    notes = _precision_notes(best, problem, machine)
    return best.but(notes=(*best.notes, *notes)) if notes else best


def _soonest(problem: Problem, machine: Machine, tile: int | None) -> Family:
    """The family with the least expected time. In the order of their lower bounds: those whose bound is above
    another's time are not looked at, and hardly any family's capabilities are."""
    measured = mending_of(problem, machine)
    bare = mending_of(problem.bare, machine) if problem.epilogue else measured
    for able in _in_question(problem, machine, tile):
        ranked = []
        for number, (family, where) in enumerate(able):
            mending = measured if family.can.fuses else bare
            least = family.least_seconds(mending.problem, machine)
            ranked.append((mending.least(least, family.kernels) if least else 0.0, number, family, where, mending))
        best, soonest = (math.inf, 0), None
        for least, number, family, where, mending in sorted(ranked, key=_LEAST):
            if least > best[0]:
                break
            if not _takes(family, where, mending.problem, machine):
                continue
            offer = family.offer(mending.problem, machine, tile)
            seconds = mending.mended(offer) + PASS_SECONDS * offer.passes
            if problem.epilogue and not family.can.fuses:
                seconds = after_epilogue(seconds, problem, machine)
            if (seconds, number) < best:
                best, soonest = (seconds, number), family
        if soonest is not None:
            return soonest
    raise UsageError(f"scales= has no kernel on {machine.name} for {problem.dtype_m} by {problem.dtype_n}")


_LEAST = itemgetter(0)
Able = list[tuple[Family, list[Capabilities]]]


def _in_question(problem: Problem, machine: Machine, tile: int | None) -> list[Able]:
    """The families that compete for problems of this kind, and then those that do where none of them takes it. Where k
    is 0 there is only P to be written, and the simplest kernel does that."""
    able, taught = _of_kind(_kind(problem), machine)
    if tile is not None or problem.k == 0:
        every = [*able, *taught]
        if tile is not None and not (problem.return_arg or problem.scaled):
            every = [(family, where) for family, where in every if family.beside_tile]
        return [every]
    return [able, taught]


def _takes(family: Family, where: list[Capabilities], seen: Problem, machine: Machine) -> bool:
    for can in where:
        if why_not_of_problem(can, seen) is None:
            return family.takes(seen, machine)
    return False


def plans_in_turn(problem: Problem, machine: Machine) -> list[Plan]:
    """The plan of every family that takes a problem, in the order of preference."""
    plans = [_by(family, problem, machine, None, None) for family in competing(problem, machine, None)]
    return sorted(plans, key=lambda plan: plan.predicted + PASS_SECONDS * plan.passes)


def _asked_for(problem: Problem, machine: Machine, kernel: str, tile: int | None) -> Plan:
    family = family_of(kernel)
    if refusal := family.refusal(seen_by(family, problem), machine, kernel):
        raise UsageError(refusal)
    return _by(family, problem, machine, kernel, tile)


def competing(problem: Problem, machine: Machine, tile: int | None) -> list[Family]:
    """The families that take a problem and can do all that is asked for with it."""
    for able in _in_question(problem, machine, tile):
        taking = [family for family, where in able if _takes(family, where, seen_by(family, problem), machine)]
        if taking:
            return taking
    return []


Kind = tuple[DType, DType, DType | None, str, Semiring, bool]


def _kind(p: Problem) -> Kind:
    """What decides, whatever a problem's shape is."""
    return p.dtype_m, p.dtype_n, p.wanted, p.precision, p.semiring, p.unrounded


@lru_cache(maxsize=256)
def _of_kind(kind: Kind, machine: Machine, named: bool = False) -> tuple[Able, Able]:
    """The families that compete for problems of a kind, or take them where they are `named`; each with what it takes of
    them. Those that teach come apart."""
    dtype_m, dtype_n, wanted, precision, semiring, unrounded = kind
    lies = row_major(1, 1)
    some = Problem(
        1, 1, 1, (), dtype_m, dtype_n, semiring, lies, lies, lies, precision=precision, wanted=wanted,
        unrounded=unrounded,
    )  # fmt: skip
    every = [(family, (not named and family.competes) or (family.can,)) for family in FAMILIES]
    able = [(f, [can for can in where if why_not_of_kind(can, some, machine) is None]) for f, where in every]
    fitting = [(family, where) for family, where in able if where]
    return [x for x in fitting if not x[0].teaches], [x for x in fitting if x[0].teaches]


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
    able = (f for f, _ in _of_kind(_kind(problem), machine, named=True)[0] if problem.precision in f.can.precisions)
    others = any(why_not_of_problem(f.can, seen_by(f, problem)) is None for f in able)
    if others:
        return (f"precision={problem.precision!r} runs as 'ieee' here: splitting operands would take longer",)
    return (f"precision={problem.precision!r} runs as 'ieee': there is no tensor-core path for it here",)
