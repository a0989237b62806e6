"""Suites `semirings-random` and `halves-random`: other algebras, and half precision, over shapes that nobody chose.

A semiring is held against two limits. The port limit is what the cores' arithmetic alone allows. The floor is what a
product cannot do without beside it: storing each cell once, after its k steps (on Neoverse-N1 a vector's store takes
half a cycle of a port that the arithmetic wants: a fifth of the time of k = 2); or, where that takes longer, reading
M and N and writing P straight through (`touch`). Integers have no NaN to skip, so the first of their k steps is no min.
All are timed in the same bursts. Halves are held against float32: they have half its bytes and the same sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from tilewise.bench.bursts import bursts
from tilewise.bench.cpu_random import draw
from tilewise.bench.shapes import Shape, geometric_mean

Row = dict[str, Any]

CASES = (
    ("min_plus", "float32"),
    ("min_plus", "float64"),
    ("max_min", "float32"),
    ("max_times", "float32"),
    ("min_plus", "int32"),
)
HALVES = ("float16", "bfloat16")
BARS = {"semirings-random": ("share_of_floor", 0.88), "halves-random": ("over_float32", 1.0)}
HEAD = ["semiring", "dtype", "products", "mean of ports", "mean of the floor", "below", "lowest"]
HEAD_HALVES = ["dtype", "products", "mean over float32", "below", "lowest"]
WORST_HEAD = ["m×k×n", "of", "kernel", "of ports", "of the floor"]
WORST_HALVES = ["m×k×n", "of", "kernel", "over float32"]
LARGEST_STEPS = 3 * 10**8  # of a product: a few tenths of a second


def pieces(suite: str, count: int, seed: int, quick: bool, threads: int) -> Iterator[Callable[[], list[Row]]]:
    rounds = 3 if quick else 7
    for shape in draw(count, seed, LARGEST_STEPS):
        if suite == "halves-random":
            yield partial(halves, shape, threads, rounds)
            continue
        for ring, dtype in CASES:
            yield partial(against_limits, shape, ring, dtype, threads, rounds)


def against_limits(shape: Shape, ring: str, dtype: str, threads: int, rounds: int) -> list[Row]:
    from tilewise.algebra.builtin import find_semiring
    from tilewise.algebra.dtypes import dtype_named
    from tilewise.api import matmul, plan
    from tilewise.backends.cpu.peak import peak_work
    from tilewise.backends.cpu.runtime.pool import set_num_threads
    from tilewise.backends.cpu.touch import touch_work

    set_num_threads(threads)
    m, k, n = shape
    rng = np.random.default_rng(0)
    M, N = (rng.uniform(1, 100, extents).astype(dtype) for extents in ((m, k), (k, n)))
    P, Q = np.empty((m, n), dtype), np.empty((m, n), dtype)
    algebra = find_semiring(ring).over(dtype_named(dtype))
    (peak, steps), (storing, _) = peak_work(algebra, threads), peak_work(algebra, threads, stores=True)
    works: dict[str, Callable[[], Any]] = {
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
    """A row a half; all three in the same bursts."""
    from ml_dtypes import bfloat16

    from tilewise.api import matmul, plan
    from tilewise.backends.cpu.runtime.pool import set_num_threads

    set_num_threads(threads)
    m, k, n = shape
    rng = np.random.default_rng(0)
    M, N = (rng.standard_normal(extents, np.float32) for extents in ((m, k), (k, n)))
    works: dict[str, Callable[[], Any]] = {}
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


def summary(suite: str, rows: Sequence[Row]) -> list[list[str]]:
    """A line a semiring and dtype: products, geometric means, how many are below the bar, and the lowest."""
    key, bar = BARS[suite]
    names = ("semiring", "dtype", "share_of_ports") if suite == "semirings-random" else ("dtype",)
    said = []
    for case in dict.fromkeys((row.get("semiring", ""), row["dtype"]) for row in rows):
        of = [row for row in rows if (row.get("semiring", ""), row["dtype"]) == case]
        shares = [row[key] for row in of]
        short = sum(share < bar for share in shares)
        ports = [f"{geometric_mean(of, 'share_of_ports'):.3f}"] if "share_of_ports" in names else []
        said.append(
            [*filter(None, case), str(len(of)), *ports, f"{geometric_mean(of, key):.3f}",
             f"{short} ({100 * short / len(of):.0f} %) below {bar}", f"{min(shares):.2f}"]
        )  # fmt: skip
    return said


def worst(suite: str, rows: Sequence[Row], count: int = 10) -> list[list[str]]:
    """The products that are furthest behind, and which kernel made them."""
    key, _ = BARS[suite]
    found = sorted(rows, key=lambda row: row[key])[:count]
    return [
        ["×".join(map(str, row["shape"])), f"{row.get('semiring', '')} {row['dtype']}".strip(), row["kernel"],
         *(f"{row[name]:.2f}" for name in ("share_of_ports", "share_of_floor", "over_float32") if name in row)]
        for row in found
    ]  # fmt: skip
