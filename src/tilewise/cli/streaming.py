"""`tilewise multiply --memory` and `--cluster`: from file to file, tile by tile, with the time left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import Array, dtype_of
from tilewise.algebra.semiring import Semiring
from tilewise.api import matmul
from tilewise.cli.job import chosen_device
from tilewise.cli.output import counted_progress, progress, remark
from tilewise.core.accuracy import relative_error
from tilewise.scale.budget import budget
from tilewise.scale.files import BASE, TIGHT, FileProduct, FileReport
from tilewise.scale.sources import open_source
from tilewise.system.builtin_call import prefer_ctypes
from tilewise.system.memory import resident, return_freed_memory, usual_budget
from tilewise.system.quantities import counted, seconds

CHECK_ROWS, CHECK_BYTES = 4, 16_000_000  # rows of P to check; bytes of N read at a time, in the wider dtype


def multiply_streaming(
    files: tuple[Path, Path, Path], semiring: str, device: str, precision: str, memory: str | None, restart: bool,
    cluster: str | None, check: bool, keys: tuple[Path | None, Path | None, Path | None],
) -> tuple[dict[str, Any], list[tuple[str, str]], bool]:  # fmt: skip
    """The JSON document, the rows to print, and whether the check passed."""
    room = budget(memory, "--memory") if memory is not None else usual_budget()
    if room < TIGHT and resident() < BASE:  # in a process of our own, not inside another program
        prefer_ctypes()
        return_freed_memory()
    if cluster:
        from tilewise.scale.cluster import TlsFiles, multiply_on_cluster

        with counted_progress("multiplying") as update:
            document, rows = multiply_on_cluster(
                *files, semiring, device, precision, room, cluster, update, TlsFiles(*keys)
            )
    else:
        chosen = chosen_device(device)
        chosen = "cpu" if chosen == "cpu" else chosen if ":" in chosen else f"{chosen}:0"
        job = FileProduct(*files, memory=room, semiring=semiring, device=chosen, precision=precision)
        report = _run(job, restart)
        document, rows = report.to_json(), _rows(report)
    passed = True
    if check:
        error, tolerance = check_rows(*files, semiring)
        passed = error <= tolerance
        document["check"] = {"rows": CHECK_ROWS, "relative_error": error, "tolerance": tolerance, "passed": passed}
        rows.append(("check", f"{'ok' if passed else 'WRONG'}: relative error {error:.2e}, on {CHECK_ROWS} rows"))
    return document, [*rows, ("written", str(files[2]))], passed


def _run(job: FileProduct, restart: bool) -> FileReport:
    s = job.schedule
    remark(
        f"{s.grid[0]}x{s.grid[1]} tiles of {s.rows}x{s.cols}, {counted(s.phases, 'phase')} each; "
        f"{seconds(s.predicted)} expected"
    )
    bar, task = progress(s.tiles * max(1, s.phases), "multiplying")
    with bar:
        report = job.run(lambda done, total: bar.update(task, completed=done, total=total), restart)
    if report.resumed:
        remark(f"{report.resumed} of {s.tiles} tiles were finished before")
    return report


def _rows(report: FileReport) -> list[tuple[str, str]]:
    s = report.schedule
    p = s.problem
    rows = [("problem", f"{p.shape} {p.dtype} {p.semiring} -> {p.semiring.over(p.dtype).result}"), *s.summary()[:4]]
    if report.resumed:
        rows.append(("resumed", f"{report.resumed} of {s.tiles} tiles were complete, their checksums right"))
    rate = f"   {report.gflops:,.1f} GFLOP/s" if report.resumed < s.tiles else ""
    return [*rows, ("time", f"{seconds(report.seconds)}{rate}; {seconds(s.predicted)} expected for all of it")]


def _expected(rows: Array, band: Array, ring: Semiring) -> Array:
    """The product by NumPy or the reference backend: compiling a kernel would take 60 MB of a small budget."""
    if ring.name == "plus_times" and rows.dtype.kind in "fc":
        return np.asarray(rows @ band)
    return np.asarray(matmul(rows, band, semiring=ring, kernel="reference", tile=CHECK_ROWS))


def check_rows(m_file: Path, n_file: Path, output: Path, semiring: str) -> tuple[float, float]:
    """A few rows of P compared with the same rows in higher precision; N is read in bands of rows."""
    M, N, P = (open_source(path) for path in (m_file, n_file, output))
    (m, k), n = M.shape, N.shape[1]
    chosen = np.sort(np.random.default_rng(0).choice(m, min(CHECK_ROWS, m), replace=False))
    floats = {"f": np.float64, "c": np.complex128}.get(P.dtype.kind)
    wide_m, wide_n = (floats or x.dtype.numpy for x in (M, N))
    left = np.empty((len(chosen), k), M.dtype.numpy)
    got = np.empty((len(chosen), n), P.dtype.numpy)
    for number, row in enumerate(chosen):
        M.read(slice(row, row + 1), slice(0, k), left[number : number + 1])
        P.read(slice(row, row + 1), slice(0, n), got[number : number + 1])
    expected, ring = None, find_semiring(semiring)
    step = max(1, min(CHECK_BYTES // max(1, 16 * n), k))
    for top in range(0, k, step):
        band = np.empty((min(step, k - top), n), N.dtype.numpy)
        N.read(slice(top, top + len(band)), slice(0, n), band)
        part = left[:, top : top + len(band)].astype(wide_m)
        made = _expected(part, band.astype(wide_n), ring)
        with np.errstate(all="ignore"):
            expected = made if expected is None else ring.over(dtype_of(made.dtype)).add(expected, made)
    if expected is None:
        return 0.0, 0.0
    tolerance = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-5, "complex64": 2e-5}.get(P.dtype.name, 1e-13)
    return relative_error(got, expected), tolerance if floats else 0.0
