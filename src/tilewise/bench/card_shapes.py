"""Half precision on a card: tilewise beside cuBLAS, and beside what people do about its cliff (pad, multiply, slice).

Everything runs on torch tensors and the caller's stream, through `tw.matmul` as people call it.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from tilewise.errors import UsageError

Shape = tuple[int, int, int]

SHAPES: tuple[Shape, ...] = (
    (512,) * 3, (1000,) * 3, (1024,) * 3, (2047,) * 3, (2048,) * 3, (4095,) * 3, (4096,) * 3, (4097,) * 3, (8191,) * 3,
    (8192,) * 3, (333, 555, 777), (4099, 4091, 4093), (5003, 3001, 7013), (4096, 4096, 14336), (4096, 4096, 50257),
    (1, 8192, 8192), (16, 8192, 8192), (64, 8192, 8192), (333, 8192, 8192), (8192, 64, 8192), (128, 65536, 128),
)  # fmt: skip
GAP_SECONDS = 0.02  # an idle gap before each timing, so that nobody starts on a card another has heated


def contest(shape: Shape, dtype: str, rounds: int) -> list[dict[str, Any]]:
    """One row for each contestant, medians of rounds in rotating order; each product is checked against float32."""
    try:
        import torch
    except ImportError:
        raise UsageError("bench shapes needs torch for its peers: pip install torch") from None
    from tilewise.api import matmul, plan

    number = getattr(torch, dtype)
    m, k, n = shape
    torch.manual_seed(0)
    M, N = (torch.randn(r, c, device="cuda", dtype=torch.float32).to(number) for r, c in ((m, k), (k, n)))
    P = torch.empty(m, n, device="cuda", dtype=number)

    def padded() -> Any:
        up = [-(-x // 8) * 8 for x in (m, k, n)]
        wide_m = torch.nn.functional.pad(M, (0, up[1] - k, 0, up[0] - m))
        wide_n = torch.nn.functional.pad(N, (0, up[2] - n, 0, up[1] - k))
        return torch.mm(wide_m, wide_n)[:m, :n].contiguous()

    works = {
        "tilewise": lambda: matmul(M, N, out=P),
        "cublas": lambda: torch.mm(M, N, out=P),
        "pad, multiply, slice": padded,
    }
    made = plan(M, N)
    sample = torch.randperm(m, device="cuda")[:128]
    exact = M[sample].float() @ N.float()
    errors = {}
    for name, work in works.items():
        P.fill_(float("nan"))
        got = work()[sample].float()
        errors[name] = float((got - exact).norm() / exact.norm())
        if not errors[name] < 1e-2:
            raise AssertionError(f"{name} is wrong at {shape}: relative error {errors[name]:.2e}")
    seconds = _rotating(works, rounds, torch)
    return [
        {
            "kernel": name,
            "tile": 0,
            "shape": list(shape),
            "dtype": dtype,
            "seconds": seconds[name],
            "tflops": 2 * m * k * n / seconds[name] / 1e12,
            "share_of_peak": None,
            "relative_error": errors[name],
            "predicted_seconds": made.predicted if name == "tilewise" else None,
            "bytes_with_tiles": None,
        }
        for name in works
    ]


def _rotating(works: Any, rounds: int, torch: Any) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in works}
    names = list(works)
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            torch.cuda.synchronize()
            time.sleep(GAP_SECONDS)
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            works[name]()
            start.record()
            for _ in range(3):
                works[name]()
            end.record()
            end.synchronize()
            times[name].append(start.elapsed_time(end) / 3e3)
    return {name: statistics.median(values) for name, values in times.items()}
