"""`closure` with gradients: what a best path weighs moves with the edges along it.

D[i, j] = mul(D[i, p], W[p, j]), p being the node before j on the path from i. So a gradient walks every path backwards
from its end, and a tangent forwards from its start, all paths at once, one edge a round.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewise.algebra.semiring import Semiring
from tilewise.arrays.torch_library import SETTLED
from tilewise.errors import UsageError
from tilewise.graph import closure as graph
from tilewise.interop.torch.slopes import slopes
from tilewise.interop.torch.words import ring_of, word_of


def closure(W: Tensor, *, semiring: str | Semiring = "min_plus", return_predecessors: bool = False) -> Any:
    """`tw.closure` of tensors that torch follows; the predecessors themselves have no gradient.

    >>> import torch
    >>> roads = torch.tensor([[0, 4, 9], [4, 0, 2], [9, 2, 0.0]], requires_grad=True)
    >>> tw.closure(roads)[0, 2].backward(); roads.grad[0]
    tensor([0., 1., 0.])
    """
    word = word_of(semiring)
    if torch.compiler.is_compiling() or torch.jit.is_tracing():
        raise UsageError("closure cannot be written down by torch.compile or jit.trace: call it outside of them")
    D, before = Closed.apply(W, word)
    return (D, before) if return_predecessors else D


class Closed(torch.autograd.Function):
    """D and the predecessors of W."""

    @staticmethod
    def forward(W: Tensor, word: str) -> Any:
        inside, SETTLED.inside = SETTLED.inside, True
        try:
            return graph.closure(W.detach(), semiring=ring_of(word), return_predecessors=True)
        finally:
            SETTLED.inside = inside

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        W, ctx.word = inputs
        D, before = output
        ctx.mark_non_differentiable(before)
        ctx.save_for_backward(W, D, before)
        ctx.save_for_forward(W, D, before)

    @staticmethod
    def backward(ctx: Any, dD: Tensor, _: Tensor | None = None) -> Any:
        W, D, before = ctx.saved_tensors
        return Walk(ctx.word, W, D, before).backwards(dD), None

    @staticmethod
    def jvp(ctx: Any, tW: Tensor, _: Any) -> Any:
        W, D, before = ctx.saved_tensors
        return Walk(ctx.word, W, D, before).forwards(tW), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], W: Tensor, word: str) -> Any:
        assert in_dims[0] is not None
        return Closed.apply(W.movedim(in_dims[0], 0), word), (0, 0)


class Walk:
    """Every path of a closure, by the node before each target and how many edges lie behind it."""

    def __init__(self, word: str, W: Tensor, D: Tensor, before: Tensor) -> None:
        self.word, self.W = word, W
        n = W.shape[-1]
        self.nodes = torch.arange(n, device=W.device)
        self.reached = before >= 0
        self.p = before.clamp_min(0)
        edge = W.expand(D.shape).gather(-2, self.p)  # W[p, j]
        self.slope = slopes(ring_of(word).mul, D.gather(-1, self.p), edge)
        self.hops = self._hops(before)
        self.rounds = n - 1  # at most; under vmap nobody may look
        if self.hops.numel() and not torch._C._are_functorch_transforms_active():
            self.rounds = int(self.hops.max())

    def _hops(self, before: Tensor) -> Tensor:
        """Edges on the path to each target, by doubling steps."""
        ahead = torch.where(self.reached, before, self.nodes)
        count = self.reached.to(torch.int64)
        for _ in range(max(1, before.shape[-1] - 1).bit_length()):
            count = count + count.gather(-1, ahead)
            ahead = ahead.gather(-1, ahead)
        return count

    def backwards(self, dD: Tensor) -> Tensor:
        """dW of dD: the farthest targets first, each handing on to the node before it."""
        flow = torch.where(self.reached, dD, torch.zeros((), dtype=dD.dtype, device=dD.device))
        nothing = torch.zeros((), dtype=dD.dtype, device=dD.device)
        for hop in range(self.rounds, 0, -1):
            here = torch.where(self.hops == hop, flow, nothing)
            flow = flow.scatter_add(-1, self.p, torch.where(self.hops > 1, here * self.slope.dx, nothing))
        return torch.zeros_like(flow).scatter_add(-2, self.p, torch.where(self.reached, flow * self.slope.dy, nothing))

    def forwards(self, tW: Tensor) -> Tensor:
        """tD of tW: the nearest targets first."""
        nothing = torch.zeros((), dtype=tW.dtype, device=tW.device)
        edge = tW.expand(self.p.shape).gather(-2, self.p) * self.slope.dy
        made = torch.where(self.reached, edge, nothing)
        for hop in range(2, self.rounds + 1):
            made = torch.where(self.hops == hop, edge + made.gather(-1, self.p) * self.slope.dx, made)
        return made
