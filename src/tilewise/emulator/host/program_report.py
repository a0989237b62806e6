"""The report of a run, received from an untrusted process.

It comes through a pipe: a line at the first fault, then a JSON document. A program that has gained control of its
process could forge it. Therefore a missing or malformed document, or one that withdraws an announced fault, is a failed
run."""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass, field
from typing import Any

from tilewise.emulator.host.options import Options
from tilewise.emulator.machine.findings import Finding, Kind, Severity, Touch
from tilewise.emulator.source.source import Place
from tilewise.errors import KernelError, TilewiseError

ANNOUNCED = b"fault\n"
UNCONFINED = "unconfined"  # not run: the system has no sandbox
HOST_POINTER = "a host pointer"  # why a launch failed
ENDINGS = frozenset({"exit", "abort", "crash", "limit", "refused", "failed", UNCONFINED})


def not_run(status: int, ended: str, message: str) -> dict[str, Any]:
    """The document of a process that ended before its program ran."""
    return {"status": status, "ended": ended, "message": message, "findings": [], "notes": [], "launches": []}


def refused(error: TilewiseError) -> dict[str, Any]:
    """The document of a program that cannot be built."""
    document = not_run(error.exit_code, "refused", str(error))
    return {**document, "rejected": isinstance(error, KernelError), "wanted": ""}


@dataclass
class ProgramReport:
    """The result of a run: status, ending and findings."""

    path: str
    status: int
    ended: str  # one of ENDINGS
    message: str = ""
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    launches: list[dict[str, Any]] = field(default_factory=list)
    card: str = ""
    output: str | None = None
    errors: str | None = None
    wanted: str = ""  # arguments or input that it read and was not given
    sandbox: str = ""  # a description of its sandbox; empty for none
    rejected: bool = False  # its own text does not compile; no file or header is missing

    @property
    def faults(self) -> list[Finding]:
        return [f for f in self.findings if f.severity is Severity.FAULT]

    @property
    def ok(self) -> bool:
        return not self.faults and self.ended == "exit"

    @property
    def silent(self) -> bool:
        """Whether there is nothing to print besides the program's own output."""
        return self.ended == "exit" and not self.findings and not self.notes

    @property
    def exit_code(self) -> int:
        """The program's status; 1 if that is 0 and faults were found, unless it lacked input; 2 or 4: not run."""
        return self.status or (1 if self.faults and not self.wanted else 0)

    def to_json(self) -> dict[str, Any]:
        return {
            "version": 1, "program": self.path, "status": self.status, "ended": self.ended, "message": self.message,
            "card": self.card, "launches": self.launches, "findings": [f.to_json() for f in self.findings],
            "notes": self.notes, "ok": self.ok, "output": self.output, "sandbox": self.sandbox,
        }  # fmt: skip


def received(path: str, code: int, data: bytes, late: bool, options: Options) -> ProgramReport:
    """The report of a process that exited with `code` and wrote `data`."""
    announced = data.startswith(ANNOUNCED)
    data = data.removeprefix(ANNOUNCED)
    if not data and (late or code == -getattr(signal, "SIGXCPU", 24)):
        most = options.clock if late else options.seconds
        message = f"the program took longer than {most:g} s and sent no report: --limit-time raises it"
        return ProgramReport(path, 4, "limit", message, card=options.card)
    if not data and code == -signal.SIGINT:  # Ctrl-C reached the program before it reached this process
        raise KeyboardInterrupt
    if not data:
        return ProgramReport(path, 4, "failed", _ending(code), card=options.card)
    try:
        report = _parsed(path, json.loads(data), options)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        message = "the program's process sent a malformed report: it is not trusted"
        return ProgramReport(path, 4, "failed", message, card=options.card)
    if (report.ended == "exit" and report.status != code) or (
        announced and report.ended == "exit" and not report.faults
    ):
        message = "the program's process sent a report that contradicts what was seen of it: it is not trusted"
        return ProgramReport(path, 4, "failed", message, card=options.card)
    return report


def _ending(code: int) -> str:
    if code == -getattr(signal, "SIGSYS", 31):
        return "the program's process was ended by the system: it made a system call that the sandbox forbids"
    return f"the program's process ended without a report (status {code})"


def _parsed(path: str, document: dict[str, Any], options: Options) -> ProgramReport:
    findings = [finding_of(f) for f in document["findings"]]
    report = ProgramReport(
        path, int(document["status"]) & 255, str(document["ended"]), str(document["message"]), findings,
        [str(note) for note in document["notes"]], list(document["launches"]), options.card,
        wanted=str(document.get("wanted", "")), sandbox=str(document.get("sandbox", "")),
        rejected=document.get("rejected") is True,
    )  # fmt: skip
    if report.ended not in ENDINGS or not all(isinstance(launch, dict) for launch in report.launches):
        raise ValueError
    return report


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
