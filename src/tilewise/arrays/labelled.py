"""Arrays that carry more than numbers (pandas, xarray, units): NumPy leaves a product of them to their own class, which
aligns labels and multiplies units. Read as plain numbers they would give other ones, so they are refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.errors import UsageError

MET_ELSEWHERE = ("dask", "cupy", "torch", "jax", "jaxlib")  # whose arrays hold numbers alone


def check_plain(array: Any, role: str) -> None:
    """A UsageError where the class of `array` has ufuncs of its own, or forbids them."""
    kind = type(array)
    library = kind.__module__.partition(".")[0]
    if library in MET_ELSEWHERE:
        return
    numpys = np.ndarray.__array_ufunc__
    if getattr(kind, "__array_ufunc__", numpys) is numpys:
        return
    instead = f"{role}.to_numpy()" if hasattr(kind, "to_numpy") else "a plain array of its values"
    raise UsageError(
        f"{role} is a {library}.{kind.__name__}, whose labels or units a product would not follow: pass {instead}"
    )
