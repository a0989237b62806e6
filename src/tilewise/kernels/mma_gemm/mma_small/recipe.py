"""The launches of `mma_small`: one for all members of a stack that lie evenly."""

from __future__ import annotations

import ctypes

from tilewise.core.machine import arch_number
from tilewise.core.plan import Plan
from tilewise.core.recipe import Launch, Scratch
from tilewise.kernels.mma_gemm.mma_small.model import SmallConfig, copies_of, piece, tiles_of
from tilewise.kernels.mma_gemm.mma_small.text import render_small
from tilewise.kernels.shared.placed import Operands
from tilewise.kernels.shared.stacked import Runs


def launches(plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
    """M, N and P have any strides."""
    p, config, arch, matrices, made = plan.problem, plan.config, plan.machine.arch, (given.M, given.N, given.P), []
    assert isinstance(config, SmallConfig)
    source = render_small.named(p.dtype, plan.kernel, config.tile, min(90, arch_number(arch)))
    down, across = tiles_of(p, config.tile)
    runs = Runs(p.stack, [x.layout.stack for x in matrices])
    for first, count in runs.starts():
        arguments = (
            *(x.member(first) for x in matrices),
            *(ctypes.c_int(extent) for extent in (p.m, p.k, p.n)),
            *(ctypes.c_longlong(s) for x in matrices for s in (x.layout.row, x.layout.col)),
            *(ctypes.c_int(how) for how in copies_of(p)),
            ctypes.c_int(p.accumulate),
            ctypes.c_int(across),
            ctypes.c_int(piece(p, config)),
            *(ctypes.c_longlong(step) for step in runs.steps),
        )
        grid, shared = (
            (down * across * config.cluster, count),
            config.tile.shared_bytes(p.dtype.itemsize, config.cluster),
        )
        made.append(
            Launch.of(source, plan.kernel, grid, (config.tile.threads,), arguments, shared, cluster=config.cluster)
        )
    return made
