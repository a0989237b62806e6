"""Suite `shapes` on the CPU: plus_times over squares, ragged, skinny and tall shapes beside OpenBLAS and torch's."""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any

import numpy as np

from tilewise.bench.blas_threads import hold
from tilewise.bench.bursts import PAUSE, bursts
from tilewise.bench.cold import operands

Shape = tuple[int, int, int]
Row = dict[str, Any]

SHAPES: tuple[Shape, ...] = (
    *((size,) * 3 for size in (256, 512, 1000, 1024, 1537, 2048, 4096)),
    (333, 555, 777),
    (16, 4096, 4096),
    (4096, 4096, 16),
    (128, 65536, 128),
    (1, 4096, 4096),
)  # fmt: skip
DTYPES = ("float32", "float64")


def shapes(
    which: Sequence[Shape] = SHAPES, dtypes: Sequence[str] = DTYPES, threads: int = 1, rounds: int = 5
) -> list[Row]:
    """One row a shape and dtype: seconds of each, and how many times faster than each peer tilewise is.

    The peers take as many threads; `mkl` is torch's where torch has it, and `torch` what it has elsewhere (on ARM).
    """
    return [row for dtype in dtypes for shape in which for row in contest(shape, dtype, threads, rounds)]


def contest(
    shape: Shape, dtype: str, threads: int, rounds: int, pause: float = PAUSE, *, cold: bool = False
) -> list[Row]:
    """`cold`: on operands that no cache holds as well, `cold_over_` of each peer."""
    from tilewise.api import matmul, plan
    from tilewise.backends.cpu.runtime.pool import set_num_threads
    from tilewise.core.accuracy import relative_error

    set_num_threads(threads)
    hold(threads)
    m, k, n = shape
    rng = np.random.default_rng(0)
    M, N = (rng.standard_normal(extents).astype(dtype) for extents in ((m, k), (k, n)))
    P, Q = np.empty((m, n), dtype), np.empty((m, n), dtype)
    works: dict[str, Callable[[], Any]] = {
        "tilewise": lambda: matmul(M, N, out=P),
        "openblas": lambda: np.matmul(M, N, out=Q),
    }
    torch = importlib.import_module("torch") if importlib.util.find_spec("torch") else None
    if torch is not None:
        torch.set_num_threads(threads)
        tM, tN = torch.from_numpy(M), torch.from_numpy(N)
        tP = torch.empty(m, n, dtype=tM.dtype)
        works["mkl" if torch.backends.mkl.is_available() else "torch"] = lambda: torch.matmul(tM, tN, out=tP)
    seconds = bursts(works, rounds, threads, pause)
    matmul(M, N, out=P)
    rows = M[: max(1, min(m, 1 + 2**24 // (k * n)))].astype(np.float64)
    error = relative_error(P[: len(rows)], rows @ N.astype(np.float64))
    row: Row = {
        "shape": list(shape),
        "dtype": dtype,
        "threads": threads,
        "kernel": plan(M, N).kernel,
        "gflops": 2 * m * k * n / seconds["tilewise"] / 1e9,
        "relative_error": error,
        "seconds": seconds,
    }
    row |= {f"over_{peer}": seconds[peer] / seconds["tilewise"] for peer in seconds if peer != "tilewise"}
    pairs = operands(shape, dtype) if cold else []
    if pairs:
        far = bursts(_turns(pairs, P, Q, torch), rounds, threads, pause)
        row["cold_seconds"] = far
        row |= {f"cold_over_{peer}": far[peer] / far["tilewise"] for peer in far if peer != "tilewise"}
    return [row]


def _turns(pairs: list[tuple[Any, Any]], P: Any, Q: Any, torch: Any) -> dict[str, Callable[[], Any]]:
    """The contestants, each of whose runs takes the next operands. Each begins elsewhere: what one has just read is
    near for whoever comes next."""
    from tilewise.api import matmul

    ours, theirs, others = (cycle(pairs[start:] + pairs[:start]) for start in starts(len(pairs)))
    works: dict[str, Callable[[], Any]] = {
        "tilewise": lambda: matmul(*next(ours), out=P),
        "openblas": lambda: np.matmul(*next(theirs), out=Q),
    }
    if torch is not None:
        tP = torch.from_numpy(np.empty_like(P))
        name = "mkl" if torch.backends.mkl.is_available() else "torch"
        works[name] = lambda: torch.matmul(*map(torch.from_numpy, next(others)), out=tP)
    return works


def starts(count: int, contestants: int = 3) -> list[int]:
    """Where each of them begins, as far from the others as can be."""
    return [number * count // contestants for number in range(contestants)]


def contestants(shape: Shape, dtype: str, threads: int, rounds: int) -> list[Row]:
    """The same as one row a contestant, as the tables of `bench` want it."""
    (row,) = contest(shape, dtype, threads, rounds)
    m, k, n = shape
    return [
        {
            "kernel": f"{name} {dtype}",
            "tile": 0,
            "shape": list(shape),
            "dtype": dtype,
            "threads": threads,
            "seconds": seconds,
            "tflops": 2 * m * k * n / seconds / 1e12,
            "share_of_peak": None,
            "relative_error": row["relative_error"] if name == "tilewise" else None,
            "predicted_seconds": None,
            "bytes_with_tiles": None,
        }
        for name, seconds in row["seconds"].items()
    ]


def geometric_mean(rows: Sequence[Row], key: str) -> float:
    values = [row[key] for row in rows if key in row]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")
