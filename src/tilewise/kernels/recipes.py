"""A plan's whole recipe: the family's launches, with what comes before and after them.

Before and after: packed operands, a P that is not row-major, an epilogue that the family does not fuse, and complex
operands written as real ones.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from tilewise.core.plan import Plan
from tilewise.core.recipe import Recipe, Scratch, Step
from tilewise.kernels.pieces import in_pieces
from tilewise.kernels.registry import beside, family_named
from tilewise.kernels.shared.dependent_launch import early
from tilewise.kernels.shared.placed import Operands, Scales, members, operands_of, own_stack, workspace
from tilewise.kernels.transforms.as_reals import AsReals
from tilewise.kernels.transforms.pack import copies, packed
from tilewise.kernels.transforms.sums import add_parts, epilogue_argument


@lru_cache(maxsize=4096)
def recipe_of(plan: Plan, scales: Scales | None = None) -> Recipe:
    """All launches of a plan, in order."""
    p = plan.problem
    if not (p.m and p.n and p.members):
        return Recipe(())
    steps, scratch_bytes = list[Step](), 0
    for piece, given in in_pieces(plan, operands_of(p, scales)):  # which run one after another, in the same scratch
        scratch = Scratch()
        steps += _steps(piece, given, scratch)
        scratch_bytes = max(scratch_bytes, scratch.size)
    return Recipe(early(steps, plan.machine.arch), scratch_bytes)


def _steps(plan: Plan, given: Operands, scratch: Scratch) -> list[Step]:
    p, family = plan.problem, family_named(plan.family)
    if p.epilogue and (plan.real or not family.can.fuses):
        return _epilogue_after(plan, given, scratch)
    if plan.real:
        form = AsReals(p, given, scratch)
        return [*form.before(), *_steps(plan.real, form.operands(plan.real.problem), scratch), *form.after()]
    before: list[Step] = []
    M, N, made = given.M, given.N, given.P
    of_m, of_n = family.elements(p, plan.machine)
    if "M" in plan.packs:
        M = packed(M, p.stack, of_m, scratch)
        before += copies(given.M, M, own_stack(given.M, p.stack))
    if "N" in plan.packs:
        N = packed(N, p.stack_n, of_n, scratch)
        before += copies(given.N, N, own_stack(given.N, p.stack_n))
    after: list[Step] = []
    if p.layout_p.leading_dimension(p.m, p.n) is None and not family.can.stores_anywhere:
        made = workspace(p.m, p.n, p.stack, p.result, p.n, scratch)
        before += copies(given.P, made, p.stack) if p.accumulate else []
        after += copies(made, given.P, p.stack)
    as_given = M is given.M and N is given.N and made is given.P
    ready = given if as_given else replace(given, M=M, N=N, P=made)
    return [*before, *beside(family.launches(plan, ready, scratch), scratch), *after]


def _epilogue_after(plan: Plan, given: Operands, scratch: Scratch) -> list[Step]:
    """The product without epilogue into scratch memory, then one pass that applies it and writes P."""
    p, bare = plan.problem, replace(plan, problem=plan.problem.bare)
    work = workspace(p.m, p.n, p.stack, bare.problem.result, p.n, scratch)
    steps = _steps(bare, replace(given, P=work, bias=None), scratch)
    made = given.P
    if p.layout_p.leading_dimension(p.m, p.n) is None:
        made = workspace(p.m, p.n, p.stack, p.result, p.n, scratch)
        steps += copies(given.P, made, p.stack) if p.accumulate else []
    argument = epilogue_argument(p.epilogue, bare.problem.result.name, given.bias)
    for index in members(p.stack):
        steps.append(add_parts(p, work.member(index), p.n, made.member(index), made.lead, 1, argument))
    return steps + (copies(made, given.P, p.stack) if made is not given.P else [])
