"""`tilewise::matmul` as torch knows operators: fake tensors for torch.compile, autograd, autocast, vmap.

    tilewise::matmul(Tensor M, Tensor N, str semiring, str precision, bool nonnegative=False) -> Tensor
    tilewise::matmul_arg(Tensor M, Tensor N, str semiring, str precision) -> (Tensor, Tensor)   min and max: also k
    tilewise::matmul_on_lines(Tensor M, Tensor N, str precision) -> Tensor   P's rows start on 128-byte lines

A semiring is named by a word; one's own is kept here under a word of its own when it is first used.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from tilewise import api
from tilewise.algebra.builtin import SEMIRINGS, find_semiring
from tilewise.algebra.dtypes import DTYPES, promote
from tilewise.algebra.semiring import Semiring
from tilewise.errors import DeviceError, DtypeError, ShapeError, UsageError
from tilewise.interop.torch.gradients import gradients
from tilewise.interop.torch.winners import winners

LINE = 64  # 2-byte elements of a 128-byte line
OWN: dict[str, Semiring] = {}  # people's own semirings, by the word the operator takes


def matmul(
    M: Tensor,
    N: Tensor,
    *,
    semiring: str | Semiring = "plus_times",
    precision: str = "high",
    return_arg: bool = False,
    nonnegative: bool = False,
) -> Any:
    """`tw.matmul` of tensors, with gradients, inside torch.compile too. The winning k itself has no gradient.

    >>> import torch
    >>> M = torch.tensor([[1.0, 5.0]], requires_grad=True)
    >>> P = tw.torch.matmul(M, torch.tensor([[9.0], [1.0]]), semiring="min_plus")
    >>> P.backward(); M.grad
    tensor([[0., 1.]])
    """
    word = word_of(semiring)
    if return_arg:
        return torch.ops.tilewise.matmul_arg(M, N, word, precision)
    if picks(word) and torch.is_grad_enabled() and (M.requires_grad or N.requires_grad):
        return torch.ops.tilewise.matmul_arg(M, N, word, precision)[0]
    return torch.ops.tilewise.matmul(M, N, word, precision, nonnegative)


def word_of(semiring: str | Semiring) -> str:
    """What the operator calls this semiring."""
    return semiring if isinstance(semiring, str) else _word_of_own(semiring)


@torch.compiler.assume_constant_result
def _word_of_own(semiring: Semiring) -> str:
    ring = find_semiring(semiring)
    if SEMIRINGS.get(ring.name) == ring:
        return ring.name
    word = next((word for word, known in OWN.items() if known == ring), f"{ring.name}#{len(OWN)}")
    OWN[word] = ring
    return word


@torch.compiler.assume_constant_result
def picks(word: str) -> bool:
    return ring_of(word).selective


def ring_of(word: str) -> Semiring:
    return OWN[word] if word in OWN else find_semiring(word)


@contextmanager
def _by_itself(M: Tensor) -> Iterator[None]:
    """Inside the operator everything is settled: no gradient is followed, nothing is cast."""
    with torch.no_grad(), torch.autocast(M.device.type, enabled=False):
        yield


@torch.library.custom_op("tilewise::matmul", mutates_args=())
def product(M: Tensor, N: Tensor, semiring: str, precision: str, nonnegative: bool = False) -> Tensor:
    ring = ring_of(semiring)
    with _by_itself(M):
        made: Tensor = api.matmul(M.detach(), N.detach(), semiring=ring, precision=precision, nonnegative=nonnegative)
    return made


@product.register_fake
def _(M: Tensor, N: Tensor, semiring: str, precision: str, nonnegative: bool = False) -> Tensor:
    return _like_the_product(M, N, semiring)


@torch.library.custom_op("tilewise::matmul_arg", mutates_args=())
def product_and_arg(M: Tensor, N: Tensor, semiring: str, precision: str) -> tuple[Tensor, Tensor]:
    ring = ring_of(semiring)
    M, N = M.detach(), N.detach()
    with _by_itself(M):
        try:
            made, arg = api.matmul(M, N, semiring=ring, precision=precision, return_arg=True)
        except DeviceError:
            if not M.is_cuda:
                raise
            made = api.matmul(M, N, semiring=ring, precision=precision)
            arg = winners(ring, M, N, made)
    return made, arg


@product_and_arg.register_fake
def _(M: Tensor, N: Tensor, semiring: str, precision: str) -> tuple[Tensor, Tensor]:
    made = _like_the_product(M, N, semiring)
    return made, torch.empty_like(made, dtype=torch.int64)


@torch.library.custom_op("tilewise::matmul_on_lines", mutates_args=())
def product_on_lines(M: Tensor, N: Tensor, precision: str) -> Tensor:
    made = _room_on_lines(M, N)
    with _by_itself(M):
        api.matmul(M.detach(), N.detach(), precision=precision, out=made)
    return made


@product_on_lines.register_fake
def _(M: Tensor, N: Tensor, precision: str) -> Tensor:
    return _room_on_lines(M, N)


def _room_on_lines(M: Tensor, N: Tensor) -> Tensor:
    """Memory for a product of two matrices, a few cells longer in each row than the product."""
    made = _like_the_product(M, N, "plus_times")
    lead = -(-N.shape[1] // LINE) * LINE
    return torch.empty_strided(made.shape, (lead, 1), dtype=made.dtype, device=made.device)


def _like_the_product(M: Tensor, N: Tensor, semiring: str) -> Tensor:
    """A tensor as the product will be. Sizes may be symbols, so nothing here asks for a number."""
    for name, tensor in (("M", M), ("N", N)):
        if tensor.dim() == 0:
            raise ShapeError(f"{name} is a single number: matmul takes vectors, matrices and stacks of them")
    rows = N.shape[0] if N.dim() == 1 else N.shape[-2]
    torch._check(M.shape[-1] == rows, lambda: f"the {M.shape[-1]} columns of M do not meet the {rows} rows of N")
    stack = torch.broadcast_shapes(M.shape[:-2], N.shape[:-2])
    shape = (*stack, *M.shape[-2:-1], *(N.shape[-1:] if N.dim() > 1 else ()))
    return torch.empty(shape, dtype=_result(semiring, M.dtype, N.dtype), device=M.device)


@lru_cache(maxsize=1024)
def _result(semiring: str, m: torch.dtype, n: torch.dtype) -> torch.dtype:
    kinds = []
    for name, dtype in (("M", m), ("N", n)):
        known = DTYPES.get(str(dtype).removeprefix("torch."))
        if known is None:
            raise DtypeError(f"{name} has dtype {dtype}, which tilewise does not multiply")
        kinds.append(known)
    made: torch.dtype = getattr(torch, ring_of(semiring).over(promote(*kinds)).result.name)
    return made


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    M, N, ctx.semiring, ctx.precision = inputs[:4]
    P, arg = output if isinstance(output, tuple) else (output, None)
    if arg is not None:
        ctx.mark_non_differentiable(arg)
    shared_out = not _is_plain(ctx.semiring) and arg is None  # soft weights are shares of P
    ctx.save_for_backward(M, N, P if shared_out else None, arg)


def _is_plain(word: str) -> bool:
    ring, plain = ring_of(word), SEMIRINGS["plus_times"]
    return (ring.add, ring.mul) == (plain.add, plain.mul)


def _backward(ctx: Any, dP: Tensor, d_arg: Tensor | None = None) -> tuple[Tensor | None, Tensor | None, None, None]:
    M, N, P, arg = ctx.saved_tensors
    ring = ring_of(ctx.semiring)
    wanted = list(ctx.needs_input_grad[:2])
    if arg is None and ring.selective:
        arg = torch.ops.tilewise.matmul_arg(M.detach(), N.detach(), ctx.semiring, ctx.precision)[1]
    vector_m, vector_n = M.dim() == 1, N.dim() == 1
    rows = M[None] if vector_m else M
    cols = N[:, None] if vector_n else N

    def lifted(x: Tensor) -> Tensor:
        x = x[..., None] if vector_n else x
        return x[..., None, :] if vector_m else x

    held, won = lifted(dP if P is None else P), None if arg is None else lifted(arg)
    dM, dN = gradients(ring, ctx.precision, rows, cols, held, lifted(dP), won, wanted)
    return _as(M, dM, rows), _as(N, dN, cols), None, None


def _as(operand: Tensor, gradient: Tensor | None, matrix: Tensor) -> Tensor | None:
    """A gradient in the operand's own shape and dtype: summed over the axes it was broadcast along."""
    if gradient is None:
        return None
    return gradient.sum_to_size(matrix.shape).reshape(operand.shape).to(operand.dtype)


def _remember_on_lines(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    _remember(ctx, (*inputs[:2], "plus_times", inputs[2]), output)


product.register_autograd(lambda ctx, dP: (*_backward(ctx, dP), None), setup_context=_remember)
product_on_lines.register_autograd(lambda ctx, dP: _backward(ctx, dP)[:3], setup_context=_remember_on_lines)
product_and_arg.register_autograd(_backward, setup_context=_remember)


def _batched(operator: Any) -> Any:
    """vmap: the batch becomes the stack's first axis."""

    def rule(info: Any, in_dims: tuple[int | None, ...], M: Tensor, N: Tensor, *how: Any) -> Any:
        vectors = []
        operands = []
        for tensor, axis, column in ((M, in_dims[0], False), (N, in_dims[1], True)):
            tensor = tensor[None] if axis is None else tensor.movedim(axis, 0)
            vectors.append(tensor.dim() == 2)
            operands.append((tensor[..., None] if column else tensor[..., None, :]) if vectors[-1] else tensor)
        depth = max(x.dim() for x in operands)
        M, N = (x.reshape(x.shape[0], *[1] * (depth - x.dim()), *x.shape[1:]) for x in operands)
        made = operator(M, N, *how)
        results = made if isinstance(made, tuple) else (made,)
        if vectors[1]:
            results = tuple(x.squeeze(-1) for x in results)
        if vectors[0]:
            results = tuple(x.squeeze(-1 if vectors[1] else -2) for x in results)
        return (results, (0,) * len(results)) if isinstance(made, tuple) else (results[0], 0)

    return rule


product.register_vmap(_batched(product))
product_and_arg.register_vmap(_batched(product_and_arg))


def _cast(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    narrow = tensor.is_floating_point() and tensor.dtype is not torch.float64
    return tensor.to(dtype) if narrow else tensor


def _under_autocast(device: str, operator: Any) -> Any:
    """plus_times takes autocast's dtype, as torch's own products do. min, max and logaddexp keep theirs: their results
    are not sums that rounding averages out."""
    key = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, f"Autocast{device}"))

    def kernel(M: Tensor, N: Tensor, *how: str) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(key):
            if len(how) == 1 or _is_plain(how[0]):
                dtype = torch.get_autocast_dtype(device.lower())
                M, N = _cast(M, dtype), _cast(N, dtype)
            return operator(M, N, *how)

    return kernel


_FRAGMENT = torch.library.Library("tilewise", "FRAGMENT")
for _device in ("CPU", "CUDA"):
    _FRAGMENT.impl("matmul", _under_autocast(_device, product), f"Autocast{_device}")
    _FRAGMENT.impl("matmul_on_lines", _under_autocast(_device, product_on_lines), f"Autocast{_device}")


def check_call(M: Tensor, out: Any, device: str, kernel: str | None, tile: int | None, accumulate: bool) -> None:
    """What `tw.matmul` can say of a plain call and not of one that torch follows."""
    if out is not None or accumulate:
        raise UsageError("out= has no gradient, and M or N requires one: leave it out, or pass detached tensors")
    if kernel is not None or tile is not None:
        raise UsageError("kernel= and tile= pin one launch, which torch cannot follow: pass detached tensors")
    if device not in ("auto", M.device.type, str(M.device)):
        raise DeviceError(f"M is on {M.device} and device={device!r} was asked for: bring M and N there first")
