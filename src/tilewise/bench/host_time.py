"""Suite `host`: host time of a call, on tensors at new addresses every time, as in real programs.

The calls go through four hundred operands and results, with `out=` and without, ours and the framework's own product
interleaved; the same on one set of tensors shows what a new address costs. Calls do not wait for the card, and products
are small enough that it is never far behind. Shapes are the suite's own and some drawn from --seed.
"""

from __future__ import annotations

import importlib.util
import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

from tilewise.api import matmul, plan
from tilewise.bench.random_shapes import log_uniform
from tilewise.bench.suites import Piece, Request, Row, Shape
from tilewise.bench.timing import medians
from tilewise.kernels.recipes import recipe_of

SHAPES: tuple[Shape, ...] = ((16,) * 3, (64, 256, 256), (65, 257, 255), (512,) * 3, (777,) * 3)
DTYPES = {"torch": ("float32", "bfloat16"), "cupy": ("float32",)}
TENSORS = 400
CALLS = 800
KINDS = ("out", "new memory", "out, same")


Tensors = tuple[list[Any], list[Any], list[Any]]  # M, N and P, each at as many addresses


def pieces(request: Request) -> Iterator[Piece]:
    """The suite's shapes and twenty random ones."""
    rng = random.Random(request.seed)
    drawn = [(log_uniform(rng, 1, 1024), log_uniform(rng, 1, 1024), log_uniform(rng, 1, 1024)) for _ in range(20)]
    for library, dtypes in DTYPES.items():
        if importlib.util.find_spec(library):
            for dtype, shape in product(dtypes, request.cubes or (*SHAPES, *drawn)):
                yield partial(call_times, shape, dtype, library, request.rounds(2, 4))


def call_times(shape: Shape, dtype: str, library: str, rounds: int) -> list[Row]:
    """One row: host microseconds per call, ours and the library's, and the number of our launches."""
    tensors, theirs, wait = _tensors(shape, dtype, library)
    launches = len(recipe_of(plan(tensors[0][0], tensors[1][0])).steps)
    works: dict[tuple[str, str], Callable[[int], Any]] = {}
    for who, multiply in (("ours", matmul), ("theirs", theirs)):
        works[who, "new memory"] = _fresh(multiply, tensors)
        works[who, "out"] = _into(multiply, tensors, TENSORS)
        works[who, "out, same"] = _into(multiply, tensors, 1)

    def timed(name: tuple[str, str]) -> list[float]:
        wait()
        work, start = works[name], time.perf_counter()
        for i in range(CALLS):
            work(i)
        seconds = (time.perf_counter() - start) / CALLS
        wait()
        return [seconds]

    medians(works, 1, timed)  # warms up
    seconds = medians(works, rounds, timed)
    times = {f"{who} {kind}": seconds[who, kind] * 1e6 for kind in KINDS for who in ("ours", "theirs")}
    return [{"shape": list(shape), "dtype": dtype, "library": library, "launches": launches, **times}]


def _fresh(multiply: Any, tensors: Tensors) -> Callable[[int], None]:
    M, N, _ = tensors
    kept: list[Any] = [None] * TENSORS

    def work(i: int) -> None:
        kept[i % TENSORS] = multiply(M[i % TENSORS], N[7 * i % TENSORS])

    return work


def _into(multiply: Any, tensors: Tensors, places: int) -> Callable[[int], None]:
    M, N, P = tensors

    def work(i: int) -> None:
        multiply(M[i % places], N[7 * i % places], out=P[i % places])

    return work


def _tensors(shape: Shape, dtype: str, library: str) -> tuple[Tensors, Any, Callable[[], Any]]:
    m, k, n = shape
    draw: Callable[[int, int], Any]
    if library == "torch":
        import torch

        draw = lambda rows, cols: torch.randn(rows, cols, device="cuda").to(getattr(torch, dtype))  # noqa: E731
        multiply, wait = torch.mm, torch.cuda.synchronize
    else:
        import cupy

        draw = lambda rows, cols: cupy.random.standard_normal((rows, cols), dtype=cupy.float32)  # noqa: E731
        multiply, wait = cupy.matmul, cupy.cuda.get_current_stream().synchronize
    M, N, P = ([draw(*side) for _ in range(TENSORS)] for side in ((m, k), (k, n), (m, n)))
    return (M, N, P), multiply, wait
