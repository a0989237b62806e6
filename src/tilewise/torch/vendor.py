"""A cost model of torch's products, fitted to measurements on Hopper.

The vendor's kernels for bfloat16 and float16 reach a constant share of the tensor cores' peak if the rows of all
matrices, P included, start and end on 16 bytes; otherwise another kernel with a small share runs (docs/benchmarks.md,
`tilewise bench shapes`). Without measurements (other dtypes, other cards, the CPU) torch computes the product.
"""

from __future__ import annotations

import math

from tilewise.core.machine import Machine
from tilewise.core.problem import Layout, Problem

ALIGNED_SHARE = 0.74  # of the tensor cores' peak: 790 TFLOP/s at 4096³ on an H200
CLIFF_SHARE = 0.13  # 135 TFLOP/s at 4097³
START_SECONDS = 2e-6
COPY_SHARE = 0.6  # of the bandwidth, by a copy that pads


def vendor_seconds(problem: Problem, machine: Machine) -> float:
    """The expected seconds of torch's kernels; 0 if unknown."""
    if not machine.arch.startswith("sm_90") or problem.dtype.name not in ("bfloat16", "float16"):
        return 0.0
    share = ALIGNED_SHARE if on_sixteen_bytes(problem) else CLIFF_SHARE
    arithmetic = problem.steps / (machine.tensor_rate(problem.dtype.name) * share)
    return max(arithmetic, problem.least_bytes / machine.bandwidth) + START_SECONDS


def padded_seconds(problem: Problem, machine: Machine) -> float:
    """The expected seconds with operands padded to multiples of 8 first, as torch.compile does if that is faster; P is
    then a view."""
    size, multiple = problem.dtype.itemsize, math.lcm(16, problem.dtype.itemsize) // problem.dtype.itemsize
    m, k, n = (-(-extent // multiple) * multiple for extent in (problem.m, problem.k, problem.n))
    steps = m * k * n * problem.members
    moved = sum(
        (rows * cols + wide_rows * wide_cols) * size * problem.members
        for rows, cols, wide_rows, wide_cols in ((problem.m, problem.k, m, k), (problem.k, problem.n, k, n))
        if (rows, cols) != (wide_rows, wide_cols)
    )
    arithmetic = steps / (machine.tensor_rate(problem.dtype.name) * ALIGNED_SHARE)
    least = (m * k + k * n + m * n) * size * problem.members / machine.bandwidth
    copies = copy_seconds(moved, machine) if moved else 0.0
    return max(arithmetic, least) + START_SECONDS + copies


def copy_seconds(nbytes: int, machine: Machine) -> float:
    """The expected seconds of a copy that reads and writes `nbytes` together."""
    return START_SECONDS + nbytes / (machine.bandwidth * COPY_SHARE)


def on_sixteen_bytes(problem: Problem) -> bool:
    """Whether every row (or column, by layout) of M, N and P starts and ends on 16 bytes."""
    matrices = (
        (problem.layout_m, problem.m, problem.k),
        (problem.layout_n, problem.k, problem.n),
        (problem.layout_p, problem.m, problem.n),
    )
    return all(_on_sixteen_bytes(layout, rows, cols, problem.dtype.itemsize) for layout, rows, cols in matrices)


def keeps_layers(inputs: int, outputs: int) -> bool:
    """Whether `on_sixteen_bytes` holds for all three products of a layer of 2-byte elements, for any number of rows.
    For wider elements there are no measurements."""
    return inputs % 8 == 0 and outputs % 8 == 0


def _on_sixteen_bytes(layout: Layout, rows: int, cols: int, itemsize: int) -> bool:
    if layout.col == 1 or cols <= 1:
        lead, count, length = layout.row, rows, cols
    elif layout.row == 1 or rows <= 1:
        lead, count, length = layout.col, cols, rows
    else:
        return True  # torch copies such an operand to aligned memory first
    starts = layout.alignment >= 16 and (count <= 1 or lead * itemsize % 16 == 0)
    # 8192 × 50,257 with a leading dimension of 50,304 took 4.9 ms, with 50,304 columns 0.8
    return starts and (length <= 1 or length * itemsize % 16 == 0)
