"""The picture of `bench semirings` on a card: every algebra against its instructions, and beside those who also can."""

from __future__ import annotations

from typing import Any


def card_semirings_figure(document: dict[str, Any], pyplot: Any) -> Any:
    """Left: every algebra's share of its instructions' limit, aligned and one larger. Right: how many times faster than
    each peer, 1 being level."""
    limits = [row for row in document["rows"] if "instruction_limit" in row]
    rivals = [row for row in document["rows"] if "times_faster" in row]
    height = max(4.6, 0.3 * max(len(limits), len(rivals)))
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(14.5, height), constrained_layout=True)
    names = [f"{row['semiring']} {row['dtype']}{', ' + row['known'] if row['known'] else ''}" for row in limits]
    shares = [100 * row["share_of_limit"] for row in limits]
    bars = left.barh(names, shares, color="#0072b2", label="aligned")
    rates = [
        f"{share:.0f} %, {row['steps_per_second'] / 1e12:.3g} T steps/s"
        for share, row in zip(shares, limits, strict=True)
    ]
    left.bar_label(bars, rates, fontsize=8, padding=6)
    ragged = [share * row["ragged_over_aligned"] for share, row in zip(shares, limits, strict=True)]
    left.plot(ragged, range(len(names)), "D", color="#e69f00", markersize=5, label="one larger")
    left.axvline(100, color="#444444", linewidth=1)
    most = max(shares, default=100) + 70  # room for what is written behind the bars
    left.set(xlabel="% of the instructions' limit, same run", title="Every algebra", xlim=(0, most))
    left.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2)
    names = [f"{row['what']} {row['size']}, over {row['peer']}" for row in rivals]
    bars = right.barh(names, [row["times_faster"] for row in rivals], color="#d55e00", hatch="//", edgecolor="white")
    right.bar_label(bars, fmt="%.3g×", fontsize=8, padding=2)
    right.axvline(1, color="#444444", linewidth=1)
    times = [row["times_faster"] for row in rivals] or [1.0]
    most, least = max(times), min(0.5, *times)
    right.set(xscale="log", xlim=(0.8 * least, 2 * most), xlabel="times faster", title="Against those who also can")
    right.set_xticks([tick for tick in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if least <= tick <= 2 * most])
    right.xaxis.set_major_formatter("{x:g}")
    right.minorticks_off()
    for axes in (left, right):
        axes.invert_yaxis()
        axes.grid(axis="x", alpha=0.3)
    return figure
