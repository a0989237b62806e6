"""Execute a plan in the interpreter: the kernel text that a GPU would compile, on host arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import DType
from tilewise.algebra.no_edge import no_edge_of, run_encoded
from tilewise.core.machine import Machine
from tilewise.core.plan import Plan, packed_lead
from tilewise.emulator import launch
from tilewise.emulator.limits import Limits

Array = np.ndarray[Any, np.dtype[Any]]

MACHINE = Machine("simt", "the interpreter", 1, 1e8, {"": 1e7}, source="nominal")
UNLIMITED = Limits(steps=1 << 62, seconds=math.inf, memory=1 << 62)  # this project's kernels terminate


def run(plan: Plan, source: str, M: Array, N: Array, P: Array) -> None:
    """Multiply every member of the stack by the kernel whose text is `source`. P is overwritten in place, or added to
    (accumulate)."""
    algebra = plan.problem.algebra
    onto = algebra if plan.problem.accumulate else None
    run_encoded(no_edge_of(algebra), lambda M, N, P, _: _run(plan, source, M, N, P), M, N, P, None, onto)


def _run(plan: Plan, source: str, M: Array, N: Array, P: Array) -> None:
    p = plan.problem
    M = np.broadcast_to(M, (*p.stack, *M.shape[-2:]))
    N = np.broadcast_to(N, (*p.stack, *N.shape[-2:]))
    index = np.int32 if plan.index == "int" else np.int64
    leads = [packed_lead(cols) if name in plan.packs else cols for name, cols in (("M", p.k), ("N", p.n))]
    sizes = [np.int32(p.m), np.int32(p.k), np.int32(p.n), *(index(lead) for lead in (*leads, p.n))]
    if not (p.m and p.n):
        return
    for member in np.ndindex(*p.stack):
        made = np.array(P[member], order="C")  # read only by kernels that accumulate
        operands = [_raw(M[member], p.dtype, leads[0]), _raw(N[member], p.dtype, leads[1])]
        arguments = [*operands, made.view(_raw_dtype(p.result)), *sizes]
        launch(source, plan.kernel, plan.grid[::-1], plan.geometry.block, arguments, limits=UNLIMITED)
        P[member] = made


def _raw(matrix: Array, dtype: DType, lead: int) -> Array:
    """A copy in the kernel's dtype, its rows `lead` apart; half precision as the 16 bits that the kernel widens."""
    made = np.zeros((matrix.shape[0], lead), dtype.numpy)
    with np.errstate(all="ignore"):
        made[:, : matrix.shape[1]] = matrix
    return made.view(_raw_dtype(dtype))


def _raw_dtype(dtype: DType) -> np.dtype[Any]:
    return np.dtype(np.uint16) if dtype.name in ("float16", "bfloat16") else dtype.numpy
