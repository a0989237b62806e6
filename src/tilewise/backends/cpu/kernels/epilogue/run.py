"""Epilogues of small products as functions that Python calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec

from tilewise.backends.cpu.kernels.epilogue.text import OUTSIDE, epilogue_module, scaling_module
from tilewise.backends.cpu.runtime import compile
from tilewise.backends.cpu.runtime.address import data_field
from tilewise.backends.cpu.runtime.target import host_target
from tilewise.core.epilogue import Epilogue
from tilewise.system.builtin_call import builtin
from tilewise.system.llvm_lock import LLVM


@lru_cache(maxsize=256)
def compiled_epilogue(epilogue: Epilogue, dtype: str, onto: bool) -> Callable[..., int] | None:
    """`finish(record, sums, bias, P)`; None where there is no compiler, or a C library without what it calls."""
    if dtype not in ("float32", "float64") or not data_field():
        return None
    try:
        import llvmlite.binding as llvm
    except ImportError:
        return None
    outside = OUTSIDE.get(epilogue.activation or "")
    with LLVM:
        if outside and not llvm.address_of_symbol(outside):
            return None
    text = epilogue_module(epilogue, dtype, onto, data_field())
    address = compile.load(text, host_target())["finish"]
    return builtin(address, "wooo", answers=False, keeps_gil=True)


@lru_cache(maxsize=4)
def compiled_scaling(rows: bool, columns: bool) -> Callable[..., int] | None:
    """`finish(record, sums, columns, rows, factor)` of float32 sums, scaled; None where there is no compiler, or where
    a float object does not hold its number behind its header."""
    field, number = data_field(), 0.375
    if not field or ctypes.c_double.from_address(id(number) + field).value != number or find_spec("llvmlite") is None:
        return None
    address = compile.load(scaling_module(rows, columns, field), host_target())["finish"]
    return builtin(address, "woooo", answers=False, keeps_gil=True)
