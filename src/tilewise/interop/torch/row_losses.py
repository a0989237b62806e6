"""The cross entropy of rows of logits, one pass over them forward and one backward.

torch writes log_softmax down, fills a gradient with zeros and reads both again; here forward reads the logits and
keeps a logsumexp for each row, and backward reads them once more and writes softmax − onehot. Rows of that gradient
start on 128-byte lines, so the products behind it need no odd rows. `accelerate()` puts it in cross_entropy's place.

    tilewise::row_losses(Tensor logits, Tensor target, int ignored) -> (Tensor losses, Tensor logsumexp)
    tilewise::row_losses_gradient(Tensor logits, Tensor target, Tensor logsumexp, Tensor counts, int ignored) -> Tensor
    tilewise::row_losses_gradient_(Tensor(a!) logits, …) -> (), in the place of the logits, whose rows start on 16 bytes

Compiled, backward is written out where rows are of whole 16 bytes: Inductor makes one pointwise pass of it, which may
lie where the logits lay. Over other rows such a pass goes element by element, and ours is an operator of its own; it
lies where they lay too where nobody needs them any more (`lowering.py`).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewise.interop.torch.function import applied
from tilewise.interop.torch.lines import lead_on_lines
from tilewise.interop.torch.loss_kernels import KERNELS, gradient_of, is_taken, losses_of

_LIBRARY = torch.library.Library("tilewise", "FRAGMENT")
_ANY_STRIDES = (torch.Tag.flexible_layout,) if hasattr(torch.Tag, "flexible_layout") else ()
_LIBRARY.define(
    "row_losses(Tensor logits, Tensor target, int ignored) -> (Tensor, Tensor)",
    tags=(torch.Tag.pt2_compliant_tag, *_ANY_STRIDES),
)
_LIBRARY.define(
    "row_losses_gradient(Tensor logits, Tensor target, Tensor logsumexp, Tensor counts, int ignored) -> Tensor",
    tags=(torch.Tag.pt2_compliant_tag, *_ANY_STRIDES),
)
_LIBRARY.define(
    "row_losses_gradient_(Tensor(a!) logits, Tensor target, Tensor logsumexp, Tensor counts, int ignored) -> ()",
    tags=(torch.Tag.pt2_compliant_tag, *_ANY_STRIDES),
)

IN_PLACE = torch.ops.tilewise.row_losses_gradient_.default


def loss_of(logits: Tensor, target: Tensor, ignored: int, reduction: str) -> Tensor:
    """The losses of the rows of a matrix of logits, their sum, or their mean over the targets that are not ignored; in
    float32 (float64 for doubles)."""
    if torch.compiler.is_compiling():
        losses: Tensor = torch.ops.tilewise.row_losses(logits, target, ignored)[0]
        if reduction == "mean":
            return losses.sum() / (target != ignored).sum()
        return losses.sum() if reduction == "sum" else losses
    made: Tensor = applied(RowLosses, logits, target, ignored, reduction)
    return made


class RowLosses(torch.autograd.Function):
    """The same in eager torch, without the dispatcher."""

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
        if torch.is_grad_enabled():  # somebody goes on from here: torch's own operations, which can be followed
            logsumexp = logits.to(logsumexp.dtype).logsumexp(-1)
            made = _written_out(logits, target, logsumexp, counts, ctx.ignored)
        else:
            made = _gradient(logits, target, logsumexp, counts, ctx.ignored)
        return made, None, None, None


def _losses(logits: Tensor, target: Tensor, ignored: int) -> tuple[Tensor, Tensor]:
    if is_taken(logits):
        losses, logsumexp = (torch.empty(len(logits), dtype=torch.float32, device=logits.device) for _ in range(2))
        losses_of(_side_by_side(logits), target, losses, logsumexp, ignored)
        return losses, logsumexp
    wide = logits.to(_wide(logits))
    logsumexp, counted = wide.logsumexp(-1), target != ignored
    losses = logsumexp - wide.gather(1, torch.where(counted, target, 0)[:, None])[:, 0]
    return torch.where(counted, losses, 0.0), logsumexp


def _gradient(logits: Tensor, target: Tensor, logsumexp: Tensor, counts: Tensor, ignored: int) -> Tensor:
    if not is_taken(logits):
        return _written_out(logits, target, logsumexp, counts, ignored)
    made = _room_for(logits)
    gradient_of(_side_by_side(logits), target, made, logsumexp, counts, ignored)
    return made


def _gradient_in_place(logits: Tensor, target: Tensor, logsumexp: Tensor, counts: Tensor, ignored: int) -> None:
    if is_taken(logits):
        gradient_of(logits, target, logits, logsumexp, counts, ignored)
    else:
        logits.copy_(_written_out(logits, target, logsumexp, counts, ignored))


def _written_out(logits: Tensor, target: Tensor, logsumexp: Tensor, counts: Tensor, ignored: int) -> Tensor:
    """(softmax − onehot) · counts in torch's own operations, each cell by itself."""
    share = (logits.to(logsumexp.dtype) - logsumexp[:, None]).exp()
    hit = torch.arange(logits.shape[1], device=logits.device) == target[:, None]
    counts = torch.where(target != ignored, counts, 0.0)[:, None]
    return (torch.where(hit, share - 1.0, share) * counts).to(logits.dtype)


def _wide(logits: Tensor) -> torch.dtype:
    return torch.float64 if logits.dtype is torch.float64 else torch.float32


def _side_by_side(logits: Tensor) -> Tensor:
    return logits if logits.stride(1) == 1 else logits.contiguous()


def _room_for(logits: Tensor) -> Tensor:
    """As large as logits; on a card its rows start on lines."""
    rows, columns = logits.shape
    if not logits.is_cuda or logits.dtype not in KERNELS:
        return torch.empty((rows, columns), dtype=logits.dtype, device=logits.device)
    lead = lead_on_lines(columns, logits.element_size())
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
    return _room_for(logits)


@torch.library.register_fake("tilewise::row_losses_gradient_", lib=_LIBRARY)
def _(logits: Tensor, target: Tensor, logsumexp: Tensor, counts: Tensor, ignored: int) -> None:
    return None


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    logits, target, ctx.ignored = inputs
    ctx.save_for_backward(logits, target, output[1])
    ctx.mark_non_differentiable(output[1])


def _backward(ctx: Any, counts: Tensor, _: Any) -> Any:
    logits, target, logsumexp = ctx.saved_tensors
    if _is_odd(logits):
        made = torch.ops.tilewise.row_losses_gradient(logits, target, logsumexp, counts, ctx.ignored)
    else:
        made = _written_out(logits, target, logsumexp, counts, ctx.ignored)
    return made, None, None


def _is_odd(logits: Tensor) -> bool:
    """Whether a row is no whole number of 16 bytes, and known to be: what is a symbol stays one."""
    length = logits.shape[1]
    return isinstance(length, int) and length * logits.element_size() % 16 != 0 and is_taken(logits)


torch.library.register_autograd("tilewise::row_losses", _backward, setup_context=_remember, lib=_LIBRARY)
