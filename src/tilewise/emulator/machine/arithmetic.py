"""C's arithmetic on NumPy values: 32-bit wrap, truncating division, float32 rounding, saturating conversions.

A value is a NumPy scalar if it is uniform over the lanes, else an array with one element per lane. Arrays are never
changed in place, so that results can be memoised by the identity of their operands.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewise.emulator.machine.leaves import dtype_of
from tilewise.emulator.parse.types import BOOL, VOID, Scalar

Value = Any
Op = Callable[[Value, Value], Value]


def converter(source: Scalar, target: Scalar) -> Callable[[Value], Value] | None:
    """The conversion between two scalar types; None if the representation is the same."""
    if source == target or VOID in (source, target):
        return None
    have, dtype = dtype_of(source), dtype_of(target)
    if have == dtype:
        return None
    if target is BOOL:
        return lambda v: v != 0
    if source.floating and not target.floating:
        return _saturating(have, dtype)
    return lambda v: v.astype(dtype)


def _saturating(source: Any, dtype: Any) -> Callable[[Value], Value]:
    """Float to integer as PTX cvt.rzi: towards zero, saturated to 32 or 64 bits, then truncated to shorter types.
    NaN becomes 0 from float to 32 bits, else the highest bit alone."""
    register = np.dtype(f"{dtype.kind}{max(4, dtype.itemsize)}")
    info = np.iinfo(register)
    low, high = float(info.min), float(info.max)
    zero = source.itemsize < 8 and register.itemsize == 4
    nan = np.uint64(0 if zero else 1 << (8 * register.itemsize - 1)).astype(register)

    def convert(value: Value) -> Value:
        wide = value.astype(np.float64)
        inside = (wide >= low) & (wide < high)
        if np.all(inside):
            return wide.astype(register).astype(dtype)
        out = np.where(inside, wide, 0.0).astype(register)
        out = np.where(wide >= high, register.type(info.max), np.where(wide < low, register.type(info.min), out))
        out = np.where(np.isnan(wide), nan, out).astype(dtype)
        return out if isinstance(value, np.ndarray) else out[()]

    return convert


def divide(a: Value, b: Value) -> Value:
    """Integer division towards zero; by zero all bits are ones, as in compiled kernels."""
    if not isinstance(b, np.ndarray) and b > 0 and a.min() >= 0:
        return a // b
    return _ones_by_zero(b, (a - np.fmod(a, b)) // b)


def remainder(a: Value, b: Value) -> Value:
    return _ones_by_zero(b, np.fmod(a, b))


def _ones_by_zero(b: Value, value: Value) -> Value:
    zero = b == 0
    return np.where(zero, ~value.dtype.type(0), value)[()] if np.any(zero) else value


ARITHMETIC: dict[str, Op] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": np.left_shift,
    ">>": np.right_shift,
}
COMPARISONS: dict[str, Op] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def operation(op: str, type_: Scalar) -> Op | None:
    """The function of a binary operator on two values of one type; None if C does not define it."""
    if op in COMPARISONS:
        return COMPARISONS[op]
    if op == "/":
        return operator.truediv if type_.floating else divide
    if op == "%":
        return None if type_.floating else remainder
    if type_.floating and op in ("&", "|", "^", "<<", ">>"):
        return None
    return ARITHMETIC.get(op)


def poison(dtype: Any) -> Any:
    """The value of uninitialised memory: NaN, or an improbable number."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.bool_(True)
    if dtype.kind in "iu":
        return np.array(0x7BADF00D7BADF00D, np.uint64).astype(dtype)[()]
    return dtype.type(float("nan"))


def select(mask: Any, new: Value, old: Value) -> Value:
    """`new` where the mask holds, `old` elsewhere."""
    if new is old:
        return old
    return np.where(mask, new, old)
