"""Grades as text (each item with its reason) and as CSV, JUnit, SARIF, JSON, GitHub annotations.

They include submissions that could not be graded."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import PurePath
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from tilewise.i18n.messages import say
from tilewise.i18n.translation import translated
from tilewise.teaching.course.assignment import KINDS, Assignment
from tilewise.teaching.course.class_report import common_faults, similar, suspicious
from tilewise.teaching.course.evidence import GRADED, Found
from tilewise.teaching.course.grading import Grade, Item
from tilewise.teaching.trace.sarif import RULES, document

SCHEMA = 1
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # first characters of cells that a spreadsheet evaluates


def sentence(item: Item, grade: Grade, language: str) -> str:
    """Why an item lacks points; empty if it has all."""
    if not item.why:
        return ""
    values = {"trouble": translated(grade.trouble, language), "line": grade.line or "–", **item.values}
    if "kinds" in values:
        values["kinds"] = ", ".join(kind_name(kind, language) for kind in values["kinds"])
    if "texts" in values:
        values["text"] = values["texts"].get(language, "")
    if "message" in values:
        values["message"] = translated(values["message"], language)
    return say(language, item.why, **values)


def kind_name(kind: str, language: str) -> str:
    """A kind of finding in the reader's language."""
    return say(language, f"kind.{kind}")


def item_name(item: str, assignment: Assignment, language: str) -> str:
    """An item in the reader's language, a test by the lecturer's title."""
    if item in KINDS:
        return kind_name(item, language)
    return assignment.titled(item, language) or say(language, f"grade.item.{item}")


def number(points: float) -> str:
    return f"{points:.4g}"


def csv_text(rows: Iterable[Sequence[str]]) -> str:
    """Rows as CSV, with formulas escaped: a spreadsheet must not evaluate a student's text."""
    out = io.StringIO()
    cells = ([f"'{text}" if text.startswith(FORMULA) else text for text in row] for row in rows)
    csv.writer(out, lineterminator="\n").writerows(cells)
    return out.getvalue()


def text_of(grade: Grade, assignment: Assignment, language: str) -> str:
    """The feedback for one student: every item with its reason, then every finding with its hint."""
    lines = []
    for item in grade.items:
        points = f"{item_name(item.name, assignment, language)}: {number(item.points)}/{number(item.most)}"
        lines.append(f"{points} {sentence(item, grade, language)}".rstrip())
    for f in grade.found:
        where = f"{f.file or grade.file}:{f.line}" if f.line else f.file
        lines.append(f"{where} {kind_name(f.kind, language)}: {_line(f, language)}".strip())
    return "\n".join(lines)


def as_csv(grades: Sequence[Grade], assignment: Assignment, language: str) -> str:
    columns = [name for key in assignment.items for name in (key, f"{key}: why")]
    rows = [["name", "file", "status", "points", "most", *columns, "findings"]]
    for grade in grades:
        items = {item.name: item for item in grade.items}
        points: list[str] = []
        for key in assignment.items:
            points += [number(items[key].points), sentence(items[key], grade, language)]
        found = " ".join(f"{f.kind}:{f.line}" for f in grade.found)
        rows.append([grade.name, grade.file, grade.status, number(grade.points), number(grade.most), *points, found])
    return csv_text(rows)


def as_json(grades: Sequence[Grade], assignment: Assignment, seed: int) -> dict[str, Any]:
    shapes = ["x".join(map(str, shape)) for shape in assignment.shapes]
    return {
        "schema": SCHEMA, "assignment": assignment.title, "shapes": shapes, "seed": seed, "most": assignment.most,
        "grades": [grade.to_json() for grade in grades],
        "class": {
            "faults": [asdict(one) for one in common_faults(grades)],
            "calls": [asdict(one) for one in suspicious(grades)],
            "similar": [asdict(one) for one in similar(grades)],
        },
    }  # fmt: skip


def as_junit(grades: Sequence[Grade], assignment: Assignment, language: str) -> str:
    """One suite per submission, one case per item."""
    root = ElementTree.Element("testsuites", name=_clean(assignment.title))
    for grade in grades:
        failed = sum(item.points < item.most for item in grade.items)
        suite = ElementTree.SubElement(
            root, "testsuite", name=_clean(grade.name), tests=str(len(grade.items)), failures=str(failed),
            time=f"{grade.seconds:.3f}",
        )  # fmt: skip
        for item in grade.items:
            case = ElementTree.SubElement(suite, "testcase", classname=_clean(grade.file), name=item.name)
            if item.points < item.most:
                points = f"{number(item.points)}/{number(item.most)}"
                failure = ElementTree.SubElement(case, "failure", message=points)
                failure.text = _clean(sentence(item, grade, language))
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _clean(text: str) -> str:
    """Without the characters that XML does not allow."""
    return "".join(c for c in text if c in "\t\n" or " " <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd")


def as_github(grades: Sequence[Grade], language: str = "en") -> str:
    """GitHub workflow commands, which annotate lines."""
    lines = []
    for grade in grades:
        for f in grade.found:
            where = f"file={_property(grade.path(f.file))},line={max(1, f.line)}"
            lines.append(f"::error {where},title={_property(f.kind)}::{_message(_line(f, language))}")
        if grade.status != GRADED:
            where = f"file={_property(grade.file)},line={max(1, grade.line)}"
            lines.append(f"::error {where},title={_property(grade.status)}::{_message(grade.trouble)}")
        points = f"{grade.name}: {number(grade.points)} of {number(grade.most)}"
        lines.append(f"::notice file={_property(grade.file)}::{_message(points)}")
    return "\n".join(lines) + "\n"


def described(f: Found, language: str) -> tuple[str, str]:
    """A finding's message and its hint."""
    return f.messages.get(language, f.message), translated(f.hint, language)


def _line(f: Found, language: str) -> str:
    return ". ".join(part for part in described(f, language) if part)


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def as_sarif(grades: Sequence[Grade], language: str = "en") -> dict[str, Any]:
    kinds = {str(kind): text for kind, text in RULES.items()}
    rules = {**kinds, "not-graded": "The file could not be read, parsed or finished"}
    results = []
    for grade in grades:
        for f in grade.found:
            results.append(_result(f.kind, _line(f, language), grade.path(f.file), f.line, f.column))
        if grade.status != GRADED:
            results.append(_result("not-graded", grade.trouble or grade.status, grade.file, grade.line, 1))
    return document(results, [{"id": kind, "shortDescription": {"text": text}} for kind, text in rules.items()])


def _result(rule: str, text: str, file: str, line: int, column: int) -> dict[str, Any]:
    region = {"startLine": max(1, line), "startColumn": max(1, column)}
    place = {"artifactLocation": {"uri": quote(PurePath(file).as_posix())}, "region": region}
    return {"ruleId": rule, "level": "error", "message": {"text": text}, "locations": [{"physicalLocation": place}]}
