"""The launches of `bulk_lines`: one for all members at a constant stride."""

from __future__ import annotations

import ctypes

from tilewise.core.plan import Plan
from tilewise.core.recipe import Launch, Scratch, structure
from tilewise.kernels.shared.layouts import along_k
from tilewise.kernels.shared.placed import Operands, Placed, reach_of
from tilewise.kernels.shared.stacked import Runs
from tilewise.kernels.shared.structs import struct_of
from tilewise.kernels.wgmma_gemm.bulk_lines.model import (
    KERNEL,
    BulkConfig,
    cut_over,
    given_of,
    memory_of,
    rows_of_p,
    share_of,
    tiles_of,
)
from tilewise.kernels.wgmma_gemm.bulk_lines.text import render_bulk_lines

MOST_ITEMS = 2**30


Product = struct_of("Product", "wgmma_gemm/bulk_lines/bulk_lines.cu")


def launches(plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
    """M and N are row-major or column-major, P is row-major; any alignment."""
    p, config, M, N, P, made = plan.problem, plan.config, given.M, given.N, given.P, list[Launch]()
    assert isinstance(config, BulkConfig)
    shared, size = given_of(p), p.dtype.itemsize
    memory, (lead_p, pitch_p) = (
        memory_of(cut_over(shared, config.cluster), config),
        rows_of_p(shared, config.tile, P.lead),
    )
    assert memory is not None
    lying = along_k(M.layout, M.rows, M.cols, "M"), along_k(N.layout, N.rows, N.cols, "N")
    source = render_bulk_lines.key(p.dtype, config.tile, lying)
    down, across = tiles_of(shared, config.tile)
    runs = Runs(p.stack, [x.layout.stack for x in (M, N, P)], MOST_ITEMS // (down * across))
    for at, count in runs.starts():
        items = count * down * across
        shapes = p.m, p.k, p.n, config.depth, memory.stages, memory.region_m, memory.stage, pitch_p
        product = structure(
            Product, *shapes, memory.staged, items, down * across, across, int(shared.cores.words),
            share_of(p.k, config.cluster), config.cluster, *(step * size for step in runs.steps), lead_p,
        )  # fmt: skip
        arguments = (
            *map(Placed.on, (M, N, P), at),
            product,
            *(reach_of(x, step, count) for x, step in zip((M, N), runs.steps, strict=False)),
            *(ctypes.c_longlong(x.lines[2]) for x in (M, N)),
            *(ctypes.c_int(pitch) for pitch in (memory.pitch_m, memory.pitch_n)),
        )
        blocks = items * config.cluster if config.cluster > 1 else min(items, plan.machine.units * config.resident)
        block = (config.tile.threads,)
        made.append(Launch.of(source, KERNEL, (blocks,), block, arguments, memory.total, True, config.cluster))
    return made
