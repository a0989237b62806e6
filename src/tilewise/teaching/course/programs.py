"""Runs of a submission's program: each in its own folder, in a process forked from a preloaded server.

Starting Python and loading the emulator takes seven times as long as a small program. So one process per worker loads
it once, holds neither assignments nor submissions, and forks for each run; the fork starts the sandboxed process as
`tilewise run` does. Systems without fork start a new process for each run.
"""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing.connection import Connection
from pathlib import Path, PurePosixPath
from typing import Any

from tilewise.emulator.host.options import REQUIRED, WASM, WHERE_POSSIBLE, Options, strangers_target
from tilewise.emulator.host.process import ENVIRONMENT, PREFIXES, SLACK, run_program
from tilewise.emulator.host.program_report import ProgramReport
from tilewise.system.parent import end_with
from tilewise.teaching.course.assignment import Assignment, Test
from tilewise.teaching.course.submissions import INCLUDE, SOURCES, decoded, has_main

START = 20.0  # seconds for a process to start and to end on a busy machine
OUTPUT = 4 << 20
WALL = 120.0  # limit in wall time; generous, because several programs are graded at once
LOADED = (
    "tilewise.emulator.host.running", "tilewise.emulator.check.program_child", "tilewise.emulator.check.wording",
    "tilewise.emulator.check.unfilled",
    "tilewise.emulator.host.runtime.cuda_launch", "llvmlite.binding",
    *(("wasmtime",) if strangers_target() == WASM else ()),
)  # fmt: skip
TOGETHER = ".together.cu"  # a file that includes all sources of a submission
PROGRAM = "program.cu"  # name of a submission without sources, for the error message


@dataclass(frozen=True)
class Outcome:
    """The result of one run."""

    report: ProgramReport
    text: str  # its stdout
    output: bytes | None = None  # the file that the test names; None if it was not written
    arguments: tuple[str, ...] = ()
    inputs: Mapping[str, bytes] | None = None


def main_of(files: Mapping[str, bytes]) -> str:
    """The file with main; without one, the first source."""
    sources = sorted((p for p in files if p.endswith(SOURCES)), key=lambda p: (not p.endswith(".cu"), p.count("/"), p))
    return next((p for p in sources if has_main(decoded(files[p]))), sources[0] if sources else PROGRAM)


def sources_beside(files: Mapping[str, bytes], main: str) -> list[str]:
    """The other sources of the program: those without a main that no other file includes."""
    included = {PurePosixPath(name).name for data in files.values() for name in INCLUDE.findall(decoded(data))}
    others = [p for p in files if p.endswith(SOURCES) and p != main and PurePosixPath(p).name not in included]
    return [p for p in sorted(others) if not has_main(decoded(files[p]))]


@contextmanager
def temporary_project(files: Mapping[str, bytes]) -> Iterator[Path]:
    """A new temporary folder with these files only, without those whose names lead out of it."""
    with tempfile.TemporaryDirectory(prefix="tilewise-grade-") as folder:
        root = Path(folder).resolve()
        for name, data in {**files, ".git": b""}.items():  # .git ends the project
            path = root / name
            if root not in Path(os.path.normpath(path)).parents:
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        yield root


@contextmanager
def combined_source(files: Mapping[str, bytes]) -> Iterator[Path]:
    """The submission as one source: its file with main, or one that includes all its sources."""
    main = main_of(files)
    beside = sources_beside(files, main)
    lines = "".join(f'#include "{path}"\n' for path in [*beside, main])
    with temporary_project({main: b"", **files, TOGETHER: lines.encode()}) as root:
        yield root / (TOGETHER if beside else main)


def run_test(
    files: Mapping[str, bytes], test: Test, assignment: Assignment, seed: int, inputs: Mapping[str, bytes]
) -> Outcome:
    """One run in a new folder with the submission's files and the test's inputs only."""
    main = main_of(files)
    near = {str(PurePosixPath(main).parent / name): data for name, data in inputs.items()}
    with temporary_project({main: b"", **files, **near}) as root:
        work = (root / main).parent
        options = Options(
            seconds=test.seconds or assignment.seconds, memory=test.memory or assignment.memory, output=OUTPUT,
            wall=max(WALL, 4 * (test.seconds or assignment.seconds)),
            defines=dict(assignment.defines), include=[str(root)], writable=[str(work)],
            sources=[str(root / p) for p in sources_beside(files, main)],
            sandbox=WHERE_POSSIBLE if assignment.unsafe else REQUIRED, target=strangers_target(),
        )  # fmt: skip
        arguments = [argument.replace("{seed}", str(seed)) for argument in test.arguments]
        stdin = test.stdin.replace("{seed}", str(seed)).encode()
        if test.stdin_file:
            stdin = (assignment.folder / test.stdin_file).read_bytes()
        report = _run(root / main, arguments, options, stdin)
        _relative(report, str(root))
        return Outcome(report, report.output or "", _written(work, test.output), tuple(arguments), inputs)


def _relative(report: ProgramReport, root: str) -> None:
    """Remove the temporary folder from paths and messages."""
    report.message = report.message.replace(root + os.sep, "")
    report.notes = [note.replace(root + os.sep, "") for note in report.notes]
    report.path = report.path.replace(root + os.sep, "")


def _written(folder: Path, name: str) -> bytes | None:
    path = folder / name
    if not name or path.is_symlink() or not path.is_file() or path.stat().st_size > 2 * OUTPUT:
        return None
    return path.read_bytes()


def _run(path: Path, arguments: list[str], options: Options, stdin: bytes) -> ProgramReport:
    if not sys.platform.startswith("linux"):
        return run_program(path, arguments, options, capture=True, stdin=stdin)
    with tempfile.TemporaryDirectory(prefix="tilewise-out-") as folder:
        streams = [Path(folder) / "stdin", Path(folder) / "stdout", Path(folder) / "stderr"]
        streams[0].write_bytes(stdin)
        for attempt in range(2):
            try:
                connection = _server(os.getpid())
                connection.send((str(path), arguments, options, [str(p) for p in streams]))
                report = connection.recv()
                break
            except (EOFError, OSError):
                _server.cache_clear()
                if attempt:
                    raise
        assert isinstance(report, ProgramReport)
        report.output, report.errors = (_text(p) for p in streams[1:])
        return report


def _text(path: Path) -> str:
    return path.read_bytes()[: OUTPUT + SLACK].decode("utf-8", "replace") if path.is_file() else ""


@lru_cache(maxsize=1)
def _server(process: int) -> Connection:
    """The connection to this process's server, started on first use; `process` is the cache key."""
    ours, theirs = socket.socketpair()
    kept = {k: v for k, v in os.environ.items() if k in ENVIRONMENT or k.startswith(PREFIXES)}
    kept |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    kept["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[3]), kept.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", f"from {__name__} import serve; serve({theirs.fileno()}, {os.getpid()})"]
    child = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=kept, stdin=subprocess.DEVNULL)
    theirs.close()
    connection = Connection(ours.detach())
    atexit.register(_end, child, connection)
    return connection


def _end(child: subprocess.Popen[bytes], connection: Connection) -> None:
    connection.close()
    child.kill()
    child.wait()


# -- in the server


def serve(descriptor: int, parent: int) -> None:
    """Fork for each request until the connection is closed."""
    import importlib

    end_with(parent)
    for name in LOADED:
        importlib.import_module(name)
    connection = Connection(descriptor)
    own = os.getpid()
    while True:
        try:
            request = connection.recv()
        except EOFError:
            return
        child = os.fork()
        if child == 0:
            code = 1
            try:
                end_with(own)
                connection.send(_forked(*request))
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        if status:
            connection.send(ProgramReport(request[0], 4, "failed", "the process that started the program ended"))


def _forked(path: str, arguments: list[str], options: Options, streams: list[str]) -> Any:
    import resource

    hard = resource.getrlimit(resource.RLIMIT_AS)[1]  # the program's process reserves all of its memory at once
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT + SLACK, OUTPUT + SLACK))
    for number, name in enumerate(streams):
        file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.dup2(file, number)
        os.close(file)
    return run_program(path, arguments, options, fork=True)
