"""`tilewise multiply --cluster`: operands and product are files on shared disks; a tile is a Dask task."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewise.backends.cpu.runtime.pool import available_cores
from tilewise.core.options import Options
from tilewise.errors import DeviceError, EngineError, FileError, TilewiseError, UsageError
from tilewise.scale import host
from tilewise.scale.files import problem_of
from tilewise.scale.schedule import Schedule
from tilewise.scale.sources import open_source
from tilewise.scale.targets import NpyTarget, ZarrTarget
from tilewise.system.output import Output
from tilewise.system.quantities import seconds, size

PATIENCE = 5.0  # seconds to wait for the scheduler


class StoredMatrix:
    """A file as an array for Dask, pickled as its path; each slice opens, reads and closes the file."""

    ndim = 2

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        with closing(open_source(self.path)) as source:
            self.shape, self.dtype = source.shape, source.dtype.numpy

    def __getitem__(self, part: tuple[slice, slice]) -> Any:
        rows, cols = (slice(*p.indices(extent)) for p, extent in zip(part, self.shape, strict=True))
        out = np.empty((rows.stop - rows.start, cols.stop - cols.start), self.dtype)
        with closing(open_source(self.path)) as source:
            source.read(rows, cols, out)
        return out


@dataclass(frozen=True)
class TlsFiles:
    """The TLS files for a cluster."""

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None

    def security(self, cluster: str) -> Any:
        """Dask's Security object, or None if the address needs none."""
        given = {"--tls-ca": self.ca, "--tls-cert": self.cert, "--tls-key": self.key}
        if not cluster.startswith("tls://") and not any(given.values()):
            return None
        missing = [name for name, path in given.items() if path is None]
        if missing or not cluster.startswith("tls://"):
            raise UsageError(
                f"--cluster {cluster} needs {', '.join(missing)}: a scheduler at tls:// is reached with all three"
                if missing
                else f"--cluster {cluster} is not reached by TLS: give a tls:// address, or no --tls-… options"
            )
        for path in given.values():
            assert path is not None
            if not path.is_file():
                raise FileError(f"{path} does not exist")
        from distributed.security import Security

        return Security(
            tls_ca_file=str(self.ca), tls_client_cert=str(self.cert), tls_client_key=str(self.key),
            require_encryption=True,
        )  # fmt: skip


@contextmanager
def connected(cluster: str, memory: int, keys: TlsFiles | None = None) -> Iterator[Any]:
    """A client of the cluster: `local` starts one worker per core, an address is connected to."""
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise UsageError("--cluster needs Dask, which is not installed: pip install 'tilewise[dask]'") from None
    if cluster == "local":
        cores = available_cores()
        with LocalCluster(**local_workers(cores, memory // cores)) as started, Client(started) as client:
            yield client
        return
    secure = {"security": security} if (security := (keys or TlsFiles()).security(cluster)) is not None else {}
    with dask.config.set({"distributed.comm.timeouts.connect": f"{PATIENCE:.0f}s"}):
        try:
            client = Client(cluster, timeout=PATIENCE, **secure)
        except (OSError, ValueError, TimeoutError, TypeError, RuntimeError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise DeviceError(
                f"no Dask scheduler answers at --cluster {cluster} ({reason}): "
                "give an address such as tcp://host:8786, or local"
            ) from None
    with client:
        if not client.nthreads():
            raise DeviceError(f"the Dask scheduler at --cluster {cluster} has no workers: start some, or use local")
        yield client


def local_workers(count: int, memory: int | str) -> dict[str, Any]:
    """Keywords of LocalCluster: single-threaded worker processes, whose products use one thread."""
    one = {"TILEWISE_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    quiet = {"dashboard_address": None, "silence_logs": 50}
    return {"n_workers": count, "threads_per_worker": 1, "memory_limit": memory, "env": one, **quiet}


def multiply_on_cluster(
    m_file: Path,
    n_file: Path,
    output: Path,
    semiring: str,
    device: str,
    precision: str,
    memory: int,
    cluster: str,
    progress: host.Progress | None = None,
    keys: TlsFiles | None = None,
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Compute P tile by tile on the workers; the file is renamed when it is complete. `memory`: of all workers."""
    with Output(output, (".npy", ".zarr")) as place:
        with closing(open_source(m_file)) as M, closing(open_source(n_file)) as N:
            problem = problem_of(M, N, semiring, precision)
        result = problem.semiring.over(problem.dtype).result
        kind = ZarrTarget if place.path.suffix == ".zarr" else NpyTarget
        target = kind(place.path, place.part, (problem.m, problem.n), result)
        start = time.perf_counter()
        with connected(cluster, memory, keys) as client:
            import dask.array as da

            from tilewise.scale.dask_product import dask_matmul

            workers = len(client.nthreads())
            each = memory // max(1, workers)
            level = host.host_level(problem)
            grain, name = target.grain or (64, 64), "half a worker's memory"
            plan = host.host_schedule(problem, level, each // 2, grain=grain, name=name)
            left, right = (
                da.from_array(StoredMatrix(path), chunks=chunks, asarray=False, meta=np.empty((0, 0), kind.numpy))
                for path, chunks, kind in (
                    (m_file, (plan.rows, plan.depth), problem.dtype_m),
                    (n_file, (plan.depth, plan.cols), problem.dtype_n),
                )
            )
            o = Options(semiring, device=device, precision=precision)
            place.discard_unfinished()
            target.begin()
            try:
                _run(dask_matmul(left, right, o), plan, target, client, progress)
                target.complete()
            finally:
                target.close()
            place.finish()
    took = time.perf_counter() - start
    rate = 2 * problem.steps / took / 1e9
    document = {"problem": problem.to_json(), "schedule": plan.to_json(), "workers": workers}
    document |= {"seconds": took, "gflops": rate}
    rows = [
        ("problem", f"{problem.shape} {problem.dtype} {problem.semiring} -> {result}"),
        ("cluster", f"{workers} workers of {size(each)}"),
        ("tiles", f"{plan.grid[0]} x {plan.grid[1]} of {plan.rows}x{plan.cols}, {plan.phases} phases of {plan.depth}"),
        ("time", f"{seconds(took)}   {rate:,.1f} GFLOP/s"),
    ]
    return document, rows


def _run(P: Any, plan: Schedule, target: NpyTarget | ZarrTarget, client: Any, progress: host.Progress | None) -> None:
    import dask
    from distributed import as_completed

    put = dask.delayed(_put, pure=False)
    blocks = P.to_delayed()
    jobs = [put(target, plan.tile(i * plan.grid[1] + j), blocks[i, j]) for i, j in np.ndindex(*plan.grid)]
    futures = client.compute(jobs, optimize_graph=False)
    try:
        for number, future in enumerate(as_completed(futures), 1):
            try:
                future.result()
            except TilewiseError:
                raise
            except Exception as error:
                raise EngineError(f"a tile failed on its worker: {type(error).__name__}: {error}") from error
            if progress is not None:
                progress(number, len(jobs))
    except BaseException:
        client.cancel(futures)
        raise


def _put(target: NpyTarget | ZarrTarget, tile: Any, part: Any) -> None:
    """On a worker: write a tile into the shared file."""
    if not target.part.exists():
        raise FileError(f"{target.part} cannot be reached from a worker: operands and product must lie on shared disks")
    target.resume()
    try:
        target.write(tile.rows, tile.cols, part)
        target.sync()
    finally:
        target.close()
