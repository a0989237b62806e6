"""Which library an array belongs to, among the frameworks that are already imported."""

from __future__ import annotations

from typing import Any

from tilewise.arrays.operand import Library
from tilewise.system.imported import imported

_known: dict[type, Library] = {}  # cache by class


def find_library(array: Any) -> Library:
    """The library of an array; lists and everything NumPy converts count as NumPy's."""
    known = _known.get(array.__class__)
    if known is None:
        known = _find(array)
        if array.__class__.__module__.partition(".")[0] in ("torch", "cupy", "numpy"):
            _known[array.__class__] = known
    return known


def _find(array: Any) -> Library:
    from tilewise.arrays.device_array import DEVICE_ARRAYS, DeviceArray
    from tilewise.arrays.numpy_library import NUMPY

    if isinstance(array, DeviceArray):
        return DEVICE_ARRAYS
    torch = imported("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        from tilewise.arrays.torch_library import TORCH

        return TORCH
    cupy = imported("cupy")
    if cupy is not None and isinstance(array, cupy.ndarray):
        from tilewise.arrays.cupy_library import CUPY

        return CUPY
    jax = imported("jax")
    if jax is not None and isinstance(array, jax.Array):
        from tilewise.arrays.jax_library import JAX

        return JAX
    import numpy as np

    if isinstance(array, np.ndarray | np.generic):
        return NUMPY
    # asks the class, because a quantity with a unit forwards the attributes of its values
    if hasattr(array, "__cuda_array_interface__") or hasattr(type(array), "__dlpack__"):
        from tilewise.arrays.exchange_library import exchange_library

        return exchange_library(array)
    return NUMPY
