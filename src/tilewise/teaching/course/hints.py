"""Hints in steps: a question about the cause, then the place with the student's own names and numbers, then the change.

Causes are finer than kinds of findings: a barrier missing before the tile is used and one missing before it is loaded
again are two causes, so that no hint is about the barrier that was just added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilewise.i18n.messages import messages, say
from tilewise.i18n.translation import translated
from tilewise.teaching.course.evidence import GRADED, Found
from tilewise.teaching.course.grading import Grade

NUDGE, PLACE, CHANGE = 1, 2, 3
SYMPTOM = "wrong-product"  # a consequence of any other fault
Hints = Mapping[str, Mapping[str, str]]  # an exercise's own, by cause, kind or item; then by language


@dataclass(frozen=True)
class Hint:
    cause: str
    line: int
    text: str


def hints_of(grade: Grade, own: Hints, language: str, step: int = CHANGE) -> list[Hint]:
    """One hint for each cause of this attempt's faults, at this step."""
    if grade.status != GRADED:
        return [Hint(grade.status, grade.line, translated(grade.trouble, language))]
    causes: dict[str, Found] = {}
    for found in grade.found:
        causes.setdefault(found.cause, found)
    if len(causes) > 1 and SYMPTOM not in own:
        causes.pop(SYMPTOM, None)
    out = [Hint(cause, found.line, _text(found, own, language, step)) for cause, found in causes.items()]
    for item in grade.items:
        if item.points < item.most and (item.name in own or not out):
            nudge = _nudge(item.name, language)
            text = own[item.name][language] if item.name in own and (step == CHANGE or not nudge) else nudge
            out += [Hint(item.name, 0, text)] if text else []
    return out


def _text(found: Found, own: Hints, language: str, step: int) -> str:
    message = found.messages.get(language, found.message)
    place = (
        say(language, "hint.place", line=found.line, code=found.text.strip(), message=message)
        if found.line
        else message
    )
    if step == NUDGE:
        return _nudge(found.cause, language) or _nudge(found.kind, language) or message
    if step == PLACE:
        return place
    key = next((key for key in (found.cause, found.kind) if key in own), "")
    return own[key][language] if key else translated(found.hint, language) or place


def _nudge(cause: str, language: str) -> str:
    return messages(language).get(f"hint.{cause}", "")
