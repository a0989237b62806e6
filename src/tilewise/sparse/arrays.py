"""What is a scipy.sparse matrix, asked without importing SciPy; and its rows as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import DType, dtype_of
from tilewise.algebra.expression import Number
from tilewise.errors import ShapeError
from tilewise.system.imported import imported

Array = np.ndarray[Any, np.dtype[Any]]


def is_sparse(x: Any) -> bool:
    scipy = imported("scipy.sparse")  # whoever has such a matrix has imported it
    return scipy is not None and bool(scipy.issparse(x))


@dataclass(frozen=True)
class Rows:
    """A sparse matrix by rows (CSR): row i has the cells indices[starts[i]:starts[i + 1]]."""

    shape: tuple[int, int]
    starts: Array
    indices: Array
    data: Array

    @classmethod
    def of(cls, x: Any, name: str) -> Rows:
        if x.ndim != 2:
            raise ShapeError(f"{name} is a sparse array of {x.ndim} axes: products take two")
        rows = x.tocsr()
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()  # SciPy's meaning of a cell that is stored twice
        return cls(rows.shape, rows.indptr, rows.indices, rows.data)

    @classmethod
    def of_dense(cls, x: Array, zero: Number) -> Rows:
        held = x != zero
        starts = np.concatenate(([0], np.cumsum(held.sum(1))))
        return cls((x.shape[0], x.shape[1]), starts, np.nonzero(held)[1], x[held])

    @property
    def dtype(self) -> DType:
        return dtype_of(self.data.dtype)

    @property
    def count(self) -> int:
        return len(self.data)

    def without(self, zero: Number) -> Rows:
        """Cells that hold the zero anyway are not stored."""
        held = self.data != zero
        if held.all():
            return self
        sums = np.concatenate(([0], np.cumsum(held)))
        return Rows(self.shape, sums[self.starts], self.indices[held], self.data[held])

    def dense(self, zero: Number, dtype: Any) -> Array:
        made = np.full(self.shape, zero, dtype)
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.starts))
        made[rows, self.indices] = self.data
        return made

    def turned(self) -> Rows:
        """The transposed matrix, by its rows."""
        order = np.argsort(self.indices, kind="stable")
        counts = np.bincount(self.indices, minlength=self.shape[1])
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.starts))
        return Rows(self.shape[::-1], np.concatenate(([0], np.cumsum(counts))), rows[order], self.data[order])
