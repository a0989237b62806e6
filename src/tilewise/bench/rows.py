"""Rows that several suites share, and what tables say of many rows: groups of them, and their ratios to a peer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


def speed_row(kernel: str, shape: Sequence[int], dtype: str, seconds: float, **more: Any) -> Row:
    """One candidate on one product, as tables and pictures of speeds read it. `more` replaces or adds."""
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
    """Many products in one call, `seconds["ours"]` beside those of a peer that may be missing."""
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
