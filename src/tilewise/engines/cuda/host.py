"""The host program of the notes: allocate, copy in, launch, time with events, copy out, free.

P is not copied in: every cell of P is written by the kernel before it is read, so what was there before does not matter
(unless the product is added onto it, with accumulate=True). Memory is freed also when something fails midway.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import dtype_of
from tilewise.arrays.card import default_stream
from tilewise.arrays.device_array import DeviceArray
from tilewise.engines.cuda.launch import prepare
from tilewise.engines.cuda.timing import Stopwatch
from tilewise.machine import Times
from tilewise.plans import Plan

Array = np.ndarray[Any, np.dtype[Any]]


def multiply_on_device(
    plan: Plan, M: Array, N: Array, P: Array, device: str, where: Array | None = None, bias: Array | None = None
) -> Times:
    """MatrixMulOnDevice: from arrays on the host to their product (and the k that won, in `where`) on the host. `plan`
    is for contiguous copies."""
    stream = default_stream(device)
    with ExitStack() as memory:
        Md, Nd, Pd = (memory.enter_context(DeviceArray(a.shape, dtype_of(a.dtype), device)) for a in (M, N, P))
        Wd = None if where is None else memory.enter_context(DeviceArray(where.shape, dtype_of(where.dtype), device))
        Bd = None if bias is None else memory.enter_context(DeviceArray(bias.shape, dtype_of(bias.dtype), device))
        pointers = (Md.pointer, Nd.pointer, Pd.pointer)
        # compiles before the clock starts
        compute = prepare(plan, *pointers, device, stream, Wd.pointer if Wd else 0, Bd.pointer if Bd else 0)
        watch = Stopwatch(stream)
        Md.copy_from(M)
        Nd.copy_from(N)
        if plan.problem.accumulate:
            Pd.copy_from(P)
        if bias is not None and Bd is not None:
            Bd.copy_from(bias)
        watch.mark()
        compute()
        watch.mark()
        P[...] = Pd.numpy()
        if where is not None and Wd is not None:
            where[...] = Wd.numpy()
        watch.mark()
        return Times(*watch.laps())
