"""Findings of `check` and `run` in compute-sanitizer's format, threads and blocks as (x,y,z)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tilewise.emulator.check.wording import cell
from tilewise.emulator.host.program_report import ProgramReport
from tilewise.emulator.machine.findings import Basis, Finding, Kind, Touch
from tilewise.emulator.machine.lanes import Name
from tilewise.teaching.trace.grouping import by_place
from tilewise.teaching.trace.launch import Run
from tilewise.teaching.trace.program_text import ordered
from tilewise.teaching.trace.report import CheckReport
from tilewise.teaching.trace.sarif import RULES

BAR = "========="
PRINTED = 100  # errors printed one by one, the default of compute-sanitizer's --print-limit

_TITLES = {
    Kind.DIVERGENT_BARRIER: "Barrier error detected. Divergent thread(s) in block",
    Kind.UNCOVERED: "Part of the output is never written",
    Kind.WRONG_PRODUCT: "The output is not the product",
    Kind.INDEX_OVERFLOW: "32-bit index overflow",
    Kind.LAUNCH: "Program hit an invalid launch configuration",
    Kind.ASSERTION: "Assertion failed",
}


def report_sanitizer(report: CheckReport) -> str:
    faults = by_place(report.runs)
    seen = [one for one in faults if one.finding.basis is Basis.SEEN]
    records = [record for one in seen for record in _records(one.finding, one.runs[0])]
    notes = []
    if len(records) > PRINTED:
        notes.append(f"{len(records) - PRINTED} more are not printed")
    if len(faults) > len(seen):
        notes.append(f"{len(faults) - len(seen)} more only at other sizes, or under a launch that is not known")
    return _printed("CHECK", records[:PRINTED], notes, [one.finding for one in seen])


def program_sanitizer(report: ProgramReport) -> str:
    records = []
    for finding in ordered(report):
        where = f"    at {finding.place.file}:{finding.place.line}" if finding.place else "    at the program"
        records.append([RULES[finding.kind], where, f"    {finding.message}", *_hint(finding)])
    return _printed("RUN", records, [], report.faults)


def _printed(command: str, records: list[list[str]], notes: list[str], faults: Iterable[Finding]) -> str:
    lines = [f"TILEWISE {command}", *(text for record in records for text in (*record, "")), *notes]
    count = sum(finding.count or 1 for finding in faults)
    lines.append(f"ERROR SUMMARY: {count} error{'s' if count != 1 else ''}")
    return "\n".join(f"{BAR} {text}".rstrip() for text in lines)


def _records(finding: Finding, run: Run) -> Iterator[list[str]]:
    """One record per thread, or one for the whole launch."""
    named = [t for t in finding.touches if t.thread]
    if not named or finding.kind in (Kind.UNCOVERED, Kind.WRONG_PRODUCT):
        yield [_title(finding), *_at(finding, run), f"    {finding.message}", *_hint(finding)]
        return
    for touch in named:
        record = [_title(finding), *_at(finding, run)]
        record.append(f"    by thread {_xyz(touch.thread)} in block {_xyz(touch.block)}")
        record += [f"    {text}" for text in _what(finding, touch)]
        yield [*record, *_hint(finding)]


def _title(finding: Finding) -> str:
    space = "__global__" if finding.access in ("load", "store", "atomic") else "__shared__"
    if finding.access in ("local", "register"):
        space = "__local__"
    verb = "write" if finding.access in ("store", "write") else "read"
    if finding.kind is Kind.OUT_OF_BOUNDS:
        return f"Invalid {space} {verb}"
    if finding.kind is Kind.SILENT_OVERRUN:
        return f"Silent overrun: {space} {verb} outside its row, inside the allocation"
    if finding.kind is Kind.UNINITIALISED_READ:
        return f"Uninitialized {space} memory read"
    if finding.kind is Kind.RACE:
        return f"Error: Race reported: {finding.hazard} hazard on {space} memory, {finding.scope}"
    return _TITLES.get(finding.kind, str(finding.kind))


def _at(finding: Finding, run: Run) -> list[str]:
    place = finding.place
    return [f"    at {run.entry} in {place.file}:{place.line}" if place else f"    at {run.entry}"]


def _what(finding: Finding, touch: Touch) -> list[str]:
    if finding.kind is Kind.RACE:
        lines = [f"on {cell(finding.array, touch.reached)}"]
        if touch.other is not None:
            line = f", line {finding.other_place.line}" if finding.other_place else ""
            lines.append(f"with thread {_xyz(touch.other[1])} in block {_xyz(touch.other[0])}{line}")
        return lines
    if finding.kind is Kind.OUT_OF_BOUNDS:
        return [f"{cell(finding.array, touch.requested)} is out of bounds"]
    if finding.kind is Kind.SILENT_OVERRUN:
        return [f"asks for {cell(finding.array, touch.requested)}, reaches {cell(finding.array, touch.reached)}"]
    if finding.kind is Kind.UNINITIALISED_READ:
        return [f"{cell(finding.array, touch.requested)} was never written"]
    return []


def _hint(finding: Finding) -> list[str]:
    return [f"    {finding.hint}"] if finding.hint else []


def _xyz(name: Name) -> str:
    x, y, z = (*name, 0, 0)[:3]
    return f"({x},{y},{z})"
