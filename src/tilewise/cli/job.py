"""Used by `multiply` and `demo`: random operands, the choice of a device, the check of a product."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import Array, dtype_named
from tilewise.arrays.card import card_count
from tilewise.cli.output import remark
from tilewise.core.accuracy import relative_error
from tilewise.core.problem import Problem
from tilewise.dispatch.timed import TimedProduct, timed_matmul
from tilewise.system.memory import check_room

CHECK_STEPS = 400_000_000  # larger products are checked on a sample of rows


def best_device(requested: str) -> str:
    """The device; "auto" becomes a card if there is one."""
    if requested != "auto":
        return requested
    return "cuda" if card_count() else "cpu"


def chosen_device(requested: str) -> str:
    """`best_device`, printed if it was chosen here."""
    chosen = best_device(requested)
    if requested == "auto":
        remark(f"device: {chosen}")
    return chosen


def make_operands(shape: tuple[int, int, int], dtype: str, seed: int) -> tuple[Array, Array]:
    """Random operands: integers from 0 to 9, True for one in three, uniform in −1…1 for the rest."""
    m, k, n = shape
    rng = np.random.default_rng(seed)
    number = dtype_named(dtype)
    needs = (m * k + k * n) * number.itemsize + max(m * k, k * n) * 8 + m * n * number.itemsize
    check_room(needs, f"a product of {m}x{k}x{n} {number} with its operands", hint=": give a smaller --shape")

    def make(rows: int, cols: int) -> Array:
        if number.kind == "b":
            return rng.random((rows, cols)) < 1 / 3
        if number.is_integer:
            return rng.integers(0, 10, (rows, cols)).astype(number.numpy)
        values = rng.uniform(-1, 1, (rows, cols))
        return (values + 1j * rng.uniform(-1, 1, (rows, cols)) if number.kind == "c" else values).astype(number.numpy)

    return make(m, k), make(k, n)


@dataclass(frozen=True)
class Check:
    """A product compared with the reference backend: in float64 for floats, exactly for other dtypes."""

    rows: int  # how many rows of P were compared
    error: float  # ‖P − ref‖ / ‖ref‖
    tolerance: float
    cpu_seconds: float  # the reference's time for the whole product, extrapolated from the rows

    @property
    def passed(self) -> bool:
        return self.error <= self.tolerance


def check_product(M: Array, N: Array, report: TimedProduct, bias: Array | None = None) -> Check:
    """Compare P, or a sample of its rows if P is large, with the reference backend in higher precision."""
    problem: Problem = report.plan.problem
    rows = M.shape[0]
    if problem.steps > CHECK_STEPS:
        rows = max(1, min(rows, CHECK_STEPS // max(1, problem.k * problem.n)))
    chosen = np.sort(np.random.default_rng(0).choice(M.shape[0], rows, replace=False))
    part = M[chosen]
    dtype = problem.dtype
    e = problem.epilogue
    epilogue: dict[str, Any] = {"alpha": e.alpha, "bias": bias, "activation": e.activation}
    start = time.perf_counter()
    reference = timed_matmul(part, N, semiring=problem.semiring, kernel="reference", **epilogue).product
    seconds = (time.perf_counter() - start) * (M.shape[0] / max(1, rows))
    if dtype.kind in "fc" and not problem.semiring.boolean:
        wide = np.complex128 if dtype.kind == "c" else np.float64
        expected = timed_matmul(
            part.astype(wide), N.astype(wide), semiring=problem.semiring, kernel="reference", **epilogue
        ).product
        tolerance = {"float16": 2e-3, "bfloat16": 2e-2, "float64": 1e-13, "complex128": 1e-13}.get(dtype.name, 2e-5)
    else:
        expected, tolerance = reference, 0.0
    return Check(rows, relative_error(report.product[chosen], expected), tolerance, seconds)
