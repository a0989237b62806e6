"""Losses and their gradients, a band of rows at a time in reused memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from tilewise.dispatch import product as dispatch
from tilewise.torch.call_sites import into
from tilewise.torch.loss_kernels import rounded, to_gradients
from tilewise.torch.row_alignment import aligned_leading_dimension

BAND_BYTES = 400 << 20  # on an H200, 8192 rows of 50,257 classes take 0.88 of the time in two bands as in four
ROUNDED_BANDS = 2  # dW of more bands is added in float32: twice the memory, and one more pass


class LossAndGradients(NamedTuple):
    losses: Tensor
    dX: Tensor | None
    dW: Tensor | None
    db: Tensor | None


def share_of(X: Tensor, target: Tensor, ignored: int, mean: bool) -> tuple[Tensor | None, Tensor | None]:
    """The weight of a row in the mean, and the same or None if it is too small to scale the gradients (float16)."""
    wide = torch.float64 if X.dtype is torch.float64 else torch.float32
    share = (target != ignored).sum().to(wide).reciprocal() if mean else None
    return share, None if X.dtype is torch.float16 else share


def all_rounded(made: LossAndGradients, dtype: torch.dtype) -> tuple[Tensor | None, ...]:
    """The gradients in the dtype of the operands."""
    return tuple(None if x is None else rounded(x, dtype) for x in made[1:])


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
    """Losses, and those of dX, dW and db that are `wanted`, band by band; `counts`: the weight of each row in the
    gradients, or `scale`: that of all rows."""
    rows, classes = X.shape[0], W.shape[0]
    step = _rows_at_a_time(rows, classes, X.element_size())
    # dense rows on a CPU, where torch's bfloat16 product reads past the end of an odd row
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
    """Rows of a band: bands are about equal, and multiples of 128 rows if there are several."""
    most = max(1, BAND_BYTES // max(1, classes * size))
    if rows <= most:
        return max(1, rows)
    bands = -(-rows // most)
    even = -(-rows // bands)
    return min(most, -(-even // 128) * 128) if most >= 128 else most


def _multiply(M: Tensor, N: Tensor, out: Tensor | None = None, spare: bool = False) -> Tensor:
    """M · N by torch on a CPU or if every row starts and ends on 16 bytes, else by us: for 50,257 columns torch uses
    its slow kernels even if rows are padded. `spare`: the padding of `out` may be overwritten."""
    made = M.new_empty((M.shape[0], N.shape[1])) if out is None else out
    if not M.is_cuda or all(_on_sixteen_bytes(x) for x in (M, N, made)):
        return torch.mm(M, N, out=made)
    return made if spare and into(M, N, made, spare) else dispatch.matmul(M, N, out=made)


def _added(total: Tensor | None, M: Tensor, N: Tensor, kept: torch.dtype) -> Tensor:
    """`total` + M · N in the dtype `kept`; `total` is None for the first band."""
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
