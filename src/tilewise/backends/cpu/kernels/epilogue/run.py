"""Epilogues of small products as functions that Python calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from tilewise.backends.cpu.kernels.epilogue.text import LIBM, epilogue_module, scaling_module
from tilewise.backends.cpu.runtime import compile
from tilewise.backends.cpu.runtime.target import host_target
from tilewise.core.epilogue import Epilogue
from tilewise.system.builtin_call import builtin
from tilewise.system.llvm_lock import LLVM


@lru_cache(maxsize=256)
def compiled_epilogue(epilogue: Epilogue, dtype: str, onto: bool) -> Callable[..., int] | None:
    """`finish(record, sums, bias, P)`; None where the C library lacks what it calls."""
    if dtype not in ("float32", "float64"):
        return None
    import llvmlite.binding as llvm

    symbol = LIBM.get(epilogue.activation or "")
    with LLVM:
        if symbol and not llvm.address_of_symbol(symbol):
            return None
    address = compile.load(epilogue_module(epilogue, dtype, onto), host_target())["finish"]
    return builtin(address, "wooo", returns=False, keeps_gil=True)


@lru_cache(maxsize=4)
def compiled_scaling(rows: bool, columns: bool) -> Callable[..., int]:
    """`finish(record, sums, columns, rows, factor)` of float32 sums, scaled."""
    address = compile.load(scaling_module(rows, columns), host_target())["finish"]
    return builtin(address, "woooo", returns=False, keeps_gil=True)
