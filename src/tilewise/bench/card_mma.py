"""mma.sync and epilogues on a card: float64 beside cuBLAS, bfloat16 beside the vendor's own mma.sync kernels, and a
fused bias and gelu beside torch.compile's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewise.bench.card_shapes import HOLD_CYCLES, Case, rotating, torch_for

OURS, CUBLAS = "tilewise", "cublas"
DOUBLES = (*(Case((size,) * 3) for size in (2047, 2048, 4096, 4097, 8191, 8192)), Case((5003, 3001, 7013)))
HALVES = (4096, 8192)
FUSED = (4097, 4096, 4099)


def doubles(case: Case, rounds: int) -> list[dict[str, Any]]:
    """float64 as people call it."""
    torch = torch_for("bench mma")
    from tilewise.api import matmul

    m, k, n = case.shape
    torch.manual_seed(0)
    M, N = (torch.randn(*shape, device="cuda", dtype=torch.float64) for shape in ((m, k), (k, n)))
    P = torch.empty(m, n, device="cuda", dtype=torch.float64)
    works = {OURS: lambda: matmul(M, N, out=P), CUBLAS: lambda: torch.mm(M, N, out=P)}
    exact = torch.mm(M, N)
    return _rows(torch, works, P, exact, case.name, case.shape, "float64", 1e-13, rounds)


def halves(size: int, rounds: int) -> list[dict[str, Any]]:
    """bfloat16 by mma.sync, beside the fastest of the vendor's kernels that do the same."""
    torch = torch_for("bench mma")
    from tilewise.api import matmul
    from tilewise.bench.cublaslt import fastest_mma_sync

    torch.manual_seed(0)
    M, N = (torch.randn(size, size, device="cuda").bfloat16() for _ in range(2))
    P = torch.empty_like(M)
    exact = torch.mm(M, N)
    peer, name = fastest_mma_sync(M, N, P)
    works: dict[str, Callable[[], Any]] = {
        f"{OURS} mma_sync": lambda: matmul(M, N, out=P, kernel="mma_sync"),
        f"{CUBLAS} mma.sync": peer,
        CUBLAS: lambda: torch.mm(M, N, out=P),
    }
    shape, hold = (size, size, size), 10 * HOLD_CYCLES  # a call that names its kernel is planned anew: a millisecond
    rows = _rows(torch, works, P, exact, f"{size}³", shape, "bfloat16", 1e-2, rounds, hold)
    return [{**row, "vendor_kernel": name} if row["kernel"].endswith("mma.sync") else row for row in rows]


def fused(rounds: int) -> list[dict[str, Any]]:
    """gelu(M·N + bias) in one kernel, by torch.compile, and by torch's own operations."""
    torch = torch_for("bench mma")
    from tilewise.api import matmul

    m, k, n = FUSED
    torch.manual_seed(0)
    M, N = torch.randn(m, k, device="cuda").bfloat16(), (torch.randn(k, n, device="cuda") / k**0.5).bfloat16()
    bias, P = torch.randn(n, device="cuda").bfloat16(), torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    gelu = torch.nn.functional.gelu
    compiled = torch.compile(lambda M, N, bias: gelu(torch.addmm(bias, M, N)))
    with torch.no_grad():
        works: dict[str, Callable[[], Any]] = {
            OURS: lambda: matmul(M, N, out=P, bias=bias, activation="gelu"),
            "torch.compile": lambda: compiled(M, N, bias),
            "torch": lambda: gelu(torch.addmm(bias, M, N)),
        }
        exact = gelu(M.float() @ N.float() + bias.float())
        return _rows(torch, works, P, exact, "gelu(M·N + bias)", FUSED, "bfloat16", 1e-2, rounds)


def _rows(
    torch: Any,
    works: dict[str, Callable[[], Any]],
    P: Any,
    exact: Any,
    name: str,
    shape: tuple[int, int, int],
    dtype: str,
    bound: float,
    rounds: int,
    hold: int = HOLD_CYCLES,
) -> list[dict[str, Any]]:
    """Each is checked, then all are timed in turn; a work that returns nothing has written to P."""
    errors = {}
    for who, work in works.items():
        P.fill_(float("nan"))
        made = work()
        made = P if made is None else made
        errors[who] = float((made.double() - exact.double()).norm() / exact.double().norm())
        if not errors[who] < bound:
            raise AssertionError(f"{who} is wrong at {name}: relative error {errors[who]:.2e}")
    seconds = rotating(works, rounds, cold=False, hold=hold)
    m, k, n = shape
    return [
        {
            "kernel": who,
            "tile": 0,
            "shape": list(shape),
            "case": f"{dtype} {name}",
            "dtype": dtype,
            "seconds": seconds[who],
            "tflops": 2 * m * k * n / seconds[who] / 1e12,
            "share_of_peak": None,
            "relative_error": errors[who],
            "predicted_seconds": None,
            "bytes_with_tiles": None,
        }
        for who in works
    ]
