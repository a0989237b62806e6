"""What `tilewise run` says about a program besides its own output: as text, as SARIF, in compute-sanitizer's form."""

from __future__ import annotations

import textwrap
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from tilewise.emulator.host.program_report import ProgramReport
from tilewise.emulator.machine.findings import Finding, Kind, Severity, severity_of
from tilewise.i18n.messages import counted, say
from tilewise.i18n.translation import translated
from tilewise.system.version import __version__
from tilewise.teaching.trace.sarif import LEVELS, RULES, SCHEMA
from tilewise.teaching.trace.told_finding import kind_word, message_of

BAR = "========="
SHOWN = 12  # findings told one by one; --all tells every one


def ordered(report: ProgramReport) -> list[Finding]:
    """Faults first, in the order of the lines; then what only costs."""
    order = {Severity.FAULT: 0, Severity.NOTE: 1, Severity.COST: 2}
    told = [f for f in report.findings if f.severity is Severity.FAULT or f.kind in (Kind.LEAK, Kind.NOT_COPIED_BACK)]
    return sorted(told, key=lambda f: (order[f.severity], f.line))


def program_text(report: ProgramReport, width: int = 80, everything: bool = False, lang: str = "en") -> str:
    """For people, on stderr; empty where there is nothing to say."""
    lines: list[str] = []
    findings = ordered(report)
    shown = findings if everything else findings[:SHOWN]
    for finding in shown:
        lines += _finding(finding, width, lang)
    if len(findings) > len(shown):
        lines.append(say(lang, "run.more", count=len(findings) - len(shown)))
    lines += [translated(note, lang) for note in report.notes]
    if report.ended in ("limit", "refused", "failed"):
        lines += ["", say(lang, f"run.{report.ended}", message=translated(report.message, lang))]
    elif report.ended == "crash":
        lines.append(translated(report.message, lang))
    count = len(report.faults)
    if count:
        lines.append(counted(lang, "run.faults", count, file=PurePath(report.path).name))
    return "\n".join(lines).strip()


def _finding(finding: Finding, width: int, lang: str) -> list[str]:
    place = finding.place
    lines = []
    kind, message = kind_word(finding.kind, lang), message_of(finding, lang)
    if finding.count > 1 and not finding.touches:
        message = say(lang, "run.times", message=message, count=finding.count)
    if place is not None:
        lines += [f"{place.file}:{place.line}: {kind}", *(f"  {part}" for part in place.caret().split("\n"))]
    else:
        lines.append(kind)
    lines += textwrap.wrap(message, width, initial_indent="  ", subsequent_indent="  ")
    if finding.evidence:
        lines += textwrap.wrap(translated(finding.evidence, lang), width, initial_indent="  ", subsequent_indent="  ")
    if finding.hint:
        mend = say(lang, "run.mend", hint=translated(finding.hint, lang))
        lines += textwrap.wrap(mend, width, initial_indent="  ", subsequent_indent="  ")
    return [*lines, ""]


def program_sarif(report: ProgramReport) -> dict[str, Any]:
    kinds = list(Kind)
    rules = [
        {
            "id": str(k),
            "shortDescription": {"text": RULES[k]},
            "defaultConfiguration": {"level": LEVELS[severity_of(k)]},
        }
        for k in kinds
    ]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "tilewise", "version": __version__, "rules": rules}},
                "columnKind": "unicodeCodePoints",
                "results": [_result(f, kinds, report.path) for f in ordered(report)],
            }
        ],
    }


def _result(finding: Finding, kinds: list[Kind], path: str) -> dict[str, Any]:
    parts = (finding.message, finding.evidence, finding.hint)
    text = ". ".join(part[:1].upper() + part[1:] for part in parts if part)
    place = finding.place
    physical: dict[str, Any] = {"artifactLocation": {"uri": quote(PurePath(place.file if place else path).as_posix())}}
    if place is not None:
        end = place.column + max(1, place.length)
        physical["region"] = {"startLine": place.line, "startColumn": place.column, "endColumn": end}
    return {
        "ruleId": str(finding.kind),
        "ruleIndex": kinds.index(finding.kind),
        "level": LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [{"physicalLocation": physical}],
        "properties": {"count": finding.count},
    }


def program_sanitizer(report: ProgramReport) -> str:
    lines = [f"{BAR} TILEWISE RUN"]
    findings = ordered(report)
    for finding in findings:
        where = f"    at {finding.place.file}:{finding.place.line}" if finding.place else "    at the program"
        record = [RULES[finding.kind], where, f"    {finding.message}"]
        if finding.hint:
            record.append(f"    {finding.hint}")
        lines += [f"{BAR} {text}".rstrip() for text in (*record, "")]
    count = sum(f.count or 1 for f in report.faults)
    lines.append(f"{BAR} ERROR SUMMARY: {count} error{'s' if count != 1 else ''}")
    return "\n".join(lines)
