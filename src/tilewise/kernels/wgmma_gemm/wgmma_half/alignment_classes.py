"""Rows of N that start on no 16 bytes, taken by alignment classes (`alignment_classes.cuh`): of which products, and
their arguments."""

from __future__ import annotations

import ctypes
import math
from math import gcd

from tilewise.core.problem import Layout, Problem, row_major
from tilewise.core.recipe import Address, Argument, Launch, Scratch, array, structure
from tilewise.kernels.shared.layouts import BY_CLASSES, DEINTERLEAVED, along_columns
from tilewise.kernels.shared.placed import Placed, broadcast, own_stack
from tilewise.kernels.shared.stacked import GRID_LIMIT, Runs
from tilewise.kernels.shared.structs import struct_of
from tilewise.kernels.shared.tensor_map import half_map, row_classes
from tilewise.kernels.wgmma_gemm.wgmma_half.text import render_deinterleave
from tilewise.kernels.wgmma_gemm.wgmma_half.tiles import CLASSES, DEPTH, TILES, TensorConfig, TensorTile

# The tiles that do not spill where sums are shifted, and whose unused columns are few.
N_BY_CLASSES = tuple(
    tile for tile in TILES if tile.together == 1 and tile.cols >= 128 and tile.rows * tile.cols != 192 * 192
)
# Of stacks these three: 55 ragged ones took 3 % less time with them in the mean, with all tiles 3.3 %.
IN_STACKS = TensorTile(128, 256), TensorTile(128, 256, 2), TensorTile(192, 128)
LEAST_K = 64  # so that no class is empty
WARPS, ROW_ELEMENTS = 8, 2048  # rows of a block that sorts them, and elements of each


Rows = struct_of("Rows", "wgmma_gemm/wgmma_half/deinterleave.cu")  # M, and where it goes


def takes_kind(p: Problem) -> bool:
    """Whether it takes products of such dtypes and groups."""
    along_k = p.groups is not None and p.groups.along != "rows"
    return p.dtype_m == p.dtype_n == p.dtype and not p.unrounded and not along_k


def takes_lines(p: Problem) -> bool:
    """Whether rows of N are unaligned, and members are a multiple of rows apart."""
    if p.k < LEAST_K or p.m == 0 or p.n == 0:
        return False
    if along_columns(p.layout_m, p.m, p.k) or along_columns(p.layout_n, p.k, p.n):
        return False
    lead = p.layout_n.row
    if lead % CLASSES == 0 or p.layout_n.misalignment % 2 or p.layout_n.misalignment // 2 % gcd(lead, CLASSES):
        return False  # no class starts on a boundary
    return not p.layout_n.backward and p.layout_n.step % lead == 0


def takes(p: Problem) -> bool:
    return takes_kind(p) and takes_lines(p)


def configs(p: Problem) -> list[TensorConfig]:
    if not takes(p):
        return []
    return [TensorConfig(tile, (DEINTERLEAVED, BY_CLASSES)) for tile in (N_BY_CLASSES if p.groups else IN_STACKS)]


def classes_of(lead: int) -> int:
    """The number of alignment classes of rows with this leading dimension."""
    return CLASSES // gcd(lead, CLASSES)


def run_of(k: int, classes: int) -> int:
    """Elements of a class in a sorted row of M: whole phases."""
    longest = -(-k // classes)
    return -(-longest // DEPTH) * DEPTH


def depth_of(p: Problem) -> int:
    """Of k with what fills up each class's last phase."""
    classes = classes_of(p.layout_n.row)
    return classes * run_of(p.k, classes)


def sorted_bytes(p: Problem) -> int:
    """What sorting M reads and writes."""
    return 2 * p.own_m * p.m * (p.k + depth_of(p))


def deinterleaved(M: Placed, lead: int, stack: tuple[int, ...], scratch: Scratch) -> tuple[Placed, list[Launch]]:
    """M with its k sorted as lines of N come that lie `lead` apart, in scratch memory, and what puts it there."""
    classes = classes_of(lead)
    run, own = run_of(M.cols, classes), own_stack(M, stack)
    lead_to = classes * run
    strides = broadcast(own, row_major(M.rows, lead_to, own).stack)
    to = scratch.take(math.prod(own) * M.rows * lead_to * M.dtype.itemsize)
    placed = Placed(to, M.dtype, M.rows, lead_to, Layout(lead_to, 1, strides))
    runs, made = Runs(own, [M.layout.stack, strides], GRID_LIMIT), []
    across, along = math.ceil(M.rows / WARPS), math.ceil(lead_to / ROW_ELEMENTS)
    for at, members in runs.starts():
        sizes = M.rows, M.cols, run, classes, M.layout.row, lead_to, *runs.steps
        rows = structure(Rows, M.on(at[0]), placed.on(at[1]), *sizes)
        grid = (across, along, members)
        made.append(Launch.of(render_deinterleave.key(), "deinterleave", grid, (32 * WARPS,), (rows,)))
    return placed, made


def maps_of_n(
    N: Placed, place: Address, box_lines: int, members: tuple[int, int], steps: tuple[int, int]
) -> tuple[Argument, object]:
    """A tensor map for each alignment class of N's rows, in the order in which they are multiplied, and the kernel's
    `Misalignments`; `members` along both axes of a launch, and the elements between them."""
    lead = N.layout.row
    classes, lines = classes_of(lead), tuple(step // lead for step in steps)
    total = N.rows + sum((count - 1) * apart for count, apart in zip(members, lines, strict=True))
    every = enumerate(row_classes(place, total, N.cols, lead, 2, classes))
    order = sorted(every, key=lambda numbered: -numbered[1].before)
    order += order[:1] * (CLASSES - classes)  # never taken
    numbers = [number for number, _ in order]
    misalignments = (ctypes.c_int * (5 + CLASSES))(0, classes, run_of(N.rows, classes), *lines, *numbers)
    return array([half_map(*one[:4], box_lines, ((1, 0), (1, 0))) for _, one in order]), misalignments
