"""The gradients of a product over a semiring, by what its add does.

    +          dM = dP · Nᵀ, dN = Mᵀ · dP: two more products
    min, max   everything flows to the k that won each cell, and through mul's slope there
    logaddexp  every k gets its share, the soft weight exp(M + N − P)

Operands here are matrices or stacks of them; `function.py` brings vectors and broadcasting there and back.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewise.algebra.builtin import SEMIRINGS
from tilewise.algebra.semiring import Semiring
from tilewise.errors import UsageError
from tilewise.interop.torch.slopes import slopes

Pair = tuple[Tensor | None, Tensor | None]

BAND_CELLS = 1 << 24  # cells of m×k×n that are spread out at a time


def gradients(
    ring: Semiring,
    precision: str,
    product: Any,
    M: Tensor,
    N: Tensor,
    P: Tensor,
    dP: Tensor,
    arg: Tensor | None,
    wanted: list[bool],
) -> Pair:
    """dM and dN where they are wanted, each with the stack of P; `arg` is the winning k where add picks one, and
    `product` a product that can be differentiated again."""
    plain, log = SEMIRINGS["plus_times"], SEMIRINGS["logaddexp_plus"]
    if (ring.add, ring.mul) == (plain.add, plain.mul):
        return _of_sums(precision, product, M, N, dP, wanted)
    if ring.selective:
        assert arg is not None
        return of_winners(ring, M, N, dP, arg, wanted)
    if (ring.add, ring.mul) == (log.add, log.mul) and not torch.is_grad_enabled():
        return _of_soft_weights(precision, M, N, P, dP, wanted)
    return _spread_out(ring, M, N, P, dP, wanted)


def _of_sums(precision: str, product: Any, M: Tensor, N: Tensor, dP: Tensor, wanted: list[bool]) -> Pair:
    def multiply(x: Tensor, y: Tensor) -> Any:
        return product(x, y, "plus_times", precision)

    return of_sums(multiply, M, N, dP, wanted)


def of_sums(multiply: Any, M: Tensor, N: Tensor, dP: Tensor, wanted: Any) -> Pair:
    """dM = dP · Nᴴ and dN = Mᴴ · dP, each made to lie as its operand does: a weight that is read transposed gets a
    gradient that its own memory takes without a copy."""
    dM = dN = None
    if wanted[0]:
        dM = multiply(N.conj(), dP.mT).mT if lies_turned(M) else multiply(dP, N.mH)
    if wanted[1]:
        dN = multiply(dP.mT, M.conj()).mT if lies_turned(N) else multiply(M.mH, dP)
    return dM, dN


def lies_turned(x: Tensor) -> bool:
    """Whether a matrix is the transpose of one whose rows lie side by side."""
    return x.stride(-2) == 1 and x.stride(-1) != 1


def of_winners(ring: Semiring, M: Tensor, N: Tensor, dP: Tensor, arg: Tensor, wanted: Any) -> Pair:
    """Everything flows to the k that won a cell."""
    k = M.shape[-1]
    if k == 0:
        return (torch.zeros_like(M) if wanted[0] else None, torch.zeros_like(N) if wanted[1] else None)
    won = arg.clamp_min(0)
    stack = dP.shape[:-2]
    M, N = M.expand(*stack, *M.shape[-2:]), N.expand(*stack, *N.shape[-2:])
    picked = slopes(ring.mul, torch.gather(M, -1, won), torch.gather(N, -2, won))
    flow = torch.where(arg >= 0, dP, torch.zeros((), dtype=dP.dtype, device=dP.device))
    dM = torch.zeros_like(M).scatter_add(-1, won, flow * picked.dx) if wanted[0] else None
    dN = torch.zeros_like(N).scatter_add(-2, won, flow * picked.dy) if wanted[1] else None
    return dM, dN


def _of_soft_weights(precision: str, M: Tensor, N: Tensor, P: Tensor, dP: Tensor, wanted: list[bool]) -> Pair:
    """dM[i, k] = exp(M[i, k]) Σⱼ dP[i, j] exp(N[k, j] − P[i, j]): a product over logaddexp_plus itself, for what is
    positive in dP and for what is negative. No exponent is above 0 by more than log |dP|, so nothing overflows."""
    nothing = float("-inf")
    dM = dN = None
    for sign in (1, -1):
        share = torch.where(P.eq(nothing), nothing, (sign * dP).clamp_min(0).log() - P)
        if wanted[0]:
            part = torch.exp(M + torch.ops.tilewise.matmul(share, N.mT, "logaddexp_plus", precision))
            dM = part if dM is None else dM - part
        if wanted[1]:
            part = torch.exp(N + torch.ops.tilewise.matmul(M.mT, share, "logaddexp_plus", precision))
            dN = part if dN is None else dN - part
    return dM, dN


def _spread_out(ring: Semiring, M: Tensor, N: Tensor, P: Tensor, dP: Tensor, wanted: list[bool]) -> Pair:
    """Any mul under + or logaddexp: the m×k×n terms themselves, a band of k at a time."""
    soft = ring.add == SEMIRINGS["logaddexp_plus"].add
    if not soft and ring.add != SEMIRINGS["plus_times"].add:
        raise UsageError(
            f"{ring} has no gradient: its add is neither +, min, max nor logaddexp; pass tensors that require none"
        )
    k, cells = M.shape[-1], max(1, P.numel())
    band = k if torch.is_grad_enabled() else max(1, min(k, BAND_CELLS // cells))
    left, right = [], []
    for start in range(0, k, max(band, 1)):
        x, y = M[..., :, start : start + band, None], N[..., None, start : start + band, :]
        term = slopes(ring.mul, x, y)
        flow = dP[..., :, None, :]
        if soft:
            held = P[..., :, None, :]
            flow = flow * torch.where(held == float("-inf"), 0.0, torch.exp(term.value - held))
        if wanted[0]:
            left.append((flow * term.dx).expand(*P.shape[:-1], x.shape[-2], P.shape[-1]).sum(-1))
        if wanted[1]:
            right.append((flow * term.dy).expand(*P.shape[:-1], x.shape[-2], P.shape[-1]).sum(-3))
    if not k:
        return (torch.zeros_like(M) if wanted[0] else None, torch.zeros_like(N) if wanted[1] else None)
    return (torch.cat(left, -1) if wanted[0] else None, torch.cat(right, -2) if wanted[1] else None)
