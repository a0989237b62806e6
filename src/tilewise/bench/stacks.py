"""Stacks of products beside torch.bmm on a card, or np.matmul on a CPU: a list of known cases, and random ones."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tilewise.core.accuracy import relative_error

Row = dict[str, Any]
MOST_BYTES = 4e9  # of a random stack on a card,
MOST_STEPS = 4e11  # and what it may take
CPU_BYTES, CPU_STEPS = 2e8, 2e9
SAMPLED = 4  # members held against float64
TOLERANCE = {"bfloat16": 8e-3, "float16": 1e-3, "float32": 5e-6, "float64": 1e-12}


@dataclass(frozen=True)
class Stack:
    """So many products of m×k by k×n."""

    dtype: str
    members: int
    m: int
    k: int
    n: int

    @property
    def name(self) -> str:
        return f"{self.members}×[{self.m}x{self.k}x{self.n}] {self.dtype}"


KNOWN = (
    *(Stack("bfloat16", 96, 1024, k, n) for k, n in ((64, 1024), (1024, 64), (128, 1024), (1024, 128))),
    *(Stack("bfloat16", 96, 1023, k, n) for k, n in ((65, 1023), (1023, 65))),
    *(Stack("bfloat16", 32, 2048, k, n) for k, n in ((64, 2048), (2048, 64), (128, 2048), (2048, 128))),
    Stack("bfloat16", 64, 333, 555, 77),
    *(Stack("bfloat16", 8, side, side, side) for side in (2047, 2048)),
    Stack("bfloat16", 1000, 17, 129, 33),
    *(Stack(dtype, 1024, 32, 32, 32) for dtype in ("bfloat16", "float32")),
    *(Stack(dtype, 4096, 8, 8, 8) for dtype in ("bfloat16", "float32")),
    *(Stack("float32", 96, 1024, k, n) for k, n in ((64, 1024), (1024, 64))),
)


def drawn(rng: random.Random, dtypes: tuple[str, ...], most_bytes: float, most_steps: float) -> Stack:
    """Members 1 to 4096 and extents 2 to 2048, log-uniform."""
    while True:
        dtype, size = rng.choice(dtypes), 4
        members = round(math.exp(rng.uniform(0, math.log(4096))))
        m, k, n = (round(math.exp(rng.uniform(math.log(2), math.log(2048)))) for _ in range(3))
        size = 2 if dtype == "bfloat16" else 4
        if members * size * (m * k + k * n + m * n) < most_bytes and members * m * k * n < most_steps:
            return Stack(dtype, members, m, k, n)


def pieces(device: str, quick: bool, seed: int, threads: int) -> Iterator[Callable[[], list[Row]]]:
    """One measurement after the other."""
    rng, on_card = random.Random(seed), device != "cpu"
    dtypes = ("bfloat16", "float32") if on_card else ("float32",)
    limits = (MOST_BYTES, MOST_STEPS) if on_card else (CPU_BYTES, CPU_STEPS)
    known = [case for case in KNOWN if case.dtype in dtypes]
    fits = [case for case in known if case.members * case.m * case.k * case.n < limits[1]]
    cases = [*fits, *(drawn(rng, dtypes, *limits) for _ in range(20 if quick else 200))]
    measure = _on_card if on_card else partial(_on_cpu, threads)
    for number, case in enumerate(cases):
        yield partial(measure, case, "known" if number < len(fits) else f"seed {seed}")


def _on_card(case: Stack, suite: str) -> list[Row]:
    import torch

    import tilewise as tw
    from tilewise.bench.graphs import replayed

    number = getattr(torch, case.dtype)
    M = torch.randn(case.members, case.m, case.k, device="cuda").to(number)
    N = torch.randn(case.members, case.k, case.n, device="cuda").to(number)
    P, peer = (torch.empty(case.members, case.m, case.n, dtype=number, device="cuda") for _ in range(2))
    times = replayed(torch, {"ours": lambda: tw.matmul(M, N, out=P), "torch.bmm": lambda: torch.bmm(M, N, out=peer)})
    some = torch.linspace(0, case.members - 1, SAMPLED).long()
    wanted = (M[some].double() @ N[some].double()).cpu().numpy()
    error = relative_error(P[some].double().cpu().numpy(), wanted)
    return [_row(case, suite, times["ours"], "torch.bmm", times["torch.bmm"], error, tw.plan(M, N).kernel)]


def _on_cpu(threads: int, case: Stack, suite: str) -> list[Row]:
    import tilewise as tw
    from tilewise.bench.bursts import bursts

    rng = np.random.default_rng(0)
    M = rng.standard_normal((case.members, case.m, case.k), np.float32)
    N = rng.standard_normal((case.members, case.k, case.n), np.float32)
    tw.set_num_threads(threads)
    times = bursts({"ours": lambda: tw.matmul(M, N), "np.matmul": lambda: np.matmul(M, N)}, 3, threads)
    some = slice(None, None, max(1, case.members // SAMPLED))
    wanted = M[some].astype(np.float64) @ N[some].astype(np.float64)
    error = relative_error(tw.matmul(M[some], N[some]), wanted)
    return [_row(case, suite, times["ours"], "np.matmul", times["np.matmul"], error, tw.plan(M, N).kernel)]


def _row(case: Stack, suite: str, ours: float, who: str, theirs: float, error: float, kernel: str) -> Row:
    return {
        "case": case.name,
        "suite": suite,
        "dtype": case.dtype,
        "kernel": kernel,
        "seconds": ours,
        "peer": who,
        "peer_seconds": theirs,
        "ratio": theirs / ours,
        "relative_error": error,
        "right": bool(error < TOLERANCE[case.dtype]),
    }
