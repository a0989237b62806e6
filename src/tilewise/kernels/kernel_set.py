"""Every kernel text that products of a dtype may use on a machine: a finite set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from tilewise.core.machine import Machine
from tilewise.core.problem import Groups, Problem, row_major
from tilewise.kernels.registry import FAMILIES
from tilewise.kernels.shared.text import render_pack
from tilewise.kernels.simt_gemm.tiled.texts import stack_fallbacks
from tilewise.kernels.transforms.as_reals import has_real_form, real_form, render_as_reals
from tilewise.kernels.transforms.sums import render_add_parts

SIDE = 8  # of a product that every family takes that takes any of its kind


def kernel_set(problem: Problem, machine: Machine) -> tuple[str, ...]:
    """The texts for a problem's dtypes, precision, semiring and epilogue, for any shape and strides, each once.
    Problems with groups have a set of their own: any sizes and number, along either axis."""
    return tuple(dict.fromkeys(texts_of(problem, machine)))


def texts_of(problem: Problem, machine: Machine) -> Iterator[str]:
    """The same, lazily, some more than once."""
    layout = row_major(SIDE, SIDE)
    alone = replace(
        problem, m=SIDE, k=SIDE, n=SIDE, stack=(), layout_m=layout, layout_n=layout, layout_p=layout, accumulate=False,
        return_arg=False, nonnegative=False, scaled=False,
    )  # fmt: skip
    if problem.groups is None:
        yield from _texts(alone, machine)
        if has_real_form(alone):
            real = real_form(alone.bare if alone.epilogue else alone)
            yield render_as_reals.key(real.dtype)
            yield from texts_of(real, machine)
        return
    for along, wide in product(("rows", "k"), (False, True)):
        yield from _texts(_as_groups(replace(alone, groups=Groups(1, along, wide))), machine)


def _as_groups(p: Problem) -> Problem:
    """Layouts that every family takes: along k, the rows of M and N are contiguous."""
    by_k = p.groups is not None and p.groups.along == "k"
    fresh, transposed = p.layout_m, p.layout_m._replace(row=1, col=p.layout_m.row)
    apart = fresh._replace(stack=(SIDE * SIDE,))
    if by_k:
        return replace(p, stack=(1,), layout_m=transposed, layout_p=apart)
    return replace(p, layout_n=apart)


def _texts(problem: Problem, machine: Machine) -> Iterator[str]:
    for transposes in (False, True):
        for dtype in dict.fromkeys((problem.dtype, problem.result)):
            yield render_pack.key(dtype, dtype, transposes)
    if problem.epilogue:  # of families that do not fuse it
        yield render_add_parts.key(problem.dtype, problem.result, 1, problem.epilogue)
    for family in FAMILIES:
        takes = not family.teaches and (family.can.groups or not problem.groups)
        requested = problem if family.can.fuses or not problem.epilogue else problem.bare
        if takes and family.refusal(requested, machine) is None:
            texts = tuple(family.texts(requested, machine))
            yield from texts
            if texts and family.falls_back:
                yield from stack_fallbacks(requested.algebra, machine)
