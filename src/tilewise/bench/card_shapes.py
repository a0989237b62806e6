"""Suite `shapes` on a card: half precision beside both of the vendor's libraries, and beside the usual workaround for
their slow shapes: pad, multiply, slice."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from tilewise.api import matmul, plan
from tilewise.bench import torch_products as products
from tilewise.bench.suites import Piece, Request, Row
from tilewise.bench.torch_products import OURS, SAMPLE, ProductCase, cubes

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


def pieces(request: Request) -> Iterator[Piece]:
    for case in cubes(*request.sizes) or CASES:
        yield partial(half_precision, case, request.rounds(3, 5))


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
