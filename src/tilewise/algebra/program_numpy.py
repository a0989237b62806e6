"""Programs as NumPy: the definition that the other renderings are tested against."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.algebra.dtypes import DType
from tilewise.algebra.expression import Number
from tilewise.algebra.to_numpy import ufunc


class Arrays:
    """Values are arrays."""

    def constant(self, value: Number, dtype: DType) -> Any:
        return dtype.numpy.type(value)

    def operate(self, op: str, dtype: DType, args: list[Any]) -> Any:
        return np.asarray(ufunc(op, dtype)(*args), dtype.numpy)

    def compare(self, op: str, dtype: DType, a: Any, b: Any) -> Any:
        return ufunc(op, dtype)(a, b)

    def logic(self, op: str, args: list[Any]) -> Any:
        return {"and": np.logical_and, "or": np.logical_or, "not": np.logical_not}[op](*args)

    def select(self, dtype: DType, truth: Any, a: Any, b: Any) -> Any:
        return np.asarray(np.where(truth, a, b), dtype.numpy)

    def number(self, truth: Any, dtype: DType) -> Any:
        return np.asarray(truth, dtype.numpy)

    def truth(self, value: Any, dtype: DType) -> Any:
        return np.not_equal(value, 0)
