"""Calls that differ from an earlier one in extents and strides only: the plan is reused, only the kernel choice and the
argument block are recomputed.

The first call of a kind is bound, planned and run step by step (`product.first_call`); for the others only shapes and
strides are read.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tilewise.arrays.numpy_library import SMALL
from tilewise.arrays.numpy_signature import written_directly
from tilewise.arrays.operand import dense_strides
from tilewise.backends.cpu.ready import Ready
from tilewise.backends.cpu.registry import cut_for, tile_of
from tilewise.backends.cpu.runtime.target import host_target
from tilewise.core.blocking import RegisterTile
from tilewise.core.options import Key
from tilewise.core.plan import Plan
from tilewise.core.problem import Layout, row_major
from tilewise.core.shapes import ProductShape, product_shape
from tilewise.dispatch.prepared import OnHost, one_memory
from tilewise.errors import ShapeError
from tilewise.scale.pieces import piece_steps

LOG = logging.getLogger("tilewise")


class Kind:
    """The values that calls of one kind share: a problem of any size, the register tile, and the dtype of P in its
    library."""

    def __init__(self, plan: Plan, result: Any) -> None:
        self.problem, self.machine, self.result, self.target = plan.problem, plan.machine, result, host_target()

    @cached_property
    def tile(self) -> RegisterTile:
        return tile_of(self.problem, self.machine)

    @cached_property
    def most(self) -> int:
        """Most steps of a product that is not run in pieces."""
        return 2 * piece_steps(self.problem, self.machine)

    def prepared(self, M: Any, N: Any, out: Any, key: Key) -> tuple[Any, bool | None]:
        """The prepared call for operands of this kind, None where it cannot be derived from their layouts; and, where N
        has M's layout transposed, whether both are one memory."""
        if LOG.isEnabledFor(logging.DEBUG) or self.target is not host_target():
            return None, None
        try:
            shape = product_shape(M.shape, N.shape)
        except ShapeError:
            return None, None  # `bind` raises it again, with the names of the arguments
        m, k, n, stack = shape.m, shape.k, shape.n, shape.stack
        members, on_numpy = math.prod(stack) if stack else 1, M.__class__ is np.ndarray
        few = 0 < members * m * k * n <= self.most and members * m * n * self.problem.result.itemsize <= SMALL
        of_m, of_n = (_strides(M), _strides(N)) if on_numpy else (M.stride(), N.stride())
        layout_p = row_major(m, n, stack) if out is None else self._layout_of(out, shape)
        if not few or of_m is None or of_n is None or layout_p is None:
            return None, None
        layout_m = _layout((1, k), (0, of_m[0]), stack) if shape.vector_m else _layout(M.shape, of_m, stack)
        layout_n = _layout((k, 1), (of_n[0], 0), stack) if shape.vector_n else _layout(N.shape, of_n, stack)
        problem, mirrored = self.problem.resized(m, k, n, stack, layout_m, layout_n, layout_p), None
        if m == n and problem.may_mirror():
            mirrored = problem.__dict__["symmetric"] = one_memory(M, N)
        ready = Ready(problem, cut_for(problem, self.tile), self.target)
        ready.shape = shape.product
        if on_numpy:
            return OnHost(ready, (M.dtype, N.dtype, self.result), written_directly(key)), mirrored
        from tilewise.arrays.torch_on_host import OnHostMemory

        return OnHostMemory(ready, dense_strides(ready.shape), self.result, M, N), mirrored

    def _layout_of(self, out: Any, shape: ProductShape) -> Layout | None:
        """The layout of a given P; None where it cannot be written directly."""
        plain = out.__class__ is np.ndarray and out.shape == shape.product and out.dtype == self.result
        strides = _strides(out) if plain and not (shape.vector_m or shape.vector_n) else None
        return None if strides is None else _layout(out.shape, strides, shape.stack)


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
