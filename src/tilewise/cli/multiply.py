"""`tilewise multiply`: the product of two files or of random operands, with its times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tilewise.cli.output import json_option, show


@click.command("multiply")
@click.argument("m_file", required=False, metavar="[A.npy", type=click.Path(path_type=Path))
@click.argument("n_file", required=False, metavar="B.npy]", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the product to this .npy.")
@click.option("--shape", help="Make random operands instead: MxKxN, for example 1000x500x700.")
@click.option("--dtype", default="float32", show_default=True, help="Dtype of the operands that --shape makes.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of those operands.")
@click.option("--semiring", default="plus_times", show_default=True, help="plus_times, min_plus, max_min, …")
@click.option("--device", default="auto", show_default=True, help="auto (the best present), cpu, simt, cuda, cuda:1.")
@click.option("--kernel", help="A rung of the ladder: naive, tiled, tiled_edges, coarsened, register_tiled.")
@click.option("--tile", type=int, help="TILE_WIDTH, 1 to 32.")
@click.option("--precision", default="high", show_default=True, help="float32 on a card: ieee, high, tf32.")
@click.option("--reproducible", help="The same bits for any batch or on every machine: batch, everywhere.")
@click.option("--alpha", default=1.0, show_default=True, help="Scales the product.")
@click.option("--bias", type=click.Path(path_type=Path), help="A .npy of n numbers, added to every row.")
@click.option("--activation", help="Applied last: relu, gelu, gelu_tanh, silu.")
@click.option("--memory", help="Stream from file to file within this much memory: 2GB. An interrupted run resumes.")
@click.option("--restart", is_flag=True, help="Discard the tiles that an earlier run with --memory finished.")
@click.option("--cluster", help="Spread the tiles over Dask workers: local, or a scheduler's address.")
@click.option("--tls-ca", type=click.Path(path_type=Path), help="For a cluster at tls://: its authority's certificate,")
@click.option("--tls-cert", type=click.Path(path_type=Path), help="your own certificate,")
@click.option("--tls-key", type=click.Path(path_type=Path), help="and its key.")
@click.option("--check", is_flag=True, help="Compare with the reference in float64; exit 1 if it differs.")
@json_option
def command(
    m_file: Path | None, n_file: Path | None, output: Path | None, shape: str | None, dtype: str, seed: int,
    device: str, bias: Path | None, memory: str | None, restart: bool, cluster: str | None, tls_ca: Path | None,
    tls_cert: Path | None, tls_key: Path | None, check: bool, as_json: bool, **how: Any,
) -> int:  # fmt: skip
    """Multiply A.npy by B.npy, or random operands of --shape MxKxN.

    Prints the times of copying in, computing and copying out apart. Operands and product may be .zarr stores; with
    --memory or --cluster they are read tile by tile and need not fit into memory.
    """
    if bool(shape) == bool(m_file) or bool(m_file) != bool(n_file):
        raise click.UsageError("give two .npy files, or --shape MxKxN to make the operands")
    stores = any(path is not None and path.suffix == ".zarr" for path in (m_file, n_file, output))
    keys = (tls_ca, tls_cert, tls_key)
    if any(keys) and not cluster:
        raise click.UsageError("--tls-ca, --tls-cert and --tls-key belong to --cluster tls://…")
    if memory is not None or cluster or restart or stores:
        from tilewise.cli.streaming import multiply_streaming

        pinned = how["kernel"] or how["tile"] or how["alpha"] != 1 or bias or how["activation"] or how["reproducible"]
        if not (m_file and n_file and output) or pinned:
            raise click.UsageError(
                "--memory, --cluster and .zarr take two files and -o, and no --kernel, --tile, --alpha, --bias, "
                "--activation or --reproducible"
            )
        files = (m_file, n_file, output)
        document, rows, passed = multiply_streaming(
            files, how["semiring"], device, how["precision"], memory, restart, cluster, check, keys
        )
        show(document, rows, as_json)
        return 0 if passed else 1
    from tilewise.cli.npy import reserved, write_matrix

    with reserved(output) as place:
        M, N = _operands(m_file, n_file, shape, dtype, seed)
        report, checked = _multiplied(M, N, device, bias, check, **how)
        if place:
            write_matrix(place, report.product)
    show(_document(report, checked, output), _rows(report, checked, output), as_json)
    return 1 if checked and not checked.passed else 0


def _operands(m_file: Path | None, n_file: Path | None, shape: str | None, dtype: str, seed: int) -> tuple[Any, Any]:
    from tilewise.cli.job import make_operands
    from tilewise.cli.npy import read_matrix
    from tilewise.core.problem import parse_shape
    from tilewise.errors import ShapeError
    from tilewise.system.quantities import counted

    if shape:
        return make_operands(parse_shape(shape), dtype, seed)
    assert m_file is not None
    assert n_file is not None
    M, N = read_matrix(m_file), read_matrix(n_file)
    for path, array in ((m_file, M), (n_file, N)):
        if array.ndim != 2:
            raise ShapeError(
                f"{path} holds an array of {counted(array.ndim, 'axis', 'axes')}: multiply takes matrices, which have 2"
            )
    return M, N


def _multiplied(M: Any, N: Any, device: str, bias: Path | None, check: bool, **how: Any) -> tuple[Any, Any]:
    """The timed product, and the result of the check, if requested."""
    from tilewise.cli.job import check_product, chosen_device
    from tilewise.cli.npy import read_matrix
    from tilewise.dispatch.timed import timed_matmul

    row = read_matrix(bias) if bias else None
    report = timed_matmul(M, N, device=chosen_device(device), bias=row, **how)
    return report, check_product(M, N, report, row) if check else None


def _document(report: Any, checked: Any, output: Path | None) -> dict[str, Any]:
    document: dict[str, Any] = report.to_json()
    if checked:
        document["check"] = {
            "rows": checked.rows,
            "relative_error": checked.error,
            "tolerance": checked.tolerance,
            "passed": checked.passed,
            "cpu_seconds": checked.cpu_seconds,
            "speed_up_over_cpu": checked.cpu_seconds / report.times.kernel if report.times.kernel else None,
        }
    if output:
        document["output"] = str(output)
    return document


def _rows(report: Any, checked: Any, output: Path | None) -> list[tuple[str, str]]:
    from tilewise.system.quantities import counted, seconds

    plan, times = report.plan, report.times
    p = plan.problem
    made, phases = f"{p.epilogue.formula()}, " if p.epilogue else "", counted(plan.phases, "phase")
    rows = [
        ("problem", f"{p.shape} {p.dtype} {p.semiring} -> {p.result}"),
        ("ran", f"{made}{plan.engine}:{plan.kernel} on {plan.machine.name}; {plan.cut}; {phases}"),
    ]
    if plan.engine == "cuda":
        rows.append(("copy in", seconds(times.copy_in)))
    rows.append(("kernel", f"{seconds(times.kernel)}   {report.gflops:,.1f} GFLOP/s"))
    if plan.engine == "cuda":
        rows.append(("copy out", seconds(times.copy_out)))
    if checked:
        verdict = "ok" if checked.passed else "WRONG"
        sample = "" if checked.rows == p.m else f", on {checked.rows} of {p.m} rows"
        rows.append(("check", f"{verdict}: relative error {checked.error:.2e}{sample}"))
        if plan.engine == "cuda":
            rows.append(("speed-up", f"{checked.cpu_seconds / times.kernel:,.0f} times the CPU's reference engine"))
    if output:
        rows.append(("written", str(output)))
    return rows
