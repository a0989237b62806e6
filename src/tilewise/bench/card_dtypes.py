"""Suite `dtypes`: dtypes other than half precision on a card: speed and error beside the vendor's libraries, whichever
is better.

float32 is `tw.matmul` as people call it (`precision="high"`) beside `torch.mm` without TF32. Errors are
‖P − ref64‖ / ‖ref64‖, the reference being the float64 product of the same operands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

from tilewise.api import matmul, plan
from tilewise.bench import torch_products as products
from tilewise.bench.suites import Piece, Request, Row
from tilewise.bench.timing import Work, on_card
from tilewise.bench.torch_products import OURS, SAMPLE, ProductCase, cubes

FLOAT32_CASES: tuple[ProductCase, ...] = (
    *cubes(1024, 2047, 2048, 3000, 4095, 4096, 4097, 8191, 8192, 16383, 16384),
    ProductCase((5003, 3001, 7013)),
    ProductCase((4096, 4096, 14336)),
    ProductCase((8192, 1024, 8192)),
    ProductCase((4096, 50257, 4096)),
    *(ProductCase((4097,) * 3, layouts) for layouts in ("NT", "TN", "TT")),
    ProductCase((4096,) * 3, "NN", 1),
)
DATA = ("normal", "uniform", "exponents 2^±20", "ill-conditioned", "cancelling")
DEPTHS = (16, 256, 1024, 4096, 16384, 65536)
FLOAT8_ERRORS = tuple(product(("float32", "bfloat16"), DATA[:2], (1024, 4096, 16384)))  # P's dtype, data, k
OPTIONS: dict[str, dict[str, Any]] = {
    "float32": {},
    "float64": {},
    "tf32": {"precision": "tf32"},
    "int8 to int32": {"dtype": "int32"},
    "float8 to bfloat16": {"dtype": "bfloat16"},
    "float8 to bfloat16, fast peer": {"dtype": "bfloat16"},
}
KINDS = tuple(OPTIONS)
CASES: dict[str, tuple[ProductCase, ...]] = {
    "float32": FLOAT32_CASES,
    "float64": (*cubes(2047, 2048, 4096, 4097, 8191, 8192), ProductCase((5003, 3001, 7013))),
    "tf32": (
        *(ProductCase((size,) * 3, layouts) for size in (4096, 8192) for layouts in ("NT", "NN")),
        *cubes(2047, 4097, 8191),
        ProductCase((5003, 3001, 7013)),
    ),
    "int8 to int32": tuple(
        ProductCase((size,) * 3, layouts) for size in (4096, 8192) for layouts in ("NT", "NN", "TN")
    ),
    "float8 to bfloat16": cubes(4096, 8192, layouts="NT"),
    "float8 to bfloat16, fast peer": cubes(4096, 8192, layouts="NT"),
}
# largest relative error; 1e-2 for other dtypes
BOUNDS = {"float32": 5e-6, "float64": 1e-13, "tf32": 1e-3, "int8 to int32": 1e-9}


def pieces(request: Request) -> Iterator[Piece]:
    for kind in KINDS:
        layouts = "NT" if kind.startswith("float8") else "NN"
        for case in cubes(*request.sizes, layouts=layouts) or CASES[kind]:
            yield partial(speed, kind, case, request.rounds(3, 5))
    if not request.sizes:
        for data, depth in product(DATA, DEPTHS):
            yield partial(float32_errors, data, depth)
        for result, data, depth in FLOAT8_ERRORS:
            yield partial(float8_errors, result, data, depth)


def speed(kind: str, case: ProductCase, rounds: int) -> list[Row]:
    """One row: ours and the fastest of the vendor's, each product checked."""
    torch = products.torch_for("bench dtypes")
    m, k, n = case.shape
    torch.manual_seed(0)
    M, N = _operands(torch, kind, case)
    options = OPTIONS[kind]
    P = matmul(M, N, **options)
    works: dict[str, Work] = {OURS: lambda: matmul(M, N, out=P, **options), **_peers(torch, kind, M, N, P)}
    sample = torch.randperm(m, device="cuda")[:SAMPLE]
    exact = M[sample].double() @ N.double()
    products.errors_of(works, P, exact, BOUNDS.get(kind, 1e-2), f"{kind} {case.name}", sample)
    seconds = on_card(torch, works, rounds, cold=products.is_cold(M, N, P))
    ours, theirs = seconds[OURS], min(value for name, value in seconds.items() if name != OURS)
    chosen, rate = plan(M, N, **options), 2 * m * k * n / 1e12
    return [
        _row(f"{kind} speed", case.name, chosen.kernel, "TFLOP/s", rate / ours, rate / theirs, theirs / ours,
             chosen.predicted / ours)
    ]  # fmt: skip


def _row(
    what: str, case: str, kernel: str, unit: str, ours: float, vendor: float, ratio: float, predicted: float | None
) -> Row:
    return {
        "what": what,
        "case": case,
        "kernel": kernel,
        "unit": unit,
        "ours": ours,
        "vendor": vendor,
        "ratio": ratio,
        "predicted_over_measured": predicted,
    }


def _operands(torch: Any, kind: str, case: ProductCase) -> tuple[Any, Any]:
    if kind.startswith("int8"):
        draw = lambda *extents: torch.randint(-128, 128, extents, device="cuda")  # noqa: E731
        return products.operands(torch, case, torch.int8, draw=draw)
    number = {"float64": torch.float64, "float8": torch.float8_e4m3fn}.get(kind.split()[0], torch.float32)
    return products.operands(torch, case, number)


def _peers(torch: Any, kind: str, M: Any, N: Any, P: Any) -> dict[str, Work]:
    """The vendor's implementations of the same product, written into P where they can."""
    if kind.startswith("int8"):
        return {"torch._int_mm": lambda: torch._int_mm(M, N, out=P)}
    if kind.startswith("float8"):
        return {"torch._scaled_mm": _scaled_mm(torch, M, N, torch.bfloat16, kind.endswith("fast peer"))}
    return products.vendors(torch, M, N, P, tf32=kind == "tf32")


def _scaled_mm(torch: Any, M: Any, N: Any, result: Any, fast: bool) -> Callable[[], Any]:
    one = torch.ones((), device="cuda")
    return lambda: torch._scaled_mm(M, N, scale_a=one, scale_b=one, out_dtype=result, use_fast_accum=fast)


def float32_errors(data: str, depth: int) -> list[Row]:
    """One row: our error and SGEMM's, on the same operands."""
    torch = products.torch_for("bench dtypes")
    torch.backends.cuda.matmul.allow_tf32 = False
    M, N = operands(torch, data, 1024, depth, 1024)
    both = matmul(M, N, kernel="bf16x6"), torch.mm(M, N)
    return [_error_row("float32 error", data, depth, "bf16x6", M, N, both)]


def float8_errors(result: str, data: str, depth: int) -> list[Row]:
    """One row: our error with P of dtype `result`, and the vendor's with sums kept outside the tensor cores."""
    torch = products.torch_for("bench dtypes")
    M, N = operands(torch, data, 1024, depth, 1024)
    M, N = M.to(torch.float8_e4m3fn), N.T.contiguous().to(torch.float8_e4m3fn).T
    ours = matmul(M, N, kernel="k_major", dtype=None if result == "float32" else result)
    both = ours, _scaled_mm(torch, M, N, getattr(torch, result), fast=False)()
    return [_error_row(f"float8 to {result} error", data, depth, "k_major", M, N, both)]


def _error_row(what: str, data: str, depth: int, kernel: str, M: Any, N: Any, both: tuple[Any, Any]) -> Row:
    exact = M.double() @ N.double()
    ours, theirs = (products.relative(P, exact) for P in both)
    return _row(what, f"{data}, k {depth}", kernel, "of ‖P‖", ours, theirs, ours / theirs, None)


def operands(torch: Any, data: str, m: int, k: int, n: int) -> tuple[Any, Any]:
    torch.manual_seed(k)
    M, N = torch.randn(m, k, device="cuda"), torch.randn(k, n, device="cuda")
    if data == "uniform":
        return torch.rand_like(M), torch.rand_like(N)
    if data == "exponents 2^±20":
        return M * torch.exp2(torch.rand_like(M) * 40 - 20), N * torch.exp2(torch.rand_like(N) * 40 - 20)
    if data == "ill-conditioned":  # scales from 1 to a millionth along k, inverted in N
        scale = torch.logspace(0, -6, k, device="cuda")
        return M * scale, N / scale[:, None]
    if data == "cancelling":  # the second half of k cancels the first, up to a ten-thousandth
        half = k // 2
        M[:, half:] = M[:, : k - half]
        N[half:] = -N[: k - half] * (1 + 1e-4 * torch.randn(k - half, n, device="cuda"))
    return M, N
