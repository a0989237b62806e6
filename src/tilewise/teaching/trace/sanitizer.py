"""Findings in the form people know from compute-sanitizer, threads and blocks as it has them: (x,y,z)."""

from __future__ import annotations

from collections.abc import Iterator

from tilewise.emulator.check.wording import cell
from tilewise.emulator.machine.findings import Basis, Finding, Kind, Touch
from tilewise.teaching.trace.grouping import Name, same_place
from tilewise.teaching.trace.one_run import Run
from tilewise.teaching.trace.report import Report

BAR = "========="
PRINTED = 100  # errors told one by one, as compute-sanitizer's --print-limit has it

_TITLES = {
    Kind.DIVERGENT_BARRIER: "Barrier error detected. Divergent thread(s) in block",
    Kind.UNCOVERED: "Part of the output is never written",
    Kind.WRONG_PRODUCT: "The output is not the product",
    Kind.INDEX_OVERFLOW: "32-bit index overflow",
    Kind.LAUNCH: "Program hit an invalid launch configuration",
    Kind.ASSERTION: "Assertion failed",
}


def report_sanitizer(report: Report) -> str:
    lines = [f"{BAR} TILEWISE CHECK"]
    found = [one for one in same_place(report.runs) if one.finding.basis is Basis.SEEN]
    records = [record for one in found for record in _records(one.finding, one.runs[0])]
    for record in records[:PRINTED]:
        lines += [f"{BAR} {text}".rstrip() for text in (*record, "")]
    if len(records) > PRINTED:
        lines.append(f"{BAR} {len(records) - PRINTED} more are not printed")
    elsewhere = len(same_place(report.runs)) - len(found)
    if elsewhere:
        lines.append(f"{BAR} {elsewhere} more only at other sizes, or under a launch that is not known")
    count = sum(one.finding.count or 1 for one in found)
    lines.append(f"{BAR} ERROR SUMMARY: {count} error{'s' if count != 1 else ''}")
    return "\n".join(lines)


def _records(finding: Finding, run: Run) -> Iterator[list[str]]:
    """One record a thread, or one for the whole launch."""
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
        return [f"{cell(finding.array, touch.asked)} is out of bounds"]
    if finding.kind is Kind.SILENT_OVERRUN:
        return [f"asks for {cell(finding.array, touch.asked)}, reaches {cell(finding.array, touch.reached)}"]
    if finding.kind is Kind.UNINITIALISED_READ:
        return [f"{cell(finding.array, touch.asked)} was never written"]
    return []


def _hint(finding: Finding) -> list[str]:
    return [f"    {finding.hint}"] if finding.hint else []


def _xyz(name: Name) -> str:
    x, y, z = (*reversed(name), 0, 0)[:3]
    return f"({x},{y},{z})"
