"""Half precision on a card: tilewise beside both of the vendor's libraries, and beside what people do about the cliff
(pad, multiply, slice).

Everything runs on torch tensors and the caller's stream, through `tw.matmul` as people call it. The card is kept
waiting while a call is queued, so a row is the card's time alone; what a call costs the host is measured apart.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewise.errors import UsageError

Shape = tuple[int, int, int]


@dataclass(frozen=True)
class Case:
    """A product: its shape, N for operands stored by rows and T by columns, how many elements late a slice starts."""

    shape: Shape
    layouts: str = "NN"
    offset: int = 0

    @property
    def name(self) -> str:
        m, k, n = self.shape
        size = f"{m}³" if m == k == n else f"{m}×{k}×{n}"
        return size + (f" {self.layouts}" if self.layouts != "NN" else "") + (" sliced" if self.offset else "")


def _squares(*sizes: int) -> tuple[Case, ...]:
    return tuple(Case((size,) * 3) for size in sizes)


CASES: tuple[Case, ...] = (
    *_squares(512, 1000, 1024, 2047, 2048, 4095, 4096, 4097, 8191, 8192, 16384),
    Case((333, 555, 777)),
    Case((4099, 4091, 4093)),
    Case((5003, 3001, 7013)),
    Case((5000, 3000, 7016)),
    Case((4096, 4096, 14336)),
    Case((8192, 8192, 28672)),
    Case((4096, 4096, 50257)),
    Case((4096, 50257, 4096)),  # its backward products: for the input,
    Case((50257, 4096, 4096), "TN"),  # and for the weights
    *(Case((rows, 8192, 8192)) for rows in (1, 16, 64, 333)),
    Case((8192, 64, 8192)),
    Case((128, 65536, 128)),
    *(Case((size,) * 3, layouts) for size in (4096, 4097) for layouts in ("NT", "TN", "TT")),
    *(Case((size,) * 3, "NN", 1) for size in (4095, 4096)),
)
OURS, PADDED = "tilewise", "pad, multiply, slice"
CUBLAS, CUBLASLT = "cublas", "cublaslt"
GAP_SECONDS = 0.01  # an idle gap before each timing, so that nobody starts on a card another has heated
HOLD_CYCLES = 600_000  # about 0.3 ms: the card waits while the host queues
CACHE_BYTES = 64 * 2**20  # operands that would fit the card's L2 are pushed out of it first


def contest(case: Case, dtype: str, rounds: int) -> list[dict[str, Any]]:
    """One row for each contestant, medians of rounds in rotating order; each product is checked against float32."""
    torch = _torch()
    from tilewise.api import matmul, plan

    number = getattr(torch, dtype)
    m, k, n = case.shape
    torch.manual_seed(0)
    M = operand(torch, m, k, case.layouts[0], case.offset, number)
    N = operand(torch, k, n, case.layouts[1], case.offset, number)
    P = torch.empty(m, n, device="cuda", dtype=number)

    def vendor(library: str) -> Callable[[], Any]:
        def multiply() -> Any:
            torch.backends.cuda.preferred_blas_library(library)
            return torch.mm(M, N, out=P)

        return multiply

    def padded() -> Any:
        up = [-(-x // 8) * 8 for x in (m, k, n)]
        wide_m = torch.nn.functional.pad(M, (0, up[1] - k, 0, up[0] - m))
        wide_n = torch.nn.functional.pad(N, (0, up[2] - n, 0, up[1] - k))
        return torch.mm(wide_m, wide_n)[:m, :n].contiguous()

    works: dict[str, Callable[[], Any]] = {
        OURS: lambda: matmul(M, N, out=P),
        CUBLAS: vendor(CUBLAS),
        CUBLASLT: vendor(CUBLASLT),
    }
    if any(x % 8 for x in case.shape):
        works[PADDED] = padded
    sample = torch.randperm(m, device="cuda")[:128]
    exact = M[sample].float() @ N.float()
    errors = {}
    for name, work in works.items():
        P.fill_(float("nan"))
        got = work()[sample].float()
        errors[name] = float((got - exact).norm() / exact.norm())
        if not errors[name] < 1e-2:
            raise AssertionError(f"{name} is wrong at {case.name}: relative error {errors[name]:.2e}")
    seconds = rotating(works, rounds, cold=2 * (m * k + k * n + m * n) < CACHE_BYTES)
    predicted = plan(M, N).predicted
    return [
        {
            "kernel": name,
            "tile": 0,
            "shape": list(case.shape),
            "case": case.name,
            "dtype": dtype,
            "seconds": seconds[name],
            "tflops": 2 * m * k * n / seconds[name] / 1e12,
            "share_of_peak": None,
            "relative_error": errors[name],
            "predicted_seconds": predicted if name == OURS else None,
            "bytes_with_tiles": None,
        }
        for name in works
    ]


def host_cost(dtype: str, rounds: int) -> list[dict[str, Any]]:
    """What one call on 16×16 tensors costs the host, queued back to back; the card is faster than that."""
    torch = _torch()
    from tilewise.api import matmul

    number = getattr(torch, dtype)
    M, N, P = (torch.randn(16, 16, device="cuda").to(number) for _ in range(3))
    works = {OURS: lambda: matmul(M, N, out=P), CUBLAS: lambda: torch.mm(M, N, out=P)}
    calls = 2000
    times: dict[str, list[float]] = {name: [] for name in works}
    with torch.no_grad():
        for turn in range(2 * rounds):
            for name in sorted(works, reverse=bool(turn % 2)):
                torch.cuda.synchronize()
                start = time.perf_counter()
                for _ in range(calls):
                    works[name]()
                times[name].append((time.perf_counter() - start) / calls)
                torch.cuda.synchronize()
    return [
        {
            "kernel": name,
            "tile": 0,
            "shape": [16, 16, 16],
            "case": "16³, host",
            "dtype": dtype,
            "seconds": statistics.median(times[name]),
            "tflops": 2 * 16**3 / statistics.median(times[name]) / 1e12,
            "share_of_peak": None,
            "relative_error": None,
            "predicted_seconds": None,
            "bytes_with_tiles": None,
        }
        for name in works
    ]


def rotating(works: dict[str, Callable[[], Any]], rounds: int, cold: bool, hold: int = HOLD_CYCLES) -> dict[str, float]:
    """Median seconds of each on the card, which waits `hold` cycles while the host queues; `cold` empties the L2 before
    every call."""
    torch = _torch()
    times: dict[str, list[float]] = {name: [] for name in works}
    names = list(works)
    other = torch.ones(64 * 2**20, device="cuda")  # 256 MB that push everything else out of L2
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            torch.cuda.synchronize()
            time.sleep(GAP_SECONDS)
            works[name]()
            for _ in range(3 if cold else 1):
                if cold:
                    other.sum()
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                torch.cuda._sleep(hold)
                start.record()
                works[name]()
                end.record()
                end.synchronize()
                times[name].append(start.elapsed_time(end) / 1e3)
    return {name: statistics.median(values) for name, values in times.items()}


def operand(torch: Any, rows: int, cols: int, layout: str, offset: int, dtype: Any) -> Any:
    lines, length = (cols, rows) if layout == "T" else (rows, cols)
    whole = torch.randn(lines, length + offset, device="cuda", dtype=torch.float32).to(dtype)
    part = whole[:, offset:]
    return part.T if layout == "T" else part


def torch_for(what: str) -> Any:
    try:
        import torch
    except ImportError:
        raise UsageError(f"{what} needs torch: pip install torch") from None
    return torch


def _torch() -> Any:
    return torch_for("bench shapes")
