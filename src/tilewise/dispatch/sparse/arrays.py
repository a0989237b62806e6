"""Recognition of scipy.sparse matrices without importing SciPy, and their rows as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import Array, DType, dtype_of
from tilewise.algebra.expression import Number
from tilewise.algebra.semiring import Algebra
from tilewise.errors import ShapeError
from tilewise.system.imported import imported
from tilewise.system.quantities import counted

REPEATS = ("coo", "csr", "csc", "bsr")  # formats that can store a cell several times


def is_sparse(x: Any) -> bool:
    scipy = imported("scipy.sparse")  # a caller with such a matrix has imported it
    return scipy is not None and bool(scipy.issparse(x))


def add_runs(terms: Array, starts: Array, P: Array, algebra: Algebra) -> None:
    """P[i] = add of P[i] and the terms starts[i] to starts[i + 1]."""
    counts = np.diff(starts)
    add = algebra.add
    if isinstance(add, np.ufunc):
        full = np.flatnonzero(counts)
        if full.size:
            P[full] = add(P[full], add.reduceat(terms, starts[full], axis=0))
        return
    for number in range(int(counts.max(initial=0))):  # a user-defined add: the first of every run, the second …
        rows = np.flatnonzero(counts > number)
        P[rows] = add(P[rows], terms[starts[rows] + number])


@dataclass(frozen=True)
class Rows:
    """A sparse matrix by rows (CSR): row i has the cells indices[starts[i]:starts[i + 1]]."""

    shape: tuple[int, int]
    starts: Array
    indices: Array
    data: Array

    @classmethod
    def of(cls, x: Any, name: str, algebra: Algebra, by_columns: bool = False) -> Rows:
        """The rows of x, or its columns as the rows of its transpose. Cells that are stored several times are combined
        by the add of `algebra` (parallel edges of a graph); SciPy would take the sum."""
        if x.ndim != 2:
            raise ShapeError(f"{name} is a sparse array of {counted(x.ndim, 'axis', 'axes')}: products take two")
        rows = x.tocsc() if by_columns else x.tocsr()
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        if rows is not x and x.format in REPEATS and rows.nnz != x.nnz:
            made = cls._of_repeated(x.tocoo(), algebra)
            return made.transposed() if by_columns else made
        return cls(x.shape[::-1] if by_columns else x.shape, rows.indptr, rows.indices, rows.data)

    @classmethod
    def _of_repeated(cls, cells: Any, algebra: Algebra) -> Rows:
        order = np.lexsort((cells.col, cells.row))  # stable: repeated cells are added in stored order
        row, col, data = cells.row[order], cells.col[order], cells.data[order]
        first = np.flatnonzero(np.concatenate(([True], (row[1:] != row[:-1]) | (col[1:] != col[:-1]))))
        wide = data != 0 if algebra.semiring.boolean else data.astype(algebra.partial.numpy)
        made = np.full((len(first), 1), algebra.zero, algebra.partial.numpy)
        with np.errstate(all="ignore"):
            add_runs(wide[:, None], np.append(first, len(data)), made, algebra)
            values = made[:, 0].astype(algebra.element.numpy)
        return cls(cells.shape, np.searchsorted(row[first], np.arange(cells.shape[0] + 1)), col[first], values)

    @classmethod
    def of_dense(cls, x: Array, zero: Number, nan: bool = True) -> Rows:
        """`nan`: whether cells of NaN are stored."""
        held = x != zero if nan else (x != zero) & (x == x)
        starts = np.concatenate(([0], np.cumsum(held.sum(1))))
        return cls((x.shape[0], x.shape[1]), starts, np.nonzero(held)[1], x[held])

    @property
    def dtype(self) -> DType:
        return dtype_of(self.data.dtype)

    @property
    def cells(self) -> tuple[Array, Array, Array]:
        return self.starts, self.indices, self.data

    @property
    def count(self) -> int:
        return len(self.data)

    def cells_of(self, rows: Array) -> Array:
        """The indices of all stored cells of these rows, row after row."""
        count = np.diff(self.starts)[rows]
        ends = np.cumsum(count)
        first = np.repeat(self.starts[rows] - (ends - count), count)
        return np.asarray(np.arange(len(first)) + first)

    def without(self, zero: Number) -> Rows:
        """The same matrix without stored cells that are zero."""
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

    def transposed(self) -> Rows:
        """The transposed matrix, by its rows."""
        order = np.argsort(self.indices, kind="stable")
        counts = np.bincount(self.indices, minlength=self.shape[1])
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.starts))
        return Rows(self.shape[::-1], np.concatenate(([0], np.cumsum(counts))), rows[order], self.data[order])
