"""float64 to float32 for few numbers: suppressing NumPy's overflow warnings takes longer than the conversion."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import Array
from tilewise.backends.cpu.runtime import compile
from tilewise.backends.cpu.runtime.target import host_target
from tilewise.system.builtin_call import builtin
from tilewise.system.llvm_text import IRFunction, module

FEW = 4096  # numbers


def narrowing_module() -> str:
    """`narrow(count, X, Y)` of array objects whose numbers are contiguous."""
    f = IRFunction("narrow", "i64 count, ptr X, ptr Y", public=True)
    X, Y = f.data_of("X", "Y")
    with f.loop(0, "%count") as i:
        wide = f.load("double", f.at("double", X, i.index))
        narrow = f.op(f"fptrunc double {wide} to float")
        f.store("float", narrow, f.at("float", Y, i.index))
    return module([f])


@lru_cache(maxsize=1)
def _narrow() -> Callable[..., int]:
    address = compile.load(narrowing_module(), host_target())["narrow"]
    return builtin(address, "woo", returns=False, keeps_gil=True)


def narrowing_of(like: Array, dtype: np.dtype[Any]) -> Callable[[Array], Array]:
    """A conversion of arrays with the layout of `like` to a dtype, into fresh row-major memory."""
    few = like.dtype == np.float64 and dtype == np.float32 and 0 < like.size <= FEW
    if few and like.flags.c_contiguous:
        narrow, count, shape, empty = _narrow(), like.size, like.shape, np.empty

        def native(X: Array) -> Array:
            Y = empty(shape, dtype)
            narrow(count, X, Y)
            return Y

        return native

    def by_numpy(X: Array) -> Array:
        with np.errstate(all="ignore"):
            return X.astype(dtype, order="C")

    return by_numpy
