"""Set the number of threads of NumPy's BLAS, so that peers have as many as our backend.

OPENBLAS_NUM_THREADS is read when NumPy is imported, before a suite knows the number; so OpenBLAS's own function is
called, found through the extension module that links it.
"""

from __future__ import annotations

import ctypes
import importlib

NAMES = ("scipy_openblas_{}64_", "openblas_{}64_", "scipy_openblas_{}", "openblas_{}")


def set_blas_threads(threads: int) -> bool:
    """Set it; False if NumPy's BLAS is not OpenBLAS or did not accept the number."""
    change, read = _function("set_num_threads"), _function("get_num_threads")
    if change is None or read is None:
        return False
    change(ctypes.c_int(threads))
    return bool(read() == threads)


def _function(name: str) -> ctypes._NamedFuncPointer | None:
    library = ctypes.CDLL(importlib.import_module("numpy._core._multiarray_umath").__file__)
    found = (getattr(library, form.format(name), None) for form in NAMES)
    return next((function for function in found if function is not None), None)
