"""Graphs in files: a dense .npy, a sparse .npz as SciPy saves it, or a Matrix Market file, as a dense matrix.

What a sparse file does not list is no edge: the semiring's zero. Of two entries for one edge the better one counts.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import dtype_of
from tilewise.algebra.semiring import Semiring
from tilewise.cli.npy import read_matrix
from tilewise.errors import FileError, OutOfMemoryError

Array = np.ndarray[Any, np.dtype[Any]]
Entries = tuple[tuple[int, int], Array, Array, Array]  # shape, rows, columns, weights


def read_graph(path: Path, semiring: Semiring) -> Array:
    """The weights of a graph file over a semiring; refused with one sentence where the file is not one."""
    try:
        with path.open("rb") as file:
            start = file.read(64)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from None
    if start.startswith(b"%%MatrixMarket"):
        return _dense(path, _matrix_market(path), semiring)
    if start.startswith(b"PK"):
        return _dense(path, _sparse_npz(path), semiring)
    if start.startswith(b"\x93NUMPY"):
        return read_matrix(path)
    raise FileError(f"{path} is no graph: give a dense .npy, a sparse .npz of SciPy, or a Matrix Market .mtx file")


def _dense(path: Path, entries: Entries, semiring: Semiring) -> Array:
    shape, rows, cols, weights = entries
    algebra = semiring.over(dtype_of(weights.dtype))
    if rows.size and (rows.min() < 0 or cols.min() < 0 or rows.max() >= shape[0] or cols.max() >= shape[1]):
        raise FileError(f"{path} lists an entry outside its {shape[0]}×{shape[1]} matrix")
    try:
        W = np.full(shape, algebra.zero, algebra.partial.numpy)
    except MemoryError:
        raise OutOfMemoryError(f"{path} is {shape[0]}×{shape[1]}: too large for a dense closure here") from None
    values = weights != 0 if algebra.partial.kind == "b" else weights.astype(W.dtype)
    order = np.lexsort((cols, rows))
    rows, cols, values = rows[order], cols[order], values[order]
    again = np.zeros(len(rows), bool)
    again[1:] = (rows[1:] == rows[:-1]) & (cols[1:] == cols[:-1])
    W[rows[~again], cols[~again]] = values[~again]
    for row, col, value in zip(rows[again], cols[again], values[again], strict=True):
        W[row, col] = algebra.add(W[row, col, None], value[None])[0]
    return W


def _sparse_npz(path: Path) -> Entries:
    try:
        with np.load(path, allow_pickle=False) as archive:
            kind = archive["format"].item()
            kind = kind.decode() if isinstance(kind, bytes) else str(kind)
            rows, cols = (int(extent) for extent in archive["shape"])
            data = archive["data"]
            if kind == "coo":
                return (rows, cols), archive["row"].astype(np.int64), archive["col"].astype(np.int64), data
            if kind in ("csr", "csc"):
                counts, inner = np.diff(archive["indptr"]), archive["indices"].astype(np.int64)
                outer = np.repeat(np.arange(len(counts)), counts)
                return (rows, cols), *((outer, inner) if kind == "csr" else (inner, outer)), data
    except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
        raise FileError(f"{path} is no sparse matrix as scipy.sparse.save_npz writes it: {error}") from None
    raise FileError(f"{path} holds a sparse matrix of format {kind!r}: save it as csr, csc or coo")


def _matrix_market(path: Path) -> Entries:
    try:
        lines = iter(path.read_text(encoding="utf-8", errors="replace").splitlines())
        header = next(lines).lower().split()
        layout, field, symmetry = header[2:5]
        body = [line for line in lines if line.strip() and not line.startswith("%")]
        size = [int(x) for x in body[0].split()]
        if (
            header[1] != "matrix"
            or layout not in ("coordinate", "array")
            or field not in ("real", "integer", "pattern")
        ):
            raise FileError(
                f"{path}: Matrix Market '{' '.join(header[1:])}' is not known; real, integer and pattern are"
            )
        table = np.array([line.split() for line in body[1:]])
        number = np.int64 if field == "integer" else np.float64
        if layout == "array":
            full = table.astype(number).reshape(size[1], size[0]).T
            rows, cols = np.indices(full.shape).reshape(2, -1)
            return (size[0], size[1]), rows, cols, full.ravel()
        if len(table) != size[2]:
            raise FileError(f"{path} promises {size[2]} entries and has {len(table)}: it is cut short or damaged")
        table = table.reshape(size[2], -1)
        rows, cols = (table[:, axis].astype(np.int64) - 1 for axis in (0, 1))
        weights = np.ones(len(table)) if field == "pattern" else table[:, 2].astype(number)
    except (StopIteration, ValueError, IndexError) as error:
        raise FileError(f"{path} is no Matrix Market file that can be read: {error}") from None
    if symmetry in ("symmetric", "skew-symmetric"):
        off = rows != cols
        turned = weights[off] if symmetry == "symmetric" else -weights[off]
        rows, cols = np.concatenate((rows, cols[off])), np.concatenate((cols, rows[off]))
        weights = np.concatenate((weights, turned))
    return (size[0], size[1]), rows, cols, weights
