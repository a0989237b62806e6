"""CUDA's scalar functions as NumPy functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewise.emulator.machine.arithmetic import converter
from tilewise.emulator.machine.leaves import dtype_of
from tilewise.emulator.parse.types import (
    BFLOAT16,
    BOOL,
    DOUBLE,
    FLOAT,
    HALF,
    INT,
    LLONG,
    SHORT,
    UINT,
    ULLONG,
    USHORT,
    Scalar,
)

F = Callable[..., Any]


def fmax(a: Any, b: Any) -> Any:
    """fmax as on a GPU: +0 is above -0, and a number is preferred to NaN."""
    larger = np.fmax(a, b)
    return larger if np.all(larger) else np.where((a == 0) & (b == 0), a + b, larger)[()]


def fmin(a: Any, b: Any) -> Any:
    smaller = np.fmin(a, b)
    return smaller if np.all(smaller) else np.where((a == 0) & (b == 0), -(-a - b), smaller)[()]


def _vector(function: Callable[..., float]) -> F:
    def apply(*values: Any) -> Any:
        dtype = values[0].dtype
        out = np.vectorize(function, otypes=[np.float64])(*[np.asarray(v, np.float64) for v in values])
        return out.astype(dtype) if out.ndim else dtype.type(float(out))

    return apply


def _fma(a: Any, b: Any, c: Any) -> Any:
    """Rounded once for float32 (a float64 product is exact); twice for float64, for which NumPy has no fma."""
    if a.dtype == np.float32:
        return (np.asarray(a, np.float64) * b + c).astype(np.float32)[()]
    return a * b + c


def _round_away(x: Any) -> Any:
    """Adds the predecessor of 0.5: 0.5 itself would round 0.49999997f to 1, and 8388609.0f to an even number."""
    return np.trunc(x + np.copysign(np.nextafter(x.dtype.type(0.5), x.dtype.type(0)), x))


def _to_long(rounded: F) -> F:
    fitting = converter(DOUBLE, LLONG)
    assert fitting is not None
    return lambda x: fitting(rounded(x))


def _to_bfloat16(x: Any) -> Any:
    return x.astype(dtype_of(BFLOAT16))


def _rsqrt(x: Any) -> Any:
    return x.dtype.type(1) / np.sqrt(x)


def _popcount(x: Any) -> Any:
    return np.bitwise_count(x).astype(np.int32)


def _clz32(x: Any) -> Any:
    value = np.asarray(x).astype(np.uint32).astype(np.float64)
    bits = np.where(value > 0, np.floor(np.log2(np.maximum(value, 1))) + 1, 0)
    return (32 - bits).astype(np.int32)[()]


# functions of any numbers, in their common type: name -> (number of arguments, of integers, of floats)
COMMON: dict[str, tuple[int, F, F]] = {
    "abs": (1, np.abs, np.abs), "min": (2, np.minimum, fmin), "max": (2, np.maximum, fmax),
}  # fmt: skip
COMMON |= {f"{kind}{name}": COMMON[name] for kind in ("u", "ll") for name in ("min", "max")}

# functions of floating arguments: name -> (number of arguments, function); `f` at the end means float
REAL: dict[str, tuple[int, F]] = {
    "sqrt": (1, np.sqrt), "exp": (1, np.exp), "exp2": (1, np.exp2), "log": (1, np.log), "log2": (1, np.log2),
    "log10": (1, np.log10), "log1p": (1, np.log1p), "expm1": (1, np.expm1), "sin": (1, np.sin),
    "cos": (1, np.cos), "tan": (1, np.tan), "tanh": (1, np.tanh), "sinh": (1, np.sinh), "cosh": (1, np.cosh),
    "asin": (1, np.arcsin), "acos": (1, np.arccos), "atan": (1, np.arctan), "atan2": (2, np.arctan2),
    "ceil": (1, np.ceil), "floor": (1, np.floor), "trunc": (1, np.trunc), "round": (1, _round_away),
    "rint": (1, np.rint), "nearbyint": (1, np.rint), "fabs": (1, np.abs),
    "fmin": (2, fmin), "fmax": (2, fmax), "fmod": (2, np.fmod), "pow": (2, np.power),
    "hypot": (2, np.hypot), "fma": (3, _fma), "rsqrt": (1, _rsqrt), "cbrt": (1, np.cbrt),
    "copysign": (2, np.copysign), "fdim": (2, lambda a, b: np.fmax(a - b, a.dtype.type(0))),
    "erf": (1, _vector(math.erf)),
}  # fmt: skip

# name -> (parameter types, result, function); other functions have a body in the shipped headers
FIXED: dict[str, tuple[tuple[Scalar, ...], Scalar, F]] = {
    "isnan": ((DOUBLE,), BOOL, np.isnan),
    "isinf": ((DOUBLE,), BOOL, np.isinf),
    "isfinite": ((DOUBLE,), BOOL, np.isfinite),
    **dict.fromkeys(("labs", "llabs"), ((LLONG,), LLONG, np.abs)),
    **dict.fromkeys(("__float2bfloat16", "__float2bfloat16_rn"), ((FLOAT,), BFLOAT16, _to_bfloat16)),
    "__bfloat162float": ((BFLOAT16,), FLOAT, lambda a: a.astype(np.float32)),
    "__popc": ((UINT,), INT, _popcount),
    "__clz": ((INT,), INT, _clz32),
    "__half2float": ((HALF,), FLOAT, lambda a: a.astype(np.float32)),
    "__float2half": ((FLOAT,), HALF, lambda a: a.astype(np.float16)),
    "__float2half_rn": ((FLOAT,), HALF, lambda a: a.astype(np.float16)),
    "__int2half_rn": ((INT,), HALF, lambda a: a.astype(np.float16)),
    "__hadd": ((HALF, HALF), HALF, lambda a, b: a + b),
    "__hsub": ((HALF, HALF), HALF, lambda a, b: a - b),
    "__hmul": ((HALF, HALF), HALF, lambda a, b: a * b),
    "__hfma": (
        (HALF, HALF, HALF),
        HALF,
        lambda a, b, c: (np.asarray(a, np.float64) * b + c).astype(np.float16)[()],
    ),
    "__hmax": ((HALF, HALF), HALF, fmax),
    "__hmin": ((HALF, HALF), HALF, fmin),
    "__ushort_as_half": ((USHORT,), HALF, lambda a: a.view(np.float16)),
    "__short_as_half": ((SHORT,), HALF, lambda a: a.view(np.float16)),
    "__half_as_ushort": ((HALF,), USHORT, lambda a: a.view(np.uint16)),
    "__half_as_short": ((HALF,), SHORT, lambda a: a.view(np.int16)),
    "__uint_as_float": ((UINT,), FLOAT, lambda a: a.view(np.float32)),
    "__int_as_float": ((INT,), FLOAT, lambda a: a.view(np.float32)),
    "__float_as_uint": ((FLOAT,), UINT, lambda a: a.view(np.uint32)),
    "__float_as_int": ((FLOAT,), INT, lambda a: a.view(np.int32)),
    "__longlong_as_double": ((LLONG,), DOUBLE, lambda a: a.view(np.float64)),
    "__ulonglong_as_double": ((ULLONG,), DOUBLE, lambda a: a.view(np.float64)),
    "__double_as_longlong": ((DOUBLE,), LLONG, lambda a: a.view(np.int64)),
    **{name: ((DOUBLE,), LLONG, _to_long(np.rint)) for name in ("lrint", "lrintf", "llrint", "llrintf")},
    **{name: ((DOUBLE,), LLONG, _to_long(_round_away)) for name in ("lround", "lroundf", "llround", "llroundf")},
}
