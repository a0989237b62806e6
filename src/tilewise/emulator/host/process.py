"""Run a program in a child process and receive its report."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from tilewise.emulator.host.file_broker import FileBroker
from tilewise.emulator.host.options import Options
from tilewise.emulator.host.program_report import ANNOUNCED, UNCONFINED, ProgramReport, received
from tilewise.errors import FileError

CHILD = "tilewise.emulator.check.program_child"
GRACE = 1.0  # seconds that a process has to report after its limit,
INTERRUPTED = 0.4  # and after Ctrl-C
REPORT = 64 << 20  # bytes of a report that are kept
SLACK = 1 << 20  # bytes of captured output beyond the limit that are kept
# variables that a captured program inherits: others may be secrets of the grader
ENVIRONMENT = ("HOME", "LANG", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "XDG_CACHE_HOME")
PREFIXES = ("DYLD_", "LC_", "PYTHON", "TILEWISE_", "COVERAGE_")


def run_program(
    path: str | Path, arguments: list[str] | None = None, options: Options | None = None, capture: bool = False,
    stdin: bytes | None = None, dump: str | None = None, fork: bool = False,
) -> ProgramReport:  # fmt: skip
    """Run PROGRAM.cu. It inherits stdout and stderr unless `capture`.

    `fork`: in a fork of this process instead of a new one, if this process has one thread."""
    options = options or Options()
    path = Path(path)
    if not path.is_file():
        raise FileError(f"{path} does not exist")
    if not hasattr(os, "fork"):  # Windows: its processes inherit no descriptors by number
        message = "main was not run: programs run on Linux and macOS"
        return ProgramReport(str(path), 2, UNCONFINED, message, card=options.card)
    options.folder = str(path.resolve().parent)
    reader, writer = os.pipe()
    pipe = open(reader, "rb", buffering=0)  # noqa: SIM115
    broker = FileBroker(options)
    settings = {
        "path": str(path), "name": f"./{path.stem}", "arguments": arguments or [], "report": writer,
        "parent": os.getpid(),
        "files": broker.theirs.fileno(), "options": asdict(options), "dump": dump, "began": time.monotonic(),
    }  # fmt: skip
    seconds = None if math.isinf(options.clock) else options.clock + GRACE
    try:
        if fork and not capture and stdin is None and _single_threaded():
            code, text, late = _forked(settings, broker, pipe, writer, seconds)
            return received(str(path), code, text, late, options)
        process = _started(settings, capture, stdin)
        os.close(writer)
        broker.start()
        report = _Collected(pipe, REPORT)
        output = _Collected(process.stdout, options.output + SLACK) if process.stdout else None
        errors = _Collected(process.stderr, options.output + SLACK) if process.stderr else None
        try:
            late = _waited(process, stdin, seconds)
        except KeyboardInterrupt:
            if capture or not report.document():
                raise
            late = False
        made = received(str(path), process.returncode, report.data(), late, options)
        if output is not None and errors is not None:
            made.output, made.errors = (part.data().decode("utf-8", "replace") for part in (output, errors))
        return made
    finally:
        broker.close()
        pipe.close()


def _started(settings: dict[str, Any], capture: bool, stdin: bytes | None) -> subprocess.Popen[bytes]:
    out = subprocess.PIPE if capture else None
    feed = subprocess.PIPE if stdin is not None else (subprocess.DEVNULL if capture else None)
    environment = dict(os.environ)
    if capture:
        kept = (name for name in environment if name in ENVIRONMENT or name.startswith(PREFIXES))
        environment = {name: environment[name] for name in kept}
    environment.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[3]), environment.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-m", CHILD, json.dumps(settings)], pass_fds=[settings["report"], settings["files"]],
        stdout=out, stderr=out, stdin=feed, env=environment,
    )  # fmt: skip


def _waited(process: subprocess.Popen[bytes], stdin: bytes | None, seconds: float | None) -> bool:
    """Wait for the program; whether it was killed at its limit."""
    if stdin is not None:
        threading.Thread(target=_feed, args=(process, stdin), daemon=True).start()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return True
    except KeyboardInterrupt:  # stop the program too
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(INTERRUPTED)
        raise
    finally:
        if process.returncode is None:
            process.kill()
            process.wait()
    return False


def _feed(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError), process.stdin as pipe:
        pipe.write(data)


class _Collected:
    """Collects a pipe's data until it is closed; bytes beyond `most` are dropped."""

    def __init__(self, pipe: IO[bytes], most: int) -> None:
        self._pipe, self._most = pipe, most
        self._parts = bytearray()
        self._ended = threading.Event()  # a join interrupted by Ctrl-C marks the thread as ended (CPython 3.11)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with contextlib.suppress(OSError), self._pipe as pipe:
            while part := os.read(pipe.fileno(), 1 << 16):
                self._parts += part[: self._most - len(self._parts)]
        self._ended.set()

    def wait(self, seconds: float | None = None) -> None:
        self._ended.wait(seconds)

    def document(self) -> bool:
        """Whether a report has arrived, not only the announcement of a fault."""
        return len(self.data()) > len(ANNOUNCED)

    def data(self) -> bytes:
        self._ended.wait()
        return bytes(self._parts)


def _single_threaded() -> bool:
    """Whether this process has one thread, so that a fork lacks none."""
    try:
        return hasattr(os, "fork") and len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


def _forked(
    settings: dict[str, Any], broker: FileBroker, reader: IO[bytes], writer: int, seconds: float | None
) -> tuple[int, bytes, bool]:
    """The child's status and report, and whether it was killed at its limit. The child does not return."""
    from importlib import import_module

    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        try:
            _close_others({0, 1, 2, writer, settings["files"]})
            os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
            sys.stdin, sys.stdout, sys.stderr = (open(i, mode, closefd=False) for i, mode in enumerate("rww"))  # noqa: SIM115
            sys.argv = [CHILD, json.dumps(settings)]
            import_module(CHILD).main()
        finally:
            os._exit(4)
    os.close(writer)
    broker.start()
    ended = threading.Event()

    def end_late() -> None:
        if not ended.wait(seconds):
            late.append(True)
            os.kill(child, signal.SIGKILL)

    late: list[bool] = []
    clock = threading.Thread(target=end_late, daemon=True)
    clock.start()
    report = _Collected(reader, REPORT)
    try:
        report.wait()
        _, status = os.waitpid(child, 0)
    except BaseException as error:  # Ctrl-C: stop the program too
        try:
            if isinstance(error, KeyboardInterrupt):
                os.kill(child, signal.SIGINT)
                report.wait(INTERRUPTED)
        finally:
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
        if not report.document():
            raise
    finally:
        ended.set()
    clock.join()
    return os.waitstatus_to_exitcode(status), report.data(), bool(late)


def _close_others(kept: set[int]) -> None:
    """Close the descriptors that the program must not inherit."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            with contextlib.suppress(OSError):
                os.close(int(name))
