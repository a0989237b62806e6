"""Scales of 8-bit floats: P = a · (M·N) · b, a for all of P or for each row, b for all of P or for each column.

A scale is a number, or an array of one number or of one for each row (column), float32, where the operands are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import DTYPES, FLOAT8, Array, promote
from tilewise.arrays import Library, Operand
from tilewise.core.problem import Problem
from tilewise.errors import DeviceError, DtypeError, ShapeError, UsageError

HostScales = tuple[float, Array | None, Array | None]  # a factor, row scales, column scales


@dataclass(frozen=True)
class Scales:
    """The scales of both sides: numbers multiplied into `factor`, arrays as operands of one axis."""

    factor: float
    of_m: Operand | None
    of_n: Operand | None

    @property
    def steps(self) -> tuple[int | None, int | None]:
        """The stride of each side's array, None where it has none."""
        of_m, of_n = (None if x is None else step(x) for x in (self.of_m, self.of_n))
        return of_m, of_n

    @property
    def on_host(self) -> HostScales:
        rows, columns = (None if x is None else x.host for x in (self.of_m, self.of_n))
        return self.factor, rows, columns


def scaled_by(sums: Array, a: Any, b: Any) -> Array:
    """Float32 sums on the host, scaled in place by a checked pair of a call's `scales=`."""
    factor, arrays = 1.0, []
    for x in (a, b):
        number = x is None or isinstance(x, int | float)
        factor *= x if number and x is not None else 1.0
        arrays.append(None if number else x)
    return scaled(sums, factor, *arrays)


def scaled(sums: Array, factor: float, rows: Array | None, columns: Array | None) -> Array:
    """The same by `HostScales`."""
    with np.errstate(all="ignore"):
        if factor != 1.0:
            np.multiply(sums, np.float32(factor), out=sums)
        if rows is not None:
            np.multiply(sums, rows.reshape(-1, 1), out=sums)
        if columns is not None:
            np.multiply(sums, columns.reshape(1, -1), out=sums)
    return sums


def bind_scales(scales: Any, problem: Problem, library: Library, device: str) -> Scales:
    """The `scales=` of a call, checked."""
    if not isinstance(scales, tuple | list) or len(scales) != 2:
        raise UsageError("scales must be a pair: one for M (a number, or one for each row) and one for N")
    if not (problem.dtype_m.name in FLOAT8 and problem.dtype_n.name in FLOAT8) and device != "cpu":
        raise DtypeError(f"scales= is for 8-bit floats, and M is {problem.dtype_m} and N is {problem.dtype_n}")
    for name, dtype in (("M", problem.dtype_m), ("N", problem.dtype_n)):  # on the host 8-bit floats come as float32
        if dtype.name not in FLOAT8 and promote(dtype, DTYPES["float32"]) != DTYPES["float32"]:
            raise DtypeError(f"scales= is for 8-bit floats, whose sums are float32, and {name} is {dtype}: multiply P")
    if problem.result.kind != "f":  # scaled sums are floats, and would wrap as integers
        raise DtypeError(f"scales= makes floats, and this product is {problem.result}: pass dtype='float32'")
    if problem.stack or problem.accumulate:
        raise UsageError("scales= is for one product of two matrices, without accumulate=")
    factor = 1.0
    arrays: list[Operand | None] = []
    for name, scale, extent in (("M", scales[0], problem.m), ("N", scales[1], problem.n)):
        if scale is None or isinstance(scale, int | float):
            factor *= 1.0 if scale is None else scale
            arrays.append(None)
            continue
        given = library.operand(scale, f"the scale of {name}")
        count = int(np.prod(given.shape))
        if given.dtype.name != "float32":
            raise DtypeError(f"the scale of {name} has dtype {given.dtype}: pass float32")
        if count not in (1, extent) or max(given.shape, default=1) != count:
            raise ShapeError(f"the scale of {name} has shape {given.shape}: pass one number, or {extent} in a vector")
        if given.device != device:
            raise DeviceError(f"the scale of {name} is on {given.device} and the operands are on {device}")
        arrays.append(given)
    return Scales(factor, *arrays)


def step(scale: Operand) -> int:
    """The stride of a scale, 0 for a single number."""
    strides = [stride for stride, extent in zip(scale.strides, scale.shape, strict=True) if extent > 1]
    return strides[0] if strides else 0
