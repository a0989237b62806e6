"""Suite `calls`: the overhead of a call: products of 8 × 8, by library and by keyword, beside the library's own
product.

One timing is the mean over a burst of calls. A burst begins with a call that is not timed, because the candidates
before it have evicted its code and data from the caches: on a burst of 16 calls of 20 µs that added 2 to 6 µs a call.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from tilewise.algebra.expression import maximum
from tilewise.algebra.modular import modular
from tilewise.algebra.semiring import Semiring
from tilewise.api import matmul
from tilewise.bench.suites import Piece, Request, Row
from tilewise.bench.timing import Work, host_seconds, medians

SIDE = 8
BURST_SECONDS = 0.0004  # below the scheduler's time slice, so that most bursts are not preempted
Case = tuple[str, Callable[[], Any], Callable[[], Any] | None]  # keywords, ours, the library's own


def pieces(request: Request) -> Iterator[Piece]:
    """NumPy, and torch and JAX if installed."""
    for library in ("numpy", *(name for name in ("torch", "jax") if importlib.util.find_spec(name))):
        yield partial(by_keyword, library, request.rounds(3, 15))


def by_keyword(library: str, rounds: int) -> list[Row]:
    """One row for each combination of keywords."""
    cases = list({"numpy": _numpy, "torch": _torch, "jax": _jax}[library]())
    works: dict[tuple[int, str], Work] = {}
    for number, (_, ours, own) in enumerate(cases):
        works[number, "ours"] = ours
        if own is not None:
            works[number, "own"] = own
    counts = {name: _count(work) for name, work in works.items()}
    seconds = medians(works, rounds, lambda name: [_mean(works[name], counts[name])])
    return [
        {
            "library": library,
            "keywords": keywords,
            "microseconds": 1e6 * seconds[number, "ours"],
            "own_microseconds": None if own is None else 1e6 * seconds[number, "own"],
        }
        for number, (keywords, _, own) in enumerate(cases)
    ]


def _mean(work: Work, count: int) -> float:
    work()
    return host_seconds(work, count)


def _count(work: Work) -> int:
    """The number of calls in a burst; three calls before plan and compile."""
    for _ in range(3):
        work()
    return max(1, round(BURST_SECONDS / max(1e-7, min(_mean(work, 5) for _ in range(3)))))


def _numpy() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    A, B, bias, out = rng.random((SIDE, SIDE)), rng.random((SIDE, SIDE)), rng.random(SIDE), np.empty((SIDE, SIDE))
    whole, lists = (A * 9).astype(np.int32), (A.tolist(), B.tolist())
    best = Semiring("best_chance", maximum, lambda x, y: x * y, 0)
    product, own = matmul, np.matmul
    yield "", lambda: product(A, B), lambda: own(A, B)
    for keywords in (
        {"semiring": "min_plus"}, {"semiring": best}, {"semiring": "min_plus", "return_arg": True}, {"alpha": 2.0},
        {"bias": bias}, {"activation": "relu"}, {"activation": "gelu"},
        {"alpha": 2.0, "bias": bias, "activation": "gelu"}, {"dtype": "float32"},
        {"precision": "ieee"}, {"nonnegative": True}, {"device": "cpu"}, {"kernel": "packed"}, {"tile": 8},
    ):  # fmt: skip
        more: dict[str, Any] = dict(keywords)
        yield _keywords_text(more), lambda more=more: product(A, B, **more), None  # type: ignore[misc]
    yield "out", lambda: product(A, B, out=out), lambda: own(A, B, out=out)
    yield "out, accumulate", lambda: product(A, B, out=out, accumulate=True), None
    yield "out, bias", lambda: product(A, B, out=out, bias=bias), None
    single, scale, modulo = A.astype(np.float32), bias.astype(np.float32), modular(97)
    yield "scales=(number, number)", lambda: product(single, single, scales=(2.0, 0.5)), None
    yield "scales=(rows, columns)", lambda: product(single, single, scales=(scale, scale)), None
    yield "int32, modular(97)", lambda: product(whole, whole, semiring=modulo), None
    yield "int32, min_plus", lambda: product(whole, whole, semiring="min_plus"), None
    yield "stack", lambda: product(A[None], B), lambda: own(A[None], B)
    yield "lists", lambda: product(*lists), lambda: own(*lists)


def _keywords_text(keywords: dict[str, Any]) -> str:
    names = {"semiring": "own semiring", "bias": "bias", "return_arg": "return_arg"}
    return ", ".join(names.get(k, k) if not isinstance(v, (str, float)) else f"{k}={v}" for k, v in keywords.items())


def _torch() -> Iterator[Case]:
    import torch

    A, B = torch.rand(SIDE, SIDE), torch.rand(SIDE, SIDE)
    G, H = A.clone().requires_grad_(), B.clone().requires_grad_()
    bias, out, product = torch.rand(SIDE), torch.empty(SIDE, SIDE), matmul
    yield "", lambda: product(A, B), lambda: torch.mm(A, B)
    for keywords in (
        {"semiring": "min_plus"}, {"semiring": "min_plus", "return_arg": True}, {"alpha": 2.0}, {"bias": bias},
        {"alpha": 2.0, "bias": bias, "activation": "gelu"},
    ):  # fmt: skip
        more: dict[str, Any] = dict(keywords)
        yield _keywords_text(more), lambda more=more: product(A, B, **more), None  # type: ignore[misc]
    yield "out", lambda: product(A, B, out=out), lambda: torch.mm(A, B, out=out)
    yield "requires_grad", lambda: product(G, H), lambda: torch.mm(G, H)
    yield "requires_grad, min_plus", lambda: product(G, H, semiring="min_plus"), None


def _jax() -> Iterator[Case]:
    import jax

    jax.config.update("jax_default_device", jax.devices("cpu")[0])  # even if there is a card
    rng = np.random.default_rng(0)
    A, B = (jax.numpy.asarray(rng.random((SIDE, SIDE), np.float32)) for _ in range(2))
    ours, own = jax.jit(lambda x, y: matmul(x, y)), jax.jit(jax.numpy.matmul)
    paths = jax.jit(lambda x, y: matmul(x, y, semiring="min_plus"))
    yield "", _finished(lambda: matmul(A, B)), _finished(lambda: jax.numpy.matmul(A, B))
    yield "semiring=min_plus", _finished(lambda: matmul(A, B, semiring="min_plus")), None
    yield "jit", _finished(lambda: ours(A, B)), _finished(lambda: own(A, B))
    yield "jit, semiring=min_plus", _finished(lambda: paths(A, B)), None


def _finished(work: Callable[[], Any]) -> Callable[[], Any]:
    """Wait for the result: JAX returns arrays before they are computed."""
    return lambda: work().block_until_ready()
