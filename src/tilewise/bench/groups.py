"""Suite `groups`: rows routed to experts on a card, beside torch._grouped_mm (padded to 16-byte rows, which it
requires); and whole layers of a mixture of experts, forward and backward."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from tilewise.bench.random_shapes import log_uniform
from tilewise.bench.suites import Piece, Request, Row, batch_row
from tilewise.bench.timing import Work, event_seconds, medians, replayed
from tilewise.compose.groups.product import grouped_plan
from tilewise.core.accuracy import relative_error
from tilewise.functions.groups import grouped_matmul, scatter_rows

ROUTERS = {"uniform": 0.1, "mild": 0.7, "extreme": 2.0}  # standard deviation of the logarithm of an expert's share
EXPERTS = (8, 64, 256)
SIDES = ((2048, 1408), (2048, 1536), (7168, 2048), (2047, 1409))
BANDWIDTH = 4.2e12  # bytes a second that a copy reaches on an H200
TOLERANCE, LAYER_TOLERANCE = 8e-3, 3e-2
PEER = "torch._grouped_mm"
PADDED = 8  # elements; torch requires rows on 16-byte boundaries
TOP = 2  # experts of a token in a layer
LAYER_ROUNDS, LAYER_STEPS = 5, 4


@dataclass(frozen=True)
class RoutedRows:
    """Rows of k columns routed to experts that are k×n matrices."""

    experts: int
    rows: int
    k: int
    n: int
    router: str
    dtype: str = "bfloat16"

    @property
    def name(self) -> str:
        return f"{self.rows} rows, {self.experts} experts of {self.k}x{self.n}, {self.router}"


@dataclass(frozen=True)
class ExpertLayer:
    """Tokens of `hidden` columns, each multiplied by TOP experts of hidden×inner and inner×hidden."""

    experts: int
    tokens: int
    hidden: int
    inner: int
    dtype: str = "bfloat16"

    @property
    def name(self) -> str:
        sizes = f"{self.experts} experts {self.hidden}x{self.inner}, {self.tokens} tokens"
        return f"layer of {sizes}, forward and backward"


LAYERS = (
    ExpertLayer(64, 4096, 2048, 1408),
    ExpertLayer(8, 8192, 2048, 1536),
    ExpertLayer(64, 8192, 2047, 1409),
)


def drawn(rng: random.Random) -> RoutedRows:
    """1,024 to 65,536 rows, log-uniform."""
    experts, (k, n), router = rng.choice(EXPERTS), rng.choice(SIDES), rng.choice(tuple(ROUTERS))
    return RoutedRows(experts, log_uniform(rng, 1024, 65536), k, n, router)


def ends_of(case: RoutedRows, rng: random.Random) -> list[int]:
    """The end of each expert's rows."""
    shares = [math.exp(ROUTERS[case.router] * rng.gauss(0, 1)) for _ in range(case.experts)]
    ends, reached, whole = [], 0.0, sum(shares)
    for share in shares:
        reached += share
        ends.append(min(case.rows, round(reached / whole * case.rows)))
    return ends


def pieces(request: Request) -> Iterator[Piece]:
    rng = random.Random(request.seed)
    for _ in range(8 if request.quick else 40):
        case = drawn(rng)
        yield partial(routed, case, ends_of(case, rng), request.seed)
    for layer in LAYERS:
        yield partial(forward_and_backward, layer, request.seed)


def routed(case: RoutedRows, ends: list[int], seed: int) -> list[Row]:
    """One row. `of_floor`: the time of one dense product of all rows, or of the memory traffic, as a share of ours."""
    import torch

    x = torch.randn(case.rows, case.k, device="cuda").bfloat16()
    w = torch.randn(case.experts, case.k, case.n, device="cuda").bfloat16()
    offsets, P = torch.tensor(ends, dtype=torch.int32, device="cuda"), x.new_empty(case.rows, case.n)
    one = torch.randn(case.k, case.n, device="cuda").bfloat16()
    works: dict[str, Work] = {
        "ours": lambda: grouped_matmul(x, w, offsets, out=P),
        "dense": lambda: torch.mm(x, one),
    }
    if hasattr(torch, "_grouped_mm"):
        works[PEER] = lambda: grouped_mm(torch, x, w, offsets).contiguous()
    times = replayed(torch, works)
    groups = list(enumerate(pairwise([0, *ends])))
    used = sum(b > a for _, (a, b) in groups)
    moved = 2 * (used * case.k * case.n + case.rows * (case.k + case.n))
    group, (a, b) = max(groups, key=lambda numbered: numbered[1][1] - numbered[1][0])
    expected = (x[a:b].double() @ w[group].double()).cpu().numpy()
    error = relative_error(P[a:b].double().cpu().numpy(), expected)
    of_floor = max(times["dense"], moved / BANDWIDTH) / times["ours"]
    kernel = grouped_plan(x, w, offsets).kernel
    return [batch_row(case, f"seed {seed}", kernel, times, PEER, error, TOLERANCE, of_floor=of_floor)]


def forward_and_backward(layer: ExpertLayer, seed: int) -> list[Row]:
    """One row; our results and gradients are compared with the peer's."""
    import torch

    torch.manual_seed(seed)
    number, card = torch.bfloat16, "cuda"
    experts, tokens, hidden, inner = layer.experts, layer.tokens, layer.hidden, layer.inner
    x = torch.randn(tokens, hidden, device=card).to(number).requires_grad_()
    up = (torch.randn(experts, hidden, inner, device=card) * hidden**-0.5).to(number).requires_grad_()
    down = (torch.randn(experts, inner, hidden, device=card) * inner**-0.5).to(number).requires_grad_()
    chosen = torch.rand(tokens, experts, device=card).topk(TOP).indices.flatten()
    order = chosen.argsort(stable=True)
    rows, ends = order // TOP, torch.bincount(chosen, minlength=experts).cumsum(0).to(torch.int32)
    share = torch.rand(tokens * TOP, device=card)[order]
    gradient = torch.randn(tokens, hidden, device=card).to(number)

    def ours() -> Any:
        made = torch.nn.functional.silu(grouped_matmul(x, up, ends, rows=rows))
        return scatter_rows(grouped_matmul(made, down, ends), rows, tokens, weights=share)

    def theirs() -> Any:
        made = torch.nn.functional.silu(grouped_mm(torch, x[rows], up, ends))
        weighted = grouped_mm(torch, made, down, ends) * share[:, None].to(number)
        return torch.zeros(tokens, hidden, dtype=number, device=card).index_add(0, rows, weighted)

    def step(forward: Callable[[], Any]) -> tuple[Any, ...]:
        P = forward()
        return (P.detach(), *torch.autograd.grad(P, (x, up, down), gradient))

    steps = {"ours": partial(step, ours), PEER: partial(step, theirs)}
    error = max(_difference(a, b) for a, b in zip(steps["ours"](), steps[PEER](), strict=True))
    times = medians(steps, LAYER_ROUNDS, lambda name: [event_seconds(torch, steps[name], LAYER_STEPS)])
    return [batch_row(layer, "known", "wgmma_half", times, PEER, error, LAYER_TOLERANCE, of_floor=None)]


def grouped_mm(torch: Any, x: Any, w: Any, ends: Any) -> Any:
    """torch._grouped_mm; misaligned operands are padded first, and the product sliced."""
    k, n = w.shape[1:]
    if k % PADDED or n % PADDED:
        x = torch.nn.functional.pad(x, (0, -k % PADDED))
        w = torch.nn.functional.pad(w, (0, -n % PADDED, 0, -k % PADDED))
    return torch._grouped_mm(x, w, offs=ends)[:, :n]


def _difference(found: Any, expected: Any) -> float:
    return float((found.float() - expected.float()).norm() / expected.float().norm().clamp_min(1e-30))
