"""Which family multiplies on a card: the one with the least expected time, its launches weighed in, or the one whose
kernel was requested.

Loaded with the families when a card is planned for; a product on the CPU needs none of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from operator import itemgetter

from tilewise.algebra.dtypes import DType
from tilewise.algebra.semiring import Semiring
from tilewise.core.machine import Machine
from tilewise.core.plan import Plan, after_epilogue, epilogue_after
from tilewise.core.problem import Problem, row_major
from tilewise.errors import UsageError
from tilewise.kernels.bounds import bound, given_of, rows_of
from tilewise.kernels.calibration import Features, Mending, calibrated, least_share, mending_of
from tilewise.kernels.capabilities import Capabilities, why_not_of_kind, why_not_of_problem
from tilewise.kernels.family import Family
from tilewise.kernels.registry import FAMILIES, family_of
from tilewise.kernels.transforms.as_reals import form_of, has_real_form, real_form, seconds_beside
from tilewise.system.machine_code import Row, Rows

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
    """The family with the least expected time. In the order of their lower bounds: those whose bound is above
    another's time are not looked at, nor are their capabilities."""
    best, soonest = (math.inf, 0), None
    for among in _in_question(problem, tile):
        seen = set[int]()
        for least, number, family, can, mending in _ranked(among, problem, machine):
            if least > best[0]:
                break
            if number in seen or why_not_of_problem(can, mending.problem) is not None:
                continue
            seen.add(number)
            if not family.takes(mending.problem, machine):
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


Able = list[tuple[Family, tuple[Capabilities, ...]]]
Candidate = tuple[float, int, Family, Capabilities, Mending]  # lower bound, number of the family


def _ranked(among: str, problem: Problem, machine: Machine) -> Iterator[Candidate]:
    """What may take a problem, the lowest bound of its time first: one formula bounds all of them."""
    whole = mending_of(problem, machine)
    if problem.groups:  # nothing is known of their sizes
        for number, (family, where) in enumerate(_of_kind(_kind(problem), machine, among)):
            yield from ((0.0, number, family, can, whole) for can in where)
        return
    bare = mending_of(problem.bare, machine) if problem.epilogue else whole
    stacked = problem.members > 1
    owners, rows = _screen(_kind(problem), machine, among, stacked, whole.features, bare.features)
    bounds = bound.each(rows, given_of(problem), problem.largest)
    if bare is not whole:
        others = bound.each(rows, given_of(bare.problem), problem.largest)
        bounds = [x if owner[1].can.fuses else y for owner, x, y in zip(owners, bounds, others, strict=True)]
    if stacked:
        bounds = [
            (whole if family.can.fuses else bare).least(x, family.kernels) if x < math.inf else x
            for (_, family, _), x in zip(owners, bounds, strict=True)
        ]
    for least, (number, family, can) in sorted(zip(bounds, owners, strict=True), key=_BOUND):
        if least == math.inf:
            return
        mending = whole if bare is whole or family.can.fuses else bare
        yield least - mending.saved, number, family, can, mending


_BOUND = itemgetter(0)
Owner = tuple[int, Family, Capabilities]


@lru_cache(maxsize=1024)
def _screen(
    kind: Kind, machine: Machine, among: str, stacked: bool, of_whole: Features | None, of_bare: Features | None
) -> tuple[list[Owner], Rows]:
    """The table of lower bounds, of what was measured of such a class of products, and whose row is whose."""
    some, owners, rows = _of_this_kind(kind, (2,) if stacked else ()), list[Owner](), list[Row]()
    for number, (family, where) in enumerate(_of_kind(kind, machine, among)):
        of = of_whole if family.can.fuses else of_bare
        bounds = family.bounds(some, machine)
        rows += rows_of(bounds, where, 1.0 if stacked else least_share(machine, of, family.kernels))
        owners += [(number, family, can) for _ in bounds for can in where]
    return owners, Rows(rows)


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
        for family, where in _of_kind(_kind(problem), machine, among):
            seen = seen_by(family, problem)
            if any(why_not_of_problem(can, seen) is None for can in where) and family.takes(seen, machine):
                taking.append(family)
        if taking:
            return taking
    return []


def _kind(p: Problem) -> Kind:
    """What decides, whatever a problem's shape is."""
    return p.dtype_m, p.dtype_n, p.wanted, p.precision, p.semiring, p.unrounded


def _of_this_kind(kind: Kind, stack: tuple[int, ...] = ()) -> Problem:
    """Some problem of a kind."""
    dtype_m, dtype_n, wanted, precision, semiring, unrounded = kind
    lies = row_major(1, 1, stack)
    return Problem(
        1, 1, 1, stack, dtype_m, dtype_n, semiring, lies, lies, lies, precision=precision, wanted=wanted,
        unrounded=unrounded,
    )  # fmt: skip


@lru_cache(maxsize=256)
def _of_kind(kind: Kind, machine: Machine, among: str) -> Able:
    """The families that compete for problems of a kind, or take them where they are "named"; each with what it takes of
    them."""
    some, fitting = _of_this_kind(kind), Able()
    for family in FAMILIES:
        if (among, family.teaches) in (("fast", True), ("taught", False)):
            continue
        every = (family.can,) if among == "named" or not family.competes else family.competes
        where = tuple(can for can in every if why_not_of_kind(can, some, machine) is None)
        if where and (among != "beside tile=" or family.beside_tile):
            fitting.append((family, where))
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
    able = (f for f, _ in _of_kind(_kind(problem), machine, "named") if problem.precision in f.can.precisions)
    others = any(why_not_of_problem(f.can, seen_by(f, problem)) is None for f in able)
    if others:
        return (f"precision={problem.precision!r} runs as 'ieee' here: splitting operands would take longer",)
    return (f"precision={problem.precision!r} runs as 'ieee': there is no tensor-core path for it here",)
