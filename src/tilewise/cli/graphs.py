"""Graphs from files: dense .npy, sparse .npz of SciPy, Matrix Market; sizes are checked before anything takes memory.

Matrix Market files (coordinates or a dense array, real, integer or pattern) are read in pieces, so that missing, extra
or overlong lines are found in time. Of an .npz, a zip of arrays, the headers are read first.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from tilewise.algebra.dtypes import Array, dtype_of
from tilewise.algebra.semiring import Semiring
from tilewise.cli.npy import opened, read_matrix
from tilewise.errors import FileError, TilewiseError, TooLargeError
from tilewise.scale.sources import npy_header
from tilewise.system.memory import check_room

Entries = tuple[tuple[int, int], Array, Array, Array]  # shape, rows, columns, weights

LINE = 1024  # longest line in bytes, by the Matrix Market format
PIECE = 1 << 16  # lines read at a time
LARGEST = 1 << 40  # rows, columns or entries
MEMBERS = ("format", "shape", "data", "row", "col", "indices", "indptr")  # of an .npz


def read_graph(path: Path, semiring: Semiring) -> Array:
    """The dense weights of a graph file; FileError if its format is unknown."""
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
    repeated = np.zeros(len(rows), bool)
    repeated[1:] = (rows[1:] == rows[:-1]) & (cols[1:] == cols[:-1])
    W[rows[~repeated], cols[~repeated]] = values[~repeated]
    for row, col, value in zip(rows[repeated], cols[repeated], values[repeated], strict=True):
        W[row, col] = algebra.add(W[row, col, None], value[None])[0]
    return W


def read_matrix_market(path: Path) -> Entries:
    try:
        with opened(path) as file:
            return _read(path, file)
    except (ValueError, IndexError, OverflowError) as error:
        reason = str(error).splitlines()[0][:200]
        raise FileError(f"{path} is no Matrix Market file that can be read: {reason}") from None


def _read(path: Path, file: BinaryIO) -> Entries:
    text = _each_line(file)
    header = next(text, b"").decode("latin-1").lower().split()
    if len(header) < 5 or header[1] != "matrix" or header[2] not in ("coordinate", "array"):
        raise ValueError("its first line is not '%%MatrixMarket matrix coordinate|array …'")
    layout, field, symmetry = header[2:5]
    if field not in ("real", "integer", "pattern") or (layout, field) == ("array", "pattern"):
        raise FileError(f"{path}: Matrix Market '{' '.join(header[1:5])}' is not known; real, integer and pattern are")
    if symmetry not in ("general", "symmetric", "skew-symmetric"):
        raise FileError(f"{path}: Matrix Market symmetry {symmetry!r} is not known")
    body = (line for line in text if line.strip() and not line.startswith(b"%"))
    size = [int(x) for x in next(body, b"").split()]
    if len(size) != (3 if layout == "coordinate" else 2) or not all(0 <= x <= LARGEST for x in size):
        raise ValueError("its size line needs whole numbers: rows, columns and, for coordinates, entries")
    rows, cols = size[:2]
    number = np.int64 if field == "integer" else np.float64
    if layout == "array":
        return (rows, cols), *_dense_entries(path, body, rows, cols, symmetry, number)
    per_line = 2 if field == "pattern" else 3
    check_room(size[2] * 8 * per_line * 4, f"{path}, {size[2]:,} entries,")
    table = _numbers(path, body, size[2], per_line, number)
    at_rows, at_cols = (table[axis].astype(np.int64) - 1 for axis in (0, 1))
    weights = np.ones(size[2]) if field == "pattern" else table[2]
    return (rows, cols), *_both_halves(at_rows, at_cols, weights, symmetry)


def _dense_entries(path: Path, body: Iterator[bytes], rows: int, cols: int, symmetry: str, number: Any) -> Any:
    """Entries of a dense array: column by column, only the lower half if symmetric."""
    if symmetry == "general":
        check_room(rows * cols * 8 * 4, f"{path}, {rows}×{cols},")
        at_cols, at_rows = np.indices((cols, rows)).reshape(2, -1)
    else:
        if rows != cols:
            raise ValueError(f"a symmetric matrix of {rows}×{cols}")
        check_room(rows * cols * 8 * 8, f"{path}, {rows}×{cols},")
        at_cols, at_rows = np.triu_indices(rows, 1 if symmetry == "skew-symmetric" else 0)
    weights = _numbers(path, body, len(at_rows), 1, number)[0]
    return _both_halves(at_rows, at_cols, weights, symmetry)


def _both_halves(rows: Array, cols: Array, weights: Array, symmetry: str) -> tuple[Array, Array, Array]:
    """The entries, and their mirror images if the file holds the lower half only."""
    if symmetry == "general":
        return rows, cols, weights
    off = rows != cols
    mirrored = weights[off] if symmetry == "symmetric" else -weights[off]
    return np.concatenate((rows, cols[off])), np.concatenate((cols, rows[off])), np.concatenate((weights, mirrored))


def _numbers(path: Path, body: Iterator[bytes], count: int, per_line: int, number: Any) -> list[Array]:
    """`count` lines of `per_line` numbers as columns; with 1 or 3 numbers a line the last is the weight."""
    kinds = [np.int64] * min(per_line, 2) if per_line > 1 else []
    made = [np.empty(count, kind) for kind in [*kinds, *([number] if per_line != 2 else [])]]
    read = 0
    piece: list[list[bytes]] = []

    def store() -> None:
        nonlocal read
        for axis, column in enumerate(made):
            values = [fields[axis] for fields in piece]
            column[read : read + len(piece)] = np.array(values).astype(column.dtype) if values else []
        read += len(piece)
        piece.clear()

    for line in body:
        fields = line.split()
        if len(fields) < per_line:
            raise ValueError(f"entry {read + len(piece) + 1} has {len(fields)} of {per_line} numbers")
        if read + len(piece) >= count:
            raise FileError(f"{path} promises {count} entries and has more: it is damaged")
        piece.append(fields[:per_line])
        if len(piece) == PIECE:
            store()
    store()
    if read < count:
        raise FileError(f"{path} promises {count} entries and has {read}: it is cut short or damaged")
    return made


def _each_line(file: BinaryIO) -> Iterator[bytes]:
    while line := file.readline(LINE + 1):
        if len(line) > LINE and not line.startswith(b"%"):
            raise ValueError(f"a line is longer than {LINE} bytes")
        while not line.endswith(b"\n") and len(line) > LINE:  # a comment of any length
            rest = file.readline(LINE)
            if rest.endswith(b"\n") or not rest:
                break
        yield line


def read_sparse_npz(path: Path) -> Entries:
    try:
        _check_sizes(path)
        with np.load(path, allow_pickle=False) as archive:
            kind = archive["format"].item()
            kind = kind.decode() if isinstance(kind, bytes) else str(kind)
            rows, cols = (int(extent) for extent in archive["shape"])
            if rows < 0 or cols < 0:
                raise ValueError(f"its shape is {rows}×{cols}")
            data = archive["data"]
            if data.ndim != 1:
                raise ValueError(f"its data have {data.ndim} axes, not 1")
            if kind == "coo":
                return (rows, cols), _whole_numbers(archive["row"]), _whole_numbers(archive["col"]), data
            if kind in ("csr", "csc"):
                counts, inner = np.diff(_whole_numbers(archive["indptr"])), _whole_numbers(archive["indices"])
                if len(counts) != (rows if kind == "csr" else cols) or (counts < 0).any() or counts.sum() != len(inner):
                    raise ValueError("its indptr does not fit its indices")
                outer = np.repeat(np.arange(len(counts)), counts)
                return (rows, cols), *((outer, inner) if kind == "csr" else (inner, outer)), data
    except TilewiseError:
        raise
    except Exception as error:  # zipfile, zlib and NumPy raise whatever a damaged archive gives
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise FileError(f"{path} is no sparse matrix as scipy.sparse.save_npz writes it: {reason}") from None
    raise FileError(f"{path} holds a sparse matrix of format {kind!r}: save it as csr, csc or coo")


def _whole_numbers(numbers: Array) -> Array:
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise ValueError("its indices are no whole numbers")
    return numbers.astype(np.int64)


def _check_sizes(path: Path) -> None:
    """An archive of a few megabytes can declare gigabytes: headers are read first, and their sum is checked."""
    needs = 0
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if info.filename.removesuffix(".npy") not in MEMBERS:
                continue
            with archive.open(info) as member:
                shape, _, dtype = npy_header(member, path)
            declared = math.prod(shape) * dtype.itemsize
            if info.file_size < declared:
                raise ValueError(f"{info.filename} has {info.file_size:,} of {declared:,} bytes")
            needs += 4 * max(declared, info.file_size)  # read, converted to int64, sorted, and the copies of that
    check_room(needs, f"{path}, unpacked,")
