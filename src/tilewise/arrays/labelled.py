"""Arrays with labels or units (pandas, xarray, …): NumPy leaves a product of them to their own class, which aligns
labels and multiplies units. As plain numbers they would give another result, so they are refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.errors import UsageError

PLAIN_NUMBERS = ("dask", "cupy", "torch", "jax", "jaxlib")  # libraries whose arrays have no labels


def check_plain(array: Any, role: str) -> None:
    """A UsageError where the class of `array` overrides or forbids ufuncs."""
    kind = type(array)
    library = kind.__module__.partition(".")[0]
    if library in PLAIN_NUMBERS:
        return
    numpys = np.ndarray.__array_ufunc__
    if getattr(kind, "__array_ufunc__", numpys) is numpys:
        return
    instead = f"{role}.to_numpy()" if hasattr(kind, "to_numpy") else "a plain array of its values"
    raise UsageError(
        f"{role} is a {library}.{kind.__name__}, whose labels or units a product would not follow: pass {instead}"
    )
