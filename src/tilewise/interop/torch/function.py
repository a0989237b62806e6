"""The product as an `autograd.Function`: gradients, forward mode and vmap, so torch.func composes over it.

The operators of `operator.py` are what this runs. torch gives operators written in Python no forward mode and no
torch.func; a Function with `setup_context`, `jvp` and `vmap` has both. Under torch.compile and jit.trace, which follow
operators but no such Function, `operator.py` calls the operator itself, with the same formulas behind it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._functorch.utils import unwrap_dead_wrappers

from tilewise import api
from tilewise.algebra.builtin import SEMIRINGS
from tilewise.arrays.torch_library import SETTLED, observed
from tilewise.interop.torch.gradients import gradients
from tilewise.interop.torch.tangents import tangent
from tilewise.interop.torch.words import picks, ring_of


def product(M: Tensor, N: Tensor, word: str, precision: str, nonnegative: bool = False, on_lines: bool = False) -> Any:
    """The product, followed by whatever of torch is watching."""
    if follows_operators_only():
        if picks(word) and torch.is_grad_enabled() and (M.requires_grad or N.requires_grad):
            return torch.ops.tilewise.matmul_arg(M, N, word, precision)[0]
        return _by_operator(M, N, word, precision, nonnegative, on_lines)
    if picks(word):
        return applied(Picked, M, N, word, precision)[0]
    if is_plain(word) and torch.is_autocast_enabled(M.device.type):
        M, N = cast(M), cast(N)  # here, so that backward multiplies in autocast's dtype too
    return applied(Summed, M, N, word, precision, nonnegative, on_lines)


def product_and_arg(M: Tensor, N: Tensor, word: str, precision: str) -> Any:
    """The product over min or max with the k that won each cell."""
    if follows_operators_only():
        return torch.ops.tilewise.matmul_arg(M, N, word, precision)
    return applied(Picked, M, N, word, precision)


def applied(kind: Any, *args: Any) -> Any:
    """`kind.apply` without a look at the signature of forward at every call, which is most of what it costs."""
    if torch._C._are_functorch_transforms_active():
        return kind.apply(*args)
    return super(torch.autograd.Function, kind).apply(*unwrap_dead_wrappers(args))


def follows_operators_only() -> bool:
    """Whether torch is writing a graph down in which an autograd.Function has no place. torch.func inside torch.compile
    needs the Function all the same: there the graph breaks, and the product runs as ever."""
    if torch.compiler.is_compiling():
        return not torch._C._are_functorch_transforms_active()
    return bool(torch.jit.is_tracing())


def _by_operator(M: Tensor, N: Tensor, word: str, precision: str, nonnegative: bool, on_lines: bool) -> Any:
    if on_lines:
        return torch.ops.tilewise.matmul_on_lines(M, N, precision)
    return torch.ops.tilewise.matmul(M, N, word, precision, nonnegative)


def _forward(M: Tensor, N: Tensor, word: str, precision: str, nonnegative: bool, on_lines: bool) -> Any:
    if on_lines or observed(M, N):
        return _by_operator(M, N, word, precision, nonnegative, on_lines)
    return alone(M, N, word, precision, nonnegative=nonnegative)


def alone(M: Tensor, N: Tensor, word: str, precision: str, **how: Any) -> Any:
    """The product where nothing of torch is watching: what the operator would do, without torch's way to it."""
    before, SETTLED.inside = SETTLED.inside, True
    try:
        return api.matmul(M.detach(), N.detach(), semiring=ring_of(word), precision=precision, **how)
    finally:
        SETTLED.inside = before


def cast(tensor: Tensor) -> Tensor:
    """In autocast's dtype, as torch's own products have it: doubles and integers stay."""
    narrow = tensor.is_floating_point() and tensor.dtype is not torch.float64
    return tensor.to(torch.get_autocast_dtype(tensor.device.type)) if narrow else tensor


def is_plain(word: str) -> bool:
    ring, plain = ring_of(word), SEMIRINGS["plus_times"]
    return (ring.add, ring.mul) == (plain.add, plain.mul)


class Summed(torch.autograd.Function):
    """Over +, logaddexp and whatever else picks no winner."""

    @staticmethod
    def forward(M: Tensor, N: Tensor, word: str, precision: str, nonnegative: bool, on_lines: bool) -> Any:
        return _forward(M, N, word, precision, nonnegative, on_lines)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        remember(ctx, inputs, output)
        ctx.save_for_forward(inputs[0], inputs[1], None if is_plain(inputs[2]) else output, None)

    @staticmethod
    def backward(ctx: Any, dP: Tensor) -> Any:
        return (*backward(ctx, dP), None, None, None, None)

    @staticmethod
    def jvp(ctx: Any, tM: Tensor | None, tN: Tensor | None, *_: Any) -> Any:
        return _jvp(ctx, tM, tN)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], M: Tensor, N: Tensor, *how: Any) -> Any:
        M, N, vectors = batched(in_dims, M, N)
        return unbatched(Summed.apply(M, N, *how[:-1], False), vectors), 0


class Picked(torch.autograd.Function):
    """Over min and max: what is differentiated is what the winning k made."""

    @staticmethod
    def forward(M: Tensor, N: Tensor, word: str, precision: str) -> Any:
        if M.device.type == "cpu" and not observed(M, N):
            return alone(M, N, word, precision, return_arg=True)
        return torch.ops.tilewise.matmul_arg(M, N, word, precision)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        remember(ctx, inputs, output)
        ctx.save_for_forward(inputs[0], inputs[1], None, output[1])

    @staticmethod
    def backward(ctx: Any, dP: Tensor, d_arg: Tensor | None = None) -> Any:
        return (*backward(ctx, dP), None, None)

    @staticmethod
    def jvp(ctx: Any, tM: Tensor | None, tN: Tensor | None, *_: Any) -> Any:
        return _jvp(ctx, tM, tN), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], M: Tensor, N: Tensor, *how: Any) -> Any:
        M, N, vectors = batched(in_dims, M, N)
        return tuple(unbatched(x, vectors) for x in Picked.apply(M, N, *how)), (0, 0)


def remember(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    M, N, ctx.semiring, ctx.precision = inputs[:4]
    P, arg = output if isinstance(output, tuple) else (output, None)
    if arg is not None:
        ctx.mark_non_differentiable(arg)
    shared_out = not is_plain(ctx.semiring) and arg is None  # soft weights are shares of P
    ctx.save_for_backward(M, N, P if shared_out else None, arg)


def backward(ctx: Any, dP: Tensor) -> tuple[Tensor | None, Tensor | None]:
    M, N, P, arg = ctx.saved_tensors
    ring = ring_of(ctx.semiring)
    if arg is None and ring.selective:
        arg = torch.ops.tilewise.matmul_arg(M.detach(), N.detach(), ctx.semiring, ctx.precision)[1]
    rows, cols, lifted = as_matrices(M, N)
    held, won = lifted(dP if P is None else P), None if arg is None else lifted(arg)
    wanted = list(ctx.needs_input_grad[:2])
    dM, dN = gradients(ring, ctx.precision, product, rows, cols, held, lifted(dP), won, wanted)
    return _as(M, dM, rows), _as(N, dN, cols)


def _jvp(ctx: Any, tM: Tensor | None, tN: Tensor | None) -> Tensor:
    M, N, P, arg = ctx.saved_tensors
    rows, cols, lifted = as_matrices(M, N)
    held = None if P is None else lifted(P)
    tM, tN = (None if t is None else t.reshape(like.shape) for t, like in ((tM, rows), (tN, cols)))
    won = None if arg is None else lifted(arg)
    made = tangent(ring_of(ctx.semiring), ctx.precision, product, rows, cols, held, tM, tN, won)
    made = made.squeeze(-1) if N.dim() == 1 else made
    return made.squeeze(-1 if N.dim() == 1 else -2) if M.dim() == 1 else made


def as_matrices(M: Tensor, N: Tensor) -> tuple[Tensor, Tensor, Any]:
    """Vectors as a row and a column; and what does the same to P."""
    vector_m, vector_n = M.dim() == 1, N.dim() == 1

    def lifted(x: Tensor) -> Tensor:
        x = x[..., None] if vector_n else x
        return x[..., None, :] if vector_m else x

    return M[None] if vector_m else M, N[:, None] if vector_n else N, lifted


def _as(operand: Tensor, gradient: Tensor | None, matrix: Tensor) -> Tensor | None:
    """A gradient in the operand's own shape and dtype: summed over the axes it was broadcast along."""
    if gradient is None:
        return None
    return gradient.sum_to_size(matrix.shape).reshape(operand.shape).to(operand.dtype)


def batched(in_dims: tuple[int | None, ...], M: Tensor, N: Tensor) -> tuple[Tensor, Tensor, list[bool]]:
    """vmap: the batch becomes the stack's first axis. Also which of the two were vectors."""
    vectors, operands = [], []
    for tensor, axis, column in ((M, in_dims[0], False), (N, in_dims[1], True)):
        tensor = tensor[None] if axis is None else tensor.movedim(axis, 0)
        vectors.append(tensor.dim() == 2)
        operands.append((tensor[..., None] if column else tensor[..., None, :]) if vectors[-1] else tensor)
    depth = max(x.dim() for x in operands)
    M, N = (x.reshape(x.shape[0], *[1] * (depth - x.dim()), *x.shape[1:]) for x in operands)
    return M, N, vectors


def unbatched(made: Tensor, vectors: list[bool]) -> Tensor:
    """The axes that vectors were given, taken away again."""
    made = made.squeeze(-1) if vectors[1] else made
    return made.squeeze(-1 if vectors[1] else -2) if vectors[0] else made
