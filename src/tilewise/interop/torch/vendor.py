"""What torch's own product would cost, by a model as plain as the measurements behind it.

On Hopper the vendor's kernels for bfloat16 and float16 reach a steady share of the tensor cores while every matrix,
P included, has rows that start and end on 16 bytes; otherwise they fall to another kernel at a small one
(docs/benchmarks.md, `tilewise bench shapes`). Nothing else is claimed: where there is no figure (other dtypes, other
cards, the CPU), the vendor counts as instant and is left alone.
"""

from __future__ import annotations

import math

from tilewise.core.machine import Machine
from tilewise.core.problem import Layout, Problem

ALIGNED_SHARE = 0.74  # of the tensor cores' peak: 790 TFLOP/s at 4096³ on an H200
CLIFF_SHARE = 0.13  # 135 TFLOP/s at 4097³
START_SECONDS = 2e-6
COPY_SHARE = 0.6  # of the bandwidth that a padding copy reaches


def vendor_seconds(problem: Problem, machine: Machine) -> float:
    """The time torch's own kernels are expected to take; 0 where nothing is known of them."""
    if not machine.arch.startswith("sm_90") or problem.dtype.name not in ("bfloat16", "float16"):
        return 0.0
    share = ALIGNED_SHARE if on_sixteen_bytes(problem) else CLIFF_SHARE
    arithmetic = problem.steps / (machine.tensor_rate(problem.dtype.name) * share)
    return max(arithmetic, problem.least_bytes / machine.bandwidth) + START_SECONDS


def padded_seconds(problem: Problem, machine: Machine) -> float:
    """The same where operands may be padded to multiples of 8 first, as torch.compile does where that pays; P is then
    a view of what was made."""
    size, ways = problem.dtype.itemsize, math.lcm(16, problem.dtype.itemsize) // problem.dtype.itemsize
    m, k, n = (-(-extent // ways) * ways for extent in (problem.m, problem.k, problem.n))
    steps = m * k * n * problem.members
    moved = sum(
        (rows * cols + wide_rows * wide_cols) * size * problem.members
        for rows, cols, wide_rows, wide_cols in ((problem.m, problem.k, m, k), (problem.k, problem.n, k, n))
        if (rows, cols) != (wide_rows, wide_cols)
    )
    arithmetic = steps / (machine.tensor_rate(problem.dtype.name) * ALIGNED_SHARE)
    least = (m * k + k * n + m * n) * size * problem.members / machine.bandwidth
    copies = moved / (machine.bandwidth * COPY_SHARE) + (START_SECONDS if moved else 0.0)
    return max(arithmetic, least) + START_SECONDS + copies


def on_sixteen_bytes(problem: Problem) -> bool:
    """Whether every line of M, N and P starts and ends on 16 bytes."""
    matrices = (
        (problem.layout_m, problem.m, problem.k),
        (problem.layout_n, problem.k, problem.n),
        (problem.layout_p, problem.m, problem.n),
    )
    return all(_on_sixteen_bytes(layout, rows, cols, problem.dtype.itemsize) for layout, rows, cols in matrices)


def keeps_layers(inputs: int, outputs: int) -> bool:
    """Whether that holds for all three products of a layer of 2-byte elements, however many rows come: its widths alone
    decide. Of wider elements nothing is known."""
    return inputs % 8 == 0 and outputs % 8 == 0


def _on_sixteen_bytes(layout: Layout, rows: int, cols: int, itemsize: int) -> bool:
    if layout.col == 1 or cols <= 1:
        lead, count, length = layout.row, rows, cols
    elif layout.row == 1 or rows <= 1:
        lead, count, length = layout.col, cols, rows
    else:
        return True  # torch copies such an operand first, into aligned memory
    starts = layout.alignment >= 16 and (count <= 1 or lead * itemsize % 16 == 0)
    # 8192 × 50,257 with 50,304 from row to row took 4.9 ms beside 0.8 of 50,304 columns
    return starts and (length <= 1 or length * itemsize % 16 == 0)
