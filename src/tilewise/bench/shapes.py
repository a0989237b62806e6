"""Suite `shapes` on a CPU: plus_times over squares, ragged, skinny and tall shapes beside OpenBLAS and torch's BLAS."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from functools import partial
from itertools import cycle, product
from typing import Any

import numpy as np

from tilewise.bench import cold
from tilewise.bench.blas_threads import hold
from tilewise.bench.rows import Row, speed_row
from tilewise.bench.suites import Piece, Request, Shape
from tilewise.bench.timing import PAUSE, Work, bursts

SHAPES: tuple[Shape, ...] = (
    *((size,) * 3 for size in (256, 512, 1000, 1024, 1537, 2048, 4096)),
    (333, 555, 777),
    (16, 4096, 4096),
    (4096, 4096, 16),
    (128, 65536, 128),
    (1, 4096, 4096),
)  # fmt: skip
DTYPES = ("float32", "float64")


def pieces(request: Request) -> Iterator[Piece]:
    for dtype, shape in product(DTYPES, request.cubes or SHAPES):
        yield partial(candidate_rows, shape, dtype, request.threads, request.rounds(2, 5))


def beside_peers(
    shape: Shape, dtype: str, threads: int, rounds: int, pause: float = PAUSE, *, cold_too: bool = False
) -> Row:
    """Seconds of each candidate, and how many times faster than each peer tilewise is. The peers take as many threads;
    `mkl` is torch's where torch has it, and `torch` what it has elsewhere (on ARM). `cold_too`: `cold_over_` of each
    peer, on operands that no cache holds."""
    from tilewise.api import matmul, plan
    from tilewise.backends.cpu.runtime.pool import set_num_threads
    from tilewise.core.accuracy import relative_error

    set_num_threads(threads)
    hold(threads)
    m, k, n = shape
    rng = np.random.default_rng(0)
    M, N = (rng.standard_normal(extents).astype(dtype) for extents in ((m, k), (k, n)))
    P, Q = np.empty((m, n), dtype), np.empty((m, n), dtype)
    works: dict[str, Work] = {
        "tilewise": lambda: matmul(M, N, out=P),
        "openblas": lambda: np.matmul(M, N, out=Q),
    }
    torch = importlib.import_module("torch") if importlib.util.find_spec("torch") else None
    if torch is not None:
        torch.set_num_threads(threads)
        tM, tN = torch.from_numpy(M), torch.from_numpy(N)
        tP = torch.empty(m, n, dtype=tM.dtype)
        works[_blas_of(torch)] = lambda: torch.matmul(tM, tN, out=tP)
    seconds = bursts(works, rounds, threads, pause)
    matmul(M, N, out=P)
    rows = M[: max(1, min(m, 1 + 2**24 // (k * n)))].astype(np.float64)
    row: Row = {
        "shape": list(shape),
        "dtype": dtype,
        "threads": threads,
        "kernel": plan(M, N).kernel,
        "gflops": 2 * m * k * n / seconds["tilewise"] / 1e9,
        "relative_error": relative_error(P[: len(rows)], rows @ N.astype(np.float64)),
        "seconds": seconds,
        **_times_faster(seconds, "over_"),
    }
    pairs = cold.operands(shape, dtype) if cold_too else []
    if pairs:
        row["cold_seconds"] = bursts(_cold_works(pairs, P, Q, torch), rounds, threads, pause)
        row |= _times_faster(row["cold_seconds"], "cold_over_")
    return row


def _times_faster(seconds: dict[str, float], prefix: str) -> dict[str, float]:
    return {f"{prefix}{peer}": taken / seconds["tilewise"] for peer, taken in seconds.items() if peer != "tilewise"}


def _blas_of(torch: Any) -> str:
    return "mkl" if torch.backends.mkl.is_available() else "torch"


def _cold_works(pairs: list[tuple[Any, Any]], P: Any, Q: Any, torch: Any) -> dict[str, Work]:
    """The candidates, each of whose runs takes the next operands. They start a third apart: what one has just read is
    in the cache for the next."""
    from tilewise.api import matmul

    ours, theirs, others = (cycle(pairs[start:] + pairs[:start]) for start in (i * len(pairs) // 3 for i in range(3)))
    works: dict[str, Work] = {
        "tilewise": lambda: matmul(*next(ours), out=P),
        "openblas": lambda: np.matmul(*next(theirs), out=Q),
    }
    if torch is not None:
        tP = torch.from_numpy(np.empty_like(P))
        works[_blas_of(torch)] = lambda: torch.matmul(*map(torch.from_numpy, next(others)), out=tP)
    return works


def candidate_rows(shape: Shape, dtype: str, threads: int, rounds: int) -> list[Row]:
    """The same as one row for each candidate, for tables of speeds."""
    row = beside_peers(shape, dtype, threads, rounds)
    return [
        speed_row(f"{name} {dtype}", shape, dtype, seconds, threads=threads,
                  relative_error=row["relative_error"] if name == "tilewise" else None)
        for name, seconds in row["seconds"].items()
    ]  # fmt: skip
