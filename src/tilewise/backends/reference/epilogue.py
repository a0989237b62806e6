"""The epilogue in NumPy, computed in the dtype of the sums."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import Array
from tilewise.core.epilogue import Epilogue

FURTHEST = 6.0  # erf is ±1 in every float beyond
PIECES, DEGREE = 24, 13
FEW = 256  # up to this many values math.erf is called for each; more use the table
BLOCK_ELEMENTS = 2**18  # per pass: bounds the size of temporaries


def apply_epilogue(epilogue: Epilogue, sums: Array, bias: Array | None, P: Array, accumulate: bool) -> None:
    """P = activation(alpha · sums + bias), or with `accumulate` activation(alpha · sums + P + bias)."""
    rows = max(1, BLOCK_ELEMENTS // max(1, sums.shape[-1]))
    with np.errstate(all="ignore"):
        for member in np.ndindex(sums.shape[:-2]):
            for top in range(0, sums.shape[-2], rows):
                part, target = sums[member][top : top + rows], P[member][top : top + rows]
                target[...] = _of_block(epilogue, part, bias, target if accumulate else None)


def with_epilogue(epilogue: Epilogue, sums: Array, bias: Array | None, dtype: Any) -> Array:
    """activation(alpha · sums + bias) as an array of `dtype`; `sums` may be overwritten."""
    if sums.size > BLOCK_ELEMENTS:
        P = np.empty(sums.shape, dtype)
        apply_epilogue(epilogue, sums, bias, P, False)
        return P
    with np.errstate(all="ignore"):
        return _of_block(epilogue, sums, bias, None).astype(dtype, copy=False)


def _of_block(epilogue: Epilogue, sums: Array, bias: Array | None, old: Array | None) -> Array:
    """`sums` is overwritten."""
    kind = sums.dtype
    if epilogue.alpha != 1.0:
        np.multiply(sums, kind.type(epilogue.alpha), out=sums)
    if old is not None:
        np.add(sums, old.astype(kind), out=sums)
    if bias is not None:
        np.add(sums, bias.astype(kind, copy=False), out=sums)
    return sums if epilogue.activation is None else _activated(sums, epilogue.activation)


def _activated(x: Array, activation: str | None) -> Array:
    number, made = x.dtype.type, x
    if activation == "relu":
        made = np.where(x < 0, number(0), x)
    elif activation == "gelu":
        made = x * number(0.5) * (number(1) + _erf(x * number(math.sqrt(0.5))))
    elif activation == "gelu_tanh":
        inside = number(math.sqrt(2 / math.pi)) * (x + number(0.044715) * x * x * x)
        made = x * number(0.5) * (number(1) + np.tanh(inside))
    elif activation == "silu":
        made = x / (number(1) + np.exp(-x))
    return made


def _erf(x: Array) -> Array:
    """erf: of few values by `math.erf`, of many by piecewise polynomial interpolation, within 4e-15."""
    if x.size <= FEW:
        one_by_one: Array = np.array([math.erf(v) for v in x.ravel().tolist()]).reshape(x.shape).astype(x.dtype)
        return one_by_one
    size = np.minimum(np.abs(x.astype(np.float64)), FURTHEST)
    piece = np.minimum(np.nan_to_num(size) * (PIECES / FURTHEST), PIECES - 1).astype(np.intp)
    within = size * (2 * PIECES / FURTHEST) - (2 * piece + 1)  # from −1 to 1
    table = _erf_table()
    value: Array = table[DEGREE][piece]
    for power in range(DEGREE - 1, -1, -1):
        value = value * within + table[power][piece]
    signed: Array = np.copysign(value, x).astype(x.dtype)
    return signed


@lru_cache(maxsize=1)
def _erf_table() -> Array:
    """Coefficients of each power for each piece."""
    from numpy.polynomial import chebyshev

    width = FURTHEST / PIECES
    pieces = []
    for piece in range(PIECES):
        middle = (piece + 0.5) * width
        made = chebyshev.chebinterpolate(np.vectorize(lambda t, at=middle: math.erf(at + t * width / 2)), DEGREE)
        pieces.append(np.pad(chebyshev.cheb2poly(made), (0, 1))[: DEGREE + 1])
    table: Array = np.array(pieces).T.copy()
    return table
