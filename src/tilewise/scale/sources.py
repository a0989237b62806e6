"""Operands in the large memory, read panel by panel: host arrays, .npy files, Zarr arrays.

A .npy file is read, not mapped: mapped pages would count as this process's memory, and a bad disk would raise SIGBUS
instead of an exception. `read` fills given memory, is thread-safe, and its errors name the file.
"""

from __future__ import annotations

import io
import os
from bisect import bisect_right
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.lib.array_utils import byte_bounds

from tilewise.algebra.dtypes import DTYPES, Array, DType, dtype_of
from tilewise.arrays.extent import check_extent
from tilewise.arrays.numpy_library import NUMPY
from tilewise.core.shapes import written
from tilewise.errors import DtypeError, FileError, ShapeError, UsageError
from tilewise.scale.samples import checksum
from tilewise.system.files import fill, here
from tilewise.system.imported import imported
from tilewise.system.memory import release_mapped_pages
from tilewise.system.quantities import counted

HEADER = 64 * 1024  # largest header of a .npy file in bytes
BAND = 2 * 1024 * 1024  # bytes that are converted, checked or encoded at a time


class MatrixSource(Protocol):
    """A matrix that is read in pieces."""

    name: str
    shape: tuple[int, int]
    dtype: DType
    transposed: bool  # column-major: panels are kept in this order

    def read(self, rows: slice, cols: slice, out: Array) -> None:
        """Fill `out`, of this matrix's dtype, with a part of the matrix."""

    def identity(self) -> dict[str, Any]:
        """A fingerprint of the matrix: it differs if the matrix has changed."""

    def close(self) -> None:
        """Close its file, if it has one."""


def is_mapped(array: Any) -> bool:
    """Whether an array is in a shared file mapping, whose pages count for this process once they are touched."""
    while array is not None:
        if isinstance(array, np.memmap):
            return bool(array.mode != "c")
        array = getattr(array, "base", None)
    return False


def bands(other: Array, part: Array, mapped: bool) -> Iterator[tuple[Array, Array]]:
    """Matching bands of two matrices of one shape, in the memory order of `part`. If that is a mapped file, a band has
    at most BAND bytes of it, whose pages are released before the next."""
    if not mapped or not part.size:
        yield other, part
        return
    if abs(part.strides[0]) < abs(part.strides[1]):
        other, part = other.T, part.T
    step = max(1, BAND // max(1, abs(part.strides[0])))
    for top in range(0, len(part), step):
        band = part[top : top + step]
        yield other[top : top + step], band
        release_mapped_pages(*byte_bounds(band))


class ArraySource:
    """A NumPy array or memmap of the caller."""

    def __init__(self, array: Any, name: str) -> None:
        operand = NUMPY.operand(array, name)
        if len(operand.shape) != 2:
            axes = counted(len(operand.shape), "axis", "axes")
            raise ShapeError(f"{name} has {axes}: within a memory budget, operands are matrices")
        self.name, self.dtype, self.array = name, operand.dtype, operand.memory
        self.shape = (operand.shape[0], operand.shape[1])
        row, col = operand.strides
        self.transposed = abs(row) < abs(col) and self.shape[0] > 1
        self.mapped = is_mapped(self.array)

    def read(self, rows: slice, cols: slice, out: Array) -> None:
        part = self.array[rows, cols]
        check_extent(part, self.name)  # each time: a mapped file may be truncated
        bits = f"u{part.itemsize}" if part.itemsize in (1, 2, 4, 8) else part.dtype
        for place, band in bands(out, part, self.mapped):
            np.copyto(place.view(bits), band.view(bits))  # as bits: a copy of a foreign dtype would hold the GIL

    def identity(self) -> dict[str, Any]:
        return {"array": self.name, "shape": list(self.shape), "dtype": self.dtype.name}

    def close(self) -> None:
        pass


class NpyFile:
    """A .npy file of two axes, row- or column-major, of either byte order."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, str(path)
        self._file = -1
        try:
            if path.is_dir():
                raise FileError(f"{path} is a folder, not a .npy file")
            self._file = here().open(path)
        except FileNotFoundError:
            raise FileError(f"{path} does not exist") from None
        except FileError:
            raise
        except OSError as error:
            raise FileError(f"{path} cannot be read: {error.strerror or error}") from None
        try:
            self._read_header()
        except BaseException:
            self.close()
            raise

    def _read_header(self) -> None:
        path = self.path
        start = bytearray(HEADER)
        file = io.BytesIO(bytes(start[: fill(self._file, memoryview(start), 0)]))
        shape, fortran, dtype = npy_header(file, path)
        self.offset = file.tell()
        if len(shape) != 2:
            raise ShapeError(
                f"{path} holds an array of {counted(len(shape), 'axis', 'axes')}: multiply takes matrices, which have 2"
            )
        self.shape = (int(shape[0]), int(shape[1]))
        self.dtype = dtype_of(dtype)
        self.swapped = not dtype.isnative
        self.transposed = bool(fortran) and 1 not in shape
        self.file_bytes = os.fstat(self._file).st_size
        promised = self.offset + self.shape[0] * self.shape[1] * self.dtype.itemsize
        if self.file_bytes < promised:
            raise FileError(f"{path} is cut short: it has {self.file_bytes:,} of {promised:,} bytes")

    def read(self, rows: slice, cols: slice, out: Array) -> None:
        outer, inner, view = (cols, rows, out.T) if self.transposed else (rows, cols, out)
        length, item = self.shape[0 if self.transposed else 1], self.dtype.itemsize
        here = view.view(f"u{item}" if item <= 8 else view.dtype)
        straight = here.strides[1] == item or here.shape[1] <= 1
        wanted = (inner.stop - inner.start) * item
        if straight and inner.stop - inner.start == length and here.flags.c_contiguous:
            self._fill(here.reshape(-1).data.cast("B"), self.offset + outer.start * length * item)
        else:
            row = here if straight else np.empty((1, here.shape[1]), here.dtype)
            for number in range(outer.stop - outer.start):
                at = self.offset + ((outer.start + number) * length + inner.start) * item
                self._fill(row[number if straight else 0].data.cast("B")[:wanted], at)
                if not straight:
                    here[number] = row[0]
        if self.swapped:
            out.byteswap(inplace=True)

    def _fill(self, memory: memoryview, offset: int) -> None:
        try:
            done = fill(self._file, memory, offset)
        except OSError as error:
            raise FileError(f"{self.path} cannot be read from byte {offset:,} on: {error.strerror or error}") from None
        if done < len(memory):
            raise FileError(f"{self.path} ends at byte {offset + done:,}: it was cut short meanwhile")

    def identity(self) -> dict[str, Any]:
        """Size, mtime, ctime (which cannot be set back), and a checksum over samples."""
        about = os.fstat(self._file)
        sampled = checksum(lambda memory, place: fill(self._file, memory, place), about.st_size)
        changed = [about.st_mtime_ns, about.st_ctime_ns]
        return {"file": self.name, "bytes": about.st_size, "changed": changed, "sampled": sampled}

    def close(self) -> None:
        if self._file >= 0:
            here().close(self._file)
            self._file = -1


def npy_header(file: Any, path: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and dtype from the header of a .npy file; FileError or DtypeError if it is invalid. NumPy writes
    bfloat16 as the untyped V2."""
    read = {(1, 0): np.lib.format.read_array_header_1_0}
    try:
        version = np.lib.format.read_magic(file)
    except ValueError:
        raise FileError(f"{path} is not a .npy file: save it with numpy.save") from None
    try:
        shape, fortran, dtype = read.get(version, np.lib.format.read_array_header_2_0)(file)
        if dtype.hasobject:
            raise DtypeError(f"{path} holds Python objects, not numbers: save it with a numeric dtype")
        if any(isinstance(extent, bool) or extent < 0 for extent in shape):
            raise ValueError("an extent that is no count")  # NumPy accepts True here, and fails later
    except DtypeError:
        raise
    except Exception:  # NumPy evaluates the header as Python: a damaged one may raise anything
        raise FileError(f"{path} is damaged or cut short: its header cannot be read") from None
    return shape, fortran, DTYPES["bfloat16"].numpy if dtype == np.dtype("V2") else dtype


class ZarrSource:
    """A Zarr array, read and decoded one chunk at a time."""

    transposed = False

    def __init__(self, array: Any, name: str) -> None:
        if len(array.shape) != 2:
            raise ShapeError(
                f"{name} has {counted(len(array.shape), 'axis', 'axes')}: within a memory budget, operands are matrices"
            )
        self.array, self.name = array, name
        self.shape = (int(array.shape[0]), int(array.shape[1]))
        self.dtype = dtype_of(np.dtype(array.dtype))
        self.chunks = (int(array.chunks[0]), int(array.chunks[1]))

    @property
    def chunk_bytes(self) -> int:
        return self.chunks[0] * self.chunks[1] * self.dtype.itemsize

    def read(self, rows: slice, cols: slice, out: Array) -> None:
        for top, bottom in _cuts(rows, self.chunks[0]):
            for left, right in _cuts(cols, self.chunks[1]):
                try:
                    part = np.asarray(self.array[top:bottom, left:right])
                except Exception as error:  # stores, codecs and networks may raise anything
                    raise FileError(
                        f"{self.name} cannot be read: the chunk of rows {top} to {bottom - 1} and columns {left} to "
                        f"{right - 1} gave {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
                    ) from error
                if part.shape != (bottom - top, right - left) or part.dtype != self.dtype.numpy:
                    raise FileError(
                        f"{self.name} is damaged: the chunk of rows {top} to {bottom - 1} and columns {left} to "
                        f"{right - 1} came as {written(part.shape)} {part.dtype}"
                    )
                out[top - rows.start : bottom - rows.start, left - cols.start : right - cols.start] = part

    def identity(self) -> dict[str, Any]:
        known = {"zarr": self.name, "shape": list(self.shape), "dtype": self.dtype.name, "chunks": list(self.chunks)}
        root = _folder_of(self.array)
        if root is None:
            return known
        newest, files, starts, total = 0, [], [], 0
        for path in sorted(root.rglob("*")):
            if path.is_file():
                about = path.stat()
                newest = max(newest, about.st_mtime_ns, about.st_ctime_ns)
                files.append(path)
                starts.append(total)
                total += about.st_size
        sampled = checksum(partial(_read_among, files, starts), total)
        return known | {"changed": newest, "files": len(files), "bytes": total, "sampled": sampled}

    def close(self) -> None:
        pass  # Zarr keeps no file open


def _read_among(files: list[Path], starts: list[int], memory: memoryview, place: int) -> int:
    """Read at an offset of the concatenated files, up to the end of the file there."""
    at = bisect_right(starts, place) - 1
    if at < 0:
        return 0
    file = here().open(files[at])
    try:
        return fill(file, memory, place - starts[at])
    finally:
        here().close(file)


def _folder_of(array: Any) -> Path | None:
    """The local folder of a Zarr array, if it has one."""
    root = getattr(getattr(array, "store", None), "root", None)
    return Path(root) / str(array.path) if root is not None else None


def _cuts(part: slice, step: int) -> list[tuple[int, int]]:
    """A range split at chunk boundaries."""
    edges = [part.start, *range((part.start // step + 1) * step, part.stop, step), part.stop]
    return list(pairwise(edges)) if part.stop > part.start else []


def is_zarr(array: Any) -> bool:
    zarr = imported("zarr")  # a program with a Zarr array has imported it
    return zarr is not None and isinstance(array, zarr.Array)


def is_dask(array: Any) -> bool:
    dask = imported("dask.array")
    return dask is not None and isinstance(array, dask.Array)


def open_source(path: Path) -> NpyFile | ZarrSource:
    """A file or store named on the command line."""
    if path.suffix == ".zarr" or (path.is_dir() and any((path / f).exists() for f in ("zarr.json", ".zarray"))):
        return ZarrSource(open_zarr(path, "r"), str(path))
    return NpyFile(path)


def open_zarr(path: Path, mode: str, **how: Any) -> Any:
    """A Zarr array on disk, opened or (mode "w") created; errors name the path."""
    if mode != "w" and not path.exists():
        raise FileError(f"{path} does not exist")
    try:
        import zarr
    except ImportError:
        raise UsageError(f"{path} needs Zarr, which is not installed: pip install 'tilewise[dask]'") from None
    try:
        found = zarr.create_array(str(path), **how) if mode == "w" else zarr.open(str(path), mode=mode)
    except Exception as error:
        raise FileError(f"{path} cannot be opened as a Zarr array: {type(error).__name__}: {error}") from None
    if not hasattr(found, "chunks"):
        raise FileError(f"{path} is a Zarr group: name the array in it, for example {path}/M")
    return found
