"""Products and linear layers in eager torch, each by ours or torch's kernels as an `Account` chooses.

A layer with a gradient is three products (P, dM and dN), and each is chosen for itself. Where none of them would be
ours, torch's own function runs, backward included, and nothing of ours stands in its way.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from tilewise import api
from tilewise.arrays.torch_library import is_watched
from tilewise.arrays.torch_signature import signature
from tilewise.dispatch.prepared import PREPARED
from tilewise.interop.torch.choice import Account, Choice
from tilewise.interop.torch.function import cast, follows_operators_only
from tilewise.interop.torch.gradients import of_sums
from tilewise.interop.torch.operator import matmul
from tilewise.interop.torch.routed_operator import traced_linear
from tilewise.interop.torch.shared_lines import for_both

NOTHING: dict[str, Any] = {}
theirs, their_matmul = functional.linear, torch.matmul  # held here: `accelerate()` puts others in their places
is_compiling, grad_enabled, any_autocast = (
    torch.compiler.is_compiling,
    torch.is_grad_enabled,
    torch._C._is_any_autocast_enabled,
)
PLAIN = (Tensor, torch.nn.Parameter)
Products = list[Choice]


def routed_linear(account: Account, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input · weightᵀ + bias."""
    if is_compiling():
        return (
            traced_linear(input, weight, bias, account.when)
            if _is_layer(input, weight)
            else theirs(input, weight, bias)
        )
    if stays(account, input, weight):
        return theirs(input, weight, bias)
    return decided_linear(account, input, weight, bias)


def stays(account: Account, input: Tensor, weight: Tensor) -> bool:
    """Whether a layer of this kind is known to stay with torch; counted. Asked of every layer that does, so by what is
    quickest to ask: torch's own is right however they lie."""
    left = account.layers_left.get((weight.shape, weight.dtype))
    if left is None:
        left = account.kinds_left.get(
            (
                input.shape, weight.shape, input.dtype, weight.dtype, input.requires_grad, weight.requires_grad,
                grad_enabled(), any_autocast(),
            )
        )  # fmt: skip
    if left is None:
        return False
    left.calls += 1
    return True


def decided_linear(account: Account, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The same where nothing is known of the kind yet, or a product of it is ours."""
    if not _is_layer(input, weight) or (account.keeps_layer(weight) and stays(account, input, weight)):
        return theirs(input, weight, bias)
    if follows_operators_only():
        return traced_linear(input, weight, bias, account.when)
    flat = input if input.dim() == 2 else input.flatten(0, -2) if folds(input) else None
    if flat is None and account.when == "always":
        made = matmul(input, weight.mT)
        return made if bias is None else made + bias.to(made.dtype)
    if flat is None:
        return theirs(input, weight, bias)
    found = choices(account, "linear", flat, weight, True, bias)
    if not any(choice.routed for choice in found):
        if not is_watched():
            kind = (
                input.shape, weight.shape, input.dtype, weight.dtype, input.requires_grad, weight.requires_grad,
                grad_enabled(), any_autocast(),
            )  # fmt: skip
            account.keep_left(kind, found)
        return theirs(input, weight, bias)
    made = _product(account, flat, weight.mT, bias, "linear")
    return made if flat is input else made.unflatten(0, input.shape[:-1])


def routed_matmul(account: Account, M: Tensor, N: Tensor, operator: str = "mm", bias: Tensor | None = None) -> Any:
    """M · N (+ bias) of matrices, or of stacks that have the same extents; None where torch has to do it."""
    if M.dim() > 2 and N.dim() == 2 and folds(M):
        made = routed_matmul(account, M.flatten(0, -2), N, operator, bias)
        return None if made is None else made.unflatten(0, M.shape[:-1])
    if M.dim() < 2 or M.dim() != N.dim() or M.shape[:-2] != N.shape[:-2]:
        return None
    if not any(choice.routed for choice in choices(account, operator, M, N, False, bias)):
        return None
    return _product(account, M, N, bias, operator)


def _is_layer(input: Tensor, weight: Tensor) -> bool:
    return weight.dim() == 2 and input.dim() >= 2


def choices(account: Account, operator: str, M: Tensor, N: Tensor, turned: bool, bias: Tensor | None) -> Products:
    """The choices for a product and for its gradients where they are wanted; counted where torch keeps all of them,
    because nobody sees torch's own gradients. `turned`: N is given as Nᵀ, a layer's weight."""
    dtype = torch.get_autocast_dtype(M.device.type) if torch.is_autocast_enabled(M.device.type) else None
    grads = torch.is_grad_enabled()
    wanted = (grads and M.requires_grad, grads and N.requires_grad)
    skews = (0, 0) if not M.is_cuda or is_watched() else (M.data_ptr() & 15, N.data_ptr() & 15)
    added = bias is not None
    key = (
        operator, M.shape, N.shape, M.stride(), N.stride(), M.dtype, N.dtype, M.device, skews, wanted, added, dtype,
    )  # fmt: skip
    found: Products | None = account.met.get(key)
    if found is None:
        found = account.met[key] = _of_all(account, operator, M, N, turned, skews, wanted, added, dtype)
    if not any(choice.routed for choice in found):
        for choice in found:
            choice.calls += 1
    return found


def _of_all(
    account: Account,
    operator: str,
    M: Tensor,
    N: Tensor,
    turned: bool,
    skews: tuple[int, int],
    wanted: tuple[bool, bool],
    added: bool,
    dtype: torch.dtype | None,
) -> Products:
    N = N.mT if turned else N
    m, k, n = M.shape[-2], M.shape[-1], N.shape[-1]
    stack = tuple(M.shape[:-2])
    rows, cols = ((*stack, m, k), tuple(M.stride())), ((*stack, k, n), tuple(N.stride()))
    step, fresh = m * n, []
    for extent in reversed(stack):
        fresh.append(step)
        step *= extent
    dP = ((*stack, m, n), (*reversed(fresh), n, 1))  # as most gradients arrive
    dtypes = (dtype, dtype) if dtype is not None and _narrow(M) and _narrow(N) else (M.dtype, N.dtype)
    device = str(M.device)

    def of(name: str, x: Any, y: Any, skews: tuple[int, int], bias: bool = False) -> Choice:
        return account.choice_of(name, (x[0], y[0], x[1], y[1]), dtypes, device, skews, bias)

    def over(x: Any) -> Any:
        shape, strides = x
        return (*shape[:-2], shape[-1], shape[-2]), (*strides[:-2], strides[-1], strides[-2])

    found = [of(operator, rows, cols, skews, added)]
    name = "mm" if not stack else "bmm"
    if wanted[0]:
        found.append(of(name, dP, over(cols), (0, skews[1])))
    if wanted[1]:
        found.append(of(name, over(dP), rows, (0, skews[0])) if turned else of(name, over(rows), dP, (skews[0], 0)))
    return found


def _narrow(x: Tensor) -> bool:
    return x.is_floating_point() and x.dtype is not torch.float64


def _product(account: Account, M: Tensor, N: Tensor, bias: Tensor | None = None, operator: str = "") -> Any:
    """The product by the choices of `account`, gradients too."""
    if torch.is_autocast_enabled(M.device.type):
        M, N = cast(M), cast(N)  # here, so that backward multiplies in autocast's dtype too
        with torch.autocast(M.device.type, enabled=False):
            return _product(account, M, N, None if bias is None else bias.to(M.dtype), operator)
    if is_watched() or M.__class__ not in PLAIN or N.__class__ not in PLAIN:
        made = matmul(M, N)
        return made if bias is None else made + bias
    followed = M.requires_grad or N.requires_grad or (bias is not None and bias.requires_grad)
    if followed and torch.is_grad_enabled():
        return _apply(M, N, bias, account, operator)
    return multiply(account, M, N, bias, operator)


def multiply(account: Account, M: Tensor, N: Tensor, bias: Tensor | None = None, operator: str = "") -> Any:
    """One product, no gradient wanted: one look-up, and the launch it names."""
    fused = bias is not None and M.is_cuda and bias.dtype == M.dtype and bias.dim() == 1
    keywords = {"bias": bias.detach()} if fused and bias is not None else NOTHING
    key = signature(M, N, keywords)
    choice = None if key is None else account.met.get((operator, key))
    if choice is None:
        choice = account.choice(operator or ("mm" if M.dim() == 2 else "bmm"), M, N, bias is not None)
        if key is not None:
            account.met[operator, key] = choice
    choice.calls += 1
    if not choice.routed:
        return their_matmul(M, N) if bias is None else _with_sum(their_matmul(M, N), bias)
    prepared = None if key is None else PREPARED.get(key)
    made = None if prepared is None else prepared(M, N, keywords)
    if made is None:
        made = api.matmul(M.detach(), N.detach(), **keywords)
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
        work = partial(_product if torch.is_grad_enabled() else multiply, ctx.account)  # the former to go on from here
        db = dP.sum_to_size(ctx.bias[0]).to(ctx.bias[1]) if wanted[2] else None
        if not torch.is_grad_enabled():
            dP = for_both(ctx.account, M, N, dP, wanted)
        return (*of_sums(work, M, N, dP, wanted), db, None, None)


_apply = super(torch.autograd.Function, Routed).apply


def folds(input: Tensor) -> bool:
    """Whether a stack of inputs is one tall matrix as it lies, so that one product serves it without a copy."""
    stack = range(input.dim() - 2)
    return all(input.stride(i) == input.stride(i + 1) * input.shape[i + 1] for i in stack)
