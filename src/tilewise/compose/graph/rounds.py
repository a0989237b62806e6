"""Closures larger than memory: D is in a file, and each round of blocks streams it once.

A round takes a block K of nodes: its rows are read whole and closed; then every other band of rows is read, relaxed
through K and written back, while the next one is read. Wider blocks mean fewer rounds and bytes, narrower
ones fewer steps. `choose_rounds` is pure; `close_file` does the work.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import Array, DType
from tilewise.algebra.semiring import Algebra, Semiring
from tilewise.compose.graph.blocks import close_block, start_block
from tilewise.compose.graph.laws import Progress, check_idempotent, one_of
from tilewise.dispatch.product import matmul
from tilewise.errors import DtypeError, ShapeError, TooLargeError
from tilewise.scale.files import resident
from tilewise.scale.schedule import NORM
from tilewise.scale.sources import open_source
from tilewise.scale.targets import NpyTarget
from tilewise.system.output import Output
from tilewise.system.quantities import seconds, size

GRAIN = 64
BANDS = 3  # in memory at once: one is read, one multiplied, one written
BAND = 1024  # rows of a band at most
STRIP = 1024  # columns of the rows of K that are multiplied by the closed block at a time
ENGINE_BYTES = 64 * 2**20  # packing buffers of the CPU backend, and growth of the interpreter
DISK = (1.5e9, 4e8)  # assumed bytes a second of reading and of writing
STEP_RATE = 4e10  # assumed steps a second, unless measured


@dataclass(frozen=True)
class Rounds:
    """The blocking of a closure of n nodes within a memory budget."""

    nodes: int
    itemsize: int
    memory: int
    block: int
    band: int
    spare: int = 0
    steps: float = STEP_RATE  # a second

    @property
    def count(self) -> int:
        return math.ceil(self.nodes / self.block)

    @property
    def needs(self) -> int:
        n, b = self.nodes, self.block
        cells = b * n + 2 * b * b + b * min(n, STRIP) + BANDS * self.band * n + 2 * self.band * b
        return cells * self.itemsize + self.spare

    @property
    def bytes_moved(self) -> int:
        """D is read and written once in each round, and once when it is initialised from the weights."""
        return 2 * (self.count + 1) * self.nodes**2 * self.itemsize

    @property
    def predicted(self) -> float:
        """Seconds, disk and products overlapping. Closing the blocks and multiplying their rows and columns by them
        takes n³ / rounds steps more."""
        disk = self.bytes_moved / 2 * (1 / DISK[0] + 1 / DISK[1])
        work = self.nodes**3 * (1 + 1 / self.count) / self.steps
        return float((work**NORM + disk**NORM) ** (1 / NORM))  # as in a schedule

    def summary(self) -> list[tuple[str, str]]:
        """Rows of a name and a text."""
        n = self.nodes
        return [
            ("closure", f"{n:,} nodes, {size(n * n * self.itemsize)}"),
            ("memory", f"{size(self.memory)} requested, {size(self.needs)} used"),
            ("rounds", f"{self.count} of {self.block} nodes, bands of {self.band} rows"),
            ("moved", f"{size(self.bytes_moved)} to and from the disk"),
            ("expected", f"{seconds(self.predicted)} at {self.steps / 1e9:.3g} G steps/s"),
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "nodes": self.nodes,
            "memory": self.memory,
            "needs": self.needs,
            "block": self.block,
            "band": self.band,
            "rounds": self.count,
            "bytes_moved": self.bytes_moved,
            "predicted_seconds": self.predicted,
        }


def choose_rounds(nodes: int, itemsize: int, memory: int, spare: int = 0, steps: float = STEP_RATE) -> Rounds:
    """The blocks with the least expected time among those that fit, and bands in the remaining memory.

    Wide blocks move fewer bytes, narrow ones take fewer steps.
    """
    nodes = max(1, nodes)

    def made(block: int) -> Rounds:
        block = min(block, nodes)
        bare = Rounds(nodes, itemsize, memory, block, 0, spare, steps)
        rows = (memory - bare.needs) // (itemsize * (BANDS * nodes + 2 * block))
        return replace(bare, band=min(nodes, max(GRAIN, min(BAND, rows // GRAIN * GRAIN))))

    smallest = made(GRAIN)
    if smallest.needs > memory:
        raise TooLargeError(
            f"memory={size(memory)} is too small for a closure of {nodes:,} nodes: "
            f"the least that works is {-(-smallest.needs // 1000) * 1000:,} bytes ({size(smallest.needs * 1.005)})"
        )
    block = GRAIN
    while block < nodes and made(block + GRAIN).needs <= memory:
        block += GRAIN
    least = math.ceil(nodes / block)
    evenly = [made(-(-math.ceil(nodes / count) // GRAIN) * GRAIN) for count in range(least, 17 * least)]
    return min(evenly, key=lambda rounds: rounds.predicted)


def algebra_for(semiring: str | Semiring, dtype: DType) -> Algebra:
    """The algebra of a closure in a file, whose accumulator and result dtypes must be equal."""
    algebra = find_semiring(semiring).over(dtype)
    check_idempotent(algebra)
    if algebra.partial != algebra.result or algebra.partial.is_integer:
        raise DtypeError(f"a closure within a memory budget is over float32, float64 or bool, not {dtype}: convert it")
    return algebra


def measured_steps(algebra: Algebra) -> float:
    """Steps a second of one product on this machine."""
    import time

    x = np.random.default_rng(0).random((768, 768)).astype(algebra.partial.numpy)
    out = matmul(x, x, semiring=algebra.semiring)
    start = time.perf_counter()
    matmul(x, x, semiring=algebra.semiring, out=out, accumulate=True)
    return float(768**3 / (time.perf_counter() - start))


def close_file(
    path: Path,
    output: Path,
    semiring: str | Semiring,
    memory: int,
    progress: Progress | None = None,
    base: int | None = None,
) -> Rounds:
    """The closure of the weights in `path`, a square .npy file or Zarr array, as the .npy file `output`.

    memory: bytes for the whole process; `base`: those already in use, measured by default.
    """
    with Output(output, (".npy",)) as place:
        return _close_into(place, path, semiring, memory, progress, base)


def _close_into(
    place: Output, path: Path, semiring: str | Semiring, memory: int, progress: Progress | None, base: int | None
) -> Rounds:
    W = open_source(path)
    n = W.shape[0]
    if W.shape[0] != W.shape[1]:
        raise ShapeError(f"{path} is {W.shape[0]}×{W.shape[1]}: a closure takes a square matrix, rows being the nodes")
    algebra = algebra_for(semiring, W.dtype)
    steps = measured_steps(algebra)
    taken = resident()[0] + ENGINE_BYTES if base is None else base
    rounds = choose_rounds(n, algebra.partial.itemsize, memory, taken, steps)
    D = NpyTarget(place.path, place.part, W.shape, algebra.result)
    place.discard_unfinished()
    D.begin()
    try:
        _FileClosure(rounds, algebra, D).run(W, progress)
        D.complete()
    finally:
        D.close()
    place.finish()
    return rounds


class _FileClosure:
    def __init__(self, rounds: Rounds, algebra: Algebra, D: NpyTarget) -> None:
        self.rounds, self.algebra, self.D = rounds, algebra, D
        self.n = rounds.nodes if D.shape[0] else 0
        self.one = one_of(algebra)
        dtype = algebra.partial.numpy
        self.bands = [np.empty((rounds.band, self.n), dtype) for _ in range(BANDS)]
        self.rows = np.empty((rounds.block, self.n), dtype)

    def run(self, W: Any, progress: Progress | None) -> None:
        everything = [slice(top, min(top + self.rounds.band, self.n)) for top in range(0, self.n, self.rounds.band)]
        with ThreadPoolExecutor(1, "tilewise reader") as reader, ThreadPoolExecutor(1, "tilewise writer") as writer:

            def stream(bands: list[slice], read: Callable[..., Any], work: Callable[[slice, Array], None]) -> None:
                """Read each band ahead, apply `work`, write it; BANDS buffers rotate."""
                writes: list[Future[None] | None] = [None] * BANDS

                def read_ahead(number: int) -> Future[Any] | None:
                    if number >= len(bands):
                        return None
                    earlier = writes[number % BANDS]
                    if earlier is not None:
                        earlier.result()
                    here = bands[number]
                    return reader.submit(read, here, slice(0, self.n), self._buffer(number, here))

                next_band = read_ahead(0)
                for number, here in enumerate(bands):
                    assert next_band is not None
                    next_band.result()
                    next_band = read_ahead(number + 1)
                    band = self._buffer(number, here)
                    work(here, band)
                    writes[number % BANDS] = writer.submit(self.D.write, here, slice(0, self.n), band)
                for last in writes:
                    if last is not None:
                        last.result()

            stream(everything, W.read, self._begin)
            for number, start in enumerate(range(0, self.n, self.rounds.block)):
                K = slice(start, min(start + self.rounds.block, self.n))
                square = self._close_rows(K)
                others = [
                    slice(max(band.start, low), min(band.stop, high))
                    for band in everything
                    for low, high in ((0, K.start), (K.stop, self.n))
                    if max(band.start, low) < min(band.stop, high)
                ]
                stream(others, self.D.read, partial(self._relax_band, K, square))
                if progress is not None:
                    progress(number + 1, self.rounds.count)

    def _buffer(self, number: int, here: slice) -> Array:
        return self.bands[number % BANDS][: here.stop - here.start]

    def _begin(self, here: slice, band: Array) -> None:
        start_block(band, self.algebra, self.one, here.start)

    def _close_rows(self, K: slice) -> Array:
        """Close the block K and multiply its rows by it; returns the block."""
        rows = self.rows[: K.stop - K.start]
        self.D.read(K, slice(0, self.n), rows)
        square = rows[:, K].copy()
        close_block(square, self.algebra, self.one, K.start)
        for left in range(0, self.n, STRIP):
            strip = rows[:, left : left + STRIP]
            matmul(square, strip.copy(), semiring=self.algebra.semiring, out=strip, accumulate=True)
        rows[:, K] = square
        self.D.write(K, slice(0, self.n), rows)
        return square

    def _relax_band(self, K: slice, square: Array, _: slice, band: Array) -> None:
        rows, ring = self.rows[: K.stop - K.start], self.algebra.semiring
        to = band[:, K].copy()
        matmul(band[:, K].copy(), square, semiring=ring, out=to, accumulate=True)
        matmul(to, rows, semiring=ring, out=band, accumulate=True)
