"""The picture of `bench random`: how fast beside the vendor, over the size of a product and over its thinnest side."""

from __future__ import annotations

from typing import Any

# a colour and a marker each, so that a black-and-white print is readable too
STYLES = {
    "bfloat16": ("#d55e00", "o"),
    "float16": ("#e69f00", "s"),
    "float32": ("#0072b2", "^"),
    "tf32": ("#56b4e9", "v"),
    "float64": ("#009e73", "D"),
}


def random_figure(document: dict[str, Any], pyplot: Any) -> Any:
    """Points above 1: tilewise is faster. Left over operations, right over the smallest of m, k and n."""
    figure, panels = pyplot.subplots(1, 2, figsize=(14, 5.2), constrained_layout=True, sharey=True)
    for dtype in dict.fromkeys(row["dtype"] for row in document["rows"]):
        rows = [row for row in document["rows"] if row["dtype"] == dtype]
        colour, marker = STYLES.get(dtype, ("#444444", "."))
        ratios = [row["graph_ratio"] for row in rows]
        flops = [2.0 * row["shape"][0] * row["shape"][1] * row["shape"][2] for row in rows]
        for axes, places in zip(panels, (flops, [min(row["shape"]) for row in rows]), strict=True):
            axes.plot(places, ratios, color=colour, marker=marker, linestyle="", alpha=0.7, markersize=5, label=dtype)
    for axes, what in zip(panels, ("operations", "the smallest of m, k, n"), strict=True):
        axes.axhline(1.0, color="#444444", linewidth=1)
        axes.axhline(0.9, color="#444444", linewidth=0.7, linestyle=":")
        axes.set(xscale="log", yscale="log", xlabel=what)
        axes.grid(alpha=0.3)
    ticks = (0.2, 0.35, 0.5, 0.7, 0.9, 1, 1.5, 2, 3, 5, 8)
    ratios = [row["graph_ratio"] for row in document["rows"]] or [1.0]
    shown = [tick for tick in ticks if 0.9 * min(ratios) <= tick <= 1.1 * max(ratios)] or [1]
    panels[0].set_yticks(shown, [f"{tick:g}" for tick in shown])
    panels[0].minorticks_off()
    panels[0].set_ylabel("times the vendor's speed, card alone")
    panels[1].legend(fontsize=8)
    return figure
