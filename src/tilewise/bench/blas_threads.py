"""Hold the BLAS inside NumPy to a number of threads: a peer with two against our one would be measured unfairly.

OPENBLAS_NUM_THREADS is read when NumPy is imported, which is before any suite knows how many it wants; so the library
is asked by its own function, found through the extension module that links it.
"""

from __future__ import annotations

import ctypes
import importlib

NAMES = ("scipy_openblas_{}64_", "openblas_{}64_", "scipy_openblas_{}", "openblas_{}")


def hold(threads: int) -> bool:
    """Whether NumPy's BLAS now takes so many threads; not where it is another than OpenBLAS, which has no such word."""
    change, ask = _function("set_num_threads"), _function("get_num_threads")
    if change is None or ask is None:
        return False
    change(ctypes.c_int(threads))
    return bool(ask() == threads)


def _function(word: str) -> ctypes._NamedFuncPointer | None:
    library = ctypes.CDLL(importlib.import_module("numpy._core._multiarray_umath").__file__)
    found = (getattr(library, name.format(word), None) for name in NAMES)
    return next((function for function in found if function is not None), None)
