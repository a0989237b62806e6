"""Lines of N that start on no 16 bytes, taken by classes (`lags.cuh`): which products, and what the kernels are told."""

from __future__ import annotations

import ctypes
import math

from tilewise.kernels.shared.layouts import BY_CLASSES, DEINTERLEAVED, along_columns, contiguous_lines
from tilewise.kernels.shared.placed import Placed
from tilewise.kernels.shared.tensor_map import half_map
from tilewise.kernels.wgmma_half.text import render_deinterleave
from tilewise.kernels.wgmma_half.tiles import CLASSES, DEPTH, TILES, TensorWay
from tilewise.problem import Layout, Problem
from tilewise.recipe import Address, Argument, Launch, Scratch, array, structure

# Of the tiles for groups those that do not spill where sums move, and whose last columns are not many of all.
LAGGED = tuple(tile for tile in TILES if tile.together == 1 and tile.cols >= 128 and tile.rows * tile.cols != 192 * 192)
LEAST_K = 64  # fewer leave classes without a line
WARPS, ROW_ELEMENTS = 8, 2048  # rows of a block that sorts them, and elements of each


class Rows(ctypes.Structure):
    """The kernel's `Rows`: M, and where it goes."""

    _fields_ = (
        ("source", ctypes.c_void_p),
        ("to", ctypes.c_void_p),
        *((name, ctypes.c_int) for name in ("rows", "k", "run")),
        ("lead", ctypes.c_longlong),
    )


def takes(p: Problem) -> bool:
    """Whether N's lines are an odd number of elements apart, through all groups: every eighth of them then starts equally
    far behind a boundary."""
    if p.groups is None or p.groups.along != "rows" or p.k < LEAST_K or not p.m or not p.n:
        return False
    if not p.dtype_m == p.dtype_n == p.dtype:
        return False
    of_m, of_n = contiguous_lines(p.layout_m, p.m, p.k), contiguous_lines(p.layout_n, p.k, p.n)
    if of_m is None or of_n is None or along_columns(p.layout_m, p.m, p.k) or along_columns(p.layout_n, p.k, p.n):
        return False
    lead, step = p.layout_n.row, p.layout_n.stack[0] if p.groups.count > 1 else 0
    return bool(lead % 2) and step >= 0 == step % lead


def ways(p: Problem) -> list[TensorWay]:
    return [TensorWay(tile, (DEINTERLEAVED, BY_CLASSES)) for tile in LAGGED] if takes(p) else []


def run_of(k: int) -> int:
    """Elements of a class in a sorted row of M: whole phases."""
    return math.ceil(math.ceil(k / CLASSES) / DEPTH) * DEPTH


def moved_bytes(p: Problem) -> int:
    """What sorting M reads and writes."""
    return 2 * p.m * (p.k + CLASSES * run_of(p.k))


def deinterleaved(M: Placed, scratch: Scratch) -> tuple[Placed, Launch]:
    """M with its k sorted, in scratch memory, and what puts it there."""
    run = run_of(M.cols)
    lead = CLASSES * run
    to = scratch.take(M.rows * lead * M.dtype.itemsize)
    rows = structure(Rows, M.pointer, to, M.rows, M.cols, run, M.layout.row)
    grid = (math.ceil(M.rows / WARPS), math.ceil(lead / ROW_ELEMENTS))
    launch = Launch.of(render_deinterleave(), "deinterleave", grid, (32 * WARPS,), (rows,))
    return Placed(to, M.dtype, M.rows, lead, Layout(lead, 1)), launch


def maps_of_n(N: Placed, place: Address, groups: int) -> tuple[Argument, object]:
    """A tensor map for each class of lines, in the order of their turns, and the kernel's `Skews`."""
    lead, step = N.layout.row, N.layout.stack[0] if groups > 1 else 0
    lines = step // lead
    found = {}
    for residue in range(CLASSES):
        address = place + 2 * residue * lead
        lag = address % 16 // 2
        count = ((groups - 1) * lines + N.rows - residue + CLASSES - 1) // CLASSES
        made = half_map(address - address % 16, count, N.cols + lag, CLASSES * lead, DEPTH, ((1, 0), (1, 0)))
        found[lag] = residue, made
    turns = [found[lag] for lag in reversed(range(CLASSES))]
    told = (ctypes.c_int * (3 + CLASSES))(0, run_of(N.rows), lines, *(residue for residue, _ in turns))
    return array([made for _, made in turns]), told
