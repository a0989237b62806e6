"""An array of any library: device, address, shape, strides and dtype."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from tilewise.algebra.dtypes import DType, promote
from tilewise.core.problem import Layout
from tilewise.core.shapes import overlapping, reach, written
from tilewise.errors import DtypeError, ShapeError, UsageError
from tilewise.system.once import once

Number = TypeVar("Number", bound=np.generic)
Other = TypeVar("Other", bound=np.generic)
ArrayOf = np.ndarray[tuple[int, ...], np.dtype[Number]]  # NumPy's, for type checkers: the dtype of results
HostArray = ArrayOf[Any]


class Shaped(Protocol):
    """An array of any library, for type checkers."""

    @property
    def shape(self) -> Any: ...

    @property
    def dtype(self) -> Any: ...


Kind = TypeVar("Kind", bound=Shaped)  # the same class out


@dataclass(frozen=True, eq=False)
class Operand:
    """An array of any library. Strides are in elements; `host` is a NumPy view of it if it is on the CPU."""

    array: Any
    library: Library
    device: str  # "cpu" or "cuda:0"
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    pointer: int
    host: HostArray | None = None
    writable: bool = True
    converted: bool = False  # host is a copy: of 8-bit floats, foreign byte order, or strides that split an element

    @once
    def extent(self) -> tuple[int, int]:
        """The addresses of the first byte and past the last byte of this array."""
        if 0 in self.shape:
            return (self.pointer, self.pointer)
        low, high = reach(self.shape, self.strides)
        return (self.pointer + low * self.dtype.itemsize, self.pointer + (high + 1) * self.dtype.itemsize)

    @property
    def memory(self) -> HostArray:
        """The NumPy view of an operand that is on the host."""
        assert self.host is not None
        return self.host

    def overlaps(self, other: Operand) -> bool:
        """Whether the two may share memory: by extent, so interleaved arrays count as overlapping."""
        (low, high), (other_low, other_high) = self.extent, other.extent
        return self.device == other.device and low < other_high and other_low < high

    def with_axis(self, axis: int) -> Operand:
        """The same memory with one more axis of length 1, counted from the end."""
        at = len(self.shape) + 1 + axis
        shape, strides = list(self.shape), list(self.strides)
        shape.insert(at, 1)
        strides.insert(at, 0)
        host = None if self.host is None else np.expand_dims(self.host, at)
        return replace(self, shape=tuple(shape), strides=tuple(strides), host=host)

    def layout(self, stack: tuple[int, ...]) -> Layout:
        """The layout of its matrices, with a stride of 0 along every stack axis it is broadcast over."""
        row, col = self.strides[-2:]
        if not stack and len(self.shape) == 2:
            return Layout(row, col, (), self.pointer % 16)
        own = [0 if size == 1 else stride for size, stride in zip(self.shape[:-2], self.strides[:-2], strict=True)]
        return Layout(row, col, (*[0] * (len(stack) - len(own)), *own), self.pointer % 16)


def out_operand(library: Library, out: Any) -> Operand:
    """`out=` as an operand that P can be written to, or an error that says what to pass."""
    if library.name == "jax":
        raise UsageError("JAX arrays are immutable, so they cannot be out=: leave it out and take what is returned")
    if library.name == "numpy" and not isinstance(out, np.ndarray):
        raise DtypeError(f"out must be an array, got {type(out).__name__}")
    given = library.operand(out, "out")
    if not given.writable:
        raise ShapeError("out is read-only: pass an array that can be written")
    if given.converted and given.host is not None:  # a copy: what is written to is `out` itself
        check_apart(out.shape, out.strides, out.itemsize)
    else:
        check_apart(given.shape, given.strides)
    return given


def check_apart(shape: tuple[int, ...], strides: tuple[int, ...], width: int = 1) -> None:
    """ShapeError if cells of `out` share memory."""
    if overlapping(shape, strides, width):
        raise ShapeError(
            f"out is {written(shape)} with strides {strides}, so several of its cells are one place in "
            "memory (expanded or broadcast): pass one whose cells lie apart"
        )


class Library(Protocol):
    """The interface of an array library."""

    name: str

    def operand(self, array: Any, role: str) -> Operand:
        """The array as an Operand, without a copy where that is possible; `role` is its name in messages."""

    def empty(self, shape: tuple[int, ...], dtype: DType, device: str) -> Operand:
        """Fresh memory for a product."""

    def deliver(self, product: Operand) -> Any:
        """The product as the library's own array, for the caller."""

    def promote(self, m: DType, n: DType) -> DType:
        """The dtype to which operands of these are converted; NumPy's rules, where the library has none of its own."""
        return promote(m, n)

    def stream(self, device: str) -> int:
        """The handle of the CUDA stream the caller works on; 0 is the default stream."""
        return 0


def dense_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of a row-major array."""
    if len(shape) == 2:  # the first call of every size
        return shape[1], 1
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
