"""The fast path of products with gradients: one look-up and one launch forward, and for each gradient.

It is used for matrices in eager torch, over plus_times, and over min and max on the CPU. Everything else uses
`function.py`, and so do the first call of each signature and gradients of gradients.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewise.algebra.builtin import is_plus_times
from tilewise.algebra.semiring import Semiring
from tilewise.arrays.torch_library import observed
from tilewise.arrays.torch_quick_signature import wants_gradient
from tilewise.core.options import Key
from tilewise.dispatch import product as dispatch
from tilewise.dispatch.prepared import PREPARED, signature_for
from tilewise.torch.function import product
from tilewise.torch.gradients import of_sums, of_winners

_alive = torch._C._functorch.unwrap_if_dead  # a tensor that left a transform of torch.func may still be wrapped


def _unprepared(M: Tensor, N: Tensor, keywords: Any) -> Any:
    return None


class DifferentiablePrepared:
    """A prepared product with gradients; `ring`: the semiring of min or max, else None. It holds the prepared call of
    the product without gradients, which has another signature."""

    __slots__ = ("_keywords", "_prepared", "ring", "tick")

    def __init__(self, ring: Semiring | None) -> None:
        self.ring, self._prepared = ring, _unprepared
        self._keywords: dict[str, Any] = {} if ring is None else {"semiring": ring, "return_arg": True}

    def __call__(self, M: Tensor, N: Tensor, keywords: Any) -> Any:
        return _apply(self, _alive(M), _alive(N))

    def forward(self, M: Tensor, N: Tensor) -> Any:
        """P, and over min and max the winning k; called without autograd."""
        made = self._prepared(M, N, self._keywords)
        if made is None:  # the first product, or its prepared call declined
            made = dispatch.matmul(M, N, **self._keywords)
            sign = signature_for(M)
            key: Key | None = None if sign is None else sign(M, N, self._keywords)
            self._prepared = _unprepared if key is None else PREPARED.get(key, _unprepared)
        return made


class PreparedProduct(torch.autograd.Function):
    """A prepared product of two real matrices."""

    @staticmethod
    def forward(ctx: Any, prepared: DifferentiablePrepared, M: Tensor, N: Tensor) -> Any:
        made, ctx.ring = prepared.forward(M, N), prepared.ring
        P, *arg = (made,) if ctx.ring is None else made
        ctx.save_for_backward(M, N, *arg)
        return P

    @staticmethod
    def backward(ctx: Any, dP: Tensor) -> Any:
        M, N, *arg = ctx.saved_tensors
        wanted = ctx.needs_input_grad[1:]
        if arg:
            return (None, *of_winners(ctx.ring, M, N, dP, arg[0], wanted))
        return (
            None,
            *of_sums(
                _differentiable if torch.is_grad_enabled() or observed(M, dP) else dispatch.matmul, M, N, dP, wanted
            ),
        )


_apply = super(torch.autograd.Function, PreparedProduct).apply  # without the inspection of forward's signature


def _differentiable(M: Tensor, N: Tensor) -> Any:
    return product(M, N, "plus_times", "high")


def keep_differentiable(M: Tensor, N: Tensor, semiring: str | Semiring, ring: Semiring) -> None:
    """Prepare calls with this signature, which have no keyword but the semiring."""
    if torch.compiler.is_compiling() or M.dim() != 2 or N.dim() != 2 or M.dtype != N.dtype or not M.is_floating_point():
        return
    plain = is_plus_times(ring)
    if not plain and not (ring.selective and M.is_cpu and N.is_cpu):
        return
    sign = signature_for(M)
    for keywords in ({"semiring": semiring}, *([{}] if semiring == "plus_times" else [])):
        key = None if sign is None else sign(M, N, keywords)
        if key is not None and wants_gradient(key):
            PREPARED.keep(key, DifferentiablePrepared(None if plain else ring))
