"""Suites `semirings-random` and `halves-random`: other semirings, and half precision, over random shapes on a CPU.

A semiring is compared with two limits. The port limit is what the cores' arithmetic alone allows. The floor adds the
store of each cell after its k steps (on Neoverse-N1 a vector store takes half a cycle of a port that the arithmetic
needs: a fifth of the time of k = 2); or, where that takes longer, it is the time to read M and N and write P once
(`touch`). Integers have no NaN to skip, so the first of their k steps needs no min. All are timed in the same bursts.
Halves are compared with float32: they have half its bytes and the same sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import dtype_named
from tilewise.api import matmul, plan
from tilewise.backends.cpu.peak import peak_work
from tilewise.backends.cpu.runtime.pool import set_num_threads
from tilewise.backends.cpu.touch import touch_work
from tilewise.bench.rows import Row
from tilewise.bench.shapes import draw
from tilewise.bench.suites import Piece, Request, Shape
from tilewise.bench.timing import Work, bursts

CASES = (
    ("min_plus", "float32"),
    ("min_plus", "float64"),
    ("max_min", "float32"),
    ("max_times", "float32"),
    ("min_plus", "int32"),
)
HALVES = ("float16", "bfloat16")
LARGEST_STEPS = 3 * 10**8  # of a product: a few tenths of a second


def pieces(request: Request) -> Iterator[Piece]:
    rounds = request.rounds(3, 7)
    for shape in draw(request.count, request.seed, LARGEST_STEPS):
        if request.suite == "halves-random":
            yield partial(halves, shape, request.threads, rounds)
            continue
        for ring, dtype in CASES:
            yield partial(against_limits, shape, ring, dtype, request.threads, rounds)


def against_limits(shape: Shape, ring: str, dtype: str, threads: int, rounds: int) -> list[Row]:
    set_num_threads(threads)
    m, k, n = shape
    rng = np.random.default_rng(0)
    M, N = (rng.uniform(1, 100, extents).astype(dtype) for extents in ((m, k), (k, n)))
    P, Q = np.empty((m, n), dtype), np.empty((m, n), dtype)
    algebra = find_semiring(ring).over(dtype_named(dtype))
    (peak, steps), (storing, _) = peak_work(algebra, threads), peak_work(algebra, threads, stores=True)
    works: dict[str, Work] = {
        "tilewise": partial(matmul, M, N, semiring=ring, out=P),
        "touch": touch_work(M, N, Q, threads),
        "peak": peak,
        "storing": storing,
    }
    seconds = bursts(works, rounds, threads, pause=0.1)
    ports, store = m * k * n * seconds["peak"] / steps, max(0.0, 2 * (seconds["storing"] / seconds["peak"] - 1))
    first = 0.5 if np.dtype(dtype).kind in "iu" else 0.0
    cells = ports * (1 + (store - first) / k)  # a store takes as long as so many steps of a vector
    floor = max(cells, seconds["touch"])
    taken = seconds["tilewise"]
    return [
        {
            "shape": list(shape),
            "semiring": ring,
            "dtype": dtype,
            "threads": threads,
            "kernel": plan(M, N, semiring=find_semiring(ring)).kernel,
            "seconds": {"tilewise": taken, "ports": ports, "stored": cells, "touch": seconds["touch"]},
            "share_of_ports": ports / taken,
            "share_of_floor": floor / taken,
        }
    ]


def halves(shape: Shape, threads: int, rounds: int) -> list[Row]:
    """One row for each half, timed in the same bursts as float32."""
    from ml_dtypes import bfloat16

    set_num_threads(threads)
    m, k, n = shape
    rng = np.random.default_rng(0)
    M, N = (rng.standard_normal(extents, np.float32) for extents in ((m, k), (k, n)))
    works: dict[str, Work] = {}
    kernels = {}
    for name, dtype in (("float32", np.float32), ("float16", np.float16), ("bfloat16", bfloat16)):
        half_m, half_n, P = M.astype(dtype), N.astype(dtype), np.empty((m, n), dtype)
        works[name] = partial(matmul, half_m, half_n, out=P)
        kernels[name] = plan(half_m, half_n).kernel
    seconds = bursts(works, rounds, threads, pause=0.1)
    return [
        {"shape": list(shape), "dtype": name, "threads": threads, "kernel": kernels[name], "seconds": seconds,
         "over_float32": seconds["float32"] / seconds[name]}
        for name in HALVES
    ]  # fmt: skip
