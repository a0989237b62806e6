"""The launch of `half_dots`: one, k cut over warps and over the blocks of a cluster."""

from __future__ import annotations

import ctypes

from tilewise.core.plan import Plan
from tilewise.core.recipe import Launch, Scratch, structure
from tilewise.kernels.mma_gemm.half_dots.configs import WARPS, DotsConfig
from tilewise.kernels.mma_gemm.half_dots.model import KERNEL
from tilewise.kernels.mma_gemm.half_dots.text import render_half_dots
from tilewise.kernels.shared.placed import Operands, Placed
from tilewise.kernels.transforms.realign import lines_of
from tilewise.kernels.transforms.split_k import epilogue_argument


class _Lines(ctypes.Structure):
    """The kernel's `Lines`."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("few_at", "long_at", "P")),
        *((name, ctypes.c_longlong) for name in ("few_stride", "few_k", "lead", "p_few", "p_long")),
        *(
            (name, ctypes.c_int)
            for name in ("few", "k", "length", "classes", "slices", "stage", "swapped", "log_lanes")
        ),
    )


def launches(plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
    p, config = plan.problem, plan.config
    assert isinstance(config, DotsConfig)
    few, long = (given.N, given.M) if config.swapped else (given.M, given.N)
    count, length = (p.n, p.m) if config.swapped else (p.m, p.n)
    lines = structure(
        _Lines, few.pointer, long.pointer, given.P.pointer, *_strides(few, config.swapped), lines_of(long)[2],
        *_strides(given.P, config.swapped), count, p.k, length, config.classes, config.slices, config.stage(p.k),
        config.swapped,
        _log_lanes(count),
    )  # fmt: skip
    source = render_half_dots.named(p.dtype, config.tile, p.accumulate, p.epilogue)
    arguments = lines, epilogue_argument(p.epilogue, "float32", given.bias)
    grid, shared = (config.blocks(length),), config.shared_bytes(p.k)
    return [Launch.of(source, KERNEL, grid, (32 * WARPS,), arguments, shared, cluster=config.cluster)]


def _strides(x: Placed, swapped: bool) -> tuple[int, int]:
    return (x.layout.col, x.layout.row) if swapped else (x.layout.row, x.layout.col)


def _log_lanes(few: int) -> int:
    """Threads that bring one of the few lines, where k lies side by side in them: all of them the lines together."""
    return (32 * WARPS).bit_length() - 1 - (few - 1).bit_length()
