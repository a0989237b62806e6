"""Grouped products and rows by an index, with gradients, in two forms: operators for graphs, Functions for eager
programs.

    tilewise::grouped_matmul(Tensor x, Tensor w, Tensor offsets, str along, str semiring, str precision) -> Tensor
    tilewise::take_rows(Tensor x, Tensor rows, Tensor? weights) -> Tensor
    tilewise::scatter_rows(Tensor y, Tensor rows, SymInt count, Tensor? weights) -> Tensor

torch.compile, torch.func and subclasses of Tensor use the operators. In eager programs an autograd.Function has a third
of their overhead; without gradients the function is called directly. Backward calls the same functions, so it can be
differentiated.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tilewise.algebra.semiring import Semiring
from tilewise.arrays.torch_library import observed, wants_gradient
from tilewise.compose.groups import product as groups
from tilewise.compose.groups import rows as by_index
from tilewise.errors import UsageError
from tilewise.torch.followed import copy_to_out
from tilewise.torch.function import is_plain
from tilewise.torch.operator import kernel_only, result_dtype
from tilewise.torch.semiring_names import name_of, semiring_of


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
    """`tw.grouped_matmul` of tensors with gradients, or traced."""
    if kernel is not None or (out is not None and any(map(wants_gradient, (x, w, out)))):
        raise UsageError("kernel= pins a launch and out= has no gradient, which torch follows here: leave them out")
    calls = EAGER if _is_eager(x, w) else TRACED
    x = x if rows is None else calls.take_rows(x, rows)
    P = calls.multiply(x, w, offsets, along, semiring if calls is EAGER else name_of(semiring), precision)
    return P if out is None else copy_to_out(P, out)


def scatter_rows(y: Tensor, rows: Tensor, count: int, weights: Tensor | None = None) -> Tensor:
    """`tw.scatter_rows` of tensors with gradients, or traced."""
    calls = EAGER if _is_eager(y, y if weights is None else weights) else TRACED
    return calls.scatter_rows(y, rows, count, weights)


def _is_eager(x: Tensor, y: Tensor) -> bool:
    """Whether torch records gradients at most, no graph."""
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return False
    return not observed(x, y)


@torch.library.custom_op("tilewise::grouped_matmul", mutates_args=())
def product(x: Tensor, w: Tensor, offsets: Tensor, along: str, semiring: str, precision: str) -> Tensor:
    with kernel_only(x):
        return _multiply(x.detach(), w.detach(), offsets, along, semiring_of(semiring), precision)


@product.register_fake
def _(x: Tensor, w: Tensor, offsets: Tensor, along: str, semiring: str, precision: str) -> Tensor:
    shape = (offsets.shape[0], x.shape[1], w.shape[1]) if along == "k" else (x.shape[0], w.shape[2])
    return torch.empty(shape, dtype=result_dtype(semiring, x.dtype, w.dtype), device=x.device)


def _multiply(x: Tensor, w: Tensor, offsets: Tensor, along: str, semiring: Any, precision: str) -> Any:
    return groups.grouped_matmul(x, w, offsets, along=along, semiring=semiring, precision=precision)


def _save_product(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    x, w, offsets, ctx.along, ctx.semiring, ctx.precision = inputs
    ctx.save_for_backward(x, w, offsets)


def _product_gradients(calls: Calls, ctx: Any, dP: Tensor) -> tuple[Any, ...]:
    """Along rows: dx of each group is dP · wᵀ, dw is xᵀ · dP along k; along k: dx is w · dPᵀ, dw is x · dP."""
    x, w, offsets = ctx.saved_tensors
    if not is_plain(name_of(ctx.semiring)):
        raise UsageError(f"groups over {ctx.semiring} have no gradient: pass tensors that require none")
    along_k, how = ctx.along == "k", ("plus_times", ctx.precision)
    dx = dw = None
    if ctx.needs_input_grad[0]:
        left, right = (w, dP.mT) if along_k else (dP, w.mT)
        dx = calls.multiply(left, right, offsets, "rows", *how)
    if ctx.needs_input_grad[1]:
        dw = calls.multiply(x, dP, offsets, "rows" if along_k else "k", *how)
    return dx, dw, None, None, None, None


@torch.library.custom_op("tilewise::take_rows", mutates_args=())
def take(x: Tensor, rows: Tensor, weights: Tensor | None = None) -> Tensor:
    with kernel_only(x):
        return by_index.take_rows(x.detach(), rows, None if weights is None else weights.detach())


@take.register_fake
def _(x: Tensor, rows: Tensor, weights: Tensor | None = None) -> Tensor:
    if not x.is_cuda:
        return torch.empty((rows.shape[0], x.shape[1]), dtype=x.dtype, device=x.device)
    size = x.element_size()
    lead = (x.shape[1] * size + by_index.ROW_ALIGNMENT - 1) // by_index.ROW_ALIGNMENT * by_index.ROW_ALIGNMENT // size
    return torch.empty_strided((rows.shape[0], x.shape[1]), (lead, 1), dtype=x.dtype, device=x.device)


def _save_rows(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    x, rows, weights = inputs[0], inputs[1], inputs[-1]
    ctx.count = x.shape[0]
    ctx.save_for_backward(*((rows,) if weights is None else (rows, x, weights)))


def _take_gradients(calls: Calls, ctx: Any, dP: Tensor) -> tuple[Any, ...]:
    """dx[t] = Σ weights[i] · dP[i] over rows[i] == t, dweights[i] = x[rows[i]] · dP[i]."""
    rows, x, weights = (*ctx.saved_tensors, None, None)[:3]
    dx = calls.scatter_rows(dP, rows, ctx.count, weights) if ctx.needs_input_grad[0] else None
    if weights is None or not ctx.needs_input_grad[2]:
        return dx, None, None
    return dx, None, (dP * calls.take_rows(x, rows)).sum(1, dtype=weights.dtype)


@torch.library.custom_op("tilewise::scatter_rows", mutates_args=())
def scatter(y: Tensor, rows: Tensor, count: int, weights: Tensor | None = None) -> Tensor:
    with kernel_only(y):
        return _scatter(y.detach(), rows, count, None if weights is None else weights.detach())


@scatter.register_fake
def _(y: Tensor, rows: Tensor, count: int, weights: Tensor | None = None) -> Tensor:
    return torch.empty((count, y.shape[1]), dtype=y.dtype, device=y.device)


def _scatter(y: Tensor, rows: Tensor, count: int, weights: Tensor | None) -> Any:
    return by_index.scatter_rows(y, rows, count, weights=weights)


def _scatter_gradients(calls: Calls, ctx: Any, dP: Tensor) -> tuple[Any, ...]:
    """dy[i] = weights[i] · dP[rows[i]], dweights[i] = y[i] · dP[rows[i]]."""
    rows, y, weights = (*ctx.saved_tensors, None, None)[:3]
    dy = calls.take_rows(dP, rows, weights) if ctx.needs_input_grad[0] else None
    if weights is None or not ctx.needs_input_grad[3]:
        return dy, None, None, None
    return dy, None, None, (calls.take_rows(dP, rows) * y).sum(1, dtype=weights.dtype)


class Calls(NamedTuple):
    """The three functions as operators, or for eager programs."""

    multiply: Callable[..., Tensor]
    take_rows: Callable[..., Tensor]
    scatter_rows: Callable[..., Tensor]


def _take_traced(x: Tensor, rows: Tensor, weights: Tensor | None = None) -> Tensor:
    """Rows gathered first, then weighted: the compiler merges the gathers of both gradients and fuses the product."""
    taken: Tensor = torch.ops.tilewise.take_rows(x, rows)
    return taken if weights is None else (taken * weights[:, None]).to(x.dtype)


def _eager(run: Callable[..., Any], save: Callable[..., None], gradients: Callable[..., Any]) -> Callable[..., Any]:
    """A function with gradients for eager programs."""

    class EagerFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            save(ctx, inputs, None)
            return run(*inputs)

        @staticmethod
        def backward(ctx: Any, *flows: Any) -> Any:
            return gradients(EAGER, ctx, *flows)

    def call(*inputs: Any) -> Any:
        if torch.is_grad_enabled() and any(getattr(x, "requires_grad", False) for x in inputs):
            return EagerFunction.apply(*inputs)
        return run(*inputs)

    return call


TRACED = Calls(torch.ops.tilewise.grouped_matmul, _take_traced, torch.ops.tilewise.scatter_rows)
product.register_autograd(partial(_product_gradients, TRACED), setup_context=_save_product)
take.register_autograd(partial(_take_gradients, TRACED), setup_context=_save_rows)
scatter.register_autograd(partial(_scatter_gradients, TRACED), setup_context=_save_rows)
_eager_take = _eager(by_index.take_rows, _save_rows, _take_gradients)
EAGER = Calls(
    _eager(_multiply, _save_product, _product_gradients),
    lambda x, rows, weights=None: _eager_take(x, rows, weights),
    _eager(_scatter, _save_rows, _scatter_gradients),
)
