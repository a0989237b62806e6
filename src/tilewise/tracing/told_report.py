"""Findings in the reader's language: one a source place, each a sentence of the words' file."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any

from tilewise.engines.simt.machine.findings import Finding, Kind
from tilewise.tracing import Run
from tilewise.tracing.grouping import same_place
from tilewise.words import say

DASH = "–"


def told_runs(runs: Iterable[Run], language: str, width: int = 80) -> str:
    """Every fault of these runs: the line quoted, the sentence, and at which shapes it was seen."""
    runs = list(runs)
    lines = []
    for seen in same_place(runs):
        f = seen.finding
        where = say(language, "findings.line", line=f.line) if f.line else ""
        if f.place is not None:
            lines.append(f"{f.place.line:5d} | {f.place.text.strip()}")
        sentence = f"{where}{': ' if where else ''}{told(f, language)} {told_wrong(f, language)}".strip()
        lines += textwrap.wrap(sentence, width, initial_indent="  ", subsequent_indent="    ")
        if seen.shapes and len(runs) > 1:
            lines.append("    " + say(language, "findings.shapes", shapes=", ".join(dict.fromkeys(seen.shapes))))
        lines.append("")
    count = len(same_place(runs))
    verdict = say(language, "findings.some", count=count) if count else say(language, "findings.none")
    lines += textwrap.wrap(verdict, width)
    return "\n".join(lines)


def told(f: Finding, language: str) -> str:
    """A finding as the page says it."""
    key = f"finding.{f.kind}"
    if f.kind is Kind.RACE:
        key += f".{f.hazard}{'.blocks' if f.scope == 'between blocks' else ''}"
    elif f.kind in (Kind.OUT_OF_BOUNDS, Kind.SILENT_OVERRUN):
        key += ".store" if f.access in ("store", "write") else ".load"
    return say(language, key, **_values(f, language))


def told_wrong(f: Finding, language: str) -> str:
    """The numbers that prove it."""
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
        "asked": _cell(f.array, touch.asked if touch is not None else None),
        "reached": _cell(f.array, touch.reached if touch is not None else None),
        "other": another,
        "otherLine": f.other_place.line if f.other_place is not None else DASH,
    }


def _spot(numbers: Iterable[int]) -> str:
    inside = ",".join(map(str, numbers))
    return f"({inside})" if inside else DASH


def _cell(array: str, cell: Iterable[int] | None) -> str:
    return array + "".join(f"[{i}]" for i in cell or ())
