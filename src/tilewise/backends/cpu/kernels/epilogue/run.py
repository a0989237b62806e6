"""Epilogues and scales of products on the host, by native code."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tilewise.algebra.dtypes import Array
from tilewise.arrays.address import address
from tilewise.arrays.float8_scales import scaled_by
from tilewise.backends.cpu.kernels.epilogue.text import epilogue_module, scaling_module
from tilewise.backends.cpu.runtime import compile
from tilewise.backends.cpu.runtime.pool import num_threads, run_job
from tilewise.backends.cpu.runtime.target import host_target
from tilewise.core.epilogue import Epilogue
from tilewise.system.builtin_call import builtin

FEW = 4096  # cells


class _Record(ctypes.Structure):
    _fields_ = (("rows", ctypes.c_int64), ("cols", ctypes.c_int64), ("alpha", ctypes.c_double))


class HostEpilogue:
    """An epilogue for sums of one shape and dtype; `onto`: P's old values are added before the activation.

    Half precision is computed in float32, and rounded once.
    """

    def __init__(self, epilogue: Epilogue, sums: Array, result: Any, onto: bool) -> None:
        self._result, self._onto = result, onto
        self._dtype = sums.dtype if sums.dtype == np.float64 else np.dtype(np.float32)
        self._compiled = compiled_epilogue(_text_key(epilogue), self._dtype.name, onto)
        self._record = _Record(sums.size // max(1, sums.shape[-1]), sums.shape[-1], epilogue.alpha)
        self._at = ctypes.addressof(self._record)

    def __call__(self, sums: Array, bias: Array | None, P: Array | None = None) -> Array:
        """P (a new array if none is given) from contiguous sums, which may be overwritten."""
        dtype, held, given = self._dtype, P if self._onto else None, sums
        if sums.dtype != dtype:
            sums = sums.astype(dtype)
        if bias is not None and (bias.dtype != dtype or bias.strides[-1] != dtype.itemsize):
            bias = np.ascontiguousarray(bias, dtype)
        if held is not None and (held.dtype != dtype or not held.flags.c_contiguous):
            held = np.ascontiguousarray(held, dtype)
        if sums.size <= FEW:
            self._compiled.finish(self._at, sums, bias, held)
        else:
            self._in_tasks(sums, bias, held)
        if P is sums or (P is None and self._result == dtype):
            return sums
        if P is None:
            P = given if given.dtype == self._result else np.empty(sums.shape, self._result)
        if P.dtype == dtype:
            np.copyto(P, sums)
            return P
        with np.errstate(all="ignore"):
            np.copyto(P, sums, casting="unsafe")
        return P

    def _in_tasks(self, sums: Array, bias: Array | None, held: Array | None) -> None:
        rows, cols = self._record.rows, self._record.cols
        each = max(1, FEW // cols)
        run_job(
            self._compiled.task, -(-rows // each), num_threads(), M=address(sums), m=rows, n=cols, task_m=each,
            N=0 if bias is None else address(bias), P=0 if held is None else address(held),
            arg=self._at + _Record.alpha.offset,
        )  # fmt: skip


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


class CompiledEpilogue(NamedTuple):
    """`finish(record, sums, bias, P)` for few cells, and the function of a task."""

    finish: Callable[..., int]
    task: int


@lru_cache(maxsize=256)
def compiled_epilogue(epilogue: Epilogue, dtype: str, onto: bool) -> CompiledEpilogue:
    """Of float32 or float64 sums."""
    target = host_target()
    found = compile.load(epilogue_module(epilogue, dtype, onto, target.vector_bytes), target)
    return CompiledEpilogue(builtin(found["finish"], "wooo", returns=False, keeps_gil=True), found["finish_rows"])


@lru_cache(maxsize=4)
def compiled_scaling(rows: bool, columns: bool) -> Callable[..., int]:
    """`finish(record, sums, columns, rows, factor)` of float32 sums, scaled."""
    target = host_target()
    address = compile.load(scaling_module(rows, columns, target.vector_bytes), target)["finish"]
    return builtin(address, "woooo", returns=False, keeps_gil=True)
