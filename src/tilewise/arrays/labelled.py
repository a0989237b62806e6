"""Arrays with labels or units (pandas, xarray, …) are refused: their own classes align labels and multiply units, and a
product of plain numbers would give another result. So are lazy and sparse arrays that would have to be read whole."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.errors import UsageError
from tilewise.system.imported import imported

PLAIN_NUMBERS = ("dask", "cupy", "torch", "jax", "jaxlib")  # libraries whose arrays have no labels

LAZY = {"dask.array": ".compute()", "zarr": "[:]"}  # arrays that may be larger than memory, and how they are read


def as_host(x: Any, role: str) -> np.ndarray[Any, np.dtype[Any]]:
    """The array that NumPy makes of it; a UsageError where it makes none."""
    try:
        return np.asarray(x)
    except ValueError as error:
        raise UsageError(f"{role} cannot be read as an array: {error}") from None


def check_whole(array: Any, role: str) -> None:
    """A UsageError where `array` is sparse or lazy: nothing is loaded into memory implicitly."""
    for module, instead in LAZY.items():
        library = imported(module)
        if library is not None and isinstance(array, library.Array):
            name = module.partition(".")[0].capitalize()
            raise UsageError(f"{role} is a {name} array, which this would read whole: pass {role}{instead}")
    sparse = imported("scipy.sparse")
    if sparse is not None and sparse.issparse(array):
        raise UsageError(f"{role} is a scipy.sparse matrix, which this does not take: pass {role}.toarray()")


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
