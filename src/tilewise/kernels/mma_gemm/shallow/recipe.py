"""The launches of `shallow`: one for all members of a stack that lie evenly."""

from __future__ import annotations

import ctypes

from tilewise.core.machine import arch_number
from tilewise.core.plan import Plan
from tilewise.core.recipe import Launch, Scratch
from tilewise.kernels.mma_gemm.shallow.model import (
    KERNEL,
    ShallowConfig,
    on_tensor_cores,
    shared_bytes,
    steps_of,
    strips_of,
)
from tilewise.kernels.mma_gemm.shallow.text import render_shallow
from tilewise.kernels.shared.placed import Operands
from tilewise.kernels.shared.stacked import Runs


def launches(plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
    """M and N have any strides, P rows of elements side by side."""
    p, config, made = plan.problem, plan.config, []
    assert isinstance(config, ShallowConfig)
    M, N, P = given.M, given.N, given.P
    source = render_shallow.named(p.dtype, on_tensor_cores(p), config.cols, min(90, arch_number(plan.machine.arch)))
    runs = Runs(p.stack, [x.layout.stack for x in (M, N, P)])
    for first, count in runs.starts():
        arguments = (
            *(x.member(first) for x in (M, N, P)),
            *(ctypes.c_int(extent) for extent in (p.m, p.k, p.n)),
            *(ctypes.c_int(s) for x in (M, N) for s in (x.layout.row, x.layout.col)),
            ctypes.c_longlong(P.lead),
            *(ctypes.c_int(x) for x in (steps_of(p), config.blocks)),
            *(ctypes.c_longlong(step) for step in runs.steps),
        )
        grid = (strips_of(p, config.cols) * config.blocks, count)
        shared = shared_bytes(p, config.cols, config.warps)
        made.append(Launch.of(source, KERNEL, grid, (32 * config.warps,), arguments, shared))
    return made
