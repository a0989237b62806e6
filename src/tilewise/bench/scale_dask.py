"""Products on a Dask cluster of this machine: the memory its workers hold, ours beside Dask's own product, and a memory
limit under which Dask's own does not finish."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tilewise.api import matmul
from tilewise.scale.cluster import local_workers

Row = dict[str, Any]
WORKERS = 4


@contextlib.contextmanager
def local_cluster(memory_limit: str | int = 0, workers: int = WORKERS, **how: Any) -> Iterator[Any]:
    """Workers that are processes of one thread, quiet, and gone at the end."""
    import dask
    from distributed import Client, LocalCluster

    quiet = {"distributed.comm.timeouts.connect": "30s", "distributed.logging.distributed": "critical"}
    with (
        dask.config.set(quiet | how.pop("config", {})),
        LocalCluster(**local_workers(workers, memory_limit), **how) as cluster,
        Client(cluster) as client,
    ):
        client.run(_warm)
        yield client


def _warm() -> int:
    """What a worker loads once is not live data."""
    import dask.array as da
    import numpy as np

    x = da.ones((8, 8), chunks=4)
    matmul(x, x).sum().compute(scheduler="sync")
    (np.ones((64, 64)) @ np.ones((64, 64))).sum()
    return 0


class PeakOfWorkers:
    """The most memory all workers together held beyond what they held at first, by the system's own count."""

    def __init__(self, client: Any) -> None:
        self._pids = list(client.run(_pid).values())
        self._over = threading.Event()
        self.peak = 0
        self.largest = 0  # of one worker

    def __enter__(self) -> PeakOfWorkers:
        self._base = {pid: _resident(pid) for pid in self._pids}
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.01):
            more = [max(0, _resident(pid) - base) for pid, base in self._base.items()]
            self.peak, self.largest = max(self.peak, sum(more)), max(self.largest, *more)


def _pid() -> int:
    import os

    return os.getpid()


def _resident(pid: int) -> int:
    import os

    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def live_data(blocks: int = 16, side: int = 512) -> list[Row]:
    """blocks × blocks × blocks products of float64 blocks: peak memory of the workers and seconds, each on a fresh
    cluster. P is summed, so that neither keeps it."""
    import dask.array as da

    def operands() -> tuple[Any, Any]:
        makers = da.random.default_rng(1), da.random.default_rng(2)
        x, y = (r.standard_normal((blocks * side,) * 2, chunks=side) for r in makers)
        return x, y

    contestants: dict[str, Callable[[Any, Any], Any]] = {
        "tilewise": matmul,
        "dask": lambda x, y: x @ y,
    }
    rows, sums = [], {}
    for name, multiply in contestants.items():
        x, y = operands()
        with local_cluster() as client, PeakOfWorkers(client) as watched:
            start = time.perf_counter()
            sums[name] = float(client.compute(multiply(x, y).sum()).result())
            seconds = time.perf_counter() - start
        rows.append(
            {
                "what": "live data on 4 workers",
                "who": name,
                "size": f"{blocks}×{blocks}×{blocks} blocks",
                "result": f"{watched.peak / 1e6:,.0f} MB at the peak, {seconds:.3g} s",
                "blocks": blocks,
                "shape": [blocks * side] * 3,
                "dtype": "float64",
                "operand_bytes": (blocks * side) ** 2 * 8,
                "peak_bytes": watched.peak,
                "seconds": seconds,
                "sum": sums[name],
            }
        )
    return rows


def memory_limit(limit: str = "400MB", blocks: int = 16, side: int = 512, patience: float = 150.0) -> list[Row]:
    """The same products on workers that may not hold more than `limit` each: what Dask's own does then, and ours."""
    import dask.array as da

    rows: list[Row] = []
    for name in ("tilewise", "dask"):
        makers = da.random.default_rng(1), da.random.default_rng(2)
        x, y = (r.standard_normal((blocks * side,) * 2, chunks=side) for r in makers)
        started = time.perf_counter()
        spilled, outcome = 0, "finished"
        with local_cluster(limit) as client:
            job = client.compute((matmul(x, y) if name == "tilewise" else x @ y).sum())
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
    """The model of many workers held against runs: rates of one worker are measured apart, times are predicted, and
    then the products are made, from .npy files, in tiles of a quarter of the side."""
    import tempfile

    import dask.array as da
    import numpy as np

    from tilewise.core.problem import problem_of_shape
    from tilewise.scale.cluster import StoredMatrix
    from tilewise.scale.workers import Crew, Spread

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
                starts = []
                for turn in range(3):
                    begin = time.perf_counter()
                    client.compute(matmul(tiny + turn, tiny).sum()).result()
                    starts.append(time.perf_counter() - begin)
                crew = Crew(count, rates[0], rates[1], overlap=False, start=min(starts))
                for side in sides:
                    step = side // 4
                    x = da.from_array(stored[side], chunks=step, asarray=False, meta=np.empty((0, 0), np.float32))
                    job = matmul(x, x).sum()
                    start = time.perf_counter()
                    client.compute(job).result()
                    took = time.perf_counter() - start
                    spread = Spread(problem_of_shape(side, side, side), crew, 4, 4, 1)
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
