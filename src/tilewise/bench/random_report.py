"""What a run over random shapes says: by dtype, by kernel, the first calls, and the worst ten with their plans."""

from __future__ import annotations

import statistics
from typing import Any

from tilewise.system.quantities import seconds

Row = dict[str, Any]
Part = tuple[str, list[str], list[list[str]]]  # a title, a table's head, its lines
LOW = 0.9  # of the vendor's speed: what counts as under
WORST = 10
HEAD = ["shapes", "graph", "lowest", f"under {LOW}", "queued", "lowest", f"under {LOW}"]


def parts(document: dict[str, Any]) -> list[Part]:
    """The tables of a document of `bench random`."""
    rows: list[Row] = document["rows"]
    dtypes = list(dict.fromkeys(row["dtype"] for row in rows))
    by_dtype = [[dtype, *_ratios([row for row in rows if row["dtype"] == dtype])] for dtype in dtypes]
    kernels = sorted({(row["dtype"], row["kernel"]) for row in rows}, key=lambda key: (dtypes.index(key[0]), key[1]))
    by_kernel = [
        [f"{dtype} {kernel}", *_ratios([row for row in rows if (row["dtype"], row["kernel"]) == (dtype, kernel)])]
        for dtype, kernel in kernels
    ]
    firsts = [[dtype, *_firsts([row["first_seconds"] for row in rows if row["dtype"] == dtype])] for dtype in dtypes]
    worst = sorted(rows, key=lambda row: float(row["graph_ratio"]))[:WORST]
    lines = [
        [row["case"], f"{row['graph_ratio']:.2f}", f"{row['queued_ratio']:.2f}", seconds(row["seconds"]), row["kernel"]]
        for row in worst
    ]
    return [
        ("random shapes, times the speed of the better of cuBLAS and cuBLASLt", ["", *HEAD], by_dtype),
        ("by kernel", ["", *HEAD], by_kernel),
        ("the first call of a new shape, until it returns", ["", "median", "p90", "p99", "worst", "sum"], firsts),
        ("the lowest ten, card alone", ["", "graph", "queued", "ours", "kernel"], lines),
    ]


def plans(document: dict[str, Any]) -> list[tuple[str, str]]:
    """The plans of the lowest ten, a sentence each."""
    worst = sorted(document["rows"], key=lambda row: float(row["graph_ratio"]))[:WORST]
    return [(str(row["case"]), "; ".join((row["plan"], *row["notes"]))) for row in worst]


def _ratios(rows: list[Row]) -> list[str]:
    cells = [str(len(rows))]
    for clock in ("graph_ratio", "queued_ratio"):
        values = [float(row[clock]) for row in rows]
        under = sum(value < LOW for value in values) / len(values)
        cells += [f"{statistics.geometric_mean(values):.2f}", f"{min(values):.2f}", f"{100 * under:.0f} %"]
    return cells


def _firsts(values: list[float]) -> list[str]:
    ranked = sorted(values)
    shares = [ranked[min(len(ranked) - 1, int(len(ranked) * share))] for share in (0.5, 0.9, 0.99)]
    return [seconds(value) for value in (*shares, ranked[-1], sum(ranked))]
