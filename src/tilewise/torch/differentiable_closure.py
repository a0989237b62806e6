"""`closure` with gradients: the weight of a best path depends on the edges along it (`algebra.tangents.Paths`)."""

from __future__ import annotations

from typing import Any, Literal, overload

import torch
from torch import Tensor

from tilewise.algebra.dtypes import DTYPES
from tilewise.algebra.semiring import Semiring
from tilewise.algebra.structured import Structured
from tilewise.algebra.tangents import Paths
from tilewise.arrays.torch_library import DIRECT, dtype_name, observed
from tilewise.compose.graph import closure as graph
from tilewise.compose.graph.laws import nodes_of
from tilewise.errors import DtypeError, ShapeError
from tilewise.torch.function import records_operators
from tilewise.torch.gradients import OPERATORS
from tilewise.torch.operator import needs_derivative
from tilewise.torch.semiring_names import name_of, semiring_of

Over = str | Semiring | Structured


@overload
def closure(
    W: Tensor,
    *,
    semiring: Over = ...,
    return_predecessors: Literal[False] = False,
    sources: Any = None,
) -> Tensor: ...
@overload
def closure(
    W: Tensor, *, return_predecessors: Literal[True], semiring: Over = ..., sources: Any = None
) -> tuple[Tensor, Tensor]: ...
@overload
def closure(
    W: Tensor, *, return_predecessors: bool, semiring: Over = ..., sources: Any = None
) -> Tensor | tuple[Tensor, Tensor]: ...
def closure(
    W: Tensor,
    *,
    semiring: Over = "min_plus",
    return_predecessors: bool = False,
    sources: Any = None,
) -> Any:
    """`tw.closure` of tensors with gradients, or traced; the predecessors themselves have no gradient.

    >>> import torch
    >>> edges = torch.tensor([[0, 4, 9], [4, 0, 2], [9, 2, 0.0]], requires_grad=True)
    >>> tw.closure(edges)[0, 2].backward(); edges.grad[0]
    tensor([0., 1., 0.])
    """
    name, differentiated = name_of(semiring), needs_derivative(W, W)
    if records_operators() or not differentiated:
        rows = None if sources is None else torch.as_tensor(sources)
        D, predecessors = torch.ops.tilewise.closure(W, name, rows, return_predecessors or differentiated)
    else:
        chosen = nodes_of(sources, W.shape[-1])
        D, predecessors = Closure.apply(W, name, None if chosen is None else torch.from_numpy(chosen))
    return (D, predecessors) if return_predecessors else D


@torch.library.custom_op("tilewise::closure", mutates_args=())
def closed(W: Tensor, semiring: str, sources: Tensor | None, tracks: bool) -> tuple[Tensor, Tensor]:
    made = _run_kernels(W, semiring, sources, tracks)
    return made if tracks else (made, torch.empty(0, dtype=torch.int64, device=W.device))


@closed.register_fake
def _(W: Tensor, semiring: str, sources: Tensor | None, tracks: bool) -> tuple[Tensor, Tensor]:
    if W.dim() < 2:
        raise ShapeError(f"closure takes a square matrix, rows and columns being the nodes; W is {tuple(W.shape)}")
    torch._check(W.shape[-1] == W.shape[-2], lambda: f"closure takes a square matrix; W is {tuple(W.shape)}")
    kind = DTYPES.get(dtype_name(W.dtype))
    if kind is None:
        raise DtypeError(f"W has dtype {W.dtype}, which closure does not take: convert it to float32")
    rows = W.shape[-1] if sources is None else sources.shape[0] if sources.dim() else 1
    D = W.new_empty(
        (*W.shape[:-2], rows, W.shape[-1]), dtype=getattr(torch, semiring_of(semiring).over(kind).result.name)
    )
    return D, D.new_empty(D.shape if tracks else (0,), dtype=torch.int64)


def _run_kernels(W: Tensor, semiring: str, sources: Tensor | None, tracks: bool) -> Any:
    """The closure, without torch's dispatcher."""
    with DIRECT, torch.no_grad():
        return graph.closure(W.detach(), semiring=semiring_of(semiring), return_predecessors=tracks, sources=sources)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    W, ctx.semiring = inputs[:2]
    D, predecessors = output
    ctx.mark_non_differentiable(predecessors)
    ctx.save_for_backward(W, D, predecessors)


def _backward(ctx: Any, dD: Tensor, _: Tensor | None = None) -> Any:
    W, D, predecessors = ctx.saved_tensors
    return _gradient(dD, ctx.semiring, W, D, predecessors), None, None, None


closed.register_autograd(_backward, setup_context=_save)


class Closure(torch.autograd.Function):
    """D and the predecessors of W."""

    @staticmethod
    def forward(W: Tensor, semiring: str, sources: Tensor | None) -> Any:
        if observed(W, W):
            return torch.ops.tilewise.closure(W, semiring, sources, True)
        return _run_kernels(W, semiring, sources, True)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        _save(ctx, inputs, output)
        ctx.save_for_forward(inputs[0], *output)

    @staticmethod
    def backward(ctx: Any, dD: Tensor, _: Tensor | None = None) -> Any:
        W, D, predecessors = ctx.saved_tensors
        return _gradient(dD, ctx.semiring, W, D, predecessors), None, None

    @staticmethod
    def jvp(ctx: Any, tW: Tensor, *_: Any) -> Any:
        W, D, predecessors = ctx.saved_tensors
        return _paths(ctx.semiring, W, D, predecessors).tangent(tW), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], W: Tensor, semiring: str, sources: Tensor | None) -> Any:
        assert in_dims[0] is not None
        return Closure.apply(W.movedim(in_dims[0], 0), semiring, sources), (0, 0)


def _gradient(dD: Tensor, semiring: str, W: Tensor, D: Tensor, predecessors: Tensor) -> Tensor:
    """dW from dD: the transposed tangent, its steps reversed."""
    paths = _paths(semiring, W, D, predecessors)
    flow = torch.where(paths.reached, dD, torch.zeros_like(dD))
    for factor, jump in reversed(paths.steps):
        flow = flow + torch.zeros_like(flow).scatter_add(-1, jump, factor * flow)
    made = torch.zeros(paths.shape, dtype=flow.dtype, device=flow.device)
    return made.scatter_add(-2, paths.p, flow * paths.edge)


def _paths(semiring: str, W: Tensor, D: Tensor, predecessors: Tensor) -> Paths:
    return Paths(OPERATORS, semiring_of(semiring).mul, W, D, predecessors)
