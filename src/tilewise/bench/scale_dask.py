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
