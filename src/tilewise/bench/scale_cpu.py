"""Products and closures from file to file on this machine: speed beside the same in memory, and memory taken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import tilewise
from tilewise.api import matmul
from tilewise.errors import EngineError

Row = dict[str, Any]
BASE = 32768  # the side of three files of 4.3 GB, which has a budget of 1 GB; smaller ones have their share
LEAST = 260_000_000  # below this the interpreter itself is most of it
IN_MEMORY = 8192


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
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        matmul(M, N, out=P)
        times.append(time.perf_counter() - start)
    return 2 * side**3 / float(np.median(times)) / 1e9


def write_random(path: Path, side: int, seed: int) -> None:
    """A file larger than one would hold, band by band."""
    made = np.lib.format.open_memmap(path, "w+", np.float32, (side, side))
    rng = np.random.default_rng(seed)
    for top in range(0, side, 1024):
        made[top : top + 1024] = rng.standard_normal((min(1024, side - top), side), np.float32)
    made.flush()


def command(folder: str, *arguments: str) -> tuple[Any, int]:
    """A command of ours in a process of its own: its JSON, and the most memory the system saw it hold."""
    environment = os.environ | {"PYTHONPATH": str(Path(tilewise.__file__).parents[1])}
    process = subprocess.Popen(
        [sys.executable, "-m", "tilewise", *arguments, "--json"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    peak = 0
    watching = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not watching.wait(0.01):
            peak = max(peak, most_memory(process.pid))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    out, said = process.communicate()
    watching.set()
    watcher.join()
    if process.returncode:
        raise EngineError(f"tilewise {' '.join(arguments)} failed: {said.decode(errors='replace').strip()}")
    return json.loads(out), peak


def most_memory(pid: int) -> int:
    """The most a process has held so far. (What the system says when a process ends counts its parent's memory too.)"""
    try:
        for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return 0
