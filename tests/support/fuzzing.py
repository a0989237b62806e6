"""Readers under fuzz: for each a function that reads a file, seeds, and a generator that knows the format.

Whatever the bytes, a reader gives a right answer or a sentence (a TilewiseError), never another exception, a hang or a
signal. Where the interpreter can say which lines ran (Python 3.12), inputs that reach a new line of tilewise join the
corpus and are mutated further.

    python tests/support/fuzzing.py NAME FOLDER SECONDS SEED     one reader for so many seconds; one line of JSON
"""

from __future__ import annotations

import json
import os
import random
import struct
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import fuzzed_formats as formats
import tilewise as tw
from tilewise.algebra.builtin import find_semiring
from tilewise.cli.graphs import read_graph
from tilewise.cli.npy import read_matrix
from tilewise.emulator.limits import Limits
from tilewise.errors import TilewiseError
from tilewise.scale.journal import Journal
from tilewise.scale.sources import NpyFile
from tilewise.system.cache import DiskCache
from tilewise.system.lock import Lock
from tilewise.teaching.course.assignment import read_assignment

MEMORY = 3 << 30  # bytes of data that a reader's process may have
SLOW = 4.0  # seconds of CPU that one small input may take
KEPT = 200  # inputs of a corpus


def from_npy(path):
    read_matrix(path)
    found = NpyFile(path)
    if found.shape[0] * found.shape[1] < 10**6:
        out = np.empty(found.shape, found.dtype.numpy)
        found.read(slice(0, found.shape[0]), slice(0, found.shape[1]), out)
    found.close()


def from_graph(path):
    read_graph(path, find_semiring("min_plus"))


def from_journal(path):
    Journal.peek(path)
    journal = Journal(path, formats.JOB)
    try:
        journal.open()
    finally:
        journal.close()
    if path.stat().st_size % 8 == 0:  # some of them lead a product astray, if they can
        formats.product_after(path)


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
    made = Capsule(np.zeros(512), (rows, cols), (row, col), data[32], data[33], data[34], data[35], offset=data[36])
    steps = max(1, abs(rows)) * max(1, abs(cols)) * max(1, abs(cols))
    if 10**7 < rows * max(3, cols) < 10**10:
        return  # where its strides wrap to something true, it is only large
    other = Capsule(np.ones(512), (min(64, max(0, cols)), 3), (3, 1))
    tw.matmul(made, made if steps < 10**9 and rows == cols else other)


@dataclass(frozen=True)
class Fuzzed:
    read: Callable[[Path], object]
    seeds: tuple[bytes, ...]
    make: Callable[[random.Random], bytes]


READERS = {
    "npy": Fuzzed(from_npy, formats.NPY, formats.npy),
    "npz": Fuzzed(from_graph, formats.NPZ, formats.npz),
    "mtx": Fuzzed(from_graph, formats.MTX, formats.mtx),
    "journal": Fuzzed(from_journal, formats.JOURNAL, formats.journal),
    "cache entry": Fuzzed(from_cache, (b"x" * 132, b""), formats.noise),
    "DLPack": Fuzzed(from_dlpack, formats.DLPACK, formats.dlpack),
    "TOML": Fuzzed(read_assignment, formats.TOML, formats.toml),
    "CUDA C": Fuzzed(from_source, formats.CUDA, formats.cuda),
    "lock": Fuzzed(from_lock, (json.dumps({"pid": 1, "host": "h", "since": 1.0}).encode(),), formats.noise),
}


class Lines:
    """Says whether an input reached a line of tilewise that none before it did; each line is reported once."""

    def __init__(self):
        self.new, self.monitoring = 0, getattr(sys, "monitoring", None)
        if self.monitoring is None:
            return
        root = str(Path(tw.__file__).parent)

        def line(code, _number):
            self.new += code.co_filename.startswith(root)
            return self.monitoring.DISABLE

        self.monitoring.use_tool_id(self.monitoring.COVERAGE_ID, "fuzzing")
        self.monitoring.register_callback(self.monitoring.COVERAGE_ID, self.monitoring.events.LINE, line)
        self.monitoring.set_events(self.monitoring.COVERAGE_ID, self.monitoring.events.LINE)

    def reached(self):
        found, self.new = self.new, 0
        return found


def fuzz(name, folder, seconds, seed):
    """Read inputs for so many seconds of the clock; what was found, if anything, ends it."""
    import resource

    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    reader, chance, path = READERS[name], random.Random(seed), folder / "input"
    corpus, lines, count = list(reader.seeds), Lines(), 0
    began, end = time.process_time(), time.monotonic() + seconds
    found = ""
    while time.monotonic() < end and not found:
        path.unlink(missing_ok=True)
        made = reader.make(chance) if chance.random() < 0.4 else formats.mutated(chance.choice(corpus), chance, corpus)
        path.write_bytes(made)
        start = time.process_time()
        try:
            with np.errstate(all="ignore"):
                reader.read(path)
        except (TilewiseError, MemoryError):
            pass
        except Exception:
            found = traceback.format_exc()
        count += 1
        took = time.process_time() - start
        if took > SLOW:
            found = f"slow: {took:.1f} s"
        if lines.reached() and len(corpus) < KEPT and len(made) < 1 << 16:
            corpus.append(made)
    cpu = time.process_time() - began
    return {"reader": name, "seed": seed, "inputs": count, "cpu": cpu, "corpus": len(corpus), "found": found}


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    print(json.dumps(fuzz(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))))
