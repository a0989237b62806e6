"""The k that won each cell, recomputed for kernels of a card that do not store it: a band of k at a time, in torch."""

from __future__ import annotations

import torch
from torch import Tensor

from tilewise.algebra.dtypes import DTYPES
from tilewise.algebra.semiring import Semiring
from tilewise.arrays.torch_library import dtype_name
from tilewise.torch.gradients import OPERATORS

BAND_CELLS = 1 << 26


def winners(ring: Semiring, M: Tensor, N: Tensor, P: Tensor) -> Tensor:
    """The lowest k with mul(M[i, k], N[k, j]) == P[i, j], or −1 where there is none."""
    rows = M[None] if M.dim() == 1 else M
    cols = N[:, None] if N.dim() == 1 else N
    held = P[..., None] if N.dim() == 1 else P
    held = held[..., None, :] if M.dim() == 1 else held
    k = rows.shape[-1]
    wide = torch.float32 if P.dtype in (torch.float16, torch.bfloat16) else P.dtype
    arg = torch.full(held.shape, -1, dtype=torch.int64, device=P.device)
    band = max(1, BAND_CELLS // max(1, held.numel()))
    for start in range(0, k, band):
        x = rows[..., :, start : start + band, None].to(wide)
        y = cols[..., None, start : start + band, :].to(wide)
        made = OPERATORS.value(ring.mul, x, y).to(P.dtype)
        same = (made == held[..., :, None, :]).expand(*held.shape[:-1], x.shape[-2], held.shape[-1])
        first = torch.where(same.any(-2), same.to(torch.int8).argmax(-2) + start, -1)
        arg = torch.where(arg < 0, first, arg)
    zero = ring.over(DTYPES[dtype_name(P.dtype)]).zero  # no k beat it
    return torch.where(held == zero, -1, arg).reshape(P.shape)
