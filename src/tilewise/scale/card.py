"""Streaming through a card: a tile of P stays on it, panels arrive through pinned slots, finished rows are copied back.

Three stages overlap: panels of the next phase are copied in, the current phase is multiplied, rows of the previous tile
are copied out. Phases are multiplied in bands of rows. So only a few bands of M's panel are on the card at a time,
which leaves room for deeper panels; and one buffer for the tile suffices: in the tile's last phase a band is copied out
while the others are multiplied, and the first phase of the next tile reuses it after that copy.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilewise.core.problem import Layout, Problem
from tilewise.planning.choose import make_plan
from tilewise.scale.host import Finished, Progress, TileFinalizer
from tilewise.scale.outgoing import Outgoing, TileSums
from tilewise.scale.panels import Phase, phases
from tilewise.scale.pinning import WORTH, Background, Pages, page_populator, pages_of
from tilewise.scale.schedule import SETS, Level, Schedule, make_schedule
from tilewise.scale.sources import MatrixSource
from tilewise.scale.staging import ALIGN, Feeder, Panel, Slots, StagedOperand, lead_of
from tilewise.scale.targets import ArrayTarget, MatrixTarget

if TYPE_CHECKING:
    from tilewise.scale.queues import Queues

PIECE = 16 * 2**20  # bytes of a slot
POPULATING = 3  # threads that populate the pages of P
STREAMS = 2  # of products, so that a band starts while the previous one ends; 1 if they share a workspace
THREADS = 12  # that fill slots, if there are as many cores
WRITERS = 4  # threads that copy finished rows to an array, during the next tile
IN_SLOTS = 4  # per thread: one is being filled, the others are being copied
BANDS = 8  # of a phase
SPLIT_BANDS = 4  # of a phase, if each band packs or splits N's panel again
SLOT_RATE = 27e9  # bytes a second through slots to a card while it multiplies
LINK = (36e9, 25e9)  # bytes a second to a card and back, threads included; pinned pages alone: 47 and 54 on an H200
REVISIT = 0.6  # of the card's bandwidth, at which a phase reads and writes the sums of the previous one
LAUNCH = 2e-4  # overhead of a phase in seconds


def card_schedule(
    problem: Problem, M: MatrixSource, N: MatrixSource, device: str, memory: int, grain: tuple[int, int] = (64, 64)
) -> Schedule:
    """The schedule for a card of this machine."""
    from tilewise.backends.cuda.device import describe

    return schedule_for(problem, describe(device), memory, (M.transposed, N.transposed), grain)


def schedule_for(
    problem: Problem,
    machine: Any,
    memory: int,
    transposed: tuple[bool, bool] = (False, False),
    grain: tuple[int, int] = (64, 64),
) -> Schedule:
    """The schedule for any card, at the rate that the plan of one phase expects."""
    side = 16384
    m, k, n = (max(1, min(side, extent)) for extent in (problem.m, problem.k, problem.n))
    sample = phase_problem(problem, (m, k, n), transposed, accumulate=True)
    plan = make_plan(sample, machine)
    level = Level(
        f"host → {machine.name}", *LINK, sample.steps / plan.predicted, REVISIT * machine.bandwidth, each=LAUNCH
    )
    copied = (float("M" in plan.packs) + plan.planes, float("N" in plan.packs) + plan.planes)
    bands = SPLIT_BANDS if copied[1] else BANDS
    return make_schedule(
        problem, level, memory, spare=memory // 64, grain=grain, copied=copied, align=ALIGN, bands=bands
    )


def _slot_bytes(memory: int) -> int:
    return max(4096, min(PIECE, memory // 256))


def phase_problem(
    problem: Problem, shape: tuple[int, int, int], transposed: tuple[bool, bool], *, accumulate: bool, lead_p: int = 0
) -> Problem:
    """The problem of one phase on the card: panels in the operands' order, with an aligned leading dimension."""
    m, k, n = shape
    layouts = []
    for rows, cols, dtype, flat in ((m, k, problem.dtype_m, transposed[0]), (k, n, problem.dtype_n, transposed[1])):
        lead = lead_of(rows if flat else cols, dtype.itemsize)
        layouts.append(Layout(1, lead) if flat else Layout(lead, 1))
    of_p = Layout(lead_p or lead_of(n, problem.result.itemsize), 1)
    return replace(
        problem, m=m, k=k, n=n, layout_m=layouts[0], layout_n=layouts[1], layout_p=of_p, accumulate=accumulate
    )


def phase_problems(schedule: Schedule, transposed: tuple[bool, bool]) -> set[Problem]:
    """Every product that the schedule runs on the card, so that its kernels can be compiled before."""
    found = set()
    lead = lead_of(schedule.cols, schedule.problem.result.itemsize)
    for phase in phases(schedule):
        for height in {rows.stop - rows.start for rows in phase.bands(schedule.band)}:
            shape = (height, phase.ks.stop - phase.ks.start, phase.tile.shape[1])
            found.add(phase_problem(schedule.problem, shape, transposed, accumulate=not phase.first, lead_p=lead))
    return found


def stream(
    schedule: Schedule,
    M: MatrixSource,
    N: MatrixSource,
    P: MatrixTarget,
    *,
    device: str = "cuda:0",
    done: frozenset[int] = frozenset(),
    progress: Progress | None = None,
    finished: Finished | None = None,
    queues: Queues | None = None,
) -> None:
    """Multiply every tile that is not done on the card, write it, and report it to `finished` once it is durable."""
    if queues is None:
        from tilewise.scale.queues import Queues

        queues = Queues(device)
    try:
        if schedule.problem.k == 0:
            from tilewise.scale import host

            host.stream(schedule, M, N, P, done=done, finished=finished)
        else:
            _Stream(schedule, M, N, P, queues).run(done, progress, finished)
    finally:
        queues.close()


class _Stream:
    def __init__(self, schedule: Schedule, M: MatrixSource, N: MatrixSource, P: MatrixTarget, queues: Queues) -> None:
        self.schedule, self.queues, self.target = schedule, queues, P
        s, p = schedule, schedule.problem
        self.transposed = (M.transposed, N.transposed)
        piece, cores = _slot_bytes(s.memory), os.cpu_count() or 1
        self.threads = max(2, min(THREADS, cores))
        lead = lead_of(s.cols, p.result.itemsize)
        result = p.semiring.over(p.dtype).result
        self.sums = TileSums(queues.memory(s.rows * lead * p.result.itemsize), lead, p.result, result)
        longest = max(
            lead_of(s.band if M.transposed else s.depth, p.dtype_m.itemsize) * p.dtype_m.itemsize,
            lead_of(s.depth if N.transposed else s.cols, p.dtype_n.itemsize) * p.dtype_n.itemsize,
        )
        slots = Slots(queues, IN_SLOTS * self.threads, max(piece, longest))
        sides = []
        self.pages = self._pages(M, N)
        for source, held, rows, cols, pages in (
            (M, s.held, s.band, s.depth, self.pages[0]),
            (N, SETS, s.depth, s.cols, self.pages[1]),
        ):
            count, length = (cols, rows) if source.transposed else (rows, cols)
            nbytes = count * lead_of(length, source.dtype.itemsize) * source.dtype.itemsize
            sides.append(StagedOperand(queues, source, slots, held, nbytes, pages))
        self.sides = (sides[0], sides[1])
        self.compute = [queues.stream() for _ in range(1 if any(s.copied) else STREAMS)]
        writers = WRITERS if isinstance(P, ArrayTarget) else self.threads
        tile = s.rows * s.cols * result.itemsize
        self.outgoing = Outgoing(queues, P, self.sums, max(piece, self.sums.pitch), tile, writers)

    def _pages(self, M: MatrixSource, N: MatrixSource) -> tuple[Pages | None, Pages | None]:
        """The pages of operands in host memory; the share that exceeds the rate of slots is pinned."""
        share = 1 - SLOT_RATE * self.schedule.compute / max(1, self.schedule.bytes_in)
        one, other = (pages_of(self.queues, source, share) for source in (M, N))
        if one is not None and other is not None and (one.low, one.high) == (other.low, other.high):
            return one, one  # M times itself: pages can be pinned only once
        return one, other

    def _background(self) -> Background:
        """Pins the slots for finished rows and populates the pages of P ahead of the writers. One thread pins: pinning
        blocks all other driver calls."""
        prepare = self.outgoing.slots.prepare
        if not isinstance(self.target, ArrayTarget) or self.target.array.nbytes < WORTH:
            return Background(self.queues, [prepare])
        populate = page_populator(self.target.array)
        return Background(self.queues, [lambda: prepare() or populate(), *[populate] * (POPULATING - 1)])

    def run(self, done: frozenset[int], progress: Progress | None, finished: Finished | None) -> None:
        s, total = self.schedule, self.schedule.tiles * self.schedule.phases
        count = len(done) * s.phases
        with (
            TileFinalizer(self.target, finished) as finalizer,
            self.outgoing.writing_to(finalizer),
            self._background() as background,
            Feeder(self.queues, self.sides, phases(s, done), s.band, self.threads) as feeder,
        ):
            self.queues.enter()
            for pages in dict.fromkeys(self.pages):  # before other threads call the driver
                if pages is not None:
                    pages.pin()
            while (item := feeder.ready.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                if callable(item):
                    item()
                    continue
                phase, rows, panels = item
                stream = self._band(phase, rows, panels)
                background.start()  # not before: populating pages would delay the first slots
                feeder.release(self.sides[0], panels[0], self.queues.record(stream))
                if rows.stop < phase.tile.rows.stop:
                    continue
                for other in self.compute:
                    if other is not stream:
                        self.queues.wait(stream, self.queues.record(other))
                feeder.release(self.sides[1], panels[1], self.queues.record(stream))
                count += 1
                if progress is not None:
                    progress(count, total)
            self._unpin()

    def _unpin(self) -> None:
        """Unpin the operands' pages once all copies to the card are done, while the last bands are multiplied."""
        for side in self.sides:
            for panel in side.panels:
                self.queues.sync(self.queues.record(panel.stream))
        self.queues.unpin()

    def _band(self, phase: Phase, rows: slice, panels: tuple[Panel, Panel]) -> Any:
        """Multiply one band of a phase; the previous tile's band may still be copied out. The same rows of the buffer
        always use the same stream, which is returned."""
        top = phase.tile.rows.start
        here = slice(rows.start - top, rows.stop - top)
        number = here.start // self.schedule.band
        stream = self.compute[number % len(self.compute)]
        for panel in panels:
            self.queues.wait(stream, self.queues.record(panel.stream))
        if phase.first:
            self.outgoing.await_band(number, stream)
        self._multiply(phase, here, panels, stream)
        if phase.last:
            self._round(here, phase.tile.shape[1], stream)
            self.outgoing.send(phase.tile, here, number, self.queues.record(stream))
        return stream

    def _multiply(self, phase: Phase, here: slice, panels: tuple[Panel, Panel], stream: Any) -> None:
        p = self.schedule.problem
        shape = (here.stop - here.start, phase.ks.stop - phase.ks.start, phase.tile.shape[1])
        lead, place = self.sums.lead, self.sums.row(here.start)
        problem = phase_problem(p, shape, self.transposed, accumulate=not phase.first, lead_p=lead)
        self.queues.multiply(problem, panels[0].address, panels[1].address, place, stream)

    def _round(self, here: slice, cols: int, stream: Any) -> None:
        """Round on the products' stream: on another one the kernel would start only after they end."""
        sums = self.sums
        if sums.result != sums.dtype:
            rows, kinds = here.stop - here.start, (sums.dtype, sums.result)
            self.queues.round(sums.row(here.start), sums.lead, rows, cols, kinds, stream)
