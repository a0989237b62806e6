"""What a call costs the host, as programs call: on tensors that lie somewhere new every time.

Four hundred operands and results are gone through in turn, with `out=` and without, ours and the framework's own
product alternating; the same on one set of tensors shows what a new address costs. The card is not waited for, and
works are small enough that it never is behind for long. Shapes are the suite's own and some that the clock draws.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Shape = tuple[int, int, int]
Row = dict[str, Any]

SHAPES: tuple[Shape, ...] = ((16,) * 3, (64, 256, 256), (65, 257, 255), (512,) * 3, (777,) * 3)
DTYPES = ("float32", "bfloat16")
TENSORS = 400
CALLS = 800
LIBRARIES = ("torch", "cupy")


@dataclass(frozen=True)
class Sets:
    """Operands and results in as many places."""

    M: list[Any]
    N: list[Any]
    P: list[Any]


def drawn(count: int, seed: int) -> list[Shape]:
    """Shapes of 1 to 1024, each extent log-uniform."""
    rng = random.Random(seed)
    return [tuple(round(2 ** rng.uniform(0, 10)) for _ in range(3)) for _ in range(count)]  # type: ignore[misc]


def contest(shape: Shape, dtype: str, library: str, rounds: int) -> list[Row]:
    """Microseconds of the host a call, ours and the library's, with the number of launches ours makes."""
    from tilewise.api import matmul, plan
    from tilewise.kernels.detours import recipe_of

    sets, theirs, wait = _sets(shape, dtype, library)
    launches = len(recipe_of(plan(sets.M[0], sets.N[0])).steps)
    kept: list[Any] = [None] * TENSORS
    works: dict[tuple[str, str], Callable[[int], Any]] = {}
    for who, product in (("ours", matmul), ("theirs", theirs)):
        works[who, "new memory"] = _fresh(product, sets, kept)
        works[who, "out"] = _into(product, sets, TENSORS)
        works[who, "out, same"] = _into(product, sets, 1)
    times: dict[tuple[str, str], list[float]] = {name: [] for name in works}
    for turn in range(rounds + 1):  # the first is for warming up
        for name in sorted(works, reverse=bool(turn % 2)):
            wait()
            start = time.perf_counter()
            work = works[name]
            for i in range(CALLS):
                work(i)
            times[name].append((time.perf_counter() - start) / CALLS)
            wait()
    seconds = {name: statistics.median(found[1:]) for name, found in times.items()}
    row: Row = {"shape": list(shape), "dtype": dtype, "library": library, "launches": launches}
    for how in ("out", "new memory", "out, same"):
        row |= {f"{who} {how}": seconds[who, how] * 1e6 for who in ("ours", "theirs")}
    return [row]


def line(row: Row) -> list[str]:
    """A row for people: each pair with its ratio."""
    pairs = [(row[f"ours {how}"], row[f"theirs {how}"]) for how in ("out", "new memory", "out, same")]
    case = f"{row['library']} {row['dtype']} {'×'.join(map(str, row['shape']))}"
    return [case, str(row["launches"]), *(f"{ours:.1f} / {theirs:.1f} = {ours / theirs:.2f}" for ours, theirs in pairs)]


HEAD = ["host µs a call, ours / theirs", "launches", "out=", "new memory", "out=, same tensors"]


def _fresh(product: Any, sets: Sets, kept: list[Any]) -> Callable[[int], None]:
    M, N = sets.M, sets.N

    def work(i: int) -> None:
        kept[i % TENSORS] = product(M[i % TENSORS], N[7 * i % TENSORS])

    return work


def _into(product: Any, sets: Sets, places: int) -> Callable[[int], None]:
    M, N, P = sets.M, sets.N, sets.P

    def work(i: int) -> None:
        product(M[i % places], N[7 * i % places], out=P[i % places])

    return work


def _sets(shape: Shape, dtype: str, library: str) -> tuple[Sets, Any, Callable[[], Any]]:
    m, k, n = shape
    if library == "torch":
        import torch

        number = getattr(torch, dtype)

        def made(rows: int, columns: int) -> list[Any]:
            return [torch.randn(rows, columns, device="cuda").to(number) for _ in range(TENSORS)]

        return Sets(made(m, k), made(k, n), made(m, n)), torch.mm, torch.cuda.synchronize
    import cupy

    def drawn_by_cupy(rows: int, columns: int) -> list[Any]:
        return [cupy.random.standard_normal((rows, columns), dtype=cupy.float32) for _ in range(TENSORS)]

    sets = Sets(drawn_by_cupy(m, k), drawn_by_cupy(k, n), drawn_by_cupy(m, n))
    return sets, cupy.matmul, cupy.cuda.get_current_stream().synchronize
