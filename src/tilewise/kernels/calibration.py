"""How far a family's model is off on a card, by kind of product: measured once, then every plan's time is mended by it.

A model of waves and bytes is good to some per cent where products are large, and off by a factor where they are small
or thin. `tilewise tune --calibrate` times every family's own plan on random shapes and keeps the mean logarithm of
measured over expected time for classes of products, from coarse to fine; a fine class with few samples leans on the
coarser one above it. Stacks have more extents than classes can tell apart: `stack_calibration.py` fits them.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple, Protocol

from tilewise.algebra.builtin import is_plus_times
from tilewise.core.machine import Machine
from tilewise.core.plan import Plan
from tilewise.core.problem import Problem
from tilewise.core.tuning import TunedTable
from tilewise.kernels.stack_calibration import error, fitted, least_error, rises, terms

TRUST = 3  # samples of a class that weigh as much as all of the coarser one
FEW = (1, 4, 8, 16)  # rows or columns: bounds of what counts as few


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


class Features(NamedTuple):
    """What a product's classes are named by, whatever kernel takes it."""

    kind: str
    few: int
    lines: str
    thin: int
    stacked: bool


def classes(plan: Timed) -> list[str]:
    """The classes a plan of one product belongs to, from coarse to fine."""
    features = _features(plan.problem)
    return _names(features, plan.kernel, min(plan.passes, 3), _size(plan.predicted))


@lru_cache(maxsize=64)
def _features(p: Problem) -> Features:
    short, size = min(p.m, p.n), p.dtype.itemsize
    m, n = p.layout_m, p.layout_n
    leads = math.gcd(max(abs(m.row), abs(m.col)), max(abs(n.row), abs(n.col)))
    aligned = leads * size % 16 == 0 and m.alignment == n.alignment == 16
    half = p.dtype.kind == "f" and size == 2  # bfloat16 and float16 run the same instructions at the same rate
    kind = "half" if half else f"{p.dtype.name} {p.precision}" if p.dtype.name == "float32" else p.dtype.name
    few, lines = len(FEW) - bisect_left(FEW, short), "aligned" if aligned else "ragged"
    return Features(kind, few, lines, (short < 64) + (short < 256), p.members > 1)


def _size(predicted: float) -> int:
    """Octaves of the expected microseconds."""
    return round(math.log2(max(predicted * 1e6, 1.0)))


def _names(of: Features, kernel: str, passes: int, size: int) -> list[str]:
    coarse = f"{kernel} {of.kind}"
    middle = f"{coarse} few {of.few}"
    finer = f"{middle} passes {passes}"
    timed = f"{finer} 2^{size}us"
    return [coarse, middle, finer, timed, f"{timed} {of.lines} {of.thin}"]


def applies(p: Problem) -> bool:
    """What was measured: products and stacks of them in plus_times, with nothing behind them."""
    return is_plus_times(p.semiring) and not (p.epilogue or p.scaled or p.return_arg or p.groups)


class Mending:
    """What was measured on a machine, for one product: by how much kernels' expected seconds are mended."""

    def __init__(self, problem: Problem, machine: Machine) -> None:
        self.problem, table = problem, machine.tuned
        self._table = table if table is not None and (table.errors or table.stacks) and applies(problem) else None
        self.features, self.saved = None, 0.0
        if self._table is not None:
            self.features = self._of = _features(problem)
            self._times = _of_class(machine, self._of)
            self.saved = 0.0 if self._of.stacked else self._table.saved  # seconds, of any plan
            self._rising = _rising(machine) if self._of.stacked else frozenset()

    def mended(self, plan: Timed) -> float:
        """The expected seconds of a plan of this product."""
        if self._table is None:
            return plan.predicted
        if self._of.stacked:
            line = self._table.stacks.get(f"{plan.kernel} {self._of.kind}")
            return (
                plan.predicted
                if line is None
                else max(plan.floor, plan.predicted * math.exp(error(line, _terms(plan))))
            )
        times = self._times[plan.kernel, min(plan.passes, 3), _size(plan.predicted)]
        return max(plan.floor, plan.predicted * times - (self._table.saved if times != 1.0 else 0.0))

    def least(self, seconds: float, kernels: Iterable[str]) -> float:
        """No mending makes less of these seconds of some kernels' model of this stack."""
        if self._table is None:
            return seconds
        least = min([self._least_of_stack(f"{kernel} {self._of.kind}", seconds) for kernel in kernels])
        return 0.999 * seconds * least

    def _least_of_stack(self, name: str, seconds: float) -> float:
        """By how much a kernel's line mends any plan of this stack that is expected to take so long or longer."""
        assert self._table is not None
        line = self._table.stacks.get(name)
        if line is None:
            return 1.0
        if name not in self._rising:
            return math.exp(line.least)
        return math.exp(least_error(line, self.problem, self._of.lines == "aligned", seconds))


@lru_cache(maxsize=64)
def mending_of(problem: Problem, machine: Machine) -> Mending:
    return Mending(problem, machine)


def mended(plan: Timed) -> float:
    """The expected seconds, mended by what was measured on such a card."""
    return mending_of(plan.problem, plan.machine).mended(plan)


def _terms(plan: Timed) -> list[float]:
    return terms(plan.problem, _features(plan.problem).lines == "aligned", plan.predicted, plan.passes)


@lru_cache(maxsize=16)
def _rising(machine: Machine) -> frozenset[str]:
    """The kernels, with a dtype, whose mended times of stacks grow with the expected ones."""
    return (
        frozenset(name for name, line in machine.tuned.stacks.items() if rises(line)) if machine.tuned else frozenset()
    )


class _Times(dict[tuple[str, int, int], float]):
    """By kernel, passes and octave: by how much plans of a class take longer than expected. A fine one's mean leans on
    the coarser ones'."""

    def __init__(self, machine: Machine, of: Features) -> None:
        self._machine, self._of = machine, of

    def __missing__(self, key: tuple[str, int, int]) -> float:
        assert self._machine.tuned is not None
        error = 0.0
        for name in _names(self._of, *key):
            mean, count = self._machine.tuned.errors.get(name, (0.0, 0))
            error = (mean * count + error * TRUST) / (count + TRUST) if count else error
        self[key] = math.exp(error)
        return self[key]


def calibrated(plan: Plan) -> Plan:
    """The plan with its expected time mended by what was measured on such a card."""
    seconds = mended(plan)
    return plan if seconds == plan.predicted else plan.but(predicted=seconds)


@lru_cache(maxsize=16)
def _least_times(machine: Machine) -> dict[str, float]:
    """The least that anything finer than a class is mended by, down to how few rows or columns there are, and how they
    lie."""
    assert machine.tuned is not None
    errors, least = machine.tuned.errors, dict[str, float]()
    for name in errors:
        error, words = 0.0, name.split(" ")
        for end in range(1, len(words) + 1):  # the classes above it, and itself
            mean, count = errors.get(" ".join(words[:end]), (0.0, 0))
            error = (mean * count + error * TRUST) / (count + TRUST) if count else error
        coarse, few, rest = name.partition(" few ")
        size = rest.partition("^")[2].split(" ", 1)
        how = f" {size[1]}" if len(size) > 1 else ""  # of the finest classes
        group = f"{coarse}{few}{rest.partition(' ')[0]}{how}"
        least[group] = min(math.exp(error), least.get(group, 1.0))
    return least


def least_share(machine: Machine, of: Features | None, kernels: Iterable[str]) -> float:
    """The least that expected seconds of a product like this are mended by; 1 where nothing was measured."""
    if of is None:
        return 1.0
    least, shares = _least_times(machine), list[float]()
    for kernel in kernels:
        coarse = f"{kernel} {of.kind}"
        few = f"{coarse} few {of.few}"
        finest = least.get(f"{few} {of.lines} {of.thin}", 1.0)
        shares.append(min(least.get(coarse, 1.0), least.get(few, 1.0), finest))
    return 0.999 * min(shares)


@lru_cache(maxsize=512)
def _of_class(machine: Machine, of: Features) -> _Times:
    return _Times(machine, of)


def with_errors(table: TunedTable, measured: Iterable[tuple[Plan, float]]) -> TunedTable:
    """The table with the errors of plans as their models made them, each beside its seconds on the card."""
    found: dict[str, list[float]] = defaultdict(list)
    stacked: dict[str, list[tuple[list[float], float]]] = defaultdict(list)
    for plan, seconds in measured:
        off, of = math.log(seconds / plan.predicted), _features(plan.problem)
        if of.stacked:
            stacked[f"{plan.kernel} {of.kind}"].append((_terms(plan), off))
            continue
        for name in classes(plan):
            found[name].append(off)
    often = {name: x for name, x in found.items() if len(x) > 1}  # a single sample says little
    errors = {name: (sum(x) / len(x), len(x)) for name, x in often.items()}
    lines = {name: line for name, samples in stacked.items() if (line := fitted(samples)) is not None}
    return replace(table, errors=errors, saved=0.0, stacks=lines)
