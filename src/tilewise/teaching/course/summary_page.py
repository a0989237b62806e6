"""Grades as HTML: one summary of the class, and one page per submission with its points, its faults and its source.

Students' text is escaped, and the pages neither contain nor allow scripts.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Sequence
from html import escape
from pathlib import Path

from tilewise.errors import FileError
from tilewise.i18n.messages import say
from tilewise.system.output import write_whole
from tilewise.teaching.course.assignment import Assignment
from tilewise.teaching.course.class_report import common_faults, similar, suspicious
from tilewise.teaching.course.grading import Grade
from tilewise.teaching.course.reports import described, item_name, kind_name, number, sentence

MOST_LINES = 2000  # of a source on a page
STYLE = """
:root { color-scheme: light dark; --good: #00694d; --bad: #a3320b; --rule: #8886; --tint: #fde3b8; }
@media (prefers-color-scheme: dark) { :root { --good: #57cfa6; --bad: #ff9f7a; --tint: #543a12; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--rule); vertical-align: top; overflow-wrap: anywhere; }
td.n, th.n { text-align: right; white-space: nowrap; } .full { color: var(--good); font-weight: 600; } .less { color: var(--bad); font-weight: 600; }
.scroll { overflow-x: auto; } pre { margin: 0; font: .85rem/1.5 ui-monospace, monospace; } .line { display: block; white-space: pre-wrap; overflow-wrap: anywhere; }
.line.bad { background: var(--tint); } .line b { display: inline-block; width: 3.5rem; font-weight: 400; opacity: .7; user-select: none; }
"""  # noqa: E501


def save_summary(grades: Sequence[Grade], assignment: Assignment, folder: Path, language: str) -> Path:
    """index.html and a page for each submission; the summary's path."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder} cannot be made: {error.strerror or error}") from error
    names = [page_name(i, grade.name) for i, grade in enumerate(grades, 1)]
    for grade, name in zip(grades, names, strict=True):
        write_whole(folder / name, student_page(grade, assignment, language))
    write_whole(folder / "index.html", class_page(grades, names, assignment, language))
    return folder / "index.html"


def save_feedback(grades: Sequence[Grade], assignment: Assignment, target: Path, language: str) -> None:
    """A page for each student, in a zip with the folders that Moodle's "Upload multiple feedback files" expects."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for i, grade in enumerate(grades, 1):
            plain = re.sub(r'[\\/:*?"<>|\x00-\x1f]+', "-", grade.name).strip(".- ") or f"submission {i}"
            folder = f"{plain}_{grade.id}_assignsubmission_file_" if grade.id else plain
            archive.writestr(f"{folder}/feedback.html", student_page(grade, assignment, language))
    write_whole(target, out.getvalue())


def page_name(position: int, name: str) -> str:
    """A file name of letters and digits for a submission's name."""
    return f"{position:03d}-{re.sub(r'[^A-Za-z0-9]+', '-', name).strip('-')[:40] or 'submission'}.html"


def document(title: str, body: str, language: str) -> str:
    return (
        f'<!doctype html>\n<html lang="{language}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main><h1>{escape(title)}</h1>{body}"
        "</main></body></html>\n"
    )


def class_page(grades: Sequence[Grade], names: Sequence[str], assignment: Assignment, language: str) -> str:
    head = [say(language, "grade.name"), say(language, "grade.points")]
    head += [item_name(key, assignment, language) for key in assignment.items]
    rows = []
    for grade, name in zip(grades, names, strict=True):
        cells = [f'<td><a href="{name}">{escape(grade.name)}</a></td>', _points(grade.points, grade.most)]
        cells += [_points(item.points, item.most) for item in grade.items]
        cells.append(f"<td>{escape(say(language, f'grade.status.{grade.status}'))}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    heads = "".join(f'<th scope="col">{escape(text)}</th>' for text in [*head, say(language, "grade.state")])
    mean = sum(grade.points for grade in grades) / max(1, len(grades))
    line = say(language, "grade.summary", count=len(grades), mean=number(mean), most=number(assignment.most))
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    body = f'<p>{escape(line)}</p><div class="scroll">{table}</div>{_about_the_class(grades, language)}'
    return document(assignment.title, body, language)


def _about_the_class(grades: Sequence[Grade], language: str) -> str:
    """Tables of the most common faults, suspicious calls, and similar submissions."""
    faults = [
        (kind_name(c.kind, language), c.count, f"{c.name}, {c.file}:{c.line}", c.text) for c in common_faults(grades)
    ]
    calls = [(c.name, f"{c.file}:{c.line}", c.what) for c in suspicious(grades)]
    pairs = [(p.one, p.two, f"{p.share:.0%}", f"{p.line_one} · {p.line_two}") for p in similar(grades)]
    parts = []
    for key, rows in (("grade.class.faults", faults), ("grade.class.calls", calls), ("grade.class.similar", pairs)):
        if rows:
            body = "".join(f"<tr>{''.join(f'<td>{escape(str(x))}</td>' for x in row)}</tr>" for row in rows)
            parts.append(f'<h2>{escape(say(language, key))}</h2><div class="scroll"><table>{body}</table></div>')
    return "".join(parts)


def _points(points: float, most: float) -> str:
    kind = "full" if points >= most - 1e-9 else "less"
    return f'<td class="n {kind}">{number(points)} / {number(most)}</td>'


def student_page(grade: Grade, assignment: Assignment, language: str) -> str:
    rows = "".join(
        f"<tr><td>{escape(item_name(i.name, assignment, language))}</td>{_points(i.points, i.most)}"
        f"<td>{escape(sentence(i, grade, language))}</td></tr>"
        for i in grade.items
    )
    body = f'<p><a href="index.html">{escape(assignment.title)}</a> · {escape(grade.file)}</p><table>{rows}</table>'
    if grade.found:
        found = "".join(
            f'<tr><td class="n">{f.line}</td><td>{escape(kind_name(f.kind, language))}</td>'
            f"<td>{'<br>'.join(map(escape, described(f, language)))}</td></tr>"
            for f in grade.found
        )
        body += f"<h2>{escape(say(language, 'card.findings'))}</h2><table>{found}</table>"
    for file, text in grade.sources.items():
        bad = {f.line for f in grade.found if f.file in (file, "")} | ({grade.line} if grade.line else set())
        lines = "".join(
            f'<span class="line{" bad" if i in bad else ""}"><b>{i}</b>{escape(line)}</span>'
            for i, line in enumerate(text.split("\n")[:MOST_LINES], 1)
        )
        body += f"<h2>{escape(file)}</h2><pre>{lines}</pre>"
    return document(f"{grade.name}: {number(grade.points)} / {number(grade.most)}", body, language)
