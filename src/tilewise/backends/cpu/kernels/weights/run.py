"""The look through operands over min_plus and max_plus of integers, made ready for a product."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache

from tilewise.algebra.dtypes import Array
from tilewise.algebra.no_edge import NoEdge
from tilewise.backends.cpu.kernels.weights.text import RECORD, weights_module
from tilewise.backends.cpu.runtime import compile
from tilewise.backends.cpu.runtime.address import data_field
from tilewise.backends.cpu.runtime.target import host_target
from tilewise.system.builtin_call import builtin

FEW = 4096  # cells that are looked through before another thread would have been let in


@lru_cache(maxsize=8)
def _compiled(itemsize: int) -> dict[str, int]:
    return compile.load(weights_module(itemsize, data_field()), host_target())


@lru_cache(maxsize=16)
def _called(itemsize: int, few: bool) -> Callable[..., int]:
    return builtin(_compiled(itemsize)["within_arrays"], "woo", keeps_gil=few)


class Look:
    """Whether operands that lie as these do are all weights."""

    def __init__(self, edges: NoEdge, M: Array, N: Array) -> None:
        size = edges.dtype.itemsize
        counts = [x.size if x.itemsize == size else 0 for x in (M, N)]  # what a narrower dtype holds is a weight
        natural = 2 ** (8 * size)
        self.fields = (ctypes.c_uint64 * len(RECORD))(
            *counts, edges.lightest % natural, edges.heaviest - edges.lightest
        )
        self.record = ctypes.addressof(self.fields)
        self.function = _compiled(size)["within"]
        self._called = _called(size, sum(counts) <= FEW) if data_field() else None

    def __call__(self, M: Array, N: Array) -> bool:
        if self._called is None:
            return False
        return bool(self._called(self.record, M, N))


def look_at(edges: NoEdge | None, M: Array, N: Array) -> Look | None:
    """A look for operands like these; None where there is nothing to look for, or elements lie apart."""
    if edges is None or not all(x.flags.c_contiguous or x.flags.f_contiguous for x in (M, N)):
        return None
    return Look(edges, M, N)
