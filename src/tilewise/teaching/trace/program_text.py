"""The report of `tilewise run` on stderr."""

from __future__ import annotations

import textwrap
from pathlib import PurePath

from tilewise.emulator.host.program_report import ProgramReport
from tilewise.emulator.machine.findings import Finding, Kind, Severity
from tilewise.i18n.messages import say
from tilewise.i18n.translation import translated
from tilewise.teaching.trace.causes import Cause, depth
from tilewise.teaching.trace.findings_text import change_of, kind_label, message_of
from tilewise.teaching.trace.grouping import FindingRuns
from tilewise.teaching.trace.report import related

SHOWN = 12  # findings that are printed without --all


def ordered(report: ProgramReport) -> list[Finding]:
    """The findings that are reported: faults, causes before their symptoms and then by line; then memory that is not
    freed or not copied back."""
    order = {Severity.FAULT: 0, Severity.NOTE: 1, Severity.COST: 2}
    found = [f for f in report.findings if f.severity is Severity.FAULT or f.kind in (Kind.LEAK, Kind.NOT_COPIED_BACK)]
    return sorted(found, key=lambda f: (order[f.severity], depth(f), f.line))


def program_text(report: ProgramReport, everything: bool = False, lang: str = "en") -> str:
    """The text for stderr; empty where there is nothing to report."""
    found = ordered(report)
    findings = [(finding, "") for finding in found]
    causes = [] if everything else causes_of([f for f in found if f.severity is Severity.FAULT])
    if causes:
        notes = [(f, "") for f in found if f.severity is not Severity.FAULT]
        findings = [*((cause.lead.finding, related(cause, lang)) for cause in causes), *notes]
    lines = [say(lang, "run.no.input"), ""] if report.wanted == "input" and findings else []
    shown = findings if everything else findings[:SHOWN]
    for finding, others in shown:
        lines += _finding(finding, others, lang)
    if len(findings) > len(shown):
        lines.append(say(lang, "run.more", count=len(findings) - len(shown)))
    lines += [translated(note, lang) for note in report.notes]
    if report.ended in ("limit", "refused", "failed"):
        lines += ["", say(lang, f"run.{report.ended}", message=translated(report.message, lang))]
    elif report.ended == "crash":
        lines.append(translated(report.message, lang))
    count = len(causes or report.faults)
    if count and not report.wanted:
        lines.append(say(lang, "run.faults", count=count, file=PurePath(report.path).name))
    return "\n".join(lines).strip()


def causes_of(findings: list[Finding]) -> list[Cause]:
    """The faults, with those of the same line or of the same advice for the same array under the first of them."""
    causes: list[Cause] = []
    for finding in findings:
        first = next((c for c in causes if _same_slip(c.lead.finding, finding)), None)
        if first is None:
            causes.append(Cause(FindingRuns(finding)))
        else:
            first.alike.append(FindingRuns(finding))
    return causes


def _same_slip(a: Finding, b: Finding) -> bool:
    advice = a.array != "" and (a.array, a.hint) == (b.array, b.hint)
    place = a.place is not None and b.place is not None and a.place.file == b.place.file
    return a.kind is b.kind and (advice or (place and (a.line, a.access) == (b.line, b.access)))


def _finding(finding: Finding, others: str, lang: str) -> list[str]:
    place = finding.place
    kind, message = kind_label(finding.kind, lang), message_of(finding, lang)
    if finding.count > 1 and not finding.touches:
        message = say(lang, "run.times", message=message, count=finding.count)
    lines = [kind]
    if place is not None:
        lines = [f"{place.file}:{place.line}: {kind}", *(f"  {part}" for part in place.caret().split("\n"))]
    for text in (message, translated(finding.evidence, lang), change_of(finding, lang), others):
        lines += textwrap.wrap(text, 80, initial_indent="  ", subsequent_indent="  ")
    return [*lines, ""]
