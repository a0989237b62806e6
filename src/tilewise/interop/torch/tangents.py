"""Forward mode: how P moves when M and N do, by what the semiring's add does.

    +          tP = tM · N + M · tN: two more products
    min, max   the winning k's own move, through mul's slopes there
    logaddexp  the mean of the moves of all k, by their soft weights exp(M + N − P)

Operands are matrices or stacks of them, and everything is made of what torch or `product` can differentiate again.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewise.algebra.builtin import SEMIRINGS
from tilewise.algebra.semiring import Semiring
from tilewise.errors import UsageError
from tilewise.interop.torch.slopes import slopes


def tangent(
    ring: Semiring,
    precision: str,
    product: Any,
    M: Tensor,
    N: Tensor,
    P: Tensor | None,
    tM: Tensor | None,
    tN: Tensor | None,
    arg: Tensor | None,
) -> Tensor:
    """The tangent of P for those of M and N, None being 0; `arg` is the winning k where add picks one."""
    plain = SEMIRINGS["plus_times"]
    if (ring.add, ring.mul) == (plain.add, plain.mul):
        parts = [] if tM is None else [product(tM, N, "plus_times", precision)]
        parts += [] if tN is None else [product(M, tN, "plus_times", precision)]
        return parts[0] + parts[1] if len(parts) == 2 else parts[0]
    if arg is not None:
        return _of_winners(ring, M, N, tM, tN, arg)
    assert P is not None
    return _spread_out(ring, M, N, P, tM, tN)


def _of_winners(ring: Semiring, M: Tensor, N: Tensor, tM: Tensor | None, tN: Tensor | None, arg: Tensor) -> Tensor:
    if M.shape[-1] == 0:
        return torch.zeros(arg.shape, dtype=M.dtype, device=M.device)
    won, stack = arg.clamp_min(0), arg.shape[:-2]

    def at(x: Tensor, axis: int) -> Tensor:
        return torch.gather(x.expand(*stack, *x.shape[-2:]), axis, won)

    picked = slopes(ring.mul, at(M, -1), at(N, -2))
    moved = torch.zeros((), dtype=M.dtype, device=M.device)
    moved = moved if tM is None else moved + picked.dx * at(tM, -1)
    moved = moved if tN is None else moved + picked.dy * at(tN, -2)
    return torch.where(arg >= 0, moved, torch.zeros((), dtype=moved.dtype, device=moved.device))


def _spread_out(ring: Semiring, M: Tensor, N: Tensor, P: Tensor, tM: Tensor | None, tN: Tensor | None) -> Tensor:
    """Any mul under + or logaddexp: the m×k×n terms themselves."""
    soft = ring.add == SEMIRINGS["logaddexp_plus"].add
    if not soft and ring.add != SEMIRINGS["plus_times"].add:
        raise UsageError(
            f"{ring} has no forward mode: its add is neither +, min, max nor logaddexp; pass tensors without tangents"
        )
    if M.shape[-1] == 0:
        return torch.zeros_like(P)
    term = slopes(ring.mul, M[..., :, :, None], N[..., None, :, :])
    moved = torch.zeros((), dtype=M.dtype, device=M.device)
    moved = moved if tM is None else moved + term.dx * tM[..., :, :, None]
    moved = moved if tN is None else moved + term.dy * tN[..., None, :, :]
    if soft:
        held = P[..., :, None, :]
        moved = moved * torch.where(held == float("-inf"), 0.0, torch.exp(term.value - held))
    return moved.expand(*P.shape[:-1], M.shape[-1], P.shape[-1]).sum(-2)
