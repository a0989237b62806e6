"""Worker processes that grade: each takes one submission at a time and is replaced when it crashes or takes too long,
so that a bad file affects no other."""

from __future__ import annotations

import contextlib
import multiprocessing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from typing import Any

from tilewise.system.parent import end_with
from tilewise.system.timing import Elapsed
from tilewise.teaching.course.assignment import Assignment
from tilewise.teaching.course.evidence import CRASHED, LATE
from tilewise.teaching.course.grading import Grade, grade, grade_text, ungraded
from tilewise.teaching.course.programs import START as PROGRAM_START
from tilewise.teaching.course.submissions import Submission

SECONDS = 2.0  # time limit of a file, by `system.timing.Elapsed`
START = 60.0  # seconds that a process may take to start
LOOK = 0.02  # seconds between checks of the workers' limits
MEMORY = 4 << 30  # limit of a worker's address space in bytes, if the system has one


@dataclass
class Worker:
    process: Any
    connection: Connection
    elapsed: Elapsed  # since it was started, or given its task
    limit: float = START
    ready: bool = False
    task: tuple[int, Submission] | None = None

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def grade_all(
    submissions: Sequence[Submission], assignment: Assignment, seed: int, jobs: int = 1, seconds: float = SECONDS,
    done: Callable[[Grade], None] = lambda grade: None,
) -> list[Grade]:  # fmt: skip
    """Every submission's grade, in the order given."""
    grades: dict[int, Grade] = {}
    for test in assignment.runs or replace(assignment, points={"program": 0.0}).runs:  # each has its limit, kept there
        seconds += (test.seconds or assignment.seconds) + PROGRAM_START
    waiting = list(enumerate(submissions))[::-1]
    workers = [_start(assignment, seed) for _ in range(max(1, min(jobs, len(submissions))))]

    def finish(worker: Worker, grade: Grade) -> None:
        assert worker.task is not None
        grades[worker.task[0]] = grade
        worker.task = None
        done(grade)

    try:
        while len(grades) < len(submissions):
            for worker in workers:
                if worker.ready and worker.task is None and waiting:
                    worker.task = waiting.pop()
                    worker.elapsed, worker.limit = Elapsed(worker.process.pid), seconds
                    worker.connection.send(worker.task[1])
            busy = [w for w in workers if w.task or not w.ready]
            answered = wait([w.connection for w in busy], max(LOOK, min(w.limit - w.elapsed.seconds() for w in busy)))
            for i, worker in enumerate(workers):
                if worker.connection in answered:
                    if not _receive(worker, assignment, finish):
                        workers[i] = _replaced(worker, assignment, seed)
                elif worker in busy and worker.elapsed.seconds() > worker.limit:
                    if worker.task is None:
                        raise RuntimeError(f"a grading process did not start within {START:g} s")
                    finish(worker, ungraded(worker.task[1], assignment, LATE, f"not done after {seconds:g} s"))
                    workers[i] = _replaced(worker, assignment, seed)
    finally:
        for worker in workers:
            worker.end()
    return [grades[i] for i in range(len(submissions))]


def _receive(worker: Worker, assignment: Assignment, finish: Callable[[Worker, Grade], None]) -> bool:
    """Take a worker's answer; False when its process has ended."""
    try:
        answer = worker.connection.recv()
    except (EOFError, OSError):
        if worker.task is None:
            raise RuntimeError("a grading process ended before it had anything to do") from None
        finish(worker, ungraded(worker.task[1], assignment, CRASHED, "the process that graded it ended"))
        return False
    if answer == "ready":
        worker.ready = True
    else:
        finish(worker, answer)
    return True


def _start(assignment: Assignment, seed: int) -> Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(theirs, assignment, seed), daemon=True)
    process.start()
    theirs.close()
    return Worker(process, ours, Elapsed(process.pid))


def _replaced(worker: Worker, assignment: Assignment, seed: int) -> Worker:
    worker.end()
    return _start(assignment, seed)


def work(connection: Connection, assignment: Assignment, seed: int) -> None:
    """The child: reports that it is ready, then answers each submission with its grade."""
    parent = multiprocessing.parent_process()
    if parent is not None and parent.pid is not None:
        end_with(parent.pid)
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]  # programs run in processes with their own limits
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if assignment.has_roles:
        warm = replace(assignment, points={"product": 1.0}, tests=())
        grade_text("__global__ void warm(float* A, float* B, float* C, int n) { C[0] = A[0] * B[0]; }", warm, seed)
    connection.send("ready")
    while True:
        try:
            submission = connection.recv()
        except (EOFError, KeyboardInterrupt):
            return
        connection.send(grade_one(submission, assignment, seed))


def grade_one(submission: Submission, assignment: Assignment, seed: int) -> Grade:
    try:
        return grade(submission, assignment, seed)
    except (MemoryError, RecursionError) as error:
        return ungraded(submission, assignment, CRASHED, type(error).__name__)
    except Exception as error:  # our error, not the student's: the others are still graded
        return ungraded(submission, assignment, CRASHED, f"{type(error).__name__}: {error}")
