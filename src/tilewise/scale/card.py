"""Streaming through a card: a tile of P stays on it, panels come through pinned slots, finished rows go back.

Three stages overlap: panels of the next phase come in, the present phase is multiplied, rows of the tile before go out.
The tile has one buffer only. So that it need not stand still while its rows leave, the last phase of a tile and the
first phase of the next are done in bands of rows: a band leaves while the others are multiplied, and is used again when
it has left.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from tilewise.planning import make_plan
from tilewise.problem import Layout, Problem
from tilewise.scale.host import Finished, Finisher, Progress
from tilewise.scale.panels import Phase, phases
from tilewise.scale.pinning import Background, pages_of, populating
from tilewise.scale.queues import Queues
from tilewise.scale.schedule import Level, Schedule, Tile, make_schedule
from tilewise.scale.sources import Source
from tilewise.scale.staging import ALIGN, Feeder, Side, Slots, lead_of
from tilewise.scale.targets import ArrayTarget, Target

PIECE = 16 * 2**20  # bytes of a slot
OUT_SLOTS = 24
POPULATING = 3  # threads that make the pages of P
THREADS = 10  # that fill slots, where there are so many cores, and as many that empty them
BANDS = 8
BAND_GRAIN = 384  # rows of a band: whole tiles of every kernel
LINK = (30e9, 15e9)  # bytes a second to a card and back while it multiplies; measured on an H200
REVISIT = 0.6  # of the card's bandwidth, when a phase adds onto the sums of the one before
PLANE_SHARE = 1.6  # of a panel of float32, that its planes take, padding included
LAUNCH = 2e-4  # seconds a phase costs beside its work


def card_schedule(
    problem: Problem, M: Source, N: Source, device: str, memory: int, grain: tuple[int, int] = (64, 64)
) -> Schedule:
    """The schedule on a card that is here."""
    from tilewise.engines.cuda.device import describe

    return schedule_for(problem, describe(device), memory, (M.turned, N.turned), grain)


def schedule_for(
    problem: Problem,
    machine: Any,
    memory: int,
    turned: tuple[bool, bool] = (False, False),
    grain: tuple[int, int] = (64, 64),
) -> Schedule:
    """The schedule on a card that need not be here: its rate is what the plan of one phase expects."""
    side = 16384
    m, k, n = (max(1, min(side, extent)) for extent in (problem.m, problem.k, problem.n))
    sample = phase_problem(problem, (m, k, n), turned, accumulate=True)
    plan = make_plan(sample, machine)
    level = Level(
        f"host → {machine.name}", *LINK, sample.steps / plan.predicted, REVISIT * machine.bandwidth, each=LAUNCH
    )
    planes = PLANE_SHARE if plan.split else 0.0
    copied = (float("M" in plan.packs) + planes, float("N" in plan.packs) + planes)
    return make_schedule(problem, level, memory, spare=memory // 64, grain=grain, copied=copied, align=ALIGN)


def _piece(memory: int) -> int:
    return max(4096, min(PIECE, memory // 256))


def phase_problem(
    problem: Problem, shape: tuple[int, int, int], turned: tuple[bool, bool], *, accumulate: bool, lead_p: int = 0
) -> Problem:
    """One phase as the card sees it: panels with aligned lines in the operands' own order."""
    m, k, n = shape
    layouts = []
    for rows, cols, dtype, flat in ((m, k, problem.dtype_m, turned[0]), (k, n, problem.dtype_n, turned[1])):
        lead = lead_of(rows if flat else cols, dtype.itemsize)
        layouts.append(Layout(1, lead) if flat else Layout(lead, 1))
    of_p = Layout(lead_p or lead_of(n, problem.result.itemsize), 1)
    return replace(
        problem, m=m, k=k, n=n, layout_m=layouts[0], layout_n=layouts[1], layout_p=of_p, accumulate=accumulate
    )


def band_of(rows: int) -> int:
    """Rows of a band, for a tile of so many."""
    return max(1, -(-rows // BANDS // BAND_GRAIN) * BAND_GRAIN)


def phase_problems(schedule: Schedule, turned: tuple[bool, bool]) -> set[Problem]:
    """Every product that the schedule will ask of the card, so that its kernels can be compiled before."""
    found = set()
    lead, band = lead_of(schedule.cols, schedule.problem.result.itemsize), band_of(schedule.rows)
    for rows, cols in {tile.shape for tile in schedule.walk()}:
        heights = {rows, *(min(band, rows - top) for top in range(0, rows, band))}
        for depth in {ks.stop - ks.start for ks in schedule.slices()}:
            for onto in (False, True):
                whole = phase_problem(schedule.problem, (rows, depth, cols), turned, accumulate=onto, lead_p=lead)
                found |= {replace(whole, m=height) for height in heights}
    return found


def stream(
    schedule: Schedule,
    M: Source,
    N: Source,
    P: Target,
    *,
    device: str = "cuda:0",
    done: frozenset[int] = frozenset(),
    progress: Progress | None = None,
    finished: Finished | None = None,
    queues: Queues | None = None,
) -> None:
    """Every tile that is not done, multiplied on the card, written and, once it is durable, reported."""
    if queues is None:
        from tilewise.scale.cuda_queues import CudaQueues

        queues = CudaQueues(device)
    try:
        if schedule.problem.k == 0:
            from tilewise.scale import host

            host.stream(schedule, M, N, P, done=done, finished=finished)
        else:
            _Stream(schedule, M, N, P, queues).run(done, progress, finished)
    finally:
        queues.close()


class _Stream:
    def __init__(self, schedule: Schedule, M: Source, N: Source, P: Target, queues: Queues) -> None:
        self.schedule, self.queues, self.target = schedule, queues, P
        s, p = schedule, schedule.problem
        self.turned = (M.turned, N.turned)
        piece, cores = _piece(s.memory), os.cpu_count() or 1
        self.threads = max(2, min(THREADS, cores))
        self.lead = lead_of(s.cols, p.result.itemsize)
        self.sums = queues.memory(s.rows * self.lead * p.result.itemsize)
        self.band = band_of(s.rows)
        longest = max(
            lead_of(s.rows if M.turned else s.depth, p.dtype_m.itemsize) * p.dtype_m.itemsize,
            lead_of(s.depth if N.turned else s.cols, p.dtype_n.itemsize) * p.dtype_n.itemsize,
        )
        slots = Slots(queues, self.threads + 6, max(piece, longest))
        sides = []
        times = s.bytes_in / (p.m * p.k * p.dtype_m.itemsize + p.k * p.n * p.dtype_n.itemsize)
        self.pages = [pages_of(queues, source, times) for source in (M, N)]
        if self._same_memory():
            self.pages[1] = self.pages[0]
        for source, rows, cols, pages in ((M, s.rows, s.depth, self.pages[0]), (N, s.depth, s.cols, self.pages[1])):
            count, length = (cols, rows) if source.turned else (rows, cols)
            nbytes = count * lead_of(length, source.dtype.itemsize) * source.dtype.itemsize
            sides.append(Side(queues, source, slots, nbytes, pages))
        self.sides = (sides[0], sides[1])
        self.compute = queues.stream()
        self.outgoing = Outgoing(self, max(piece, self.lead * p.result.itemsize))

    def _same_memory(self) -> bool:
        """M multiplied by itself: its pages can be pinned only once."""
        one, other = self.pages
        return one is not None and other is not None and (one.low, one.high) == (other.low, other.high)

    def _background(self) -> Background:
        """Pages that are pinned, or made, while the first tiles are multiplied."""
        jobs = [pages.pin_more for pages in dict.fromkeys(self.pages) if pages is not None]
        if jobs and isinstance(self.target, ArrayTarget):
            jobs += [populating(self.target.array)] * POPULATING
        return Background(self.queues.enter, jobs)

    def run(self, done: frozenset[int], progress: Progress | None, finished: Finished | None) -> None:
        s, total = self.schedule, self.schedule.tiles * self.schedule.phases
        count = len(done) * s.phases
        work = phases(s, done)
        with (
            Finisher(self.target, finished) as finisher,
            self.outgoing.writing_to(finisher),
            self._background(),
            Feeder(self.queues, self.sides, work, self.threads) as feeder,
        ):
            self.queues.enter()
            while (item := feeder.ready.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                phase, numbers, futures = item
                self._phase(phase, numbers, futures)
                feeder.release(numbers, self.queues.record(self.compute))
                count += 1
                if progress is not None:
                    progress(count, total)

    def _phase(self, phase: Phase, numbers: list[int], futures: list[list[Future[None]]]) -> None:
        panels = [side.panels[number] for side, number in zip(self.sides, numbers, strict=True)]
        for panel, pieces in zip(panels, futures, strict=True):
            for piece in pieces:
                piece.result()  # on its way, or the reason why not
            self.queues.wait(self.compute, self.queues.record(panel.stream))
        rows, cols = phase.tile.shape
        bands = range(0, rows, self.band) if phase.first or phase.last else range(1)
        height = self.band if phase.first or phase.last else rows
        for top in bands:
            here = slice(top, min(top + height, rows))
            if phase.first:
                self.outgoing.await_band(top // self.band, self.compute)
            self._multiply(phase, here, cols, panels)
            if phase.last:
                self._round(here, cols)
                self.outgoing.send(phase.tile, here, top // self.band, self.queues.record(self.compute))

    def _multiply(self, phase: Phase, here: slice, cols: int, panels: list[Any]) -> None:
        """A band of rows of the tile: M's panel is entered at its first row."""
        s, p = self.schedule, self.schedule.problem
        rows, depth = phase.tile.shape[0], phase.ks.stop - phase.ks.start
        whole = phase_problem(p, (rows, depth, cols), self.turned, accumulate=not phase.first, lead_p=self.lead)
        address_m = panels[0].address + here.start * whole.layout_m.row * p.dtype_m.itemsize
        problem = replace(whole, m=here.stop - here.start)
        sums = self.sums + here.start * self.lead * s.problem.result.itemsize
        self.queues.multiply(problem, address_m, panels[1].address, sums, self.compute)

    def _round(self, here: slice, cols: int) -> None:
        """On the stream of the products: beside them, a kernel would find no room on the card until they end."""
        p = self.schedule.problem
        result = p.semiring.over(p.dtype).result
        if result != p.result:
            sums = self.sums + here.start * self.lead * p.result.itemsize
            self.queues.round(sums, self.lead, here.stop - here.start, cols, (p.result, result), self.compute)


class Outgoing:
    """Rows of finished tiles on their way back: copied to pinned slots, and from there written by threads."""

    def __init__(self, owner: _Stream, nbytes: int) -> None:
        self.queues, self.target = owner.queues, owner.target
        p = owner.schedule.problem
        self.kinds = (p.result, p.semiring.over(p.dtype).result)
        self.sums, self.lead = owner.sums, owner.lead
        self.stream = owner.queues.stream(urgent=True)
        self.slots = Slots(owner.queues, OUT_SLOTS, nbytes)
        self.nbytes = nbytes
        self._taken: dict[int, queue.Queue[Any]] = {}  # per band, the event after which its memory is free
        self._left: dict[int, int] = {}  # per tile, pieces that are not yet written
        self._lock = threading.Lock()
        self._jobs: queue.Queue[Any] = queue.Queue()
        self._pool = ThreadPoolExecutor(owner.threads, "tilewise writer", initializer=self.queues.enter)
        self._thread = threading.Thread(target=self._run, name="tilewise outgoing", daemon=True)
        self._error: BaseException | None = None
        self._writes: list[Future[None]] = []
        self._finish: Callable[[Tile], None] = lambda tile: None

    def writing_to(self, finisher: Finisher) -> Outgoing:
        self._finish = finisher.take
        return self

    def __enter__(self) -> Outgoing:
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._jobs.put(None)
        self._thread.join()
        self._pool.shutdown(cancel_futures=kind is not None)
        if kind is None:
            self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error
        for write in self._writes:
            if write.done():
                write.result()
        self._writes = [write for write in self._writes if not write.done()]

    def await_band(self, band: int, stream: Any) -> None:
        """Before a band is written anew: what it held must have left."""
        waiting = self._taken.pop(band, None)
        if waiting is not None:
            event = waiting.get()
            self._raise()
            self.queues.wait(stream, event)

    def send(self, tile: Tile, here: slice, band: int, event: Any) -> None:
        """Rows `here` of the tile are ready when `event` has happened."""
        taken: queue.Queue[Any] = queue.Queue()
        self._taken[band] = taken
        last = here.stop == tile.shape[0]
        with self._lock:
            self._left[tile.number] = self._left.get(tile.number, 1) + 1 - last  # one is held until the last band came
        self._jobs.put((tile, here, event, taken))

    def _run(self) -> None:
        self.queues.enter()
        while (job := self._jobs.get()) is not None:
            tile, here, event, taken = job
            try:
                if self._error is None:
                    self.queues.wait(self.stream, event)
                    self._send_pieces(tile, here)
                    taken.put(self.queues.record(self.stream))
                    continue
            except BaseException as error:  # the thread that multiplies raises it
                self._error = error
            taken.put(None)

    def _send_pieces(self, tile: Tile, here: slice) -> None:
        width = tile.shape[1] * self.kinds[1].itemsize
        pitch = self.lead * self.kinds[0].itemsize
        step = max(1, self.nbytes // width)
        tops = range(here.start, here.stop, step)
        with self._lock:
            self._left[tile.number] += len(tops) - 1
        for top in tops:
            rows = min(step, here.stop - top)
            slot = self.slots.take()
            assert slot.memory is not None
            memory = slot.memory[: rows * width]
            self.queues.copy_out(self.sums + top * pitch, pitch, width, rows, memory, self.stream)
            event = self.queues.record(self.stream)
            view = memory.view(self.kinds[1].numpy).reshape(rows, -1)
            self._writes.append(self._pool.submit(self._write, tile, top, view, slot, event))

    def _write(self, tile: Tile, top: int, view: Any, slot: Any, event: Any) -> None:
        try:
            self.queues.sync(event)
            start = tile.rows.start + top
            self.target.write(slice(start, start + len(view)), tile.cols, view)
        except BaseException as error:
            self._error = error
            raise
        finally:
            self.slots.give_back(slot)
        with self._lock:
            self._left[tile.number] -= 1
            over = self._left[tile.number] == 0
        if over:
            self._finish(tile)
