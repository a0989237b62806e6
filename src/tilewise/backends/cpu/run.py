"""Running a plan on arrays in the host's memory."""

from __future__ import annotations

import numpy as np

from tilewise.algebra.dtypes import Array
from tilewise.arrays.extent import check_operand
from tilewise.backends.cpu.ready import Ready
from tilewise.backends.cpu.runtime.target import Target
from tilewise.core.plan import Plan
from tilewise.core.problem import Layout


def run(
    plan: Plan, M: Array, N: Array, P: Array, arg: Array | None = None, target: Target | None = None
) -> Ready | None:
    """Multiply every member of the stack. P is written (or, with accumulate, added onto) in place; `arg` gets the k.

    Returns a `Ready` that can run again on operands with the same layouts; None when there was nothing to do.
    """
    problem = plan.problem
    m, k, n, stack = problem.m, problem.k, problem.n, problem.stack
    check_operand(M, "M", (*stack, m, k), problem.dtype_m.numpy)
    check_operand(N, "N", (*stack, k, n), problem.dtype_n.numpy)
    check_operand(P, "P", (*stack, m, n), problem.result.numpy)
    if arg is not None:
        check_operand(arg, "arg", (*stack, m, n), np.dtype(np.int64))
    if P.size == 0:
        return None
    if problem.k == 0:
        P[...] = problem.algebra.zero
        if arg is not None:
            arg[...] = -1
        return None
    assert plan.blocking is not None
    axes = len(stack)
    of_m, of_n, of_p = (_layout(x, axes) for x in (M, N, P))
    strided = problem.resized(m, k, n, stack, of_m, of_n, of_p, problem.symmetric)
    ready = Ready(strided, plan.blocking, target, None if arg is None else _layout(arg, axes))
    ready.run(M, N, P, arg)
    return ready


def _layout(x: Array, axes: int) -> Layout:
    """The layout of an operand that is broadcast over a stack of this many axes."""
    *own, row, col = (stride // x.itemsize for stride in x.strides)
    steps = [0 if extent == 1 else step for extent, step in zip(x.shape, own, strict=False)]
    return Layout(row, col, (*[0] * (axes - len(steps)), *steps))
