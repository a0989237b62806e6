"""`linear_cross_entropy` as operators, for graphs that torch records, and for reduction="none" in eager mode too.

    tilewise::linear_loss(Tensor X, Tensor W, Tensor? bias, Tensor target, int ignored, str reduction, bool[] wanted)
        -> (Tensor loss, Tensor factor, Tensor dX, Tensor dW, Tensor db)   gradients of a sum or mean come with it
    tilewise::linear_loss_gradient(Tensor X, Tensor W, Tensor? bias, Tensor target, Tensor counts, int ignored,
        bool[] wanted) -> (Tensor dX, Tensor dW, Tensor db)   those of a loss for each row

Gradients that are not wanted are empty tensors.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewise.torch.loss_bands import by_bands, share_of
from tilewise.torch.loss_kernels import rounded

Gradients = tuple[Tensor, Tensor, Tensor]


@torch.library.custom_op("tilewise::linear_loss", mutates_args=())
def linear_loss(
    X: Tensor, W: Tensor, bias: Tensor | None, target: Tensor, ignored: int, reduction: str, wanted: list[bool]
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    if reduction == "none":
        losses = by_bands(X, W, bias, target, ignored, (False,) * 3).losses
        return losses, losses.new_ones(()), *_filled(X, [None] * 3)
    share, folded = share_of(X, target, ignored, reduction == "mean")
    made = by_bands(X, W, bias, target, ignored, wanted, None, folded)
    total, one = made.losses.sum(), made.losses.new_ones(())
    left = one if share is None or folded is not None else share
    return total if share is None else total * share, left, *_filled(X, made[1:])


@linear_loss.register_fake
def _(
    X: Tensor, W: Tensor, bias: Tensor | None, target: Tensor, ignored: int, reduction: str, wanted: list[bool]
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    wide = torch.float64 if X.dtype is torch.float64 else torch.float32
    one = X.new_empty((), dtype=wide)
    each = reduction == "none"
    loss = X.new_empty(X.shape[0], dtype=wide) if each else one
    return loss, one.clone(), *_empty(X, W, [False] * 3 if each else wanted)


@torch.library.custom_op("tilewise::linear_loss_gradient", mutates_args=())
def linear_loss_gradient(
    X: Tensor, W: Tensor, bias: Tensor | None, target: Tensor, counts: Tensor, ignored: int, wanted: list[bool]
) -> Gradients:
    return _filled(X, by_bands(X, W, bias, target, ignored, wanted, counts)[1:])


@linear_loss_gradient.register_fake
def _(
    X: Tensor, W: Tensor, bias: Tensor | None, target: Tensor, counts: Tensor, ignored: int, wanted: list[bool]
) -> Gradients:
    return _empty(X, W, wanted)


def _filled(X: Tensor, made: Any) -> Gradients:
    dX, dW, db = (X.new_empty(0) if x is None else rounded(x, X.dtype) for x in made)
    return dX, dW, db


def _empty(X: Tensor, W: Tensor, wanted: list[bool]) -> Gradients:
    shapes = X.shape, W.shape, W.shape[:1]
    dX, dW, db = (X.new_empty(shape if yes else (0,)) for shape, yes in zip(shapes, wanted, strict=True))
    return dX, dW, db


def _save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    *tensors, ctx.ignored, ctx.reduction, ctx.wanted = inputs
    ctx.mark_non_differentiable(*output[1:])
    ctx.save_for_backward(*(tensors if ctx.reduction == "none" else output[1:]))


def _backward(ctx: Any, g: Tensor, *_: Any) -> Any:
    if ctx.reduction == "none":
        made = torch.ops.tilewise.linear_loss_gradient(*ctx.saved_tensors, g, ctx.ignored, ctx.wanted)
    else:
        factor, *found = ctx.saved_tensors
        made = [x * (g * factor).to(x.dtype) for x in found]
    return (*(x if yes else None for x, yes in zip(made, ctx.wanted, strict=True)), None, None, None, None)


linear_loss.register_autograd(_backward, setup_context=_save)


def recorded_loss(X: Tensor, W: Tensor, bias: Tensor | None, target: Tensor, ignored: int, reduction: str) -> Tensor:
    """The loss as an operator."""
    wanted = [torch.is_grad_enabled() and x is not None and x.requires_grad for x in (X, W, bias)]
    made: Tensor = torch.ops.tilewise.linear_loss(X, W, bias, target, ignored, reduction, wanted)[0]
    return made
