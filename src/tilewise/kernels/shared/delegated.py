"""Parts of a product that another generator computes: generators do not import one another, so a recipe lists an `Edge`
or a `Fallback`, and `registry.beside` replaces it by launches."""

from __future__ import annotations

from dataclasses import dataclass

from tilewise.core.machine import Machine
from tilewise.core.plan import Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Address, Step
from tilewise.kernels.shared.placed import Placed


@dataclass(frozen=True)
class Edge:
    """The last few rows or columns of P, computed by the GEMV kernels: tiles for them would be nearly empty."""

    problem: Problem
    machine: Machine
    M: Placed
    N: Placed
    P: Placed
    of_columns: bool


@dataclass(frozen=True)
class Fallback:
    """All of P on plain cores, predicated: the kernel returns unless the 32-bit flag at `verdict` equals `value`."""

    plan: Plan
    M: Placed
    N: Placed
    P: Placed
    verdict: Address
    value: int


AnyStep = Step | Edge | Fallback
