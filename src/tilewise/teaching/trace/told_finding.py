"""A finding in the reader's language: its kind, what happened, and the numbers that prove it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tilewise.emulator.machine.findings import Finding, Kind
from tilewise.i18n.messages import say
from tilewise.i18n.translation import known, translated

DASH = "–"


def kind_word(kind: str, language: str) -> str:
    """A kind of finding: its rule's name in English, words elsewhere."""
    return str(kind) if language == "en" else say(language, f"kind.{kind}")


def place_word(f: Finding, language: str) -> str:
    return say(language, "findings.line", line=f.line)


def message_of(f: Finding, language: str) -> str:
    """What happened. The engine's own sentence in English; elsewhere its translation, or the sentence of its kind."""
    if language == "en":
        return f.message
    if known(f.message):
        return translated(f.message, language)
    return told(f, language).rstrip(".")


def evidence_of(f: Finding, language: str) -> str:
    """The numbers that prove it, where the message does not have them."""
    if language == "en":
        return f.evidence if f.evidence not in f.message else ""
    return told_wrong(f, language) or translated(f.evidence, language)


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
