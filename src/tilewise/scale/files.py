"""A resumable product from files to a file within a memory budget.

Operands are .npy files or Zarr arrays; P is written under a temporary name beside a journal of its finished tiles. The
same call again reads the journal: finished tiles are verified by their checksums, the others are computed, and the
bytes are the same as without the interruption.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tilewise.algebra.dtypes import DType
from tilewise.algebra.semiring import Semiring
from tilewise.backends.cpu.limits import host_machine
from tilewise.core.problem import Problem, problem_of_shape
from tilewise.errors import FileError, ShapeError
from tilewise.scale import host, pieces
from tilewise.scale.checkpoint import Checkpoint, SavedTile
from tilewise.scale.compiler_child import CompilerChild
from tilewise.scale.journal import Journal
from tilewise.scale.schedule import GRAIN, Level, OutputTile, Schedule
from tilewise.scale.sources import BAND, ZarrSource, open_source
from tilewise.scale.targets import NpyTarget, ZarrTarget
from tilewise.system.memory import release_library_pages
from tilewise.system.memory import resident as memory_now
from tilewise.system.output import Output
from tilewise.system.version import __version__

ZARR_BYTES = 20_000_000  # memory of Zarr and its codecs
CHUNK_SECONDS = 7e-4  # overhead of Zarr for each chunk
TIGHT = 10**9  # below this budget a child process compiles the kernels
GROWN = 40_000_000  # bytes beyond BASE up to which a process counts as fresh
SPARE = 8 * BAND  # bands that are converted, checked or encoded, and packed panels
PHASE = 40.0  # longest phase, in seconds of one core at nominal rates
LEAST_TILE = (512, 512, 256)  # rows, columns and depth: smaller tiles would take far too long
BASE = 112_000_000  # memory of the process beside tiles: the interpreter, NumPy and LLVM
TRIMMED = 64_000_000  # the same if LLVM's pages are released before tiles are allocated
LOADING = 104_000_000  # and while kernels are loaded
CHUNK, SMALL_CHUNK = 1024, 512  # sides of the chunks of a Zarr P; four chunks are in memory beside a tile


@dataclass(frozen=True)
class FileReport:
    """The result of a job, and how much of it this run computed."""

    schedule: Schedule
    seconds: float
    resumed: int  # tiles finished by an earlier run
    output: Path

    @property
    def gflops(self) -> float:
        """Of this run, a step counting as two operations."""
        share = 1 - self.resumed / max(1, self.schedule.tiles)
        return 2 * self.schedule.problem.steps * share / self.seconds / 1e9 if self.seconds else 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "schedule": self.schedule.to_json(),
            "problem": self.schedule.problem.to_json(),
            "seconds": self.seconds,
            "gflops": self.gflops,
            "resumed_tiles": self.resumed,
            "output": str(self.output),
        }


class FileProduct:
    """The job: the constructor opens the files and plans, `run` computes. The budget is for the whole process."""

    def __init__(
        self,
        m_file: Path,
        n_file: Path,
        output: Path,
        *,
        memory: int,
        semiring: str | Semiring = "plus_times",
        device: str = "cpu",
        precision: str = "high",
        level: Level | None = None,
    ) -> None:
        self.device, self.path = device, output
        self.output = Output(output, (".npy", ".zarr")).open()  # locked before anything is read
        self.tight = device == "cpu" and memory < TIGHT
        try:
            with CompilerChild(self.tight) as compiler:
                self._plan(m_file, n_file, memory, semiring, precision, level, compiler)
        except BaseException:
            self.close()
            raise

    def _plan(
        self,
        m_file: Path,
        n_file: Path,
        memory: int,
        semiring: str | Semiring,
        precision: str,
        level: Level | None,
        compiler: CompilerChild,
    ) -> None:
        self.M, self.N = open_source(m_file), open_source(n_file)
        problem = problem_of(self.M, self.N, semiring, precision)
        result = problem.semiring.over(problem.dtype).result
        self.target = self._target(self.output.part, (problem.m, problem.n), result)
        grain = self.target.grain or (64, 64)
        if self.device == "cpu":
            # a chunk encoded, the same decoded, and the previous one, which Zarr's thread frees later
            decoded = max((3 * x.chunk_bytes for x in (self.M, self.N) if isinstance(x, ZarrSource)), default=0)
            read = read_rate(self.M, self.N)
            known = level or replace(host.DISK, read=read)  # nominal, not measured
            if isinstance(self.target, ZarrTarget):  # a chunk is gathered, copied, encoded, and read back
                decoded += 4 * grain[0] * grain[1] * result.itemsize
            stores = decoded or isinstance(self.target, ZarrTarget)
            taken, loading = resident(self.tight)
            spare, floor = (x + (ZARR_BYTES if stores else 0) for x in (SPARE + decoded + taken, loading))
            how: dict[str, Any] = {"spare": spare, "floor": floor, "grain": grain, "least": LEAST_TILE}
            self.schedule = host.host_schedule(problem, known, memory, **how)
            self.schedule = short_phases(self.schedule)
            compiler.compile(self.schedule)
            if taken < loading:
                host.load_kernels(self.schedule)  # all of them, so that LLVM's pages can be released
                release_library_pages()
            measured = level or replace(host.host_level(problem), read=read)
            self.schedule = replace(self.schedule, level=measured)
        else:
            from tilewise.scale import card

            self.schedule = card.card_schedule(problem, self.M, self.N, self.device, memory, grain)
        earlier = Journal.peek(self.output.journal)
        tile = earlier.get("tile")
        if earlier.get("memory") == memory and isinstance(tile, list) and len(tile) == 3 and _sides(tile):
            rows, cols, depth = tile  # the earlier run's: rates differ from run to run, tiles must not
            self.schedule = replace(self.schedule, rows=rows, cols=cols, depth=depth)
        self.journal = Journal(self.output.journal, self._job(memory))
        self.checkpoint = Checkpoint(self.output.folder, self.journal)

    def _target(self, part: Path, shape: tuple[int, int], dtype: DType) -> NpyTarget | ZarrTarget:
        if self.path.suffix == ".zarr":
            return ZarrTarget(self.path, part, shape, dtype, SMALL_CHUNK if self.tight else CHUNK)
        return NpyTarget(self.path, part, shape, dtype)

    def _job(self, memory: int) -> dict[str, Any]:
        s, p = self.schedule, self.schedule.problem
        return {
            "tilewise": __version__,
            "M": self.M.identity(),
            "N": self.N.identity(),
            "semiring": p.semiring.name,
            "precision": p.precision,
            "device": self.device,
            "memory": memory,
            "tile": [s.rows, s.cols, s.depth],
        }

    def run(self, progress: host.Progress | None = None, restart: bool = False) -> FileReport:
        """Compute the missing tiles; P is renamed when it is complete."""
        start = time.perf_counter()
        dtype = self.target.dtype.numpy
        kept = 0  # finished tiles in the journal

        def finished(tile: OutputTile) -> None:
            nonlocal kept
            self.journal.append({"tile": tile.number, "checksum": host.checksum(tile, self.target, dtype)})
            kept += 1

        try:
            done, saved = self._begin(restart)
            kept = len(done)
            if len(done) < self.schedule.tiles:
                stream: Any = partial(host.stream, checkpoint=self.checkpoint, saved=saved)
                if self.device != "cpu":
                    from tilewise.scale import card

                    stream = partial(card.stream, device=self.device)
                stream(self.schedule, self.M, self.N, self.target, done=done, progress=progress, finished=finished)
            self._unchanged()
            self.journal.close()
            if self.output.part.exists():
                self.target.complete()
                self.output.finish()
            else:
                self.output.discard()  # renamed already
        except FileError as error:
            if kept and self.output.journal.exists():
                raise FileError(f"{error}; finished tiles are kept") from error
            raise
        finally:
            self.close()
        return FileReport(self.schedule, time.perf_counter() - start, len(done), self.path)

    def _begin(self, restart: bool) -> tuple[frozenset[int], SavedTile | None]:
        """The finished tiles, and the tile that has a checkpoint."""
        known = None if restart else self.journal.open()
        part, whole = self.output.part, self.output.target
        if known and not part.exists() and whole.exists() and len(_tiles(known)) == self.schedule.tiles:
            done = self._verified(known, whole)
            if len(done) == self.schedule.tiles:  # killed after the rename: only the journal is left
                return done, None
        if known is None or not part.exists():
            self.journal.close()
            self.output.discard_unfinished()
            self.target.begin()
            self.journal.begin()
            return frozenset(), None
        try:
            self.target.resume()
            done = self._verified(known, part)
            return done, self._sums(known, done)
        except FileError as error:
            raise FileError(f"{error}: finished tiles cannot be used, so pass --restart to start over") from None

    def _sums(self, known: list[dict[str, Any]], done: frozenset[int]) -> SavedTile | None:
        saved = self.checkpoint.last(known, done)
        following = next((tile.number for tile in self.schedule.walk() if tile.number not in done), -1)
        if saved is None or saved.tile != following or saved.phases >= self.schedule.phases:
            return None  # another tile is computed first, whose checkpoints would overwrite the files
        rows, cols = self.schedule.tile(saved.tile).shape
        return saved if saved.whole(rows * cols * self.schedule.problem.result.itemsize) else None

    def _verified(self, known: list[dict[str, Any]], place: Path) -> frozenset[int]:
        """The finished tiles whose bytes match the journal's checksums."""
        target = self._target(place, self.target.shape, self.target.dtype)
        dtype = self.target.dtype.numpy
        recorded = {number: crc for number, crc in _tiles(known).items() if 0 <= number < self.schedule.tiles}
        return frozenset(n for n, crc in recorded.items() if host.checksum(self.schedule.tile(n), target, dtype) == crc)

    def _unchanged(self) -> None:
        """Discard the product and raise if an operand changed while it was read."""
        for role, source in (("M", self.M), ("N", self.N)):
            if self.journal.job[role] != source.identity():
                self.journal.close()
                self.target.close()
                self.output.discard()
                raise FileError(f"{source.name} changed while it was read: its product was thrown away; run it again")

    def close(self) -> None:
        for name in ("M", "N", "target", "journal", "output"):
            if hasattr(self, name):
                getattr(self, name).close()


def _tiles(records: list[dict[str, Any]]) -> dict[int, int]:
    """Checksums of finished tiles, by their number."""
    return {
        r["tile"]: r["checksum"]
        for r in records
        if isinstance(r.get("tile"), int) and isinstance(r.get("checksum"), int)
    }


def _sides(tile: list[Any]) -> bool:
    return all(isinstance(side, int) and side > 0 for side in tile)


def resident(tight: bool = False) -> tuple[int, int]:
    """(memory of this process beside its tiles, and before they are allocated). Constants, so that every run has the
    same tiles; measured only in a process that is larger than a fresh one."""
    now = memory_now()
    if now >= BASE + GROWN:
        return now, now
    return (TRIMMED, LOADING) if tight and release_library_pages() else (BASE, BASE)


def short_phases(schedule: Schedule) -> Schedule:
    """The schedule with phases of at most about PHASE seconds of one core, between which checkpoints are written. By
    nominal rates, so that every run has the same tiles."""
    problem = schedule.problem
    most = PHASE / pieces.SECONDS * pieces.piece_steps(problem, host_machine())
    depth = max(LEAST_TILE[2], int(most / max(1, schedule.rows * schedule.cols)) // GRAIN * GRAIN)
    return replace(schedule, depth=depth) if depth < schedule.depth else schedule


def read_rate(*sources: Any) -> float:
    """Expected bytes a second from files: a typical disk's rate, with Zarr's overhead for each chunk."""
    total = seconds = 0.0
    for source in sources:
        nbytes = source.shape[0] * source.shape[1] * source.dtype.itemsize
        total, seconds = total + nbytes, seconds + nbytes / host.DISK.read
        if isinstance(source, ZarrSource):
            tall, wide = source.chunks
            seconds += math.ceil(source.shape[0] / tall) * math.ceil(source.shape[1] / wide) * CHUNK_SECONDS
    return total / seconds if seconds else host.DISK.read


def problem_of(
    M: Any, N: Any, semiring: str | Semiring, precision: str = "high", reproducible: str | None = None
) -> Problem:
    """The problem of two sources; a shape error names them."""
    (m, k), (rows, n) = M.shape, N.shape
    if k != rows:
        raise ShapeError(
            f"{M.name} is {m}×{k} and {N.name} is {rows}×{n}: "
            f"the {k} columns of the one do not meet the {rows} rows of the other; they must be equal"
        )
    how: dict[str, Any] = {"precision": precision, "reproducible": reproducible, "unrounded": True}
    return problem_of_shape(m, k, n, M.dtype, semiring, dtype_n=N.dtype, **how)
