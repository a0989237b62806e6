"""Products of tensors with `reproducible=`: one operator for eager programs, gradients and torch.compile.

Its gradients are such products too. dM is that of M's row alone; dN sums over the rows of M, so its bits are those of
one batch.
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


@torch.library.custom_op("tilewise::reproducible_matmul", mutates_args=())
def product(M: Tensor, N: Tensor, level: str) -> Tensor:
    with kernel_only(M):
        return dispatch.matmul(M.detach(), N.detach(), reproducible=level)


@product.register_fake
def _(M: Tensor, N: Tensor, level: str) -> Tensor:
    return empty_product(M, N, "plus_times")


class _Product(torch.autograd.Function):
    """The same product, whose derivatives torch.func and forward mode take."""

    @staticmethod
    def forward(M: Tensor, N: Tensor, level: str) -> Any:
        return product(M, N, level)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        M, N, ctx.level = inputs
        ctx.save_for_backward(M, N)
        ctx.save_for_forward(M, N)

    @staticmethod
    def backward(ctx: Any, dP: Tensor) -> Any:
        M, N = ctx.saved_tensors
        needs_m, needs_n = ctx.needs_input_grad[:2]
        dM = _multiply(dP, N.mT.conj().resolve_conj(), ctx.level).sum_to_size(M.shape) if needs_m else None
        dN = _multiply(M.mT.conj().resolve_conj(), dP, ctx.level).sum_to_size(N.shape) if needs_n else None
        return dM, dN, None

    @staticmethod
    def jvp(ctx: Any, tM: Tensor | None, tN: Tensor | None, _: Any) -> Any:
        M, N = ctx.saved_tensors
        parts = [(tM, N)] if tM is not None else []
        parts += [(M, tN)] if tN is not None else []
        return sum(_multiply(x, y, ctx.level) for x, y in parts)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], M: Tensor, N: Tensor, level: str) -> Any:
        M, N, vectors = batched(in_dims[:2], M, N)
        return unbatched(_multiply(M, N, level), vectors)


product.register_autograd(_Product.backward, setup_context=_Product.setup_context)


def _multiply(M: Tensor, N: Tensor, level: str) -> Tensor:
    """By the operator in a graph, else by the function."""
    made: Tensor = product(M, N, level) if records_operators() else apply(_Product, M, N, level)
    return made


def reproducible_matmul(M: Tensor, N: Tensor, level: str) -> Tensor:
    """`tw.matmul(M, N, reproducible=level)` with gradients, inside torch.compile too; in autocast's dtype."""
    if torch.is_autocast_enabled(M.device.type):
        M, N = cast(M), cast(N)
    if not (records_operators() or observed(M, N) or needs_derivative(M, N)):
        with DIRECT:  # the operator would take four times as long to call
            made: Tensor = dispatch.matmul(M.detach(), N.detach(), reproducible=level)
            return made
    rows, cols, _ = as_matrices(M, N)
    P = _multiply(rows, cols, level)
    P = P.squeeze(-1) if N.dim() == 1 else P
    return P.squeeze(-1 if N.dim() == 1 else -2) if M.dim() == 1 else P


def reproducible_linear(input: Tensor, weight: Tensor, bias: Tensor | None, level: str) -> Tensor:
    """input · weightᵀ, rounded, + bias: rows that share a batch are rows of one product."""
    made = reproducible_matmul(input.flatten(0, -2) if input.dim() > 2 else input, weight.mT, level)
    made = made.reshape(*input.shape[:-1], weight.shape[0])
    return made if bias is None else made + bias.to(made.dtype)


def checked_level(level: str | None, aligned_rows: bool = False) -> str | None:
    """The level of a layer."""
    if check_reproducible(level) is not None and aligned_rows:
        raise UsageError(f"on_lines=True and reproducible={level!r} exclude each other: leave one out")
    return level
