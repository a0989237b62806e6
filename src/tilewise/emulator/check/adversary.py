"""A schedule that makes missing barriers visible: threads run one at a time from barrier to barrier.

Each party (a thread, or a warp of a large block) runs until it reaches a barrier or exits, then the next party runs.
For races that the shadow memory found, this shows wrong results that the race can give."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilewise.emulator.check.simulate import Simulation
from tilewise.emulator.machine.collector import Collector
from tilewise.emulator.machine.context import Context
from tilewise.emulator.machine.events import Events
from tilewise.emulator.machine.execute import Launch, make_context
from tilewise.emulator.machine.findings import Kind, Wrong
from tilewise.emulator.machine.memory import Buffer
from tilewise.emulator.machine.recorder import Recorder

MAX_PARTIES = 32
MAX_BLOCKS = 16
SECONDS = 1.5  # CPU time, so that the result does not depend on the machine's load
SECONDS_RECORDED = 6.0


class Stopped(Exception):
    """The schedule was abandoned: its time is used up, or another party failed."""


class Schedule:
    """One party runs at a time, until it reaches a barrier or exits; then the next one runs."""

    def __init__(self, count: int, order: list[int], deadline: float) -> None:
        self.semaphores = [threading.Semaphore(0) for _ in range(count)]
        self.done = [False] * count
        self.order = order
        self.deadline = deadline
        self.finished = threading.Semaphore(0)
        self.failure: BaseException | None = None

    def wait(self, party: int) -> None:
        self.semaphores[party].acquire()
        if self.failure is not None or time.process_time() > self.deadline:
            raise Stopped

    def next(self, party: int) -> None:
        """Resume the next party that has not exited, perhaps the same one."""
        at = self.order.index(party)
        for step in range(1, len(self.order) + 1):
            other = self.order[(at + step) % len(self.order)]
            if not self.done[other]:
                self.semaphores[other].release()
                return
        self.finished.release()


@dataclass(frozen=True)
class Failing:
    """An order of threads that gives a wrong P: its events and results."""

    order: str
    events: Events
    names: tuple[str, ...]
    held: np.ndarray  # P afterwards
    wrong: tuple[tuple[int, int], ...]  # its cells that are not the product


def demonstrate(done: Simulation) -> Failing | None:
    """Run the schedule in both orders and add the first wrong P to the races as evidence. If the launch is recorded,
    that order is recorded and returned."""
    shared = {name for name, *_ in done.launch.program.shared}
    races = [f for f in done.findings if f.kind is Kind.RACE and f.array in shared]
    output = done.bound.of("P")
    if not races or output is None or done.bound.shape is None:
        return None
    text, wrong, failing = "", None, None
    for backwards in (False, True):
        order = "last to first" if backwards else "first to last"
        recorder = Recorder(list(done.recorder.names)) if done.recorder is not None else None
        held = run_adversarially(done, output, backwards, recorder)
        if held is None:
            continue
        cells = wrong_cells(done, output, held)
        if cells:
            wrong = _wrong(done, held, cells, order)
            text = _sentence(wrong, output.name)
            if recorder is not None:
                m, n = done.bound.shape[0], done.bound.shape[2]
                failing = Failing(
                    order,
                    _renumbered(recorder.events()),
                    tuple(recorder.names),
                    held[: m * n].reshape(m, n),
                    tuple(cells),
                )
            break
    for race in races:
        race.evidence, race.wrong = text, wrong
    return failing


def _renumbered(events: Events) -> Events:
    """Number the steps in the order of execution: each thread counted its own."""
    if not len(events):
        return events
    changes = (np.diff(events.step) != 0) | (np.diff(events.thread) != 0) | (np.diff(events.block) != 0)
    return replace(events, step=np.concatenate(([0], np.cumsum(changes))).astype(events.step.dtype))


def _sentence(wrong: Wrong, name: str) -> str:
    r, c = wrong.cell
    return (
        f"with threads run one at a time, {wrong.order}, {wrong.cells} cells of {name} come out wrong: "
        f"{name}[{r}][{c}] is {wrong.held:g}, the product is {wrong.expected:g}"
    )


def wrong_cells(done: Simulation, output: Buffer, held: np.ndarray) -> list[tuple[int, int]]:
    """Cells of P that are wrong in this schedule and right in lockstep."""
    expected = done.bound.expected
    if expected is None or output.matrix is None or output.matrix.cells != 1:
        return []
    m, n = expected.shape
    have = held[: m * n].reshape(m, n).astype(np.float64)
    with np.errstate(all="ignore"):
        wrong = ~(np.abs(have - expected) <= 1e-4 * (np.abs(expected) + 1))
        lockstep = output.data[: m * n].reshape(m, n).astype(np.float64)
        wrong &= np.abs(lockstep - expected) <= 1e-4 * (np.abs(expected) + 1)  # wrong in this schedule only
    return [(int(r), int(c)) for r, c in zip(*np.nonzero(wrong), strict=True)]


def _wrong(done: Simulation, held: np.ndarray, cells: list[tuple[int, int]], order: str) -> Wrong:
    expected = done.bound.expected
    assert expected is not None
    (r, c), n = cells[0], expected.shape[1]
    return Wrong(len(cells), (r, c), float(held[r * n + c]), float(expected[r, c]), order)


def run_adversarially(
    done: Simulation, output: Buffer, backwards: bool, own_recorder: Recorder | None = None
) -> np.ndarray | None:
    """The output after the adversarial run; None if it was abandoned. Counters and memory are restored."""
    launch, geometry = done.launch, done.geometry
    kept = output.data.copy()
    shadows = {b: b.shadow for b in done.bound.buffers.values()}
    counted = {b: (b.loads, b.stores) for b in shadows}
    collector, recorder = launch.collector, launch.recorder
    launch.collector = Collector(collector.source, launch.limits)
    launch.checks, launch.recorder = False, None
    deadline = time.process_time() + (SECONDS if own_recorder is None else SECONDS_RECORDED)
    try:
        for buffer in shadows:
            buffer.shadow = None
        for block in range(min(geometry.blocks, MAX_BLOCKS)):
            watched = launch.watch is None or block in launch.watch
            if not _block(launch, block, backwards, deadline, own_recorder if watched else None):
                return None
        return output.data.copy()
    finally:
        launch.checks, launch.collector, launch.recorder = True, collector, recorder
        output.data[:] = kept
        for buffer, shadow in shadows.items():
            buffer.shadow = shadow
            buffer.loads, buffer.stores = counted[buffer]


def _block(launch: Launch, block: int, backwards: bool, deadline: float, recorder: Recorder | None) -> bool:
    threads = launch.geometry.threads
    size = 1 if threads <= MAX_PARTIES else max(32, -(-threads // MAX_PARTIES))
    parties = [np.arange(i, min(i + size, threads)) for i in range(0, threads, size)]
    order = list(range(len(parties)))
    schedule = Schedule(len(parties), order[::-1] if backwards else order, deadline)
    blocks = np.array([block])
    names = recorder.names if recorder is not None else []
    first = make_context(launch, blocks, deadline, names, parties[0])
    contexts = [first]
    for lanes in parties[1:]:
        c = make_context(launch, blocks, deadline, names, lanes)
        c.buffers = first.buffers
        contexts.append(c)

    def hook(party: int) -> Any:
        def at_barrier(c: Context, span: Any) -> None:
            if recorder is not None:
                recorder.barrier(c, span.line)
            schedule.next(party)
            schedule.wait(party)

        return at_barrier

    def work(party: int) -> None:
        c = contexts[party]
        c.barrier_hook = hook(party)
        c.recorder = recorder
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
    schedule.semaphores[schedule.order[0]].release()
    schedule.finished.acquire()
    for worker in workers:
        worker.join()
    return schedule.failure is None and time.process_time() <= deadline
