"""The laws that a semiring needs for a product of many operands to be computed by products of two."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import DTYPES, Array, DType
from tilewise.algebra.expression import Number
from tilewise.algebra.modular import Modular
from tilewise.algebra.semiring import Algebra, Semiring
from tilewise.algebra.to_numpy import numpy_function
from tilewise.api import jax_traces
from tilewise.compose.graph.laws import neutral
from tilewise.errors import DtypeError, UsageError
from tilewise.system.imported import imported


@lru_cache(maxsize=256)
def check_regroups(semiring: Semiring, dtype: DType, reorders: bool = True) -> bool:
    """Whether mul is associative, distributes over add and, if `reorders`, commutes; UsageError if not.

    False if that holds only for values that are not below 0, as for min_times: the caller checks its operands.
    """
    with np.errstate(all="ignore"):
        drawn = np.random.default_rng(0).uniform(0.25, 4, (3, 64))
        number = dtype if dtype.kind in "iub" else DTYPES["complex128" if dtype.kind == "c" else "float64"]
        whole = np.random.default_rng(0).integers(0, 4, (3, 64)).astype(number.numpy)
        values = whole if number.kind in "iub" else drawn.astype(number.numpy)
        _check(semiring, number, values, reorders)
        if number.kind in "ubc":
            return True
        signs = np.where(np.random.default_rng(1).random((3, 64)) < 0.5, -1, 1).astype(number.numpy)
        try:
            _check(semiring, number, values * signs, reorders)
        except UsageError:
            return False
    return True


def check_signs(semiring: Semiring, arrays: Sequence[Any], instead: str) -> None:
    """Raise UsageError if an operand has a value below 0, for a law that holds for the others only."""
    lazy = imported("dask.array")
    if lazy is not None and any(isinstance(x, lazy.Array) for x in arrays):
        raise UsageError(f"{semiring} regroups values that are not below 0 only, and a Dask array would have to be "
                         f"computed to look: {instead}")  # fmt: skip
    if jax_traces(*arrays):
        raise UsageError(f"{semiring} regroups values that are not below 0 only, and values that JAX traces cannot be "
                         f"looked at: {instead}")  # fmt: skip
    if any(bool(((x.data if hasattr(x, "tocsr") else x) < 0).any()) for x in arrays):
        raise UsageError(
            f"{semiring} regroups values that are not below 0 only, and an operand holds one that is: {instead}"
        )


def _check(semiring: Semiring, dtype: DType, values: Array, reorders: bool) -> None:
    add, mul = numpy_function(semiring.add, dtype), numpy_function(semiring.mul, dtype)
    x, y, z = values
    laws = {
        "mul(mul(x, y), z) == mul(x, mul(y, z))": (mul(mul(x, y), z), mul(x, mul(y, z))),
        "mul(x, add(y, z)) == add(mul(x, y), mul(x, z))": (mul(x, add(y, z)), add(mul(x, y), mul(x, z))),
        "mul(add(x, y), z) == add(mul(x, z), mul(y, z))": (mul(add(x, y), z), add(mul(x, z), mul(y, z))),
    }
    if reorders:
        laws["mul(x, y) == mul(y, x)"] = (mul(x, y), mul(y, x))
    for law, (left, right) in laws.items():
        off = ~np.isclose(left, right, rtol=1e-6, atol=1e-9, equal_nan=True)
        if off.any():
            at = int(np.argmax(off))
            raise UsageError(
                f"{semiring} multiplies two operands only: more need {law}, and at x={x[at]:g}, y={y[at]:g}, "
                f"z={z[at]:g} it is {left[at]:g} on the left and {right[at]:g} on the right"
            )


@lru_cache(maxsize=256)
def one_over(algebra: Algebra) -> Number:
    """The neutral element of mul over this dtype; UsageError if there is none."""
    dtype = algebra.partial
    if isinstance(algebra.semiring, Modular):  # which reduces the samples below, too
        return 1
    values = {"b": [False, True], "u": [0, 1, 2, 5]}.get(dtype.kind, [-3, 0, 1, 2, 5])
    samples = np.array(values).astype(dtype.numpy)
    ends: tuple[Number, ...] = () if dtype.kind == "c" else (dtype.smallest(), dtype.largest())
    one = neutral(algebra, samples, (1, 0, *ends))
    if one is None:
        raise UsageError(f"{algebra.semiring} has no one over {dtype} (mul(one, x) == x), which this needs")
    return one


def algebra_over(semiring: Semiring, dtype: DType) -> Algebra:
    """The semiring over a dtype; a DtypeError names einsum."""
    try:
        return semiring.over(dtype)
    except DtypeError as error:
        raise DtypeError(f"einsum: {error}") from None
