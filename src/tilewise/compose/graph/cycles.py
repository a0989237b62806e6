"""Naming a cycle that improves: Bellman–Ford from everywhere at once, until the predecessors form a circle."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.algebra.expression import Number
from tilewise.algebra.semiring import Algebra
from tilewise.dispatch.product import matmul

Array = np.ndarray[Any, np.dtype[Any]]


def find_cycle(W: Array, algebra: Algebra, one: Number) -> tuple[int, ...]:
    """The nodes of one improving cycle, in walking order from the lowest; empty where add picks no winner."""
    if not algebra.semiring.selective or algebra.partial.is_integer:
        return _by_floats(W, algebra) if algebra.partial.is_integer else ()
    n = len(W)
    weights = W.astype(algebra.partial.numpy)
    best = np.full(n, one, algebra.partial.numpy)
    before = np.full(n, -1)
    for _ in range(n + 1):
        made, arg = matmul(best, weights, semiring=algebra.semiring, return_arg=True)
        with np.errstate(all="ignore"):
            total = algebra.add(best, made)
        changed = total != best
        if not changed.any():
            return ()
        before[changed], best = arg[changed], total
        circle = _circle(before)
        if circle:
            return circle
    return ()


def _by_floats(W: Array, algebra: Algebra) -> tuple[int, ...]:
    """Integers as float64: near the ends of their range sums would wrap, and names need no exact weights."""
    from tilewise.algebra.dtypes import DTYPES

    floats = algebra.semiring.over(DTYPES["float64"])
    weights = np.where(algebra.zero == W, np.asarray(floats.zero, np.float64), W.astype(np.float64))
    return find_cycle(weights, floats, 0)


def _circle(before: Array) -> tuple[int, ...]:
    """A circle among the predecessors, as a walk, if there is one."""
    state = np.zeros(len(before), np.int8)  # 1: on this walk, 2: known to lead into no cycle
    for start in range(len(before)):
        walk = []
        node = start
        while node >= 0 and state[node] == 0:
            state[node] = 1
            walk.append(node)
            node = int(before[node])
        if node >= 0 and state[node] == 1:
            circle = walk[walk.index(node) :][::-1]
            lowest = circle.index(min(circle))
            return tuple(circle[lowest:] + circle[:lowest])
        state[walk] = 2
    return ()
