"""Findings as text: the line quoted with a caret, who, the cell asked for and the cell reached, and what to change."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from tilewise.emulator.check.wording import cell
from tilewise.emulator.frontend.source import Place
from tilewise.emulator.machine.findings import Finding, Severity
from tilewise.i18n.messages import counted, say
from tilewise.i18n.translation import translated
from tilewise.teaching.trace.grouping import Group, Seen, by_line_and_threads, pair, same_place, thread_lines
from tilewise.teaching.trace.one_run import Run
from tilewise.teaching.trace.told_finding import evidence_of, kind_word, message_of

CELLS_SHOWN = 4


def findings_text(
    runs: Sequence[Run], width: int = 80, severities: Sequence[Severity] = (Severity.FAULT,), of: int = 1,
    lang: str = "en",
) -> str:  # fmt: skip
    """The findings of some runs, grouped by source line and thread set; `of` is how many runs there were."""
    lines: dict[tuple[str, int], list[str]] = {}
    for group in by_line_and_threads(same_place(runs, severities)):
        place = group.place
        key = (place.file, place.line) if place else ("", 0)
        if key not in lines:
            lines[key] = quoted(place) if place else [_nowhere(group, lang)]
        lines[key] += _group(group, width, of, lang)
    return "\n\n".join("\n".join(part) for part in lines.values())


def _group(group: Group, width: int, of: int, lang: str) -> list[str]:
    lines = []
    whose = thread_lines(group.threads, lang=lang)
    if whose and any(s.finding.count > len(s.finding.touches) for s in group.seen):
        whose[-1] = say(lang, "check.others", threads=whose[-1])
    for text in whose:
        lines += _wrap(text, width, "  ")
    for one in group.seen:
        lines += _finding(one, width, of, lang)
    return lines


def _nowhere(group: Group, lang: str) -> str:
    return f"{group.seen[0].runs[0].file}: {say(lang, 'check.nowhere')}"


def quoted(place: Place) -> list[str]:
    """The place and its line, with the caret under the words meant."""
    line, caret = place.caret().split("\n")
    indent = len(line) - len(line.lstrip())
    number = f"{place.line:5} | "
    return [str(place), number + line[indent:].rstrip(), " " * (len(number) - 2) + "| " + caret[indent:]]


def _finding(one: Seen, width: int, of: int, lang: str) -> list[str]:
    f = one.finding
    lines = _wrap(f"{kind_word(f.kind, lang)}: {message_of(f, lang)}", width, "    ")
    for text in cells(f, lang):
        lines += _wrap(text, width, "      ")
    lines += _wrap(evidence_of(f, lang), width, "      ")
    if of > 1 and one.shapes:
        shapes = ", ".join(dict.fromkeys(one.shapes))
        lines += _wrap(say(lang, "findings.shapes", shapes=shapes), width, "      ")
    if f.hint:
        lines += _wrap(say(lang, "check.change", hint=translated(f.hint, lang)), width, "      ")
    return lines


def cells(finding: Finding, lang: str = "en") -> list[str]:
    """Who asked for which cell and reached which, where that says more than the message does."""
    told = []
    for t in finding.touches:
        if t.asked is None or not t.thread or len(t.asked) != 2:
            continue
        who = say(lang, "check.who", thread=pair(t.thread), block=pair(t.block), phase=t.phase)
        asked = cell(finding.array, t.asked)
        if t.reached is None:
            told.append(say(lang, "check.asks.outside", who=who, asked=asked))
        elif t.reached != t.asked:
            reached = cell(finding.array, t.reached)
            told.append(say(lang, "check.asks", who=who, asked=asked, reached=reached))
    if len(told) < 2:
        return []
    if finding.count > CELLS_SHOWN:
        told = [*told[:CELLS_SHOWN], say(lang, "table.more", count=finding.count - CELLS_SHOWN)]
    return told


def _wrap(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent + "  ", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def summary(runs: Iterable[Run], lang: str = "en") -> str:
    """One line: how many faults, how many costs and notes."""
    runs = list(runs)
    faults = len(same_place(runs))
    rest = len(same_place(runs, (Severity.COST, Severity.NOTE)))
    text = counted(lang, "verdict", faults) if faults else say(lang, "verdict.none")
    return text + (f", {say(lang, 'verdict.costs', count=rest)}" if rest else "")
