"""A mixture-of-experts layer, forward and backward, on our grouped products and on torch._grouped_mm."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

Row = dict[str, Any]
TOP = 2  # experts of a token
LAYERS = ((64, 4096, 2048, 1408), (8, 8192, 2048, 1536), (64, 8192, 2047, 1409))  # experts, tokens, hidden, inner
ROUNDS, STEPS = 5, 4
PADDED = 8  # elements: torch's operands start and step on 16 bytes


def pieces(seed: int) -> Iterator[Callable[[], list[Row]]]:
    """One measurement after the other."""
    for layer in LAYERS:
        yield partial(_measured, seed, *layer)


def _measured(seed: int, experts: int, tokens: int, hidden: int, inner: int) -> list[Row]:
    import torch

    import tilewise as tw

    torch.manual_seed(seed)
    number, card = torch.bfloat16, "cuda"
    x = torch.randn(tokens, hidden, device=card).to(number).requires_grad_()
    up = (torch.randn(experts, hidden, inner, device=card) * hidden**-0.5).to(number).requires_grad_()
    down = (torch.randn(experts, inner, hidden, device=card) * inner**-0.5).to(number).requires_grad_()
    chosen = torch.rand(tokens, experts, device=card).topk(TOP).indices.flatten()
    order = chosen.argsort(stable=True)
    rows, ends = order // TOP, torch.bincount(chosen, minlength=experts).cumsum(0).to(torch.int32)
    share = torch.rand(tokens * TOP, device=card)[order]
    flow = torch.randn(tokens, hidden, device=card).to(number)

    def ours() -> Any:
        made = torch.nn.functional.silu(tw.grouped_matmul(x, up, ends, rows=rows))
        return tw.scatter_rows(tw.grouped_matmul(made, down, ends), rows, tokens, weights=share)

    def theirs() -> Any:
        made = torch.nn.functional.silu(_by_torch(torch, x[rows], up, ends))
        weighted = _by_torch(torch, made, down, ends) * share[:, None].to(number)
        return torch.zeros(tokens, hidden, dtype=number, device=card).index_add(0, rows, weighted)

    leaves = (x, up, down)
    steps = {name: partial(_step, torch, layer, leaves, flow) for name, layer in (("ours", ours), ("theirs", theirs))}
    found = {name: step() for name, step in steps.items()}
    errors = [_difference(a, b) for a, b in zip(found["ours"], found["theirs"], strict=True)]
    times = _in_turns(torch, steps)
    return [
        {
            "case": f"layer of {experts} experts {hidden}x{inner}, {tokens} tokens, forward and backward",
            "suite": "known",
            "dtype": "bfloat16",
            "kernel": "wgmma_half",
            "seconds": times["ours"],
            "peer": "torch._grouped_mm",
            "peer_seconds": times["theirs"],
            "ratio": times["theirs"] / times["ours"],
            "of_floor": None,
            "relative_error": max(errors),
            "right": max(errors) < 3e-2,
        }
    ]


def _by_torch(torch: Any, x: Any, w: Any, ends: Any) -> Any:
    """torch's own; operands that do not start on 16 bytes are padded first, and the product cut after."""
    k, n = w.shape[1:]
    if k % PADDED or n % PADDED:
        x, w = (
            torch.nn.functional.pad(x, (0, -k % PADDED)),
            torch.nn.functional.pad(w, (0, -n % PADDED, 0, -k % PADDED)),
        )
    return torch._grouped_mm(x, w, offs=ends)[:, :n]


def _step(torch: Any, layer: Callable[[], Any], leaves: tuple[Any, ...], flow: Any) -> tuple[Any, ...]:
    """Forward and backward: P, and the gradients."""
    P = layer()
    return (P.detach(), *torch.autograd.grad(P, leaves, flow))


def _difference(found: Any, wanted: Any) -> float:
    return float((found.float() - wanted.float()).norm() / wanted.float().norm().clamp_min(1e-30))


def _in_turns(torch: Any, steps: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """Median seconds of a step of each, queued as a program does, over rounds in which all have their turn."""
    laps: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(ROUNDS):
        for name, step in steps.items():
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(STEPS):
                step()
            stop.record()
            stop.synchronize()
            laps[name].append(start.elapsed_time(stop) / 1e3 / STEPS)
    return {name: statistics.median(values) for name, values in laps.items()}
