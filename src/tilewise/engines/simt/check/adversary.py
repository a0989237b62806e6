"""The schedule that a missing barrier does not survive: threads one at a time from barrier to barrier.

Each party (a thread, or a warp where blocks are large) runs until it reaches the next barrier or ends, then the next
party runs. Where the shadow memory found a race, this shows numbers that the race can give."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from tilewise.engines.simt.check.simulate import Simulation
from tilewise.engines.simt.machine.collector import Collector
from tilewise.engines.simt.machine.context import Context
from tilewise.engines.simt.machine.execute import Launch, make_context
from tilewise.engines.simt.machine.findings import Kind, Wrong
from tilewise.engines.simt.machine.memory import Buffer

MAX_PARTIES = 32
MAX_BLOCKS = 16
SECONDS = 1.5


class Stopped(Exception):
    """The schedule was given up: time is over, or another party failed."""


class Schedule:
    """Parties take turns; a party gives its turn away at a barrier or when it ends."""

    def __init__(self, count: int, order: list[int], deadline: float) -> None:
        self.turns = [threading.Semaphore(0) for _ in range(count)]
        self.done = [False] * count
        self.order = order
        self.deadline = deadline
        self.finished = threading.Semaphore(0)
        self.failure: BaseException | None = None

    def wait(self, party: int) -> None:
        self.turns[party].acquire()
        if self.failure is not None or time.monotonic() > self.deadline:
            raise Stopped

    def next(self, party: int) -> None:
        """Hand the turn to the next party that has not ended; to oneself when it is the last."""
        at = self.order.index(party)
        for step in range(1, len(self.order) + 1):
            other = self.order[(at + step) % len(self.order)]
            if not self.done[other]:
                self.turns[other].release()
                return
        self.finished.release()


def demonstrate(done: Simulation) -> None:
    """Run the schedule, forwards and backwards, and note on each race what P holds then."""
    shared = {name for name, *_ in done.launch.program.shared}
    races = [f for f in done.findings if f.kind is Kind.RACE and f.array in shared]
    output = done.bound.of("P")
    if not races or output is None or done.bound.shape is None:
        return
    text, wrong = "", None
    for backwards in (False, True):
        held = run_adversarially(done, output, backwards)
        if held is None:
            continue
        wrong = _difference(done, output, held, "last to first" if backwards else "first to last")
        if wrong is not None:
            text = _sentence(wrong, output.name)
            break
    for race in races:
        race.evidence, race.wrong = text, wrong


def _sentence(wrong: Wrong, name: str) -> str:
    r, c = wrong.cell
    return (
        f"with threads run one at a time, {wrong.order}, {wrong.cells} cells of {name} come out wrong: "
        f"{name}[{r}][{c}] is {wrong.held:g}, the product is {wrong.expected:g}"
    )


def _difference(done: Simulation, output: Buffer, held: np.ndarray, order: str) -> Wrong | None:
    expected = done.bound.expected
    if expected is None or output.matrix is None or output.matrix.cells != 1:
        return None
    m, n = expected.shape
    have = held[: m * n].reshape(m, n).astype(np.float64)
    with np.errstate(all="ignore"):
        wrong = ~(np.abs(have - expected) <= 1e-4 * (np.abs(expected) + 1))
        lockstep = output.data[: m * n].reshape(m, n).astype(np.float64)
        wrong &= np.abs(lockstep - expected) <= 1e-4 * (np.abs(expected) + 1)  # what only this schedule shows
    if not wrong.any():
        return None
    r, c = (int(x[0]) for x in np.nonzero(wrong))
    return Wrong(int(np.count_nonzero(wrong)), (r, c), float(have[r, c]), float(expected[r, c]), order)


def run_adversarially(done: Simulation, output: Buffer, backwards: bool) -> np.ndarray | None:
    """The output after the adversarial run; None where it could not be finished."""
    launch, geometry = done.launch, done.geometry
    kept = output.data.copy()
    shadows = {b: b.shadow for b in done.bound.buffers.values()}
    collector, recorder = launch.collector, launch.recorder
    launch.collector = Collector(collector.source, launch.limits)
    launch.checks, launch.recorder = False, None
    deadline = time.monotonic() + SECONDS
    try:
        for buffer in shadows:
            buffer.shadow = None
        for block in range(min(geometry.blocks, MAX_BLOCKS)):
            if not _block(launch, block, backwards, deadline):
                return None
        return output.data.copy()
    finally:
        launch.checks, launch.collector, launch.recorder = True, collector, recorder
        output.data[:] = kept
        for buffer, shadow in shadows.items():
            buffer.shadow = shadow


def _block(launch: Launch, block: int, backwards: bool, deadline: float) -> bool:
    threads = launch.geometry.threads
    size = 1 if threads <= MAX_PARTIES else max(32, -(-threads // MAX_PARTIES))
    parties = [np.arange(i, min(i + size, threads)) for i in range(0, threads, size)]
    order = list(range(len(parties)))
    schedule = Schedule(len(parties), order[::-1] if backwards else order, deadline)
    blocks = np.array([block])
    first = make_context(launch, blocks, deadline, [], parties[0])
    contexts = [first]
    for lanes in parties[1:]:
        c = make_context(launch, blocks, deadline, [], lanes)
        c.buffers = first.buffers
        contexts.append(c)

    def hook(party: int) -> Any:
        def at_barrier(c: Context, span: Any) -> None:
            schedule.next(party)
            schedule.wait(party)

        return at_barrier

    def work(party: int) -> None:
        c = contexts[party]
        c.barrier_hook = hook(party)
        try:
            schedule.wait(party)
            with np.errstate(all="ignore"):
                launch.program.body(c)
        except Stopped:
            pass
        except BaseException as error:
            schedule.failure = error
        finally:
            schedule.done[party] = True
            schedule.next(party)

    workers = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(len(parties))]
    for worker in workers:
        worker.start()
    schedule.turns[schedule.order[0]].release()
    schedule.finished.acquire()
    for worker in workers:
        worker.join()
    return schedule.failure is None and time.monotonic() <= deadline
