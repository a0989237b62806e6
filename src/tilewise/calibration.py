"""How far a family's model is off on a card, by kind of product: measured once, then every plan's time is mended by it.

A model of waves and bytes is good to some per cent where products are large, and off by a factor where they are small
or thin. `tilewise tune --calibrate` times every family's own plan on random shapes and keeps the mean logarithm of
measured over expected time for classes of products, from coarse to fine; a fine class with few samples leans on the
coarser one above it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Protocol

from tilewise.algebra.builtin import is_plus_times
from tilewise.machine import Machine
from tilewise.plans import Plan
from tilewise.problem import Problem
from tilewise.tuning import Table

TRUST = 3  # samples of a class that weigh as much as all of the coarser one
FEW = (1, 4, 8, 16)  # rows or columns: bounds of what counts as few
DEEP = (16, 64, 256)  # k of a stack's members


class Timed(Protocol):
    """A family's kernel for a problem, with what its model expects: a plan, or what a plan would be made of."""

    @property
    def problem(self) -> Problem: ...
    @property
    def machine(self) -> Machine: ...
    @property
    def kernel(self) -> str: ...
    @property
    def predicted(self) -> float: ...
    @property
    def floor(self) -> float: ...
    @property
    def passes(self) -> int: ...


def classes(plan: Timed) -> list[str]:
    """The classes a plan belongs to, from coarse to fine."""
    return _classes(plan.problem, plan.kernel, plan.predicted, plan.passes)


def _coarse(p: Problem, kernel: str) -> tuple[str, str]:
    """The coarsest class, and the next."""
    half = p.dtype.kind == "f" and p.dtype.itemsize == 2  # bfloat16 and float16 run the same instructions at one rate
    kind = "half" if half else f"{p.dtype.name} {p.precision}" if p.dtype.name == "float32" else p.dtype.name
    short = min(p.m, p.n)
    few = (short <= FEW[0]) + (short <= FEW[1]) + (short <= FEW[2]) + (short <= FEW[3])
    coarse = f"stack {kernel} {kind}" if p.members > 1 else f"{kernel} {kind}"
    return coarse, f"{coarse} few {few}"


def _classes(p: Problem, kernel: str, predicted: float, passes: int) -> list[str]:
    short, size = min(p.m, p.n), p.dtype.itemsize
    leads = (max(abs(x.row), abs(x.col)) for x in (p.layout_m, p.layout_n))
    aligned = all(lead * size % 16 == 0 for lead in leads) and p.layout_m.alignment == p.layout_n.alignment == 16
    lines = "aligned" if aligned else "ragged"
    coarse, middle = _coarse(p, kernel)
    if p.members > 1:
        return _classes_of_stacks(coarse, middle, lines, p.k, predicted, passes)
    finer = f"{middle} passes {min(passes, 3)}"
    timed = f"{finer} 2^{round(math.log2(max(predicted * 1e6, 1.0)))}us"
    return [
        coarse,
        middle,
        finer,
        timed,
        f"{timed} {lines} {(short < 64) + (short < 256)}",
    ]


def _classes_of_stacks(coarse: str, short: str, lines: str, k: int, predicted: float, passes: int) -> list[str]:
    """Small members leave most of a tile or a block empty: what counts is how deep they are, then how much all take."""
    middle = f"{short} deep {sum(k <= bound for bound in DEEP)}"
    finer = f"{middle} {lines} passes {min(passes, 3)}"
    return [coarse, short, middle, finer, f"{finer} 4^{round(math.log(max(predicted * 1e6, 1.0), 4))}us"]


def applies(p: Problem) -> bool:
    """What was measured: products and stacks of them in plus_times, with nothing behind them."""
    return is_plus_times(p.semiring) and not (p.epilogue or p.scaled or p.return_arg or p.groups)


def mended(plan: Timed) -> float:
    """The expected seconds, mended by what was measured on such a card."""
    table = plan.machine.tuned
    if table is None or not table.errors or not applies(plan.problem):
        return plan.predicted
    error = 0.0
    for name in classes(plan):
        mean, count = table.errors.get(name, (0.0, 0))
        error = (mean * count + error * TRUST) / (count + TRUST) if count else error
    return max(plan.floor, plan.predicted * math.exp(error))


def calibrated(plan: Plan) -> Plan:
    """The plan with its expected time mended by what was measured on such a card."""
    seconds = mended(plan)
    return plan if seconds == plan.predicted else plan.but(predicted=seconds)


@lru_cache(maxsize=256)
def _least_error(machine: Machine, coarse: str, middle: str) -> float:
    """Of every class that finer ones of these two are mended by."""
    assert machine.tuned is not None
    errors = machine.tuned.errors
    means = [mean for name, (mean, _) in errors.items() if name == coarse or name.startswith(middle)]
    return min((0.0, *means))


def least_mended(seconds: float, kernel: str, problem: Problem, machine: Machine) -> float:
    """No mending makes less of these seconds of a kernel's model."""
    if machine.tuned is None or not machine.tuned.errors or not applies(problem):
        return seconds
    return seconds * math.exp(_least_error(machine, *_coarse(problem, kernel)))


def with_errors(table: Table, measured: Iterable[tuple[Plan, float]]) -> Table:
    """The table with the errors of plans as their models made them, each beside its seconds on the card."""
    found: dict[str, list[float]] = defaultdict(list)
    for plan, seconds in measured:
        for name in classes(plan):
            found[name].append(math.log(seconds / plan.predicted))
    often = {name: x for name, x in found.items() if len(x) > 1}  # a single sample says little
    return replace(table, errors={name: (sum(x) / len(x), len(x)) for name, x in often.items()})
