"""The prepared check of integer operands of min_plus and max_plus for values outside the range of weights."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache

from tilewise.algebra.dtypes import Array, DType
from tilewise.algebra.no_edge import NoEdge
from tilewise.backends.cpu.kernels.weights.text import RECORD, weights_module
from tilewise.backends.cpu.runtime import compile
from tilewise.backends.cpu.runtime.target import host_target
from tilewise.core.problem import Layout, Problem
from tilewise.system.builtin_call import builtin

FEW = 4096  # most cells that are scanned while holding the GIL


@lru_cache(maxsize=8)
def _compiled(itemsize: int) -> dict[str, int]:
    return compile.load(weights_module(itemsize), host_target())


@lru_cache(maxsize=16)
def _called(itemsize: int, few: bool) -> Callable[..., int]:
    return builtin(_compiled(itemsize)["within_arrays"], "woo", keeps_gil=few)


class WeightCheck:
    """Whether all elements of operands with a problem's layouts are weights."""

    def __init__(self, edges: NoEdge, sizes: tuple[tuple[int, DType], ...]) -> None:
        """`sizes`: elements of M and of N, and their dtypes."""
        size = edges.dtype.itemsize
        # every value of a narrower dtype is a weight
        counts = [count if of.itemsize == size else 0 for count, of in sizes]
        natural = 2 ** (8 * size)
        self.fields = (ctypes.c_uint64 * len(RECORD))(
            *counts, edges.min_weight % natural, edges.max_weight - edges.min_weight
        )
        self.record = ctypes.addressof(self.fields)
        self.function = _compiled(size)["within"]
        self._called = _called(size, sum(counts) <= FEW)

    def __call__(self, M: Array, N: Array) -> bool:
        return bool(self._called(self.record, M, N))


def weight_check(edges: NoEdge, problem: Problem) -> WeightCheck | None:
    """A check for operands with a problem's layouts; None where they are not contiguous."""
    m, k, n, stack = problem.m, problem.k, problem.n, problem.stack
    of_m, of_n = _elements(problem.layout_m, m, k, stack), _elements(problem.layout_n, k, n, stack)
    return WeightCheck(edges, ((of_m, problem.dtype_m), (of_n, problem.dtype_n))) if of_m and of_n else None


def _elements(layout: Layout, rows: int, cols: int, stack: tuple[int, ...]) -> int:
    """The number of elements of an operand; 0 if it is not contiguous. A broadcast axis adds none."""
    inner = sorted((step, extent) for step, extent in ((layout.row, rows), (layout.col, cols)) if extent > 1)
    axes = [*inner, *((step, extent) for step, extent in zip(layout.stack[::-1], stack[::-1], strict=True) if step)]
    count = 1
    for step, extent in axes:
        if step != count:
            return 0
        count *= extent
    return count
