"""Products beside a kernel's own, which another generator makes in their place (`registry.beside`): generators do not
import one another."""

from __future__ import annotations

from dataclasses import dataclass

from tilewise.core.machine import Machine
from tilewise.core.plan import Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Address, Step
from tilewise.kernels.shared.placed import Placed


@dataclass(frozen=True)
class Edge:
    """The last few rows of P, or its last few columns: tiles for them would be nearly empty."""

    problem: Problem
    machine: Machine
    M: Placed
    N: Placed
    P: Placed
    of_columns: bool


@dataclass(frozen=True)
class Fallback:
    """All of P on plain cores, predicated: nothing is done unless the word at `verdict` is `value` by then."""

    plan: Plan
    M: Placed
    N: Placed
    P: Placed
    verdict: Address
    value: int


AnyStep = Step | Edge | Fallback
