"""`tilewise::matmul` as torch knows operators: fake tensors for torch.compile, autograd, autocast, vmap.

    tilewise::matmul(Tensor M, Tensor N, str semiring, str precision, bool nonnegative=False) -> Tensor
    tilewise::matmul_arg(Tensor M, Tensor N, str semiring, str precision) -> (Tensor, Tensor)   min and max: also k
    tilewise::matmul_on_lines(Tensor M, Tensor N, str precision) -> Tensor   P's rows start on 128-byte lines

A semiring is named by a word (`words.py`). `function.py` stands before the operators wherever torch differentiates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch._guards import TracingContext
from torch.autograd import forward_ad
from torch.utils.flop_counter import register_flop_formula

from tilewise import api
from tilewise.algebra.dtypes import DTYPES, promote
from tilewise.algebra.semiring import Semiring
from tilewise.arrays.torch_library import SETTLED
from tilewise.errors import DeviceError, DtypeError, ShapeError, UsageError
from tilewise.interop.torch import function
from tilewise.interop.torch.compiled import arrange
from tilewise.interop.torch.function import backward, batched, cast, is_plain, remember, unbatched
from tilewise.interop.torch.winners import winners
from tilewise.interop.torch.words import ring_of, word_of

LINE = 64  # 2-byte elements of a 128-byte line


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
        return function.product_and_arg(M, N, word, precision)
    if not moves(M, N):
        return torch.ops.tilewise.matmul(M, N, word, precision, nonnegative)
    return function.product(M, N, word, precision, nonnegative)


def moves(M: Tensor, N: Tensor) -> bool:
    """Whether a gradient, a tangent or a transform of torch.func may be waiting for the product of these."""
    if torch.is_grad_enabled() and (M.requires_grad or N.requires_grad):
        return True
    return bool(forward_ad._current_level >= 0 or torch._C._are_functorch_transforms_active())


@contextmanager
def _by_itself(M: Tensor) -> Iterator[None]:
    """Inside the operator everything is settled: no gradient is followed, nothing is cast."""
    before, SETTLED.inside = SETTLED.inside, True
    try:
        with torch.no_grad(), torch.autocast(M.device.type, enabled=False):
            yield
    finally:
        SETTLED.inside = before


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
    shape = product_shape(M.shape, N.shape)
    arrange()
    return torch.empty(shape, dtype=_result(semiring, M.dtype, N.dtype), device=M.device)


def product_shape(m: Any, n: Any) -> tuple[Any, ...]:
    """Of P; sizes may be symbols."""
    return (*torch.broadcast_shapes(m[:-2], n[:-2]), *m[-2:-1], *(n[-1:] if len(n) > 1 else ()))


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


def _remember_on_lines(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    remember(ctx, (*inputs[:2], "plus_times", inputs[2]), output)


# for torch.compile and jit.trace, which follow operators; elsewhere function.py stands before them
product.register_autograd(lambda ctx, dP: (*backward(ctx, dP), None, None, None), setup_context=remember)
product_on_lines.register_autograd(lambda ctx, dP: (*backward(ctx, dP), None), setup_context=_remember_on_lines)
product_and_arg.register_autograd(lambda ctx, dP, _: (*backward(ctx, dP), None, None), setup_context=remember)


def _under_vmap(operator: Any) -> Any:
    def rule(info: Any, in_dims: tuple[int | None, ...], M: Tensor, N: Tensor, *how: Any) -> Any:
        M, N, vectors = batched(in_dims, M, N)
        made = operator(M, N, *how)
        if isinstance(made, tuple):
            return tuple(unbatched(x, vectors) for x in made), (0,) * len(made)
        return unbatched(made, vectors), 0

    return rule


product.register_vmap(_under_vmap(product))
product_and_arg.register_vmap(_under_vmap(product_and_arg))


def _under_autocast(device: str, operator: Any) -> Any:
    """plus_times takes autocast's dtype, as torch's own products do. min, max and logaddexp keep theirs: their results
    are not sums that rounding averages out."""
    key = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, f"Autocast{device}"))

    def kernel(M: Tensor, N: Tensor, *how: str) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(key):
            if len(how) == 1 or is_plain(how[0]):
                M, N = cast(M), cast(N)
            return operator(M, N, *how)

    return kernel


_FRAGMENT = torch.library.Library("tilewise", "FRAGMENT")
for _device in ("CPU", "CUDA"):
    _FRAGMENT.impl("matmul", _under_autocast(_device, product), f"Autocast{_device}")
    _FRAGMENT.impl("matmul_on_lines", _under_autocast(_device, product_on_lines), f"Autocast{_device}")


def _operations(m_shape: Any, n_shape: Any, *_: Any, **__: Any) -> int:
    """What torch's FlopCounterMode counts: a step is two operations, over every semiring."""
    return 2 * int(math.prod(product_shape(m_shape, n_shape))) * int(m_shape[-1])


for _operator in (torch.ops.tilewise.matmul, torch.ops.tilewise.matmul_arg, torch.ops.tilewise.matmul_on_lines):
    register_flop_formula(_operator)(_operations)


def traced_matmul(M: Any, N: Any, keywords: Any) -> Any:
    """`tw.matmul` while torch.compile traces it, in as few steps as can be; None where it is no plain call."""
    if keywords or not (isinstance(M, Tensor) and isinstance(N, Tensor)) or torch._C._are_functorch_transforms_active():
        return None
    return torch.ops.tilewise.matmul(M, N, "plus_times", "high", False)


if TracingContext.try_get() is None:  # a trace that is under way has looked at what stands there, and guards it
    api.compiling = torch.compiler.is_compiling


def check_call(M: Tensor, out: Any, device: str, kernel: str | None, tile: int | None, accumulate: bool) -> None:
    """What `tw.matmul` can say of a plain call and not of one that torch follows."""
    if out is not None or accumulate:
        raise UsageError("out= has no gradient, and M or N requires one: leave it out, or pass detached tensors")
    if kernel is not None or tile is not None:
        raise UsageError("kernel= and tile= pin one launch, which torch cannot follow: pass detached tensors")
    if device not in ("auto", M.device.type, str(M.device)):
        raise DeviceError(f"M is on {M.device} and device={device!r} was asked for: bring M and N there first")
