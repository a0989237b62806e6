"""`tilewise closure`: the best paths between every two nodes of a graph, from a file to a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from tilewise.cli.output import counted_progress, json_option, remark, show


@click.command("closure")
@click.argument("graph", metavar="GRAPH", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the closure to this .npy.")
@click.option("--predecessors", type=click.Path(path_type=Path), help="Write the predecessors to this .npy.")
@click.option("--semiring", default="min_plus", show_default=True, help="min_plus, max_min, min_max, lor_land, …")
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda, cuda:1.")
@click.option("--path", "ends", nargs=2, type=int, metavar="FROM TO", help="Also show the path between two nodes.")
@click.option("--memory", help="Keep D in its file and use at most this much memory: 8GB.")
@json_option
def command(
    graph: Path, output: Path | None, predecessors: Path | None, semiring: str, device: str,
    ends: tuple[int, int] | None, memory: str | None, as_json: bool,
) -> None:  # fmt: skip
    """The best over all paths between every two nodes: shortest, widest, or whether there is one.

    GRAPH is a dense .npy matrix of weights, a sparse .npz of SciPy, or a Matrix Market .mtx file.
    """
    from tilewise.algebra.builtin import find_semiring
    from tilewise.cli.npy import reserved

    ring = find_semiring(semiring)
    if memory is not None:
        if not output or predecessors or ends or device not in ("auto", "cpu"):
            raise click.UsageError(
                "--memory takes a dense GRAPH and -o, works on the CPU, and takes neither --predecessors nor --path"
            )
        _close_in_file(graph, output, semiring, memory, as_json)
        return
    if output and predecessors and output.resolve() == predecessors.resolve():
        raise click.UsageError("-o and --predecessors name the same file: give two")
    with reserved(output) as place, reserved(predecessors) as table:
        document, rows = _in_memory(graph, ring, device, ends, place, table)
    show(document, rows, as_json)
    if output and not as_json:
        remark(f"written to {output}")


def _in_memory(
    graph: Path, ring: Any, device: str, ends: tuple[int, int] | None, place: Any, table: Any
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    import numpy as np

    from tilewise.algebra.dtypes import dtype_of
    from tilewise.cli.graphs import read_graph
    from tilewise.cli.npy import write_matrix
    from tilewise.compose.graph.closure import closure
    from tilewise.compose.graph.paths import path

    W = read_graph(graph, ring)
    with_predecessors = bool(table or ends)
    start = time.perf_counter()
    with counted_progress("closing") as update:
        made = closure(W, semiring=ring, return_predecessors=with_predecessors, progress=update, device=device)
    seconds = time.perf_counter() - start
    D, predecessors_table = made if with_predecessors else (made, None)
    nodes = path(predecessors_table, *ends) if ends else None
    if place:
        write_matrix(place, D)
    if table and predecessors_table is not None:
        write_matrix(table, predecessors_table)
    zero = ring.over(dtype_of(D.dtype)).zero
    pairs = int(np.count_nonzero(zero != D)) - len(D)
    document = {"nodes": len(D), "semiring": ring.name, "dtype": D.dtype.name, "seconds": seconds, "pairs": pairs}
    rows = [
        ("nodes", f"{len(D):,}"),
        ("semiring", ring.name),
        ("connected pairs", f"{pairs:,} of {len(D) * (len(D) - 1):,}"),
        ("time", f"{seconds:.3g} s"),
    ]
    if ends:
        document |= {"path": nodes, "weight": D[ends].item()}
        rows.append(("path", " → ".join(map(str, nodes)) if nodes else f"there is none from {ends[0]} to {ends[1]}"))
        rows.append(("weight", str(D[ends].item())))
    return document, rows


def _close_in_file(graph: Path, output: Path, semiring: str, memory: str, as_json: bool) -> None:
    """From file to file; D is read and written once in each round."""
    from tilewise.compose.graph.rounds import close_file
    from tilewise.scale.budget import budget
    from tilewise.system.quantities import seconds as seconds_text

    start = time.perf_counter()
    with counted_progress("closing") as update:
        rounds = close_file(graph, output, semiring, budget(memory, "--memory"), update)
    took = time.perf_counter() - start
    document = {"rounds": rounds.to_json(), "semiring": semiring, "seconds": took, "output": str(output)}
    rate = rounds.nodes**3 / took / 1e9
    time_row = ("time", f"{seconds_text(took)}   {rate:,.1f} G steps/s")
    show(document, [*rounds.summary()[:4], time_row, ("written", str(output))], as_json)
