"""`buffered`: medium-sized products and stacks by strips in two stages."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from itertools import product
from typing import Any, ClassVar

from tilewise.algebra.builtin import is_plus_times
from tilewise.algebra.semiring import Algebra
from tilewise.core.machine import Machine
from tilewise.core.plan import Plan
from tilewise.core.problem import Layout, Problem
from tilewise.core.recipe import Launch, Scratch
from tilewise.kernels.capabilities import Capabilities, Condition
from tilewise.kernels.coefficients import coefficients
from tilewise.kernels.shared.placed import Operands
from tilewise.kernels.shared.residency import clusters_of
from tilewise.kernels.shared.steps import step_slots
from tilewise.kernels.simt_gemm.strips import StripConfig, Strips, StripTile, Times
from tilewise.kernels.simt_gemm.text import render_strips

TILES = (  # of 19 that were timed; without the others random stacks take 0.1 % longer in the mean
    StripTile(16, 32, 4, 4, 4, 32, 6),
    StripTile(16, 64, 4, 4, 2, 32, 6),
    StripTile(64, 16, 4, 4, 2, 32, 6),
    StripTile(32, 32, 4, 4, 2, 32, 6),
    StripTile(32, 32, 4, 4, 4, 32, 3),
    StripTile(64, 32, 8, 4, 2, 16, 5),
    StripTile(32, 64, 8, 4, 2, 16, 5),
    StripTile(128, 32, 8, 4, 1, 16, 4),
    StripTile(32, 128, 8, 4, 1, 16, 4),
    StripTile(64, 64, 8, 4, 1, 16, 4),
    StripTile(128, 64, 8, 8, 1, 16, 3),
    StripTile(16, 128, 4, 4, 1, 16, 6),
)
FARTHEST = 2**31 // 256  # elements from row to row: offsets in a tile have 32 bits
# From these sides on other semirings are slower, by a factor for steps of two slots and one for longer ones:
SLOWER_SIDE, SLOWER_PAIR, SLOWER_REST = 200, 1.7, 1.21  # as stacks of min_plus and max_min of 256 to 1000 took
SLOWER_WHOLE = 1.12  # where such a step is one instruction on whole numbers


def lines_of(layout: Layout, lines: int, k: int, transposed: bool = False) -> tuple[bool, int] | None:
    """(whether the operand is contiguous along k, leading dimension); None where it is not contiguous."""
    of_line, of_k = (layout.col, layout.row) if transposed else (layout.row, layout.col)
    along, across = of_k == 1 or k == 1, of_line == 1 or lines == 1
    lead_along, lead_across = of_line if lines > 1 else 0, of_k if k > 1 else 0
    if along and not (across and abs(of_k) > abs(of_line)) and abs(lead_along) < FARTHEST:
        return True, lead_along
    return (False, lead_across) if across and abs(lead_across) < FARTHEST else None


def both_lines(m: Layout, n: Layout, p: Problem) -> tuple[tuple[bool, int], tuple[bool, int]] | None:
    of_m, of_n = lines_of(m, p.m, p.k), lines_of(n, p.n, p.k, transposed=True)
    return None if of_m is None or of_n is None else (of_m, of_n)


CONTIGUOUS = Condition(
    lambda p: both_lines(p.layout_m, p.layout_n, p) is not None,
    f"takes contiguous rows or columns, less than {FARTHEST:,} elements apart",
)


class Buffered(Strips):
    """Medium-sized products and stacks of 4-byte elements, any algebra. Fitted to 1,146 configurations of
    205 random stacks (rms 10 % near the best; the choice 2 % above the best of them in the mean)."""

    name = "buffered"
    kernels: ClassVar = {
        name: "strips in two buffers, loaded through registers, many cells a thread: medium-sized products and stacks"
    }
    stages, own_shared = 2, 1024
    can = Capabilities(
        one_dtype=True, element_bytes=4, partial_bytes=(4, 4), float32_as=("ieee", "high"), steps=2**31,
        problem=(CONTIGUOUS,), stores_anywhere=True, precisions=("ieee",),
    )  # fmt: skip

    def every(self, size: int, machine: Machine) -> tuple[StripConfig, ...]:
        return tuple(StripConfig(tile, cluster) for tile in TILES for cluster in clusters_of(machine))

    def figures(self, algebra: Algebra) -> Any:
        return coefficients("buffered 4")

    def times(self, config: StripConfig, algebra: Algebra, machine: Machine, slower: float) -> Times:
        f, tile, cluster = self.figures(algebra), config.tile, config.cluster
        key = f"{tile.rows}x{tile.cols} g{tile.groups}"
        other = f.other_shares.get(key, 1.0) if slower > 1 else 1.0
        least_k = tile.deep * cluster if cluster > 1 else -1
        return Times(least_k, f.strip[key] + f.of_k * tile.deep, 0.0, f.shares[key], other)

    def slower(self, problem: Problem) -> float:
        """The factor for larger members in other semirings than plus_times."""
        p = problem
        if is_plus_times(p.semiring) or min(p.m, p.k, p.n) < SLOWER_SIDE:
            return 1.0
        pair = SLOWER_PAIR if p.dtype.kind == "f" else SLOWER_WHOLE
        return pair if step_slots(p.algebra) <= 2 else SLOWER_REST

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        for tile, along_m, along_n in product(TILES, (False, True), (False, True)):
            yield render_strips.key(problem.algebra, tile, self.stages, (along_m, along_n))

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
        """M and N have contiguous rows or columns, P any strides."""
        lines, P = both_lines(given.M.layout, given.N.layout, plan.problem), given.P.layout
        assert lines is not None
        lies = [ctypes.c_longlong(s) for s in (lines[0][1], lines[1][1], P.row, P.col)]
        shared = plan.config.tile.shared_bytes(4, self.stages)
        return self._launches(plan, given, (lines[0][0], lines[1][0]), lies, shared)
