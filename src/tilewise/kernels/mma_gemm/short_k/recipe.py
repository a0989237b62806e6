"""The launches of `short_k`: operands turned first where that is the way, then one for all members that lie evenly."""

from __future__ import annotations

import ctypes

from tilewise.core.plan import Plan
from tilewise.core.problem import Layout
from tilewise.core.recipe import Launch, Scratch
from tilewise.kernels.mma_gemm.short_k import model
from tilewise.kernels.mma_gemm.short_k.model import KERNEL, ShortConfig
from tilewise.kernels.mma_gemm.short_k.text import render_short_k
from tilewise.kernels.shared.placed import Operands, Placed
from tilewise.kernels.shared.stacked import Runs
from tilewise.kernels.transforms.turn import Lines, turning


def launches(plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
    """M and N have any strides, P rows of elements side by side."""
    p, config, size = plan.problem, plan.config, plan.problem.dtype.itemsize
    assert isinstance(config, ShortConfig)
    sides, made = {"M": given.M, "N": given.N}, list[Launch]()
    if config.transposed:
        lines = {side: Lines(sides[side], side == "M", model.TRANSPOSED_BYTES) for side in config.transposed}
        held = scratch.take_all({side: x.bytes for side, x in lines.items()})
        made.append(turning([(lines[side], held[side]) for side in config.transposed], ()))
        for side, x in lines.items():
            lead = x.lead_to // size
            layout = Layout(lead, 1) if side == "M" else Layout(1, lead)
            sides[side] = Placed(held[side], p.dtype, sides[side].rows, sides[side].cols, layout)
    M, N, P = sides["M"], sides["N"], given.P
    widths = [8 if side in config.transposed else model.width_of(p, side) for side in "MN"]
    classes, panels, across = (
        model.classes_of(p),
        model.panels_of(p, config.held),
        model.across_of(p.n, config.held.cols),
    )
    rows = model.row_warps(p, config, plan.machine.units)
    blocks = panels * -(-rows // (model.WARPS // across))
    runs = Runs(p.stack, [x.layout.stack for x in (M, N, P)])
    for first, count in runs.starts():
        arguments = (
            *(x.member(first) for x in (M, N, P)),
            *(ctypes.c_int(extent) for extent in (p.m, p.k, p.n)),
            *(ctypes.c_longlong(s) for x in (M, N) for s in (x.layout.row, x.layout.col)),
            ctypes.c_longlong(P.lead),
            *(ctypes.c_int(x) for x in (*widths, classes, across, panels, rows)),
            *(ctypes.c_longlong(step) for step in runs.steps),
        )
        source = render_short_k.named(p.dtype, config.held)
        made.append(Launch.of(source, KERNEL, (blocks, count), (32 * model.WARPS,), arguments))
    return made
