"""Prepared calls of small products modulo p."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import Array, DType, dtype_of
from tilewise.backends.cpu.kernels.modular.text import FEW, LANES, RECORD, modular_module
from tilewise.backends.cpu.runtime import compile
from tilewise.backends.cpu.runtime.target import host_target
from tilewise.system.builtin_call import builtin


@lru_cache(maxsize=256)
def _compiled(m: DType, n: DType, result: DType) -> Callable[..., int]:
    text = modular_module(m, n, result)
    address = compile.load(text, host_target())["multiply"]
    return builtin(address, "wooo", returns=False, keeps_gil=True)


class FewModulo:
    """M · N modulo p for small matrices with these layouts, in the operands' common dtype."""

    __slots__ = ("_dtypes", "_fields", "_multiply", "_record", "_result", "_shape", "tick")

    def __init__(self, M: Array, N: Array, p: int, result: np.dtype[Any]) -> None:
        strides = [stride // x.itemsize for x in (M, N) for stride in x.strides]
        self._fields = (ctypes.c_int64 * len(RECORD))(*M.shape, N.shape[1], *strides, p)
        self._record, self._shape, self._result = ctypes.addressof(self._fields), (M.shape[0], N.shape[1]), result
        self._multiply = _compiled(*map(dtype_of, (M.dtype, N.dtype, result)))
        self._dtypes = M.dtype, N.dtype  # kept alive: a signature may contain their addresses

    def __call__(self, M: Array, N: Array, _: Any = None) -> Array:
        P = np.empty(self._shape, self._result)
        self._multiply(self._record, M, N, P)
        return P


def few_modulo(M: Array, N: Array, p: int, result: np.dtype[Any]) -> FewModulo | None:
    """A prepared call for such matrices; None where they are large or misaligned, or their sums could exceed 2⁶⁴."""
    if M.ndim != 2 or N.ndim != 2 or not (M.size and N.size):
        return None
    (m, k), n = M.shape, N.shape[1]
    if k != N.shape[0] or k * (p - 1) ** 2 >= 1 << 64 or max(m * k, k * -(-n // LANES) * LANES, m * n) > FEW:
        return None
    if not all(x.dtype.isnative and x.flags.aligned and not any(s % x.itemsize for s in x.strides) for x in (M, N)):
        return None
    return FewModulo(M, N, p, result)
