"""The launches of the mma.sync main loops: one for all members at a constant stride."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace

from tilewise.core.machine import arch_number
from tilewise.core.plan import Plan
from tilewise.core.problem import Layout
from tilewise.core.recipe import Address, Argument, Launch, Scratch, structure
from tilewise.kernels.mma_gemm.direct_half import model as direct
from tilewise.kernels.mma_gemm.direct_half.model import HalfTile
from tilewise.kernels.mma_gemm.half_dots.model import WARPS, DotsConfig
from tilewise.kernels.mma_gemm.short_k import model as short
from tilewise.kernels.mma_gemm.sliced_k import model as sliced
from tilewise.kernels.mma_gemm.text import render_direct_half, render_half_dots, render_short_k, render_sliced
from tilewise.kernels.shared.groups import most_tiles, walk_launch
from tilewise.kernels.shared.layouts import along_k
from tilewise.kernels.shared.placed import Operands, Placed, reach_of
from tilewise.kernels.shared.stack_launches import stack_launches
from tilewise.kernels.shared.stacked import Runs
from tilewise.kernels.shared.structs import struct_of
from tilewise.kernels.transforms.sums import epilogue_argument
from tilewise.kernels.transforms.transpose import Lines, transposing


def of_sliced_k(plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
    """M, N and P have any strides. A transposed configuration multiplies the transposes: Pᵀ = Nᵀ Mᵀ."""
    p, config, size = plan.problem, plan.config, plan.problem.dtype.itemsize
    assert isinstance(config, sliced.SlicedConfig)
    source = render_sliced.key(p.dtype, config.tile, min(90, arch_number(plan.machine.arch)))
    (how_m, how_n), (_, groups) = (how for how, _ in sliced.read(p)), sliced.groups_of(p, config)
    m, n, P = given.M.layout, given.N.layout, given.P.layout
    sides = [(given.M, p.m, m.row, m.col, how_m), (given.N, p.n, n.col, n.row, how_n)]
    steps_p = (P.row, P.col)
    if config.transposed:
        sides.reverse()
        steps_p = (P.col, P.row)
    (left, lines_left, *strides_left, how_left), (right, lines_right, *strides_right, how_right) = sides
    wide = sliced.teams_across(p, config)
    own = (
        *(ctypes.c_int(stride * size) for stride in (*strides_left, *strides_right)),
        *(ctypes.c_longlong(step) for step in steps_p),
        *(ctypes.c_int(x) for x in (how_left, how_right, p.accumulate, groups)),
        ctypes.c_uint((2**32 - 1) // groups),  # instead of a division on the card
        *(ctypes.c_int(x.bit_length() - 1) for x in (config.slices, config.cluster, wide)),
        ctypes.c_int(sliced.piece(p, config)),
    )
    blocks, shared = sliced.blocks_of(p, config) * config.cluster, sliced.shared_bytes(p, config)
    return stack_launches(
        p, (left, right, given.P), source, sliced.KERNEL, blocks, 32 * config.warps, own, shared, config.cluster,
        (lines_left, p.k, lines_right),
    )  # fmt: skip


def of_short_k(plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
    """M and N have any strides, and are transposed first where the configuration says so; P has contiguous rows."""
    p, config, size = plan.problem, plan.config, plan.problem.dtype.itemsize
    assert isinstance(config, short.ShortConfig)
    sides, made = {"M": given.M, "N": given.N}, list[Launch]()
    if config.transposed:
        lines = {side: Lines(sides[side], side == "M", short.TRANSPOSED_BYTES) for side in config.transposed}
        held = scratch.take_all({side: x.bytes for side, x in lines.items()})
        made += transposing([(lines[side], held[side]) for side in config.transposed], ())
        for side, x in lines.items():
            lead = x.lead_to // size
            layout = Layout(lead, 1) if side == "M" else Layout(1, lead)
            sides[side] = Placed(held[side], p.dtype, sides[side].rows, sides[side].cols, layout)
    M, N, P = sides["M"], sides["N"], given.P
    widths = [8 if side in config.transposed else width for side, width in short.widths_of(p).items()]
    panels, across = short.panels_of(p, config.held), short.across_of(p.n, config.held.cols)
    rows = short.row_warps(p, config, plan.machine.units)
    own = (
        *(ctypes.c_longlong(s) for x in (M, N) for s in (x.layout.row, x.layout.col)),
        ctypes.c_longlong(P.lead),
        *(ctypes.c_int(x) for x in (*widths, short.classes_of(p), across, panels, rows)),
    )
    source, blocks = render_short_k.key(p.dtype, config.held), panels * -(-rows // (short.WARPS // across))
    return made + stack_launches(p, (M, N, P), source, short.KERNEL, blocks, 32 * short.WARPS, own)


_Lines = struct_of("Lines", "mma_gemm/half_dots/lines.cuh")


def of_half_dots(plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
    """Split-K over warps and over the blocks of a cluster."""
    p, config = plan.problem, plan.config
    assert isinstance(config, DotsConfig)
    few, long = (given.N, given.M) if config.swapped else (given.M, given.N)
    count, length = (p.n, p.m) if config.swapped else (p.m, p.n)
    log_lanes = (32 * WARPS).bit_length() - 1 - (count - 1).bit_length()  # threads that bring one of the few rows
    lines = structure(
        _Lines, few.pointer, long.pointer, given.P.pointer, *_strides(few, config.swapped), long.lines[2],
        *_strides(given.P, config.swapped), count, p.k, length, config.classes, config.slices, config.stage(p.k),
        config.swapped, log_lanes,
    )  # fmt: skip
    source = render_half_dots.key(p.dtype, config.width, p.accumulate, p.epilogue)
    arguments = lines, epilogue_argument(p.epilogue, "float32", given.bias)
    grid, shared = (config.blocks(length),), config.shared_bytes(p.k)
    return [Launch.of(source, plan.kernel, grid, (32 * WARPS,), arguments, shared, cluster=config.cluster)]


def _strides(x: Placed, swapped: bool) -> tuple[int, int]:
    return (x.layout.col, x.layout.row) if swapped else (x.layout.row, x.layout.col)


MOST_BLOCKS = 2**31 - 1


def of_direct_half(plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
    """M and N are row-major or column-major, P is row-major; any alignment."""
    p, tile, M, N, P = plan.problem, plan.config, given.M, given.N, given.P
    assert isinstance(tile, HalfTile)
    lying = along_k(M.layout, M.rows, M.cols, "M"), along_k(N.layout, N.rows, N.cols, "N")
    one = tile if tile.cluster == 1 else replace(tile, cluster=1)  # the text does not depend on the cluster size
    source = render_direct_half.key(p.dtype, one, lying, p.accumulate, p.epilogue, p.groups is not None)
    down, across = direct.tiles_of(p, tile)

    def launch(
        blocks: int, at: Sequence[int], reach: list[Argument], steps: Sequence[int], walk: Address | None
    ) -> Launch:
        arguments = (
            *map(Placed.on, (M, N, P), at),
            epilogue_argument(p.epilogue, "float32", given.bias),
            *(ctypes.c_int(extent) for extent in (p.m, p.k, p.n)),
            *(ctypes.c_longlong(x) for x in (M.lines[2], N.lines[2], P.lead)),
            *reach,
            *(ctypes.c_int(x) for x in (down * across, across)),
            *(ctypes.c_longlong(step) for step in steps),
            walk,
        )
        block, shared = (tile.threads,), tile.shared_bytes
        return Launch.of(source, plan.kernel, (blocks,), block, arguments, shared, cluster=tile.cluster)

    if p.groups is not None:
        walk, found = walk_launch(p, tile.rows, scratch)
        step = N.layout.stack[0]
        reach = [reach_of(M, 0, 1), reach_of(N, step, p.groups.count)]
        return [walk, launch(most_tiles(p, tile.rows) * across, (0, 0, 0), reach, (0, step, 0), found)]
    each = down * across * tile.cluster
    runs, made = Runs(p.stack, [x.layout.stack for x in (M, N, P)], MOST_BLOCKS // each), list[Launch]()
    for at, count in runs.starts():
        reach = [reach_of(x, step, count) for x, step in zip((M, N), runs.steps, strict=False)]
        made.append(launch(each * count, at, reach, runs.steps, None))
    return made
