"""Products on a local Dask cluster: worker memory of ours and of Dask's product, also under a memory limit at which
Dask's does not finish."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tilewise.api import matmul
from tilewise.bench.peak import Peak, resident
from tilewise.bench.suites import Row
from tilewise.core.problem import problem_of_shape
from tilewise.scale.cluster import StoredMatrix, local_workers
from tilewise.scale.workers import Spread, Workers

WORKERS = 4


@contextlib.contextmanager
def local_cluster(memory_limit: str | int = 0, workers: int = WORKERS, **how: Any) -> Iterator[Any]:
    """A cluster of single-threaded worker processes without log output."""
    import dask
    from distributed import Client, LocalCluster

    quiet = {"distributed.comm.timeouts.connect": "30s", "distributed.logging.distributed": "critical"}
    with (
        dask.config.set(quiet | how.pop("config", {})),
        LocalCluster(**local_workers(workers, memory_limit), **how) as cluster,
        Client(cluster) as client,
    ):
        client.run(_load)
        yield client


def _load() -> int:
    """Load modules and kernels in a worker, so that they do not count as live data."""
    import dask.array as da
    import numpy as np

    x = da.ones((8, 8), chunks=4)
    matmul(x, x).sum().compute(scheduler="sync")
    (np.ones((64, 64)) @ np.ones((64, 64))).sum()
    return 0


def peak_of_workers(client: Any) -> Peak:
    """The peak of the workers' resident memory beyond its present size."""
    held = {pid: resident(pid) for pid in client.run(os.getpid).values()}
    return Peak(lambda: sum(max(0, resident(pid) - base) for pid, base in held.items()))


def random_operands(blocks: int, side: int) -> list[Any]:
    import dask.array as da

    return [da.random.default_rng(seed).standard_normal((blocks * side,) * 2, chunks=side) for seed in (1, 2)]


PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {"tilewise": matmul, "dask": lambda x, y: x @ y}


def live_data(blocks: int = 16, side: int = 512) -> list[Row]:
    """blocks × blocks × blocks products of float64 blocks: peak memory of the workers and seconds, each on a fresh
    cluster. P is summed, so that neither keeps it."""
    rows = []
    for name, multiply in PRODUCTS.items():
        x, y = random_operands(blocks, side)
        with local_cluster() as client, peak_of_workers(client) as watched:
            start = time.perf_counter()
            total = float(client.compute(multiply(x, y).sum()).result())
            seconds = time.perf_counter() - start
        rows.append(
            {
                "what": "live data on 4 workers",
                "who": name,
                "size": f"{blocks}×{blocks}×{blocks} blocks",
                "result": f"{watched.largest / 1e6:,.0f} MB at the peak, {seconds:.3g} s",
                "blocks": blocks,
                "shape": [blocks * side] * 3,
                "dtype": "float64",
                "operand_bytes": (blocks * side) ** 2 * 8,
                "peak_bytes": watched.largest,
                "seconds": seconds,
                "sum": total,
            }
        )
    return rows


def memory_limit(limit: str = "400MB", blocks: int = 16, side: int = 512, patience: float = 150.0) -> list[Row]:
    """The products on workers with a memory limit: whether Dask's and ours finish."""
    rows: list[Row] = []
    for name, multiply in PRODUCTS.items():
        x, y = random_operands(blocks, side)
        started = time.perf_counter()
        spilled, outcome = 0, "finished"
        with local_cluster(limit) as client:
            job = client.compute(multiply(x, y).sum())
            while not job.done() and time.perf_counter() - started < patience:
                time.sleep(0.2)
                workers = client.scheduler_info(n_workers=-1)["workers"].values()
                now = sum(w["metrics"].get("spilled_bytes", {}).get("disk", 0) for w in workers)
                spilled = max(spilled, now)
            if job.status == "error":
                outcome = f"failed: {type(job.exception()).__name__}"
            elif not job.done():
                outcome = f"not finished after {patience:.0f} s"
                job.cancel()
            seconds = time.perf_counter() - started
        spill = f", spilled {spilled / 1e6:,.0f} MB to disk" if spilled else ""
        rows.append(
            {
                "what": f"4 workers of {limit}",
                "who": name,
                "size": f"{blocks}×{blocks}×{blocks} blocks of {side}² float64",
                "result": f"{outcome}, {seconds:.3g} s{spill}",
                "outcome": outcome,
                "spilled_bytes": spilled,
                "seconds": seconds,
            }
        )
    return rows


def planned(sides: tuple[int, ...] = (2048, 3072, 4096), workers: tuple[int, ...] = (1, 2)) -> list[Row]:
    """The cost model of many workers beside runs: rates of one worker are measured apart, times are predicted, and
    then the products are computed, from .npy files, in tiles of a quarter of the side."""
    import tempfile

    import dask.array as da
    import numpy as np

    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(0)
        stored = {}
        for side in sides:
            path = Path(folder) / f"{side}.npy"
            np.save(path, rng.standard_normal((side, side), np.float32))
            stored[side] = StoredMatrix(path)
        for count in workers:
            with local_cluster(workers=count) as client:
                rates = client.submit(_rates, stored[sides[-1]], pure=False).result()
                tiny = da.ones((64, 64), chunks=16, dtype=np.float32)
                starts = [_seconds(client, matmul(tiny + number, tiny).sum()) for number in range(3)]
                machines = Workers(count, rates[0], rates[1], overlap=False, start=min(starts))
                for side in sides:
                    step = side // 4
                    x = da.from_array(stored[side], chunks=step, asarray=False, meta=np.empty((0, 0), np.float32))
                    took = _seconds(client, matmul(x, x).sum())
                    spread = Spread(problem_of_shape(side, side, side), machines, 4, 4, 1)
                    ratio = spread.predicted / took
                    rows.append(
                        {
                            "what": "the model of workers",
                            "who": f"{count} workers" if count > 1 else "1 worker",
                            "size": f"{side}³ float32 in 4×4 tiles",
                            "result": f"{spread.predicted:.3g} s predicted, {took:.3g} s measured: {ratio:.2f}",
                            "predicted_seconds": spread.predicted,
                            "seconds": took,
                            "ratio": ratio,
                            "bytes_in_a_worker": spread.bytes_in,
                        }
                    )
    return rows


def _seconds(client: Any, job: Any) -> float:
    start = time.perf_counter()
    client.compute(job).result()
    return time.perf_counter() - start


def _rates(stored: Any) -> tuple[float, float]:
    """On a worker: steps a second of a tile's product, bytes a second of a panel's reading."""
    import numpy as np

    side = stored.shape[0] // 4
    part = (slice(0, side), slice(0, side))
    M = stored[part]
    times = []
    for _ in range(15):
        start = time.perf_counter()
        M = stored[part]
        middle = time.perf_counter()
        matmul(M, M, out=np.empty_like(M))
        times.append((middle - start, time.perf_counter() - middle))
    read, multiply = (float(np.median(column)) for column in zip(*times, strict=True))
    return side**3 / multiply, M.nbytes / read
