"""Start a program in a process of its own, and take its report when it has ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tilewise.engines.simt.frontend.source import Place
from tilewise.engines.simt.host.options import Options
from tilewise.engines.simt.machine.findings import Finding, Kind, Severity, Touch
from tilewise.errors import FileError

CHILD = "tilewise.engines.simt.check.program_child"
GRACE = 1.0  # seconds beyond its limit that a process has to tell what was found


@dataclass
class ProgramReport:
    """What a run gave: its status, how it ended, and everything found."""

    path: str
    status: int
    ended: str  # exit, abort, crash, limit, refused, failed
    message: str = ""
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    launches: list[dict[str, Any]] = field(default_factory=list)
    card: str = ""
    output: str | None = None
    errors: str | None = None
    wanted: str = ""  # arguments or input that it asked for and was not given

    @property
    def faults(self) -> list[Finding]:
        return [f for f in self.findings if f.severity is Severity.FAULT]

    @property
    def ok(self) -> bool:
        return not self.faults and self.ended == "exit"

    @property
    def silent(self) -> bool:
        """Whether there is nothing to tell besides what the program printed."""
        return self.ended == "exit" and not self.findings and not self.notes

    @property
    def exit_code(self) -> int:
        """The program's own status; 1 where it says 0 and faults were found; 2 and 4 where it could not run."""
        return self.status or (1 if self.faults else 0)

    def to_json(self) -> dict[str, Any]:
        return {
            "version": 1, "program": self.path, "status": self.status, "ended": self.ended, "message": self.message,
            "card": self.card, "launches": self.launches, "findings": [f.to_json() for f in self.findings],
            "notes": self.notes, "ok": self.ok, "output": self.output,
        }  # fmt: skip


def run_program(
    path: str | Path, arguments: list[str] | None = None, options: Options | None = None, capture: bool = False,
    stdin: bytes | None = None, dump: str | None = None, fork: bool = False,
) -> ProgramReport:  # fmt: skip
    """Run PROGRAM.cu. Its stdout and stderr are this process's own unless `capture`.

    `fork`: by a copy of this process, where nothing but this thread would be left behind, instead of a new one."""
    options = options or Options()
    path = Path(path)
    if not path.is_file():
        raise FileError(f"{path}: no such file")
    options.folder = str(path.resolve().parent)
    reader, writer = os.pipe()
    settings = {
        "path": str(path), "name": f"./{path.stem}", "arguments": arguments or [], "report": writer,
        "options": asdict(options), "dump": dump, "began": time.monotonic(),
    }  # fmt: skip
    if fork and not capture and stdin is None and _alone():
        return _report(path, *_forked(settings, reader, writer, options.clock + GRACE), options)
    out = subprocess.PIPE if capture else None
    feed = subprocess.PIPE if stdin is not None else (subprocess.DEVNULL if capture else None)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[4]), environment.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [sys.executable, "-m", CHILD, json.dumps(settings)], pass_fds=[writer], stdout=out, stderr=out, stdin=feed,
        env=environment,
    )  # fmt: skip
    os.close(writer)
    parts: list[str] = []
    reading = threading.Thread(target=lambda: parts.append(_read_all(reader)))  # a report may be larger than the pipe
    reading.start()
    late = False
    try:
        output, errors = process.communicate(stdin, timeout=options.clock + GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        late = True
        output, errors = process.communicate()
    except BaseException:  # Ctrl-C: the program goes too, whatever it is doing
        process.kill()
        process.wait()
        raise
    reading.join()
    text = "".join(parts)
    report = _report(path, process.returncode, text, late, options)
    if capture:
        report.output = (output or b"").decode("utf-8", "replace")
        report.errors = (errors or b"").decode("utf-8", "replace")
    return report


def _read_all(descriptor: int) -> str:
    with os.fdopen(descriptor, encoding="utf-8") as pipe:
        return pipe.read()


def _alone() -> bool:
    """Whether this process has one thread, so that a copy of it is whole."""
    try:
        return hasattr(os, "fork") and len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


def _forked(settings: dict[str, Any], reader: int, writer: int, most: float) -> tuple[int, str, bool]:
    """The child's status, its report, and whether it had to be ended. It never returns into the caller."""
    from importlib import import_module

    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
            sys.stdin, sys.stdout, sys.stderr = (open(i, mode, closefd=False) for i, mode in enumerate("rww"))  # noqa: SIM115
            sys.argv = [CHILD, json.dumps(settings)]
            import_module(CHILD).main()
        finally:
            os._exit(4)
    os.close(writer)
    ended = threading.Event()

    def end_late() -> None:
        if not ended.wait(most):
            late.append(True)
            os.kill(child, signal.SIGKILL)

    late: list[bool] = []
    clock = threading.Thread(target=end_late, daemon=True)
    clock.start()
    try:
        text = _read_all(reader)
        _, status = os.waitpid(child, 0)
    except BaseException:  # Ctrl-C: the program goes too, whatever it is doing
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    finally:
        ended.set()
    clock.join()
    return os.waitstatus_to_exitcode(status), text, bool(late)


def _report(path: Path, code: int, text: str, late: bool, options: Options) -> ProgramReport:
    if not text and late:
        message = f"the program took longer than {options.clock:g} s and could not be asked: --limit-time raises it"
        return ProgramReport(str(path), 4, "limit", message, card=options.card)
    if not text and code == -signal.SIGINT:  # Ctrl-C reached the program before it reached this process
        raise KeyboardInterrupt
    if not text:
        message = f"the program's process ended without a word (status {code})"
        return ProgramReport(str(path), 4, "failed", message, card=options.card)
    document = json.loads(text)
    findings = [finding_of(f) for f in document["findings"]]
    return ProgramReport(
        str(path), document["status"] & 255, document["ended"], document["message"], findings, document["notes"],
        document["launches"], options.card, wanted=document.get("wanted", ""),
    )  # fmt: skip


def finding_of(document: dict[str, Any]) -> Finding:
    """A finding from its JSON."""
    place = None
    if document["file"] is not None:
        place = Place(document["file"], document["line"], document["column"], document["length"], document["text"])
    other = None
    if document.get("other_line"):
        other = Place(document["file"] or "", document["other_line"], 1, 1, document["other_text"] or "")
    made = Finding(
        Kind(document["kind"]), document["message"], place, document["array"], document["access"], document["hazard"],
        document["scope"], document["count"], hint=document["hint"], other_place=other, evidence=document["evidence"],
    )  # fmt: skip
    for touch in document["touches"]:
        pair = touch["other"]
        made.touches.append(
            Touch(
                tuple(touch["block"]), tuple(touch["thread"]), touch["phase"],
                tuple(touch["asked"]) if touch["asked"] is not None else None,
                tuple(touch["reached"]) if touch["reached"] is not None else None,
                (tuple(pair[0]), tuple(pair[1])) if pair is not None else None, touch["value"],
            )
        )  # fmt: skip
    return made
