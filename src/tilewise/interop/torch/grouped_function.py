"""Groups of rows as autograd.Functions: what an eager program's gradients go by, at a third of an operator's cost.

Backward is made of the same functions, so gradients of gradients follow. Where no gradient is wanted, tensors go on as
they are: inside a function nothing is followed, and to detach each costs as much as a look-up. torch.compile, functorch
and subclasses of Tensor go by the operators of `grouped.py`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewise.arrays.torch_library import observed
from tilewise.compose.groups import product as groups
from tilewise.compose.groups import rows as by_index
from tilewise.errors import UsageError
from tilewise.interop.torch.function import is_plain
from tilewise.interop.torch.words import word_of


def eager(x: Tensor, w: Tensor) -> bool:
    """Whether nothing but gradients is followed."""
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return False
    return not observed(x, w)


def _wanted(*tensors: Tensor | None) -> bool:
    return torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors)


def product(x: Tensor, w: Tensor, offsets: Tensor, along: str, semiring: Any, precision: str) -> Tensor:
    """`tw.grouped_matmul`, followed where a gradient is wanted."""
    if _wanted(x, w):
        followed: Tensor = Product.apply(x, w, offsets, along, semiring, precision)
        return followed
    made: Tensor = groups.grouped_matmul(x, w, offsets, along=along, semiring=semiring, precision=precision)
    return made


def take_rows(x: Tensor, rows: Tensor, weights: Tensor | None = None) -> Tensor:
    """x's rows by their index, each times its weight where there are any."""
    if _wanted(x, weights):
        followed: Tensor = Taken.apply(x, rows, weights)
        return followed
    made: Tensor = by_index.take_rows(x, rows, weights)
    return made


def scatter_rows(y: Tensor, rows: Tensor, count: int, weights: Tensor | None) -> Tensor:
    if _wanted(y, weights):
        followed: Tensor = Scattered.apply(y, rows, count, weights)
        return followed
    made: Tensor = by_index.scatter_rows(y, rows, count, weights=weights)
    return made


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, offsets: Tensor, along: str, semiring: Any, precision: str) -> Tensor:
        ctx.save_for_backward(x, w, offsets)
        ctx.along, ctx.semiring, ctx.precision = along, semiring, precision
        return product(x, w, offsets, along, semiring, precision)

    @staticmethod
    def backward(ctx: Any, *flows: Any) -> tuple[Any, ...]:
        """Along rows: dx of each group is dP · wᵀ, dw is xᵀ · dP along k; along k: dx is w · dPᵀ, dw is x · dP."""
        (dP,), (x, w, offsets) = flows, ctx.saved_tensors
        if not is_plain(word_of(ctx.semiring)):
            raise UsageError(f"groups over {ctx.semiring} have no gradient: pass tensors that require none")
        how, dx, dw = ("plus_times", ctx.precision), None, None
        if ctx.needs_input_grad[0]:
            dx = (
                product(w, dP.mT, offsets, "rows", *how)
                if ctx.along == "k"
                else product(dP, w.mT, offsets, "rows", *how)
            )
        if ctx.needs_input_grad[1]:
            dw = product(x, dP, offsets, "rows" if ctx.along == "k" else "k", *how)
        return dx, dw, None, None, None, None


class Taken(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Tensor, weights: Tensor | None) -> Tensor:
        ctx.save_for_backward(*((rows,) if weights is None else (rows, x, weights)))
        ctx.count = x.shape[0]
        return take_rows(x, rows, weights)

    @staticmethod
    def backward(ctx: Any, *flows: Any) -> tuple[Any, ...]:
        """dx[t] = Σ weights[i] · dP[i] over rows[i] == t, dweights[i] = x[rows[i]] · dP[i]."""
        rows, *more = ctx.saved_tensors
        x, weights = more or (None, None)
        dx = scatter_rows(flows[0], rows, ctx.count, weights) if ctx.needs_input_grad[0] else None
        if weights is None or not ctx.needs_input_grad[2]:
            return dx, None, None
        return dx, None, (flows[0] * take_rows(x, rows)).sum(1, dtype=weights.dtype)


class Scattered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, y: Tensor, rows: Tensor, count: int, weights: Tensor | None) -> Tensor:
        ctx.save_for_backward(*((rows,) if weights is None else (rows, y, weights)))
        return scatter_rows(y, rows, count, weights)

    @staticmethod
    def backward(ctx: Any, *flows: Any) -> tuple[Any, ...]:
        """dy[i] = weights[i] · dP[rows[i]], dweights[i] = y[i] · dP[rows[i]]."""
        rows, *more = ctx.saved_tensors
        y, weights = more or (None, None)
        dy = take_rows(flows[0], rows, weights) if ctx.needs_input_grad[0] else None
        if weights is None or not ctx.needs_input_grad[3]:
            return dy, None, None, None
        return dy, None, None, (take_rows(flows[0], rows) * y).sum(1, dtype=weights.dtype)
