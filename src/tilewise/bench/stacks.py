"""Suite `stacks`: many products of one shape beside torch.bmm on a card: known cases, and random ones."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from tilewise.api import matmul, plan
from tilewise.bench.random_shapes import log_uniform
from tilewise.bench.suites import Piece, Request, Row, batch_row
from tilewise.bench.timing import replayed
from tilewise.core.accuracy import relative_error

MOST_BYTES, MOST_STEPS = 4e9, 4e11  # of a random stack
DTYPES = ("bfloat16", "float32")
SAMPLED = 4  # members that are compared with float64
TOLERANCE = {"bfloat16": 8e-3, "float32": 5e-6}


@dataclass(frozen=True)
class Stack:
    """`members` products of m×k by k×n."""

    dtype: str
    members: int
    m: int
    k: int
    n: int

    @property
    def name(self) -> str:
        return f"{self.members}×[{self.m}x{self.k}x{self.n}] {self.dtype}"

    @property
    def steps(self) -> int:
        return self.members * self.m * self.k * self.n


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


def drawn(rng: random.Random) -> Stack:
    """Members 1 to 4096 and extents 2 to 2048, log-uniform."""
    while True:
        dtype = rng.choice(DTYPES)
        members = log_uniform(rng, 1, 4096)
        m, k, n = (log_uniform(rng, 2, 2048) for _ in range(3))
        stack, size = Stack(dtype, members, m, k, n), 2 if dtype == "bfloat16" else 4
        if members * size * (m * k + k * n + m * n) < MOST_BYTES and stack.steps < MOST_STEPS:
            return stack


def pieces(request: Request) -> Iterator[Piece]:
    rng = random.Random(request.seed)
    for case in KNOWN:
        yield partial(measured, case, "known")
    for _ in range(20 if request.quick else 200):
        yield partial(measured, drawn(rng), f"seed {request.seed}")


def measured(case: Stack, suite: str) -> list[Row]:
    import torch

    number = getattr(torch, case.dtype)
    M = torch.randn(case.members, case.m, case.k, device="cuda").to(number)
    N = torch.randn(case.members, case.k, case.n, device="cuda").to(number)
    P, peer = (torch.empty(case.members, case.m, case.n, dtype=number, device="cuda") for _ in range(2))
    times = replayed(torch, {"ours": lambda: matmul(M, N, out=P), "torch.bmm": lambda: torch.bmm(M, N, out=peer)})
    some = torch.linspace(0, case.members - 1, SAMPLED).long()
    expected = (M[some].double() @ N[some].double()).cpu().numpy()
    error = relative_error(P[some].double().cpu().numpy(), expected)
    return [batch_row(case, suite, plan(M, N).kernel, times, "torch.bmm", error, TOLERANCE[case.dtype])]
