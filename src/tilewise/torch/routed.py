"""Products and linear layers in eager torch, each by ours or torch's kernels as an `Account` chooses.

A layer with a gradient is three products (P, dM and dN), each with its own choice. If all are torch's, torch's own
function runs, backward included, without a Function of ours.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from tilewise.arrays.torch_library import is_watched, observed
from tilewise.arrays.torch_signature import signature
from tilewise.dispatch import product as dispatch
from tilewise.dispatch.prepared import PREPARED
from tilewise.torch.aligned_gradient import aligned_for_both
from tilewise.torch.choice import Account, ProductChoice
from tilewise.torch.function import cast, casts, records_operators
from tilewise.torch.gradients import of_sums
from tilewise.torch.operator import matmul
from tilewise.torch.routed_operator import traced_linear

NOTHING: dict[str, Any] = {}
theirs, their_matmul = functional.linear, torch.matmul  # saved: `accelerate()` replaces the attributes
is_compiling, grad_enabled, any_autocast = (
    torch.compiler.is_compiling,
    torch.is_grad_enabled,
    torch._C._is_any_autocast_enabled,
)
PLAIN = (Tensor, torch.nn.Parameter)
Products = list[ProductChoice]


def routed_linear(account: Account, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input · weightᵀ + bias."""
    if is_compiling():
        return (
            traced_linear(input, weight, bias, account.when)
            if _is_layer(input, weight)
            else theirs(input, weight, bias)
        )
    if torch_keeps(account, input, weight):
        return theirs(input, weight, bias)
    return choose_linear(account, input, weight, bias)


def torch_keeps(account: Account, input: Tensor, weight: Tensor) -> bool:
    """Whether torch is known to compute layers of this kind; counts the call. The key has only what is cheap to read:
    torch's function is right for any layout."""
    kept = account.layers_kept.get((weight.shape, weight.dtype)) or account.kinds_kept.get(_kind(input, weight))
    if kept is None:
        return False
    kept.calls += 1
    return True


def _kind(input: Tensor, weight: Tensor) -> tuple[Any, ...]:
    return (
        input.shape, weight.shape, input.dtype, weight.dtype, input.requires_grad, weight.requires_grad,
        grad_enabled(), any_autocast(),
    )  # fmt: skip


def choose_linear(account: Account, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`routed_linear` of a kind without a recorded choice."""
    if not _is_layer(input, weight) or (account.keeps_layer(weight) and torch_keeps(account, input, weight)):
        return theirs(input, weight, bias)
    if records_operators():
        return traced_linear(input, weight, bias, account.when)
    flat = input if input.dim() == 2 else input.flatten(0, -2) if flattens_without_copy(input) else None
    if flat is None and account.when == "always":
        made = matmul(input, weight.mT)
        return made if bias is None else made + bias.to(made.dtype)
    if flat is None:
        return theirs(input, weight, bias)
    found = choices(account, "linear", flat, weight, True, bias)
    if not any(choice.routed for choice in found):
        if not is_watched():
            account.keep_kind(_kind(input, weight), found)
        return theirs(input, weight, bias)
    made = _product(account, flat, weight.mT, bias, "linear")
    return made if flat is input else made.unflatten(0, input.shape[:-1])


def routed_matmul(account: Account, M: Tensor, N: Tensor, operator: str = "mm", bias: Tensor | None = None) -> Any:
    """M · N (+ bias) of matrices, or of stacks of the same extents; None if torch should compute it."""
    if M.dim() > 2 and N.dim() == 2 and flattens_without_copy(M):
        made = routed_matmul(account, M.flatten(0, -2), N, operator, bias)
        return None if made is None else made.unflatten(0, M.shape[:-1])
    if M.dim() < 2 or M.dim() != N.dim() or M.shape[:-2] != N.shape[:-2]:
        return None
    if not any(choice.routed for choice in choices(account, operator, M, N, False, bias)):
        return None
    return _product(account, M, N, bias, operator)


def _is_layer(input: Tensor, weight: Tensor) -> bool:
    return weight.dim() == 2 and input.dim() >= 2


def choices(account: Account, operator: str, M: Tensor, N: Tensor, transposed: bool, bias: Tensor | None) -> Products:
    """The choices for a product and its required gradients; counted here if all are torch's, whose backward does not
    call us. `transposed`: N is given as Nᵀ, a layer's weight."""
    dtype = torch.get_autocast_dtype(M.device.type) if torch.is_autocast_enabled(M.device.type) else None
    grads = torch.is_grad_enabled()
    wanted = (grads and M.requires_grad, grads and N.requires_grad)
    offsets = (0, 0) if not M.is_cuda or is_watched() else (M.data_ptr() & 15, N.data_ptr() & 15)
    added = bias is not None
    key = (
        operator, M.shape, N.shape, M.stride(), N.stride(), M.dtype, N.dtype, M.device, offsets, wanted, added, dtype,
    )  # fmt: skip
    found: Products | None = account.cached.get(key)
    if found is None:
        found = account.cached[key] = _choose_all(account, operator, M, N, transposed, offsets, wanted, added, dtype)
    if not any(choice.routed for choice in found):
        for choice in found:
            choice.calls += 1
    return found


def _choose_all(
    account: Account,
    operator: str,
    M: Tensor,
    N: Tensor,
    transposed: bool,
    offsets: tuple[int, int],
    wanted: tuple[bool, bool],
    added: bool,
    dtype: torch.dtype | None,
) -> Products:
    N = N.mT if transposed else N
    m, k, n = M.shape[-2], M.shape[-1], N.shape[-1]
    stack = tuple(M.shape[:-2])
    rows, cols = ((*stack, m, k), tuple(M.stride())), ((*stack, k, n), tuple(N.stride()))
    step, fresh = m * n, []
    for extent in reversed(stack):
        fresh.append(step)
        step *= extent
    dP = ((*stack, m, n), (*reversed(fresh), n, 1))  # dense, as most gradients are
    dtypes = (dtype, dtype) if dtype is not None and casts(M) and casts(N) else (M.dtype, N.dtype)
    device = str(M.device)

    def of(name: str, x: Any, y: Any, offsets: tuple[int, int], bias: bool = False) -> ProductChoice:
        return account.choice_of(name, (x[0], y[0], x[1], y[1]), dtypes, device, offsets, bias)

    def transpose(x: Any) -> Any:
        shape, strides = x
        return (*shape[:-2], shape[-1], shape[-2]), (*strides[:-2], strides[-1], strides[-2])

    found = [of(operator, rows, cols, offsets, added)]
    name = "mm" if not stack else "bmm"
    if wanted[0]:
        found.append(of(name, dP, transpose(cols), (0, offsets[1])))
    if wanted[1]:
        found.append(
            of(name, transpose(dP), rows, (0, offsets[0]))
            if transposed
            else of(name, transpose(rows), dP, (offsets[0], 0))
        )
    return found


def _product(account: Account, M: Tensor, N: Tensor, bias: Tensor | None = None, operator: str = "") -> Any:
    """The product by the choices of `account`, with gradients."""
    if torch.is_autocast_enabled(M.device.type):
        M, N = cast(M), cast(N)  # here, so that backward multiplies in autocast's dtype too
        with torch.autocast(M.device.type, enabled=False):
            return _product(account, M, N, None if bias is None else bias.to(M.dtype), operator)
    if is_watched() or M.__class__ not in PLAIN or N.__class__ not in PLAIN:
        made = matmul(M, N)
        return made if bias is None else made + bias
    wants = M.requires_grad or N.requires_grad or (bias is not None and bias.requires_grad)
    if wants and torch.is_grad_enabled():
        return _apply(M, N, bias, account, operator)
    return multiply(account, M, N, bias, operator)


def multiply(account: Account, M: Tensor, N: Tensor, bias: Tensor | None = None, operator: str = "") -> Any:
    """One product without gradients, by its cached choice and prepared call."""
    fused = bias is not None and M.is_cuda and bias.dtype == M.dtype and bias.dim() == 1
    keywords = {"bias": bias.detach()} if fused and bias is not None else NOTHING
    key = signature(M, N, keywords)
    choice = None if key is None else account.cached.get((operator, key))
    if choice is None:
        choice = account.choice(operator or ("mm" if M.dim() == 2 else "bmm"), M, N, bias is not None)
        if key is not None:
            account.cached[operator, key] = choice
    choice.calls += 1
    if not choice.routed:
        return their_matmul(M, N) if bias is None else _with_sum(their_matmul(M, N), bias)
    prepared = None if key is None else PREPARED.get(key)
    made = None if prepared is None else prepared(M, N, keywords)
    if made is None and observed(M, N):
        made, fused = matmul(M.detach(), N.detach()), False
    elif made is None:
        made = dispatch.matmul(M.detach(), N.detach(), **keywords)
    return made if bias is None or fused else _with_sum(made, bias)


def _with_sum(made: Tensor, bias: Tensor) -> Tensor:
    fits = torch.broadcast_shapes(made.shape, bias.shape) == made.shape and bias.dtype == made.dtype
    return made.add_(bias) if fits else made + bias


class Routed(torch.autograd.Function):
    """M · N + bias of matrices or stacks of them."""

    @staticmethod
    def forward(ctx: Any, M: Tensor, N: Tensor, bias: Tensor | None, account: Account, operator: str) -> Tensor:
        ctx.save_for_backward(M, N)
        ctx.account, ctx.bias = account, None if bias is None else (bias.shape, bias.dtype)
        made: Tensor = multiply(account, M, N, bias, operator)
        return made

    @staticmethod
    def backward(ctx: Any, dP: Tensor) -> Any:
        M, N = ctx.saved_tensors
        wanted = ctx.needs_input_grad
        work = partial(
            _product if torch.is_grad_enabled() else multiply, ctx.account
        )  # the former where backward is differentiated
        db = dP.sum_to_size(ctx.bias[0]).to(ctx.bias[1]) if wanted[2] else None
        if not torch.is_grad_enabled():
            dP = aligned_for_both(ctx.account, M, N, dP, wanted)
        return (*of_sums(work, M, N, dP, wanted), db, None, None)


_apply = super(torch.autograd.Function, Routed).apply


def flattens_without_copy(input: Tensor) -> bool:
    """Whether the leading axes can be merged as a view, so that one product needs no copy."""
    stack = range(input.dim() - 2)
    return all(input.stride(i) == input.stride(i + 1) * input.shape[i + 1] for i in stack)
