"""Launching `kernels/hopper/realign.cu` and `realign_with_edges.cu`: lines of 2-byte elements move onto 128-byte
boundaries, and are multiplied with an edge on the way."""

from __future__ import annotations

import ctypes
import math
from itertools import product
from typing import Any

from tilewise.engines.cuda.placed import Placed
from tilewise.engines.cuda.queue import Launch, kernel_function
from tilewise.kernels.render_hopper import (
    SEGMENT,
    SUMMED_ACROSS,
    SUMMED_ALONG,
    render_realign,
    render_realign_with_edges,
)
from tilewise.problem import Layout, row_major
from tilewise.tensor_tiles import along_columns, contiguous_lines

ROW_ELEMENTS = 64  # realigned rows start on 128-byte lines: a box row that straddles two costs the copy engine twice
LINES = 8  # of a block, as the kernel has them
ALONG, ENOUGH = 2, 1024  # blocks that share a line; more only where lines are too few for the card


class Lines(ctypes.Structure):
    """The kernel's `Lines`: a matrix, and where its lines go."""

    _fields_ = (
        ("source", ctypes.c_void_p),
        ("to", ctypes.c_void_p),
        ("lines", ctypes.c_int),
        ("length", ctypes.c_int),
        ("lead", ctypes.c_longlong),
        ("lead_to", ctypes.c_longlong),
    )


class Edge(ctypes.Structure):
    """The kernel's `Edge`: a few last rows or columns, k elements each, and where they go side by side."""

    _fields_ = (
        ("source", ctypes.c_void_p),
        ("to", ctypes.c_void_p),
        ("k", ctypes.c_int),
        ("count", ctypes.c_int),
        ("step", ctypes.c_longlong),
        ("next", ctypes.c_longlong),
    )


class Sums(ctypes.Structure):
    """The kernel's `Sums`: the edge that lines are multiplied with, and where planes of sums go, a part of k each."""

    _fields_ = (
        ("edge", ctypes.c_void_p),
        ("step", ctypes.c_longlong),
        ("planes", ctypes.c_void_p),
        ("pitch", ctypes.c_longlong),
    )


def planes_of(source: Placed, along_k: bool) -> tuple[int, int]:
    """(planes, their pitch) of an operand's sums."""
    lines, length, _ = lines_of(source)
    if along_k:
        return math.ceil(length / SUMMED_ALONG[0]), -(-lines // 4) * 4
    return math.ceil(lines / SUMMED_ACROSS[1]), -(-length // 4) * 4


def lines_of(source: Placed) -> tuple[int, int, int]:
    """(lines, length, lead) of a matrix that has them."""
    lines = contiguous_lines(source.layout, source.rows, source.cols)
    assert lines is not None
    return lines


def _own_stack(source: Placed, stack: tuple[int, ...]) -> tuple[int, ...]:
    """The members an operand really has: an axis it is broadcast over counts once."""
    return tuple(1 if stride == 0 else extent for extent, stride in zip(stack, source.layout.stack, strict=True))


def _lead_to(length: int) -> int:
    return -(-length // ROW_ELEMENTS) * ROW_ELEMENTS


def scratch_bytes(source: Placed, stack: tuple[int, ...]) -> int:
    count, length, _ = lines_of(source)
    return 2 * math.prod(_own_stack(source, stack)) * count * _lead_to(length)


def realigned(source: Placed, stack: tuple[int, ...], pointer: int) -> tuple[Placed, list[Lines]]:
    """The same lines at `pointer`, each on a boundary of its own, and the work that brings them there."""
    count, length, lead = lines_of(source)
    own, lead_to = _own_stack(source, stack), _lead_to(length)
    fresh = row_major(count, lead_to, own).stack
    made = Placed(pointer, source.dtype, count, length, Layout(lead_to, 1, fresh))
    members = product(*(range(extent) for extent in own))
    jobs = [Lines(source.member(i), made.member(i), count, length, lead, lead_to) for i in members]
    strides = tuple(0 if extent == 1 else stride for extent, stride in zip(own, fresh, strict=True))
    columns = along_columns(source.layout, source.rows, source.cols)
    layout = Layout(1, lead_to, strides) if columns else Layout(lead_to, 1, strides)
    return Placed(pointer, source.dtype, source.rows, source.cols, layout), jobs


def realign_launches(jobs: list[Lines], device: str, stream: Any) -> list[Launch]:
    """Two matrices a launch: their tails overlap."""
    launches: list[Launch] = []
    for first in range(0, len(jobs), 2):
        pair = jobs[first : first + 2]
        function = kernel_function(render_realign(), "realign", device)
        across = math.ceil(max(lines.lines for lines in pair) / LINES)
        along = math.ceil(max(lines.length for lines in pair) / SEGMENT)
        along = min(along, max(ALONG, math.ceil(ENOUGH / across)))
        arguments = (*pair, Lines())[:2]
        launches.append(Launch(function, (across, along, len(pair)), (256,), arguments, stream))
    return launches


def launch_with_edges(
    jobs: list[Lines], sums: list[Sums], edges: list[Edge], along_k: bool, dtype: str, device: str, stream: Any
) -> Launch:
    """Up to two matrices, each with its sums, if any, all with k `along` their lines or across; and edges to copy."""
    segment, lines = SUMMED_ALONG if along_k else SUMMED_ACROSS
    shared = lines * (2 * segment + 16 + 8) + 4 * segment  # lines, from one boundary to another, barriers, and an edge
    function = kernel_function(render_realign_with_edges(dtype, along_k), "realign_with_edges", device, shared)
    across = math.ceil(max((job.lines for job in jobs), default=1) / lines)
    along = math.ceil(max((job.length for job in jobs), default=1) / segment)
    deep = len(jobs) + any(edge.count for edge in edges)
    arguments = (*(*jobs, Lines(), Lines())[:2], *(*sums, Sums(), Sums())[:2], *edges)
    return Launch(function, (across, along, deep), (256,), arguments, stream, shared)
