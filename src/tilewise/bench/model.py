"""Whole training steps of a model: torch's own, torch.compile's, and ours in each of the ways a person can have them.

All contestants start from the same weights and see the same batches; steps run interleaved, medians are told, with the
time of the first step, the peak of memory, and the loss after the last, which has to be torch's within rounding.
"""

from __future__ import annotations

import contextlib
import copy
import statistics
import time
from collections.abc import Callable
from typing import Any

from tilewise.errors import UsageError

STEPS = 10  # that are timed, after as many that are not
RATE = 3e-4


class Contestant:
    """One way to train: a model of its own, its optimiser, and what its steps took."""

    def __init__(self, name: str, model: Any, device: str, how: str) -> None:
        import torch

        import tilewise.torch

        self.name, self.device, self.how, self.torch = name, device, how, torch
        self.model = copy.deepcopy(model).to(device)
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=RATE, fused=device == "cuda")
        if "patch" in how:
            tilewise.torch.patch(self.model)
        self.around: Callable[[], Any] = contextlib.nullcontext
        if "accelerate" in how:
            self.account = tilewise.torch.accelerate()
            self.around = lambda: self.account
        self.step = torch.compile(self.model) if "compile" in how else self.model
        self.seconds: list[float] = []
        self.losses: list[float] = []
        self.first, self.peak = 0.0, 0

    def train(self, batch: Any, optimise: bool) -> None:
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
        if optimise:
            self.optimiser.step()
        if cuda:
            cuda.synchronize()
            self.peak = cuda.max_memory_allocated() - held
        taken = time.perf_counter() - started
        self.first = self.first or taken
        self.seconds.append(taken)
        self.losses.append(float(loss.detach()))


WAYS = (("torch", ""), ("tilewise patch", "patch"), ("tilewise accelerate", "accelerate"))
COMPILED = (
    ("torch.compile", "compile"),
    ("tilewise patch, compiled", "patch compile"),
    ("tilewise accelerate, compiled", "accelerate compile"),
)


def contest(kind: str, case: str, device: str, compiled: bool, steps: int = STEPS) -> list[dict[str, Any]]:
    """One row for each contestant."""
    try:
        import torch
    except ImportError:
        raise UsageError("bench model needs torch: pip install torch") from None
    from tilewise.bench.models import KINDS, batch_of, make_model, sizes_of

    if kind not in KINDS:
        raise UsageError(f"--model {kind!r} is not known; known are {', '.join(KINDS)}")
    sizes = sizes_of(kind, case, device)
    model = make_model(kind, sizes)
    model = model.to(torch.bfloat16) if device == "cuda" else model
    ways = (*WAYS, *COMPILED) if compiled else WAYS
    contestants = [Contestant(name, model, device, how) for name, how in ways]
    batches = [tuple(x.to(device) for x in batch_of(sizes, seed)) for seed in range(4)]
    for number in range(2 * steps):
        turn = number % len(contestants)
        for one in contestants[turn:] + contestants[:turn]:
            one.train(batches[number % len(batches)], optimise=kind != "mlp")
    return [_row(one, contestants, kind, case, sizes, steps) for one in contestants]


def _row(
    one: Contestant, all_of_them: list[Contestant], kind: str, case: str, sizes: Any, steps: int
) -> dict[str, Any]:
    rival = next(c for c in all_of_them if c.name == ("torch.compile" if "compile" in one.how else "torch"))
    mine, theirs = (statistics.median(c.seconds[-steps:]) for c in (one, rival))
    return {
        "kernel": one.name,
        "tile": 0,
        "case": f"{kind} {sizes.vocabulary:,} · {sizes.width} · {sizes.tokens}",
        "shape": [sizes.vocabulary, sizes.width, sizes.tokens],
        "what": case,
        "dtype": str(next(one.model.parameters()).dtype).removeprefix("torch."),
        "seconds": mine,
        "times_faster": theirs / mine,
        "first_seconds": one.first,
        "peak_bytes": one.peak,
        "memory_ratio": one.peak / rival.peak if rival.peak else 1.0,
        "loss": one.losses[-1],
        "loss_of_torch": rival.losses[-1],
    }
