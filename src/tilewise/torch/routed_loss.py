"""The choice between our cross_entropy and torch's: for many logits the number of passes over them decides."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewise.arrays.torch_library import dtype_name
from tilewise.dispatch.execute import machine_of
from tilewise.torch.choice import Account, ProductChoice
from tilewise.torch.loss_kernels import KERNELS
from tilewise.torch.row_losses import loss_of

LEAST_BYTES = 1 << 24  # of logits; for fewer, launches take most of the time
OUR_PASSES, THEIR_PASSES = 3, 6  # over the logits, forward and backward; torch's in eager mode
SHARE = 0.7  # of the bandwidth that these passes reach
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
    """Our torch.nn.functional.cross_entropy; None if torch should compute it."""
    plain = weight is None and size_average is None and reduce is None and label_smoothing == 0.0
    if not plain or reduction not in FORMS or not is_taken(when, input, target):
        return None
    made = loss_of(input, target, ignore_index, reduction)
    return made if torch.is_autocast_enabled(input.device.type) else made.to(input.dtype)


def is_taken(when: str, logits: Tensor, target: Tensor) -> bool:
    """Whether a block with this `when` computes the loss of these logits."""
    if logits.dim() != 2 or target.dim() != 1 or logits.shape[0] != target.shape[0] or target.is_floating_point():
        return False
    if when != "plan":
        return when == "always" and logits.is_floating_point() and logits.device == target.device
    many = logits.is_cuda and logits.numel() * logits.element_size() >= LEAST_BYTES
    return many and target.is_cuda and logits.dtype in KERNELS and logits.shape[1] >= 1024


def count_loss(account: Account, logits: Tensor, compiled: bool) -> None:
    """Count a loss that we compute."""
    moved = logits.shape[0] * logits.shape[1] * logits.element_size()
    shape, dtype = f"{logits.shape[0]}x{logits.shape[1]}", dtype_name(logits.dtype)
    name = "cross_entropy, compiled" if compiled else "cross_entropy"

    def made() -> ProductChoice:
        if not logits.is_cuda:
            return ProductChoice(name, shape, dtype, 0.0, 0.0, True, f"when={account.when!r}")
        each = moved / (machine_of(str(logits.device)).bandwidth * SHARE)
        theirs = OUR_PASSES * each if compiled else THEIR_PASSES * each
        return ProductChoice(name, shape, dtype, OUR_PASSES * each, theirs, True, "fewer passes over the logits")

    account.count((name, shape, dtype, str(logits.device)), made)
