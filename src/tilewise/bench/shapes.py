"""Products on a CPU: `shapes` (plus_times over squares, ragged, skinny and tall shapes) and `cpu-random`, both beside
OpenBLAS and torch's BLAS; `semirings-random` against the limits of the machine; `halves-random` against float32.

Random extents are log-uniform, so thin, flat and small products come as often as large ones; below MIN_STEPS the call
costs more than the product, and above MAX_STEPS one product would take longer than all others together. They are timed
on operands that are in the cache, the same in every run, and on others in every run, which no cache holds ("cold"), as
one expert's weights after another's.

A semiring is compared with two limits. The port limit is what the cores' arithmetic alone allows. The floor adds the
store of each cell after its k steps (on Neoverse-N1 a vector store takes half a cycle of a port that the arithmetic
needs: a fifth of the time of k = 2); or, where that takes longer, it is the time to read M and N and write P once
(`touch`). Integers have no NaN to skip, so the first of their k steps needs no min. All are timed in the same bursts.
Halves have half the bytes of float32 and the same sums.
"""

from __future__ import annotations

import importlib
import importlib.util
import random
from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import cycle, product
from typing import Any

import numpy as np

from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import dtype_named
from tilewise.api import matmul, plan
from tilewise.backends.cpu.peak import peak_work
from tilewise.backends.cpu.runtime.pool import set_num_threads
from tilewise.backends.cpu.touch import touch_work
from tilewise.bench.blas_threads import set_blas_threads
from tilewise.bench.random_shapes import log_uniform
from tilewise.bench.suites import Piece, Request, Row, Shape, speed_row
from tilewise.bench.timing import PAUSE, Work, bursts
from tilewise.core.accuracy import relative_error

SHAPES: tuple[Shape, ...] = (
    *((size,) * 3 for size in (256, 512, 1000, 1024, 1537, 2048, 4096)),
    (333, 555, 777),
    (16, 4096, 4096),
    (4096, 4096, 16),
    (128, 65536, 128),
    (1, 4096, 4096),
)  # fmt: skip
DTYPES = ("float32", "float64")
LARGEST = 3000  # random extent
MIN_STEPS, MAX_STEPS = 10**5, 3 * 10**9  # of a random product
SHORT_PAUSE = 0.1  # seconds, between bursts of random products
COLD_BYTES = 3 * 2**26  # of operands of a dtype: more than the caches of most machines
SEMIRINGS = (
    *(("min_plus", dtype) for dtype in ("float32", "float64", "int32")),
    ("max_min", "float32"),
    ("max_times", "float32"),
)
HALVES = ("float16", "bfloat16")
LARGEST_STEPS = 3 * 10**8  # of a random product in a semiring or a half: a few tenths of a second
FEWEST_PAIRS, MOST_PAIRS = 4, 4096  # of cold operands; with fewer pairs, one pair exceeds the caches anyway


def pieces(request: Request) -> Iterator[Piece]:
    if request.suite == "shapes":
        for dtype, shape in product(DTYPES, request.cubes or SHAPES):
            yield partial(candidate_rows, shape, dtype, request.threads, request.rounds(2, 5))
        return
    how: dict[str, Any] = {"threads": request.threads, "rounds": request.rounds(3, 7)}
    most = MAX_STEPS if request.suite == "cpu-random" else LARGEST_STEPS
    for shape in draw(request.count, request.seed, most):
        if request.suite == "halves-random":
            yield partial(halves, shape, **how)
        elif request.suite == "semirings-random":
            yield from (partial(against_limits, shape, ring, dtype, **how) for ring, dtype in SEMIRINGS)
        else:  # shorter pauses, because there are many shapes
            yield from (partial(beside_peers, shape, dtype, **how, pause=SHORT_PAUSE, cold=True) for dtype in DTYPES)


def draw(count: int, seed: int, most: int) -> list[Shape]:
    """`count` shapes, m, k and n log-uniform from 1 to LARGEST, of no more than `most` steps."""
    rng, found = random.Random(seed), list[Shape]()
    while len(found) < count:
        m, k, n = (log_uniform(rng, 1, LARGEST) for _ in range(3))
        if MIN_STEPS <= m * k * n <= most:
            found.append((m, k, n))
    return found


def operands(shape: Shape, dtype: str, threads: int, weights: bool = False) -> tuple[Any, Any, Any]:
    """M and N, normally distributed or positive weights, and memory for P; sets our number of threads."""
    set_num_threads(threads)
    m, k, n = shape
    rng, number = np.random.default_rng(0), dtype_named(dtype).numpy
    drawn: Any = partial(rng.uniform, 1, 100) if weights else rng.standard_normal
    return drawn(size=(m, k)).astype(number), drawn(size=(k, n)).astype(number), np.empty((m, n), number)


def beside_peers(
    shape: Shape, dtype: str, threads: int, rounds: int, pause: float = PAUSE, *, cold: bool = False
) -> list[Row]:
    """One row: seconds of each candidate, and tilewise's speed relative to each peer with as many threads. `mkl` or
    `torch`: torch's BLAS, MKL or another (on ARM). `cold`: also on operands that no cache holds, as `cold_over_`."""
    set_blas_threads(threads)
    m, k, n = shape
    M, N, P = operands(shape, dtype, threads)
    Q = np.empty_like(P)
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
        **_row_of(shape, dtype, threads, plan(M, N).kernel),
        "gflops": 2 * m * k * n / seconds["tilewise"] / 1e9,
        "relative_error": relative_error(P[: len(rows)], rows @ N.astype(np.float64)),
        "seconds": seconds,
        **_times_faster(seconds, "over_"),
    }
    pairs = cold_operands(shape, dtype) if cold else []
    if pairs:
        row["cold_seconds"] = bursts(_cold_works(pairs, P, Q, torch), rounds, threads, pause)
        row |= _times_faster(row["cold_seconds"], "cold_over_")
    return [row]


def _times_faster(seconds: dict[str, float], prefix: str) -> dict[str, float]:
    return {f"{prefix}{peer}": taken / seconds["tilewise"] for peer, taken in seconds.items() if peer != "tilewise"}


def _blas_of(torch: Any) -> str:
    return "mkl" if torch.backends.mkl.is_available() else "torch"


def _cold_works(pairs: list[tuple[Any, Any]], P: Any, Q: Any, torch: Any) -> dict[str, Work]:
    """The candidates; each run takes the next operands. Candidates start a third of the list apart, because one's
    operands would be in the cache for the next."""
    ours, theirs, others = (cycle(pairs[start:] + pairs[:start]) for start in (i * len(pairs) // 3 for i in range(3)))
    works: dict[str, Work] = {
        "tilewise": lambda: matmul(*next(ours), out=P),
        "openblas": lambda: np.matmul(*next(theirs), out=Q),
    }
    if torch is not None:
        tP = torch.from_numpy(np.empty_like(P))
        works[_blas_of(torch)] = lambda: torch.matmul(*map(torch.from_numpy, next(others)), out=tP)
    return works


def cold_operands(shape: Shape, dtype: str) -> list[tuple[Any, Any]]:
    """Pairs of M and N in random order; none if a pair is too large for a cache anyway."""
    m, k, n = shape
    memory, each = _cold_memory(dtype), k * (m + n) + 64
    count = min(MOST_PAIRS, len(memory) // each)
    if count < FEWEST_PAIRS:
        return []
    stride = len(memory) // count
    starts = [stride * i for i in range(count)]
    random.Random(0).shuffle(starts)
    return [
        (memory[at : at + m * k].reshape(m, k), memory[at + m * k : at + k * (m + n)].reshape(k, n)) for at in starts
    ]


@lru_cache(maxsize=2)
def _cold_memory(dtype: str) -> Any:
    number = np.float64 if dtype == "float64" else np.float32
    some = np.random.default_rng(0).random(1 << 16, number)
    return np.resize(some, COLD_BYTES // some.itemsize)


def candidate_rows(shape: Shape, dtype: str, threads: int, rounds: int) -> list[Row]:
    """`beside_peers` as one row for each candidate, for tables of speeds."""
    (row,) = beside_peers(shape, dtype, threads, rounds)
    return [
        speed_row(f"{name} {dtype}", shape, dtype, seconds, threads=threads,
                  relative_error=row["relative_error"] if name == "tilewise" else None)
        for name, seconds in row["seconds"].items()
    ]  # fmt: skip


def against_limits(shape: Shape, ring: str, dtype: str, threads: int, rounds: int) -> list[Row]:
    m, k, n = shape
    M, N, P = operands(shape, dtype, threads, weights=True)
    algebra = find_semiring(ring).over(dtype_named(dtype))
    (peak, steps), (storing, _) = peak_work(algebra, threads), peak_work(algebra, threads, stores=True)
    works: dict[str, Work] = {
        "tilewise": partial(matmul, M, N, semiring=ring, out=P),
        "touch": touch_work(M, N, np.empty_like(P), threads),
        "peak": peak,
        "storing": storing,
    }
    seconds = bursts(works, rounds, threads, SHORT_PAUSE)
    ports, store = m * k * n * seconds["peak"] / steps, max(0.0, 2 * (seconds["storing"] / seconds["peak"] - 1))
    first = 0.5 if np.dtype(dtype).kind in "iu" else 0.0
    cells = ports * (1 + (store - first) / k)  # a store takes as long as so many steps of a vector
    taken = seconds["tilewise"]
    return [
        {
            **_row_of(shape, dtype, threads, plan(M, N, semiring=find_semiring(ring)).kernel),
            "semiring": ring,
            "seconds": {"tilewise": taken, "ports": ports, "stored": cells, "touch": seconds["touch"]},
            "share_of_ports": ports / taken,
            "share_of_floor": max(cells, seconds["touch"]) / taken,
        }
    ]


def halves(shape: Shape, threads: int, rounds: int) -> list[Row]:
    """One row for each half, timed in the same bursts as float32."""
    made = {name: operands(shape, name, threads) for name in ("float32", *HALVES)}
    works: dict[str, Work] = {name: partial(matmul, M, N, out=P) for name, (M, N, P) in made.items()}
    seconds = bursts(works, rounds, threads, SHORT_PAUSE)
    return [
        {**_row_of(shape, name, threads, plan(*made[name][:2]).kernel), "seconds": seconds,
         "over_float32": seconds["float32"] / seconds[name]}
        for name in HALVES
    ]  # fmt: skip


def _row_of(shape: Shape, dtype: str, threads: int, kernel: str) -> Row:
    return {"shape": list(shape), "dtype": dtype, "threads": threads, "kernel": kernel}
