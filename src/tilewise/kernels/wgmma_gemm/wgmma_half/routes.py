"""How operands reach the tensor-core kernel, and what that costs them.

The copy engine wants rows that start on 16-byte boundaries. An operand whose rows do not is realigned into a workspace
first (`transforms/realign.cu`); M can often be taken by classes of rows instead (`wgmma_half.cu`). One with holes
between its elements, or of another dtype, is packed.
"""

from __future__ import annotations

import math
from functools import lru_cache

from tilewise.algebra.dtypes import DType
from tilewise.core.problem import Layout, Problem
from tilewise.kernels.shared.layouts import (
    AS_IT_IS,
    BY_CLASSES,
    LONGEST_LINE,
    PACKED,
    REALIGNED,
    along_columns,
    contiguous_lines,
)
from tilewise.kernels.transforms.realign import realigned_bytes
from tilewise.kernels.wgmma_gemm.wgmma_half.tiles import CLASSES, DEPTH


def route(layout: Layout, rows: int, cols: int, dtype: DType, wanted: DType) -> str:
    """How an operand reaches the kernel if nothing better is known: `as it is`, `realigned` or `packed`."""
    lines = contiguous_lines(layout, rows, cols)
    if lines is None or dtype != wanted or lines[1] > LONGEST_LINE:
        return PACKED
    count, _, lead = lines
    whole = (count <= 1 or lead % 8 == 0 <= lead) and layout.alignment >= 16
    if layout.stack:
        whole = whole and all(stride % 8 == 0 <= stride for stride in layout.stack)
    return AS_IT_IS if whole else REALIGNED


@lru_cache(maxsize=64)
def options(problem: Problem) -> tuple[list[str], list[str]]:
    """How M and how N can reach the kernel."""
    m, k, n = problem.m, problem.k, problem.n
    for_m = [route(problem.layout_m, m, k, problem.dtype_m, problem.dtype)]
    for_n = [route(problem.layout_n, k, n, problem.dtype_n, problem.dtype)]
    lines_m, lines_n = contiguous_lines(problem.layout_m, m, k), contiguous_lines(problem.layout_n, k, n)
    for how, lines in ((for_m, lines_m), (for_n, lines_n)):
        if how == [AS_IT_IS] and lines and lines[0] > 1 and lines[2] % DEPTH:
            how.append(REALIGNED)  # lines that straddle 128 bytes cost the copy engine twice
    by_rows = not along_columns(problem.layout_m, m, k) and not along_columns(problem.layout_n, k, n)
    if for_m == [REALIGNED] and by_rows and not problem.stack and m >= CLASSES and not problem.unrounded:
        for_m.append(BY_CLASSES)
    return for_m, for_n


def moved_bytes(layout: Layout, rows: int, cols: int, problem: Problem) -> int:
    """What a copy of an operand on boundaries reads and writes; an axis it is broadcast over counts once."""
    lines, length, _ = contiguous_lines(layout, rows, cols) or (rows, cols, cols)
    stack = problem.stack if len(layout.stack) == len(problem.stack) else problem.stack_n
    own = math.prod(extent for extent, stride in zip(stack, layout.stack, strict=True) if stride) if stack else 1
    return own * (2 * rows * cols + lines * realigned_bytes(2 * length))


def lines_touched(how: str, layout: Layout, rows: int, cols: int) -> int:
    """128-byte lines of memory that a tile's row of 128 bytes lies in."""
    lines = contiguous_lines(layout, rows, cols)
    straddles = how == AS_IT_IS and lines is not None and lines[2] % DEPTH and DEPTH % lines[2]
    return 2 if straddles else 1
