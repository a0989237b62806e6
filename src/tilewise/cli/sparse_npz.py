"""A sparse matrix as `scipy.sparse.save_npz` writes it: a zip of arrays, read only after their sizes are checked."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from tilewise.errors import FileError, TilewiseError
from tilewise.scale.sources import npy_header
from tilewise.system.memory import check_room

Array = np.ndarray[Any, np.dtype[Any]]

MEMBERS = ("format", "shape", "data", "row", "col", "indices", "indptr")


def read_sparse_npz(path: Path) -> tuple[tuple[int, int], Array, Array, Array]:
    """Shape, rows, columns and weights."""
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
                return (rows, cols), _whole(archive["row"]), _whole(archive["col"]), data
            if kind in ("csr", "csc"):
                counts, inner = np.diff(_whole(archive["indptr"])), _whole(archive["indices"])
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


def _whole(numbers: Array) -> Array:
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
