"""`linear_cross_entropy`: the loss of a head over a large vocabulary, a band of rows at a time.

The logits of a band are computed, overwritten by softmax − onehot, and multiplied into both gradients; then the next
band uses the same memory, at most BAND_BYTES instead of 2 · rows · vocabulary numbers. Its rows start on multiples of
128 bytes, so an odd vocabulary needs no padding.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewise.errors import DtypeError, ShapeError, UsageError
from tilewise.torch.function import cast, records_operators
from tilewise.torch.loss_bands import all_rounded, by_bands, share_of
from tilewise.torch.loss_kernels import scale_in_place
from tilewise.torch.loss_operator import recorded_loss

REDUCTIONS = ("mean", "sum", "none")
FLOATS = (torch.bfloat16, torch.float16, torch.float32, torch.float64)


def linear_cross_entropy(
    input: Tensor,
    weight: Tensor,
    target: Tensor,
    bias: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """cross_entropy(input · weightᵀ + bias, target) without storing all logits; with gradients.

    input: … × width, weight: classes × width, target: … class numbers. reduction: "mean" over the targets that are not
    ignore_index, "sum" or "none", as `torch.nn.functional.cross_entropy` has them. The loss is float32 (float64 for
    doubles). In a graph of torch.compile it is one operator.

    >>> import torch
    >>> hidden, weight = torch.randn(6, 5, requires_grad=True), torch.randn(11, 5, requires_grad=True)
    >>> loss = tw.torch.linear_cross_entropy(hidden, weight, torch.arange(6))
    >>> loss.backward(); weight.grad.shape
    torch.Size([11, 5])
    """
    _check(input, weight, target, bias, reduction)
    if torch.is_autocast_enabled(input.device.type):
        input, weight = cast(input), cast(weight)
    bias = None if bias is None else bias.to(input.dtype)
    with torch.autocast(input.device.type, enabled=False):
        rows = input.reshape(-1, input.shape[-1])
        classes = target.reshape(-1)
        if records_operators() or reduction == "none":
            made = recorded_loss(rows, weight, bias, classes, ignore_index, reduction)
            return made.reshape(target.shape) if reduction == "none" else made
        total: Tensor = SummedLoss.apply(rows, weight, bias, classes, ignore_index, reduction == "mean")
        return total


class SummedLoss(torch.autograd.Function):
    """The sum or mean of all losses; forward computes the gradients too, so that logits are computed once."""

    @staticmethod
    def forward(ctx: Any, X: Tensor, W: Tensor, bias: Tensor | None, target: Tensor, ignored: int, mean: bool) -> Any:
        share, folded = share_of(X, target, ignored, mean)
        ctx.save_for_backward(X, W, bias, target)
        ctx.left = share if folded is None else None
        ctx.how = ignored, ctx.needs_input_grad[:3], None, folded
        made = by_bands(X.detach(), W.detach(), bias, target, *ctx.how)
        ctx.made = all_rounded(made, X.dtype)
        total = made.losses.sum()
        return total if share is None else total * share

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g: Tensor) -> Any:
        X, W, bias, target = ctx.saved_tensors
        made, ctx.made = ctx.made, None
        if made is None:  # a second backward through the same graph: the first has returned the gradients
            made = all_rounded(by_bands(X.detach(), W.detach(), bias, target, *ctx.how), X.dtype)
        g = g if ctx.left is None else g * ctx.left
        return (*(None if x is None else scale_in_place(x, g) for x in made), None, None, None)


def _check(input: Tensor, weight: Tensor, target: Tensor, bias: Tensor | None, reduction: str) -> None:
    if reduction not in REDUCTIONS:
        raise UsageError(f"reduction={reduction!r} is not known; known are {', '.join(REDUCTIONS)}")
    if weight.dim() != 2 or input.dim() < 1 or input.shape[-1] != weight.shape[1]:
        raise ShapeError(
            f"input is {tuple(input.shape)} and weight {tuple(weight.shape)}: input's last extent is weight's second"
        )
    if target.shape != input.shape[:-1]:
        raise ShapeError(f"target is {tuple(target.shape)}, and input has rows {tuple(input.shape[:-1])}: one for each")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ShapeError(f"bias is {tuple(bias.shape)}, and weight has {weight.shape[0]} classes: one number for each")
    if input.dtype not in FLOATS or (input.dtype != weight.dtype and not torch.is_autocast_enabled(input.device.type)):
        raise DtypeError(f"input is {input.dtype} and weight {weight.dtype}: pass floats of one dtype")
    if target.is_floating_point():
        raise DtypeError(f"target is {target.dtype}: pass the numbers of classes, not their probabilities")
