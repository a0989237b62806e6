"""`tilewise::matmul` as operators of torch: fake tensors for torch.compile, autograd, autocast, vmap, FLOP counts.

    tilewise::matmul(Tensor M, Tensor N, str semiring, str precision, bool nonnegative=False, bool aligned_rows=False)
        -> Tensor   aligned_rows: rows of P, a matrix, start on multiples of 128 bytes
    tilewise::matmul_arg(Tensor M, Tensor N, str semiring, str precision) -> (Tensor, Tensor)   min and max: also k

Semirings have names (`semiring_names.py`). In eager programs with gradients the Functions of `function.py` come first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Literal, overload

import torch
from torch import Tensor
from torch._guards import TracingContext
from torch.autograd import forward_ad
from torch.utils.flop_counter import register_flop_formula

from tilewise.algebra.dtypes import DTYPES
from tilewise.algebra.semiring import Semiring
from tilewise.arrays import torch_library
from tilewise.arrays.torch_library import DIRECT, dtype_name
from tilewise.dispatch import product as dispatch
from tilewise.errors import DtypeError, ShapeError
from tilewise.torch import function
from tilewise.torch.compiled import install_while_tracing
from tilewise.torch.function import backward, batched, cast, is_plain, save_operands, unbatched
from tilewise.torch.row_alignment import aligned_leading_dimension
from tilewise.torch.semiring_names import name_of, semiring_of


@overload
def matmul(
    M: Tensor, N: Tensor, *, semiring: str | Semiring = ..., precision: str = ..., return_arg: Literal[False] = False,
    nonnegative: bool = ...,
) -> Tensor: ...  # fmt: skip
@overload
def matmul(
    M: Tensor, N: Tensor, *, return_arg: Literal[True], semiring: str | Semiring = ..., precision: str = ...,
    nonnegative: bool = ...,
) -> tuple[Tensor, Tensor]: ...  # fmt: skip
@overload
def matmul(
    M: Tensor, N: Tensor, *, return_arg: bool, semiring: str | Semiring = ..., precision: str = ...,
    nonnegative: bool = ...,
) -> Tensor | tuple[Tensor, Tensor]: ...  # fmt: skip
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
    name = name_of(semiring)
    if return_arg:
        return function.product_and_arg(M, N, name, precision)
    if not needs_derivative(M, N):
        return torch.ops.tilewise.matmul(M, N, name, precision, nonnegative)
    return function.product(M, N, name, precision, nonnegative)


def needs_derivative(M: Tensor, N: Tensor) -> bool:
    """Whether a gradient, a tangent or a transform of torch.func may need the derivative of this product."""
    if torch.is_grad_enabled() and (M.requires_grad or N.requires_grad):
        return True
    return bool(forward_ad._current_level >= 0 or torch._C._are_functorch_transforms_active())


@contextmanager
def kernel_only(M: Tensor) -> Iterator[None]:
    """Inside an operator: without autograd, autocast and torch's dispatcher."""
    with DIRECT, torch.no_grad(), torch.autocast(M.device.type, enabled=False):
        yield


@torch.library.custom_op("tilewise::matmul", mutates_args=())
def product(
    M: Tensor, N: Tensor, semiring: str, precision: str, nonnegative: bool = False, aligned_rows: bool = False
) -> Tensor:
    how = {"semiring": semiring_of(semiring), "precision": precision, "nonnegative": nonnegative}
    P = empty_product(M, N, semiring, True) if aligned_rows else None
    with kernel_only(M):
        return dispatch.matmul(M.detach(), N.detach(), out=P, **how)


@product.register_fake
def _(
    M: Tensor, N: Tensor, semiring: str, precision: str, nonnegative: bool = False, aligned_rows: bool = False
) -> Tensor:
    return empty_product(M, N, semiring, aligned_rows)


@torch.library.custom_op("tilewise::matmul_arg", mutates_args=())
def product_and_arg(M: Tensor, N: Tensor, semiring: str, precision: str) -> tuple[Tensor, Tensor]:
    how = {"semiring": semiring_of(semiring), "precision": precision}
    with kernel_only(M):
        return dispatch.matmul(M.detach(), N.detach(), return_arg=True, **how)


@product_and_arg.register_fake
def _(M: Tensor, N: Tensor, semiring: str, precision: str) -> tuple[Tensor, Tensor]:
    P = empty_product(M, N, semiring)
    return P, torch.empty_like(P, dtype=torch.int64)


def empty_product(M: Tensor, N: Tensor, semiring: str, aligned_rows: bool = False) -> Tensor:
    """An empty tensor of the product's shape and dtype. Sizes may be symbolic: no branch depends on them.
    `aligned_rows`: the leading dimension is a multiple of 64 elements."""
    for name, tensor in (("M", M), ("N", N)):
        if tensor.dim() == 0:
            raise ShapeError(f"{name} is a single number: matmul takes vectors, matrices and stacks of them")
    rows = N.shape[0] if N.dim() == 1 else N.shape[-2]
    torch._check(M.shape[-1] == rows, lambda: f"the {M.shape[-1]} columns of M do not meet the {rows} rows of N")
    shape = product_shape(M.shape, N.shape)
    install_while_tracing()
    dtype = result_dtype(semiring, M.dtype, N.dtype)
    if aligned_rows:
        strides = aligned_leading_dimension(shape[1], 2), 1
        return torch.empty_strided(shape, strides, dtype=dtype, device=M.device)
    return torch.empty(shape, dtype=dtype, device=M.device)


def product_shape(m: Any, n: Any) -> tuple[Any, ...]:
    """The shape of P; sizes may be symbolic."""
    return (*torch.broadcast_shapes(m[:-2], n[:-2]), *m[-2:-1], *(n[-1:] if len(n) > 1 else ()))


@lru_cache(maxsize=1024)
def result_dtype(semiring: str, m: torch.dtype, n: torch.dtype) -> torch.dtype:
    kinds = []
    for name, dtype in (("M", m), ("N", n)):
        known = DTYPES.get(dtype_name(dtype))
        if known is None:
            raise DtypeError(f"{name} has dtype {dtype}, which tilewise does not multiply")
        kinds.append(known)
    result: torch.dtype = getattr(torch, semiring_of(semiring).over(torch_library.TORCH.promote(*kinds)).result.name)
    return result


# for torch.compile and jit.trace, which record operators; otherwise function.py differentiates
product.register_autograd(lambda ctx, dP: (*backward(ctx, dP), *[None] * 4), setup_context=save_operands)
product_and_arg.register_autograd(lambda ctx, dP, _: (*backward(ctx, dP), None, None), setup_context=save_operands)


def _vmap_rule(operator: Any) -> Any:
    def rule(info: Any, in_dims: tuple[int | None, ...], M: Tensor, N: Tensor, *how: Any) -> Any:
        M, N, vectors = batched(in_dims, M, N)
        return unbatched(operator(M, N, *how[:3]), vectors)

    return rule


product.register_vmap(_vmap_rule(product))
product_and_arg.register_vmap(_vmap_rule(product_and_arg))

_LIBRARY = torch.library.Library("tilewise", "FRAGMENT")


def register_autocast(name: str, operator: Any, casts: Any) -> None:
    """Register an operator of M, N and strings with autocast: M and N are cast if `casts(*strings)`, as by torch's own
    products."""
    for device in ("CPU", "CUDA"):
        key = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, f"Autocast{device}"))

        def kernel(M: Tensor, N: Tensor, *how: Any, key: Any = key) -> Any:
            with torch._C._ExcludeDispatchKeyGuard(key):
                if casts(*how):
                    M, N = cast(M), cast(N)
                return operator(M, N, *how)

        _LIBRARY.impl(name, kernel, f"Autocast{device}")


# min, max and logaddexp keep their dtype: they are no sums, in which rounding errors average out
register_autocast("matmul", product, lambda semiring, *_: is_plain(semiring))


def operations(m_shape: Any, n_shape: Any, *_: Any, **__: Any) -> int:
    """Operations for torch's FlopCounterMode: two for a multiply-add, over every semiring."""
    return 2 * int(math.prod(product_shape(m_shape, n_shape))) * int(m_shape[-1])


for _operator in (torch.ops.tilewise.matmul, torch.ops.tilewise.matmul_arg):
    register_flop_formula(_operator)(operations)


def compiled_matmul(M: Any, N: Any, keywords: Any) -> Any:
    """`tw.matmul` while torch.compile traces it, in as few operations as possible; None if it has keywords."""
    if keywords or not (isinstance(M, Tensor) and isinstance(N, Tensor)) or torch._C._are_functorch_transforms_active():
        return None
    return torch.ops.tilewise.matmul(M, N, "plus_times", "high", False)


if TracingContext.try_get() is None:  # an active trace would have guards on the old value
    torch_library.compiling = torch.compiler.is_compiling
