"""Groups of rows beside torch._grouped_mm on a card (with the padding its rule asks for) and loops of products."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from tilewise.accuracy import relative_error
from tilewise.bench import moe_layer

Row = dict[str, Any]
ROUTERS = {"uniform": 0.1, "mild": 0.7, "extreme": 2.0}  # spread of the logarithm of an expert's share
EXPERTS = (8, 64, 256)
SIDES = ((2048, 1408), (2048, 1536), (7168, 2048), (2047, 1409))
BANDWIDTH = 4.2e12  # bytes a second that a copy reaches on an H200
PADDED = 8  # elements: torch's operands start and step on 16 bytes


@dataclass(frozen=True)
class Case:
    """Rows of k columns routed to experts of k×n."""

    experts: int
    rows: int
    k: int
    n: int
    router: str

    @property
    def name(self) -> str:
        return f"{self.rows} rows, {self.experts} experts of {self.k}x{self.n}, {self.router}"


def drawn(rng: random.Random, on_card: bool) -> Case:
    """1,024 to 65,536 rows, log-uniform; on a CPU everything is smaller."""
    experts, (k, n), router = rng.choice(EXPERTS), rng.choice(SIDES), rng.choice(tuple(ROUTERS))
    rows = round(math.exp(rng.uniform(math.log(1024), math.log(65536))))
    return Case(experts, rows, k, n, router) if on_card else Case(experts, rows // 16, k // 16, n // 16, router)


def ends_of(case: Case, rng: random.Random) -> list[int]:
    """Where each expert's rows end."""
    shares = [math.exp(ROUTERS[case.router] * rng.gauss(0, 1)) for _ in range(case.experts)]
    ends, reached, whole = [], 0.0, sum(shares)
    for share in shares:
        reached += share
        ends.append(min(case.rows, round(reached / whole * case.rows)))
    return ends


def pieces(device: str, quick: bool, seed: int, threads: int) -> Iterator[Callable[[], list[Row]]]:
    """One measurement after the other."""
    rng, on_card = random.Random(seed), device != "cpu"
    for _ in range(8 if quick else 40):
        case = drawn(rng, on_card)
        ends = ends_of(case, rng)
        yield partial(_on_card, case, ends, seed) if on_card else partial(_on_cpu, threads, case, ends, seed)
    if on_card:
        yield from moe_layer.pieces(seed)


def _on_card(case: Case, ends: list[int], seed: int) -> list[Row]:
    import torch

    import tilewise as tw
    from tilewise.bench.graphs import replayed

    x = torch.randn(case.rows, case.k, device="cuda").bfloat16()
    w = torch.randn(case.experts, case.k, case.n, device="cuda").bfloat16()
    offsets, P = torch.tensor(ends, dtype=torch.int32, device="cuda"), x.new_empty(case.rows, case.n)
    one = torch.randn(case.k, case.n, device="cuda").bfloat16()
    works: dict[str, Callable[[], Any]] = {
        "ours": lambda: tw.grouped_matmul(x, w, offsets, out=P),
        "dense": lambda: torch.mm(x, one),
    }
    if hasattr(torch, "_grouped_mm"):
        works["torch._grouped_mm"] = partial(_by_torch, torch, x, w, offsets)
    times = replayed(torch, works)
    used = sum(b > a for a, b in pairwise([0, *ends]))
    moved = 2 * (used * case.k * case.n + case.rows * (case.k + case.n))
    group = max(range(case.experts), key=lambda g: ends[g] - ([0, *ends])[g])
    a, b = ([0, *ends])[group], ends[group]
    wanted = (x[a:b].double() @ w[group].double()).cpu().numpy()
    error = relative_error(P[a:b].double().cpu().numpy(), wanted)
    floor = max(times["dense"], moved / BANDWIDTH)
    kernel = tw.grouped_plan(x, w, offsets).kernel
    peer = times.get("torch._grouped_mm", math.nan)
    return [_row(case, seed, times["ours"], "torch._grouped_mm", peer, error, kernel, floor / times["ours"])]


def _by_torch(torch: Any, x: Any, w: Any, offsets: Any) -> Any:
    """torch's own, which wants 16-byte rows: others are padded first, and cut after, inside its time."""
    k, n = x.shape[1], w.shape[2]
    if k % PADDED or n % PADDED:
        x = torch.nn.functional.pad(x, (0, -k % PADDED))
        w = torch.nn.functional.pad(w, (0, -n % PADDED, 0, -k % PADDED))
        return torch._grouped_mm(x, w, offs=offsets)[:, :n].contiguous()
    return torch._grouped_mm(x, w, offs=offsets)


def _on_cpu(threads: int, case: Case, ends: list[int], seed: int) -> list[Row]:
    import tilewise as tw
    from tilewise.bench.bursts import bursts

    rng = np.random.default_rng(0)
    x = rng.standard_normal((case.rows, case.k), np.float32)
    w = rng.standard_normal((case.experts, case.k, case.n), np.float32)
    offsets = np.array(ends)

    def loop() -> Any:
        made = np.zeros((case.rows, case.n), np.float32)
        for group, (a, b) in enumerate(pairwise([0, *ends])):
            np.matmul(x[a:b], w[group], out=made[a:b])
        return made

    tw.set_num_threads(threads)
    times = bursts({"ours": lambda: tw.grouped_matmul(x, w, offsets), "loop": loop}, 3, threads)
    error = relative_error(tw.grouped_matmul(x, w, offsets), loop().astype(np.float64))
    return [_row(case, seed, times["ours"], "loop of np.matmul", times["loop"], error, "cpu", None)]


def _row(
    case: Case, seed: int, ours: float, who: str, theirs: float, error: float, kernel: str, of_floor: float | None
) -> Row:
    return {
        "case": case.name,
        "suite": f"seed {seed}",
        "dtype": "bfloat16" if of_floor is not None else "float32",
        "kernel": kernel,
        "seconds": ours,
        "peer": who,
        "peer_seconds": theirs,
        "ratio": theirs / ours,
        "of_floor": of_floor,
        "relative_error": error,
        "right": bool(error < 8e-3),
    }
