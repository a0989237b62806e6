"""The item "program": a submission with its main runs to its end without a fault.

What it prints and computes on the host earns no points: those of the product come from the grader's data."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tilewise.emulator.host.options import REQUIRED, WHERE_POSSIBLE, Options
from tilewise.emulator.host.process import run_program
from tilewise.emulator.host.program_report import ProgramReport
from tilewise.teaching.course.assignment import Assignment

SECONDS = 10.0  # a program may run
START = 20.0  # more for its process to start and to end on a busy machine
MEMORY, OUTPUT = 1 << 30, 1 << 20


def run_whole(text: str, assignment: Assignment, file: str) -> ProgramReport:
    """Run in its own process and folder; headers are also looked up beside the submission."""
    beside = Path(file).parent if file not in ("", "-") else None
    with tempfile.TemporaryDirectory(prefix="tilewise-grade-") as folder:
        path = Path(folder) / (Path(file).name if beside else "program.cu")
        path.write_text(text, encoding="utf-8")
        options = Options(
            seconds=SECONDS, memory=MEMORY, output=OUTPUT, defines=dict(assignment.defines),
            include=[str(beside)] if beside else [], sandbox=WHERE_POSSIBLE if assignment.unsafe else REQUIRED,
        )  # fmt: skip
        with full_address_space():
            return run_program(path, list(assignment.arguments), options, capture=True)


@contextlib.contextmanager
def full_address_space() -> Iterator[None]:
    """Lifts the worker's RLIMIT_AS: the program's process reserves all of its memory at once, and has its own limit."""
    try:
        import resource
    except ImportError:  # Windows sets no such limit
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
