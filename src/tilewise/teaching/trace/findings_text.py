"""Findings as text in the reader's language: the quoted line with a caret, the threads, the cells, what to change."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from tilewise.emulator.check.wording import cell
from tilewise.emulator.machine.findings import STALE, Finding, Kind, Severity
from tilewise.emulator.machine.lanes import Name
from tilewise.emulator.source.source import Place
from tilewise.i18n.messages import say
from tilewise.i18n.translation import translated, translation
from tilewise.system.quantities import coordinates
from tilewise.teaching.trace.causes import FIRST
from tilewise.teaching.trace.grouping import FindingRuns, Group, by_line_and_threads, by_place, thread_lines
from tilewise.teaching.trace.launch import Run

CELLS_SHOWN = 4
KERNEL_KINDS = frozenset({*FIRST, Kind.BANK_CONFLICT, Kind.UNCOALESCED, Kind.DIVERGENCE, Kind.NOT_DECIDABLE})
DASH = "–"


def findings_text(
    runs: Sequence[Run], width: int = 80, severities: Sequence[Severity] = (Severity.FAULT,), of: int = 1,
    lang: str = "en",
) -> str:  # fmt: skip
    """The findings of some runs, grouped by source line and thread set; `of` is how many runs there were."""
    lines: dict[tuple[str, int], list[str]] = {}
    for group in by_line_and_threads(by_place(runs, severities)):
        place = group.place
        key = (place.file, place.line) if place else ("", 0)
        if key not in lines:
            nowhere = f"{group.seen[0].runs[0].file}: {say(lang, 'check.nowhere')}"
            lines[key] = quoted(place) if place else [nowhere]
        lines[key] += _group(group, width, of, lang)
    return "\n\n".join("\n".join(part) for part in lines.values())


def _group(group: Group, width: int, of: int, lang: str) -> list[str]:
    lines = []
    threads = thread_lines(group.threads, lang=lang)
    if threads and any(s.finding.count > len(s.finding.touches) for s in group.seen):
        threads[-1] = say(lang, "check.others", threads=threads[-1])
    for text in threads:
        lines += wrapped(text, width, "  ")
    for one in group.seen:
        lines += finding_lines(one, cells(one.finding, lang), width, of, lang, "    ")
    return lines


def quoted(place: Place) -> list[str]:
    """The place and its line, with the caret under the expression."""
    line, caret = place.caret().split("\n")
    indent = len(line) - len(line.lstrip())
    number = f"{place.line:5} | "
    return [str(place), number + line[indent:].rstrip(), " " * (len(number) - 2) + "| " + caret[indent:]]


def finding_lines(one: FindingRuns, details: Sequence[str], width: int, of: int, lang: str, indent: str) -> list[str]:
    """The message, `details`, the evidence, the shapes if there were several runs, and the change."""
    f = one.finding
    below = [*details, evidence_of(f, lang)]
    if of > 1 and one.shapes:
        below.append(say(lang, "findings.shapes", shapes=", ".join(dict.fromkeys(one.shapes))))
    below.append(change_of(f, lang))
    lines = wrapped(f"{kind_label(f.kind, lang)}: {message_of(f, lang)}", width, indent)
    return lines + [line for text in below for line in wrapped(text, width, indent + "  ")]


def cells(finding: Finding, lang: str = "en") -> list[str]:
    """The requested and the reached cell of each thread, if there are several."""
    lines = []
    for t in finding.touches:
        if t.requested is None or not t.thread or len(t.requested) != 2:
            continue
        who = say(lang, "check.who", thread=coordinates(t.thread), block=coordinates(t.block), phase=t.phase)
        requested = cell(finding.array, t.requested)
        if t.reached is None:
            lines.append(say(lang, "check.asks.outside", who=who, asked=requested))
        elif t.reached != t.requested:
            reached = cell(finding.array, t.reached)
            lines.append(say(lang, "check.asks", who=who, asked=requested, reached=reached))
    if len(lines) < 2:
        return []
    if finding.count > CELLS_SHOWN:
        lines = [*lines[:CELLS_SHOWN], say(lang, "table.more", count=finding.count - CELLS_SHOWN)]
    return lines


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent + "  ", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def summary(runs: Iterable[Run], lang: str = "en") -> str:
    """One line: how many faults, how many costs and notes."""
    runs = list(runs)
    faults = len(by_place(runs))
    rest = len(by_place(runs, (Severity.COST, Severity.NOTE)))
    text = say(lang, "verdict.some", count=faults) if faults else say(lang, "verdict.none")
    return text + (f", {say(lang, 'verdict.costs', count=rest)}" if rest else "")


# -- one finding


def kind_label(kind: str, language: str) -> str:
    """The kind of a finding: the rule's name in English, its translation elsewhere."""
    return str(kind) if language == "en" else say(language, f"kind.{kind}")


def line_label(f: Finding, language: str) -> str:
    return say(language, "findings.line", line=f.line)


def message_of(f: Finding, language: str) -> str:
    """What happened: the emulator's sentence in English; elsewhere its translation, or the sentence of its kind."""
    if language == "en":
        return f.message
    return translation(f.message, language) or sentence_of(f, language).rstrip(".")


def evidence_of(f: Finding, language: str) -> str:
    """The finding's numbers, unless they are in the message."""
    if language == "en":
        return f.evidence if f.evidence not in f.message else ""
    return wrong_cells_of(f, language) or translated(f.evidence, language)


def change_of(f: Finding, language: str) -> str:
    return say(language, "check.change", hint=translated(f.hint, language)) if f.hint else ""


def sentence_of(f: Finding, language: str) -> str:
    """A kernel's finding as the page shows it; kinds that only whole programs have are always translated."""
    if f.kind not in KERNEL_KINDS:
        return f.message
    key = f"finding.{f.kind}"
    if f.kind is Kind.RACE:
        key += f".{f.hazard}{'.blocks' if f.scope == 'between blocks' else ''}"
    elif f.hazard == STALE:
        key += ".stale"
    elif f.kind in (Kind.OUT_OF_BOUNDS, Kind.SILENT_OVERRUN):
        key += ".store" if f.access in ("store", "write") else ".load"
    return say(language, key, **_values(f, language))


def wrong_cells_of(f: Finding, language: str) -> str:
    """The number of wrong cells of P, and an example with both values."""
    if f.wrong is None:
        return ""
    key = {"first to last": "wrong.first", "last to first": "wrong.last"}.get(f.wrong.order, "wrong.together")
    name = f.array if f.kind is Kind.WRONG_PRODUCT else "P"
    row, col = f.wrong.cell
    values = {"cells": f.wrong.cells, "cell": f"{name}[{row}][{col}]"}
    return say(language, key, **values, held=f"{f.wrong.held:g}", expected=f"{f.wrong.expected:g}")


def _values(f: Finding, language: str) -> dict[str, Any]:
    touch = f.touches[0] if f.touches else None
    other = touch.other[1] if touch is not None and touch.other else ()
    another = say(language, "word.thread.named", thread=_spot(other)) if other else say(language, "word.thread.other")
    return {
        "count": f.count,
        "array": f.array,
        "line": f.line or DASH,
        "thread": _spot(touch.thread) if touch is not None else DASH,
        "block": _spot(touch.block) if touch is not None else DASH,
        "phase": touch.phase if touch is not None else DASH,
        "asked": cell(f.array, touch.requested if touch is not None else None),
        "reached": cell(f.array, touch.reached if touch is not None else None),
        "other": another,
        "otherLine": f.other_place.line if f.other_place is not None else DASH,
    }


def _spot(name: Name) -> str:
    return coordinates(name) if name else DASH
