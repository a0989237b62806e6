"""Closures that apply an operator to all lanes. Results are memoised by the identity of the operands, so that a loop
computes invariants once."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.emulator.compile.operand import Fn
from tilewise.emulator.machine.context import Context
from tilewise.emulator.machine.findings import Kind
from tilewise.emulator.machine.memory import merge
from tilewise.emulator.source.source import Span

INT_MAX = 2**31 - 1


def uniform(value: Any) -> bool:
    return not isinstance(value, np.ndarray)


def memoised(function: Any, fn: Fn, memo: int) -> Fn:
    def run(c: Context) -> Any:
        value = fn(c)
        if not isinstance(value, np.ndarray):
            return function(value)
        known = c.memo[memo]
        if known is not None and known[0] is value:
            return known[1]
        out = function(value)
        c.memo[memo] = (value, out)
        return out

    return run


def binary(function: Any, a: Fn, b: Fn, memo: int, with_context: bool = False) -> Fn:
    """memo < 0: not memoised."""
    if memo < 0:
        return lambda c: function(a(c), b(c))

    def run(c: Context) -> Any:
        x, y = a(c), b(c)
        if c is None:
            return function(x, y)
        known = c.memo[memo]
        if known is not None and known[0] is x and known[1] is y:
            return known[2]
        out = function(c, x, y) if with_context else function(x, y)
        if isinstance(out, np.ndarray):
            c.memo[memo] = (x, y, out)
        return out

    return run


def widen_product(span: Span) -> Any:
    """A 32-bit product that feeds an index: wraps, and reports the lanes where it does."""

    def multiply(c: Context, x: Any, y: Any) -> Any:
        out = x * y
        if not c.checks:
            return out
        if uniform(x) and uniform(y):
            if -INT_MAX <= int(x) * int(y) <= INT_MAX:
                return out
        else:
            bound_x = max(abs(int(np.max(x))), abs(int(np.min(x))))
            bound_y = max(abs(int(np.max(y))), abs(int(np.min(y))))
            if bound_x * bound_y <= INT_MAX:
                return out
        exact = np.asarray(x, np.int64) * np.asarray(y, np.int64)
        wrapped = np.broadcast_to(exact != out, (c.n,))
        if c.mask is not None:
            wrapped = wrapped & c.mask
        lanes = np.flatnonzero(wrapped)
        if len(lanes):
            requested = [np.broadcast_to(exact, (c.n,))[lanes]]
            reached = [np.broadcast_to(np.asarray(out), (c.n,))[lanes]]
            c.collector.add(c, Kind.INDEX_OVERFLOW, span, lanes, access="index", requested=requested, reached=reached)
        return out

    return multiply


def split(c: Context, which: np.ndarray, memo: int) -> tuple[Any, bool, Any, bool]:
    """Split the current mask by a condition: (mask, any, mask, any). A side with all lanes gets the same mask object,
    which memoisation relies on."""
    mask = c.mask
    known = c.memo[memo]
    if known is not None and known[0] is which and known[1] is mask:
        return known[2]  # type: ignore[no-any-return]
    yes = which if mask is None else which & mask
    no = ~which if mask is None else mask & ~which
    any_yes, any_no = bool(yes.any()), bool(no.any())
    if not any_no:
        yes = mask
    if not any_yes:
        no = mask
    out = (yes, any_yes, no, any_no)
    c.memo[memo] = (which, mask, out)
    return out


def masked_pair(c: Context, which: np.ndarray, a: Fn, b: Fn, memo: int) -> Any:
    """?: with each branch evaluated under the mask of its lanes."""
    yes, any_yes, no, any_no = split(c, which, memo)
    mask = c.mask
    if not any_yes and not any_no:
        any_no = True
    first = second = None
    if any_yes:
        c.mask = yes
        first = a(c)
    if any_no:
        c.mask = no
        second = b(c)
    c.mask = mask
    if not any_no:
        return first
    if not any_yes:
        return second
    return merge(which, first, second)
