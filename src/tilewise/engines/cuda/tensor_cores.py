"""Launching `kernels/hopper/tensor_cores.cu`: descriptors for the copy engine, operands realigned where it needs that.

Descriptors are made once for each (address, shape, box) and kept.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from functools import lru_cache
from itertools import product
from typing import Any

from tilewise.engines.cuda.placed import SCRATCH_LOCK, Placed, scratch
from tilewise.engines.cuda.queue import Launch, kernel_function
from tilewise.errors import EngineError
from tilewise.kernels.render_hopper import render_realign, render_tensor_cores
from tilewise.planning import Plan
from tilewise.problem import Layout, row_major
from tilewise.tensor_tiles import DEPTH, KERNEL, along_columns, contiguous_lines, route, tile_of

REALIGN_BLOCKS = 1056  # of 256 threads: enough to fill the card
__all__ = ["KERNEL", "prepare"]

ROW_ELEMENTS = 64  # realigned rows start on 128-byte lines: a box row that straddles two costs the copy engine twice


def prepare(plan: Plan, M: Placed, N: Placed, P: Placed, device: str, stream: Any) -> Callable[[], None]:
    """Everything that can be done before the launch; M and N have lines of elements side by side, P rows."""
    p = plan.problem
    ways = [route(x.layout, x.rows, x.cols, x.dtype, p.dtype) for x in (M, N)]
    if ways == ["as it is", "as it is"]:
        launches = _launches(plan, M, N, P, device, stream)

        def queue() -> None:
            for launch in launches:
                launch()

        return queue

    prepared: list[tuple[list[Any], list[Launch]]] = []  # the scratch buffers and the launches made for them

    def realign_and_queue() -> None:
        with SCRATCH_LOCK:
            buffers = [
                scratch(_scratch_bytes(x, p.stack), role, device, stream) if way == "realigned" else None
                for x, way, role in zip((M, N), ways, "MN", strict=True)
            ]
            if not prepared or any(a is not b for a, b in zip(prepared[0][0], buffers, strict=True)):
                operands, jobs = [], []
                for source, buffer in zip((M, N), buffers, strict=True):
                    made, work = (source, []) if buffer is None else _realigned(source, p.stack, int(buffer.handle))
                    operands.append(made)
                    jobs += work
                product_launches = _launches(plan, operands[0], operands[1], P, device, stream)
                prepared[:] = [(buffers, _realign_launches(jobs, device, stream) + product_launches)]
            for launch in prepared[0][1]:
                launch()

    return realign_and_queue


def _launches(plan: Plan, M: Placed, N: Placed, P: Placed, device: str, stream: Any) -> list[Launch]:
    p, g, tile = plan.problem, plan.geometry, tile_of(plan.geometry)
    lead = P.layout.leading_dimension(P.rows, P.cols)
    assert lead is not None
    whole = all(stride % 8 == 0 for stride in (lead, *P.layout.stack)) and P.pointer % 16 == 0
    m_along_k, n_along_k = not along_columns(M.layout, M.rows, M.cols), along_columns(N.layout, N.rows, N.cols)
    source = render_tensor_cores(
        p.dtype.name, tile, m_along_k=m_along_k, n_along_k=n_along_k, p_aligned=whole, accumulate=p.accumulate,
        unrounded=p.unrounded,
    )  # fmt: skip
    function = kernel_function(source, plan.kernel, device, g.shared_bytes)
    blocks = min(plan.machine.units, plan.grid[0] * plan.grid[1])
    launches = []
    for member in product(*(range(extent) for extent in p.stack)):
        arguments = (
            _box_map(M, member, tile.rows if m_along_k else DEPTH),
            _box_map(N, member, tile.cols if n_along_k else DEPTH),
            ctypes.c_void_p(P.member(member)),
            ctypes.c_int(p.m),
            ctypes.c_int(p.k),
            ctypes.c_int(p.n),
            ctypes.c_longlong(lead),
        )
        launches.append(Launch(function, (blocks,), g.block, arguments, stream, g.shared_bytes))
    return launches


def _box_map(matrix: Placed, member: tuple[int, ...], box_lines: int) -> Any:
    lines = contiguous_lines(matrix.layout, matrix.rows, matrix.cols)
    assert lines is not None
    count, length, lead = lines
    return tensor_map(matrix.member(member), count, length, lead if count > 1 else -(-length // 8) * 8, box_lines)


@lru_cache(maxsize=4096)
def tensor_map(pointer: int, lines: int, length: int, lead: int, box_lines: int) -> Any:
    """The copy engine's description of a matrix of 2-byte elements: boxes of 64 elements × `box_lines`, swizzled."""
    from cuda.bindings import driver

    code, made = driver.cuTensorMapEncodeTiled(
        driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_UINT16,
        2,
        pointer,
        [driver.cuuint64_t(length), driver.cuuint64_t(lines)],
        [driver.cuuint64_t(2 * lead)],
        [driver.cuuint32_t(DEPTH), driver.cuuint32_t(box_lines)],
        [driver.cuuint32_t(1), driver.cuuint32_t(1)],
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    if int(code):
        raise EngineError(f"the copy engine refused a matrix of {lines} lines of {length}, {lead} apart: {code}")
    return made


class _Lines(ctypes.Structure):
    """A matrix as `realign` sees it, and where its lines go."""

    _fields_ = (
        ("source", ctypes.c_void_p),
        ("target", ctypes.c_void_p),
        ("lines", ctypes.c_int),
        ("length", ctypes.c_int),
        ("lead", ctypes.c_longlong),
        ("lead_to", ctypes.c_longlong),
    )


def _own_stack(source: Placed, stack: tuple[int, ...]) -> tuple[int, ...]:
    """The members an operand really has: an axis it is broadcast over counts once."""
    return tuple(1 if stride == 0 else extent for extent, stride in zip(stack, source.layout.stack, strict=True))


def _realigned_lead(length: int) -> int:
    return -(-length // ROW_ELEMENTS) * ROW_ELEMENTS


def _scratch_bytes(source: Placed, stack: tuple[int, ...]) -> int:
    lines = contiguous_lines(source.layout, source.rows, source.cols)
    assert lines is not None
    count, length, _ = lines
    return 2 * math.prod(_own_stack(source, stack)) * count * _realigned_lead(length)


def _realigned(source: Placed, stack: tuple[int, ...], pointer: int) -> tuple[Placed, list[_Lines]]:
    """The same lines at `pointer`, each on a boundary of its own, and the work that brings them there."""
    lines = contiguous_lines(source.layout, source.rows, source.cols)
    assert lines is not None
    count, length, lead = lines
    own, lead_to = _own_stack(source, stack), _realigned_lead(length)
    fresh = row_major(count, lead_to, own).stack
    made = Placed(pointer, source.dtype, count, length, Layout(lead_to, 1, fresh))
    members = product(*(range(extent) for extent in own))
    jobs = [_Lines(source.member(i), made.member(i), count, length, lead, lead_to) for i in members]
    strides = tuple(0 if extent == 1 else stride for extent, stride in zip(own, fresh, strict=True))
    columns = along_columns(source.layout, source.rows, source.cols)
    layout = Layout(1, lead_to, strides) if columns else Layout(lead_to, 1, strides)
    return Placed(pointer, source.dtype, source.rows, source.cols, layout), jobs


def _realign_launches(jobs: list[_Lines], device: str, stream: Any) -> list[Launch]:
    """Two matrices a launch: their tails overlap."""
    function = kernel_function(render_realign(), "realign", device)
    launches = []
    for first in range(0, len(jobs), 2):
        pair = jobs[first : first + 2]
        across = math.ceil(max(job.lines for job in pair) / 8)
        along = max(1, min(math.ceil(max(job.length for job in pair) / 256), math.ceil(REALIGN_BLOCKS / across)))
        launches.append(Launch(function, (across, along, len(pair)), (256,), (pair[0], pair[-1]), stream))
    return launches
