"""cross_entropy by ours or torch's: where logits are many, fewer passes over them are all that counts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewise.dispatch.execute import machine_of
from tilewise.interop.torch.choice import Account, Choice
from tilewise.interop.torch.loss_kernels import KERNELS
from tilewise.interop.torch.row_losses import loss_of

LEAST_BYTES = 1 << 24  # of logits: below, launches are most of it
OUR_PASSES, THEIR_PASSES = 3, 6  # over the logits, forward and backward; theirs in eager
SHARE = 0.7  # of the bandwidth that such passes reach
FORMS = ("mean", "sum", "none")


def routed_loss(
    when: str,
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor | None:
    """torch.nn.functional.cross_entropy where it is taken; None where torch has to do it."""
    plain = weight is None and size_average is None and reduce is None and label_smoothing == 0.0
    if not plain or reduction not in FORMS or not is_taken(when, input, target):
        return None
    made = loss_of(input, target, ignore_index, reduction)
    return made if torch.is_autocast_enabled(input.device.type) else made.to(input.dtype)


def is_taken(when: str, logits: Tensor, target: Tensor) -> bool:
    """Whether a block that was told `when` takes the loss of these logits."""
    if logits.dim() != 2 or target.dim() != 1 or logits.shape[0] != target.shape[0] or target.is_floating_point():
        return False
    if when != "plan":
        return when == "always" and logits.is_floating_point() and logits.device == target.device
    many = logits.is_cuda and logits.numel() * logits.element_size() >= LEAST_BYTES
    return many and target.is_cuda and logits.dtype in KERNELS and logits.shape[1] >= 1024


def count_loss(account: Account, logits: Tensor, compiled: bool) -> None:
    """One more loss that was taken."""
    moved = logits.shape[0] * logits.shape[1] * logits.element_size()
    shape, dtype = f"{logits.shape[0]}x{logits.shape[1]}", str(logits.dtype).removeprefix("torch.")
    name = "cross_entropy, compiled" if compiled else "cross_entropy"

    def made() -> Choice:
        if not logits.is_cuda:
            return Choice(name, shape, dtype, 0.0, 0.0, True, f"when={account.when!r}")
        each = moved / (machine_of(str(logits.device)).bandwidth * SHARE)
        theirs = OUR_PASSES * each if compiled else THEIR_PASSES * each
        return Choice(name, shape, dtype, OUR_PASSES * each, theirs, True, "fewer passes over the logits")

    account.count((name, shape, dtype, str(logits.device)), made)
