"""Grades in formats of other tools, a function each; and the files with which a platform runs the grader.

Learning platforms: Gradescope, PrairieLearn, Moodle, Canvas, GitHub Classroom, nbgrader. The fields of each are those
of its documentation, cited at its function.
"""

from __future__ import annotations

import base64
import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewise.errors import UsageError
from tilewise.teaching.course import reports
from tilewise.teaching.course.assignment import Assignment
from tilewise.teaching.course.evidence import GRADED
from tilewise.teaching.course.grading import Grade
from tilewise.teaching.course.reports import csv_text, item_name, number, sentence, text_of

Writer = Callable[[Sequence[Grade], Assignment, str, int], str]
WORKSHEET = (
    "Identifier", "Full name", "Email address", "Status", "Grade", "Maximum grade", "Grade can be changed",
    "Last modified (submission)", "Last modified (grade)", "Feedback comments",
)  # fmt: skip
GRADEBOOK = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")


def _json(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _one(grades: Sequence[Grade], form: str) -> Grade:
    if len(grades) != 1:
        raise UsageError(f"{form} takes one submission a file, and there are {len(grades)}")
    return grades[0]


def gradescope(grades: Sequence[Grade], assignment: Assignment, language: str, seed: int) -> str:
    """results.json: gradescope-autograders.readthedocs.io/en/latest/specs/, "Output format"."""
    grade = _one(grades, "gradescope")
    hidden = {test.name for test in assignment.tests if test.hidden}
    tests = [
        {
            "name": item_name(item.name, assignment, language), "number": str(i), "score": item.points,
            "max_score": item.most, "status": "passed" if item.points >= item.most else "failed",
            "output": sentence(item, grade, language), "output_format": "text",
            "visibility": "after_published" if item.name in hidden else "visible",
        }
        for i, item in enumerate(grade.items, 1)
    ]  # fmt: skip
    return _json(
        {
            "score": grade.points, "execution_time": grade.seconds, "output": text_of(grade, assignment, language),
            "output_format": "text", "visibility": "visible", "stdout_visibility": "hidden",
            "extra_data": {"seed": seed, "status": grade.status}, "tests": tests,
        }
    )  # fmt: skip


def prairielearn(grades: Sequence[Grade], assignment: Assignment, language: str, seed: int) -> str:
    """results/results.json: prairielearn.readthedocs.io/en/latest/externalGrading/, "Grading Results"."""
    grade = _one(grades, "prairielearn")
    unread = grade.status != GRADED
    tests = [
        {
            "name": item_name(item.name, assignment, language), "points": item.points, "max_points": item.most,
            "message": sentence(item, grade, language),
        }
        for item in grade.items
    ]  # fmt: skip
    made = {"gradable": True, "score": grade.points / grade.most if grade.most else 0.0, "tests": tests}
    return _json(made | {"message": grade.trouble if unread else "", "output": text_of(grade, assignment, language)})


def moodle(grades: Sequence[Grade], assignment: Assignment, language: str, seed: int) -> str:
    """The offline grading worksheet: docs.moodle.org/en/Assignment_settings, "Offline grading worksheet"."""
    rows = [
        [
            f"Participant {grade.id}" if grade.id else grade.name, grade.name, "", "Submitted for grading",
            number(grade.points), number(assignment.most), "Yes", "", "",
            text_of(grade, assignment, language).replace("\n", "<br>"),
        ]
        for grade in grades
    ]  # fmt: skip
    return csv_text([WORKSHEET, *rows])


def canvas(grades: Sequence[Grade], assignment: Assignment, language: str, seed: int) -> str:
    """A gradebook to import: community.canvaslms.com, "How do I import grades in the Gradebook?"."""
    rows = [[grade.name, grade.id, "", "", "", number(grade.points)] for grade in grades]
    return csv_text(
        [[*GRADEBOOK, assignment.title], ["    Points Possible", "", "", "", "", number(assignment.most)], *rows]
    )


def classroom(grades: Sequence[Grade], assignment: Assignment, language: str, seed: int) -> str:
    """The `result` of a runner, in base64: github.com/classroom-resources/autograding-grading-reporter."""
    grade = _one(grades, "classroom")
    tests = [
        {
            "name": item_name(item.name, assignment, language), "score": item.points, "max_score": item.most,
            "status": "pass" if item.points >= item.most else "fail", "message": sentence(item, grade, language),
            "test_code": "", "filename": grade.file, "line_no": grade.line, "duration": round(1000 * grade.seconds),
        }
        for item in grade.items
    ]  # fmt: skip
    status = "pass" if grade.full else "fail" if grade.status == GRADED else "error"
    document = {"version": 1, "status": status, "max_score": assignment.most, "tests": tests}
    return base64.b64encode(json.dumps(document).encode()).decode() + "\n"


FORMATS: Mapping[str, Writer] = {
    "csv": lambda grades, assignment, language, seed: reports.as_csv(grades, assignment, language),
    "json": lambda grades, assignment, language, seed: _json(reports.as_json(grades, assignment, seed)),
    "junit": lambda grades, assignment, language, seed: reports.as_junit(grades, assignment, language),
    "sarif": lambda grades, assignment, language, seed: _json(reports.as_sarif(grades, language)),
    "github": lambda grades, assignment, language, seed: reports.as_github(grades, language),
    "gradescope": gradescope, "prairielearn": prairielearn, "moodle": moodle, "canvas": canvas, "classroom": classroom,
}  # fmt: skip


# -- the files that a platform needs to run `tilewise grade`, by their paths in a zip

SETUP = """#!/usr/bin/env bash
# Once, when the autograder is built.
apt-get update && apt-get install -y python3 python3-pip
python3 -m pip install {system}{folder}/*.whl
"""
RUN = """#!/usr/bin/env bash
tilewise grade {submission} --assignment {folder}/assignment.toml --format {form} --lang {language} -o {results}
[ -s {results} ]   # a submission without all points is no failure of the grader
"""
WORKFLOW = """# .github/workflows/classroom.yml: grades each push and reports the points to GitHub Classroom.
name: Autograding Tests
on: [push, repository_dispatch]
permissions: {{checks: write, actions: read, contents: read}}
jobs:
  autograding:
    runs-on: ubuntu-latest
    if: github.actor != 'github-classroom[bot]'
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with: {{python-version: "3.12"}}
      - run: python -m pip install .github/classroom/*.whl
      - id: tilewise
        run: |
          rm -rf work && mkdir work && cp *.cu *.cuh *.h *.cpp work/ 2>/dev/null || true
          tilewise grade work --assignment .github/classroom/assignment.toml --format classroom --lang {language} -o result || true
          echo "result=$(cat result)" >> "$GITHUB_OUTPUT"
      - uses: classroom-resources/autograding-grading-reporter@v1
        env: {{TILEWISE_RESULTS: "${{{{ steps.tilewise.outputs.result }}}}"}}
        with: {{runners: tilewise}}
"""  # noqa: E501
DOCKERFILE = """FROM python:3.12-slim
COPY grader/ /tilewise/
RUN python -m pip install --no-cache-dir /tilewise/*.whl
CMD ["bash", "/grade/tests/run.sh"]
"""


def gradescope_kit(language: str) -> dict[str, str]:
    """setup.sh and run_autograder: gradescope-autograders.readthedocs.io/en/latest/specs/, "File structure"."""
    source = "/autograder/source"
    run = RUN.format(
        submission="/autograder/submission", folder=source, form="gradescope", language=language,
        results="/autograder/results/results.json",
    )  # fmt: skip
    return {"setup.sh": SETUP.format(system="--break-system-packages ", folder=source), "run_autograder": run}


def prairielearn_kit(language: str) -> dict[str, str]:
    """A Dockerfile, and a question's tests/ and info.json: prairielearn.readthedocs.io/en/latest/externalGrading/."""
    run = RUN.format(
        submission="/grade/student", folder="/grade/tests", form="prairielearn", language=language,
        results="/grade/results/results.json",
    )  # fmt: skip
    grading = {
        "gradingMethod": "External",
        "externalGradingOptions": {
            "enabled": True, "image": "OWNER/tilewise-grader", "entrypoint": "bash /grade/tests/run.sh", "timeout": 60,
        },
    }  # fmt: skip
    setup = "mkdir -p /grade/results\n"
    head, _, rest = run.partition("\n")
    return {"Dockerfile": DOCKERFILE, "tests/run.sh": f"{head}\n{setup}{rest}", "info.json": _json(grading)}


def classroom_kit(language: str) -> dict[str, str]:
    """A workflow: docs.github.com/en/education, "Use autograding"."""
    return {".github/workflows/classroom.yml": WORKFLOW.format(language=language)}


def nbgrader_kit(language: str) -> dict[str, str]:
    """A notebook with an autograded cell: nbgrader.readthedocs.io, "Metadata" (schema 3), "partial credit". The stub
    that replaces the solution is a comment of CUDA C."""

    def code(source: str, grade_id: str, **more: Any) -> dict[str, Any]:
        about = {"schema_version": 3, "task": False, "grade": False, "grade_id": grade_id, "solution": False, **more}
        made: dict[str, Any] = {"cell_type": "code", "execution_count": None, "outputs": [], "source": source}
        return {**made, "metadata": {"nbgrader": {"locked": not about["solution"], **about}}}

    start = f"%%tilewise --grade assignment.toml --lang {language}\n// BEGIN SOLUTION\n// END SOLUTION\n"
    cells = [
        code("import tilewise.teaching.course.magic", "load"),
        code(start, "kernel", solution=True),
        code("marks.points", "marks", grade=True, points=0),
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 4}
    config = 'c = get_config()\nc.ClearSolutions.code_stub = {"python": "// YOUR CODE HERE"}\n'
    return {"assignment.ipynb": _json(notebook), "nbgrader_config.py": config}


# the function that makes a platform's files, and the folders of the assignment and of the wheel
KITS: Mapping[str, tuple[Callable[[str], dict[str, str]], str, str]] = {
    "gradescope": (gradescope_kit, "", ""),
    "prairielearn": (prairielearn_kit, "tests/", "grader/"),
    "classroom": (classroom_kit, ".github/classroom/", ".github/classroom/"),
    "nbgrader": (nbgrader_kit, "", ""),
}


def kit(platform: str, assignment_file: Path, wheel: Path | None, language: str) -> bytes:
    """A zip with the platform's files, the assignment with everything beside it, and the wheel."""
    make, folder, wheels = KITS[platform]
    from tilewise.teaching.course.assignment import read_assignment

    assignment = read_assignment(assignment_file)
    named = [*assignment.provided, assignment.reference]
    for test in assignment.tests:
        named += [*test.inputs, test.stdin_file, test.expected_file, test.reference, test.property]
    files: dict[str, bytes] = {f"{folder}assignment.toml": assignment_file.read_bytes()}
    for name in {one.partition(":")[0] for one in named if one}:
        if (assignment.folder / name).is_file():
            files[f"{folder}{name}"] = (assignment.folder / name).read_bytes()
    for name, text in make(language).items():
        if name.endswith(".ipynb"):
            text = text.replace('"points": 0', f'"points": {assignment.most:g}')
        files[name] = text.encode()
    if wheel is not None:
        files[f"{wheels}{wheel.name}"] = wheel.read_bytes()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(files.items()):
            info = zipfile.ZipInfo(name)
            info.external_attr = (0o100755 if data.startswith(b"#!") else 0o100644) << 16
            archive.writestr(info, data, zipfile.ZIP_DEFLATED)
    return out.getvalue()
