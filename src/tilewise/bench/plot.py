"""The pictures of a bench document: speed over size, the TILE_WIDTH sweep, and the roofline with the rungs on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tilewise.bench.report import label, shape_text
from tilewise.errors import EngineError

# colours that stay apart for colour-blind eyes, and a marker each, so that a black-and-white print is readable too
STYLES = {
    "naive": ("#7f7f7f", "o"),
    "tiled": ("#56b4e9", "s"),
    "tiled_edges": ("#0072b2", "D"),
    "coarsened": ("#e69f00", "^"),
    "register_tiled": ("#d55e00", "*"),
    "course": ("#009e73", "x"),
    "cublas": ("#000000", "P"),
    "numpy": ("#000000", "P"),
    "reference": ("#0072b2", "D"),
}


def draw(document: dict[str, Any], path: Path) -> None:
    """One file: for `ladder` the speed over size and the roofline, for `tiles` the sweep."""
    try:
        import matplotlib
    except ImportError:
        raise EngineError("--plot needs matplotlib: pip install 'tilewise[plot]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    if document["suite"] == "tiles":
        figure = _sweep(document, pyplot)
    else:
        figure, (left, right) = pyplot.subplots(1, 2, figsize=(13, 5.2), constrained_layout=True)
        _over_size(document, left)
        _roofline(document, right)
    figure.suptitle(f"{document['device']['name']}, float32, {document['date']}")
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def _best_tile(document: dict[str, Any], kernel: str) -> int:
    rows = [row for row in document["rows"] if row["kernel"] == kernel]
    largest = max(row["shape"][0] for row in rows)
    return int(max((r for r in rows if r["shape"][0] == largest), key=lambda r: float(r["tflops"]))["tile"])


def _over_size(document: dict[str, Any], axes: Any) -> None:
    for kernel in dict.fromkeys(row["kernel"] for row in document["rows"]):
        tile = _best_tile(document, kernel)
        rows = sorted(
            (r for r in document["rows"] if r["kernel"] == kernel and r["tile"] == tile),
            key=lambda r: int(r["shape"][0]),
        )
        colour, marker = STYLES.get(kernel, ("#cc79a7", "."))
        name = f"{kernel} {tile}" if tile else kernel
        axes.plot([r["shape"][0] for r in rows], [r["tflops"] for r in rows], color=colour, marker=marker, label=name)
    axes.set(
        xscale="log", yscale="log", xlabel="size n of n×n×n", ylabel="TFLOP/s", title="The ladder: speed over size"
    )
    sizes = sorted({row["shape"][0] for row in document["rows"]})
    shown = [size for size in sizes if size & (size - 1) == 0 or len(sizes) < 8]
    axes.set_xticks(shown, [str(size) for size in shown])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def _roofline(document: dict[str, Any], axes: Any) -> None:
    """Each rung where its own traffic puts it: operations per byte it moves from global memory, by its plan."""
    device = document["device"]
    peak, bandwidth = 2 * device["float32_steps"] / 1e12, device["bandwidth"] / 1e12
    rows = [r for r in document["rows"] if r["bytes_with_tiles"]]
    size = max((r["shape"][0] for r in rows if len(set(r["shape"])) == 1), default=0)
    here = [r for r in rows if r["shape"] == [size] * 3]
    intensities = [0.1, peak / bandwidth, 300.0]
    axes.plot(
        intensities,
        [min(peak, bandwidth * i) for i in intensities],
        color="#444444",
        label="memory and arithmetic limits",
    )
    for row in here:
        colour, marker = STYLES.get(row["kernel"], ("#cc79a7", "."))
        intensity = 2 * size**3 / row["bytes_with_tiles"]
        axes.plot(intensity, row["tflops"], color=colour, marker=marker, markersize=9, linestyle="")
        axes.annotate(label(row), (intensity, row["tflops"]), textcoords="offset points", xytext=(7, -3), fontsize=8)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="operations per byte of global traffic (by the plan)",
        ylabel="TFLOP/s",
        title=f"Roofline at {size}³: above the slope, caches help" if here else "Roofline",
    )
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="upper left")


def _sweep(document: dict[str, Any], pyplot: Any) -> Any:
    shapes = list(dict.fromkeys(tuple(row["shape"]) for row in document["rows"]))
    columns = min(4, len(shapes))
    lines = -(-len(shapes) // columns)
    figure, grid = pyplot.subplots(
        lines, columns, figsize=(3.6 * columns, 3.1 * lines), squeeze=False, constrained_layout=True, sharex=True
    )
    for axes in grid.flat[len(shapes) :]:
        axes.remove()
    for axes, shape in zip(grid.flat, shapes, strict=False):
        here = [row for row in document["rows"] if tuple(row["shape"]) == shape]
        for kernel in dict.fromkeys(row["kernel"] for row in here if row["tile"]):
            rows = sorted((r for r in here if r["kernel"] == kernel), key=lambda r: int(r["tile"]))
            colour, marker = STYLES.get(kernel, ("#cc79a7", "."))
            axes.plot([r["tile"] for r in rows], [r["tflops"] for r in rows], color=colour, marker=marker, label=kernel)
        for row in here:
            if not row["tile"]:
                axes.axhline(
                    row["tflops"],
                    color=STYLES.get(row["kernel"], ("#000000", ""))[0],
                    linestyle=":",
                    label=row["kernel"],
                )
        axes.set(xscale="log", yscale="log", title=shape_text(list(shape)), xlabel="TILE_WIDTH", ylabel="TFLOP/s")
        axes.set_xticks([4, 8, 16, 32], ["4", "8", "16", "32"])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    grid.flat[0].legend(fontsize=7)
    return figure
