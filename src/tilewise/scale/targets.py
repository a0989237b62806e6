"""Targets for the tiles of P: an array of the caller, a .npy file, a Zarr array.

Files are written under a temporary name (`system.output`), and renamed when they are complete. A tile is durable
when `sync` returns: only then may a journal record it.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
import threading
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tilewise.algebra.dtypes import Array, DType
from tilewise.core.shapes import written
from tilewise.errors import FileError, ShapeError
from tilewise.scale.sources import BAND, NpyFile, ZarrSource, bands, is_mapped, open_zarr
from tilewise.system.files import here, put
from tilewise.system.quantities import size


class MatrixTarget(Protocol):
    """A matrix that is written in tiles."""

    grain: tuple[int, int] | None  # tiles must be multiples of it

    def write(self, rows: slice, cols: slice, part: Array) -> None:
        """Write a part of P; `part` may be reused when this returns."""

    def sync(self) -> None:
        """Return when everything written so far is durable."""


class ArrayTarget:
    """An array in memory, or a memmap of the caller."""

    grain: tuple[int, int] | None = None

    def __init__(self, array: Array) -> None:
        self.array, self.mapped = array, is_mapped(array)

    def write(self, rows: slice, cols: slice, part: Array) -> None:
        bits = self.array.dtype == part.dtype and part.itemsize in (1, 2, 4, 8)
        for source, place in bands(part, self.array[rows, cols], self.mapped):
            if bits:
                np.copyto(place.view(f"u{place.itemsize}"), source.view(f"u{part.itemsize}"))
            else:
                with np.errstate(all="ignore"):
                    np.copyto(place, source, casting="same_kind")

    def sync(self) -> None:
        if isinstance(self.array, np.memmap):
            self.array.flush()


class NpyTarget:
    """A .npy file, written as `part`; `read` reads back what was written."""

    grain: tuple[int, int] | None = None

    def __init__(self, path: Path, part: Path, shape: tuple[int, int], dtype: DType) -> None:
        self.path, self.part = path, part
        self.shape, self.dtype = shape, dtype
        self._file = -1

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_file": -1}  # the receiver opens the file again

    def begin(self) -> None:
        """Create the file with its full size, so that a disk that is too small fails now."""
        header = io.BytesIO()
        known = {"descr": np.lib.format.dtype_to_descr(self.dtype.numpy), "fortran_order": False, "shape": self.shape}
        np.lib.format.write_array_header_1_0(header, known)
        self._offset = len(header.getvalue())
        with disk(self.path):
            here().remove(self.part)
            self._file = here().create(self.part)
            put(self._file, memoryview(header.getvalue()), 0)
            here().reserve(self._file, self._offset + self.shape[0] * self.shape[1] * self.dtype.itemsize)
            here().sync(self._file)
            here().sync_folder(self.part.parent)

    def resume(self) -> None:
        """Open the existing file."""
        with contextlib.closing(NpyFile(self.part)) as found:
            if found.shape != self.shape or found.dtype != self.dtype or found.transposed or found.swapped:
                raise FileError(f"{self.part} is not the beginning of {self.path}")
            self._offset = found.offset
        with disk(self.path):
            self._file = here().reopen(self.part)

    def write(self, rows: slice, cols: slice, part: Array) -> None:
        item, width = self.dtype.itemsize, self.shape[1]
        bits = np.ascontiguousarray(part).view(np.uint8)
        whole = cols.stop - cols.start == width
        with disk(self.path):
            if whole:
                put(self._file, bits.reshape(-1).data, self._offset + rows.start * width * item)
                return
            for number in range(rows.stop - rows.start):
                at = self._offset + ((rows.start + number) * width + cols.start) * item
                put(self._file, bits[number].data, at)

    def read(self, rows: slice, cols: slice, out: Array) -> None:
        with contextlib.closing(NpyFile(self.part)) as found:
            found.read(rows, cols, out)

    def sync(self) -> None:
        with disk(self.path):
            here().sync(self._file)

    def complete(self) -> None:
        """Sync and close, before the file is renamed."""
        self.sync()
        self.close()

    def close(self) -> None:
        if self._file >= 0:
            here().close(self._file)
            self._file = -1


class ZarrTarget:
    """A Zarr array, written as `part`. Tiles consist of whole chunks, so a chunk is written once."""

    def __init__(self, path: Path, part: Path, shape: tuple[int, int], dtype: DType, chunk: int = 1024) -> None:
        self.path, self.part = path, part
        self.shape, self.dtype = shape, dtype
        self.grain: tuple[int, int] | None = (max(1, min(chunk, shape[0])), max(1, min(chunk, shape[1])))
        self._array: Any = None
        self._written: set[str] = set()  # keys of chunks that are not synced yet
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_array": None, "_turn": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def begin(self) -> None:
        assert self.grain is not None
        if self.part.exists():
            shutil.rmtree(self.part)
        self._array = open_zarr(self.part, "w", shape=self.shape, dtype=self.dtype.numpy, chunks=self.grain)
        with disk(self.path):
            sync_tree(self.part)
            here().sync_folder(self.part.parent)

    def resume(self) -> None:
        found = open_zarr(self.part, "r+")
        if tuple(found.shape) != self.shape or tuple(found.chunks) != self.grain or found.dtype != self.dtype.numpy:
            raise FileError(f"{self.part} is not the beginning of {self.path}")
        self._array = found

    def write(self, rows: slice, cols: slice, part: Array) -> None:
        _put_chunks(self._array, rows, cols, part, str(self.path))
        (tall, wide), named = self._array.chunks, self._array.metadata.encode_chunk_key
        with self._lock:
            for i in range(rows.start // tall, -(-rows.stop // tall)):
                self._written.update(named((i, j)) for j in range(cols.start // wide, -(-cols.stop // wide)))

    def read(self, rows: slice, cols: slice, out: Array) -> None:
        ZarrSource(self._array or open_zarr(self.part, "r"), str(self.part)).read(rows, cols, out)

    def sync(self) -> None:
        """Zarr keeps no file open: the written chunks and their folders are synced by name."""
        with self._lock:
            written, self._written = self._written, set()
        with disk(self.path):
            folders: set[Path] = set()
            for key in written:
                path = self.part / key
                if path.exists():  # a chunk of fill values is not stored
                    _sync_file(path)
                    folders.update(folder for folder in path.parents if self.part in (folder, *folder.parents))
            for folder in sorted(folders, reverse=True):
                here().sync_folder(folder)

    def complete(self) -> None:
        with disk(self.path):
            sync_tree(self.part)
        self.close()

    def close(self) -> None:
        self._array = None


def sync_tree(root: Path) -> None:
    """Sync every file and folder of a store."""
    for folder, _, names in os.walk(root, topdown=False):
        for name in names:
            _sync_file(Path(folder) / name)
        here().sync_folder(Path(folder))


def _sync_file(path: Path) -> None:
    file = here().reopen(path)
    try:
        here().sync(file)
    finally:
        here().close(file)


class ZarrArrayTarget:
    """A Zarr array of the caller."""

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
    """Write a band of rows at a time, because Zarr copies what it encodes."""
    step = max(1, BAND // max(1, part.shape[1] * part.itemsize) // array.chunks[0]) * array.chunks[0]
    for top in range(0, part.shape[0], step):
        band = part[top : top + step]
        try:
            array[rows.start + top : rows.start + top + len(band), cols] = band
        except OSError as error:
            raise no_room(name, error) from None
        except Exception as error:
            raise FileError(f"{name} cannot be written: {type(error).__name__}: {error}") from None


def no_room(name: object, error: OSError) -> FileError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        free = ""
        with contextlib.suppress(OSError):
            free = f" ({size(shutil.disk_usage(Path(str(name)).parent).free)} free)"
        return FileError(f"the disk of {name} is full{free}: make room and run it again")
    return FileError(f"{name} cannot be written: {error.strerror or error}")


@contextlib.contextmanager
def disk(name: Path) -> Any:
    try:
        yield
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise no_room(name, error) from None
