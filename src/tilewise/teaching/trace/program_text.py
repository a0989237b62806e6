"""The report of `tilewise run` on stderr."""

from __future__ import annotations

import textwrap
from pathlib import PurePath

from tilewise.emulator.host.program_report import ProgramReport
from tilewise.emulator.machine.findings import Finding, Kind, Severity
from tilewise.i18n.messages import say
from tilewise.i18n.translation import translated
from tilewise.teaching.trace.causes import depth
from tilewise.teaching.trace.findings_text import change_of, kind_label, message_of

SHOWN = 12  # findings that are printed without --all


def ordered(report: ProgramReport) -> list[Finding]:
    """The findings that are reported: faults, causes before their symptoms and then by line; then memory that is not
    freed or not copied back."""
    order = {Severity.FAULT: 0, Severity.NOTE: 1, Severity.COST: 2}
    found = [f for f in report.findings if f.severity is Severity.FAULT or f.kind in (Kind.LEAK, Kind.NOT_COPIED_BACK)]
    return sorted(found, key=lambda f: (order[f.severity], depth(f), f.line))


def program_text(report: ProgramReport, everything: bool = False, lang: str = "en") -> str:
    """The text for stderr; empty where there is nothing to report."""
    findings = ordered(report)
    lines = [say(lang, "run.no.input"), ""] if report.wanted == "input" and findings else []
    shown = findings if everything else findings[:SHOWN]
    for finding in shown:
        lines += _finding(finding, lang)
    if len(findings) > len(shown):
        lines.append(say(lang, "run.more", count=len(findings) - len(shown)))
    lines += [translated(note, lang) for note in report.notes]
    if report.ended in ("limit", "refused", "failed"):
        lines += ["", say(lang, f"run.{report.ended}", message=translated(report.message, lang))]
    elif report.ended == "crash":
        lines.append(translated(report.message, lang))
    count = len(report.faults)
    if count and not report.wanted:
        lines.append(say(lang, "run.faults", count=count, file=PurePath(report.path).name))
    return "\n".join(lines).strip()


def _finding(finding: Finding, lang: str) -> list[str]:
    place = finding.place
    kind, message = kind_label(finding.kind, lang), message_of(finding, lang)
    if finding.count > 1 and not finding.touches:
        message = say(lang, "run.times", message=message, count=finding.count)
    lines = [kind]
    if place is not None:
        lines = [f"{place.file}:{place.line}: {kind}", *(f"  {part}" for part in place.caret().split("\n"))]
    for text in (message, translated(finding.evidence, lang), change_of(finding, lang)):
        lines += textwrap.wrap(text, 80, initial_indent="  ", subsequent_indent="  ")
    return [*lines, ""]
