"""Arithmetic modulo p: products of host arrays are reduced as rarely as exactness allows.

Sums of k products below p² are whole numbers: in float64 they are exact up to 2⁵³, in 64-bit integers up to 2⁶⁴. So k
is split into parts that stay below, each a plus_times product; only their sums are reduced.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import Array, DType
from tilewise.algebra.semiring import Algebra, Semiring
from tilewise.errors import DtypeError, UsageError

BAND = 1 << 23  # elements reduced per NumPy call
EXACT = 1 << 53  # whole numbers that float64 holds
WIDE = 1 << 64
LARGEST = 1 << 31  # modulus


class Modular(Semiring):
    """Made by `modular(p)`."""

    modulus: int

    def over(self, dtype: DType) -> Algebra:
        if dtype.is_integer and (self.modulus - 1) ** 2 > dtype.largest():
            raise DtypeError(
                f"products modulo {self.modulus} leave the range of {dtype} before they are reduced: convert M and N "
                "to int64, or multiply NumPy arrays without out="
            )
        return super().over(dtype)


def modular(p: int) -> Semiring:
    """The semiring of whole numbers modulo p, for `semiring=`: GF(p) where p is a prime, GF(2) for p = 2.

    >>> A = np.array([[90, 7], [3, 95]])
    >>> tw.matmul(A, A, semiring=tw.modular(97))
    array([[70, 34],
           [70, 25]])
    """
    if isinstance(p, bool) or not isinstance(p, int) or not 2 <= p <= LARGEST:
        raise UsageError(f"p={p!r} must be a whole number from 2 to 2³¹")
    return _modular(p)


@lru_cache(maxsize=64)  # calls are written with `modular(p)` in them
def _modular(p: int) -> Semiring:
    made = object.__new__(Modular)
    object.__setattr__(made, "modulus", p)
    Semiring.__init__(made, f"modulo {p}", lambda x, y: (x + y) % p, lambda x, y: (x * y) % p, 0)
    return made


def takes(ring: Any, M: Any, N: Any) -> bool:
    """Whether sums are reduced lazily: for integer NumPy arrays."""
    return isinstance(ring, Modular) and all(type(x) is np.ndarray and x.dtype.kind in "iu" for x in (M, N))


def modular_dtype(M: Array, N: Array, p: int) -> np.dtype[Any]:
    """The dtype of a product modulo p: the operands' common one."""
    result = np.promote_types(M.dtype, N.dtype)
    if result.kind not in "iu":
        raise DtypeError(f"{M.dtype} and {N.dtype} have no whole numbers in common: convert one of the operands")
    if p - 1 > np.iinfo(result).max:
        raise DtypeError(f"{result} does not hold remainders up to {p - 1}: convert M and N")
    return result


class ModularProduct:
    """M · N modulo p for arrays of these dtypes and this k; cached under the call's signature."""

    __slots__ = (
        "_dtypes",
        "_matmul",
        "_modulus",
        "_narrow",
        "_p",
        "_part_length",
        "_result",
        "_sums",
        "_whole",
        "tick",
    )

    def __init__(self, M: Array, N: Array, p: int, matmul: Callable[..., Any]) -> None:
        result = modular_dtype(M, N, p)
        limit, sums = (EXACT, np.float64) if (p - 1) ** 2 < EXACT // 64 else (WIDE, np.uint64)
        self._part_length = max(1, (limit - p) // max(1, (p - 1) ** 2))
        self._p, self._result, self._sums, self._matmul = p, result, np.dtype(sums), matmul
        self._dtypes = M.dtype, N.dtype  # kept alive: a signature may contain their addresses
        fits = M.shape[-1] * (p - 1) ** 2 <= min(np.iinfo(result).max, 2**63 - 1)
        self._whole = result if fits else np.dtype(np.int64 if sums is np.float64 else np.uint64)
        self._modulus = self._whole.type(min(p, np.iinfo(self._whole).max))
        self._narrow = any(p > np.iinfo(x.dtype).max for x in (M, N))

    def __call__(self, M: Array, N: Array, _: Any = None) -> Any:
        if self._narrow:
            M, N = (x if self._p <= np.iinfo(x.dtype).max else x.astype(np.int64) for x in (M, N))
        left, right = (_by_bands(x, lambda x: (x % self._p).astype(self._sums)) for x in (M, N))
        k, part_length = M.shape[-1], self._part_length
        if k <= part_length:
            return self._reduced(self._matmul(left, right)).astype(self._result, copy=False)
        total: Any = 0
        for start in range(0, k, part_length):
            rows = right[start : start + part_length] if N.ndim == 1 else right[..., start : start + part_length, :]
            part = self._reduced(self._matmul(left[..., start : start + part_length], rows))
            total = (total + part) % part.dtype.type(self._p)
        return total.astype(self._result)

    def _reduced(self, sums: Any) -> Any:
        """Sums modulo p, as integers: their remainder is faster than that of floats."""
        return _by_bands(sums, lambda x: x.astype(self._whole, copy=False) % self._modulus)


def _by_bands(x: Any, function: Callable[[Any], Any]) -> Any:
    """function(x), some rows at a time where they are many: Ctrl-C is handled between two calls of NumPy."""
    if x.size <= BAND:
        return function(x)
    step = max(1, BAND * len(x) // x.size)
    return np.concatenate([function(x[at : at + step]) for at in range(0, len(x), step)])
