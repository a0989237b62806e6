"""Halves on Hopper, whose tensor cores take them however they lie: what other families need not hold ready for them."""

from __future__ import annotations

from tilewise.algebra.builtin import is_plus_times
from tilewise.core.machine import Machine, arch_number
from tilewise.core.problem import Problem


def halves_on_hopper(p: Problem, machine: Machine) -> bool:
    """Whether tensor cores take a product in one launch or two, however it lies."""
    return halves_of(p) and arch_number(machine.arch) == 90 and not p.unrounded


def halves_of(p: Problem) -> bool:
    """Whether tensor cores multiply such elements."""
    return p.dtype.itemsize == 2 and p.dtype.kind == "f" and is_plus_times(p.semiring)


def onto(p: Problem, machine: Machine) -> tuple[bool, ...]:
    """Whether the texts of a set add onto P: of halves on Hopper none does, and what is added onto is compiled when it
    is first met, by whatever family takes it."""
    return (False,) if halves_on_hopper(p, machine) else (False, True)
