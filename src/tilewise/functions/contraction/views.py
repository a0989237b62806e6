"""Permute, merge and broadcast axes of any library's array, as views where strides allow it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import DType, dtype_given, dtype_of
from tilewise.arrays.labelled import as_host, check_plain, check_whole
from tilewise.system.imported import imported

MODULES = {"jax": "jax.numpy", "cupy": "cupy", "dask": "dask.array"}


def array_of(x: Any, role: str, sparse: bool = True) -> Any:
    """An array unchanged, anything else converted by NumPy. `sparse`: accept scipy.sparse and Zarr, which have no
    views."""
    if x.__class__ is np.ndarray:
        return x
    check_plain(x, role)
    dask = imported("dask.array")
    if not sparse and not (dask is not None and isinstance(x, dask.Array)):
        check_whole(x, role)
    return x if hasattr(x, "shape") and hasattr(x, "dtype") else as_host(x, role)


def dtype_of_array(x: Any) -> DType:
    """The dtype of any library's array, traced or not."""
    return dtype_of(x.dtype) if type(x) is np.ndarray else dtype_given(x.dtype)


def _module_of(x: Any) -> Any:
    """The module that has NumPy's functions for x's library."""
    kind = type(x).__module__
    return next((sys.modules[name] for start, name in MODULES.items() if kind.startswith(start)), np)


def permuted(x: Any, axes: Sequence[int]) -> Any:
    """x with its axes in another order."""
    if list(axes) == list(range(x.ndim)):
        return x
    return x.permute(*axes) if hasattr(x, "permute") else x.transpose(tuple(axes))


def diagonal(x: Any, first: int, second: int) -> Any:
    """The diagonal of two axes, as the last axis."""
    return x.diagonal(0, first, second) if hasattr(x, "diagonal") else _module_of(x).diagonal(x, 0, first, second)


def reshaped(x: Any, shape: Sequence[int]) -> Any:
    return x if tuple(x.shape) == tuple(shape) else x.reshape(tuple(shape))


def repeated(x: Any, shape: Sequence[int]) -> Any:
    """x broadcast to a shape, with strides of 0."""
    if tuple(x.shape) == tuple(shape):
        return x
    if hasattr(x, "expand"):
        return x.expand(*shape)
    return _module_of(x).broadcast_to(x, tuple(shape))


def filled(like: Any, shape: Sequence[int], value: Any) -> Any:
    """A new array of the same library, dtype and device."""
    if hasattr(like, "new_full"):
        return like.new_full(tuple(shape), value)
    return to_library_of(like, np.full(tuple(shape), value, like.dtype), "")


def to_library_of(like: Any, host: np.ndarray[Any, np.dtype[Any]], dtype: str) -> Any:
    """A host array in the library of `like`; `dtype`: its name, for torch, which lacks some of NumPy's dtypes."""
    if hasattr(like, "new_tensor"):
        torch = sys.modules["torch"]
        return like.new_tensor(host.tolist(), dtype=getattr(torch, dtype))
    return host if isinstance(like, np.ndarray) else _module_of(like).asarray(host)
