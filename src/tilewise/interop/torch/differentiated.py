"""The short way of a product with gradients: one look-up and one launch forward, and the same for each gradient.

It serves matrices over plus_times in eager torch, when nothing else watches. `function.py` serves everything, and the
first call of each signature; a gradient of the gradient goes there too.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._functorch.utils import unwrap_dead_wrappers

from tilewise import api
from tilewise.arrays.torch_signature import GRADIENT, signature
from tilewise.interop.torch.function import product
from tilewise.interop.torch.gradients import of_sums
from tilewise.options import Key
from tilewise.prepared import PREPARED

NOTHING: dict[str, Any] = {}


class Product(torch.autograd.Function):
    """M · N of matrices, both real."""

    @staticmethod
    def forward(ctx: Any, M: Tensor, N: Tensor, key: Key) -> Tensor:
        ctx.save_for_backward(M, N)
        prepared = PREPARED.get(key)
        made: Tensor | None = None if prepared is None else prepared(M, N, NOTHING)
        return api.matmul(M.detach(), N.detach()) if made is None else made

    @staticmethod
    def backward(ctx: Any, dP: Tensor) -> Any:
        M, N = ctx.saved_tensors
        return (*of_sums(again if torch.is_grad_enabled() else api.matmul, M, N, dP, ctx.needs_input_grad), None)


_apply = super(torch.autograd.Function, Product).apply  # without a look at the signature of forward at every call


def again(M: Tensor, N: Tensor) -> Any:
    """A product that is differentiated once more."""
    return product(M, N, "plus_times", "high")


class Differentiated:
    """A product with gradients, kept under its signature."""

    __slots__ = ("_key", "tick")

    def __init__(self, key: Key) -> None:
        self._key = key

    def __call__(self, M: Tensor, N: Tensor, keywords: Any) -> Any:
        return _apply(*unwrap_dead_wrappers((M, N)), self._key)


def keep_differentiated(M: Tensor, N: Tensor) -> None:
    """Let calls like this one go the short way from now on."""
    if torch.compiler.is_compiling() or M.dim() != 2 or N.dim() != 2 or M.dtype != N.dtype or not M.is_floating_point():
        return
    key = signature(M, N, NOTHING)
    if key is not None and key[0] is GRADIENT:
        PREPARED.keep(key, Differentiated(key[1:]))
