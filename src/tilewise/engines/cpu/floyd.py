"""Floyd–Warshall on a square that fits the first cache, in place: what a blocked closure does on its diagonal."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.algebra.semiring import Algebra
from tilewise.arrays.extent import check_operand
from tilewise.engines.cpu import compile
from tilewise.engines.cpu.address import address
from tilewise.engines.cpu.arithmetic import Arithmetic, arithmetic
from tilewise.engines.cpu.ir import Function, module
from tilewise.engines.cpu.target import host_target
from tilewise.engines.cpu.tile import mask_below, masked_load, masked_store

Array = np.ndarray[Any, np.dtype[Any]]


def floyd_module(a: Arithmetic) -> str:
    """for k: for i: D[i] = add(D[i], mul(D[i, k], D[k])), a vector of columns at a time."""
    f = Function("floyd", [("ptr", "D"), ("i64", "n"), ("i64", "row")], public=True)
    render = a.renderer(f, a.lanes)
    with f.loop(0, "%n") as k, f.loop(0, "%n") as i:
        row_k, row_i = (f.at(a.kind, "%D", f.mul(at.index, "%row")) for at in (k, i))
        x = f.op(f"load {a.kind}, ptr {f.at(a.kind, row_i, k.index)}")
        one = f.op(f"insertelement {a.vector} poison, {a.kind} {x}, i32 0")
        x = f.op(f"shufflevector {a.vector} {one}, {a.vector} poison, <{a.lanes} x i32> zeroinitializer")
        with f.loop(0, "%n", a.lanes) as j:
            mask = mask_below(f, f.sub("%n", j.index), a.lanes)
            y = masked_load(f, a, f.at(a.kind, row_k, j.index), mask)
            place = f.at(a.kind, row_i, j.index)
            total = masked_load(f, a, place, mask)
            masked_store(f, a, render.accumulate(a.add, a.mul, (total,), (x,), (y,))[0], place, mask)
    return module([f])


@lru_cache(maxsize=128)
def _compiled(a: Arithmetic) -> Any:
    found = compile.load(floyd_module(a), a.target, ("floyd",))["floyd"]
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(found)


def close_square(D: Array, algebra: Algebra) -> None:
    """Close D, a square of `algebra.partial` whose rows lie side by side, in place."""
    check_operand(D, "D", (len(D), len(D)), algebra.partial.numpy)
    a = arithmetic(algebra, algebra.partial, algebra.partial, host_target())
    _compiled(a)(address(D), len(D), D.strides[0] // D.itemsize)
