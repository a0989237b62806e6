"""Matrix Market files: coordinates or a dense array, real, integer or pattern; read in pieces, so that missing, extra
or overlong lines are found before they take memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from tilewise.cli.npy import opened
from tilewise.errors import FileError
from tilewise.system.memory import check_room

Array = np.ndarray[Any, np.dtype[Any]]

LINE = 1024  # bytes of a line at most, as the format says
PIECE = 1 << 16  # lines read at a time
LARGEST = 1 << 40  # rows, columns or entries


def read_matrix_market(path: Path) -> tuple[tuple[int, int], Array, Array, Array]:
    """Shape, rows, columns and weights."""
    try:
        with opened(path) as file:
            return _read(path, file)
    except (ValueError, IndexError, OverflowError) as error:
        reason = str(error).splitlines()[0][:200]
        raise FileError(f"{path} is no Matrix Market file that can be read: {reason}") from None


def _read(path: Path, file: BinaryIO) -> tuple[tuple[int, int], Array, Array, Array]:
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
        raise ValueError("its line of sizes is not whole numbers: rows, columns and, of coordinates, entries")
    rows, cols = size[:2]
    number = np.int64 if field == "integer" else np.float64
    if layout == "array":
        return (rows, cols), *_dense(path, body, rows, cols, symmetry, number)
    wide = 2 if field == "pattern" else 3
    check_room(size[2] * 8 * wide * 4, f"{path}, {size[2]:,} entries,")
    table = _numbers(path, body, size[2], wide, number)
    at_rows, at_cols = (table[axis].astype(np.int64) - 1 for axis in (0, 1))
    weights = np.ones(size[2]) if field == "pattern" else table[2]
    return (rows, cols), *_both_halves(at_rows, at_cols, weights, symmetry)


def _dense(path: Path, body: Iterator[bytes], rows: int, cols: int, symmetry: str, number: Any) -> Any:
    """Column by column; of a symmetric matrix the lower half."""
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
    """The entries, and of a symmetric matrix those above the diagonal too."""
    if symmetry == "general":
        return rows, cols, weights
    off = rows != cols
    mirrored = weights[off] if symmetry == "symmetric" else -weights[off]
    return np.concatenate((rows, cols[off])), np.concatenate((cols, rows[off])), np.concatenate((weights, mirrored))


def _numbers(path: Path, body: Iterator[bytes], count: int, wide: int, number: Any) -> list[Array]:
    """`count` lines of `wide` numbers, the last of them a weight where there are 1 or 3."""
    kinds = [np.int64] * min(wide, 2) if wide > 1 else []
    made = [np.empty(count, kind) for kind in [*kinds, *([number] if wide != 2 else [])]]
    read = 0
    piece: list[list[bytes]] = []

    def take() -> None:
        nonlocal read
        for axis, column in enumerate(made):
            values = [fields[axis] for fields in piece]
            column[read : read + len(piece)] = np.array(values).astype(column.dtype) if values else []
        read += len(piece)
        piece.clear()

    for line in body:
        fields = line.split()
        if len(fields) < wide:
            raise ValueError(f"entry {read + len(piece) + 1} has {len(fields)} of {wide} numbers")
        if read + len(piece) >= count:
            raise FileError(f"{path} promises {count} entries and has more: it is damaged")
        piece.append(fields[:wide])
        if len(piece) == PIECE:
            take()
    take()
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
