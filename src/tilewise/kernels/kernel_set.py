"""The finite set: every kernel text that products of a dtype may name on a machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tilewise.epilogue import PLAIN
from tilewise.kernels.registry import FAMILIES
from tilewise.kernels.shared.text import render_pack
from tilewise.machine import Machine
from tilewise.problem import Problem, row_major

SIDE = 8  # of a product that every family takes which takes any of its kind


def kernel_set(problem: Problem, machine: Machine) -> tuple[str, ...]:
    """The texts for a problem's dtypes, precision and semiring, whatever its shape and strides; each once."""
    lies = row_major(SIDE, SIDE)
    alone = replace(
        problem, m=SIDE, k=SIDE, n=SIDE, stack=(), layout_m=lies, layout_n=lies, layout_p=lies, accumulate=False,
        return_arg=False, nonnegative=False, scaled=False, epilogue=PLAIN,
    )  # fmt: skip
    return tuple(dict.fromkeys(_texts(alone, machine)))


def _texts(problem: Problem, machine: Machine) -> Iterator[str]:
    for along_rows in (False, True):
        for dtype in dict.fromkeys((problem.dtype, problem.result)):
            yield render_pack(dtype, dtype, along_rows)
    for family in FAMILIES:
        if not family.teaches and family.refusal(problem, machine) is None:
            yield from family.texts(problem, machine)
