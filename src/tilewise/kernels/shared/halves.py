"""2-byte floats on Hopper: wgmma takes every layout, so other families precompile fewer texts for them."""

from __future__ import annotations

from tilewise.algebra.builtin import is_plus_times
from tilewise.core.machine import Machine, arch_number
from tilewise.core.problem import Problem


def halves_on_hopper(p: Problem, machine: Machine) -> bool:
    """Whether wgmma takes the product, whatever its layout."""
    return halves_of(p) and arch_number(machine.arch) == 90 and not p.unrounded


def halves_of(p: Problem) -> bool:
    """Whether tensor cores multiply such elements."""
    return p.dtype.itemsize == 2 and p.dtype.kind == "f" and is_plus_times(p.semiring)
