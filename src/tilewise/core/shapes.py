"""numpy.matmul's rules for shapes, as pure functions: 1-D operands, stacks, broadcasting."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewise.errors import ShapeError

Shape = tuple[int, ...]


class ProductShape(NamedTuple):
    """The product of two shapes: m×k times k×n for each member of the stack; `product` is the shape of P."""

    m: int
    k: int
    n: int
    stack: Shape
    vector_m: bool  # M was 1-D: a row, and P has no row axis
    vector_n: bool  # N was 1-D: a column, and P has no column axis

    @property
    def product(self) -> Shape:
        return (*self.stack, *(() if self.vector_m else (self.m,)), *(() if self.vector_n else (self.n,)))


def product_shape(M: Shape, N: Shape, out: Shape | None = None) -> ProductShape:
    """The shape of M·N; an `out` with a larger stack makes the stack larger, as in NumPy."""
    if not (M and N):
        raise ShapeError(f"{'N' if M else 'M'} is a single number: matmul takes vectors, matrices and stacks of them")
    vector_m, vector_n = len(M) == 1, len(N) == 1
    m, k = (1, M[0]) if vector_m else M[-2:]
    rows, n = (N[0], 1) if vector_n else N[-2:]
    if k != rows:
        raise ShapeError(
            f"M is {written(M)} and N is {written(N)}: "
            f"the {k} columns of M do not meet the {rows} rows of N; they must be equal"
        )
    try:
        stack = M[:-2]
        if stack != N[:-2]:
            stack = np.broadcast_shapes(stack, N[:-2])
    except ValueError:
        raise ShapeError(
            f"M is {written(M)} and N is {written(N)}: "
            f"the stacks {written(M[:-2])} and {written(N[:-2])} do not broadcast"
        ) from None
    made = ProductShape(m, k, n, stack, vector_m, vector_n)
    if out is None or out == made.product:
        return made
    axes = len(made.product) - len(stack)
    wider = out[: len(out) - axes]
    if out[len(out) - axes :] == made.product[len(stack) :]:
        try:
            if np.broadcast_shapes(stack, wider) == wider:
                return ProductShape(m, k, n, wider, vector_m, vector_n)
        except ValueError:
            pass
    raise ShapeError(f"out is {written(out)}, but the product is {written(made.product)}")


def reach(shape: Shape, strides: Shape) -> tuple[int, int]:
    """The offsets of the lowest and the highest element from the first one, in the unit of the strides."""
    steps = [(size - 1) * stride for size, stride in zip(shape, strides, strict=True)]
    return sum(step for step in steps if step < 0), sum(step for step in steps if step > 0)


def overlapping(shape: Shape, strides: Shape, width: int = 1) -> bool:
    """Whether two elements share memory, as in an expanded array; an element is `width` units of the strides wide."""
    if len(shape) == 2 and strides[1] == width and strides[0] >= shape[1] * width:
        return False  # dense rows, the usual case
    axes = sorted((abs(stride), size) for stride, size in zip(strides, shape, strict=True) if size > 1)
    if 0 in shape or not axes:
        return False
    reach = 0
    for stride, size in axes:
        if stride < reach + width:
            break
        reach += stride * (size - 1)
    else:
        return False  # every stride exceeds the reach of the smaller axes
    if axes[0][0] == 0:
        return True
    places = np.zeros(1, np.int64)
    for stride, size in axes:
        places = (places[:, None] + np.arange(0, stride * size, stride)).ravel()
    places.sort()
    return bool((np.diff(places) < width).any())


def written(shape: Shape) -> str:
    """A shape as text: 3×4."""
    return "×".join(map(str, shape)) if shape else "()"
