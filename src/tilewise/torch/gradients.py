"""Gradients of a product over a semiring, by the semiring's add (tangents are in `algebra/tangents.py`).

    +          dM = dP · Nᵀ and dN = Mᵀ · dP: two more products
    min, max   dP of a cell flows to the winning k, times mul's partial derivatives there
    logaddexp  dP of a cell flows to every k, weighted by exp(M + N − P)

Operands are matrices or stacks of them (`function.py` adds axes to vectors). All operations used can be differentiated
again. `arg` is the winning k for min and max.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewise.algebra.builtin import SEMIRINGS, is_plus_times
from tilewise.algebra.semiring import Semiring
from tilewise.algebra.tangents import is_soft, soft_weight, why_no_tangent
from tilewise.algebra.to_operators import Operators
from tilewise.errors import UsageError

Pair = tuple[Tensor | None, Tensor | None]

BAND_CELLS = 1 << 24  # of the m×k×n terms computed at a time
OPERATORS = Operators(torch)


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
    """dM and dN if `wanted`, each with the stack of P; `product` must be differentiable."""
    if is_plus_times(ring):
        return of_sums(lambda x, y: product(x, y, "plus_times", precision), M, N, dP, wanted)
    if ring.selective:
        assert arg is not None
        return of_winners(ring, M, N, dP, arg, wanted)
    log = SEMIRINGS["logaddexp_plus"]
    if (ring.add, ring.mul) == (log.add, log.mul) and not torch.is_grad_enabled():
        return _of_soft_weights(precision, M, N, P, dP, wanted)
    return _of_terms(ring, M, N, P, dP, wanted)


def of_sums(multiply: Any, M: Tensor, N: Tensor, dP: Tensor, wanted: Any) -> Pair:
    """dM = dP · Nᴴ and dN = Mᴴ · dP, each in its operand's layout, so that the gradient of a transposed weight needs no
    copy."""
    dM = dN = None
    if wanted[0]:
        dM = multiply(N.conj(), dP.mT).mT if is_column_major(M) else multiply(dP, N.mH)
    if wanted[1]:
        dN = multiply(dP.mT, M.conj()).mT if is_column_major(N) else multiply(M.mH, dP)
    return dM, dN


def is_column_major(x: Tensor) -> bool:
    return x.stride(-2) == 1 and x.stride(-1) != 1


def of_winners(ring: Semiring, M: Tensor, N: Tensor, dP: Tensor, arg: Tensor, wanted: Any) -> Pair:
    """Gradients over min and max: dP of a cell flows to its winning k."""
    if M.shape[-1] == 0:
        return _zeros(M, N, wanted)
    won, stack = arg.clamp_min(0), dP.shape[:-2]
    M, N = M.expand(*stack, *M.shape[-2:]), N.expand(*stack, *N.shape[-2:])
    picked = OPERATORS.partials(ring.mul, torch.gather(M, -1, won), torch.gather(N, -2, won))
    flow = torch.where(arg >= 0, dP, _zero(dP))
    dM = torch.zeros_like(M).scatter_add(-1, won, flow * picked.dx) if wanted[0] else None
    dN = torch.zeros_like(N).scatter_add(-2, won, flow * picked.dy) if wanted[1] else None
    return dM, dN


def _zero(x: Tensor) -> Tensor:
    return torch.zeros((), dtype=x.dtype, device=x.device)


def _zeros(M: Tensor, N: Tensor, wanted: Any) -> Pair:
    return torch.zeros_like(M) if wanted[0] else None, torch.zeros_like(N) if wanted[1] else None


def _of_soft_weights(precision: str, M: Tensor, N: Tensor, P: Tensor, dP: Tensor, wanted: list[bool]) -> Pair:
    """dM[i, k] = exp(M[i, k]) Σⱼ dP[i, j] exp(N[k, j] − P[i, j]): a product over logaddexp_plus itself, for the
    positive and for the negative part of dP. No exponent is above 0 by more than log |dP|, so nothing overflows."""
    infinite = float("-inf")
    dM = dN = None
    for sign in (1, -1):
        share = torch.where(P.eq(infinite), infinite, (sign * dP).clamp_min(0).log() - P)
        if wanted[0]:
            part = torch.exp(M + torch.ops.tilewise.matmul(share, N.mT, "logaddexp_plus", precision))
            dM = part if dM is None else dM - part
        if wanted[1]:
            part = torch.exp(N + torch.ops.tilewise.matmul(M.mT, share, "logaddexp_plus", precision))
            dN = part if dN is None else dN - part
    return dM, dN


def _of_terms(ring: Semiring, M: Tensor, N: Tensor, P: Tensor, dP: Tensor, wanted: list[bool]) -> Pair:
    """Gradients of any mul under + or logaddexp: from the m×k×n terms, a band of k at a time."""
    check_differentiable(ring, "pass tensors that require none")
    k, cells = M.shape[-1], max(1, P.numel())
    band = k if torch.is_grad_enabled() else max(1, min(k, BAND_CELLS // cells))
    left, right = [], []
    for start in range(0, k, max(band, 1)):
        x, y = M[..., :, start : start + band, None], N[..., None, start : start + band, :]
        term = OPERATORS.partials(ring.mul, x, y)
        flow = dP[..., :, None, :]
        if is_soft(ring):
            flow = flow * soft_weight(OPERATORS, term.value, P)
        if wanted[0]:
            left.append((flow * term.dx).expand(*P.shape[:-1], x.shape[-2], P.shape[-1]).sum(-1))
        if wanted[1]:
            right.append((flow * term.dy).expand(*P.shape[:-1], x.shape[-2], P.shape[-1]).sum(-3))
    if not k:
        return _zeros(M, N, wanted)
    return (torch.cat(left, -1) if wanted[0] else None, torch.cat(right, -2) if wanted[1] else None)


def check_differentiable(ring: Semiring, instead: str) -> None:
    why = why_no_tangent(OPERATORS, ring)
    if why:
        raise UsageError(f"{why}; {instead}")
