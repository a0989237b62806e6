"""The pictures of the CPU's suites: how many times faster than each peer, and what share of the machine's limit."""

from __future__ import annotations

from typing import Any

from tilewise.bench.report import shape_text

# tilewise over a peer: a colour and a hatch each, so that a black-and-white print is readable too
PEERS = {"openblas": ("OpenBLAS", "#0072b2", ""), "mkl": ("MKL", "#e69f00", "//"), "torch": ("torch", "#e69f00", "//")}


def shapes_figure(document: dict[str, Any], pyplot: Any) -> Any:
    """Bars above 1: tilewise is faster; one panel a dtype, a group of bars a shape, a bar a peer."""
    seconds = {(*row["kernel"].split(), tuple(row["shape"])): row["seconds"] for row in document["rows"]}
    dtypes = list(dict.fromkeys(row["dtype"] for row in document["rows"]))
    shapes = list(dict.fromkeys(tuple(row["shape"]) for row in document["rows"]))
    size = (max(7, 0.85 * len(shapes)), 3.4 * len(dtypes))
    figure, grid = pyplot.subplots(len(dtypes), 1, figsize=size, squeeze=False, constrained_layout=True, sharex=True)
    for axes, dtype in zip(grid.flat, dtypes, strict=True):
        peers = [peer for peer in PEERS if any((peer, dtype, shape) in seconds for shape in shapes)]
        for number, peer in enumerate(peers):
            name, colour, hatch = PEERS[peer]
            ratios = [seconds.get((peer, dtype, shape), 0.0) / seconds[("tilewise", dtype, shape)] for shape in shapes]
            places = [place + (number - (len(peers) - 1) / 2) * 0.4 for place in range(len(shapes))]
            bars = axes.bar(places, ratios, 0.38, color=colour, hatch=hatch, edgecolor="white", label=f"over {name}")
            axes.bar_label(bars, [f"{ratio:.2f}" if ratio else "" for ratio in ratios], fontsize=7, padding=1)
        axes.axhline(1.0, color="#444444", linewidth=1, zorder=0)
        axes.set(ylabel="times faster", title=dtype)
        axes.set_xticks(range(len(shapes)), [shape_text(list(s)) for s in shapes], rotation=30, ha="right", fontsize=8)
        axes.grid(axis="y", alpha=0.3)
        axes.margins(y=0.12)
        if peers:
            axes.legend(fontsize=8, loc="upper left")
    return figure


def semirings_figure(document: dict[str, Any], pyplot: Any) -> Any:
    """Left: every algebra's share of the port limit. Right: how many times faster than those who also can."""
    limits = [row for row in document["rows"] if "share_of_limit" in row]
    rivals = [row for row in document["rows"] if "times_faster" in row]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12.5, 4.6), constrained_layout=True)
    names = [f"{row['semiring']} {row['dtype']}" for row in limits]
    bars = left.barh(names, [100 * row["share_of_limit"] for row in limits], color="#0072b2")
    left.bar_label(bars, fmt="%.0f %%", fontsize=8, padding=2)
    left.axvline(100, color="#444444", linewidth=1)
    left.set(xlabel="% of the port limit, same run", title="Every algebra against the machine's limit", xlim=(0, 112))
    names = [f"{row['what']} {row['size']}, over {row['peer']}" for row in rivals]
    bars = right.barh(names, [row["times_faster"] for row in rivals], color="#d55e00")
    right.bar_label(bars, fmt="%.1f×", fontsize=8, padding=2)
    most = max((row["times_faster"] for row in rivals), default=10.0)
    right.set(xscale="log", xlim=(1, 2.5 * most), xlabel="times faster", title="Against those who also can")
    right.set_xticks([tick for tick in (1, 2, 5, 10, 20, 50, 100, 200) if tick <= 2.5 * most])
    right.xaxis.set_major_formatter("{x:g}")
    right.minorticks_off()
    for axes in (left, right):
        axes.invert_yaxis()
        axes.grid(axis="x", alpha=0.3)
    return figure
