"""Products of tensors with `reproducible=`: one operator for eager programs, gradients and torch.compile.

Its gradients are such products too. dM is that of M's row alone; dN and the bias's sum over the rows of M, so their
bits are those of one batch. With "batch" a card adds the bias to the sums before they are rounded, else it is added to
the rounded product.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewise.arrays.torch_library import DIRECT, observed
from tilewise.core.reproducible import check_reproducible
from tilewise.dispatch import product as dispatch
from tilewise.errors import UsageError
from tilewise.torch.function import as_matrices, batched, cast, records_operators, unbatched
from tilewise.torch.operator import empty_product, kernel_only, needs_derivative
from tilewise.torch.transform_levels import apply

PLAIN = (Tensor, torch.nn.Parameter)


@torch.library.custom_op("tilewise::reproducible_matmul", mutates_args=())
def product(M: Tensor, N: Tensor, level: str, bias: Tensor | None = None) -> Tensor:
    with kernel_only(M):
        return _computed(M, N, level, bias)


@product.register_fake
def _(M: Tensor, N: Tensor, level: str, bias: Tensor | None = None) -> Tensor:
    return empty_product(M, N, "plus_times")


def _computed(M: Tensor, N: Tensor, level: str, bias: Tensor | None) -> Tensor:
    """Of tensors whose gradients nobody records here."""
    if bias is None or level != "batch" or not M.is_cuda:
        made: Tensor = dispatch.matmul(M, N, reproducible=level)
        return made if bias is None else made.add_(bias)
    fused: Tensor = dispatch.matmul(M, N, reproducible=level, bias=bias.detach() if bias.requires_grad else bias)
    return fused


class _Product(torch.autograd.Function):
    """The same product, whose derivatives torch.func and forward mode take."""

    @staticmethod
    def forward(M: Tensor, N: Tensor, level: str, bias: Tensor | None = None) -> Any:
        return product(M, N, level, bias)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        M, N, ctx.level, _ = inputs
        ctx.save_for_backward(M, N)
        ctx.save_for_forward(M, N)

    @staticmethod
    def backward(ctx: Any, dP: Tensor) -> Any:
        M, N = ctx.saved_tensors
        needs_m, needs_n = ctx.needs_input_grad[:2]
        dM = _multiply(dP, N.mT.conj().resolve_conj(), ctx.level).sum_to_size(M.shape) if needs_m else None
        dN = _multiply(M.mT.conj().resolve_conj(), dP, ctx.level).sum_to_size(N.shape) if needs_n else None
        db = dP.sum_to_size(dP.shape[-1:]) if ctx.needs_input_grad[3] else None
        return dM, dN, None, db

    @staticmethod
    def jvp(ctx: Any, tM: Tensor | None, tN: Tensor | None, _: Any, tb: Tensor | None = None) -> Any:
        M, N = ctx.saved_tensors
        parts = [(tM, N)] if tM is not None else []
        parts += [(M, tN)] if tN is not None else []
        made = sum(_multiply(x, y, ctx.level) for x, y in parts)
        if tb is None:
            return made
        return made + tb if parts else tb.expand(*torch.broadcast_shapes(M.shape[:-2], N.shape[:-2]), M.shape[-2], -1)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], M: Tensor, N: Tensor, level: str, bias: Tensor | None = None
    ) -> Any:
        shared = bias is None or in_dims[3] is None
        M, N, vectors = batched(in_dims[:2], M, N)
        made = unbatched(_multiply(M, N, level, bias if shared else None), vectors)
        if shared:
            return made
        assert bias is not None
        own = bias.movedim(in_dims[3], 0)
        return made[0].movedim(made[1], 0) + own.reshape(len(own), *(1,) * (made[0].dim() - 2), -1), 0


product.register_autograd(_Product.backward, setup_context=_Product.setup_context)


def _multiply(M: Tensor, N: Tensor, level: str, bias: Tensor | None = None) -> Tensor:
    """By the operator in a graph, else by the function."""
    made: Tensor = product(M, N, level, bias) if records_operators() else apply(_Product, M, N, level, bias)
    return made


def reproducible_matmul(M: Tensor, N: Tensor, level: str, bias: Tensor | None = None) -> Tensor:
    """`tw.matmul(M, N, reproducible=level)` + bias with gradients, inside torch.compile too; in autocast's dtype."""
    if torch.is_autocast_enabled("cuda" if M.is_cuda else "cpu"):
        M, N = cast(M), cast(N)
    bias = bias if bias is None or bias.dtype is M.dtype else bias.to(M.dtype)
    beside = bias is not None and (bias.__class__ not in PLAIN or needs_derivative(M, bias))
    if not (beside or needs_derivative(M, N) or observed(M, N) or records_operators()):
        with DIRECT:  # the operator would take four times as long to call
            return _computed(M, N, level, bias)
    rows, cols, _ = as_matrices(M, N)
    P = _multiply(rows, cols, level, bias)
    P = P.squeeze(-1) if N.dim() == 1 else P
    return P.squeeze(-1 if N.dim() == 1 else -2) if M.dim() == 1 else P


def reproducible_linear(input: Tensor, weight: Tensor, bias: Tensor | None, level: str) -> Tensor:
    """input · weightᵀ + bias: rows that share a batch are rows of one product."""
    if input.dim() <= 2:
        return reproducible_matmul(input, weight.mT, level, bias)
    return reproducible_matmul(input.flatten(0, -2), weight.mT, level, bias).unflatten(0, input.shape[:-1])


def checked_level(level: str | None, aligned_rows: bool = False) -> str | None:
    """The level of a layer."""
    if check_reproducible(level) is not None and aligned_rows:
        raise UsageError(f"on_lines=True and reproducible={level!r} exclude each other: leave one out")
    return level
