"""Suite `cpu-random`: plus_times over shapes that nobody chose, beside OpenBLAS and torch's own BLAS.

Extents are log-uniform, so thin, flat and small products come as often as large ones; below MIN_STEPS a call is the
cost, and above MAX_STEPS one product would take longer than all others together. Each is timed on operands that are
near, the same in every run, and on others in every run, which no cache holds ("cold").
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

from tilewise.bench.shapes import DTYPES, Shape, contest, geometric_mean

Row = dict[str, Any]

LARGEST = 3000  # of an extent
MIN_STEPS, MAX_STEPS = 10**5, 3 * 10**9
SHORT = 0.9  # what counts as short of a peer
PEERS = ("openblas", "mkl", "torch")  # of the last two, whichever torch was built with
AGAINST = {f"{how}over_{peer}": peer + (", cold" if how else "") for how in ("", "cold_") for peer in PEERS}


def draw(count: int, seed: int, most: int | None = None) -> list[Shape]:
    """`count` shapes, m, k and n log-uniform from 1 to LARGEST, of no more than `most` steps."""
    chance, found = random.Random(seed), list[Shape]()
    while len(found) < count:
        m, k, n = (round(math.exp(chance.uniform(0, math.log(LARGEST)))) for _ in range(3))
        if MIN_STEPS <= m * k * n <= min(MAX_STEPS, most or MAX_STEPS):
            found.append((m, k, n))
    return found


def measure(shape: Shape, dtype: str, threads: int, rounds: int) -> list[Row]:
    """A row as of `shapes`, shorter in the pauses: there are many of them."""
    return contest(shape, dtype, threads, rounds, pause=0.1, cold=True)


def summary(rows: Sequence[Row]) -> list[list[str]]:
    """A line a dtype and peer: products, geometric mean, how many are short of the peer, and the lowest."""
    return [
        [dtype, against, str(len(ratios)), f"{geometric_mean(of, key):.3f}",
         f"{sum(x < SHORT for x in ratios)} ({100 * sum(x < SHORT for x in ratios) / len(ratios):.0f} %)",
         f"{min(ratios):.2f}"]
        for dtype in DTYPES
        for key, against in AGAINST.items()
        for of in ([row for row in rows if row["dtype"] == dtype and key in row],)
        for ratios in ([row[key] for row in of],)
        if ratios
    ]  # fmt: skip


def worst(rows: Sequence[Row], count: int = 10) -> Iterator[list[str]]:
    """The products that are furthest behind, and which kernel made them."""
    ratios = [(row[key], against, row) for row in rows for key, against in AGAINST.items() if key in row]
    for ratio, against, row in sorted(ratios, key=lambda found: found[0])[:count]:
        yield ["×".join(map(str, row["shape"])), row["dtype"], row["kernel"], against, f"{ratio:.2f}"]
