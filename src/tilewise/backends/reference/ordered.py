"""The definition of `reproducible="everywhere"`: what every kernel with that order of sums is held against.

A sum of products is cut into chains of CHAIN consecutive k. A chain starts from +0 and is one fused multiply-add after
the other, in the order of k; chains are added in order, onto what P holds with accumulate=. Halves are widened first
and rounded once, at the end. A min or max needs no order; its zeros are +0. NaN has one bit pattern.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import math
import sys
from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import Array
from tilewise.core.reproducible import CHAIN


def ordered_product(M: Array, N: Array, sums: Any, start: Array | None) -> Array:
    """M·N in the dtype of `sums`; `start`: what P holds, where the product is added onto it."""
    x, y = M.astype(sums), N.astype(sums)
    total = None if start is None else start.astype(sums)
    for begin in range(0, x.shape[1], CHAIN):
        chain = np.zeros((x.shape[0], y.shape[1]), sums)
        for k in range(begin, min(begin + CHAIN, x.shape[1])):
            chain = multiply_add(x[:, k, None], y[None, k, :], chain)
        total = chain if total is None else total + chain
    return canonical(np.zeros((x.shape[0], y.shape[1]), sums) if total is None else total)


def canonical(x: Array) -> Array:
    """The same numbers with one bit pattern for NaN, in each part of complex ones."""
    if x.dtype.kind == "c":
        made = np.empty_like(x)
        made.real, made.imag = canonical(x.real), canonical(x.imag)
        return made
    return np.where(np.isnan(x), x.dtype.type(np.nan), x)


def multiply_add(x: Array, y: Array, c: Array) -> Array:
    """x·y + c, rounded once. Complex: the real part takes x.real·y.real, then −x.imag·y.imag; the imaginary part
    x.real·y.imag, then x.imag·y.real."""
    if c.dtype.kind == "c":
        made = np.empty_like(c)
        made.real = multiply_add(-x.imag, y.imag, multiply_add(x.real, y.real, c.real))
        made.imag = multiply_add(x.imag, y.real, multiply_add(x.real, y.imag, c.imag))
        return made
    if c.dtype == np.float32:
        return _single(x.astype(np.float64) * y.astype(np.float64), c.astype(np.float64))
    return np.asarray(np.frompyfunc(_double(), 3, 1)(x, y, c)).astype(np.float64)


def _single(product: Array, c: Array) -> Array:
    """product + c in float32; the product is exact. The sum is rounded to odd in float64 first, which has more than
    twice as many bits, so that rounding it again is the same as rounding once."""
    rounded = product + c
    other = rounded - product
    error = (product - (rounded - other)) + (c - other)
    bits = rounded.view(np.int64)
    even = np.isfinite(error) & (error != 0) & (bits & 1 == 0)
    away = np.where((error > 0) == (rounded > 0), 1, -1)
    odd: Array = (bits + np.where(even, away, 0)).view(np.float64)
    return odd.astype(np.float32)


@lru_cache(maxsize=1)
def _double() -> Any:
    """The fused multiply-add of C, or of Python from 3.13 on."""
    if hasattr(math, "fma"):
        return math.fma
    library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else ctypes.util.find_library("m"))
    function = library.fma
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * 3
    return function
