"""What a call costs beside its arithmetic: products of 8 × 8, by library and by keyword, beside the library's own.

A round times each contestant in turn; the median over rounds of the mean over a burst of calls is what counts. A burst
begins with a call that is not timed, whose code and data the contestants before it have driven out of the caches: on a
burst of 16 calls of 20 µs it weighed 2 to 6 µs a call, by chance of where things lay.
"""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tilewise

SIDE = 8
BURST_SECONDS = 0.0004  # shorter than a turn of the scheduler: on a busy machine most bursts are whole
Case = tuple[str, str, Callable[[], Any], Callable[[], Any] | None]  # library, keywords, ours, its own


def contest(library: str, rounds: int) -> list[dict[str, Any]]:
    """One row for each way of calling from this library."""
    cases = list({"numpy": _numpy, "torch": _torch, "jax": _jax}[library]())
    times: list[tuple[list[float], list[float]]] = [([], []) for _ in cases]
    counts = [[_count(work) for work in case[2:] if work is not None] for case in cases]
    for _ in range(rounds):
        for case, found, count in zip(cases, times, counts, strict=True):
            for work, into, many in zip((w for w in case[2:] if w is not None), found, count, strict=False):
                into.append(_mean(work, many))
    rows = []
    for (name, keywords, _, _), (ours, own) in zip(cases, times, strict=True):
        row: dict[str, Any] = {"library": name, "keywords": keywords, "microseconds": 1e6 * statistics.median(ours)}
        row["own_microseconds"] = 1e6 * statistics.median(own) if own else None
        rows.append(row)
    return rows


def libraries() -> list[str]:
    """NumPy, and those of the others that are installed."""
    return ["numpy", *(name for name in ("torch", "jax") if importlib.util.find_spec(name))]


def _mean(work: Callable[[], Any], count: int) -> float:
    work()
    start = time.perf_counter()
    for _ in range(count):
        work()
    return (time.perf_counter() - start) / count


def _count(work: Callable[[], Any]) -> int:
    """Calls of a burst; the first ones plan and compile."""
    for _ in range(3):
        work()
    return max(1, round(BURST_SECONDS / max(1e-7, min(_mean(work, 5) for _ in range(3)))))


def _numpy() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    A, B, bias, out = rng.random((SIDE, SIDE)), rng.random((SIDE, SIDE)), rng.random(SIDE), np.empty((SIDE, SIDE))
    whole, lists = (A * 9).astype(np.int32), (A.tolist(), B.tolist())
    best = tilewise.Semiring("best_chance", tilewise.maximum, lambda x, y: x * y, 0)
    product, own = tilewise.matmul, np.matmul
    yield "numpy", "", lambda: product(A, B), lambda: own(A, B)
    for keywords in (
        {"semiring": "min_plus"}, {"semiring": best}, {"semiring": "min_plus", "return_arg": True}, {"alpha": 2.0},
        {"bias": bias}, {"activation": "relu"}, {"activation": "gelu"},
        {"alpha": 2.0, "bias": bias, "activation": "gelu"}, {"dtype": "float32"},
        {"precision": "ieee"}, {"nonnegative": True}, {"device": "cpu"}, {"kernel": "packed"}, {"tile": 8},
    ):  # fmt: skip
        more: dict[str, Any] = dict(keywords)
        yield "numpy", _words(more), lambda more=more: product(A, B, **more), None  # type: ignore[misc]
    yield "numpy", "out", lambda: product(A, B, out=out), lambda: own(A, B, out=out)
    yield "numpy", "out, accumulate", lambda: product(A, B, out=out, accumulate=True), None
    yield "numpy", "out, bias", lambda: product(A, B, out=out, bias=bias), None
    single, scale, modulo = A.astype(np.float32), bias.astype(np.float32), tilewise.modular(97)
    yield "numpy", "scales=(number, number)", lambda: product(single, single, scales=(2.0, 0.5)), None
    yield "numpy", "scales=(rows, columns)", lambda: product(single, single, scales=(scale, scale)), None
    yield "numpy", "int32, modular(97)", lambda: product(whole, whole, semiring=modulo), None
    yield "numpy", "int32, min_plus", lambda: product(whole, whole, semiring="min_plus"), None
    yield "numpy", "stack", lambda: product(A[None], B), lambda: own(A[None], B)
    yield "numpy", "lists", lambda: product(*lists), lambda: own(*lists)


def _words(keywords: dict[str, Any]) -> str:
    names = {"semiring": "own semiring", "bias": "bias", "return_arg": "return_arg"}
    return ", ".join(names.get(k, k) if not isinstance(v, (str, float)) else f"{k}={v}" for k, v in keywords.items())


def _torch() -> Iterator[Case]:
    import torch

    A, B = torch.rand(SIDE, SIDE), torch.rand(SIDE, SIDE)
    G, H = A.clone().requires_grad_(), B.clone().requires_grad_()
    bias, out, product = torch.rand(SIDE), torch.empty(SIDE, SIDE), tilewise.matmul
    yield "torch", "", lambda: product(A, B), lambda: torch.mm(A, B)
    for keywords in (
        {"semiring": "min_plus"}, {"semiring": "min_plus", "return_arg": True}, {"alpha": 2.0}, {"bias": bias},
        {"alpha": 2.0, "bias": bias, "activation": "gelu"},
    ):  # fmt: skip
        more: dict[str, Any] = dict(keywords)
        yield "torch", _words(more), lambda more=more: product(A, B, **more), None  # type: ignore[misc]
    yield "torch", "out", lambda: product(A, B, out=out), lambda: torch.mm(A, B, out=out)
    yield "torch", "requires_grad", lambda: product(G, H), lambda: torch.mm(G, H)
    yield "torch", "requires_grad, min_plus", lambda: product(G, H, semiring="min_plus"), None


def _jax() -> Iterator[Case]:
    import jax

    jax.config.update("jax_default_device", jax.devices("cpu")[0])  # what a call costs beside a card is another matter
    rng = np.random.default_rng(0)
    A, B = (jax.numpy.asarray(rng.random((SIDE, SIDE), np.float32)) for _ in range(2))
    ours, own = jax.jit(lambda x, y: tilewise.matmul(x, y)), jax.jit(jax.numpy.matmul)
    paths = jax.jit(lambda x, y: tilewise.matmul(x, y, semiring="min_plus"))
    yield "jax", "", _done(lambda: tilewise.matmul(A, B)), _done(lambda: jax.numpy.matmul(A, B))
    yield "jax", "semiring=min_plus", _done(lambda: tilewise.matmul(A, B, semiring="min_plus")), None
    yield "jax", "jit", _done(lambda: ours(A, B)), _done(lambda: own(A, B))
    yield "jax", "jit, semiring=min_plus", _done(lambda: paths(A, B)), None


def _done(work: Callable[[], Any]) -> Callable[[], Any]:
    """Waited for: JAX hands out arrays that are not there yet."""
    return lambda: work().block_until_ready()
