"""Random operands of every dtype, and which dtypes a semiring takes; without hypothesis, which takes an emulated Python
half of its start to import."""

from __future__ import annotations

import ml_dtypes
import numpy as np

SEMIRINGS = (
    "plus_times", "min_plus", "max_plus", "min_times", "max_times", "min_max", "max_min", "lor_land", "logaddexp_plus",
)  # fmt: skip
CARD_DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
DTYPES = (*CARD_DTYPES, "longdouble", "clongdouble")


def numpy_dtype(name):
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def works(semiring, dtype):
    kind = numpy_dtype(dtype).kind if dtype != "bfloat16" else "f"
    if semiring in ("plus_times", "lor_land"):
        return True
    if semiring == "logaddexp_plus":
        return kind == "f"
    return kind != "c"


def weighs(semiring):
    """Whether integers are weights there, whose range is stated: see `tilewise.algebra.no_edge`."""
    return semiring in ("min_plus", "max_plus")


def values(shape, dtype, seed, specials=False, weights=False):
    """Random numbers: full range for integers, mixed signs for floats, Inf and NaN on request."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.3
    number = numpy_dtype(dtype)
    if number.kind in "iu":
        info = np.iinfo(number)
        low, high = (info.min // 7, info.max // 7) if weights else (info.min, info.max)
        return rng.integers(low, high, shape, dtype=number, endpoint=True)
    made = rng.standard_normal(shape)
    if number.kind == "c":
        made = made + 1j * rng.standard_normal(shape)
    elif specials:
        made = np.where(rng.random(shape) < 0.05, rng.choice([np.inf, -np.inf, np.nan, 0.0, -0.0], shape), made)
    return made.astype(number)
