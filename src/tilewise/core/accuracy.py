"""The relative error of a product, for every dtype."""

from __future__ import annotations

import numpy as np

from tilewise.algebra.dtypes import Array


def relative_error(got: Array, expected: Array) -> float:
    """‖got − expected‖ / ‖expected‖ over the cells that are finite; other cells must be the same, or it is ∞."""
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    a, b = got.astype(wide), expected.astype(wide)
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(a[finite]).all():
        return float("inf")
    scale = float(np.linalg.norm(b[finite]))
    return float(np.linalg.norm(a[finite] - b[finite])) / (scale or 1.0)
