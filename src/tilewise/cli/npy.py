"""Matrices in .npy files: read with every way it can fail named, written to a temporary name and renamed."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from tilewise.errors import DtypeError, FileError

Array = np.ndarray[Any, np.dtype[Any]]


def read_matrix(path: Path) -> Array:
    """The array of a .npy file; pickled objects are never loaded."""
    try:
        with path.open("rb") as file:
            magic = file.read(6)
            if magic[:2] == b"PK":
                raise FileError(f"{path} is an .npz archive: save the one array you mean with numpy.save")
            if magic != b"\x93NUMPY":
                raise FileError(f"{path} is not a .npy file: save it with numpy.save")
            file.seek(0)
            array = np.load(file, allow_pickle=False)
    except FileNotFoundError:
        raise FileError(f"{path} does not exist") from None
    except IsADirectoryError:
        raise FileError(f"{path} is a folder, not a .npy file") from None
    except PermissionError:
        raise FileError(f"{path} cannot be read: permission denied") from None
    except (ValueError, EOFError) as error:
        if "Object arrays" in str(error):
            raise DtypeError(f"{path} holds Python objects, not numbers: save it with a numeric dtype") from None
        raise FileError(f"{path} is damaged or cut short: {str(error).splitlines()[0]}") from None
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from None
    assert isinstance(array, np.ndarray)
    return array


def check_target(path: Path) -> None:
    """Refuse, before any work is done, a place where nothing can be written."""
    folder = path.parent
    if not folder.is_dir():
        raise FileError(f"the folder {folder} does not exist: make it first, or choose another place for {path.name}")
    if path.is_dir() and path.suffix != ".zarr":
        raise FileError(f"{path} is a folder: give the name of a file")
    if not os.access(folder, os.W_OK):
        raise FileError(f"the folder {folder} cannot be written: permission denied")


def write_matrix(path: Path, array: Array) -> None:
    """All or nothing: the file appears under its name only when it is whole."""
    check_target(path)
    name = ""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            np.save(file, array, allow_pickle=False)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            if name:
                os.unlink(name)
        if isinstance(error, OSError):
            raise FileError(f"{path} cannot be written: {error.strerror or error}") from None
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
