"""The short way of a product with gradients: one look-up and one launch forward, and the same for each gradient.

It serves matrices in eager torch over plus_times and over whatever picks a winner, when nothing else watches.
`function.py` serves everything, and the first call of each signature; a gradient of the gradient goes there too.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewise import api
from tilewise.algebra.builtin import is_plus_times
from tilewise.algebra.semiring import Semiring
from tilewise.arrays.torch_quick_signature import wants_gradient
from tilewise.core.options import Key
from tilewise.dispatch.prepared import PREPARED, signature_for
from tilewise.interop.torch.function import product
from tilewise.interop.torch.gradients import of_sums, of_winners

_alive = torch._C._functorch.unwrap_if_dead  # a tensor that left a transform of torch.func may still be wrapped


class Forward:
    """The product itself. What it was prepared as is kept, beside its signature: a call with gradients has its own."""

    __slots__ = ("keywords", "prepared")

    def __init__(self, **keywords: Any) -> None:
        self.keywords, self.prepared = keywords, _not_yet

    def anew(self, M: Tensor, N: Tensor) -> Any:
        """Called where torch wants no gradients: the first product, or one whose storage has changed."""
        made = api.matmul(M, N, **self.keywords)
        sign = signature_for(M)
        key: Key | None = None if sign is None else sign(M, N, self.keywords)
        self.prepared = _not_yet if key is None else PREPARED.get(key, _not_yet)
        return made


def _not_yet(M: Tensor, N: Tensor, keywords: Any) -> Any:
    return None


class Product(torch.autograd.Function):
    """M · N of matrices, both real."""

    @staticmethod
    def forward(ctx: Any, forward: Forward, M: Tensor, N: Tensor) -> Any:
        ctx.save_for_backward(M, N)
        P = forward.prepared(M, N, None)
        return forward.anew(M, N) if P is None else P

    @staticmethod
    def backward(ctx: Any, dP: Tensor) -> Any:
        M, N = ctx.saved_tensors
        multiply = again if torch.is_grad_enabled() else api.matmul
        return (None, *of_sums(multiply, M, N, dP, ctx.needs_input_grad[1:]))


class Choice(torch.autograd.Function):
    """The same over min or max: what is differentiated is what the winning k made."""

    @staticmethod
    def forward(ctx: Any, forward: Forward, ring: Semiring, M: Tensor, N: Tensor) -> Any:
        P, arg = forward.prepared(M, N, forward.keywords) or forward.anew(M, N)
        ctx.ring = ring
        ctx.save_for_backward(M, N, arg)
        return P

    @staticmethod
    def backward(ctx: Any, dP: Tensor) -> Any:
        M, N, arg = ctx.saved_tensors
        return (None, None, *of_winners(ctx.ring, M, N, dP, arg, ctx.needs_input_grad[2:]))


# without a look at the signature of forward at every call
_product = super(torch.autograd.Function, Product).apply
_choice = super(torch.autograd.Function, Choice).apply


def again(M: Tensor, N: Tensor) -> Any:
    """A product that is differentiated once more."""
    return product(M, N, "plus_times", "high")


class Differentiated:
    """A product with gradients, kept under its signature."""

    __slots__ = ("_forward", "tick")

    def __init__(self) -> None:
        self._forward = Forward()

    def __call__(self, M: Tensor, N: Tensor, keywords: Any) -> Any:
        return _product(self._forward, _alive(M), _alive(N))


class DifferentiatedChoice:
    """The same over min or max."""

    __slots__ = ("_forward", "_ring", "tick")

    def __init__(self, ring: Semiring) -> None:
        self._ring, self._forward = ring, Forward(semiring=ring, return_arg=True)

    def __call__(self, M: Tensor, N: Tensor, keywords: Any) -> Any:
        return _choice(self._forward, self._ring, _alive(M), _alive(N))


def keep_differentiated(M: Tensor, N: Tensor, semiring: str | Semiring, ring: Semiring) -> None:
    """Let calls like this one, with such a semiring and no other keyword, go the short way from now on."""
    if torch.compiler.is_compiling() or M.dim() != 2 or N.dim() != 2 or M.dtype != N.dtype or not M.is_floating_point():
        return
    plain = is_plus_times(ring)
    if not plain and not (ring.selective and M.is_cpu and N.is_cpu):
        return
    sign = signature_for(M)
    for keywords in ({"semiring": semiring}, *([{}] if semiring == "plus_times" else [])):
        key = None if sign is None else sign(M, N, keywords)
        if key is not None and wants_gradient(key):
            PREPARED.keep(key, Differentiated() if plain else DifferentiatedChoice(ring))
