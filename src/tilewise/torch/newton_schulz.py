"""Newton–Schulz iterations of a list of matrices: matrices of about one size are padded to one stack, so that a step is
three launches for all of them.

A step is X ← (aI + bA + cA²)X with A = X·Xᵀ. A and A² are symmetric: one triangle is computed. X is s·Y, and what
multiplies Y is divided by its coefficient of A times a power of two, which keeps s near 1: A² then accumulates onto an
exact copy of A, whose diagonal has the multiple of I, and the last product needs no sum. In bfloat16 the error is that
of torch.addmm. Rows and columns of zeros stay zeros, so padding changes no value; the leading dimensions of a stack are
whole 16-byte units for all extents, as tensor cores require.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tilewise.arrays.torch_library import DIRECT
from tilewise.dispatch.product import matmul
from tilewise.errors import DtypeError, ShapeError, UsageError

Coefficients = Sequence[float] | Sequence[Sequence[float]]
QUINTIC = (3.4445, -4.7750, 2.0315)  # Muon's: the largest slope at 0 that keeps singular values within 0.7 to 1.2
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
PADDED = 1.25  # steps of a stack over those of its matrices, at most: a launch fewer for a fourth more work
STACK_BYTES = 1 << 29  # of X in one stack, beside which there are a second X and two of rows × rows


def newton_schulz(
    matrices: Sequence[Tensor],
    steps: int = 5,
    coefficients: Coefficients = QUINTIC,
    *,
    eps: float = 1e-7,
    dtype: torch.dtype | None = None,
) -> list[Tensor]:
    """Each matrix after `steps` of X ← aX + (bA + cA²)X with A = X·Xᵀ, from X / ‖X‖ on: about U·Vᵀ of its SVD.

    matrices: floating-point matrices of any sizes, alignments and strides; a matrix with more rows than columns is
        iterated transposed. On a GPU, those of about one size are multiplied together, three products a step.
    coefficients: (a, b, c), or one such triple for each step.
    eps: the least norm that a matrix is divided by.
    dtype: of the iteration and of what is returned; that of each matrix if None.

    No gradient is recorded. Results may be views of one larger tensor.

    >>> import torch
    >>> (Q,) = tw.torch.newton_schulz([torch.tensor([[3.0, 0.0, 0.0], [0.0, 0.5, 0.0]])])
    >>> bool(((Q @ Q.mT).diagonal() - 1).abs().max() < 0.5)
    True
    """
    schedule = checked_schedule(steps, coefficients)
    given = [_checked(x, number, dtype) for number, x in enumerate(matrices)]
    made: list[Any] = [None] * len(given)
    with torch.no_grad():
        for stack in _stacks(given, dtype):
            held = [given[number].detach() for number in stack.numbers]
            for number, result in zip(stack.numbers, _iterated(stack, held, schedule, eps), strict=True):
                made[number] = result
    return made


def checked_schedule(steps: int, coefficients: Coefficients) -> list[tuple[float, float, float]]:
    """(a, b, c) of each step."""
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 0:
        raise UsageError(f"steps={steps!r} must be a whole number, 0 or more")
    each: list[Any] = list(coefficients)
    if len(each) == 3 and not any(isinstance(x, Sequence) for x in each):
        each = [each] * steps
    if len(each) != steps or any(not isinstance(x, Sequence) or len(x) != 3 for x in each):
        raise UsageError(f"coefficients={coefficients!r} must be (a, b, c), or such a triple for each of {steps} steps")
    return [(float(x[0]), float(x[1]), float(x[2])) for x in each]


def _checked(x: Tensor, number: int, dtype: torch.dtype | None) -> Tensor:
    if not isinstance(x, Tensor) or x.dim() != 2:
        what = f"of {x.dim()} dimensions" if isinstance(x, Tensor) else type(x).__name__
        raise ShapeError(f"matrices[{number}] is {what}: pass tensors of two dimensions")
    if (dtype or x.dtype) not in DTYPES or not x.is_floating_point():
        raise DtypeError(
            f"matrices[{number}] has dtype {x.dtype}, dtype={dtype}: pass one of {', '.join(map(str, DTYPES))}"
        )
    return x


class Stack(NamedTuple):
    """The matrices of one stack by their numbers, its rows and columns, and its device and dtype."""

    numbers: list[int]
    rows: int
    cols: int
    device: torch.device
    dtype: torch.dtype


def _stacks(given: list[Tensor], dtype: torch.dtype | None) -> Iterator[Stack]:
    """Largest first: a stack takes matrices until padding costs more than `PADDED`. On the host, where a launch costs
    little, those of one size alone."""
    places: dict[tuple[torch.device, torch.dtype], list[tuple[int, int, int]]] = {}
    for number, x in enumerate(given):
        places.setdefault((x.device, dtype or x.dtype), []).append((min(x.shape), max(x.shape), number))
    for (device, kind), sizes in places.items():
        open_stack: Stack | None = None
        for rows, cols, number in sorted(sizes, key=lambda size: (*size[:2], -size[2]), reverse=True):
            if open_stack is not None and _joins(open_stack, rows, cols):
                open_stack.numbers.append(number)
                continue
            if open_stack is not None:
                yield open_stack
            open_stack = Stack([number], rows, cols, device, kind)
        if open_stack is not None:
            yield open_stack


def _joins(stack: Stack, rows: int, cols: int) -> bool:
    if (len(stack.numbers) + 1) * stack.rows * stack.cols * stack.dtype.itemsize > STACK_BYTES:
        return False
    if stack.device.type == "cpu":
        return (rows, cols) == (stack.rows, stack.cols)
    return cols <= stack.cols and _steps(stack.rows, stack.cols) <= PADDED * _steps(rows, cols)


def _steps(rows: int, cols: int) -> int:
    """Multiply-and-add steps of an iteration, symmetric products by half."""
    return rows * rows * (3 * cols + rows) // 2


def _iterated(
    stack: Stack, given: list[Tensor], schedule: list[tuple[float, float, float]], eps: float
) -> Iterator[Tensor]:
    """The matrices of one stack after all steps, as views of it."""
    X = _padded(stack, stack.cols, zero=any(sorted(x.shape) != [stack.rows, stack.cols] for x in given))
    own = [X[i, : min(x.shape), : max(x.shape)] for i, x in enumerate(given)]
    for held, x in zip(own, given, strict=True):
        held.copy_(x.mT if x.shape[0] > x.shape[1] else x)
    if X.numel():
        norms = torch.linalg.vector_norm(X, dim=(1, 2), keepdim=True, dtype=_sums(stack.dtype))
        X.div_(norms.clamp_(min=eps))
        X = _steps_of(X, stack, schedule)
    for i, x in enumerate(given):
        held = X[i, : min(x.shape), : max(x.shape)]
        yield held.mT if x.shape[0] > x.shape[1] else held


def _steps_of(Y: Tensor, stack: Stack, schedule: list[tuple[float, float, float]]) -> Tensor:
    A, B, other = (_padded(stack, cols) for cols in (stack.rows, stack.rows, stack.cols))
    s = 1.0
    with DIRECT:
        for a, b, c in schedule:
            terms = a * s, b * s**3, c * s**5
            factor = terms[1] or terms[2] or terms[0] or 1.0
            scale = 2.0 ** round(math.log2(abs(factor)))
            of_one, of_a, of_square = (term / factor * scale for term in terms)
            matmul(Y, Y.mT, out=A)
            _add_to_diagonal(torch.mul(A, of_a, out=B), of_one)
            if of_square:
                matmul(A, A.mT, out=B, accumulate=True, alpha=of_square)
            matmul(B, Y, out=other)
            Y, other, s = other, Y, factor / scale
    return Y if s == 1.0 else Y.mul_(s)


def _add_to_diagonal(B: Tensor, value: float) -> None:
    diagonal = B.diagonal(dim1=1, dim2=2)
    if B.is_cpu:  # where torch would round the number to B's dtype first
        diagonal.copy_(diagonal.to(_sums(B.dtype)) + value)
    else:
        diagonal.add_(value)


def _padded(stack: Stack, cols: int, zero: bool = False) -> Tensor:
    """A stack of rows × cols, whose rows are on a card whole units of 16 bytes apart."""
    unit = 1 if stack.device.type == "cpu" else 16 // stack.dtype.itemsize
    make = torch.zeros if zero else torch.empty
    shape = len(stack.numbers), stack.rows, -(-cols // unit) * unit
    return make(shape, dtype=stack.dtype, device=stack.device)[:, :, :cols]


def _sums(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32
