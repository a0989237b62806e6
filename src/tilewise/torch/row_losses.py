"""The cross entropy of rows of logits, one pass over them forward and one backward.

torch writes log_softmax, fills a gradient with zeros and reads both again; here forward reads the logits and keeps a
logsumexp for each row, and backward reads them once more and writes softmax − onehot. Rows of that gradient start on
multiples of 128 bytes, so the products that read it need no realigning. `accelerate()` replaces cross_entropy by it.

    tilewise::row_losses(Tensor logits, Tensor target, int ignored) -> (Tensor losses, Tensor logsumexp)
    tilewise::row_losses_gradient(Tensor logits, Tensor target, Tensor logsumexp, Tensor counts, int ignored) -> Tensor
    tilewise::row_losses_gradient_(Tensor(a!) logits, …) -> (), overwrites the logits, whose rows start on 16 bytes

In compiled code backward of rows of multiples of 16 bytes consists of torch operations, which Inductor fuses into one
pointwise pass that may overwrite the logits. Over other rows such a pass is not vectorised, so ours is an operator; it
overwrites the logits too if they are not read again (`lowering.py`).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewise.torch.loss_kernels import KERNELS, gradient_of, is_taken, losses_of
from tilewise.torch.row_alignment import aligned_leading_dimension
from tilewise.torch.transform_levels import apply

_LIBRARY = torch.library.Library("tilewise", "FRAGMENT")
_TAGS = tuple(getattr(torch.Tag, name) for name in ("pt2_compliant_tag", "flexible_layout") if hasattr(torch.Tag, name))
for _schema in (
    "row_losses(Tensor logits, Tensor target, int ignored) -> (Tensor, Tensor)",
    "row_losses_gradient(Tensor logits, Tensor target, Tensor logsumexp, Tensor counts, int ignored) -> Tensor",
    "row_losses_gradient_(Tensor(a!) logits, Tensor target, Tensor logsumexp, Tensor counts, int ignored) -> ()",
):
    _LIBRARY.define(_schema, tags=_TAGS)

IN_PLACE = torch.ops.tilewise.row_losses_gradient_.default


def loss_of(logits: Tensor, target: Tensor, ignored: int, reduction: str) -> Tensor:
    """The losses of the rows of a matrix of logits, their sum, or their mean over the targets that are not ignored; in
    float32 (float64 for doubles)."""
    if torch.compiler.is_compiling():
        losses: Tensor = torch.ops.tilewise.row_losses(logits, target, ignored)[0]
        if reduction == "mean":
            return losses.sum() / (target != ignored).sum()
        return losses.sum() if reduction == "sum" else losses
    made: Tensor = apply(RowLosses, logits, target, ignored, reduction)
    return made


class RowLosses(torch.autograd.Function):
    """The losses in eager torch, without the dispatcher."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor, ignored: int, reduction: str) -> Tensor:
        losses, logsumexp = _losses(logits.detach(), target, ignored)
        ctx.save_for_backward(logits, target, logsumexp)
        ctx.ignored, ctx.share = ignored, None
        if reduction == "none":
            return losses
        if reduction == "sum":
            return losses.sum()
        ctx.share = (target != ignored).sum().to(losses.dtype).reciprocal()
        return losses.sum() * ctx.share

    @staticmethod
    def backward(ctx: Any, counts: Tensor) -> Any:
        logits, target, logsumexp = ctx.saved_tensors
        counts = counts if ctx.share is None else counts * ctx.share
        if torch.is_grad_enabled():  # for a second derivative, in torch's own operations
            logsumexp = logits.to(logsumexp.dtype).logsumexp(-1)
            made = _in_torch(logits, target, logsumexp, counts, ctx.ignored)
        else:
            made = _gradient(logits, target, logsumexp, counts, ctx.ignored)
        return made, None, None, None


def _losses(logits: Tensor, target: Tensor, ignored: int) -> tuple[Tensor, Tensor]:
    if is_taken(logits):
        losses, logsumexp = (torch.empty(len(logits), dtype=torch.float32, device=logits.device) for _ in range(2))
        losses_of(_contiguous_rows(logits), target, losses, logsumexp, ignored)
        return losses, logsumexp
    wide = logits.to(_wide(logits))
    logsumexp, counted = wide.logsumexp(-1), target != ignored
    losses = logsumexp - wide.gather(1, torch.where(counted, target, 0)[:, None])[:, 0]
    return torch.where(counted, losses, 0.0), logsumexp


def _gradient(logits: Tensor, target: Tensor, logsumexp: Tensor, counts: Tensor, ignored: int) -> Tensor:
    if not is_taken(logits):
        return _in_torch(logits, target, logsumexp, counts, ignored)
    made = _empty_gradient(logits)
    gradient_of(_contiguous_rows(logits), target, made, logsumexp, counts, ignored)
    return made


def _gradient_in_place(logits: Tensor, target: Tensor, logsumexp: Tensor, counts: Tensor, ignored: int) -> None:
    if is_taken(logits):
        gradient_of(logits, target, logits, logsumexp, counts, ignored)
    else:
        logits.copy_(_in_torch(logits, target, logsumexp, counts, ignored))


def _in_torch(logits: Tensor, target: Tensor, logsumexp: Tensor, counts: Tensor, ignored: int) -> Tensor:
    """(softmax − onehot) · counts in torch's own pointwise operations."""
    share = (logits.to(logsumexp.dtype) - logsumexp[:, None]).exp()
    hit = torch.arange(logits.shape[1], device=logits.device) == target[:, None]
    counts = torch.where(target != ignored, counts, 0.0)[:, None]
    return (torch.where(hit, share - 1.0, share) * counts).to(logits.dtype)


def _wide(logits: Tensor) -> torch.dtype:
    return torch.float64 if logits.dtype is torch.float64 else torch.float32


def _contiguous_rows(logits: Tensor) -> Tensor:
    return logits if logits.stride(1) == 1 else logits.contiguous()


def _empty_gradient(logits: Tensor) -> Tensor:
    """Memory for the gradient, on a card with aligned rows."""
    rows, columns = logits.shape
    if not logits.is_cuda or logits.dtype not in KERNELS:
        return torch.empty((rows, columns), dtype=logits.dtype, device=logits.device)
    lead = aligned_leading_dimension(columns, logits.element_size())
    return torch.empty_strided((rows, columns), (lead, 1), dtype=logits.dtype, device=logits.device)


for _key in ("CPU", "CUDA"):
    _LIBRARY.impl("row_losses", _losses, _key)
    _LIBRARY.impl("row_losses_gradient", _gradient, _key)
    _LIBRARY.impl("row_losses_gradient_", _gradient_in_place, _key)


@torch.library.register_fake("tilewise::row_losses", lib=_LIBRARY)
def _(logits: Tensor, target: Tensor, ignored: int) -> tuple[Tensor, Tensor]:
    losses, logsumexp = (logits.new_empty(logits.shape[0], dtype=_wide(logits)) for _ in range(2))
    return losses, logsumexp


@torch.library.register_fake("tilewise::row_losses_gradient", lib=_LIBRARY)
def _(logits: Tensor, target: Tensor, logsumexp: Tensor, counts: Tensor, ignored: int) -> Tensor:
    return _empty_gradient(logits)


@torch.library.register_fake("tilewise::row_losses_gradient_", lib=_LIBRARY)
def _(logits: Tensor, target: Tensor, logsumexp: Tensor, counts: Tensor, ignored: int) -> None:
    return None


def _save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    logits, target, ctx.ignored = inputs
    ctx.save_for_backward(logits, target, output[1])
    ctx.mark_non_differentiable(output[1])


def _backward(ctx: Any, counts: Tensor, _: Any) -> Any:
    logits, target, logsumexp = ctx.saved_tensors
    if _is_odd(logits):
        made = torch.ops.tilewise.row_losses_gradient(logits, target, logsumexp, counts, ctx.ignored)
    else:
        made = _in_torch(logits, target, logsumexp, counts, ctx.ignored)
    return made, None, None


def _is_odd(logits: Tensor) -> bool:
    """Whether a row's length is constant and not a multiple of 16 bytes; a symbolic size adds no guard."""
    length = logits.shape[1]
    return isinstance(length, int) and length * logits.element_size() % 16 != 0 and is_taken(logits)


torch.library.register_autograd("tilewise::row_losses", _backward, setup_context=_save, lib=_LIBRARY)
