"""Numbers other than the halves on a card: speeds beside the better of the vendor's libraries, errors beside its own.

float32 is `tw.matmul` as people call it (`precision="high"`) beside `torch.mm` without TF32. Errors are
‖P − ref64‖ / ‖ref64‖, the reference being the float64 product of the same operands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewise.bench.card_shapes import CACHE_BYTES, CUBLAS, CUBLASLT, OURS, Case, _operand, _torch, rotating

FLOAT32_CASES: tuple[Case, ...] = (
    *(Case((size,) * 3) for size in (1024, 2047, 2048, 3000, 4095, 4096, 4097, 8191, 8192, 16383, 16384)),
    Case((5003, 3001, 7013)),
    Case((4096, 4096, 14336)),
    Case((8192, 1024, 8192)),
    Case((4096, 50257, 4096)),
    *(Case((4097,) * 3, layouts) for layouts in ("NT", "TN", "TT")),
    Case((4096,) * 3, "NN", 1),
)
DATA = ("normal", "uniform", "exponents 2^±20", "ill-conditioned", "cancelling")
DEPTHS = (16, 256, 1024, 4096, 16384, 65536)


def float32_speed(case: Case, rounds: int) -> list[dict[str, Any]]:
    """One row: ours and the better of the vendor's two, medians of rounds in rotating order."""
    torch = _torch()
    from tilewise.api import matmul, plan

    torch.backends.cuda.matmul.allow_tf32 = False
    m, k, n = case.shape
    torch.manual_seed(0)
    M = _operand(torch, m, k, case.layouts[0], case.offset, torch.float32)
    N = _operand(torch, k, n, case.layouts[1], case.offset, torch.float32)
    P = torch.empty(m, n, device="cuda")

    def vendor(library: str) -> Callable[[], Any]:
        def multiply() -> Any:
            torch.backends.cuda.preferred_blas_library(library)
            return torch.mm(M, N, out=P)

        return multiply

    works: dict[str, Callable[[], Any]] = {OURS: lambda: matmul(M, N, out=P)}
    works |= {name: vendor(name) for name in (CUBLAS, CUBLASLT)}
    sample = torch.randperm(m, device="cuda")[:128]
    exact = M[sample].double() @ N.double()
    for name, work in works.items():
        P.fill_(float("nan"))
        wrong = float((work()[sample].double() - exact).norm() / exact.norm())
        if not wrong < 5e-6:
            raise AssertionError(f"{name} is wrong at {case.name}: relative error {wrong:.2e}")
    seconds = rotating(works, rounds, cold=4 * (m * k + k * n + m * n) < CACHE_BYTES)
    ours, theirs = seconds[OURS], min(seconds[CUBLAS], seconds[CUBLASLT])
    made = plan(M, N)
    return [
        {
            "what": "float32 speed",
            "case": case.name,
            "kernel": made.kernel,
            "unit": "TFLOP/s",
            "ours": 2 * m * k * n / ours / 1e12,
            "vendor": 2 * m * k * n / theirs / 1e12,
            "ratio": theirs / ours,
            "predicted_over_measured": made.predicted / ours,
        }
    ]


def float32_errors(data: str, depth: int) -> list[dict[str, Any]]:
    """One row: our error and SGEMM's, on the same operands."""
    torch = _torch()
    from tilewise.api import matmul

    torch.backends.cuda.matmul.allow_tf32 = False
    M, N = operands(torch, data, 1024, depth, 1024)
    exact = M.double() @ N.double()
    ours, theirs = (
        float((P.double() - exact).norm() / exact.norm()) for P in (matmul(M, N, kernel="bf16x6"), torch.mm(M, N))
    )
    row = {"what": "float32 error", "case": f"{data}, k {depth}", "kernel": "bf16x6", "unit": "of ‖P‖"}
    return [{**row, "ours": ours, "vendor": theirs, "ratio": ours / theirs, "predicted_over_measured": None}]


def operands(torch: Any, data: str, m: int, k: int, n: int) -> tuple[Any, Any]:
    torch.manual_seed(k)
    M, N = torch.randn(m, k, device="cuda"), torch.randn(k, n, device="cuda")
    if data == "uniform":
        return torch.rand_like(M), torch.rand_like(N)
    if data == "exponents 2^±20":
        return M * torch.exp2(torch.rand_like(M) * 40 - 20), N * torch.exp2(torch.rand_like(N) * 40 - 20)
    if data == "ill-conditioned":  # a million between the first of k and the last, the other way round in N
        scale = torch.logspace(0, -6, k, device="cuda")
        return M * scale, N / scale[:, None]
    if data == "cancelling":  # the second half of k takes the first away, but for a ten-thousandth
        half = k // 2
        M[:, half:] = M[:, : k - half]
        N[half:] = -N[: k - half] * (1 + 1e-4 * torch.randn(k - half, n, device="cuda"))
    return M, N
