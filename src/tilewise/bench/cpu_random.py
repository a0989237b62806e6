"""Suite `cpu-random`: plus_times over random shapes, beside OpenBLAS and torch's own BLAS.

Extents are log-uniform, so thin, flat and small products come as often as large ones; below MIN_STEPS the call costs
more than the product, and above MAX_STEPS one product would take longer than all others together. Each is timed on
operands that are in the cache, the same in every run, and on others in every run, which no cache holds ("cold").
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from itertools import product

from tilewise.bench.random_shapes import log_uniform
from tilewise.bench.rows import Row
from tilewise.bench.shapes import DTYPES, beside_peers
from tilewise.bench.suites import Piece, Request, Shape

LARGEST = 3000  # of an extent
MIN_STEPS, MAX_STEPS = 10**5, 3 * 10**9


def pieces(request: Request) -> Iterator[Piece]:
    for shape, dtype in product(draw(request.count, request.seed), DTYPES):
        yield partial(measure, shape, dtype, request.threads, request.rounds(3, 7))


def draw(count: int, seed: int, most: int | None = None) -> list[Shape]:
    """`count` shapes, m, k and n log-uniform from 1 to LARGEST, of no more than `most` steps."""
    rng, found = random.Random(seed), list[Shape]()
    while len(found) < count:
        m, k, n = (log_uniform(rng, 1, LARGEST) for _ in range(3))
        if MIN_STEPS <= m * k * n <= min(MAX_STEPS, most or MAX_STEPS):
            found.append((m, k, n))
    return found


def measure(shape: Shape, dtype: str, threads: int, rounds: int) -> list[Row]:
    """With shorter pauses than in `shapes`, because there are many shapes."""
    return [beside_peers(shape, dtype, threads, rounds, pause=0.1, cold_too=True)]
