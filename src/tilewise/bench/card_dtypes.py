"""Numbers other than the halves on a card: speeds beside the better of the vendor's libraries, errors beside its own.

float32 is `tw.matmul` as people call it (`precision="high"`) beside `torch.mm` without TF32. Errors are
‖P − ref64‖ / ‖ref64‖, the reference being the float64 product of the same operands.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from tilewise.bench.card_shapes import CACHE_BYTES, CUBLAS, CUBLASLT, OURS, Case, _torch, operand, rotating

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
FLOAT8_ERRORS = tuple(product(("float32", "bfloat16"), DATA[:2], (1024, 4096, 16384)))  # P's dtype, data, k


OPTIONS: dict[str, dict[str, Any]] = {
    "float32": {},
    "tf32": {"precision": "tf32"},
    "int8 to int32": {"dtype": "int32"},
    "float8 to bfloat16": {"dtype": "bfloat16"},
    "float8 to bfloat16, fast peer": {"dtype": "bfloat16"},
}
KINDS = tuple(OPTIONS)
CASES: dict[str, tuple[Case, ...]] = {
    "float32": FLOAT32_CASES,
    "tf32": (
        *(Case((size,) * 3, layouts) for size in (4096, 8192) for layouts in ("NT", "NN")),
        *(Case((size,) * 3) for size in (2047, 4097, 8191)),
        Case((5003, 3001, 7013)),
    ),
    "int8 to int32": tuple(Case((size,) * 3, layouts) for size in (4096, 8192) for layouts in ("NT", "NN", "TN")),
    "float8 to bfloat16": tuple(Case((size,) * 3, "NT") for size in (4096, 8192)),
    "float8 to bfloat16, fast peer": tuple(Case((size,) * 3, "NT") for size in (4096, 8192)),
}


def speed(kind: str, case: Case, rounds: int) -> list[dict[str, Any]]:
    """One row: ours and the best of the vendor's, medians of rounds in rotating order; each product is checked."""
    torch = _torch()
    from tilewise.api import matmul, plan

    m, k, n = case.shape
    torch.manual_seed(0)
    M, N = _operands(torch, kind, case)
    options = OPTIONS[kind]
    P = matmul(M, N, **options)
    works: dict[str, Callable[[], Any]] = {OURS: lambda: matmul(M, N, out=P, **options)}
    works |= _peers(torch, kind, M, N, P)
    sample = torch.randperm(m, device="cuda")[:128]
    exact = M[sample].double() @ N.double()
    bound = {"float32": 5e-6, "tf32": 1e-3, "int8 to int32": 1e-9}.get(kind, 1e-2)
    for name, work in works.items():
        P.fill_(77)
        wrong = float((work()[sample].double() - exact).norm() / exact.norm())
        if not wrong < bound:
            raise AssertionError(f"{name} is wrong at {kind} {case.name}: relative error {wrong:.2e}")
    bytes_moved = M.element_size() * (m * k + k * n) + P.element_size() * m * n
    seconds = rotating(works, rounds, cold=bytes_moved < CACHE_BYTES)
    ours, theirs = seconds[OURS], min(value for name, value in seconds.items() if name != OURS)
    made = plan(M, N, **options)
    return [
        {
            "what": f"{kind} speed",
            "case": case.name,
            "kernel": made.kernel,
            "unit": "TFLOP/s",
            "ours": 2 * m * k * n / ours / 1e12,
            "vendor": 2 * m * k * n / theirs / 1e12,
            "ratio": theirs / ours,
            "predicted_over_measured": made.predicted / ours,
        }
    ]


def _operands(torch: Any, kind: str, case: Case) -> tuple[Any, Any]:
    m, k, n = case.shape
    made = []
    for rows, cols, layout in ((m, k, case.layouts[0]), (k, n, case.layouts[1])):
        if kind.startswith("int8"):
            whole = torch.randint(-128, 128, (cols, rows) if layout == "T" else (rows, cols), device="cuda")
            whole = whole.to(torch.int8)
            made.append(whole.T if layout == "T" else whole)
        else:
            dtype = torch.float8_e4m3fn if kind.startswith("float8") else torch.float32
            made.append(operand(torch, rows, cols, layout, case.offset, dtype))
    return made[0], made[1]


def _peers(torch: Any, kind: str, M: Any, N: Any, P: Any) -> dict[str, Callable[[], Any]]:
    """The vendor's ways to the same product, written into P where they can."""
    if kind.startswith("int8"):
        return {"torch._int_mm": lambda: torch._int_mm(M, N, out=P)}
    if kind.startswith("float8"):
        one = torch.ones((), device="cuda")
        fast = kind.endswith("fast peer")
        return {
            "torch._scaled_mm": lambda: torch._scaled_mm(
                M, N, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=fast
            )
        }

    def vendor(library: str) -> Callable[[], Any]:
        def multiply() -> Any:
            torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
            torch.backends.cuda.preferred_blas_library(library)
            return torch.mm(M, N, out=P)

        return multiply

    return {name: vendor(name) for name in (CUBLAS, CUBLASLT)}


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


def float8_errors(result: str, data: str, depth: int) -> list[dict[str, Any]]:
    """One row: our error into P of dtype `result`, and the vendor's with sums that leave the tensor cores too."""
    torch = _torch()
    from tilewise.api import matmul

    M, N = operands(torch, data, 1024, depth, 1024)
    M, N = M.to(torch.float8_e4m3fn), N.T.contiguous().to(torch.float8_e4m3fn).T
    exact, one = M.double() @ N.double(), torch.ones((), device="cuda")
    ours, theirs = (
        float((P.double() - exact).norm() / exact.norm())
        for P in (
            matmul(M, N, kernel="k_major", dtype=None if result == "float32" else result),
            torch._scaled_mm(M, N, scale_a=one, scale_b=one, out_dtype=getattr(torch, result), use_fast_accum=False),
        )
    )
    row = {"what": f"float8 to {result} error", "case": f"{data}, k {depth}", "kernel": "k_major", "unit": "of ‖P‖"}
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
