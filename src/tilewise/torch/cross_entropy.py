"""`linear_cross_entropy`: the loss of a head over a large vocabulary, a band of rows at a time.

The logits of some rows are computed, overwritten by softmax − onehot, and multiplied into both gradients at once; then
the next rows use the same memory. Its rows start on multiples of 128 bytes, so an odd vocabulary costs nothing and
nothing is padded. Instead of 2 · rows · vocabulary numbers there is a band of at most BAND_BYTES.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from tilewise.dispatch import product as dispatch
from tilewise.errors import DtypeError, ShapeError, UsageError
from tilewise.torch.called import into
from tilewise.torch.function import cast
from tilewise.torch.loss_kernels import rounded, scale_in_place, to_gradients
from tilewise.torch.row_alignment import aligned_leading_dimension

BAND_BYTES = 400 << 20  # on an H200 8192 rows of 50,257 classes in two bands take 0.88 of four bands' time
ROUNDED_BANDS = 2  # more are added in float32: that takes twice the weight's memory, and one more pass
REDUCTIONS = ("mean", "sum", "none")
FLOATS = (torch.bfloat16, torch.float16, torch.float32, torch.float64)


@torch.compiler.disable
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
    doubles). torch.compile does not trace into it.

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
        if reduction != "none":
            total: Tensor = All.apply(rows, weight, bias, classes, ignore_index, reduction == "mean")
            return total
        losses: Tensor = Each.apply(rows, weight, bias, classes, ignore_index)
        return losses.reshape(target.shape)


class LossAndGradients(NamedTuple):
    losses: Tensor
    dX: Tensor | None
    dW: Tensor | None
    db: Tensor | None


class All(torch.autograd.Function):
    """The sum or mean of all losses; its gradients are computed with it, so logits are computed once."""

    @staticmethod
    def forward(ctx: Any, X: Tensor, W: Tensor, bias: Tensor | None, target: Tensor, ignored: int, mean: bool) -> Any:
        wide = torch.float64 if X.dtype is torch.float64 else torch.float32
        share = (target != ignored).sum().to(wide).reciprocal() if mean else None
        folded = None if X.dtype is torch.float16 else share  # too small for float16
        ctx.save_for_backward(X, W, bias, target)
        ctx.left = share if folded is None else None
        ctx.how = ignored, ctx.needs_input_grad[:3], None, folded
        made = by_bands(X.detach(), W.detach(), bias, target, *ctx.how)
        ctx.made = _rounded(made, X.dtype)
        total = made.losses.sum()
        return total if share is None else total * share

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g: Tensor) -> Any:
        X, W, bias, target = ctx.saved_tensors
        made, ctx.made = ctx.made, None
        if made is None:  # a second backward through the same graph: the first returned the gradients
            made = _rounded(by_bands(X.detach(), W.detach(), bias, target, *ctx.how), X.dtype)
        g = g if ctx.left is None else g * ctx.left
        return (*(None if x is None else scale_in_place(x, g) for x in made), None, None, None)


def _rounded(made: LossAndGradients, dtype: torch.dtype) -> tuple[Tensor | None, ...]:
    """The gradients in the dtype of the operands."""
    return tuple(None if x is None else rounded(x, dtype) for x in made[1:])


class Each(torch.autograd.Function):
    """A loss for each row; logits are recomputed for the gradients, when the weight of each row is known."""

    @staticmethod
    def forward(ctx: Any, X: Tensor, W: Tensor, bias: Tensor | None, target: Tensor, ignored: int) -> Tensor:
        ctx.save_for_backward(X, W, bias, target)
        ctx.ignored = ignored
        return by_bands(X.detach(), W.detach(), bias, target, ignored, (False,) * 3).losses

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g: Tensor) -> Any:
        X, W, bias, target = ctx.saved_tensors
        made = by_bands(X.detach(), W.detach(), bias, target, ctx.ignored, ctx.needs_input_grad[:3], g)
        return (*_rounded(made, X.dtype), None, None)


def by_bands(
    X: Tensor,
    W: Tensor,
    bias: Tensor | None,
    target: Tensor,
    ignored: int,
    wanted: Any,
    counts: Tensor | None = None,
    scale: Tensor | None = None,
) -> LossAndGradients:
    """Losses, and what of dX, dW and db is wanted, band by band; `counts`: the weight of each row in them, or `scale`:
    of all rows."""
    rows, classes = X.shape[0], W.shape[0]  # dense on a CPU: torch's bfloat16 there reads past the end of an odd row
    step = _rows_at_a_time(rows, classes, X.element_size())
    lead = aligned_leading_dimension(classes, X.element_size()) if X.is_cuda else classes
    memory = torch.empty((step, lead), dtype=X.dtype, device=X.device)
    wide = torch.float64 if X.dtype is torch.float64 else torch.float32
    losses = torch.empty(rows, dtype=wide, device=X.device)
    dX = torch.empty_like(X) if wanted[0] else None
    dW = db = None
    for start in range(0, rows, step):
        x, t = X[start : start + step], target[start : start + step]
        logits = memory[: len(x), :classes]
        _multiply(x, W.mT, logits, spare=True)
        if bias is not None:
            logits.add_(bias)
        to_gradients(logits, t, losses[start : start + step], ignored, any(wanted), scale)
        share = None if counts is None else counts[start : start + step, None].to(X.dtype)
        if dX is not None:
            _multiply(logits, W, dX[start : start + step])
            if share is not None:
                dX[start : start + step] *= share
        if wanted[1]:
            kept = wide if rows > ROUNDED_BANDS * step else X.dtype
            dW = _added(dW, logits.mT, x if share is None else x * share, kept)
        if wanted[2]:
            part = (logits if share is None else logits * share).sum(0, dtype=wide)
            db = part if db is None else db.add_(part)
    return LossAndGradients(losses, dX, dW, db)


def _rows_at_a_time(rows: int, classes: int, size: int) -> int:
    """Bands of about the same number of rows, a multiple of 128 where there are several."""
    most = max(1, BAND_BYTES // max(1, classes * size))
    if rows <= most:
        return max(1, rows)
    bands = -(-rows // most)
    even = -(-rows // bands)
    return min(most, -(-even // 128) * 128) if most >= 128 else most


def _multiply(M: Tensor, N: Tensor, out: Tensor | None = None, spare: bool = False) -> Tensor:
    """By torch's kernels where every row starts and ends on 16 bytes, or on a CPU, and by ours elsewhere: for 50,257
    columns torch uses its kernels for any alignment, wherever rows start. `spare`: the padding of `out` may be
    overwritten."""
    made = M.new_empty((M.shape[0], N.shape[1])) if out is None else out
    if not M.is_cuda or all(_on_sixteen_bytes(x) for x in (M, N, made)):
        return torch.mm(M, N, out=made)
    return made if spare and into(M, N, made, spare) else dispatch.matmul(M, N, out=made)


def _added(total: Tensor | None, M: Tensor, N: Tensor, kept: torch.dtype) -> Tensor:
    """M · N added to the sum of earlier bands, which may have a wider dtype."""
    wide = kept != M.dtype
    if total is None and not wide:
        return _multiply(M, N)
    made = M.new_empty((M.shape[0], N.shape[1]), dtype=kept) if total is None else total
    if into(M, N, made, sums="onto" if not wide else "first" if total is None else "more"):
        return made
    part = _multiply(M, N)
    return made.copy_(part) if total is None else made.add_(part)


def _on_sixteen_bytes(x: Tensor) -> bool:
    lead, length = (x.stride(0), x.shape[1]) if x.stride(1) == 1 else (x.stride(1), x.shape[0])
    return all(number % 16 == 0 for number in (x.data_ptr(), lead * x.element_size(), length * x.element_size()))


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
