"""Findings as text: the line quoted with a caret, who, the cell asked for and the cell reached, and what to change."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from tilewise.engines.simt.check.wording import cell
from tilewise.engines.simt.frontend.source import Place
from tilewise.engines.simt.machine.findings import Finding, Severity
from tilewise.tracing import Run
from tilewise.tracing.grouping import Group, Seen, by_line_and_threads, pair, same_place, thread_lines

CELLS_SHOWN = 4


def findings_text(
    runs: Sequence[Run], width: int = 80, severities: Sequence[Severity] = (Severity.FAULT,), of: int = 1
) -> str:
    """The findings of some runs, grouped by source line and thread set; `of` is how many runs there were."""
    lines: dict[tuple[str, int], list[str]] = {}
    for group in by_line_and_threads(same_place(runs, severities)):
        place = group.place
        key = (place.file, place.line) if place else ("", 0)
        if key not in lines:
            lines[key] = quoted(place) if place else [_nowhere(group)]
        lines[key] += _group(group, width, of)
    return "\n\n".join("\n".join(part) for part in lines.values())


def _group(group: Group, width: int, of: int) -> list[str]:
    lines = []
    whose = thread_lines(group.threads)
    if whose and any(s.finding.count > len(s.finding.touches) for s in group.seen):
        whose[-1] += ", and others"
    for text in whose:
        lines += _wrap(text, width, "  ")
    for one in group.seen:
        lines += _finding(one, width, of)
    return lines


def _nowhere(group: Group) -> str:
    return f"{group.seen[0].runs[0].file}: (no line of the file: the launch was made here)"


def quoted(place: Place) -> list[str]:
    """The place and its line, with the caret under the words meant."""
    line, caret = place.caret().split("\n")
    indent = len(line) - len(line.lstrip())
    number = f"{place.line:5} | "
    return [str(place), number + line[indent:].rstrip(), " " * (len(number) - 2) + "| " + caret[indent:]]


def _finding(one: Seen, width: int, of: int) -> list[str]:
    f = one.finding
    lines = _wrap(f"{f.kind}: {f.message}", width, "    ")
    for text in cells(f):
        lines += _wrap(text, width, "      ")
    if f.evidence and f.evidence not in f.message:
        lines += _wrap(f.evidence, width, "      ")
    if of > 1 and one.shapes:
        lines += _wrap(f"seen at {', '.join(dict.fromkeys(one.shapes))}", width, "      ")
    if f.hint:
        lines += _wrap(f"change: {f.hint}", width, "      ")
    return lines


def cells(finding: Finding) -> list[str]:
    """Who asked for which cell and reached which, where that says more than the message does."""
    told = []
    for t in finding.touches:
        if t.asked is None or not t.thread or len(t.asked) != 2:
            continue
        who = f"{pair(t.thread)} of block {pair(t.block)}, phase {t.phase}"
        asked = cell(finding.array, t.asked)
        if t.reached is None:
            told.append(f"{who}: asks {asked}, which is outside")
        elif t.reached != t.asked:
            told.append(f"{who}: asks {asked}, gets {cell(finding.array, t.reached)}")
    if len(told) < 2:
        return []
    if finding.count > CELLS_SHOWN:
        told = [*told[:CELLS_SHOWN], f"… {finding.count - CELLS_SHOWN} more"]
    return told


def _wrap(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent + "  ", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def summary(runs: Iterable[Run]) -> str:
    """One line: how many faults, how many costs and notes."""
    runs = list(runs)
    faults = len(same_place(runs))
    rest = len(same_place(runs, (Severity.COST, Severity.NOTE)))
    text = f"{faults} fault{'s' if faults != 1 else ''}" if faults else "no faults"
    return text + (f", {rest} costs and notes" if rest else "")
