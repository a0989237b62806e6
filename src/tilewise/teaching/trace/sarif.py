"""Findings of `check` and `run` as SARIF 2.1.0, which code hosts and editors show next to the line."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from tilewise.emulator.host.program_report import ProgramReport
from tilewise.emulator.machine.findings import Basis, Finding, Kind, Severity, severity_of
from tilewise.emulator.source.source import Place
from tilewise.system.version import __version__
from tilewise.teaching.trace.grouping import by_place
from tilewise.teaching.trace.program_text import ordered
from tilewise.teaching.trace.report import CheckReport

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {Severity.FAULT: "error", Severity.COST: "note", Severity.NOTE: "note"}

RULES = {
    Kind.OUT_OF_BOUNDS: "An access outside its allocation",
    Kind.SILENT_OVERRUN: "An access outside its row but inside the allocation: wrong data, no fault anywhere",
    Kind.RACE: "Two threads touch a cell, one of them writes, and nothing orders them",
    Kind.DIVERGENT_BARRIER: "A barrier that not every thread of the block reaches",
    Kind.UNINITIALISED_READ: "A value is read before anything was written",
    Kind.INDEX_OVERFLOW: "A 32-bit product that feeds an index wraps",
    Kind.UNCOVERED: "The launch leaves part of the output unwritten",
    Kind.WRONG_PRODUCT: "The output is not the product of the inputs",
    Kind.ASSERTION: "An assert of the kernel fails",
    Kind.LAUNCH: "A launch that the device refuses",
    Kind.BANK_CONFLICT: "Threads of a warp meet in a bank of shared memory",
    Kind.UNCOALESCED: "Threads of a warp touch more sectors than they need",
    Kind.DIVERGENCE: "A branch splits warps",
    Kind.NOT_DECIDABLE: "No leading dimension took part in the index",
    Kind.NULL_POINTER: "An access through a null pointer",
    Kind.USE_AFTER_FREE: "Memory used after it was freed",
    Kind.DOUBLE_FREE: "Memory freed twice",
    Kind.WRONG_FREE: "Memory freed with the wrong call, or that was never allocated",
    Kind.LEAK: "Memory that is never freed",
    Kind.SMALL_ALLOCATION: "An allocation too small for what is put into it",
    Kind.COPY: "A copy in the wrong direction, too long, or from or to no memory",
    Kind.DEVICE_POINTER: "The host uses memory of the card",
    Kind.HOST_POINTER: "A kernel is given memory of the host",
    Kind.NOT_COPIED_BACK: "Results that never come back to the host",
    Kind.NOT_SYNCHRONISED: "Results read before the kernel has ended",
    Kind.COMPARISON: "A comparison with the reference that cannot fail",
    Kind.ARGUMENT: "An argument that cannot be meant",
    Kind.OVERFLOW: "Signed arithmetic that overflows",
    Kind.DIVISION: "An integer divided by zero",
    Kind.STACK: "More than the stack holds",
    Kind.NO_RETURN: "A function that ends without the value it owes",
    Kind.FORMAT: "A format that does not fit its arguments",
}

BASIS_LEVELS = {Basis.SEEN: "error", Basis.OTHER_SIZES: "warning", Basis.UNDECIDED: "note"}


def report_sarif(report: CheckReport, costs: bool = False) -> dict[str, Any]:
    """What `check` found; `costs`: notes on costs too."""
    results = []
    for one in by_place(report.runs, tuple(Severity) if costs else (Severity.FAULT,)):
        f, run = one.finding, one.runs[0]
        properties = {"kernel": run.entry, "count": f.count, "shapes": one.shapes, "basis": str(f.basis)}
        results.append(_result(f, run.file, properties))
    return document(results, [_rule(kind) for kind in Kind])


def program_sarif(report: ProgramReport) -> dict[str, Any]:
    """What `run` found."""
    results = [_result(f, report.path, {"count": f.count}) for f in ordered(report)]
    return document(results, [_rule(kind) for kind in Kind])


def document(results: list[dict[str, Any]], rules: list[dict[str, Any]]) -> dict[str, Any]:
    driver = {"name": "tilewise", "version": __version__, "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(kind: Kind) -> dict[str, Any]:
    level = {"level": LEVELS[severity_of(kind)]}
    return {"id": str(kind), "shortDescription": {"text": RULES[kind]}, "defaultConfiguration": level}


def _result(f: Finding, file: str, properties: dict[str, Any]) -> dict[str, Any]:
    text = ". ".join(part[:1].upper() + part[1:] for part in (f.message, f.evidence, f.hint) if part)
    result: dict[str, Any] = {
        "ruleId": str(f.kind),
        "ruleIndex": list(Kind).index(f.kind),
        "level": BASIS_LEVELS[f.basis] if f.severity is Severity.FAULT else LEVELS[f.severity],
        "message": {"text": text},
        "locations": [_location(f.place, file)],
        "properties": properties,
    }
    if f.other_place is not None:
        other = {**_location(f.other_place, file), "id": 1, "message": {"text": "the other access"}}
        result["relatedLocations"] = [other]
    return result


def _location(place: Place | None, file: str) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": quote(PurePath(place.file if place else file).as_posix())}}
    if place is not None:
        physical["region"] = {
            "startLine": place.line,
            "startColumn": place.column,
            "endColumn": place.column + max(1, place.length),
            "snippet": {"text": place.text},
        }
    return {"physicalLocation": physical}
