"""Closing a square in place by its compiled kernel."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from tilewise.algebra.dtypes import Array
from tilewise.algebra.semiring import Algebra
from tilewise.arrays.address import address
from tilewise.arrays.extent import check_operand
from tilewise.backends.cpu.kernels.floyd.text import floyd_module
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic, arithmetic
from tilewise.backends.cpu.runtime import compile
from tilewise.backends.cpu.runtime.target import host_target


@lru_cache(maxsize=128)
def _compiled(a: Arithmetic) -> Any:
    found = compile.load(floyd_module(a), a.target)["floyd"]
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(found)


def closer(algebra: Algebra) -> Callable[[Array], None]:
    """A function that closes D, a square of `algebra.partial` with contiguous rows, in place. For many squares, since
    finding the kernel takes as long as closing a small one."""
    a = arithmetic(algebra, algebra.partial, algebra.partial, host_target())
    floyd, dtype = _compiled(a), algebra.partial.numpy

    def close(D: Array) -> None:
        check_operand(D, "D", (len(D), len(D)), dtype)
        floyd(address(D), len(D), D.strides[0] // D.itemsize)

    return close
