"""Readers against mutated files: a sentence or a right answer, never another exception, a hang, or a signal.

Each reader runs in a process of its own, with a limit of memory, so that a crash is a finding and not the end.
"""

from __future__ import annotations

import io
import json
import os
import random
import struct
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import hostile
import tilewise as tw
from tilewise.cache import DiskCache
from tilewise.cli.graphs import read_graph
from tilewise.cli.npy import read_matrix
from tilewise.engines.simt.limits import Limits
from tilewise.errors import TilewiseError
from tilewise.scale.journal import Journal, _sealed
from tilewise.scale.sources import NpyFile
from tilewise.system.lock import Lock

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="each reader runs in a forked child")
SECONDS = float(os.environ.get("FUZZ_SECONDS", "60"))
RING = "min_plus"


def npy(array, **how):
    file = io.BytesIO()
    np.save(file, array, **how)
    return file.getvalue()


def npz(**arrays):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            archive.writestr(f"{name}.npy", npy(array))
    return file.getvalue()


def from_npy(path):
    read_matrix(path)
    found = NpyFile(path)
    out = np.empty(found.shape, found.dtype.numpy) if found.shape[0] * found.shape[1] < 10**6 else None
    if out is not None:
        found.read(slice(0, found.shape[0]), slice(0, found.shape[1]), out)
    found.close()


def from_graph(path):
    from tilewise.algebra.builtin import find_semiring

    read_graph(path, find_semiring(RING))


def from_journal(path):
    Journal.peek(path)
    journal = Journal(path, {"tile": [64, 64, 64], "M": {"file": "A"}})
    try:
        journal.open()
    finally:
        journal.close()


def from_lock(path):
    lock = Lock(path, "C.npy")
    lock.take()
    lock.drop()


def from_cache(path):
    cache = DiskCache("x", path.parent / "cache")
    cache.get_or_build(("a",), lambda: b"right" * 20)
    entry = cache.path(("a",))
    entry.write_bytes(path.read_bytes())
    assert cache.get_or_build(("a",), lambda: b"right" * 20) == b"right" * 20


def from_source(path):
    tw.check(path, limits=Limits(seconds=1.5, memory=400 << 20))


def from_dlpack(path):
    """The bytes are a DLPack tensor's fields; its memory is 4096 bytes that are there."""
    from lying_dlpack import Capsule

    data = path.read_bytes().ljust(40, b"\0")
    rows, cols, row, col = struct.unpack("<qqqq", data[:32])
    held = np.zeros(512)
    made = Capsule(held, (rows, cols), (row, col), code=data[32], bits=data[33], lanes=data[34], kind=data[35])
    tw.matmul(made, made)


SEEDS = {
    "npy": (from_npy, [npy(np.arange(12.0).reshape(3, 4)), npy(np.asfortranarray(np.ones((5, 3), ">i2")))]),
    "npz": (
        from_graph,
        [
            npz(format=np.array(b"csr"), shape=np.array([3, 3]), data=np.ones(2), indices=np.array([0, 2]),
                indptr=np.array([0, 1, 2, 2])),
            npz(format=np.array(b"coo"), shape=np.array([3, 3]), data=np.ones(2), row=np.array([0, 2]),
                col=np.array([0, 1])),
        ],
    ),
    "mtx": (
        from_graph,
        [
            b"%%MatrixMarket matrix coordinate real general\n% a\n3 3 2\n1 1 1.5\n3 2 -4e3\n",
            b"%%MatrixMarket matrix array integer symmetric\n2 2\n1\n2\n3\n",
            b"%%MatrixMarket matrix coordinate pattern skew-symmetric\n3 3 1\n2 1\n",
        ],
    ),
    "journal": (
        from_journal,
        [
            _sealed({"job": {"version": 2, "tile": [64, 64, 64], "M": {"file": "A"}}})
            + _sealed({"tile": 3, "checksum": 77}) + _sealed({"tile": 4, "phases": 2, "slot": 1, "seal": 5})
        ],
    ),
    "lock": (from_lock, [json.dumps({"pid": 1, "host": "h", "since": 1.0}).encode()]),
    "cache entry": (from_cache, [b"x" * 132, b""]),
    "CUDA C": (from_source, [hostile.KERNEL.encode()]),
    "DLPack": (from_dlpack, [struct.pack("<qqqqBBBB", 8, 8, 8, 1, 2, 64, 1, 1)]),
}  # fmt: skip


def mutated(data, chance, others):
    data = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 3, 8])):
        at = chance.randrange(len(data) + 1)
        what = chance.randrange(7)
        if what == 0 and data:
            data[at % len(data)] ^= 1 << chance.randrange(8)
        elif what == 1:
            data[at:at] = bytes(chance.randrange(256) for _ in range(chance.randint(1, 8)))
        elif what == 2:
            del data[at : at + chance.randint(1, 40)]
        elif what == 3:
            data = data[:at]
        elif what == 4:
            data[at:at] = data[at : at + chance.randint(1, 60)] * chance.randint(1, 50)
        elif what == 5:
            numbers = [b"-1", b"0", b"99999999999", b"18446744073709551616", b"1e999", b"nan", b"\xff" * 8, b"\0" * 8]
            data[at : at + chance.randint(0, 8)] = chance.choice(numbers)
        else:
            other = chance.choice(others)
            data[at:] = other[chance.randrange(len(other) + 1) :]
    return bytes(data[: 1 << 16])


def fuzz(name, folder, seconds):
    """How many inputs were read, in a process of its own; its findings are the failure."""
    seed = time.time_ns() % 10**9
    done = subprocess.run(
        [sys.executable, __file__, name, str(folder), str(seconds), str(seed)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=seconds + 120,
    )
    said = done.stdout + done.stderr[-4000:]
    assert done.returncode == 0, (name, seed, done.returncode, said, f"the input is {folder / 'input'}")
    assert done.stdout.startswith("ok"), (name, seed, said)
    return int(done.stdout.split()[1]), seed


def _fuzzed(name, folder, seconds, seed):
    import resource

    resource.setrlimit(resource.RLIMIT_DATA, (3 << 30, 3 << 30))
    reader, seeds = SEEDS[name]
    chance = random.Random(seed)
    path, count = folder / "input", 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        path.unlink(missing_ok=True)
        made = (
            chance.choice(hostile.CLASSES)(chance).encode("utf-8", "replace")[: 1 << 20]
            if name == "CUDA C" and chance.random() < 0.1
            else mutated(chance.choice(seeds), chance, seeds)
        )
        path.write_bytes(made)
        start = time.process_time()
        try:
            with np.errstate(all="ignore"):
                reader(path)
        except (TilewiseError, MemoryError):
            pass
        count += 1
        took = time.process_time() - start
        if took > 4:
            return f"slow: {took:.1f} s"
    return f"ok {count}"


@pytest.mark.parametrize("name", SEEDS)
@pytest.mark.filterwarnings("ignore")
def test_a_moment_of_fuzzing(tmp_path, name):
    fuzz(name, tmp_path, 0.4)


@pytest.mark.torture
@pytest.mark.parametrize("name", SEEDS)
@pytest.mark.filterwarnings("ignore")
def test_fuzz(tmp_path, name):
    count, seed = fuzz(name, tmp_path, SECONDS)
    print(f"\n{count:9,} inputs of {name} in {SECONDS:.0f} s, nothing found; seed {seed}")


if __name__ == "__main__":
    print(_fuzzed(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])))
