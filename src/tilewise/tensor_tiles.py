"""The tensor-core kernel as the planner sees it: its tiles, what it takes, how operands reach it, and its model.

The copy engine wants rows that start on 16-byte boundaries. An operand whose rows do not is realigned into a workspace
first (`kernels/hopper/realign.cu`), one with holes between its elements, or of another dtype, is packed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilewise.algebra.builtin import SEMIRINGS
from tilewise.algebra.dtypes import DType
from tilewise.machine import Machine
from tilewise.problem import Layout, Problem
from tilewise.rungs import Geometry

KERNEL = "tensor_cores"
IDEA = "tiles stream in by the copy engine, warpgroups multiply them on tensor cores"
DEPTH = 64  # k of a phase: 128 bytes of 2-byte elements, one row of the swizzled tile
# of the tensor cores' peak, by rows and by parts of 64 columns
SHARES = {64: (0.47, 0.65, 0.72, 0.755), 128: (0.45, 0.765, 0.79, 0.80), 192: (0.55, 0.78, 0.82)}
SHARED_BYTES = 227 * 1024  # a Hopper block's
START_SECONDS = 8e-6  # filling the pipeline, the last tile's stores, the launch
COPY_BANDWIDTH = 0.7  # share of the memory's bandwidth that realigning reaches


@dataclass(frozen=True)
class TensorTile:
    """A tile of P: `rows` in steps of a warpgroup's 64, `cols` in steps of 16, which wgmma and the stores allow."""

    rows: int
    cols: int

    @property
    def groups(self) -> int:
        """Warpgroups that multiply; one more copies."""
        return self.rows // 64

    @property
    def stages(self) -> int:
        """As many pairs of tiles as shared memory holds beside a finished tile, and no more than help."""
        return min(8, (SHARED_BYTES - 1024 - 16 - self._staging_bytes) // (self._stage_bytes + 16))

    @property
    def _stage_bytes(self) -> int:
        return (self.rows + math.ceil(self.cols / 64) * 64) * 2 * DEPTH

    @property
    def _staging_bytes(self) -> int:
        return self.rows * (self.cols // 2 + 4) * 4  # as the kernel's PITCH has it

    @property
    def share(self) -> float:
        """Of the tensor cores' peak, inside a large product; measured on an H200 (`tilewise bench shapes`)."""
        parts = math.ceil(self.cols / 64)
        wasted = self.cols / (parts * 64)  # columns come 64 at a time, and what is not used was still brought
        return float(SHARES[self.rows][parts - 1] * wasted**0.65)

    @property
    def geometry(self) -> Geometry:
        shared = 1024 + self.stages * (self._stage_bytes + 16) + self._staging_bytes + 16
        return Geometry((128 * (self.groups + 1), 1), self.rows, self.cols, DEPTH, shared)


# 192 rows take three warpgroups, whose registers then hold no more than 176 columns
TILES = tuple(
    TensorTile(rows, cols) for rows in (128, 192, 64) for cols in range(256, 48, -16) if rows != 192 or cols <= 176
)


def tile_of(geometry: Geometry) -> TensorTile:
    return TensorTile(geometry.rows, geometry.cols)


def refusal(problem: Problem, machine: Machine) -> str | None:
    """Why the tensor-core kernel does not take this problem, or None when it does."""
    if not machine.arch.startswith("sm_90"):
        return f"kernel={KERNEL!r} is made for Hopper (sm_90), and this is {machine.arch or 'no card'}"
    if problem.dtype.name not in ("bfloat16", "float16"):
        return f"kernel={KERNEL!r} multiplies bfloat16 and float16, not {problem.dtype}"
    ring, plain = problem.semiring, SEMIRINGS["plus_times"]
    if (ring.add, ring.mul, ring.zero) != (plain.add, plain.mul, plain.zero):
        return f"kernel={KERNEL!r} knows plus_times alone, not {ring}"
    return None


def route(layout: Layout, rows: int, cols: int, dtype: DType, wanted: DType) -> str:
    """How an operand reaches the kernel: `as it is`, `realigned` or `packed`."""
    lines = contiguous_lines(layout, rows, cols)
    if lines is None or dtype != wanted:
        return "packed"
    count, _, lead = lines
    strides = (*(() if count <= 1 else (lead,)), *layout.stack)
    whole = all(stride % 8 == 0 for stride in strides) and layout.alignment >= 16
    return "as it is" if whole else "realigned"


def contiguous_lines(layout: Layout, rows: int, cols: int) -> tuple[int, int, int] | None:
    """(lines, length, lead) when the matrix is lines of elements side by side, along its rows or along its columns."""
    if (layout.col == 1 or cols <= 1) and (layout.row >= cols or rows <= 1):
        return rows, cols, layout.row if rows > 1 else cols
    if (layout.row == 1 or rows <= 1) and (layout.col >= rows or cols <= 1):
        return cols, rows, layout.col if cols > 1 else rows
    return None


def along_columns(layout: Layout, rows: int, cols: int) -> bool:
    """Whether the lines of `contiguous_lines` are the matrix's columns."""
    return not ((layout.col == 1 or cols <= 1) and (layout.row >= cols or rows <= 1))


def best_tile(problem: Problem, machine: Machine) -> tuple[TensorTile, float]:
    """The tile with the least expected time: whole waves of tiles at its share of the peak, or the bytes."""
    rate = machine.tensor_rate(problem.dtype.name) / machine.units

    def expected(tile: TensorTile) -> float:
        tiles = math.ceil(problem.m / tile.rows) * math.ceil(problem.n / tile.cols)
        steps = tile.rows * tile.cols * max(1, math.ceil(problem.k / DEPTH)) * DEPTH
        waves = math.ceil(tiles / machine.units)
        return waves * steps / (rate * tile.share)

    best = min(TILES, key=expected)
    moved = 0
    for layout, rows, cols, dtype in (
        (problem.layout_m, problem.m, problem.k, problem.dtype_m),
        (problem.layout_n, problem.k, problem.n, problem.dtype_n),
    ):
        if route(layout, rows, cols, dtype, problem.dtype) != "as it is":
            moved += 4 * rows * cols  # read and written
    copies = problem.members * moved / (machine.bandwidth * COPY_BANDWIDTH)
    work = max(problem.members * expected(best), problem.least_bytes / machine.bandwidth)
    return best, work + copies + START_SECONDS
