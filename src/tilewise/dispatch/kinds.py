"""Calls that differ from an earlier one in extents and strides only: the plan is reused, only the kernel choice and the
argument block are recomputed.

The first call of a kind is bound, planned and run step by step (`product.first_call`); for the others only shapes and
strides are read.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tilewise.arrays.numpy_library import SMALL
from tilewise.arrays.numpy_signature import written_directly
from tilewise.arrays.operand import dense_strides
from tilewise.backends.cpu.kernels.shared.job import JOB_FIELDS
from tilewise.backends.cpu.ready import FILLED_BYTES, ZERO_OFFSET_ADDRESS, Ready, fill, kernel_of
from tilewise.backends.cpu.registry import cut_for, tile_of
from tilewise.backends.cpu.runtime.target import host_target
from tilewise.core.blocking import RegisterTile
from tilewise.core.options import Key
from tilewise.core.plan import Plan
from tilewise.core.problem import Layout, Problem, row_major
from tilewise.core.shapes import ProductShape, product_shape
from tilewise.dispatch.decisions import Decisions
from tilewise.dispatch.prepared import OnHost, one_memory
from tilewise.errors import ShapeError
from tilewise.scale.pieces import piece_steps

FIRST_SIZES = 16  # sizes without a table of decisions: loading the function that reads it takes 10 ms
LOG = logging.getLogger("tilewise")


class Kind:
    """The values that calls of one kind share: a problem of any size, the register tile, and the dtype of P in its
    library."""

    def __init__(self, plan: Plan, result: Any) -> None:
        self.problem, self.machine, self.result, self.target = plan.problem, plan.machine, result, host_target()
        self.sizes = 0  # that have been called

    @cached_property
    def tile(self) -> RegisterTile:
        return tile_of(self.problem, self.machine)

    @cached_property
    def most(self) -> int:
        """Most steps of a product that is not run in pieces."""
        return 2 * piece_steps(self.problem, self.machine)

    @cached_property
    def decisions(self) -> Decisions:
        """`_decided` as a table."""
        return Decisions(self._decided, 9)

    def _decided(self, m: int, k: int, n: int, *strides: int) -> Any:
        """The filled job of a product of matrices, and what depends on its kernel alone; None where memory or weights
        must be looked at."""
        M, N, P = (Layout(strides[at], strides[at + 1]) for at in (0, 2, 4))
        problem = self.problem.resized(m, k, n, (), M, N, P)
        if not self._is_few(problem) or problem.may_mirror():
            return None
        cut = cut_for(problem, self.tile)
        kernel = kernel_of(problem, cut, self.target)
        filled = fill(kernel, problem, cut, 1, (ZERO_OFFSET_ADDRESS,) * 4)
        if filled.size > len(JOB_FIELDS) or kernel.no_edge is not None:
            return None
        return (*filled.values, filled.space, filled.workers), (kernel, cut.swapped, filled.one_task)

    def _is_few(self, p: Problem) -> bool:
        """Whether a product is neither run in pieces, nor so large that free memory is checked."""
        return 0 < p.members * p.m * p.k * p.n <= self.most and p.members * p.m * p.n * p.result.itemsize <= SMALL

    def prepared(self, M: Any, N: Any, out: Any, key: Key) -> tuple[Any, bool | None]:
        """The prepared call for operands of this kind, None where it cannot be derived from their layouts; and, where N
        has M's layout transposed, whether both are one memory."""
        if LOG.isEnabledFor(logging.DEBUG) or self.target is not host_target():
            return None, None
        on_numpy, mirrored = isinstance(M, np.ndarray), None
        self.sizes += 1
        ready = self._looked_up(M, N, out) if self.sizes > FIRST_SIZES else None
        if ready is None:
            try:
                shape = product_shape(M.shape, N.shape)
            except ShapeError:
                return None, None  # `bind` raises it again, with the names of the arguments
            problem = self._problem(M, N, out, shape)
            if problem is None or not self._is_few(problem):
                return None, None
            if shape.m == shape.n and problem.may_mirror():
                mirrored = problem.__dict__["symmetric"] = one_memory(M, N)
            ready = Ready(problem, cut_for(problem, self.tile), self.target)
            ready.shape = shape.product
        if on_numpy:
            return OnHost(ready, (M.dtype, N.dtype, self.result), written_directly(key)), mirrored
        from tilewise.arrays.torch_on_host import OnHostMemory

        return OnHostMemory(ready, dense_strides(ready.shape), self.result, M, N), mirrored

    def _looked_up(self, M: Any, N: Any, out: Any) -> Ready | None:
        """By the table of decisions; None for stacks, and where it has no answer."""
        shape_m, shape_n, on_numpy = M.shape, N.shape, isinstance(M, np.ndarray)
        of_m, of_n = (M.strides, N.strides) if on_numpy else (M.stride(), N.stride())
        if len(shape_m) > 2 or len(shape_n) > 2 or not (of_m and of_n):
            return None
        m, k, row_m, col_m = (*shape_m, *of_m) if len(of_m) > 1 else (1, *shape_m, 0, *of_m)
        rows, n, row_n, col_n = (*shape_n, *of_n) if len(of_n) > 1 else (*shape_n, 1, *of_n, 0)
        if rows != k:
            return None
        if on_numpy:
            size_m, size_n = M.itemsize, N.itemsize  # powers of two
            if (row_m | col_m) & (size_m - 1) or (row_n | col_n) & (size_n - 1):
                return None
            row_m, col_m, row_n, col_n = row_m // size_m, col_m // size_m, row_n // size_n, col_n // size_n
        if len(of_m) > 1:
            shape: tuple[int, ...] = (m, n) if len(of_n) > 1 else (m,)
        else:
            shape = (n,) if len(of_n) > 1 else ()
        row_p, col_p = n, 1
        if out is not None:
            of_p = _strides(out) if len(shape) == 2 and _fits(out, shape, self.result) else None
            if of_p is None:
                return None
            row_p, col_p = of_p
        template = bytes(FILLED_BYTES)
        found = self.decisions(template, m, k, n, row_m, col_m, row_n, col_n, row_p, col_p)
        if found is None:
            return None
        ready = Ready.filled(template, *found)
        ready.shape = shape
        return ready

    def _problem(self, M: Any, N: Any, out: Any, shape: ProductShape) -> Problem | None:
        """The problem; None where a layout cannot be read or written directly."""
        m, k, n, stack = shape.m, shape.k, shape.n, shape.stack
        of_m, of_n = (_strides(M), _strides(N)) if isinstance(M, np.ndarray) else (M.stride(), N.stride())
        layout_p = row_major(m, n, stack) if out is None else self._layout_of(out, shape)
        if of_m is None or of_n is None or layout_p is None:
            return None
        layout_m = _layout((1, k), (0, of_m[0]), stack) if shape.vector_m else _layout(M.shape, of_m, stack)
        layout_n = _layout((k, 1), (of_n[0], 0), stack) if shape.vector_n else _layout(N.shape, of_n, stack)
        return self.problem.resized(m, k, n, stack, layout_m, layout_n, layout_p)

    def _layout_of(self, out: Any, shape: ProductShape) -> Layout | None:
        """The layout of a given P; None where it cannot be written directly."""
        plain = _fits(out, shape.product, self.result) and not (shape.vector_m or shape.vector_n)
        strides = _strides(out) if plain else None
        return None if strides is None else _layout(out.shape, strides, shape.stack)


def _fits(out: Any, shape: tuple[int, ...], dtype: Any) -> bool:
    return isinstance(out, np.ndarray) and out.shape == shape and out.dtype == dtype


def _strides(x: np.ndarray[Any, np.dtype[Any]]) -> Sequence[int] | None:
    """Strides in elements; None if they are not multiples of the itemsize, as in a field of records."""
    size, strides = x.itemsize, x.strides
    for stride in strides:
        if stride % size:
            return None
    return [stride // size for stride in strides]


def _layout(shape: Sequence[int], strides: Sequence[int], stack: tuple[int, ...]) -> Layout:
    row, col = strides[-2:]
    if not stack:
        return Layout(row, col)
    own = strides[:-2]
    if 1 in shape:
        own = [0 if extent == 1 else step for extent, step in zip(shape, own, strict=False)]
    return Layout(row, col, (*[0] * (len(stack) - len(own)), *own))
