"""The short way of a product with gradients: one look-up and one launch forward, and the same for each gradient.

It serves matrices over plus_times in eager torch, when nothing else watches. `function.py` serves everything, and the
first call of each signature; a gradient of the gradient goes there too.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewise import api
from tilewise.arrays.torch_quick_signature import wants_gradient
from tilewise.interop.torch.function import product
from tilewise.interop.torch.gradients import of_sums
from tilewise.prepared import PREPARED, signature_for

_alive = torch._C._functorch.unwrap_if_dead  # a tensor that left a transform of torch.func may still be wrapped


class Product(torch.autograd.Function):
    """M · N of matrices, both real."""

    @staticmethod
    def forward(ctx: Any, M: Tensor, N: Tensor) -> Any:
        ctx.save_for_backward(M, N)
        return api.matmul(M, N)  # torch wants no gradients in here: the prepared product

    @staticmethod
    def backward(ctx: Any, dP: Tensor) -> Any:
        M, N = ctx.saved_tensors
        return of_sums(again if torch.is_grad_enabled() else api.matmul, M, N, dP, ctx.needs_input_grad)


_apply = super(torch.autograd.Function, Product).apply  # without a look at the signature of forward at every call


def again(M: Tensor, N: Tensor) -> Any:
    """A product that is differentiated once more."""
    return product(M, N, "plus_times", "high")


class Differentiated:
    """A product with gradients, kept under its signature."""

    __slots__ = ("tick",)

    def __call__(self, M: Tensor, N: Tensor, keywords: Any) -> Any:
        return _apply(_alive(M), _alive(N))


def keep_differentiated(M: Tensor, N: Tensor) -> None:
    """Let calls like this one go the short way from now on."""
    if torch.compiler.is_compiling() or M.dim() != 2 or N.dim() != 2 or M.dtype != N.dtype or not M.is_floating_point():
        return
    sign = signature_for(M)
    key = None if sign is None else sign(M, N, {})
    if key is not None and wants_gradient(key):
        PREPARED.keep(key, Differentiated())
