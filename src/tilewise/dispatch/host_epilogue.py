"""Prepared epilogues and scales of products on the host: small products by one native call, large ones by NumPy."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import Array
from tilewise.arrays.float8_scales import scaled_by
from tilewise.backends.cpu.kernels.epilogue.run import compiled_epilogue, compiled_scaling
from tilewise.backends.reference.epilogue import apply_epilogue, with_epilogue
from tilewise.core.epilogue import Epilogue

FEW = 4096  # cells


class _Record(ctypes.Structure):
    _fields_ = (("rows", ctypes.c_int64), ("cols", ctypes.c_int64), ("alpha", ctypes.c_double))


class HostEpilogue:
    """An epilogue for sums of one shape and dtype; `onto`: P's old values are added before the activation."""

    def __init__(self, epilogue: Epilogue, sums: Array, result: Any, onto: bool) -> None:
        self._epilogue, self._result, self._onto, self._dtype = epilogue, result, onto, sums.dtype
        few = 0 < sums.size <= FEW
        self._native = compiled_epilogue(_text_key(epilogue), sums.dtype.name, onto) if few else None
        self._record = _Record(sums.size // max(1, sums.shape[-1]), sums.shape[-1], epilogue.alpha)
        self._at = ctypes.addressof(self._record)

    @property
    def is_native(self) -> bool:
        """Whether it is native code, which overwrites the sums."""
        return self._native is not None

    def __call__(self, sums: Array, bias: Array | None, P: Array | None = None) -> Array:
        """P (a new array if none is given) from contiguous sums, which are overwritten."""
        dtype, held = self._dtype, P if self._onto else None
        if self._native is None:
            if P is None:
                return with_epilogue(self._epilogue, sums, bias, self._result)
            apply_epilogue(self._epilogue, sums, bias, P, self._onto)
            return P
        if bias is not None and (bias.dtype != dtype or bias.strides[-1] != dtype.itemsize):
            bias = np.ascontiguousarray(bias, dtype)
        if held is not None and (held.dtype != dtype or not held.flags.c_contiguous):
            held = np.ascontiguousarray(held, dtype)
        self._native(self._at, sums, bias, held)
        if P is None and self._result == dtype:
            return sums
        if P is not None and P.dtype == dtype:
            np.copyto(P, sums)
            return P
        with np.errstate(all="ignore"):
            if P is None:
                return sums.astype(self._result)
            np.copyto(P, sums, casting="unsafe")
        return P


def _text_key(epilogue: Epilogue) -> Epilogue:
    """The cache key of its LLVM text: one text serves all factors, and biases are converted."""
    return Epilogue(1.0 if epilogue.alpha == 1.0 else 2.0, epilogue.bias, epilogue.activation)


class Scaling:
    """Scales for float32 sums of one shape; later pairs have arrays on the same sides."""

    def __init__(self, rows: Array | None, columns: Array | None, shape: tuple[int, ...]) -> None:
        """`rows`, `columns`: the arrays of the pair, None where a side is a number or None."""
        sides = zip((rows, columns), shape, strict=True)
        few = math.prod(shape) <= FEW and all(x is None or _is_dense_vector(x, extent) for x, extent in sides)
        self._rows, self._columns = rows is not None, columns is not None
        self._native = compiled_scaling(self._rows, self._columns) if few else None
        self._record = _Record(*shape, 1.0)
        self._at = ctypes.addressof(self._record)

    def __call__(self, sums: Array, a: Any, b: Any) -> Array:
        """Contiguous sums times such a pair, which the caller has checked; the sums are overwritten."""
        if self._native is None:
            return scaled_by(sums, a, b)
        factor = 1.0
        if not self._rows and a is not None:
            factor *= a
        if not self._columns and b is not None:
            factor *= b
        self._native(self._at, sums, b, a, factor)
        return sums


def _is_dense_vector(scale: Array, extent: int) -> bool:
    """Whether native code takes a scale: one number for each row or column, contiguous."""
    return bool(scale.size == extent and scale.flags.c_contiguous)
