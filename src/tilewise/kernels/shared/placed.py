"""Matrices on the card in a recipe: an address to be filled in, a layout, a dtype."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from itertools import product

from tilewise.algebra.dtypes import DTYPES, DType
from tilewise.core.problem import Layout, Problem, row_major
from tilewise.core.recipe import Address, Argument, Scratch, structure
from tilewise.kernels.shared.layouts import contiguous_lines


@dataclass(frozen=True)
class Placed:
    """A stack of matrices."""

    pointer: Address
    dtype: DType
    rows: int
    cols: int
    layout: Layout

    def member(self, index: tuple[int, ...]) -> Address:
        """The address of one matrix of the stack."""
        if not index:
            return self.pointer
        offset = sum(i * stride for i, stride in zip(index, self.layout.stack, strict=True))
        return self.pointer + offset * self.dtype.itemsize

    def on(self, elements: int) -> Address:
        """So many elements behind the first."""
        return self.pointer + elements * self.dtype.itemsize

    def part(self, top: int, rows: int, left: int, cols: int) -> Placed:
        """Some rows and columns of each."""
        offset = (top * self.layout.row + left * self.layout.col) * self.dtype.itemsize
        return Placed(self.pointer + offset, self.dtype, rows, cols, self.layout)

    @property
    def transposed(self) -> Placed:
        """The same memory with rows and columns exchanged."""
        layout = Layout(self.layout.col, self.layout.row, self.layout.stack, self.layout.misalignment)
        return Placed(self.pointer, self.dtype, self.cols, self.rows, layout)

    @property
    def by_columns(self) -> bool:
        """Whether columns, rather than rows, lie side by side."""
        return abs(self.layout.row) < abs(self.layout.col)

    @property
    def lines(self) -> tuple[int, int, int]:
        """`contiguous_lines` of a matrix that has them."""
        found = contiguous_lines(self.layout, self.rows, self.cols)
        assert found is not None
        return found

    @property
    def lead(self) -> int:
        """The leading dimension of a matrix whose rows lie side by side."""
        lead = self.layout.leading_dimension(self.rows, self.cols)
        assert lead is not None
        return lead


@dataclass(frozen=True)
class Scales:
    """What rows and columns of P are scaled by: a number, and the strides of float32 arrays where there are any."""

    factor: float
    step_m: int | None = None  # elements from one number of M's scale to the next; None where it has no array
    step_n: int | None = None


@dataclass(frozen=True)
class Operands:
    """The operands of a family's recipe."""

    M: Placed
    N: Placed
    P: Placed
    arg: Placed | None = None  # the k that won each cell
    bias: Address | None = None
    scales: Scales | None = None


def operands_of(p: Problem, scales: Scales | None = None) -> Operands:
    """The operands of a problem; their addresses are filled in by each call."""
    M = Placed(Address("M", 0, p.layout_m.misalignment), p.dtype_m, p.m, p.k, p.layout_m)
    N = Placed(Address("N", 0, p.layout_n.misalignment), p.dtype_n, p.k, p.n, p.layout_n)
    P = Placed(Address("P", 0, p.layout_p.misalignment), p.result, p.m, p.n, p.layout_p)
    arg = None
    if p.return_arg:
        arg = Placed(Address("arg"), DTYPES["int64"], p.m, p.n, row_major(p.m, p.n, p.stack))
    return Operands(M, N, P, arg, Address("bias") if p.epilogue.bias else None, scales)


def workspace(rows: int, cols: int, stack: tuple[int, ...], dtype: DType, lead: int, scratch: Scratch) -> Placed:
    """Matrices in scratch memory, their rows `lead` apart."""
    layout, members = row_major(rows, lead, stack), 1
    for extent in stack:
        members *= extent
    return Placed(
        scratch.take(rows * lead * members * dtype.itemsize), dtype, rows, cols, Layout(lead, 1, layout.stack)
    )


class Reach(ctypes.Structure):
    """The kernels' `Reach`: the extent of a stack in memory, inside which kernels read unaligned rows by 16 bytes."""

    _fields_ = (("low", ctypes.c_longlong), ("high", ctypes.c_longlong))


def reach_of(x: Placed, step: int, members: int) -> Argument:
    lines, length, lead = x.lines
    last = (members - 1) * step
    return structure(Reach, min(0, last), max(0, last) + (lines - 1) * lead + length)


def own_stack(x: Placed, stack: tuple[int, ...]) -> tuple[int, ...]:
    """The operand's own stack: 1 for axes that it is broadcast over."""
    if not stack:
        return ()
    return tuple(1 if stride == 0 else extent for extent, stride in zip(stack, x.layout.stack, strict=True))


def broadcast(own: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """The strides with 0 for axes of one member: those of `own_stack` stay broadcast."""
    return tuple(0 if extent == 1 else stride for extent, stride in zip(own, strides, strict=True))


def members(stack: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The index of every member of a stack."""
    return list(product(*map(range, stack)))
