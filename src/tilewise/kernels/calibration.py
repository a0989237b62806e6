"""How far a kernel's cost model is off on a card: measured once, then every plan's expected time is corrected by it.

A model of waves and bytes is good to some per cent where products are large, and off by a factor where they are small
or thin. `tilewise tune --calibrate` times every family's own plan on drawn products and fits, for each kernel, the
logarithm of measured over expected time: a piecewise linear function of the logarithms of the extents and of the
expected time, with terms for what else a product may have; and what is left of it, for each kind of element, as a line
over the expected time, so that a kind with few samples leans on the kernel's others.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import mul
from typing import Any, Protocol

from tilewise.algebra.builtin import is_plus_times
from tilewise.core.machine import Machine
from tilewise.core.plan import Plan
from tilewise.core.problem import Problem
from tilewise.core.tuning import Fit, TunedTable

BEND, CELL_BEND, STEP_BEND = 4, 16, 20  # octaves: of an extent, of all cells of P, of all steps
PULL, KIND_PULL = 10.0, 3.0  # towards no error at all, in samples
FAR = 0.3  # an error beyond it counts less, the farther the less
FEWEST = 8  # samples: fewer say nothing
ROUNDS = 5


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


def mended(plan: Timed) -> float:
    """The expected seconds, corrected by what was measured on such a card."""
    table, p = plan.machine.tuned, plan.problem
    fit = table.fits.get(plan.kernel) if table is not None and not (p.return_arg or p.scaled) else None
    if fit is None:
        return plan.predicted
    offset, slope = fit.kinds.get(kind(p), (0.0, 0.0))
    values = terms(plan)
    error = sum(map(mul, fit.weights, values)) + offset + slope * values[TIME]
    return max(plan.floor, plan.predicted * math.exp(min(fit.most, max(fit.least, error))))


def calibrated(plan: Plan) -> Plan:
    """The plan with its expected time corrected."""
    seconds = mended(plan)
    return plan if seconds == plan.predicted else plan.but(predicted=seconds)


@lru_cache(maxsize=64)
def kind(p: Problem) -> str:
    """What a product's elements are to a kernel."""
    if p.dtype_m.kind == "f" and p.dtype_m.itemsize == 1:
        return "float8"
    half = p.dtype.kind == "f" and p.dtype.itemsize == 2  # bfloat16 and float16 run the same instructions at one rate
    name = "half" if half else p.dtype.name
    if not is_plus_times(p.semiring):
        return f"{name} semiring"
    return f"{name} {p.precision}" if name == "float32" else name


TIME = -2  # where the expected time stands among the terms


def terms(plan: Timed) -> list[float]:
    """What the error of a plan's time is a sum of, each times its weight."""
    return [*_of_problem(plan.problem), math.log2(max(plan.predicted * 1e6, 0.1)), plan.passes > 0]


@lru_cache(maxsize=64)
def _of_problem(p: Problem) -> tuple[float, ...]:
    m, n, k, members = (math.log2(max(extent, 1)) for extent in (p.m, p.n, p.k, p.members))
    short, cells, lies = min(m, n), members + m + n, (p.layout_m, p.layout_n)
    leads = math.gcd(*(max(abs(one.row), abs(one.col)) for one in lies))
    aligned = leads * p.dtype.itemsize % 16 == 0 and all(one.alignment == 16 for one in lies)
    return (
        1.0, m, _above(m, BEND), n, _above(n, BEND), k, _above(k, BEND), members, short, _above(short, BEND),
        min(k, n), min(k, m), _above(cells, CELL_BEND), _above(cells + k, STEP_BEND),
        aligned, *(abs(one.row) < abs(one.col) for one in lies), p.members > 1, p.groups is not None,
        bool(p.epilogue), p.accumulate, is_plus_times(p.semiring), p.semiring.name == "logaddexp_plus",
        math.log2(p.dtype.itemsize), p.dtype.kind != "f",
    )  # fmt: skip


def _above(value: float, bend: float) -> float:
    return max(0.0, value - bend)


def with_fits(table: TunedTable, measured: Iterable[tuple[Plan, float]]) -> TunedTable:
    """The table with the errors of plans as their models made them, each beside its seconds on the card."""
    samples = defaultdict[str, list[tuple[list[float], float, str]]](list)
    for plan, seconds in measured:
        samples[plan.kernel].append((terms(plan), math.log(seconds / plan.predicted), kind(plan.problem)))
    return replace(table, fits={kernel: _fit(some) for kernel, some in samples.items() if len(some) >= FEWEST})


def _fit(samples: Sequence[tuple[list[float], float, str]]) -> Fit:
    """Of one kernel; never beyond what its samples make."""
    weights = fitted([(values, error) for values, error, _ in samples], PULL)
    left, made = defaultdict[str, list[tuple[list[float], float]]](list), list[float]()
    for values, error, name in samples:
        made.append(sum(map(mul, weights, values)))
        left[name].append(([1.0, values[TIME]], error - made[-1]))
    kinds = dict[str, tuple[float, float]]()
    for name, some in left.items():
        if len(some) >= FEWEST:
            offset, slope = fitted(some, KIND_PULL)
            kinds[name] = round(offset, 4), round(slope, 4)
    return Fit(tuple(round(x, 4) for x in weights), round(min(made), 3), round(max(made), 3), kinds)


def fitted(samples: Sequence[tuple[list[float], float]], pull: float) -> list[float]:
    """Weights of the terms, by least squares; samples far from what they make count less in each round."""
    import numpy as np

    values, wanted = np.array([v for v, _ in samples], float), np.array([e for _, e in samples])
    middle, spread = values.mean(0), values.std(0)
    middle[0], spread[spread < 1e-9] = 0.0, 1.0
    scaled, pulls = (values - middle) / spread, pull * np.eye(values.shape[1])
    pulls[0, 0] = 1.0
    weights: Any = np.zeros(values.shape[1])
    for _ in range(ROUNDS):
        counts = 1 / np.maximum(1.0, np.abs(wanted - scaled @ weights) / FAR)
        weighed = scaled * counts[:, None]
        weights = np.linalg.solve(weighed.T @ scaled + pulls, weighed.T @ wanted)
    weights = weights / spread
    weights[0] -= middle[1:] @ weights[1:]
    return [float(weight) for weight in weights]
