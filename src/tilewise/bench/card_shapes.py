"""Suites `shapes` and `mma` on a card.

`shapes`: half precision beside both of the vendor's libraries, and beside what people do about shapes that those are
slow at (pad, multiply, slice). `mma`: mma.sync and epilogues: float64 beside cuBLAS, bfloat16 beside the vendor's own
mma.sync kernels, and a fused bias and gelu beside torch.compile's.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from tilewise.api import matmul, plan
from tilewise.bench import torch_products as products
from tilewise.bench.cublaslt import fastest_mma_sync
from tilewise.bench.suites import Piece, Request, Row
from tilewise.bench.timing import HOLD_CYCLES, Work
from tilewise.bench.torch_products import CUBLAS, OURS, SAMPLE, ProductCase, cubes

CASES: tuple[ProductCase, ...] = (
    *cubes(512, 1000, 1024, 2047, 2048, 4095, 4096, 4097, 8191, 8192, 16384),
    ProductCase((333, 555, 777)),
    ProductCase((4099, 4091, 4093)),
    ProductCase((5003, 3001, 7013)),
    ProductCase((5000, 3000, 7016)),
    ProductCase((4096, 4096, 14336)),
    ProductCase((8192, 8192, 28672)),
    ProductCase((4096, 4096, 50257)),
    ProductCase((4096, 50257, 4096)),  # its backward products: the gradient of the input,
    ProductCase((50257, 4096, 4096), "TN"),  # and that of the weights
    *(ProductCase((rows, 8192, 8192)) for rows in (1, 16, 64, 333)),
    ProductCase((8192, 64, 8192)),
    ProductCase((128, 65536, 128)),
    *(ProductCase((size,) * 3, layouts) for size in (4096, 4097) for layouts in ("NT", "TN", "TT")),
    *(ProductCase((size,) * 3, "NN", 1) for size in (4095, 4096)),
)
PADDED = "pad, multiply, slice"
DTYPE = "bfloat16"
DOUBLES = (*cubes(2047, 2048, 4096, 4097, 8191, 8192), ProductCase((5003, 3001, 7013)))
HALVES = (4096, 8192)
FUSED = ProductCase((4097, 4096, 4099))


def pieces(request: Request) -> Iterator[Piece]:
    given = cubes(*request.sizes)
    if request.suite == "shapes":
        yield from (partial(half_precision, case, request.rounds(3, 5)) for case in given or CASES)
        return
    rounds = request.rounds(3, 7)
    yield from (partial(doubles, case, rounds) for case in given or DOUBLES)
    yield from (partial(halves, size, rounds) for size in request.sizes or HALVES if size % 8 == 0)
    if not request.sizes:
        yield partial(fused, rounds)


def half_precision(case: ProductCase, rounds: int) -> list[Row]:
    """One row for each candidate; products are checked against float32."""
    torch, M, N, P = products.prepared("bench shapes", case, DTYPE)
    m, k, n = case.shape

    def padded() -> Any:
        up = [-(-x // 8) * 8 for x in (m, k, n)]
        wide_m = torch.nn.functional.pad(M, (0, up[1] - k, 0, up[0] - m))
        wide_n = torch.nn.functional.pad(N, (0, up[2] - n, 0, up[1] - k))
        return torch.mm(wide_m, wide_n)[:m, :n].contiguous()

    works = {OURS: lambda: matmul(M, N, out=P), **products.vendors(torch, M, N, P)}
    if any(x % 8 for x in case.shape):
        works[PADDED] = padded
    sample = torch.randperm(m, device="cuda")[:SAMPLE]
    exact = M[sample].float() @ N.float()
    rows = products.measured_rows(
        torch, works, P, exact, case.shape, case.name, DTYPE, rounds, sample=sample, cold=products.is_cold(M, N, P)
    )
    rows[0]["predicted_seconds"] = plan(M, N).predicted
    return rows


def doubles(case: ProductCase, rounds: int) -> list[Row]:
    """float64 as people call it."""
    torch, M, N, P = products.prepared("bench mma", case, "float64")
    works: dict[str, Work] = {OURS: lambda: matmul(M, N, out=P), CUBLAS: lambda: torch.mm(M, N, out=P)}
    return products.measured_rows(
        torch, works, P, torch.mm(M, N), case.shape, f"float64 {case.name}", "float64", rounds, bound=1e-13
    )


def halves(size: int, rounds: int) -> list[Row]:
    """bfloat16 by mma.sync, beside the fastest of the vendor's kernels that do the same."""
    (case,) = cubes(size)
    torch, M, N, P = products.prepared("bench mma", case, DTYPE)
    exact = torch.mm(M, N)
    peer, kernel = fastest_mma_sync(M, N, P)
    works: dict[str, Work] = {
        f"{OURS} mma_sync": lambda: matmul(M, N, out=P, kernel="mma_sync"),
        f"{CUBLAS} mma.sync": peer,
        CUBLAS: lambda: torch.mm(M, N, out=P),
    }
    name, hold = f"{DTYPE} {case.name}", 10 * HOLD_CYCLES  # a call that names its kernel is planned again: 1 ms
    rows = products.measured_rows(torch, works, P, exact, case.shape, name, DTYPE, rounds, hold=hold)
    return [{**row, "vendor_kernel": kernel} if row["kernel"].endswith("mma.sync") else row for row in rows]


def fused(rounds: int) -> list[Row]:
    """gelu(M·N + bias) in one kernel, by torch.compile, and by torch's own operations."""
    torch, M, N, P = products.prepared("bench mma", FUSED, DTYPE)
    N /= FUSED.shape[1] ** 0.5
    bias, gelu = torch.randn(FUSED.shape[2], device="cuda").bfloat16(), torch.nn.functional.gelu
    compiled = torch.compile(lambda M, N, bias: gelu(torch.addmm(bias, M, N)))
    with torch.no_grad():
        works: dict[str, Work] = {
            OURS: lambda: matmul(M, N, out=P, bias=bias, activation="gelu"),
            "torch.compile": lambda: compiled(M, N, bias),
            "torch": lambda: gelu(torch.addmm(bias, M, N)),
        }
        exact, name = gelu(M.float() @ N.float() + bias.float()), f"{DTYPE} gelu(M·N + bias)"
        return products.measured_rows(torch, works, P, exact, FUSED.shape, name, DTYPE, rounds)
