"""Binding a call: arrays of any library and keywords → a Problem, operands as stacks of matrices, a device."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilewise.algebra.builtin import find_semiring, is_plus_times
from tilewise.algebra.dtypes import DType, dtype_given
from tilewise.algebra.semiring import Semiring
from tilewise.arrays import Library, Operand, find_library
from tilewise.arrays.card import card_number
from tilewise.arrays.float8_scales import Scales, bind_scales
from tilewise.arrays.narrowing import narrowed
from tilewise.arrays.operand import out_operand
from tilewise.core.epilogue import check_fits, epilogue_of
from tilewise.core.options import Options
from tilewise.core.problem import Problem, check_precision, row_major
from tilewise.core.reproducible import check_reproducible
from tilewise.core.shapes import ProductShape, product_shape, written
from tilewise.errors import DeviceError, DtypeError, ShapeError, UsageError

BESIDE_THE_SUM = ("alpha", "bias", "activation")  # keywords whose rounding "everywhere" does not specify


@dataclass(frozen=True)
class Call:
    """A bound call: operands as (stacks of) matrices, and their problem."""

    problem: Problem
    shape: ProductShape
    device: str  # where it runs
    library: Library
    M: Operand
    N: Operand
    out: Operand | None
    scales: Scales | None = None
    bias: Operand | None = None


def bind(M: Any, N: Any, o: Options) -> Call:
    """The call's problem and operands; an error says why it cannot run."""
    ring = find_semiring(o.semiring)
    check_precision(o.precision)
    library = find_library(M)
    check_library(library, N, "N")
    left, right = library.operand(M, "M"), library.operand(N, "N")
    requested = None if left.dtype is right.dtype else library.promote(left.dtype, right.dtype)
    if o.dtype is not None:
        requested = checked_dtype(dtype_given(o.dtype), requested or library.promote(left.dtype, right.dtype), library)
    if requested is not None:
        left, right = narrowed(left, requested), narrowed(right, requested)
    check_device(left, right, "N")
    given = None if o.out is None else _given_out(o.out, library, left)
    shape = product_shape(left.shape, right.shape, given.shape if given else None)
    left = left.with_axis(-2) if shape.vector_m else left
    right = right.with_axis(-1) if shape.vector_n else right
    where = _device_of(left, o.device)
    if check_reproducible(o.reproducible) is not None:
        fused = o.reproducible == "batch" and where not in ("cpu", "simt")  # on sums, of any rows alike
        beside = ("scales",) if fused else ("scales", *BESIDE_THE_SUM)
        o.refuse("and reproducible= exclude each other here: apply them to the product", *beside)
    problem = _problem(left, right, shape, ring, requested, o, given)
    if given is not None:
        _check_out_dtype(given, problem.result, o.accumulate)
    if o.return_arg:
        check_return_arg(ring, where, o.accumulate)
    if left.pointer == right.pointer and where == left.device and problem.may_mirror(on_card=where != "cpu"):
        problem = replace(problem, symmetric=True)
    call = Call(problem, shape, where, library, left, right, given)
    if o.scales is not None:
        return _scaled(call, o)
    plain = o.bias is None and o.activation is None and o.alpha.__class__ is float and o.alpha == 1.0
    return call if plain else _with_epilogue(call, o)


def _problem(
    left: Operand,
    right: Operand,
    shape: ProductShape,
    ring: Semiring,
    requested: DType | None,
    o: Options,
    given: Operand | None,
) -> Problem:
    """`given`: P, where it is given."""
    of_p = row_major(shape.m, shape.n, shape.stack) if given is None else matrices(given, shape).layout(shape.stack)
    return Problem(
        shape.m,
        shape.k,
        shape.n,
        shape.stack,
        left.dtype,
        right.dtype,
        ring,
        left.layout(shape.stack),
        right.layout(shape.stack),
        of_p,
        o.accumulate,
        o.precision,
        o.return_arg,
        o.nonnegative,
        requested=requested,
        reproducible=o.reproducible,
    )


def matrices(product: Operand, shape: ProductShape) -> Operand:
    """P with the axes that vector operands leave out, as (a stack of) matrices."""
    product = product.with_axis(-1) if shape.vector_n else product
    return product.with_axis(-2) if shape.vector_m else product


def checked_dtype(requested: DType, common: DType, library: Library) -> DType:
    """Check dtype= by NumPy's same_kind rule, and that the library's arrays can have it."""
    if library.name == "jax" and sys.modules["jax"].dtypes.canonicalize_dtype(requested.numpy) != requested.numpy:
        raise DtypeError(f"dtype={requested.name!r} is of 64 bits, which JAX has off: set jax_enable_x64")
    if not np.can_cast(common.numpy, requested.numpy, "same_kind"):
        raise DtypeError(f"dtype={requested.name!r} cannot hold a product of {common}: convert M and N yourself")
    return requested


def _scaled(call: Call, o: Options) -> Call:
    o.refuse("and scales= exclude each other: put alpha into a scale", "alpha", "bias", "activation")
    o.refuse("and scales= exclude each other", "return_arg")
    if not is_plus_times(call.problem.semiring):
        raise UsageError(f"scales= needs plus_times, and the semiring is {call.problem.semiring}: leave them out")
    found = bind_scales(o.scales, call.problem, call.library, call.device)
    return replace(call, scales=found, problem=replace(call.problem, scaled=True))


def _with_epilogue(call: Call, o: Options) -> Call:
    """The call with its epilogue, which is applied before the product is stored."""
    added = None
    if o.bias is not None:
        added = operand_beside(call.library, o.bias, "bias")
        if added.shape != (call.problem.n,):
            raise ShapeError(
                f"bias is {written(added.shape)}, and P has {call.problem.n} columns: pass one number for each of them"
            )
        check_device(call.M, added, "bias")
    epilogue = epilogue_of(o.alpha, None if added is None else added.dtype, o.activation)
    if not epilogue:
        return call
    check_fits(epilogue, call.problem.semiring, is_plus_times(call.problem.semiring), call.problem.result)
    return replace(call, problem=replace(call.problem, epilogue=epilogue), bias=added)


def check_return_arg(ring: Semiring, device: str, accumulate: bool) -> None:
    ring.check_selective()
    if device == "simt":
        raise DeviceError("return_arg=True has no kernel in the interpreter: pass device='cpu' or 'cuda'")
    if accumulate:
        raise UsageError("return_arg=True and accumulate=True exclude each other: what was in out has no k")


def operand_beside(library: Library, other: Any, role: str, first: str = "M") -> Operand:
    """An array as an operand, if it is of the library of `first`."""
    check_library(library, other, role, first)
    return library.operand(other, role)


def check_library(library: Library, other: Any, role: str, first: str = "M") -> None:
    theirs = find_library(other)
    if theirs.name != library.name:
        raise UsageError(
            f"{first} is of {library.name} and {role} is of {theirs.name}: convert one, so that all are of one kind"
        )


def check_device(left: Operand, other: Operand, role: str, first: str = "M") -> None:
    if left.device != other.device:
        raise DeviceError(f"{first} is on {left.device} and {role} is on {other.device}: bring them together first")


def _given_out(out: Any, library: Library, left: Operand) -> Operand:
    check_library(library, out, "out")
    given = out_operand(library, out)
    check_device(left, given, "out")
    return given


def _check_out_dtype(given: Operand, result: DType, accumulate: bool) -> None:
    if given.dtype == result:
        return
    casts = [(result, given.dtype), (given.dtype, result)][: 1 + accumulate]  # what is added onto is read as the result
    if given.library.name != "numpy" or not all(np.can_cast(x.numpy, y.numpy, "same_kind") for x, y in casts):
        raise DtypeError(f"out has dtype {given.dtype}, but the product has {result}: pass an out of dtype {result}")


def _device_of(left: Operand, device: str) -> str:
    """The device that executes: that of the operands, unless host arrays are sent to a card."""
    if not isinstance(device, str):
        raise UsageError(f"device={device!r} must be one of 'auto', 'cpu', 'simt', 'cuda' or 'cuda:1'")
    if device == "auto":
        return left.device
    if device in ("cpu", "simt"):
        if left.device != "cpu":
            raise DeviceError(
                f"the operands are on {left.device} and device={device!r} was requested: copy them to the host first"
            )
        return device
    requested = f"cuda:{card_number(device)}"
    if left.device not in ("cpu", requested):
        raise DeviceError(
            f"the operands are on {left.device} and device={device!r} was requested: copy them there first"
        )
    return requested
