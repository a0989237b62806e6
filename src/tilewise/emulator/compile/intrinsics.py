"""CUDA's scalar functions as NumPy functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewise.emulator.parse.types import BFLOAT16, FLOAT, HALF, Scalar

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
    "hypot": (2, np.hypot), "fma": (3, _fma), "cbrt": (1, np.cbrt),
    "copysign": (2, np.copysign), "fdim": (2, lambda a, b: np.fmax(a - b, a.dtype.type(0))),
    "erf": (1, _vector(math.erf)),
}  # fmt: skip

# conversions, whose shipped bodies take numbers for classes of 16 bits: name -> (parameter, result)
CONVERSIONS: dict[str, tuple[Scalar, Scalar]] = {
    "__float2half": (FLOAT, HALF), "__half2float": (HALF, FLOAT),
    "__float2bfloat16": (FLOAT, BFLOAT16), "__bfloat162float": (BFLOAT16, FLOAT),
}  # fmt: skip
