"""Grades in words: the reason behind each item, in the reader's language."""

from __future__ import annotations

from tilewise.i18n.messages import say
from tilewise.i18n.translation import translated
from tilewise.teaching.course.grading import Grade, Item


def sentence(item: Item, grade: Grade, language: str) -> str:
    """Why an item has not all of its points; empty where it has."""
    if not item.why:
        return ""
    if "kinds" in item.values:
        kinds = ", ".join(kind_name(kind, language) for kind in item.values["kinds"])
        return say(language, item.why, **{**item.values, "kinds": kinds})
    if "message" in item.values:
        return say(language, item.why, **{**item.values, "message": translated(item.values["message"], language)})
    return say(language, item.why, trouble=translated(grade.trouble, language), line=grade.line or "–", **item.values)


def kind_name(kind: str, language: str) -> str:
    """A kind of finding in the reader's words."""
    return say(language, f"kind.{kind}")


def item_name(item: str, language: str) -> str:
    return say(language, f"grade.item.{item}")
