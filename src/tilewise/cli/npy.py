"""Matrices in .npy files: read with an error for each kind of damage, written to a temporary name and renamed."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from tilewise.algebra.dtypes import Array
from tilewise.errors import FileError, TilewiseError
from tilewise.scale.sources import npy_header
from tilewise.system.files import here
from tilewise.system.memory import check_room
from tilewise.system.output import Output


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A file open for reading; an OSError becomes a FileError."""
    try:
        with os.fdopen(here().open(path), "rb") as file:
            yield file
    except FileError:
        raise
    except FileNotFoundError:
        raise FileError(f"{path} does not exist") from None
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from None


def read_matrix(path: Path) -> Array:
    """The array of a .npy file; pickled objects are never loaded, and memory is checked before anything is read."""
    with opened(path) as file:
        magic = file.read(6)
        if magic[:2] == b"PK":
            raise FileError(f"{path} is an .npz archive: save the one array you mean with numpy.save")
        if magic != b"\x93NUMPY":
            raise FileError(f"{path} is not a .npy file: save it with numpy.save")
        try:
            file.seek(0)
            shape, _, dtype = npy_header(file, path)
            needs = math.prod(shape) * dtype.itemsize
            present = os.fstat(file.fileno()).st_size - file.tell()
            if present < needs:
                raise FileError(f"{path} is damaged or cut short: it has {present:,} of {needs:,} bytes of data")
            check_room(needs, str(path))
            file.seek(0)
            array = np.load(file, allow_pickle=False).view(dtype)
        except TilewiseError:
            raise
        except (ValueError, TypeError, OverflowError, EOFError, MemoryError) as error:
            raise FileError(f"{path} is damaged or cut short: {str(error).splitlines()[0]}") from None
    assert isinstance(array, np.ndarray)
    return array


@contextlib.contextmanager
def reserved(path: Path | None, kinds: tuple[str, ...] = (".npy",)) -> Iterator[Output | None]:
    """The output file, checked and locked before any work is done; None without a path."""
    if path is None:
        yield None
        return
    with Output(path, kinds) as place:
        yield place


def write_matrix(place: Output, array: Array) -> None:
    """Write the file under a temporary name, then rename it."""

    def save(file: int) -> None:
        with os.fdopen(os.dup(file), "wb") as stream:
            np.save(stream, array, allow_pickle=False)

    place.write_by(save)
