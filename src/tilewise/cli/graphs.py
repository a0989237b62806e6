"""Graphs in files: a dense .npy, a sparse .npz as SciPy saves it, or a Matrix Market file, as a dense matrix.

What a sparse file does not list is no edge: the semiring's zero. The semiring adds several entries of one edge.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import dtype_of
from tilewise.algebra.semiring import Semiring
from tilewise.cli.matrix_market import read_matrix_market
from tilewise.cli.npy import opened, read_matrix
from tilewise.cli.sparse_npz import read_sparse_npz
from tilewise.errors import FileError, TooLargeError
from tilewise.system.memory import check_room

Array = np.ndarray[Any, np.dtype[Any]]
Entries = tuple[tuple[int, int], Array, Array, Array]  # shape, rows, columns, weights


def read_graph(path: Path, semiring: Semiring) -> Array:
    """The weights of a graph file over a semiring; refused with one sentence where the file is not one."""
    with opened(path) as file:
        start = file.read(64)
    if start.startswith(b"%%MatrixMarket"):
        return _dense(path, read_matrix_market(path), semiring)
    if start.startswith(b"PK"):
        return _dense(path, read_sparse_npz(path), semiring)
    if start.startswith(b"\x93NUMPY"):
        return read_matrix(path)
    raise FileError(f"{path} is no graph: give a dense .npy, a sparse .npz of SciPy, or a Matrix Market .mtx file")


def _dense(path: Path, entries: Entries, semiring: Semiring) -> Array:
    shape, rows, cols, weights = entries
    algebra = semiring.over(dtype_of(weights.dtype))
    if not len(rows) == len(cols) == len(weights):
        raise FileError(f"{path} has {len(rows)} rows, {len(cols)} columns and {len(weights)} weights: it is damaged")
    if rows.size and (rows.min() < 0 or cols.min() < 0 or rows.max() >= shape[0] or cols.max() >= shape[1]):
        raise FileError(f"{path} lists an entry outside its {shape[0]}×{shape[1]} matrix")
    what = f"{path}, {shape[0]}×{shape[1]} as a dense matrix,"
    check_room(shape[0] * shape[1] * algebra.partial.itemsize, what)
    try:
        W = np.full(shape, algebra.zero, algebra.partial.numpy)
    except (MemoryError, ValueError):
        raise TooLargeError(f"{what} is too large for a closure here") from None
    values = weights != 0 if algebra.partial.kind == "b" else weights.astype(W.dtype)
    order = np.lexsort((cols, rows))
    rows, cols, values = rows[order], cols[order], values[order]
    again = np.zeros(len(rows), bool)
    again[1:] = (rows[1:] == rows[:-1]) & (cols[1:] == cols[:-1])
    W[rows[~again], cols[~again]] = values[~again]
    for row, col, value in zip(rows[again], cols[again], values[again], strict=True):
        W[row, col] = algebra.add(W[row, col, None], value[None])[0]
    return W
