"""Suite `mma`: mma.sync and epilogues on a card: float64 beside cuBLAS, bfloat16 beside the vendor's own mma.sync
kernels, and a fused bias and gelu beside torch.compile's."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tilewise.api import matmul
from tilewise.bench.cublaslt import fastest_mma_sync
from tilewise.bench.rows import Row
from tilewise.bench.suites import Piece, Request
from tilewise.bench.timing import HOLD_CYCLES, Work
from tilewise.bench.torch_products import CUBLAS, OURS, ProductCase, cubes, measured_rows, operands, torch_for

DOUBLES = (*cubes(2047, 2048, 4096, 4097, 8191, 8192), ProductCase((5003, 3001, 7013)))
HALVES = (4096, 8192)
FUSED = (4097, 4096, 4099)


def pieces(request: Request) -> Iterator[Piece]:
    rounds = request.rounds(3, 7)
    for case in cubes(*request.sizes) or DOUBLES:
        yield partial(doubles, case, rounds)
    for size in request.sizes or HALVES:
        if size % 8 == 0:
            yield partial(halves, size, rounds)
    if not request.sizes:
        yield partial(fused, rounds)


def doubles(case: ProductCase, rounds: int) -> list[Row]:
    """float64 as people call it."""
    torch = torch_for("bench mma")
    m, k, n = case.shape
    torch.manual_seed(0)
    M, N = (torch.randn(*shape, device="cuda", dtype=torch.float64) for shape in ((m, k), (k, n)))
    P = torch.empty(m, n, device="cuda", dtype=torch.float64)
    works: dict[str, Work] = {OURS: lambda: matmul(M, N, out=P), CUBLAS: lambda: torch.mm(M, N, out=P)}
    exact, name = torch.mm(M, N), f"float64 {case.name}"
    return measured_rows(torch, works, P, exact, case.shape, name, "float64", rounds, bound=1e-13)


def halves(size: int, rounds: int) -> list[Row]:
    """bfloat16 by mma.sync, beside the fastest of the vendor's kernels that do the same."""
    torch = torch_for("bench mma")
    torch.manual_seed(0)
    (case,) = cubes(size)
    M, N = operands(torch, case, torch.bfloat16)
    P = torch.empty_like(M)
    exact = torch.mm(M, N)
    peer, kernel = fastest_mma_sync(M, N, P)
    works: dict[str, Work] = {
        f"{OURS} mma_sync": lambda: matmul(M, N, out=P, kernel="mma_sync"),
        f"{CUBLAS} mma.sync": peer,
        CUBLAS: lambda: torch.mm(M, N, out=P),
    }
    name, hold = f"bfloat16 {case.name}", 10 * HOLD_CYCLES  # a call that names its kernel is planned again: 1 ms
    rows = measured_rows(torch, works, P, exact, case.shape, name, "bfloat16", rounds, hold=hold)
    return [{**row, "vendor_kernel": kernel} if row["kernel"].endswith("mma.sync") else row for row in rows]


def fused(rounds: int) -> list[Row]:
    """gelu(M·N + bias) in one kernel, by torch.compile, and by torch's own operations."""
    torch = torch_for("bench mma")
    m, k, n = FUSED
    torch.manual_seed(0)
    M, N = torch.randn(m, k, device="cuda").bfloat16(), (torch.randn(k, n, device="cuda") / k**0.5).bfloat16()
    bias, P = torch.randn(n, device="cuda").bfloat16(), torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    gelu = torch.nn.functional.gelu
    compiled = torch.compile(lambda M, N, bias: gelu(torch.addmm(bias, M, N)))
    with torch.no_grad():
        works: dict[str, Work] = {
            OURS: lambda: matmul(M, N, out=P, bias=bias, activation="gelu"),
            "torch.compile": lambda: compiled(M, N, bias),
            "torch": lambda: gelu(torch.addmm(bias, M, N)),
        }
        exact = gelu(M.float() @ N.float() + bias.float())
        return measured_rows(torch, works, P, exact, FUSED, "bfloat16 gelu(M·N + bias)", "bfloat16", rounds)
