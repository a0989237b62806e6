"""Suite `linear`: a linear layer forward and backward: ours, torch's own, and torch's with the width padded by hand.

One step is three products: the output, the gradient of the input and that of the weight. Candidates:

    tilewise                   the layer unchanged; its output and its gradient have rows of odd length
    tilewise, aligned rows     the same with on_lines=True: rows of both start on 128-byte boundaries
    torch                      torch.nn.Linear
    torch, padded by hand      a weight with more rows, so that all are aligned; the extra columns stay in the output
    torch, padded and sliced   the same, the output sliced to the true width, as a loss over it needs
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tilewise.bench.suites import Piece, Request, Row, Shape, speed_row
from tilewise.bench.timing import interleaved, on_card
from tilewise.bench.torch_products import torch_for

GAP_SECONDS = 0.05  # longer than for one product: a step heats the card more
SAMPLE = 32  # rows of each result that are compared with float32
PADDED_TO = 128
SHAPE = (4096, 4096, 50257)  # batch × sequence, width of the model, vocabulary of GPT-2

Step = Callable[[], tuple[Any, Any, Any]]


def pieces(request: Request) -> Iterator[Piece]:
    shape, dtype = (SHAPE, "bfloat16") if request.on_card else ((128, 256, 50257), "float32")
    yield partial(forward_and_backward, shape, dtype, request.rounds(3, 7), request.device.partition(":")[0])


def forward_and_backward(shape: Shape, dtype: str, rounds: int, device: str) -> list[Row]:
    """One row for each candidate, every result checked first."""
    torch = torch_for("bench linear")
    from tilewise.torch.linear_layer import linear as tilewise_linear

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
    linear, ours = torch.nn.functional.linear, partial(tilewise_linear, when="always")

    def step(layer: Any, w: Any, gradient: Any, cut: int | None = None) -> Step:
        def run() -> tuple[Any, Any, Any]:
            y = layer(x, w)[:, :cut] if cut else layer(x, w)
            return (y, *torch.autograd.grad(y, (x, w), gradient))

        return run

    works = {
        "tilewise": step(ours, weight, dy),
        "tilewise, aligned rows": step(partial(ours, on_lines=True), weight, dy_wide[:, :width]),
        "torch": step(linear, weight, dy),
        "torch, padded by hand": step(linear, weight_wide, dy_wide),
        "torch, padded and sliced": step(linear, weight_wide, dy, width),
    }
    errors = _errors(works, x.detach(), weight.detach(), dy, torch)
    if device == "cuda":
        seconds = on_card(torch, works, rounds, hold=0, gap=GAP_SECONDS, calls=3)
    else:
        seconds = interleaved(works, rounds, 1)
    flops = 6 * rows * inner * width
    return [
        speed_row(name, shape, dtype, seconds[name], tflops=flops / seconds[name] / 1e12, relative_error=errors[name])
        for name in works
    ]


def _errors(works: dict[str, Step], x: Any, weight: Any, dy: Any, torch: Any) -> dict[str, float]:
    """The largest relative error of output, dx and dW on a sample of their rows, against float32."""
    width = weight.shape[0]
    some, some_outputs = (torch.randperm(size, device=x.device)[:SAMPLE] for size in (x.shape[0], width))
    exact = (
        x[some].float() @ weight.float().T,
        dy[some].float() @ weight.float(),
        dy[:, some_outputs].float().T @ x.float(),
    )
    errors = {}
    for name, work in works.items():
        y, dx, dw = work()
        got = (y.detach()[some, :width], dx[some], dw[some_outputs])
        errors[name] = max(float((g.float() - e).norm() / e.norm()) for g, e in zip(got, exact, strict=True))
        if not errors[name] < 1e-2:
            raise AssertionError(f"{name} is wrong: relative error {errors[name]:.2e}")
    return errors
