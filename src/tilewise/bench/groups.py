"""Groups of rows beside torch._grouped_mm on a card (with the padding its rule asks for), on a CPU beside loops of
np.matmul, or of torch.mm for bfloat16, which NumPy multiplies element by element."""

from __future__ import annotations

import importlib.util
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import dtype_named
from tilewise.bench import moe_layer
from tilewise.core.accuracy import relative_error

Row = dict[str, Any]
ROUTERS = {"uniform": 0.1, "mild": 0.7, "extreme": 2.0}  # spread of the logarithm of an expert's share
EXPERTS = (8, 64, 256)
SIDES = ((2048, 1408), (2048, 1536), (7168, 2048), (2047, 1409))
CPU_DTYPES, CPU_SIDES = ("float32", "float64", "bfloat16"), (4, 512)
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
    dtype: str = "bfloat16"

    @property
    def name(self) -> str:
        return f"{self.rows} rows, {self.experts} experts of {self.k}x{self.n}, {self.router}"


def drawn(rng: random.Random, on_card: bool) -> Case:
    """1,024 to 65,536 rows, log-uniform; on a CPU a sixteenth of them, and sides as small as they come."""
    experts, (k, n), router = rng.choice(EXPERTS), rng.choice(SIDES), rng.choice(tuple(ROUTERS))
    rows = round(_log_uniform(rng, 1024, 65536))
    if on_card:
        return Case(experts, rows, k, n, router)
    k, n = (round(_log_uniform(rng, *CPU_SIDES)) for _ in range(2))
    return Case(experts, rows // 16, k, n, router, rng.choice(CPU_DTYPES))


def _log_uniform(rng: random.Random, low: int, high: int) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


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
    from tilewise.bench.blas_threads import hold
    from tilewise.bench.bursts import bursts

    rng = np.random.default_rng(0)
    x, w = (
        rng.standard_normal(extents, np.float32) for extents in ((case.rows, case.k), (case.experts, case.k, case.n))
    )
    offsets, wanted = np.array(ends), np.zeros((case.rows, case.n))
    tw.set_num_threads(threads)
    hold(threads)
    if case.dtype == "bfloat16" and importlib.util.find_spec("torch"):
        torch = importlib.import_module("torch")
        torch.set_num_threads(threads)
        x, w, offsets = (*(torch.from_numpy(held).bfloat16() for held in (x, w)), torch.from_numpy(offsets))
        who, multiply, empty = "loop of torch.mm", torch.mm, partial(torch.zeros, dtype=torch.bfloat16)
    else:
        number = dtype_named(case.dtype).numpy
        x, w = x.astype(number), w.astype(number)
        who, multiply, empty = "loop of np.matmul", np.matmul, partial(np.zeros, dtype=number)

    def loop() -> Any:
        made = empty((case.rows, case.n))
        for group, (a, b) in enumerate(pairwise([0, *ends])):
            multiply(x[a:b], w[group], out=made[a:b])
        return made

    times = bursts({"ours": lambda: tw.grouped_matmul(x, w, offsets), "loop": loop}, 3, threads)
    for group, (a, b) in enumerate(pairwise([0, *ends])):
        wanted[a:b] = _double(x[a:b]) @ _double(w[group])
    error = relative_error(_double(tw.grouped_matmul(x, w, offsets)), wanted)
    return [_row(case, seed, times["ours"], who, times["loop"], error, "cpu", None)]


def _double(x: Any) -> Any:
    return x.astype(np.float64) if isinstance(x, np.ndarray) else x.double().numpy()


def _row(
    case: Case, seed: int, ours: float, who: str, theirs: float, error: float, kernel: str, of_floor: float | None
) -> Row:
    return {
        "case": case.name,
        "suite": f"seed {seed}",
        "dtype": case.dtype,
        "kernel": kernel,
        "seconds": ours,
        "peer": who,
        "peer_seconds": theirs,
        "ratio": theirs / ours,
        "of_floor": of_floor,
        "relative_error": error,
        "right": bool(error < 8e-3),
    }
