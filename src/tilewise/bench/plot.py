"""The pictures of a bench document: speed over size, the TILE_WIDTH sweep, and the roofline with the rungs on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tilewise.bench.card_plot import card_semirings_figure
from tilewise.bench.cpu_plot import semirings_figure, shapes_figure
from tilewise.bench.random_plot import random_figure
from tilewise.bench.report import case_text, label, shape_text
from tilewise.errors import EngineError, UsageError

# colours that stay apart for colour-blind eyes, and a marker each, so that a black-and-white print is readable too
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
}
OTHER = ("#444444", ".")


def draw(document: dict[str, Any], path: Path) -> None:
    """One file: for `ladder` the speed over size and the roofline; one picture for every other suite."""
    try:
        import matplotlib
    except ImportError:
        raise EngineError("--plot needs matplotlib: pip install 'tilewise[plot]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    if document["suite"] in ("linear", "dtypes", "model"):
        raise UsageError(f"bench {document['suite']} has no picture: leave --plot out")
    if document["suite"] == "random":
        figure = random_figure(document, pyplot)
    elif document["suite"] == "tiles":
        figure = _sweep(document, pyplot)
    elif document["suite"] == "semirings":
        on_cpu = document["device"]["kind"] == "cpu"
        figure = (semirings_figure if on_cpu else card_semirings_figure)(document, pyplot)
    elif document["suite"] == "shapes" and document["device"]["kind"] == "cpu":
        figure = shapes_figure(document, pyplot)
    elif document["suite"] == "shapes":
        figure = _cliff(document, pyplot)
    else:
        figure, (left, right) = pyplot.subplots(1, 2, figsize=(14.5, 5.2), constrained_layout=True)
        _over_size(document, left)
        _roofline(document, right)
    dtypes = dict.fromkeys(row["dtype"] for row in document["rows"] if "dtype" in row)
    threads = dict.fromkeys(row["threads"] for row in document["rows"] if "threads" in row)
    names = [document["device"]["name"], *dtypes] if len(dtypes) == 1 else [document["device"]["name"]]
    names += [f"{count} thread{'s' if count > 1 else ''}" for count in threads]
    figure.suptitle(", ".join([*names, document["date"]]))
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _plain_numbers(axes: Any) -> None:
    """1, 2, 5, 10 on the logarithmic axis, not powers of ten with gaps."""
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
        places = [sizes.index(r["shape"][0]) for r in rows]  # evenly spaced, so that 4096 and 4097 stand apart
        axes.plot(places, [r["tflops"] for r in rows], color=colour, marker=marker, label=label(rows[0]))
    axes.set(yscale="log", xlabel="size n of n×n×n", ylabel="TFLOP/s", title="The ladder: speed over size")
    axes.set_xticks(range(len(sizes)), [str(size) for size in sizes])
    _plain_numbers(axes)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


def _roofline(document: dict[str, Any], axes: Any) -> None:
    """Each rung where its own traffic puts it: operations per byte it moves from global memory, by its plan."""
    device = document["device"]
    peak, bandwidth = 2 * device["float32_steps"] / 1e12, device["bandwidth"] / 1e12
    rows = [r for r in document["rows"] if r["bytes_with_tiles"]]
    size = max((r["shape"][0] for r in rows if len(set(r["shape"])) == 1), default=0)
    corners = [0.1, peak / bandwidth, 100.0]
    limits = [min(peak, bandwidth * corner) for corner in corners]
    axes.plot(corners, limits, color="#444444", label="memory and arithmetic limits")
    for row in rows:
        if row["shape"] != [size] * 3 or row["tile"] != _best_tile(document, row["kernel"]) or row["kernel"] == "tiled":
            continue  # the best tile of each; tiled would hide under tiled_edges
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
    """Speed of every contestant at every shape, side by side: where one falls, it shows."""
    rows = [row for row in document["rows"] if not case_text(row).endswith("host")]
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
    lines = -(-len(shapes) // columns)
    size = (3.6 * columns, 3.1 * lines)
    figure, grid = pyplot.subplots(lines, columns, figsize=size, squeeze=False, constrained_layout=True, sharey=True)
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
