"""From a plan to its whole recipe: what comes before and after the family's own launches.

Operands that are packed first, a P whose rows do not lie side by side, an epilogue that the family does not fuse.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from tilewise.algebra.dtypes import DType
from tilewise.core.plan import GRID_Y_LIMIT, Plan, packed_lead
from tilewise.core.problem import Layout
from tilewise.core.recipe import Address, Launch, Recipe, Scratch, Step
from tilewise.kernels.registry import beside, family_named
from tilewise.kernels.shared.early import early
from tilewise.kernels.shared.placed import Operands, Placed, Scales, members, operands_of, own_stack, workspace
from tilewise.kernels.shared.text import render_pack
from tilewise.kernels.transforms.split_k import add_parts, epilogue_argument


@lru_cache(maxsize=4096)
def recipe_of(plan: Plan, scales: Scales | None = None) -> Recipe:
    """Everything a plan launches, in order."""
    p = plan.problem
    if not (p.m and p.n and p.members):
        return Recipe(())
    scratch = Scratch()
    steps = _steps(plan, operands_of(p, scales), scratch)
    return Recipe(early(steps, plan.machine.arch), scratch.size)


def _steps(plan: Plan, given: Operands, scratch: Scratch) -> list[Step]:
    p, family = plan.problem, family_named(plan.family)
    if p.epilogue and not family.can.fuses:
        return _epilogue_after(plan, given, scratch)
    before: list[Step] = []
    M, N, made = given.M, given.N, given.P
    if "M" in plan.packs:
        M = packed(M, p.stack, p.dtype, scratch)
        before += copies(given.M, M, own_stack(given.M, p.stack))
    if "N" in plan.packs:
        N = packed(N, p.stack_n, p.dtype, scratch)
        before += copies(given.N, N, own_stack(given.N, p.stack_n))
    after: list[Step] = []
    if p.layout_p.leading_dimension(p.m, p.n) is None and not family.can.stores_anywhere:
        made = workspace(p.m, p.n, p.stack, p.result, p.n, scratch)
        before += copies(given.P, made, p.stack) if p.accumulate else []
        after += copies(made, given.P, p.stack)
    as_given = M is given.M and N is given.N and made is given.P
    ready = given if as_given else replace(given, M=M, N=N, P=made)
    return [*before, *beside(family.launches(plan, ready, scratch), scratch), *after]


def _epilogue_after(plan: Plan, given: Operands, scratch: Scratch) -> list[Step]:
    """The bare product in scratch memory, then one pass from there to P."""
    p, bare = plan.problem, replace(plan, problem=plan.problem.bare)
    work = workspace(p.m, p.n, p.stack, bare.problem.result, p.n, scratch)
    steps = _steps(bare, replace(given, P=work, bias=None), scratch)
    made = given.P
    if p.layout_p.leading_dimension(p.m, p.n) is None:
        made = workspace(p.m, p.n, p.stack, p.result, p.n, scratch)
        steps += copies(given.P, made, p.stack) if p.accumulate else []
    argument = epilogue_argument(p.epilogue, bare.problem.result.name, given.bias)
    for index in members(p.stack):
        steps.append(add_parts(p, work.member(index), p.n, made.member(index), made.lead, 1, argument))
    return steps + (copies(made, given.P, p.stack) if made is not given.P else [])


def packed(source: Placed, stack: tuple[int, ...], dtype: DType, scratch: Scratch) -> Placed:
    """A place for a copy with rows side by side and of the kernel's dtype; broadcast axes stay broadcast."""
    own = own_stack(source, stack)
    made = workspace(source.rows, source.cols, own, dtype, packed_lead(source.cols), scratch)
    strides = tuple(0 if e == 1 else s for e, s in zip(own, made.layout.stack, strict=True))
    return Placed(made.pointer, dtype, made.rows, made.cols, Layout(made.layout.row, 1, strides))


def copies(source: Placed, target: Placed, stack: tuple[int, ...]) -> list[Step]:
    """Cell by cell from any strides and dtype to any other."""
    if not (source.rows and source.cols):
        return []
    source, target, stack = _merged(source, target, stack)
    along_rows = abs(source.layout.row) < abs(source.layout.col)
    text = render_pack.named(source.dtype, target.dtype, along_rows)
    made: list[Step] = []
    for member in members(stack):
        for top, rows, left, cols in _bands(source.rows, source.cols, along_rows):
            fast, slow = (rows, cols) if along_rows else (cols, rows)
            strides = (source.layout.row, source.layout.col, target.layout.row, target.layout.col)
            arguments = (
                _cell(source, member, top, left),
                _cell(target, member, top, left),
                ctypes.c_int(rows),
                ctypes.c_int(cols),
                *(ctypes.c_longlong(stride) for stride in strides),
            )
            grid = (math.ceil(fast / 32), math.ceil(slow / 8))
            made.append(Launch.of(text, "pack", grid, (32, 8), arguments))
    return made


def _merged(source: Placed, target: Placed, stack: tuple[int, ...]) -> tuple[Placed, Placed, tuple[int, ...]]:
    """Members that go on where the last one's rows end are rows of one taller matrix: one launch copies them all."""
    while stack and all(x.layout.stack[-1] == x.rows * x.layout.row for x in (source, target)):
        rows = source.rows * stack[-1]
        source, target = (
            replace(x, rows=rows, layout=x.layout._replace(stack=x.layout.stack[:-1])) for x in (source, target)
        )
        stack = stack[:-1]
    return source, target, stack


@lru_cache(maxsize=1024)
def copy_recipe(
    rows: int, cols: int, stack: tuple[int, ...], source: DType, layout: Layout, target: DType, layout_to: Layout
) -> Recipe:
    """A copy from the address called M to the one called P."""
    placed = (
        Placed(Address("M", 0, layout.misalignment), source, rows, cols, layout),
        Placed(Address("P", 0, layout_to.misalignment), target, rows, cols, layout_to),
    )
    return Recipe(tuple(copies(*placed, stack)))


def _cell(matrix: Placed, member: tuple[int, ...], row: int, col: int) -> Address:
    return matrix.member(member) + (row * matrix.layout.row + col * matrix.layout.col) * matrix.dtype.itemsize


def _bands(rows: int, cols: int, along_rows: bool) -> Iterator[tuple[int, int, int, int]]:
    """Pieces whose slow axis fits CUDA's limit on gridDim.y."""
    limit = GRID_Y_LIMIT * 8
    slow = cols if along_rows else rows
    for start in range(0, slow, limit):
        size = min(limit, slow - start)
        yield (0, rows, start, size) if along_rows else (start, size, 0, cols)
