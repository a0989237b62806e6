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
from operator import mul
from typing import Any

from tilewise.algebra.builtin import is_plus_times
from tilewise.core.plan import Plan
from tilewise.core.problem import Problem
from tilewise.core.tuning import Fit, TunedTable
from tilewise.kernels.family import Offer

BEND, CELL_BEND, STEP_BEND = 4, 16, 20  # log2 where the slope changes: of an extent, of the cells of P, of all steps
RIDGE, KIND_RIDGE = 10.0, 3.0  # regularization, in samples
OUTLIER = 0.3  # residuals beyond it have a lower weight (Huber)
LEAST_SAMPLES = 8  # of a fit
ROUNDS = 5  # of reweighting
LEAST_MICROSECONDS = 0.1  # of an expected time


Timed = Plan | Offer  # a kernel for a problem with the time that its model expects
Regressors = tuple[str, tuple[float, ...]]  # a problem's kind, and those that do not depend on the plan


def corrected_seconds(plan: Timed, known: Regressors | None = None) -> float:
    """The expected seconds, corrected by the card's calibration; `known`: of the plan's problem."""
    table, p, predicted = plan.machine.tuned, plan.problem, plan.predicted
    fit = None if table is None or p.return_arg or p.scaled else table.fits.get(plan.kernel)
    if fit is None:
        return predicted
    (name, values), time = known or regressors(p), math.log2(max(predicted * 1e6, LEAST_MICROSECONDS))
    offset, slope = fit.kinds.get(name, (0.0, 0.0))
    error = sum(map(mul, fit.weights, (*values, time, plan.passes > 0))) + offset + slope * time
    return max(plan.floor, predicted * math.exp(min(fit.most, max(fit.least, error))))


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
    time = math.log2(max(plan.predicted * 1e6, LEAST_MICROSECONDS))
    return [*regressors(plan.problem)[1], time, plan.passes > 0]


def regressors(p: Problem) -> Regressors:
    """A problem's kind, and the regressors that do not depend on the plan."""
    log, of_m, of_n = math.log2, p.layout_m, p.layout_n
    m, n, k, members = log(max(p.m, 1)), log(max(p.n, 1)), log(max(p.k, 1)), log(max(p.members, 1))
    short, cells = min(m, n), members + m + n
    m_row, m_col, n_row, n_col = abs(of_m.row), abs(of_m.col), abs(of_n.row), abs(of_n.col)
    leads = math.gcd(max(m_row, m_col), max(n_row, n_col))
    aligned = leads * p.dtype.itemsize % 16 == 0 and of_m.alignment == 16 == of_n.alignment
    return kind(p), (
        1.0, m, max(0.0, m - BEND), n, max(0.0, n - BEND), k, max(0.0, k - BEND), members,
        short, max(0.0, short - BEND), min(k, n), min(k, m),
        max(0.0, cells - CELL_BEND), max(0.0, cells + k - STEP_BEND),
        aligned, m_row < m_col, n_row < n_col, p.members > 1, p.groups is not None,
        bool(p.epilogue), p.accumulate, is_plus_times(p.semiring), p.semiring.name == "logaddexp_plus",
        math.log2(p.dtype.itemsize), p.dtype.kind != "f",
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
