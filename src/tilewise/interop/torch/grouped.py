"""Groups of rows as torch knows operators: fake tensors for torch.compile, autograd through products and rows.

tilewise::grouped_matmul(Tensor x, Tensor w, Tensor offsets, str along, str semiring, str precision) -> Tensor
tilewise::take_rows(Tensor x, Tensor rows) -> Tensor
tilewise::scatter_rows(Tensor y, Tensor rows, SymInt count, Tensor? weights) -> Tensor
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewise.algebra.semiring import Semiring
from tilewise.compose.groups import product as groups
from tilewise.compose.groups import rows as by_index
from tilewise.errors import UsageError
from tilewise.interop.torch import grouped_function as quick
from tilewise.interop.torch.function import is_plain
from tilewise.interop.torch.operator import _by_itself, _result
from tilewise.interop.torch.words import ring_of, word_of


def grouped_matmul(
    x: Tensor,
    w: Tensor,
    offsets: Tensor,
    along: str = "rows",
    rows: Tensor | None = None,
    semiring: str | Semiring = "plus_times",
    out: Tensor | None = None,
    precision: str = "high",
    kernel: str | None = None,
) -> Tensor:
    """`tw.grouped_matmul` of tensors whose gradients or graph torch follows."""
    if out is not None or kernel is not None:
        raise UsageError("out= and kernel= are not followed by torch, and x or w requires a gradient: leave them out")
    if quick.eager(x, w):
        return quick.product(x if rows is None else quick.take_rows(x, rows), w, offsets, along, semiring, precision)
    if rows is not None:
        x = torch.ops.tilewise.take_rows(x, rows)
    made: Tensor = torch.ops.tilewise.grouped_matmul(x, w, offsets, along, word_of(semiring), precision)
    return made


def scatter_rows(y: Tensor, rows: Tensor, count: int, weights: Tensor | None = None) -> Tensor:
    """`tw.scatter_rows` of tensors whose gradients or graph torch follows."""
    if quick.eager(y, y if weights is None else weights):
        return quick.scatter_rows(y, rows, count, weights)
    made: Tensor = torch.ops.tilewise.scatter_rows(y, rows, count, weights)
    return made


@torch.library.custom_op("tilewise::grouped_matmul", mutates_args=())
def product(x: Tensor, w: Tensor, offsets: Tensor, along: str, semiring: str, precision: str) -> Tensor:
    with _by_itself(x):
        made: Tensor = groups.grouped_matmul(
            x.detach(), w.detach(), offsets, along=along, semiring=ring_of(semiring), precision=precision
        )
    return made


@product.register_fake
def _(x: Tensor, w: Tensor, offsets: Tensor, along: str, semiring: str, precision: str) -> Tensor:
    shape = (offsets.shape[0], x.shape[1], w.shape[1]) if along == "k" else (x.shape[0], w.shape[2])
    return torch.empty(shape, dtype=_result(semiring, x.dtype, w.dtype), device=x.device)


def _remember_product(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    x, w, offsets, ctx.along, ctx.semiring, ctx.precision = inputs
    ctx.save_for_backward(x, w, offsets)


def _back_through_product(ctx: Any, dP: Tensor) -> tuple[Any, ...]:
    """Along rows: dx of each group is dP · wᵀ, dw is xᵀ · dP along k; along k: dx is w · dPᵀ, dw is x · dP."""
    x, w, offsets = ctx.saved_tensors
    if not is_plain(ctx.semiring):
        raise UsageError(f"groups over {ctx.semiring} have no gradient: pass tensors that require none")
    multiply, how = torch.ops.tilewise.grouped_matmul, ("plus_times", ctx.precision)
    dx = dw = None
    if ctx.along == "k":
        dx = multiply(w, dP.mT, offsets, "rows", *how) if ctx.needs_input_grad[0] else None
        dw = multiply(x, dP, offsets, "rows", *how) if ctx.needs_input_grad[1] else None
    else:
        dx = multiply(dP, w.mT, offsets, "rows", *how) if ctx.needs_input_grad[0] else None
        dw = multiply(x, dP, offsets, "k", *how) if ctx.needs_input_grad[1] else None
    return dx, dw, None, None, None, None


product.register_autograd(_back_through_product, setup_context=_remember_product)


@torch.library.custom_op("tilewise::take_rows", mutates_args=())
def take(x: Tensor, rows: Tensor) -> Tensor:
    with _by_itself(x):
        made: Tensor = by_index.take_rows(x.detach(), rows)
    return made


@take.register_fake
def _(x: Tensor, rows: Tensor) -> Tensor:
    if not x.is_cuda:
        return torch.empty((rows.shape[0], x.shape[1]), dtype=x.dtype, device=x.device)
    size = x.element_size()
    lead = (x.shape[1] * size + by_index.LINE_BYTES - 1) // by_index.LINE_BYTES * by_index.LINE_BYTES // size
    return torch.empty_strided((rows.shape[0], x.shape[1]), (lead, 1), dtype=x.dtype, device=x.device)


def _remember_take(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(inputs[1])
    ctx.count = inputs[0].shape[0]


def _back_through_take(ctx: Any, dP: Tensor) -> tuple[Any, ...]:
    return torch.ops.tilewise.scatter_rows(dP, ctx.saved_tensors[0], ctx.count, None), None


take.register_autograd(_back_through_take, setup_context=_remember_take)


@torch.library.custom_op("tilewise::scatter_rows", mutates_args=())
def scatter(y: Tensor, rows: Tensor, count: int, weights: Tensor | None = None) -> Tensor:
    with _by_itself(y):
        made: Tensor = by_index.scatter_rows(
            y.detach(), rows, count, weights=None if weights is None else weights.detach()
        )
    return made


@scatter.register_fake
def _(y: Tensor, rows: Tensor, count: int, weights: Tensor | None = None) -> Tensor:
    return torch.empty((count, y.shape[1]), dtype=y.dtype, device=y.device)


def _remember_scatter(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    y, rows, _, weights = inputs
    ctx.weighted = weights is not None
    ctx.save_for_backward(*((y, rows, weights) if ctx.weighted else (rows,)))


def _back_through_scatter(ctx: Any, dP: Tensor) -> tuple[Any, ...]:
    """dy[i] = weights[i] · dP[rows[i]], dweights[i] = y[i] · dP[rows[i]]."""
    if not ctx.weighted:
        return torch.ops.tilewise.take_rows(dP, ctx.saved_tensors[0]), None, None, None
    y, rows, weights = ctx.saved_tensors
    flow = torch.ops.tilewise.take_rows(dP, rows)
    dy = (flow * weights[:, None]).to(y.dtype) if ctx.needs_input_grad[0] else None
    dweights = (flow * y).sum(1, dtype=weights.dtype) if ctx.needs_input_grad[3] else None
    return dy, None, None, dweights


scatter.register_autograd(_back_through_scatter, setup_context=_remember_scatter)
