"""The launches of `sliced_k`: one for all members of a stack that lie evenly."""

from __future__ import annotations

import ctypes

from tilewise.core.machine import arch_number
from tilewise.core.plan import Plan
from tilewise.core.recipe import Launch, Scratch
from tilewise.kernels.mma_gemm.sliced_k.model import (
    KERNEL,
    SlicedConfig,
    blocks_of,
    groups_of,
    piece,
    read,
    shared_bytes,
    teams_across,
)
from tilewise.kernels.mma_gemm.sliced_k.text import render_sliced
from tilewise.kernels.shared.placed import Operands
from tilewise.kernels.shared.stacked import Runs


def launches(plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
    """M, N and P have any strides. A turned way multiplies the transposes: Pᵀ = Nᵀ Mᵀ."""
    p, config, made, size = plan.problem, plan.config, [], plan.problem.dtype.itemsize
    assert isinstance(config, SlicedConfig)
    source = render_sliced.named(p.dtype, config.tile, min(90, arch_number(plan.machine.arch)))
    (how_m, how_n), (_, groups), wide = (how for how, _ in read(p)), groups_of(p, config), teams_across(p, config)
    m, n, P = given.M.layout, given.N.layout, given.P.layout
    sides = [(given.M, p.m, m.row, m.col, how_m), (given.N, p.n, n.col, n.row, how_n)]
    steps_p = (P.row, P.col)
    if config.transposed:
        sides.reverse()
        steps_p = (P.col, P.row)
    (left, lines_left, *strides_left, how_left), (right, lines_right, *strides_right, how_right) = sides
    matrices = (left, right, given.P)
    runs = Runs(p.stack, [x.layout.stack for x in matrices])
    for first, count in runs.starts():
        arguments = (
            *(x.member(first) for x in matrices),
            *(ctypes.c_int(extent) for extent in (lines_left, p.k, lines_right)),
            *(ctypes.c_int(stride * size) for stride in (*strides_left, *strides_right)),
            *(ctypes.c_longlong(step) for step in steps_p),
            *(ctypes.c_int(x) for x in (how_left, how_right, p.accumulate)),
            ctypes.c_int(groups),
            ctypes.c_uint((2**32 - 1) // groups),  # instead of a division on the card
            *(ctypes.c_int(x.bit_length() - 1) for x in (config.slices, config.cluster, wide)),
            ctypes.c_int(piece(p, config)),
            *(ctypes.c_longlong(step) for step in runs.steps),
        )
        grid, shared = (blocks_of(p, config) * config.cluster, count), shared_bytes(p, config)
        made.append(Launch.of(source, KERNEL, grid, (32 * config.warps,), arguments, shared, cluster=config.cluster))
    return made
