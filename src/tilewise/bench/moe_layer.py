"""A mixture-of-experts layer, forward and backward, on our grouped products and on torch._grouped_mm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tilewise.bench.rows import Row, batch_row
from tilewise.bench.timing import event_seconds, medians

TOP = 2  # experts of a token
ROUNDS, STEPS = 5, 4
PADDED = 8  # elements: torch's operands start and step on 16 bytes
TOLERANCE = 3e-2
PEER = "torch._grouped_mm"


@dataclass(frozen=True)
class ExpertLayer:
    """Tokens of `hidden` columns, each multiplied by TOP experts of hidden×inner and inner×hidden."""

    experts: int
    tokens: int
    hidden: int
    inner: int
    dtype: str = "bfloat16"

    @property
    def name(self) -> str:
        sizes = f"{self.experts} experts {self.hidden}x{self.inner}, {self.tokens} tokens"
        return f"layer of {sizes}, forward and backward"


LAYERS = (
    ExpertLayer(64, 4096, 2048, 1408),
    ExpertLayer(8, 8192, 2048, 1536),
    ExpertLayer(64, 8192, 2047, 1409),
)


def forward_and_backward(layer: ExpertLayer, seed: int) -> list[Row]:
    """One row; results and gradients of the two are compared with each other."""
    import torch

    import tilewise as tw

    torch.manual_seed(seed)
    number, card = torch.bfloat16, "cuda"
    experts, tokens, hidden, inner = layer.experts, layer.tokens, layer.hidden, layer.inner
    x = torch.randn(tokens, hidden, device=card).to(number).requires_grad_()
    up = (torch.randn(experts, hidden, inner, device=card) * hidden**-0.5).to(number).requires_grad_()
    down = (torch.randn(experts, inner, hidden, device=card) * inner**-0.5).to(number).requires_grad_()
    chosen = torch.rand(tokens, experts, device=card).topk(TOP).indices.flatten()
    order = chosen.argsort(stable=True)
    rows, ends = order // TOP, torch.bincount(chosen, minlength=experts).cumsum(0).to(torch.int32)
    share = torch.rand(tokens * TOP, device=card)[order]
    gradient = torch.randn(tokens, hidden, device=card).to(number)

    def ours() -> Any:
        made = torch.nn.functional.silu(tw.grouped_matmul(x, up, ends, rows=rows))
        return tw.scatter_rows(tw.grouped_matmul(made, down, ends), rows, tokens, weights=share)

    def theirs() -> Any:
        made = torch.nn.functional.silu(grouped_mm(torch, x[rows], up, ends))
        weighted = grouped_mm(torch, made, down, ends) * share[:, None].to(number)
        return torch.zeros(tokens, hidden, dtype=number, device=card).index_add(0, rows, weighted)

    def step(forward: Callable[[], Any]) -> tuple[Any, ...]:
        P = forward()
        return (P.detach(), *torch.autograd.grad(P, (x, up, down), gradient))

    steps = {"ours": partial(step, ours), PEER: partial(step, theirs)}
    error = max(_difference(a, b) for a, b in zip(steps["ours"](), steps[PEER](), strict=True))
    times = medians(steps, ROUNDS, lambda name: [event_seconds(torch, steps[name], STEPS)])
    return [batch_row(layer, "known", "wgmma_half", times, PEER, error, TOLERANCE, of_floor=None)]


def grouped_mm(torch: Any, x: Any, w: Any, ends: Any) -> Any:
    """torch's own; operands whose rows do not start on 16 bytes are padded first, and the product sliced."""
    k, n = w.shape[1:]
    if k % PADDED or n % PADDED:
        x = torch.nn.functional.pad(x, (0, -k % PADDED))
        w = torch.nn.functional.pad(w, (0, -n % PADDED, 0, -k % PADDED))
    return torch._grouped_mm(x, w, offs=ends)[:, :n]


def _difference(found: Any, expected: Any) -> float:
    return float((found.float() - expected.float()).norm() / expected.float().norm().clamp_min(1e-30))
