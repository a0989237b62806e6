"""Suite `scale` on a CPU: products and closures from file to file: speed beside products in memory, and peak memory;
products on a local Dask cluster, if Dask is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from tilewise.api import matmul
from tilewise.bench.peak import Peak, most_resident
from tilewise.bench.suites import Piece, Request, Row
from tilewise.bench.timing import interleaved
from tilewise.errors import EngineError
from tilewise.system.resources import PACKAGE

BASE = 32768  # side at which the budget is 1 GB, and each of the three files has 4.3 GB; others have the same share
LEAST = 260_000_000  # bytes; of less, the interpreter itself takes most
IN_MEMORY = 8192


def pieces(request: Request) -> Iterator[Piece]:
    for side in request.sizes or ((4096,) if request.quick else (16384,)):
        yield partial(files, side)
    yield partial(closure, 3000 if request.quick else 8000)
    if find_spec("distributed"):
        from tilewise.bench import scale_dask

        yield partial(scale_dask.live_data, 16, 128 if request.quick else 512)
        yield partial(scale_dask.memory_limit, blocks=8 if request.quick else 16, side=512)
        yield scale_dask.planned


def files(side: int, rounds: int = 3) -> list[Row]:
    """side³ float32 from file to file by the command, beside the product in memory of up to 8192³."""
    memory = max(LEAST, int(1e9 * (side / BASE) ** 2))
    inside = min(side, IN_MEMORY)
    rate = in_memory_rate(inside, rounds)
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate("AB"):
            write_random(Path(folder) / f"{name}.npy", side, number)
        document, peak = command(
            folder, "multiply", "A.npy", "B.npy", "-o", "C.npy", "--memory", str(memory), "--device", "cpu"
        )
    share = document["gflops"] / rate
    return [
        {
            "what": "files within a budget",
            "who": f"{memory / 1e9:.3g} GB",
            "size": f"{side}³ float32, 3 × {side * side * 4 / 1e9:.3g} GB",
            "result": f"{document['gflops']:,.0f} GFLOP/s, {share:.2f} of in memory; peak {peak / 1e9:.3g} GB",
            "side": side,
            "memory": memory,
            "peak_bytes": peak,
            "gflops": document["gflops"],
            "in_memory_gflops": rate,
            "in_memory_side": inside,
            "share_of_in_memory": share,
            "seconds": document["seconds"],
            "schedule": document["schedule"],
        }
    ]


def closure(nodes: int, share: float = 8e9 / (30_000**2 * 4)) -> list[Row]:
    """The closure of a graph in a file, within the share of its matrix that 8 GB are of 30,000 nodes."""
    memory = max(LEAST, int(share * nodes**2 * 4))
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        W = rng.random((nodes, nodes), np.float32)
        W[rng.random((nodes, nodes), np.float32) > 0.05] = np.inf
        np.save(Path(folder) / "W.npy", W)
        del W
        document, peak = command(folder, "closure", "W.npy", "-o", "D.npy", "--memory", str(memory))
    rounds, seconds = document["rounds"], document["seconds"]
    return [
        {
            "what": "min_plus closure in a file",
            "who": f"{memory / 1e9:.3g} GB",
            "size": f"{nodes:,} nodes, {nodes * nodes * 4 / 1e9:.3g} GB",
            "result": f"{seconds:.3g} s, {rounds['predicted_seconds']:.3g} s expected; peak {peak / 1e9:.3g} GB",
            "nodes": nodes,
            "memory": memory,
            "peak_bytes": peak,
            "seconds": seconds,
            "rounds": rounds,
            "gigasteps": nodes**3 / seconds / 1e9,
        }
    ]


def in_memory_rate(side: int, rounds: int) -> float:
    """GFLOP/s of float32 operands in memory, the median."""
    rng = np.random.default_rng(0)
    M, N = (rng.standard_normal((side, side), np.float32) for _ in range(2))
    P = matmul(M, N)
    seconds = interleaved({"ours": lambda: matmul(M, N, out=P)}, rounds, 1)["ours"]
    return 2 * side**3 / seconds / 1e9


def write_random(path: Path, side: int, seed: int) -> None:
    """A file that may be larger than memory, 1024 rows at a time."""
    made = np.lib.format.open_memmap(path, "w+", np.float32, (side, side))
    rng = np.random.default_rng(seed)
    for top in range(0, side, 1024):
        made[top : top + 1024] = rng.standard_normal((min(1024, side - top), side), np.float32)
    made.flush()


def command(folder: str, *arguments: str) -> tuple[Any, int]:
    """A tilewise command in another process: its JSON, and its peak resident memory."""
    environment = os.environ | {"PYTHONPATH": str(PACKAGE.parent)}
    process = subprocess.Popen(
        [sys.executable, "-m", "tilewise", *arguments, "--json"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with Peak(lambda: most_resident(process.pid)) as watched:
        out, errors = process.communicate()
    if process.returncode:
        raise EngineError(f"tilewise {' '.join(arguments)} failed: {errors.decode(errors='replace').strip()}")
    return json.loads(out), watched.largest
