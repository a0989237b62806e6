"""A linear layer forward and backward: ours, torch's own, and torch's with the width padded by hand.

One step is three products: the output, the gradient of the input and that of the weight. Contestants:

    tilewise                   the layer as it is; its output and its gradient have rows of odd length
    tilewise, rows on lines    the same with on_lines=True: rows of both start on 128-byte lines
    torch                      torch.nn.Linear
    torch, padded by hand      a weight with more rows, so that all are aligned; the extra columns stay in the output
    torch, padded and sliced   the same, the output sliced to the true width, as a loss over it needs
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from tilewise.errors import UsageError

GAP_SECONDS = 0.05  # an idle gap before each timing, so that nobody starts on a card another has heated
SAMPLE = 32  # rows of each result that are held against float32
PADDED_TO = 128
SHAPE = (4096, 4096, 50257)  # batch × sequence, width of the model, vocabulary of GPT-2

Step = Callable[[], tuple[Any, Any, Any]]


def contest(
    shape: tuple[int, int, int] = SHAPE, dtype: str = "bfloat16", rounds: int = 7, device: str = "cuda"
) -> list[dict[str, Any]]:
    """One row for each contestant: medians of rounds in rotating order, every result checked first."""
    try:
        import torch
    except ImportError:
        raise UsageError("bench linear needs torch for its layers: pip install torch") from None
    import tilewise.torch

    number = getattr(torch, dtype)
    rows, inner, width = shape
    wide = -(-width // PADDED_TO) * PADDED_TO
    torch.manual_seed(0)
    x = torch.randn(rows, inner, device=device).to(number).requires_grad_()
    weight = (torch.randn(width, inner, device=device) / inner**0.5).to(number).requires_grad_()
    dy = torch.randn(rows, width, device=device).to(number)
    weight_wide = torch.zeros(wide, inner, device=device, dtype=number)
    weight_wide[:width] = weight.detach()
    weight_wide.requires_grad_()
    dy_wide = torch.zeros(rows, wide, device=device, dtype=number)
    dy_wide[:, :width] = dy
    linear, ours = torch.nn.functional.linear, partial(tilewise.torch.linear, when="always")

    def step(layer: Any, w: Any, gradient: Any, cut: int | None = None) -> Step:
        def run() -> tuple[Any, Any, Any]:
            y = layer(x, w)[:, :cut] if cut else layer(x, w)
            return (y, *torch.autograd.grad(y, (x, w), gradient))

        return run

    works = {
        "tilewise": step(ours, weight, dy),
        "tilewise, rows on lines": step(partial(ours, on_lines=True), weight, dy_wide[:, :width]),
        "torch": step(linear, weight, dy),
        "torch, padded by hand": step(linear, weight_wide, dy_wide),
        "torch, padded and sliced": step(linear, weight_wide, dy, width),
    }
    errors = _errors(works, x.detach(), weight.detach(), dy, torch)
    seconds = _rotating(works, rounds, torch if device == "cuda" else None)
    return [
        {
            "kernel": name,
            "tile": 0,
            "shape": list(shape),
            "dtype": dtype,
            "seconds": seconds[name],
            "tflops": 6 * rows * inner * width / seconds[name] / 1e12,
            "share_of_peak": None,
            "relative_error": errors[name],
            "predicted_seconds": None,
            "bytes_with_tiles": None,
        }
        for name in works
    ]


def _errors(works: dict[str, Step], x: Any, weight: Any, dy: Any, torch: Any) -> dict[str, float]:
    """The largest relative error of output, dx and dW on a sample of their rows, against float32."""
    width = weight.shape[0]
    some, words = (torch.randperm(size, device=x.device)[:SAMPLE] for size in (x.shape[0], width))
    exact = (
        x[some].float() @ weight.float().T,
        dy[some].float() @ weight.float(),
        dy[:, words].float().T @ x.float(),
    )
    errors = {}
    for name, work in works.items():
        y, dx, dw = work()
        got = (y.detach()[some, :width], dx[some], dw[words])
        errors[name] = max(float((g.float() - e).norm() / e.norm()) for g, e in zip(got, exact, strict=True))
        if not errors[name] < 1e-2:
            raise AssertionError(f"{name} is wrong: relative error {errors[name]:.2e}")
    return errors


def _rotating(works: dict[str, Step], rounds: int, torch: Any) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in works}
    names = list(works)
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            times[name].append(_on_the_host(works[name]) if torch is None else _by_events(works[name], torch))
    return {name: statistics.median(values) for name, values in times.items()}


def _on_the_host(work: Step) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _by_events(work: Step, torch: Any, repeats: int = 3) -> float:
    torch.cuda.synchronize()
    time.sleep(GAP_SECONDS)
    work()  # wakes the card
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(repeats):
        work()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3 / repeats
