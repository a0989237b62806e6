"""Where the tiles of P go: an array of the caller, a .npy file, a Zarr array.

Files are made under another name, and take their own only when every tile is in them. A tile is durable when `sync`
returns: only then may a journal call it finished.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tilewise.algebra.dtypes import DType
from tilewise.errors import FileError, ShapeError
from tilewise.quantities import size
from tilewise.scale.sources import BAND, NpyFile, ZarrSource, open_zarr
from tilewise.shapes import written

Array = np.ndarray[Any, np.dtype[Any]]


class Target(Protocol):
    """A matrix that is written in tiles."""

    grain: tuple[int, int] | None  # tiles must come in multiples of it

    def write(self, rows: slice, cols: slice, part: Array) -> None:
        """Take a part of P; `part` may be reused as soon as this returns."""

    def sync(self) -> None:
        """Return when everything written so far would survive a crash."""


class ArrayTarget:
    """An array in memory, or a memmap of the caller."""

    grain: tuple[int, int] | None = None

    def __init__(self, array: Array) -> None:
        self.array = array

    def write(self, rows: slice, cols: slice, part: Array) -> None:
        place = self.array[rows, cols]
        if place.dtype == part.dtype and place.itemsize in (1, 2, 4, 8):
            np.copyto(place.view(f"u{place.itemsize}"), part.view(f"u{part.itemsize}"))
        else:
            with np.errstate(all="ignore"):
                np.copyto(place, part, casting="same_kind")

    def sync(self) -> None:
        if isinstance(self.array, np.memmap):
            self.array.flush()


class NpyTarget:
    """A .npy file that grows under a name of its own; `read` gives back what was written."""

    grain: tuple[int, int] | None = None

    def __init__(self, path: Path, shape: tuple[int, int], dtype: DType) -> None:
        self.path, self.part = path, path.resolve().with_name(f".{path.name}.part")
        self.shape, self.dtype = shape, dtype
        self._file = -1

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_file": -1}  # who is sent it opens the file anew

    def begin(self) -> None:
        """A fresh file of the whole size: a disk that is too small says so now, and not at the last tile."""
        item = self.dtype.itemsize
        try:
            with self.part.open("wb") as file:
                header = {"descr": np.lib.format.dtype_to_descr(self.dtype.numpy), "fortran_order": False}
                np.lib.format.write_array_header_1_0(file, header | {"shape": self.shape})
                offset = file.tell()
                file.flush()
                with _disk(self.path):
                    _reserve(file.fileno(), offset + self.shape[0] * self.shape[1] * item)
                os.fsync(file.fileno())
        except FileError:
            self.discard()
            raise
        except OSError as error:
            raise FileError(f"{self.part} cannot be written: {error.strerror or error}") from None
        self.resume()

    def resume(self) -> None:
        """Go on with the file that is there."""
        found = NpyFile(self.part)
        try:
            if found.shape != self.shape or found.dtype != self.dtype:
                raise FileError(f"{self.part} is not the beginning of {self.path}: remove it, or pass --restart")
            self._offset = found.offset
        finally:
            found.close()
        self._file = os.open(self.part, os.O_RDWR)

    def write(self, rows: slice, cols: slice, part: Array) -> None:
        item, width = self.dtype.itemsize, self.shape[1]
        bits = np.ascontiguousarray(part).view(np.uint8)
        whole = cols.stop - cols.start == width
        with _disk(self.path):
            if whole:
                _put(self._file, bits.reshape(-1).data, self._offset + rows.start * width * item)
                return
            for number in range(rows.stop - rows.start):
                at = self._offset + ((rows.start + number) * width + cols.start) * item
                _put(self._file, bits[number].data, at)

    def read(self, rows: slice, cols: slice, out: Array) -> None:
        found = NpyFile(self.part)
        try:
            found.read(rows, cols, out)
        finally:
            found.close()

    def sync(self) -> None:
        with _disk(self.path):
            os.fdatasync(self._file) if hasattr(os, "fdatasync") else os.fsync(self._file)

    def finish(self) -> None:
        """Every tile is there: the file takes its name."""
        os.fsync(self._file)
        self.close()
        os.replace(self.part, self.path)
        sync_folder(self.path.parent)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def discard(self) -> None:
        self.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.part)


class ZarrTarget:
    """A Zarr array that grows under a name of its own. Tiles hold whole chunks, so a chunk is written once."""

    def __init__(self, path: Path, shape: tuple[int, int], dtype: DType, chunk: int = 1024) -> None:
        self.path, self.part = path, path.resolve().with_name(f".{path.name}.part")
        self.shape, self.dtype = shape, dtype
        self.grain: tuple[int, int] | None = (max(1, min(chunk, shape[0])), max(1, min(chunk, shape[1])))
        self._array: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_array": None}

    def begin(self) -> None:
        assert self.grain is not None
        self.discard()
        self._array = open_zarr(self.part, "w", shape=self.shape, dtype=self.dtype.numpy, chunks=self.grain)

    def resume(self) -> None:
        self._array = open_zarr(self.part, "r+")
        if tuple(self._array.shape) != self.shape or tuple(self._array.chunks) != self.grain:
            raise FileError(f"{self.part} is not the beginning of {self.path}: remove it, or pass --restart")

    def write(self, rows: slice, cols: slice, part: Array) -> None:
        _put_chunks(self._array, rows, cols, part, str(self.path))

    def read(self, rows: slice, cols: slice, out: Array) -> None:
        ZarrSource(self._array, str(self.part)).read(rows, cols, out)

    def sync(self) -> None:
        """Zarr keeps no file open: what it wrote is brought to the disk with everything else."""
        os.sync() if hasattr(os, "sync") else None

    def finish(self) -> None:
        self.sync()
        old = self.path.with_name(f".{self.path.name}.old")
        if self.path.exists():
            os.replace(self.path, old)
        os.replace(self.part, self.path)
        sync_folder(self.path.parent)
        if old.exists():
            shutil.rmtree(old)

    def close(self) -> None:
        self._array = None

    def discard(self) -> None:
        if self.part.exists():
            shutil.rmtree(self.part)


class ZarrArrayTarget:
    """A Zarr array of the caller's."""

    def __init__(self, array: Any, shape: tuple[int, int], dtype: DType) -> None:
        if tuple(array.shape) != shape:
            raise ShapeError(f"out is {written(tuple(array.shape))}, but the product is {written(shape)}")
        if np.dtype(array.dtype) != dtype.numpy:
            raise ShapeError(f"out has dtype {array.dtype}, but the product has {dtype}: make the store of {dtype}")
        if getattr(array, "read_only", False):
            raise FileError("out is a Zarr array opened read-only: open it with mode='r+'")
        self.array = array
        self.grain: tuple[int, int] | None = (int(array.chunks[0]), int(array.chunks[1]))

    def write(self, rows: slice, cols: slice, part: Array) -> None:
        _put_chunks(self.array, rows, cols, part, "out")

    def sync(self) -> None:
        pass


def _put_chunks(array: Any, rows: slice, cols: slice, part: Array, name: str) -> None:
    """A band of rows at a time: Zarr copies what it encodes."""
    step = max(1, BAND // max(1, part.shape[1] * part.itemsize) // array.chunks[0]) * array.chunks[0]
    for top in range(0, part.shape[0], step):
        band = part[top : top + step]
        try:
            array[rows.start + top : rows.start + top + len(band), cols] = band
        except OSError as error:
            raise _no_room(name, error) from None
        except Exception as error:
            raise FileError(f"{name} cannot be written: {type(error).__name__}: {error}") from None


def _put(file: int, memory: memoryview, offset: int) -> None:
    done = 0
    while done < len(memory):
        done += os.pwrite(file, memory[done:], offset + done)


def _reserve(file: int, count: int) -> None:
    if hasattr(os, "posix_fallocate") and count:
        try:
            os.posix_fallocate(file, 0, count)
            return
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                raise
    os.ftruncate(file, count)


def _no_room(name: object, error: OSError) -> FileError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        free = ""
        with contextlib.suppress(OSError):
            free = f" ({size(shutil.disk_usage(Path(str(name)).parent).free)} free)"
        return FileError(f"the disk of {name} is full{free}: make room and run it again; finished tiles are kept")
    return FileError(f"{name} cannot be written: {error.strerror or error}; finished tiles are kept")


@contextlib.contextmanager
def _disk(name: Path) -> Any:
    try:
        yield
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise _no_room(name, error) from None


def sync_folder(folder: Path) -> None:
    """A rename is durable when its folder is."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
