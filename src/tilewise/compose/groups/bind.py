"""Binding a call over groups of rows: arrays and keywords → a Problem and operands, or an error."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilewise.algebra.builtin import find_semiring
from tilewise.arrays import Library, Operand, find_library
from tilewise.arrays.narrowing import narrowed
from tilewise.arrays.operand import out_operand
from tilewise.core.problem import Groups, Layout, Problem, check_precision, row_major
from tilewise.core.shapes import written
from tilewise.dispatch.bind import check_device, check_library, operand_beside
from tilewise.errors import DtypeError, ShapeError, UsageError

ALONG = ("rows", "k")


@dataclass(frozen=True)
class GroupedCall:
    """A bound call: M and N in the kernels' layout, and the end of each group."""

    problem: Problem
    library: Library
    device: str
    M: Operand
    N: Operand
    offsets: Operand
    shape: tuple[int, ...]  # of P
    out: Operand | None

    @property
    def by_k(self) -> bool:
        return self.problem.groups is not None and self.problem.groups.along == "k"


def bind_groups(x: Any, w: Any, offsets: Any, along: str, semiring: Any, precision: str, out: Any) -> GroupedCall:
    """The bound call. Sizes of groups are checked on the host only: on a card reading them would synchronise."""
    if not isinstance(along, str) or along not in ALONG:
        raise UsageError(f"along={along!r} is not known; known are {', '.join(ALONG)}")
    ring, library = find_semiring(semiring), find_library(x)
    check_precision(precision)
    left, right = library.operand(x, "x"), operand_beside(library, w, "w", "x")
    ends = ends_operand(library, offsets, left)
    check_device(left, right, "w", "x")
    requested = None if left.dtype is right.dtype else library.promote(left.dtype, right.dtype)
    if requested is not None:
        left, right = narrowed(left, requested), narrowed(right, requested)
    groups = Groups(ends.shape[0], along, ends.dtype.itemsize == 8)
    shape = _shape(left, right, groups)
    given = None if out is None else _given(library, out, left, right, shape)
    if left.device == "cpu":
        check_ends(ends, left.shape[0])
    problem = replace(_problem(left, right, groups, shape, ring, precision), requested=requested)
    if given is not None:
        if given.dtype != problem.result:
            raise DtypeError(f"out has dtype {given.dtype}, but the product has {problem.result}")
        problem = replace(problem, layout_p=given.layout(shape[:-2]))
    M = transposed(left) if along == "k" else left
    return GroupedCall(problem, library, left.device, M, right, ends, shape, given)


def transposed(x: Operand) -> Operand:
    """The same memory with rows and columns exchanged."""
    shape, strides = (*x.shape[:-2], x.shape[-1], x.shape[-2]), (*x.strides[:-2], x.strides[-1], x.strides[-2])
    return replace(x, shape=shape, strides=strides, host=None if x.host is None else x.host.swapaxes(-1, -2))


def _problem(
    left: Operand, right: Operand, groups: Groups, shape: tuple[int, ...], ring: Any, precision: str
) -> Problem:
    *stack, m, n = shape
    fresh = row_major(m, n, tuple(stack))
    if groups.along == "k":
        of_m, of_n = (x.layout(())._replace(stack=(0,)) for x in (transposed(left), right))
        k = left.shape[0]
    else:
        of_m, of_n = left.layout(()), right.layout((groups.count,))
        of_n = Layout(of_n.row, of_n.col, (right.strides[0],), of_n.misalignment)
        k = left.shape[1]
    return Problem(
        m, k, n, tuple(stack), left.dtype, right.dtype, ring, of_m, of_n, fresh, precision=precision, groups=groups
    )


def _shape(left: Operand, right: Operand, groups: Groups) -> tuple[int, ...]:
    """The shape of P; ShapeError if the operands do not fit."""
    if len(left.shape) != 2:
        raise ShapeError(f"x is {written(left.shape)}: pass a matrix, whose rows come in groups")
    rows, cols = left.shape
    if groups.along == "k":
        if len(right.shape) != 2 or right.shape[0] != rows:
            raise ShapeError(f"w is {written(right.shape)}, and along='k' wants a matrix of as many rows as x: {rows}")
        return (groups.count, cols, right.shape[1])
    if len(right.shape) != 3:
        raise ShapeError(f"w is {written(right.shape)}: pass a stack of matrices, one for each group")
    if right.shape[0] != groups.count:
        raise ShapeError(f"w has {right.shape[0]} matrices and offsets {groups.count} ends: pass one of each a group")
    if right.shape[1] != cols:
        raise ShapeError(f"the {cols} columns of x do not meet the {right.shape[1]} rows of each w")
    return (rows, right.shape[2])


def ends_operand(library: Library, offsets: Any, beside: Operand) -> Operand:
    """The ends of groups as an operand: contiguous int32 or int64 on the device of x."""
    ends = operand_beside(library, offsets, "offsets", "x")
    if len(ends.shape) != 1 or not ends.shape[0]:
        raise ShapeError(f"offsets is {written(ends.shape)}: pass one number for each group, the row behind its last")
    if ends.dtype.name not in ("int32", "int64"):
        raise DtypeError(f"offsets has dtype {ends.dtype}: pass int32 or int64")
    check_device(beside, ends, "offsets", "x")
    if ends.device != "cpu" and ends.strides[0] != 1 and ends.shape[0] > 1:
        raise ShapeError(f"offsets has stride {ends.strides[0]}: pass offsets.contiguous(), or a copy")
    return ends


def check_ends(ends: Operand, rows: int) -> None:
    """Check ends on the host: they must not descend, nor exceed the rows of x."""
    given = ends.memory
    steps = np.diff(given, prepend=0)
    if (steps < 0).any():
        at = int(np.argmax(steps < 0))
        before = 0 if at == 0 else int(given[at - 1])
        raise ShapeError(f"offsets[{at}] is {int(given[at])}, before its group's first row {before}: sort them")
    if given[-1] > rows:
        raise ShapeError(f"offsets ends at {int(given[-1])}, and x has {rows} rows")


def _given(library: Library, out: Any, left: Operand, right: Operand, shape: tuple[int, ...]) -> Operand:
    check_library(library, out, "out", "x")
    given = out_operand(library, out)
    check_device(left, given, "out", "x")
    if given.shape != shape:
        raise ShapeError(f"out is {written(given.shape)}, and the product is {written(shape)}")
    if given.overlaps(left) or given.overlaps(right):
        raise ShapeError("out shares memory with x or w: pass an array of its own")
    return given
