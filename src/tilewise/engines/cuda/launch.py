"""A Plan on arrays that are already on the card: pack what must be packed, then one launch a member of the stack.

Everything is queued on one stream and nothing is waited for. Workspaces are freed in the order of that stream, also
when something fails midway.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import product
from typing import Any

from tilewise.algebra.dtypes import DTYPES, DType
from tilewise.arrays.card import open_card
from tilewise.engines.cuda import bf16x6, k_major, mma_sync, plain, tensor_cores
from tilewise.engines.cuda.finish import add_parts, epilogue_argument
from tilewise.engines.cuda.placed import Placed, workspace
from tilewise.engines.cuda.queue import Launch, kernel_function
from tilewise.float8_scales import Scales
from tilewise.kernels.render import render, render_pack
from tilewise.planning import make_plan
from tilewise.plans import GRID_Y_LIMIT, Plan, packed_lead
from tilewise.problem import Layout, row_major

FUSED = (tensor_cores.KERNEL, mma_sync.KERNEL)  # kernels that apply an epilogue themselves


def run(plan: Plan, M: int, N: int, P: int, device: str, stream: Any, where: int = 0) -> None:
    """Queue the plan's work: M, N and P are addresses on `device`, laid out as the plan's problem says; `where` is that
    of the k that won, row by row, if it is asked for."""
    prepare(plan, M, N, P, device, stream, where)()


def run_scaled(plan: Plan, M: int, N: int, P: int, device: str, stream: Any, scales: Scales) -> None:
    """The same for a product whose rows and columns are scaled; its P has rows side by side or is made so first."""
    p = plan.problem
    if not (p.m and p.n):
        return
    placed_m, placed_n = Placed(M, p.dtype_m, p.m, p.k, p.layout_m), Placed(N, p.dtype_n, p.k, p.n, p.layout_n)
    target = Placed(P, p.result, p.m, p.n, p.layout_p)
    with ExitStack() as workspaces:
        made = target
        if p.layout_p.leading_dimension(p.m, p.n) is None:
            made = workspace(p.m, p.n, (), p.result, p.n, device, stream, workspaces)
        k_major.prepare(plan, placed_m, placed_n, made, device, stream, scales)()
        if made is not target:
            copy(made, target, (), device, stream)


def prepare(
    plan: Plan, M: int, N: int, P: int, device: str, stream: Any, where: int = 0, bias: int = 0
) -> Callable[[], None]:
    """Compile, load and lay out the arguments now; what is returned only launches, as often as one likes."""
    open_card(device)
    p = plan.problem
    if not (p.m and p.n and p.members):
        return lambda: None
    placed_m = Placed(M, p.dtype_m, p.m, p.k, p.layout_m)
    placed_n = Placed(N, p.dtype_n, p.k, p.n, p.layout_n)
    target = Placed(P, p.result, p.m, p.n, p.layout_p)
    winners = Placed(where, DTYPES["int64"], p.m, p.n, row_major(p.m, p.n, p.stack)) if where else None
    if p.epilogue and plan.kernel not in FUSED:
        return lambda: _epilogue_after(plan, M, N, target, bias, device, stream)
    if plan.packs or p.layout_p.leading_dimension(p.m, p.n) is None:
        return lambda: _by_way_of_workspaces(plan, placed_m, placed_n, target, winners, bias, device, stream)
    if plan.kernel == tensor_cores.KERNEL:
        return tensor_cores.prepare(plan, placed_m, placed_n, target, device, stream, bias)
    if plan.kernel == mma_sync.KERNEL:
        return mma_sync.prepare(plan, placed_m, placed_n, target, device, stream, bias)
    if plan.kernel == k_major.KERNEL:
        return k_major.prepare(plan, placed_m, placed_n, target, device, stream)
    if plan.kernel == bf16x6.KERNEL:
        return bf16x6.prepare(plan, placed_m, placed_n, target, device, stream)
    if plan.kernel in plain.KERNELS:
        return plain.prepare(plan, placed_m, placed_n, target, device, stream, winners)
    launches = _launches(plan, placed_m, placed_n, target, device, stream)
    if len(launches) == 1:
        return launches[0]

    def queue() -> None:
        for launch in launches:
            launch()

    return queue


def _epilogue_after(plan: Plan, M: int, N: int, P: Placed, bias: int, device: str, stream: Any) -> None:
    """The bare product in a workspace, then one pass from there to P."""
    p, sums = plan.problem, plan.problem.bare
    with ExitStack() as workspaces:
        work = workspace(p.m, p.n, p.stack, sums.result, p.n, device, stream, workspaces)
        prepare(make_plan(sums, plan.machine, plan.kernel), M, N, work.pointer, device, stream)()
        made, lead = P, P.layout.leading_dimension(p.m, p.n)
        if lead is None:
            made, lead = workspace(p.m, p.n, p.stack, p.result, p.n, device, stream, workspaces), p.n
            if p.accumulate:
                copy(P, made, p.stack, device, stream)
        argument = epilogue_argument(p.epilogue, sums.result.name, bias)
        for member in product(*(range(extent) for extent in p.stack)):
            place = (work.member(member), p.n, made.member(member), lead)
            add_parts(p, place, 1, argument, device, stream)()
        if made is not P:
            copy(made, P, p.stack, device, stream)


def _by_way_of_workspaces(
    plan: Plan, M: Placed, N: Placed, P: Placed, winners: Placed | None, bias: int, device: str, stream: Any
) -> None:
    """Pack M or N first, or make P in rows side by side and scatter it afterwards."""
    p = plan.problem
    with ExitStack() as workspaces:
        if "M" in plan.packs:
            M = packed(M, p.stack, p.dtype, device, stream, workspaces)
        if "N" in plan.packs:
            N = packed(N, p.stack, p.dtype, device, stream, workspaces)
        made = P
        if p.layout_p.leading_dimension(p.m, p.n) is None:
            made = workspace(p.m, p.n, p.stack, p.result, p.n, device, stream, workspaces)
            if p.accumulate:
                copy(P, made, p.stack, device, stream)
        if plan.kernel == tensor_cores.KERNEL:
            tensor_cores.prepare(plan, M, N, made, device, stream, bias)()
        elif plan.kernel == mma_sync.KERNEL:
            mma_sync.prepare(plan, M, N, made, device, stream, bias)()
        elif plan.kernel == k_major.KERNEL:
            k_major.prepare(plan, M, N, made, device, stream)()
        elif plan.kernel == bf16x6.KERNEL:
            bf16x6.prepare(plan, M, N, made, device, stream)()
        elif plan.kernel in plain.KERNELS:
            plain.prepare(plan, M, N, made, device, stream, winners)()
        else:
            for launch in _launches(plan, M, N, made, device, stream):
                launch()
        if made is not P:
            copy(made, P, p.stack, device, stream)


def _launches(plan: Plan, M: Placed, N: Placed, P: Placed, device: str, stream: Any) -> list[Launch]:
    """One launch a member; a grid taller than CUDA allows comes in bands of rows."""
    p, g = plan.problem, plan.geometry
    function = kernel_function(render(plan), plan.kernel, device)
    index = ctypes.c_int if plan.index == "int" else ctypes.c_longlong
    leads = []
    for matrix in (M, N, P):
        lead = matrix.layout.leading_dimension(matrix.rows, matrix.cols)
        assert lead is not None
        leads.append(lead)
    band = GRID_Y_LIMIT * g.rows
    launches = []
    for member in product(*(range(extent) for extent in p.stack)):
        for top in range(0, p.m, band):
            rows = min(band, p.m - top)
            addresses = (
                M.member(member) + top * leads[0] * M.dtype.itemsize,
                N.member(member),
                P.member(member) + top * leads[2] * P.dtype.itemsize,
            )
            arguments = (
                *(ctypes.c_void_p(address) for address in addresses),
                *(ctypes.c_int(extent) for extent in (rows, p.k, p.n)),
                *(index(lead) for lead in leads),
            )
            grid = (plan.grid[1], math.ceil(rows / g.rows))
            launches.append(Launch(function, grid, g.block, arguments, stream))
    return launches


def packed(
    source: Placed, stack: tuple[int, ...], dtype: DType, device: str, stream: Any, workspaces: ExitStack
) -> Placed:
    """A copy with rows side by side and of the kernel's dtype; axes it is broadcast over stay broadcast."""
    own = tuple(1 if stride == 0 else extent for extent, stride in zip(stack, source.layout.stack, strict=True))
    made = workspace(source.rows, source.cols, own, dtype, packed_lead(source.cols), device, stream, workspaces)
    copy(source, made, own, device, stream)
    strides = tuple(0 if e == 1 else s for e, s in zip(own, made.layout.stack, strict=True))
    return Placed(made.pointer, dtype, made.rows, made.cols, Layout(made.layout.row, 1, strides))


def copy(source: Placed, target: Placed, stack: tuple[int, ...], device: str, stream: Any) -> None:
    """Cell by cell from any strides and dtype to any other, on the card."""
    if not (source.rows and source.cols):
        return
    along_rows = abs(source.layout.row) < abs(source.layout.col)
    function = kernel_function(render_pack(source.dtype, target.dtype, along_rows), "pack", device)
    for member in product(*(range(extent) for extent in stack)):
        for top, rows, left, cols in _bands(source.rows, source.cols, along_rows):
            fast, slow = (rows, cols) if along_rows else (cols, rows)
            strides = (source.layout.row, source.layout.col, target.layout.row, target.layout.col)
            arguments = (
                ctypes.c_void_p(_address(source, member, top, left)),
                ctypes.c_void_p(_address(target, member, top, left)),
                ctypes.c_int(rows),
                ctypes.c_int(cols),
                *(ctypes.c_longlong(stride) for stride in strides),
            )
            Launch(function, (math.ceil(fast / 32), math.ceil(slow / 8)), (32, 8), arguments, stream)()


def _address(matrix: Placed, member: tuple[int, ...], row: int, col: int) -> int:
    return matrix.member(member) + (row * matrix.layout.row + col * matrix.layout.col) * matrix.dtype.itemsize


def _bands(rows: int, cols: int, along_rows: bool) -> Iterator[tuple[int, int, int, int]]:
    """Pieces whose slow axis fits CUDA's limit on gridDim.y."""
    limit = GRID_Y_LIMIT * 8
    slow = cols if along_rows else rows
    for start in range(0, slow, limit):
        size = min(limit, slow - start)
        yield (0, rows, start, size) if along_rows else (start, size, 0, cols)
