"""The dtypes, by name. Plans, JSON and every backend share these names."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, get_args

import numpy as np

from tilewise.algebra.names import DTypeName
from tilewise.errors import DtypeError

Array = np.ndarray[Any, np.dtype[Any]]  # of any dtype and number of axes


@dataclass(frozen=True, eq=False)
class DType:
    """One kind of number: name, kind (`b` bool, `i` signed, `u` unsigned, `f` real, `c` complex) and bytes.

    There is one instance per name, of unpickled ones too: comparing and hashing one, as every cache key has it, is
    object identity."""

    name: str
    kind: str
    itemsize: int

    def __reduce__(self) -> tuple[Any, ...]:
        return _instance, (self.name,)

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype; bfloat16 and the 8-bit floats come from ml_dtypes, imported only here, on first use."""
        if self.name == "bfloat16" or self.name in FLOAT8:
            import ml_dtypes

            found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, self.name))
            return found
        return np.dtype(self.name)

    @property
    def is_integer(self) -> bool:
        return self.kind in "iu"

    @property
    def partial(self) -> DType:
        """The accumulator's dtype: float32 for half precision, else the dtype itself."""
        return DTYPES["float32"] if self.name in ("float16", "bfloat16") else self

    def largest(self) -> int | float | bool:
        """The neutral element of min: +∞ for floats, MAX for integers, True for bool."""
        if self.kind == "b":
            return True
        return int(np.iinfo(self.numpy).max) if self.is_integer else float("inf")

    def smallest(self) -> int | float | bool:
        """The neutral element of max: −∞ for floats, MIN for integers, False for bool."""
        if self.kind == "b":
            return False
        return int(np.iinfo(self.numpy).min) if self.is_integer else float("-inf")

    def __str__(self) -> str:
        return self.name


def _number(name: str) -> DType:
    """The DType of a name; bfloat16, which NumPy lacks, without loading ml_dtypes."""
    if name == "bfloat16":
        return DType(name, "f", 2)
    known = np.dtype(name)
    return DType(name, known.kind, known.itemsize)


DTYPES: dict[str, DType] = {name: _number(name) for name in get_args(DTypeName)}


# Storage dtypes that have no accumulator: they are multiplied as float32, or as the dtype= of the call.
FLOAT8: dict[str, DType] = {name: DType(name, "f", 1) for name in ("float8_e4m3fn", "float8_e5m2")}


def _instance(name: str) -> DType:
    return FLOAT8[name] if name in FLOAT8 else DTYPES[name]


ABBREVIATIONS = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "fp64": "float64"}


@lru_cache(maxsize=256)
def dtype_of(dtype: np.dtype[Any]) -> DType:
    """The DType of a NumPy dtype of any byte order."""
    if dtype.char == "g":
        return DTYPES["longdouble"]
    if dtype.char == "G":
        return DTYPES["clongdouble"]
    found = DTYPES.get(dtype.name) or FLOAT8.get(dtype.name)
    if found is None:
        raise DtypeError(f"{dtype} is not a kind of number tilewise multiplies; known are {', '.join(DTYPES)}")
    return found


def dtype_named(name: str) -> DType:
    """The DType of a name, say from the command line."""
    name = ABBREVIATIONS.get(name, name)
    if name not in DTYPES:
        raise DtypeError(f"dtype {name!r} is not known; known are {', '.join(DTYPES)}")
    return DTYPES[name]


def dtype_given(dtype: Any) -> DType:
    """The DType of a `dtype=` argument: a name, or a dtype of NumPy, ml_dtypes or PyTorch."""
    name = ABBREVIATIONS.get(dtype, dtype) if isinstance(dtype, str) else str(dtype).removeprefix("torch.")
    if name in DTYPES:
        return DTYPES[name]
    try:
        return dtype_of(np.dtype(dtype))
    except TypeError:
        raise DtypeError(f"dtype={dtype!r} is not known; known are {', '.join(DTYPES)}") from None


@lru_cache(maxsize=1024)
def promote(m: DType, n: DType) -> DType:
    """The dtype to which both operands are converted, by NumPy's promotion rules."""
    m, n = (DTYPES["float32"] if x.name in FLOAT8 else x for x in (m, n))
    if m == n:
        return m
    try:
        return dtype_of(np.promote_types(m.numpy, n.numpy))
    except (TypeError, DtypeError):
        raise DtypeError(
            f"{m} and {n} have no common dtype; convert one of the operands, for example N.astype(M.dtype)"
        ) from None
