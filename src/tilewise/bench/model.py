"""Suite `model`: whole training steps of a GPT by torch, by torch.compile, and with our products by `patch` or
`accelerate`.

All candidates start from the same weights and take the same batches; steps run interleaved. A row has the median step,
the first step, the peak of memory, and the loss after the last, which has to be torch's within rounding.
"""

from __future__ import annotations

import contextlib
import copy
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tilewise.bench.suites import Piece, Request, Row
from tilewise.bench.torch_products import torch_for

STEPS = 10  # timed steps, after as many warm-up steps
RATE = 3e-4


class Trainer:
    """A copy of the model, its optimiser, and the seconds and losses of its steps."""

    def __init__(self, name: str, model: Any, device: str, how: str) -> None:
        import torch

        from tilewise.torch.acceleration import accelerate
        from tilewise.torch.patching import patch

        self.name, self.device, self.how, self.torch = name, device, how, torch
        self.model = copy.deepcopy(model).to(device)
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=RATE, fused=device == "cuda")
        if "patch" in how:
            patch(self.model)
        self.around: Callable[[], Any] = contextlib.nullcontext
        if "accelerate" in how:
            self.account = accelerate()
            self.around = lambda: self.account
        self.step = torch.compile(self.model) if "compile" in how else self.model
        self.seconds: list[float] = []
        self.losses: list[float] = []
        self.first, self.peak = 0.0, 0

    def train(self, batch: Any) -> None:
        """One step, timed."""
        cuda = self.torch.cuda if self.device == "cuda" else None
        held = 0
        if cuda:
            cuda.synchronize()
            cuda.reset_peak_memory_stats()
            held = cuda.memory_allocated()
        started = time.perf_counter()
        self.optimiser.zero_grad(set_to_none=True)
        with self.around():
            loss = self.step(*batch)
            loss.backward()
        self.optimiser.step()
        if cuda:
            cuda.synchronize()
            self.peak = cuda.max_memory_allocated() - held
        taken = time.perf_counter() - started
        self.first = self.first or taken
        self.seconds.append(taken)
        self.losses.append(float(loss.detach()))


CANDIDATES = (("torch", ""), ("tilewise patch", "patch"), ("tilewise accelerate", "accelerate"))
COMPILED = (
    ("torch.compile", "compile"),
    ("tilewise patch, compiled", "patch compile"),
    ("tilewise accelerate, compiled", "accelerate compile"),
)


def pieces(request: Request) -> Iterator[Piece]:
    kind = request.device.partition(":")[0]
    for case in ("odd",) if request.odd else ("aligned", "vocabulary"):
        yield partial(train, case, kind, request.compiled, request.rounds(3, STEPS))


def train(case: str, device: str, compiled: bool, steps: int = STEPS) -> list[Row]:
    """One row for each candidate."""
    torch = torch_for("bench model")
    from tilewise.bench.models import SIZES, batch_of, make_model

    sizes = SIZES[device, case]
    model = make_model(sizes)
    model = model.to(torch.bfloat16) if device == "cuda" else model
    candidates = (*CANDIDATES, *COMPILED) if compiled else CANDIDATES
    trainers = [Trainer(name, model, device, how) for name, how in candidates]
    batches = [tuple(x.to(device) for x in batch_of(sizes, seed)) for seed in range(4)]
    for number in range(2 * steps):
        first = number % len(trainers)
        for one in trainers[first:] + trainers[:first]:
            one.train(batches[number % len(batches)])
    return [_row(one, trainers, case, sizes, steps) for one in trainers]


def _row(one: Trainer, trainers: list[Trainer], case: str, sizes: Any, steps: int) -> Row:
    """A candidate beside torch, or beside torch.compile if it is compiled too."""
    peer = next(c for c in trainers if c.name == ("torch.compile" if "compile" in one.how else "torch"))
    mine, theirs = (statistics.median(c.seconds[-steps:]) for c in (one, peer))
    return {
        "kernel": one.name,
        "tile": 0,
        "case": f"gpt2 {sizes.vocabulary:,} · {sizes.width} · {sizes.tokens}",
        "shape": [sizes.vocabulary, sizes.width, sizes.tokens],
        "what": case,
        "dtype": str(next(one.model.parameters()).dtype).removeprefix("torch."),
        "seconds": mine,
        "times_faster": theirs / mine,
        "first_seconds": one.first,
        "peak_bytes": one.peak,
        "memory_ratio": one.peak / peer.peak if peer.peak else 1.0,
        "loss": one.losses[-1],
        "loss_of_torch": peer.losses[-1],
    }
