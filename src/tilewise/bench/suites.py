"""The suites of `tilewise bench`, by name: the module that measures each on a CPU and on a card.

Such a module has `pieces(request)`, measurements to run one by one, each of which returns rows of the document. Rows
that several suites share are made here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tilewise.errors import UsageError

Shape = tuple[int, int, int]
Row = dict[str, Any]
Piece = Callable[[], list[Row]]


@dataclass(frozen=True)
class Suite:
    """The modules that measure a suite; empty for a device without one."""

    cpu: str = ""
    card: str = ""
    measures: str = ""  # to explain why another device is refused
    drawn: bool = False  # cases are drawn from a seed
    sizes: bool = True  # --sizes replaces the suite's own


SUITES = {
    "ladder": Suite("ladder", "ladder"),
    "tiles": Suite("ladder", "ladder"),
    "shapes": Suite("shapes", "card_shapes"),
    "cpu-random": Suite("shapes", measures="the CPU's engine", drawn=True),
    "cliffs": Suite("cliffs", measures="the CPU's engine", sizes=False),
    "dtypes": Suite(card="card_dtypes", measures="a card"),
    "semirings": Suite("semirings", "card_semirings"),
    "linear": Suite("linear", "linear"),
    "model": Suite("model", "model"),
    "random": Suite(card="card_random", measures="a card", drawn=True),
    "scale": Suite("scale_cpu", "scale_card"),
    "semirings-random": Suite("shapes", measures="the CPU's engine", drawn=True),
    "halves-random": Suite("shapes", measures="the CPU's engine", drawn=True),
    "host": Suite(card="host_time", measures="calls that launch on a card", drawn=True),
    "calls": Suite("calls", measures="the host's side of a call"),
    "stacks": Suite(card="stacks", measures="a card", drawn=True, sizes=False),
    "groups": Suite(card="groups", measures="a card", drawn=True, sizes=False),
}


@dataclass(frozen=True)
class Request:
    """The options of the command line; each suite reads those that apply to it."""

    suite: str
    device: str
    sizes: tuple[int, ...] = ()
    quick: bool = False
    threads: int = 1
    count: int = 30
    seed: int = 0
    dtypes: str = "bf16,fp16,fp32,tf32,fp64"
    odd: bool = False
    compiled: bool = False

    @property
    def on_card(self) -> bool:
        return self.device != "cpu"

    @property
    def cubes(self) -> tuple[Shape, ...]:
        return tuple((size, size, size) for size in self.sizes)

    def rounds(self, quick: int, usual: int) -> int:
        return quick if self.quick else usual


def suite_named(name: str) -> Suite:
    if name not in SUITES:
        raise UsageError(f"suite {name!r} is not known; known are {', '.join(SUITES)}")
    return SUITES[name]


def pieces(request: Request) -> list[Piece]:
    """The suite as a list of measurements, so that a caller can show its progress."""
    suite = suite_named(request.suite)
    module = suite.card if request.on_card else suite.cpu
    if not module:
        other = "cpu" if request.on_card else "cuda"
        raise UsageError(f"bench {request.suite} measures {suite.measures}: pass --device {other}")
    if request.sizes and not suite.sizes:
        raise UsageError(f"bench {request.suite} draws its own sizes: leave --sizes out, and pass --seed for others")
    if request.on_card:
        from tilewise.arrays.card import card_count, open_card

        if not card_count():
            open_card(request.device)  # raises an error that says what is missing
    return list(import_module(f"tilewise.bench.{module}").pieces(request))


def speed_row(kernel: str, shape: Sequence[int], dtype: str, seconds: float, **more: Any) -> Row:
    """A row of one candidate on one product, with the fields of speed tables and plots; `more` overrides."""
    return {
        "kernel": kernel,
        "tile": 0,
        "shape": list(shape),
        "dtype": dtype,
        "seconds": seconds,
        "tflops": 2 * math.prod(shape) / seconds / 1e12,
        "share_of_peak": None,
        "relative_error": None,
        "predicted_seconds": None,
        "bytes_with_tiles": None,
        **more,
    }


def peer_row(what: str, peer: str, size: int | str, seconds: float, peer_seconds: float, **more: Any) -> Row:
    """One measurement beside one peer, of `bench semirings`."""
    faster = {"seconds": seconds, "peer_seconds": peer_seconds, "times_faster": peer_seconds / seconds}
    return {"what": what, "peer": peer, "size": size, **more, **faster}


def batch_row(
    case: Any, suite: str, kernel: str, seconds: dict[str, float], peer: str, error: float, bound: float, **more: Any
) -> Row:
    """A row of many products in one call, `seconds["ours"]` beside those of `peer`, which may be missing."""
    ours, theirs = seconds["ours"], seconds.get(peer, math.nan)
    return {
        "case": case.name,
        "suite": suite,
        "dtype": case.dtype,
        "kernel": kernel,
        "seconds": ours,
        "peer": peer,
        "peer_seconds": theirs,
        "ratio": theirs / ours,
        "relative_error": error,
        "right": bool(error < bound),
        **more,
    }


def grouped(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows with equal values of these keys together, in the order in which each first occurs."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row.get(name, "") for name in names), []).append(row)
    return found


@dataclass(frozen=True)
class Ratios:
    """Ratios of one kind, such as the speed relative to a peer's."""

    values: list[float]
    bar: float = 0.9

    @property
    def mean(self) -> float:
        """The geometric one."""
        return math.exp(sum(map(math.log, self.values)) / len(self.values)) if self.values else math.nan

    @property
    def below(self) -> int:
        return sum(value < self.bar for value in self.values)

    @property
    def percent(self) -> str:
        return f"{100 * self.below / len(self.values):.0f} %"


def ratios(rows: Iterable[Row], key: str, bar: float = 0.9) -> Ratios:
    """Of the rows that have one."""
    return Ratios([row[key] for row in rows if key in row and not math.isnan(row[key])], bar)
