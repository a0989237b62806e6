"""Products with sparse operands: by rows and their stored cells, or by dense tiles where those are faster.

    sparse ⊗ dense   a row of N for each stored cell of M, rows of P or of N cut over threads → dense
    sparse ⊗ sparse  row by row, products accumulated in a dense row (Gustavson) → sparse

The algorithm is chosen by counts alone, never by measured times, so that two runs give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.algebra.builtin import find_semiring, is_plus_times
from tilewise.algebra.dtypes import Array, dtype_of, promote
from tilewise.algebra.no_edge import absorbs, no_edge_of
from tilewise.algebra.semiring import Algebra, Semiring
from tilewise.algebra.to_llvm import KINDS, commutes, operands_swapped
from tilewise.backends.cpu.kernels.gustavson.run import STEPS, SmallProduct, product_of_rows, product_with_dense
from tilewise.dispatch.sparse.arrays import Rows, add_runs, is_sparse
from tilewise.errors import DtypeError, ShapeError, UsageError
from tilewise.system.quantities import counted

# nanoseconds: per stored cell and column of the dense operand, per pair of stored cells, per step of the dense tiles;
# per stored cell, and per cell of a sparse matrix made dense (docs/how/sparse.md)
CELL, PAIR, STEP = 0.15, 4.5, 0.09
STORED, FILLED = 1.0, 2.5
INDICES = (np.dtype(np.int32), np.dtype(np.int64))  # of SciPy
BAND = 1 << 20  # cells per band
FEW_COLUMNS = 16  # columns of the dense operand below which a sparse one stored along k is not converted


class PreparedSparse:
    """The prepared call of a sparse matrix with an array, on either side, for operands of the same classes, dtypes and
    semiring."""

    def __init__(self, algebra: Algebra, dense: Callable[..., Any], left: bool, single: bool) -> None:
        self.algebra, self.dense, self.left, self.tick = algebra, dense, left, 0
        as_they_are = no_edge_of(algebra) is None and algebra.partial == algebra.result and _compiles(algebra)
        self.kind = algebra.partial.numpy if as_they_are else None
        self.small: dict[Any, SmallProduct] = {}  # by format and the dtype of indices
        self.single, self.zeros_stay = single, absorbs(algebra)
        self.forms = ("csr", "csc") if single else ("csr",) if left else ()
        self.most = 2 * STEPS if single else 4 * STEPS  # steps that a second thread would not make faster

    def __call__(self, M: Any, N: Any, _: dict[str, Any]) -> Any:
        """None where the operands do not match: `sparse_matmul` raises the error."""
        S, X = (M, N) if self.left else (N, M)
        kind, form, shape, extents = self.kind, S.format, S.shape, X.shape
        inner, rows = shape[::-1] if self.left else shape
        if extents[0 if self.left else -1] != inner:
            return None
        if kind is not None and form in self.forms:
            starts, columns, data = S.indptr, S.indices, S.data
            index, width = columns.dtype, 1 if self.single else extents[1]
            if (  # NumPy's own dtypes are singletons
                data.size * width < self.most and data.dtype is kind and X.dtype is kind and starts.dtype is index
                and index in INDICES and S.has_canonical_format and X.flags.c_contiguous and data.flags.c_contiguous
                and starts.flags.c_contiguous and columns.flags.c_contiguous
                and (self.single or not _dense_is_faster(data.size, rows * inner, width))
                and (self.zeros_stay or not (data == self.algebra.zero).any())
            ):  # fmt: skip
                small = self.small.get((form, index))
                if small is None:
                    small = SmallProduct(self.algebra, (form == "csr") is not self.left, self.single, index)
                    self.small[form, index] = small
                return small(starts, columns, data, X, (rows,) if self.single else (rows, width))
        return _one_sparse(M, N, self.algebra, self.dense)


def sparse_signature(M: Any, N: Any, keywords: dict[str, Any]) -> tuple[Any, ...] | None:
    """Cache key of a sparse matrix and an array, over a semiring by name; None for other calls."""
    name = keywords.get("semiring")
    if len(keywords) != 1 or name.__class__ is not str or np.ndarray not in (M.__class__, N.__class__):
        return None
    return M.__class__, N.__class__, M.dtype, N.dtype, M.ndim, N.ndim, name


def prepared_sparse(M: Any, N: Any, semiring: Any, dense: Callable[..., Any]) -> PreparedSparse | None:
    """A prepared call for such operands; None over plus_times, which is SciPy's own product."""
    ring = find_semiring(semiring)
    if is_plus_times(ring):
        return None
    left = is_sparse(M)
    return PreparedSparse(_algebra(M, N, ring), dense, left, 1 in (M.ndim, N.ndim))


def sparse_matmul(M: Any, N: Any, semiring: str | Semiring, dense: Callable[..., Any]) -> Any:
    """M ⊗ N where at least one is sparse; `dense` multiplies arrays."""
    ring = find_semiring(semiring)
    sparse = is_sparse(M), is_sparse(N)
    for name, x, stored in (("M", M, sparse[0]), ("N", N, sparse[1])):
        if not stored and type(x) is not np.ndarray:
            raise UsageError(f"{name} is {type(x).__name__}: a scipy.sparse operand meets another, or a NumPy array")
        if x.ndim > 2 or x.ndim < 1:
            raise ShapeError(
                f"{name} has {counted(x.ndim, 'axis', 'axes')}: sparse products take matrices, and vectors beside them"
            )
    if M.shape[-1] != N.shape[0]:
        raise ShapeError(f"the {M.shape[-1]} columns of M do not meet the {N.shape[0]} rows of N; they must be equal")
    if is_plus_times(ring):
        if sparse[0] and M.format == "dia" and not (M.nnz and N.size):
            M = M.tocsr()  # SciPy's product of diagonals ends in a C++ error where there are none
        return M @ N  # SciPy's own
    algebra = _algebra(M, N, ring)
    if all(sparse):
        return _both_sparse(Rows.of(M, "M", algebra), Rows.of(N, "N", algebra), algebra, M, dense)
    return _one_sparse(M, N, algebra, dense)


def _algebra(M: Any, N: Any, ring: Semiring) -> Algebra:
    """The semiring over the common dtype, with mul's operands swapped if only N is sparse: mul takes the sparse operand
    first."""
    algebra = ring.over(promote(dtype_of(M.dtype), dtype_of(N.dtype)))
    _check_zero(algebra)
    return algebra if is_sparse(M) or commutes(ring.mul) else replace(algebra, semiring=_operands_swapped(ring))


def _check_zero(algebra: Algebra) -> None:
    """Refuse semirings whose zero is a weight, as in max_plus over unsigned integers and booleans: cells that are not
    stored are left out of every sum."""
    number = algebra.partial.numpy.type
    if algebra.partial.kind in "ub" and algebra.zero == 0 and algebra.mul(number(0), number(1)) != 0:
        raise DtypeError(
            f"{algebra.semiring} over {algebra.partial} has the weight 0 as its zero, so a cell that is not stored "
            "would be one: convert the matrices to a signed dtype"
        )


def _operands_swapped(ring: Semiring) -> Semiring:
    """The semiring with mul's operands swapped."""
    made = ring.with_zero(0)
    values = {"mul": operands_swapped(ring.mul), "zero": ring.zero, "pad_m": ring.pad_n, "pad_n": ring.pad_m}
    for key, value in values.items():
        object.__setattr__(made, key, value)
    return made


def _encoded(x: Array, algebra: Algebra, name: str) -> Array:
    """Elements in the accumulator's dtype, weights checked, and "no edge" encoded."""
    if algebra.semiring.boolean:
        return np.asarray(x != 0)
    edges = no_edge_of(algebra)
    wide = x.astype(algebra.partial.numpy, copy=False)
    return wide if edges is None else edges.encode(wide, name)[0]


def _stored(rows: Rows, algebra: Algebra, name: str) -> Rows:
    """Rows in the accumulator's dtype, without stored zeros where mul(zero, x) is not zero."""
    zero = False if algebra.semiring.boolean else algebra.zero
    kept = rows if absorbs(algebra) else rows.without(zero)
    return Rows(kept.shape, kept.starts, kept.indices, _encoded(kept.data, algebra, name))


def _decoded(P: Array, algebra: Algebra) -> Array:
    edges = no_edge_of(algebra)
    if edges is not None:
        edges.decode(P)
    return P.astype(algebra.result.numpy, copy=False)


def _one_sparse(M: Any, N: Any, algebra: Algebra, dense: Callable[..., Any]) -> Array:
    """A sparse matrix and an array."""
    return _with_dense(M, N, "M", algebra, dense) if is_sparse(M) else _with_dense(N, M.T, "N", algebra, dense).T


def _with_dense(S: Any, X: Array, name: str, algebra: Algebra, dense: Callable[..., Any]) -> Array:
    """S ⊗ X; or Sᵀ ⊗ X where S is N, and X the transposed M."""
    if S.ndim != 2:
        raise ShapeError(f"{name} is a sparse array of {counted(S.ndim, 'axis', 'axes')}: products take two")
    rows, inner = S.shape if name == "M" else S.shape[::-1]
    columns = X.shape[1] if X.ndim == 2 else 1
    compiled = _compiles(algebra)
    # with few columns, converting S to the other format would not pay
    scatter = compiled and columns < FEW_COLUMNS and S.format == ("csc" if name == "M" else "csr")
    by_rows = Rows.of(S, name, algebra, by_columns=scatter == (name == "M"))
    if _dense_is_faster(by_rows.count, rows * inner, columns) and absorbs(algebra):
        held = (by_rows.transposed() if scatter else by_rows).dense(algebra.zero, algebra.element.numpy)
        return np.asarray(dense(held, X, semiring=algebra.semiring))
    by_rows = _stored(by_rows, algebra, name)
    right = _encoded(X, algebra, "N" if name == "M" else "M")
    if compiled:
        return _decoded(product_with_dense(by_rows.cells, right, rows, algebra, scatter), algebra)
    right = right if X.ndim == 2 else right[:, None]
    P = np.full((rows, columns), algebra.zero, algebra.partial.numpy)
    with np.errstate(all="ignore"):
        for first, last in _bands(by_rows.starts, max(1, BAND // max(columns, 1))):
            cells = slice(int(by_rows.starts[first]), int(by_rows.starts[last]))
            terms = algebra.mul(by_rows.data[cells, None], right[by_rows.indices[cells]])
            add_runs(terms, by_rows.starts[first : last + 1] - cells.start, P[first:last], algebra)
    made = _decoded(P, algebra)
    return made if X.ndim == 2 else made[:, 0]


def _dense_is_faster(cells: int, whole: int, columns: int) -> bool:
    """Whether a dense product is expected to be faster, and the dense matrix is not too large."""
    return whole < 1 << 28 and cells * (STORED + CELL * columns) > whole * (FILLED + STEP * columns)


def _bands(starts: Array, most: int) -> list[tuple[int, int]]:
    """Rows in bands of at most this many stored cells, or of one row."""
    bands, first, rows = [], 0, len(starts) - 1
    while first < rows:
        last = int(np.searchsorted(starts, starts[first] + most, side="right")) - 1
        last = min(max(last, first + 1), rows)
        bands.append((first, last))
        first = last
    return bands


def _both_sparse(M: Rows, N: Rows, algebra: Algebra, like: Any, dense: Callable[..., Any]) -> Any:
    """Sparse with sparse."""
    import scipy.sparse

    kind = scipy.sparse.csr_matrix if isinstance(like, scipy.sparse.spmatrix) else scipy.sparse.csr_array
    shape, zero = (M.shape[0], N.shape[1]), False if algebra.semiring.boolean else algebra.zero
    pairs = int(np.diff(N.starts).take(M.indices).sum(dtype=np.int64))
    whole = M.shape[0] * M.shape[1] * N.shape[1]
    if pairs * PAIR > whole * STEP and max(M.shape[0], N.shape[0]) * N.shape[1] < 1 << 28 and absorbs(algebra):
        operands = (x.dense(algebra.zero, algebra.element.numpy) for x in (M, N))
        made = Rows.of_dense(np.asarray(dense(*operands, semiring=algebra.semiring)), zero)
        return kind((made.data, made.indices, made.starts), shape=shape)
    M, N = _stored(M, algebra, "M"), _stored(N, algebra, "N")
    if _compiles(algebra) and N.shape[1] < 1 << 31:
        made = Rows(shape, *product_of_rows(M.cells, N.cells, N.shape[1], pairs, algebra))
    else:
        made = _by_sorting(M, N, algebra)
    kept = Rows(shape, made.starts, made.indices, _decoded(made.data, algebra)).without(zero)
    return kind((kept.data, kept.indices, kept.starts), shape=shape)


@lru_cache(maxsize=256)
def _compiles(algebra: Algebra) -> bool:
    return algebra.partial.kind in "biuf" and algebra.partial.name in KINDS


def _by_sorting(M: Rows, N: Rows, algebra: Algebra) -> Rows:
    """For complex numbers and long doubles: all products of stored cells, sorted by their target, reduced."""
    lengths, columns = np.diff(N.starts), N.shape[1]
    pairs = np.concatenate(([0], np.cumsum(lengths[M.indices], dtype=np.int64)))[M.starts]  # before each row
    parts: list[tuple[Array, Array, Array]] = [(*(np.zeros(0, np.int64),) * 2, np.zeros(0, algebra.partial.numpy))]
    with np.errstate(all="ignore"):
        for first, last in _bands(pairs, BAND):
            cells = slice(int(M.starts[first]), int(M.starts[last]))
            k = M.indices[cells]
            count = lengths[k]
            row = np.repeat(np.repeat(np.arange(first, last), np.diff(M.starts[first : last + 1])), count)
            at = N.cells_of(k)
            terms = algebra.mul(np.repeat(M.data[cells], count), N.data[at])
            key = row * columns + N.indices[at]
            order = np.argsort(key, kind="stable")
            key, terms = key[order], terms[order]
            new = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1]))) if key.size else key
            P = np.full((len(new), 1), algebra.zero, algebra.partial.numpy)
            add_runs(terms[:, None], np.append(new, key.size), P, algebra)
            where = key[new]
            parts.append((where // columns, where % columns, P[:, 0]))
    row, col, data = (np.concatenate(x) for x in zip(*parts, strict=True))
    return Rows((M.shape[0], columns), np.searchsorted(row, np.arange(M.shape[0] + 1)), col, data)
