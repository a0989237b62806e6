"""The product as an `autograd.Function`: gradients, forward mode and vmap, so torch.func composes over it.

torch's custom operators have no forward mode and no torch.func; a Function with `setup_context`, `jvp` and `vmap` has
both, and runs the operators of `operator.py`. torch.compile and jit.trace record operators, but not such a Function:
there the operator itself is called, with the same formulas.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from tilewise.algebra.builtin import is_plus_times
from tilewise.algebra.tangents import tangent
from tilewise.arrays.torch_library import DIRECT, observed
from tilewise.dispatch import product as dispatch
from tilewise.torch.gradients import OPERATORS, check_differentiable, gradients
from tilewise.torch.semiring_names import is_selective, semiring_of
from tilewise.torch.transform_levels import apply


def product(
    M: Tensor, N: Tensor, semiring: str, precision: str, nonnegative: bool = False, aligned_rows: bool = False
) -> Any:
    """The product as an operator while torch records a graph, else as a differentiable Function."""
    if records_operators():
        if is_selective(semiring) and torch.is_grad_enabled() and (M.requires_grad or N.requires_grad):
            return torch.ops.tilewise.matmul_arg(M, N, semiring, precision)[0]
        return torch.ops.tilewise.matmul(M, N, semiring, precision, nonnegative, aligned_rows)
    if is_selective(semiring):
        return apply(DifferentiableProduct, M, N, semiring, precision, False, False)[0]
    if is_plain(semiring) and torch.is_autocast_enabled(M.device.type):
        M, N = cast(M), cast(N)  # here, so that backward multiplies in autocast's dtype too
    return apply(DifferentiableProduct, M, N, semiring, precision, nonnegative, aligned_rows)


def product_and_arg(M: Tensor, N: Tensor, semiring: str, precision: str) -> Any:
    """The product over min or max with the k that won each cell."""
    if records_operators():
        return torch.ops.tilewise.matmul_arg(M, N, semiring, precision)
    return apply(DifferentiableProduct, M, N, semiring, precision, False, False)


def records_operators() -> bool:
    """Whether torch records a graph, which cannot contain an autograd.Function. torch.func inside torch.compile needs
    the Function nevertheless: the graph breaks there, and the product runs eagerly."""
    if torch.compiler.is_compiling():
        return not torch._C._are_functorch_transforms_active()
    return bool(torch.jit.is_tracing())


def _run_kernel(M: Tensor, N: Tensor, semiring: str, precision: str, **how: Any) -> Any:
    """The product without torch's dispatcher, if torch records nothing. Defaults are left out: native code signs few
    keywords."""
    given: dict[str, Any] = {name: True for name, value in how.items() if value}
    if semiring != "plus_times":
        given["semiring"] = semiring_of(semiring)
    if precision != "high":
        given["precision"] = precision
    with DIRECT:
        return dispatch.matmul(M.detach(), N.detach(), **given)


def cast(tensor: Tensor) -> Tensor:
    """The tensor in autocast's dtype, as torch's own products cast; doubles and integers stay."""
    return tensor.to(torch.get_autocast_dtype(tensor.device.type)) if casts(tensor) else tensor


def casts(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and tensor.dtype is not torch.float64


def is_plain(semiring: str) -> bool:
    return is_plus_times(semiring_of(semiring))


class DifferentiableProduct(torch.autograd.Function):
    """The product over any semiring; over min and max the result is P and the winning k, which has no gradient."""

    @staticmethod
    def forward(M: Tensor, N: Tensor, semiring: str, precision: str, nonnegative: bool, aligned_rows: bool) -> Any:
        if is_selective(semiring):
            if M.device.type == "cpu" and not observed(M, N):
                return _run_kernel(M, N, semiring, precision, return_arg=True)
            return torch.ops.tilewise.matmul_arg(M, N, semiring, precision)
        if aligned_rows or observed(M, N):
            return torch.ops.tilewise.matmul(M, N, semiring, precision, nonnegative, aligned_rows)
        return _run_kernel(M, N, semiring, precision, nonnegative=nonnegative)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_forward(*save_operands(ctx, inputs, output))

    @staticmethod
    def backward(ctx: Any, dP: Tensor, *_: Any) -> Any:
        return (*backward(ctx, dP), None, None, None, None)

    @staticmethod
    def jvp(ctx: Any, tM: Tensor | None, tN: Tensor | None, *_: Any) -> Any:
        M, N, P, arg = ctx.saved_tensors
        rows, cols, lifted = as_matrices(M, N)
        tM, tN = (None if t is None else t.reshape(like.shape) for t, like in ((tM, rows), (tN, cols)))
        P, won = (None if x is None else lifted(x) for x in (P, arg))
        ring = semiring_of(ctx.semiring)
        check_differentiable(ring, "pass tensors without tangents")
        multiply = partial(product, semiring="plus_times", precision=ctx.precision)
        made = tangent(OPERATORS, ring, multiply, rows, cols, P, won, tM, tN)
        made = _without_axes(made, M.dim() == 1, N.dim() == 1)
        return made if arg is None else (made, None)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], M: Tensor, N: Tensor, *how: Any) -> Any:
        M, N, vectors = batched(in_dims, M, N)
        return unbatched(apply(DifferentiableProduct, M, N, *how[:-1], False), vectors)


def save_operands(ctx: Any, inputs: tuple[Any, ...], output: Any) -> tuple[Tensor | None, ...]:
    """Save what derivatives need: M, N, the winning k, or P if the weights of terms depend on it (logaddexp)."""
    M, N, ctx.semiring, ctx.precision = inputs[:4]
    P, arg = output if isinstance(output, tuple) else (output, None)
    if arg is not None:
        ctx.mark_non_differentiable(arg)
    saved = M, N, None if is_plain(ctx.semiring) or arg is not None else P, arg
    ctx.save_for_backward(*saved)
    return saved


def backward(ctx: Any, dP: Tensor) -> tuple[Tensor | None, Tensor | None]:
    M, N, P, arg = ctx.saved_tensors
    ring = semiring_of(ctx.semiring)
    if arg is None and ring.selective:
        arg = torch.ops.tilewise.matmul_arg(M.detach(), N.detach(), ctx.semiring, ctx.precision)[1]
    rows, cols, lifted = as_matrices(M.to(dP.dtype), N.to(dP.dtype))
    P, won = lifted(dP if P is None else P), None if arg is None else lifted(arg)
    wanted = list(ctx.needs_input_grad[:2])
    dM, dN = gradients(ring, ctx.precision, product, rows, cols, P, lifted(dP), won, wanted)
    return _reduced(M, dM, rows), _reduced(N, dN, cols)


def as_matrices(M: Tensor, N: Tensor) -> tuple[Tensor, Tensor, Any]:
    """Vectors as a row and a column; and the function that gives P the same axes."""
    vector_m, vector_n = M.dim() == 1, N.dim() == 1

    def lifted(x: Tensor) -> Tensor:
        x = x[..., None] if vector_n else x
        return x[..., None, :] if vector_m else x

    return M[None] if vector_m else M, N[:, None] if vector_n else N, lifted


def _without_axes(x: Tensor, vector_m: bool, vector_n: bool) -> Tensor:
    """P without the axes that vectors were given."""
    x = x.squeeze(-1) if vector_n else x
    return x.squeeze(-1 if vector_n else -2) if vector_m else x


def _reduced(operand: Tensor, gradient: Tensor | None, matrix: Tensor) -> Tensor | None:
    """A gradient in the operand's shape and dtype, summed over broadcast axes."""
    if gradient is None:
        return None
    return gradient.sum_to_size(matrix.shape).reshape(operand.shape).to(operand.dtype)


def batched(in_dims: tuple[int | None, ...], M: Tensor, N: Tensor) -> tuple[Tensor, Tensor, list[bool]]:
    """The operands under vmap: the batch is the first axis of the stack; and which of them were vectors."""
    vectors, operands = [], []
    for tensor, axis, column in ((M, in_dims[0], False), (N, in_dims[1], True)):
        tensor = tensor[None] if axis is None else tensor.movedim(axis, 0)
        vectors.append(tensor.dim() == 2)
        operands.append((tensor[..., None] if column else tensor[..., None, :]) if vectors[-1] else tensor)
    depth = max(x.dim() for x in operands)
    M, N = (x.reshape(x.shape[0], *[1] * (depth - x.dim()), *x.shape[1:]) for x in operands)
    return M, N, vectors


def unbatched(made: Any, vectors: list[bool]) -> Any:
    """The result of a batch and its batch axes, in vmap's form."""
    if isinstance(made, tuple):
        return tuple(_without_axes(x, *vectors) for x in made), (0,) * len(made)
    return _without_axes(made, *vectors), 0
