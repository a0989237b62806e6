"""Axes of any library's array permuted, merged and broadcast, as views wherever strides allow it."""

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
    """An array as it is, anything else as NumPy reads it. `sparse`: whether scipy.sparse and Zarr are taken,
    which have no views."""
    check_plain(x, role)
    dask = imported("dask.array")
    if not sparse and not (dask is not None and isinstance(x, dask.Array)):
        check_whole(x, role)
    return x if hasattr(x, "shape") and hasattr(x, "dtype") else as_host(x, role)


def dtype_of_array(x: Any) -> DType:
    """The dtype of any library's array, which may be one that is being traced."""
    return dtype_of(x.dtype) if type(x) is np.ndarray else dtype_given(x.dtype)


def _module_of(x: Any) -> Any:
    """Where the functions of its library are, by NumPy's names."""
    kind = type(x).__module__
    return next((sys.modules[name] for start, name in MODULES.items() if kind.startswith(start)), np)


def permuted(x: Any, axes: Sequence[int]) -> Any:
    """Its axes in another order."""
    if list(axes) == list(range(x.ndim)):
        return x
    return x.permute(*axes) if hasattr(x, "permute") else x.transpose(tuple(axes))


def diagonal(x: Any, first: int, second: int) -> Any:
    """The diagonal of two axes, as the last axis."""
    return x.diagonal(0, first, second) if hasattr(x, "diagonal") else _module_of(x).diagonal(x, 0, first, second)


def reshaped(x: Any, shape: Sequence[int]) -> Any:
    return x if tuple(x.shape) == tuple(shape) else x.reshape(tuple(shape))


def repeated(x: Any, shape: Sequence[int]) -> Any:
    """Broadcast, with strides of 0."""
    if tuple(x.shape) == tuple(shape):
        return x
    if hasattr(x, "expand"):
        return x.expand(*shape)
    return _module_of(x).broadcast_to(x, tuple(shape))


def filled(like: Any, shape: Sequence[int], value: Any) -> Any:
    """A new array of the same library, dtype and device."""
    if hasattr(like, "new_full"):
        return like.new_full(tuple(shape), value)
    return brought(like, np.full(tuple(shape), value, like.dtype), "")


def brought(like: Any, host: np.ndarray[Any, np.dtype[Any]], dtype: str) -> Any:
    """A host array as one of the same library; `dtype` is its name, for torch, which does not know all of NumPy's."""
    if hasattr(like, "new_tensor"):
        torch = sys.modules["torch"]
        return like.new_tensor(host.tolist(), dtype=getattr(torch, dtype))
    return host if isinstance(like, np.ndarray) else _module_of(like).asarray(host)
