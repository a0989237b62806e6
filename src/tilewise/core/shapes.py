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


def written(shape: Shape) -> str:
    """A shape as text: 3×4."""
    return "×".join(map(str, shape)) if shape else "()"
