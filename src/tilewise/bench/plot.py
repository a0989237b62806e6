"""The pictures of a bench document: speed over size and the roofline, the TILE_WIDTH sweep, shapes beside their peers,
semirings beside their limits, random shapes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tilewise.bench.report import case_text, label, shape_text
from tilewise.bench.suites import Row
from tilewise.errors import EngineError, UsageError

# colours that differ for colour-blind readers too, and a marker each, so that a black-and-white print is readable too
STYLES = {
    "naive": ("#7f7f7f", "o"),
    "tiled": ("#56b4e9", "s"),
    "tiled_edges": ("#0072b2", "D"),
    "coarsened": ("#e69f00", "^"),
    "register_tiled": ("#d55e00", "*"),
    "plain": ("#cc0066", "h"),
    "bf16x6": ("#7a3db8", "P"),
    "course": ("#009e73", "x"),
    "cublas": ("#000000", "P"),
    "numpy": ("#cc79a7", "v"),
    "reference": ("#0072b2", "D"),
    "bfloat16": ("#d55e00", "o"),
    "float16": ("#e69f00", "s"),
    "float32": ("#0072b2", "^"),
    "tf32": ("#56b4e9", "v"),
    "float64": ("#009e73", "D"),
}
OTHER = ("#444444", ".")
# tilewise relative to a peer: a name, a colour and a hatch each
PEERS = {"openblas": ("OpenBLAS", "#0072b2", ""), "mkl": ("MKL", "#e69f00", "//"), "torch": ("torch", "#e69f00", "//")}


def draw(document: dict[str, Any], path: Path) -> None:
    """One file of one figure."""
    try:
        import matplotlib
    except ImportError:
        raise EngineError("--plot needs matplotlib: pip install 'tilewise[plot]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    suite, on_cpu = document["suite"], document["device"]["kind"] == "cpu"
    figures: dict[str, Callable[[dict[str, Any], Any], Any]] = {
        "random": _random,
        "tiles": _sweep,
        "semirings": _semirings,
        "shapes": _over_peers if on_cpu else _cliff,
        "ladder": _ladder,
    }
    if suite not in figures:
        raise UsageError(f"bench {suite} has no picture: leave --plot out")
    figure = figures[suite](document, pyplot)
    dtypes = dict.fromkeys(row["dtype"] for row in document["rows"] if "dtype" in row)
    threads = dict.fromkeys(row["threads"] for row in document["rows"] if "threads" in row)
    names = [document["device"]["name"], *dtypes] if len(dtypes) == 1 else [document["device"]["name"]]
    names += [f"{count} thread{'s' if count > 1 else ''}" for count in threads]
    figure.suptitle(", ".join([*names, document["date"]]))
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _ladder(document: dict[str, Any], pyplot: Any) -> Any:
    """Speed over size, and the roofline."""
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(14.5, 5.2), constrained_layout=True)
    _over_size(document, left)
    _roofline(document, right)
    return figure


def _plain_numbers(axes: Any) -> None:
    """Label a logarithmic y axis 1, 2, 5, 10, … in plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(alpha=0.3)


def _best_tile(document: dict[str, Any], kernel: str) -> int:
    rows = [row for row in document["rows"] if row["kernel"] == kernel]
    largest = max(row["shape"][0] for row in rows)
    return int(max((r for r in rows if r["shape"][0] == largest), key=lambda r: float(r["tflops"]))["tile"])


def _over_size(document: dict[str, Any], axes: Any) -> None:
    sizes = sorted({row["shape"][0] for row in document["rows"]})
    for kernel in dict.fromkeys(row["kernel"] for row in document["rows"]):
        tile = _best_tile(document, kernel)
        here = [r for r in document["rows"] if r["kernel"] == kernel and r["tile"] == tile]
        rows = sorted(here, key=lambda r: int(r["shape"][0]))
        colour, marker = STYLES.get(kernel, OTHER)
        places = [sizes.index(r["shape"][0]) for r in rows]  # evenly spaced, so that 4096 and 4097 do not overlap
        axes.plot(places, [r["tflops"] for r in rows], color=colour, marker=marker, label=label(rows[0]))
    axes.set(yscale="log", xlabel="size n of n×n×n", ylabel="TFLOP/s", title="The ladder: speed over size")
    axes.set_xticks(range(len(sizes)), [str(size) for size in sizes])
    _plain_numbers(axes)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


def _roofline(document: dict[str, Any], axes: Any) -> None:
    """Each rung's speed over its operations per byte of global traffic, by its plan."""
    device = document["device"]
    peak, bandwidth = 2 * device["float32_steps"] / 1e12, device["bandwidth"] / 1e12
    rows = [r for r in document["rows"] if r["bytes_with_tiles"]]
    size = max((r["shape"][0] for r in rows if len(set(r["shape"])) == 1), default=0)
    corners = [0.1, peak / bandwidth, 100.0]
    limits = [min(peak, bandwidth * corner) for corner in corners]
    axes.plot(corners, limits, color="#444444", label="memory and arithmetic limits")
    for row in rows:
        if row["shape"] != [size] * 3 or row["tile"] != _best_tile(document, row["kernel"]) or row["kernel"] == "tiled":
            continue  # only the best tile of each; tiled would be covered by tiled_edges
        colour, marker = STYLES.get(row["kernel"], OTHER)
        at = (2 * size**3 / row["bytes_with_tiles"], row["tflops"])
        axes.plot(*at, color=colour, marker=marker, markersize=9, linestyle="")
        axes.annotate(label(row), at, textcoords="offset points", xytext=(8, -3), fontsize=8)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="operations per byte of global traffic (by the plan)",
        ylabel="TFLOP/s",
        title=f"Roofline at {size}³ (left of the slope: the caches help)" if size else "Roofline",
    )
    _plain_numbers(axes)
    axes.legend(fontsize=8, loc="lower right")


def _cliff(document: dict[str, Any], pyplot: Any) -> Any:
    """Speed of every candidate at every shape, side by side."""
    rows = document["rows"]
    cases = list(dict.fromkeys(case_text(row) for row in rows))
    names = list(dict.fromkeys(row["kernel"] for row in rows))
    cells = {(row["kernel"], case_text(row)): row["tflops"] for row in rows}
    colours = ("#d55e00", "#000000", "#56b4e9", "#999999")
    figure, axes = pyplot.subplots(figsize=(max(7, 0.5 * len(cases)), 5), constrained_layout=True)
    width = 0.8 / len(names)
    for number, name in enumerate(names):
        there = [place for place, case in enumerate(cases) if (name, case) in cells]
        places = [place + (number - (len(names) - 1) / 2) * width for place in there]
        speeds = [cells[name, cases[place]] for place in there]
        axes.bar(places, speeds, width * 0.92, color=colours[number % len(colours)], label=name)
    axes.set_xticks(range(len(cases)), cases, rotation=50, ha="right", fontsize=8)
    axes.set_xlim(-0.6, len(cases) - 0.4)
    axes.set(ylabel="TFLOP/s", title="The cliff: aligned and ragged shapes")
    axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize=8, ncols=2)
    return figure


def _sweep(document: dict[str, Any], pyplot: Any) -> Any:
    shapes = list(dict.fromkeys(tuple(row["shape"]) for row in document["rows"]))
    columns = min(4, len(shapes))
    rows_of_panels = -(-len(shapes) // columns)
    size = (3.6 * columns, 3.1 * rows_of_panels)
    figure, grid = pyplot.subplots(
        rows_of_panels, columns, figsize=size, squeeze=False, constrained_layout=True, sharey=True
    )
    for axes in grid.flat[len(shapes) :]:
        axes.remove()
    for axes, shape in zip(grid.flat, shapes, strict=False):
        here = [row for row in document["rows"] if tuple(row["shape"]) == shape]
        for kernel in dict.fromkeys(row["kernel"] for row in here):
            rows = sorted((r for r in here if r["kernel"] == kernel), key=lambda r: int(r["tile"]))
            colour, marker = STYLES.get(kernel, OTHER)
            if rows[0]["tile"]:
                places, speeds = [r["tile"] for r in rows], [r["tflops"] for r in rows]
                axes.plot(places, speeds, color=colour, marker=marker, label=kernel)
            else:
                axes.axhline(rows[0]["tflops"], color=colour, linestyle=":", label=kernel)
        axes.set(xscale="log", yscale="log", title=shape_text(list(shape)), xlabel="TILE_WIDTH")
        axes.set_xticks([4, 8, 16, 32], ["4", "8", "16", "32"])
        _plain_numbers(axes)
    for axes in grid[:, 0]:
        axes.set_ylabel("TFLOP/s")
    figure.legend(*grid.flat[0].get_legend_handles_labels(), loc="outside right center", fontsize=8, frameon=False)
    return figure


def _over_peers(document: dict[str, Any], pyplot: Any) -> Any:
    """Times faster than each peer: a panel for each dtype, a group of bars for each shape."""
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
        axes.set_xticks(range(len(shapes)), [shape_text(s) for s in shapes], rotation=30, ha="right", fontsize=8)
        axes.grid(axis="y", alpha=0.3)
        axes.margins(y=0.12)
        if peers:
            axes.legend(fontsize=8, loc="upper left")
    return figure


def _semirings(document: dict[str, Any], pyplot: Any) -> Any:
    """Left: each semiring's share of the limit of its instructions. Right: how many times faster than each peer."""
    limits = [row for row in document["rows"] if "share_of_limit" in row]
    peers = [row for row in document["rows"] if "times_faster" in row]
    height = max(4.6, 0.3 * max(len(limits), len(peers)))
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(14.5, height), constrained_layout=True)
    _limits(left, limits, document["device"]["kind"] == "cpu")
    names = [f"{row['what']} {row['size']}, over {row['peer']}" for row in peers]
    bars = right.barh(names, [row["times_faster"] for row in peers], color="#d55e00", hatch="//", edgecolor="white")
    right.bar_label(bars, fmt="%.3g×", fontsize=8, padding=2)
    right.axvline(1, color="#444444", linewidth=1)
    times = [row["times_faster"] for row in peers] or [1.0]
    most, least = max(times), min(0.5, *times)
    right.set(xscale="log", xlim=(0.8 * least, 2 * most), xlabel="times faster", title="Beside other implementations")
    right.set_xticks([tick for tick in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200) if least <= tick <= 2 * most])
    right.xaxis.set_major_formatter("{x:g}")
    right.minorticks_off()
    for axes in (left, right):
        axes.invert_yaxis()
        axes.grid(axis="x", alpha=0.3)
    return figure


def _limits(axes: Any, rows: list[Row], on_cpu: bool) -> None:
    """Bars of shares of the limit; on a card with rates, and points for the misaligned size one larger."""
    names = [f"{row['semiring']} {row['dtype']}{', ' + row['known'] if row.get('known') else ''}" for row in rows]
    shares = [100 * row["share_of_limit"] for row in rows]
    bars = axes.barh(names, shares, color="#0072b2", label="aligned")
    texts = [f"{share:.0f} %" for share in shares]
    most, limit = 112.0, "port limit"
    if not on_cpu:
        texts = [
            f"{text}, {row['steps_per_second'] / 1e12:.3g} T steps/s" for text, row in zip(texts, rows, strict=True)
        ]
        ragged = [share * row["ragged_over_aligned"] for share, row in zip(shares, rows, strict=True)]
        axes.plot(ragged, range(len(names)), "D", color="#e69f00", markersize=5, label="one larger")
        axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2)
        most, limit = max(shares, default=100) + 70, "instructions' limit"  # room for the texts behind the bars
    axes.bar_label(bars, texts, fontsize=8, padding=2 if on_cpu else 6)
    axes.axvline(100, color="#444444", linewidth=1)
    axes.set(xlabel=f"% of the {limit}, same run", title="Every semiring", xlim=(0, most))


def _random(document: dict[str, Any], pyplot: Any) -> Any:
    """Speed relative to the vendor's, over operations (left) and over the smallest of m, k and n (right)."""
    figure, panels = pyplot.subplots(1, 2, figsize=(14, 5.2), constrained_layout=True, sharey=True)
    for dtype in dict.fromkeys(row["dtype"] for row in document["rows"]):
        rows = [row for row in document["rows"] if row["dtype"] == dtype]
        colour, marker = STYLES.get(dtype, OTHER)
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
