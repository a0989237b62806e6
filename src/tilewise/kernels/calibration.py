"""Corrections of the cost models, measured on a card: each plan's expected time is multiplied by a fitted factor.

A model of waves and bytes is within a few per cent for large products, and wrong by a factor for small or thin ones.
`tilewise tune --calibrate` times every family's own plan of random products and fits, for each kernel, the logarithm of
measured over expected time: linear in `features` (piecewise in the logarithms of the extents); then the residual of
each kind of element, linear in the expected time, so that a kind with few samples uses the fit of the whole kernel.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import exp, gcd, log2
from operator import mul
from typing import Any, NamedTuple

from tilewise.algebra.builtin import is_plus_times
from tilewise.core.machine import Machine
from tilewise.core.plan import Plan
from tilewise.core.problem import Problem
from tilewise.core.tuning import Fit, TunedTable
from tilewise.kernels.family import Offer
from tilewise.system.machine_code import Row

BEND, CELL_BEND, STEP_BEND = 4, 16, 20  # log2 where the slope changes: of an extent, of the cells of P, of all steps
RIDGE, KIND_RIDGE = 10.0, 3.0  # regularization, in samples
OUTLIER = 0.3  # residuals beyond it have a lower weight (Huber)
LEAST_SAMPLES = 8  # of a fit
ROUNDS = 5  # of reweighting
LEAST_MICROSECONDS = 0.1  # of an expected time


Timed = Plan | Offer  # a kernel for a problem with the time that its model expects
# A fit as a vector: whether there is one; what is added for a kind of elements; least and most error; weights
FITTED, OFFSET, SLOPE, LEAST, MOST, WEIGHTS = range(6)
TERMS = 25  # regressors of a problem; two more weights are of the expected time, and of passes
UNFITTED = (0.0,) * (WEIGHTS + TERMS + 2)


def fit_of(p: Problem, machine: Machine, kernel: str) -> Row:
    """A kernel's fit for a problem's kind of elements."""
    fit = None if machine.tuned is None or p.return_arg or p.scaled else machine.tuned.fits.get(kernel)
    return UNFITTED if fit is None else (1.0, *fit.kinds.get(kind(p), (0.0, 0.0)), fit.least, fit.most, *fit.weights)


def corrected(fit: Row, known: Row, predicted: float, floor: float, passes: int) -> float:
    """Expected seconds, corrected by the card's calibration; `known`: the problem's regressors."""
    if fit[FITTED] == 0.0:
        return predicted
    time, error = log2(max(predicted * 1e6, LEAST_MICROSECONDS)), 0.0
    for at in range(TERMS):
        error += fit[WEIGHTS + at] * known[at]
    error += fit[WEIGHTS + TERMS] * time
    if passes > 0:
        error += fit[WEIGHTS + TERMS + 1]
    error = error + fit[OFFSET] + fit[SLOPE] * time
    return max(floor, predicted * exp(min(fit[MOST], max(fit[LEAST], error))))


def corrected_seconds(plan: Timed) -> float:
    """The same of a plan."""
    p, fit = plan.problem, fit_of(plan.problem, plan.machine, plan.kernel)
    if fit is UNFITTED:
        return plan.predicted
    return corrected(fit, regressors(p, elements_of(p)), plan.predicted, plan.floor, plan.passes)


def calibrated(plan: Plan) -> Plan:
    """The plan with its expected time corrected."""
    seconds = corrected_seconds(plan)
    return plan if seconds == plan.predicted else plan.but(predicted=seconds)


def kind(p: Problem) -> str:
    """Its kind of elements: those that run at one rate."""
    if p.dtype_m.kind == "f" and p.dtype_m.itemsize == 1:
        return "float8"
    half = p.dtype.kind == "f" and p.dtype.itemsize == 2  # bfloat16 and float16 run the same instructions at one rate
    name = "half" if half else p.dtype.name
    if not is_plus_times(p.semiring):
        return f"{name} semiring"
    return f"{name} {p.precision}" if name == "float32" else name


TIME = -2  # the index of the expected time in `features`


def features(plan: Timed) -> list[float]:
    """The regressors of a plan's error."""
    time = log2(max(plan.predicted * 1e6, LEAST_MICROSECONDS))
    return [*regressors(plan.problem, elements_of(plan.problem)), time, plan.passes > 0]


class Elements(NamedTuple):
    """What regressors depend on besides a problem's numbers."""

    grouped: bool
    fused: bool  # an epilogue
    plus_times: bool
    logaddexp_plus: bool
    exact: bool  # no floats


def elements_of(p: Problem) -> Elements:
    ring = p.semiring
    fused, exact = bool(p.epilogue), p.dtype.kind != "f"
    return Elements(p.groups is not None, fused, is_plus_times(ring), ring.name == "logaddexp_plus", exact)


def regressors(p: Problem, of: Elements) -> Row:
    """Those that do not depend on the plan."""
    m, n, k, members = log2(max(p.m, 1)), log2(max(p.n, 1)), log2(max(p.k, 1)), log2(max(p.members, 1))
    short, cells = min(m, n), members + m + n
    m_row, m_col, n_row, n_col = abs(p.layout_m.row), abs(p.layout_m.col), abs(p.layout_n.row), abs(p.layout_n.col)
    leads = gcd(max(m_row, m_col), max(n_row, n_col))
    aligned = leads * p.dtype.itemsize % 16 == 0 and p.layout_m.alignment == 16 == p.layout_n.alignment
    return (
        1.0, m, max(0.0, m - BEND), n, max(0.0, n - BEND), k, max(0.0, k - BEND), members,
        short, max(0.0, short - BEND), min(k, n), min(k, m),
        max(0.0, cells - CELL_BEND), max(0.0, cells + k - STEP_BEND),
        aligned, m_row < m_col, n_row < n_col, p.members > 1, of.grouped,
        of.fused, p.accumulate, of.plus_times, of.logaddexp_plus,
        log2(p.dtype.itemsize), of.exact,
    )  # fmt: skip


def with_fits(table: TunedTable, measured: Iterable[tuple[Plan, float]]) -> TunedTable:
    """The table with fits to plans as their models made them, each with its measured seconds."""
    samples = defaultdict[str, list[tuple[list[float], float, str]]](list)
    for plan, seconds in measured:
        samples[plan.kernel].append((features(plan), math.log(seconds / plan.predicted), kind(plan.problem)))
    return replace(table, fits={kernel: _fit(some) for kernel, some in samples.items() if len(some) >= LEAST_SAMPLES})


def _fit(samples: Sequence[tuple[list[float], float, str]]) -> Fit:
    """Of one kernel, clamped to the range of its samples."""
    weights = ridge_fit([(values, error) for values, error, _ in samples], RIDGE)
    residuals, made = defaultdict[str, list[tuple[list[float], float]]](list), list[float]()
    for values, error, name in samples:
        made.append(sum(map(mul, weights, values)))
        residuals[name].append(([1.0, values[TIME]], error - made[-1]))
    kinds = dict[str, tuple[float, float]]()
    for name, some in residuals.items():
        if len(some) >= LEAST_SAMPLES:
            offset, slope = ridge_fit(some, KIND_RIDGE)
            kinds[name] = round(offset, 4), round(slope, 4)
    return Fit(tuple(round(x, 4) for x in weights), round(min(made), 3), round(max(made), 3), kinds)


def ridge_fit(samples: Sequence[tuple[list[float], float]], ridge: float) -> list[float]:
    """Weights by ridge regression, reweighted in each round so that outliers count less."""
    import numpy as np

    values, wanted = np.array([v for v, _ in samples], float), np.array([e for _, e in samples])
    middle, spread = values.mean(0), values.std(0)
    middle[0], spread[spread < 1e-9] = 0.0, 1.0
    scaled, penalty = (values - middle) / spread, ridge * np.eye(values.shape[1])
    penalty[0, 0] = 1.0
    weights: Any = np.zeros(values.shape[1])
    for _ in range(ROUNDS):
        counts = 1 / np.maximum(1.0, np.abs(wanted - scaled @ weights) / OUTLIER)
        weighed = scaled * counts[:, None]
        weights = np.linalg.solve(weighed.T @ scaled + penalty, weighed.T @ wanted)
    weights = weights / spread
    weights[0] -= middle[1:] @ weights[1:]
    return [float(weight) for weight in weights]
