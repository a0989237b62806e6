"""`tilewise grade`: submissions graded by an assignment; a table, CSV, HTML, JUnit, SARIF, JSON, annotations."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from tilewise.cli.terminal import plain, report_options


@click.command("grade")
@click.argument("files", nargs=-1, required=True, metavar="DIR|FILES…")
@click.option("--assignment", "assignment_file", type=click.Path(path_type=Path), help="TOML file of rules and points.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file instead of stdout.")
@click.option("--html", "html_folder", type=click.Path(path_type=Path), help="Folder for a summary and a page each.")
@click.option("-j", "--jobs", type=click.IntRange(1, 256), help="Worker processes; by default one per core.")
@click.option("--seconds", type=click.FloatRange(0.1), default=2.0, show_default=True, help="Time limit of a file.")
@click.option("--seed", type=click.IntRange(0), help="Seed of the random operands; by default a new one.")
@click.option("--unsafe", is_flag=True, help="Run a submission's main even where the system has no sandbox for it.")
@click.option("--feedback", type=click.Path(path_type=Path), help="Write a zip of a page per student for Moodle.")
@click.option(
    "--kit",
    type=click.Choice(["gradescope", "prairielearn", "classroom", "nbgrader"]),
    help="Write the platform's files and the assignment as a zip to -o; FILES is then a wheel, or - for none.",
)
@report_options(
    "table", "csv", "json", "junit", "sarif", "github", "gradescope", "prairielearn", "moodle", "canvas", "classroom"
)
def command(
    files: tuple[str, ...], assignment_file: Path | None, form: str, output: Path | None, html_folder: Path | None,
    jobs: int | None, seconds: float, seed: int | None, unsafe: bool, feedback: Path | None, kit: str | None,
    language: str,
) -> int:  # fmt: skip
    """Grade files, folders, archives, patterns or - (standard input) with no GPU; exit 1 unless all have full points.

    Points come from P in device memory after the kernel ran on random data that the grader drew, and from what the
    program prints or writes in the assignment's tests. All files of one student are one submission, graded in a
    worker process that is replaced when it crashes or takes too long.
    """
    import secrets
    from dataclasses import replace

    from tilewise.cli.output import progress, remark
    from tilewise.teaching.course.assignment import Assignment, read_assignment
    from tilewise.teaching.course.submissions import collect
    from tilewise.teaching.course.workers import grade_all

    if kit:
        _kit(kit, files[0], assignment_file, output, language)
        return 0
    assignment = replace(read_assignment(assignment_file) if assignment_file else Assignment(), unsafe=unsafe)
    submissions = collect(files)
    seed = secrets.randbelow(2**31) if seed is None else seed
    bar, task = progress(len(submissions), "grading")
    with bar:
        grades = grade_all(
            submissions, assignment, seed, jobs or os.cpu_count() or 1, seconds, lambda grade: bar.advance(task)
        )
    remark(f"seed {seed}")
    if html_folder:
        from tilewise.teaching.course.summary_page import save_summary

        remark(f"written: {save_summary(grades, assignment, html_folder, language)}")
    if feedback:
        from tilewise.teaching.course.summary_page import save_feedback

        save_feedback(grades, assignment, feedback, language)
        remark(f"written: {feedback}")
    _print(form, grades, assignment, seed, language, output)
    return 0 if all(grade.full for grade in grades) else 1


def _print(form: str, grades: Any, assignment: Any, seed: int, language: str, output: Path | None) -> None:
    from tilewise.system.output import write_whole
    from tilewise.teaching.course.exports import FORMATS

    if form == "table" and output is None:
        _table(grades, assignment, language)
        return
    made = FORMATS["csv" if form == "table" else form](grades, assignment, language, seed)
    if output:
        write_whole(output, made)
    else:  # names and lines are untrusted: escaped on a terminal, unchanged for a program
        sys.stdout.write(plain(made.replace("\r\n", "\n")) if sys.stdout.isatty() else made)


def _kit(platform: str, wheel: str, assignment_file: Path | None, output: Path | None, language: str) -> None:
    from tilewise.errors import UsageError
    from tilewise.system.output import write_whole
    from tilewise.teaching.course.exports import kit

    if assignment_file is None or output is None:
        raise UsageError("--kit needs --assignment FILE.toml and -o FILE.zip")
    if wheel != "-" and not wheel.endswith(".whl"):
        raise UsageError(f"--kit takes a wheel of tilewise, or - for none, not {wheel}")
    write_whole(output, kit(platform, assignment_file, None if wheel == "-" else Path(wheel), language))


def _table(grades: Any, assignment: Any, language: str) -> None:
    from rich.table import Table
    from rich.text import Text

    from tilewise.cli.output import console
    from tilewise.i18n.messages import say
    from tilewise.teaching.course.reports import item_name, number, sentence

    table = Table(title=Text(plain(assignment.title)), title_justify="left", header_style="bold")
    table.add_column(say(language, "grade.name"), overflow="fold")
    table.add_column(say(language, "grade.points"), justify="right", no_wrap=True)
    for key in assignment.items:
        table.add_column(item_name(key, assignment, language), justify="right", no_wrap=True)
    table.add_column(say(language, "grade.why"), overflow="fold", ratio=1)
    for grade in grades:
        why = list(dict.fromkeys(sentence(item, grade, language) for item in grade.items if item.why))
        cells = [number(item.points) for item in grade.items]
        points = Text(f"{number(grade.points)}/{number(grade.most)}", style="green" if grade.full else "red")
        table.add_row(Text(plain(grade.name)), points, *cells, Text(plain("\n".join(why))))
    console().print(table)
