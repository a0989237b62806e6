"""`%%tilewise`: a notebook cell of CUDA C, shown as the page or graded; importing this registers it with IPython.

%%tilewise --shape 4x4x4 --tile 2 --lang vi
%%tilewise --grade assignment.toml
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from tilewise.core.problem import parse_shape
from tilewise.errors import UsageError
from tilewise.i18n.messages import chosen_language
from tilewise.teaching.course.assignment import Assignment, read_assignment
from tilewise.teaching.course.grading import Grade, grade_text
from tilewise.teaching.course.reports import text_of
from tilewise.teaching.page.exploring import Page, explore


class Marks:
    """A grade with a notebook's repr."""

    def __init__(self, grade: Grade, assignment: Assignment, language: str) -> None:
        self.grade, self.assignment, self.language = grade, assignment, language

    @property
    def points(self) -> float:
        return self.grade.points

    def __repr__(self) -> str:
        points = f"{self.grade.points:g}/{self.grade.most:g}"
        return f"{points}\n{text_of(self.grade, self.assignment, self.language)}"


@click.command("%%tilewise")
@click.option("--shape", help="MxKxN.")
@click.option("--tile", type=int)
@click.option("--lang")
@click.option("--grade", "assignment", type=click.Path(path_type=Path))
@click.option("--seed", type=click.IntRange(0), default=0)
def _options(**given: Any) -> dict[str, Any]:
    return given


def tilewise(line: str, cell: str) -> Page | Marks:
    """The magic: the page of the cell's kernel, or its marks."""
    try:
        given = _options.main(shlex.split(line), standalone_mode=False)
    except click.ClickException as error:
        raise UsageError(f"%%tilewise {line}: {error.format_message()}") from None
    language = chosen_language(given["lang"])
    if given["assignment"]:
        assignment = read_assignment(given["assignment"])
        marks = Marks(grade_text(cell, assignment, given["seed"], "cell", "cell"), assignment, language)
        _keep(marks)
        return marks
    settings = {"shape": parse_shape(given["shape"]) if given["shape"] else None, "tile": given["tile"]}
    if "__global__" not in cell:
        raise UsageError("the cell has no __global__ function")
    return explore(cell, lang=language, **settings)


def _keep(marks: Marks) -> None:
    """Define `marks` in the notebook: nbgrader's autograded cell ends with `marks.points`, its partial credit."""
    if "IPython" in sys.modules and (shell := _shell()) is not None:
        shell.user_ns["marks"] = marks


def _shell() -> Any:
    from IPython import get_ipython  # type: ignore[import-not-found,unused-ignore]

    return get_ipython()


def register() -> bool:
    """Register with IPython; False without it."""
    if "IPython" not in sys.modules:
        return False
    shell = _shell()
    if shell is None:
        return False
    shell.register_magic_function(tilewise, "cell", "tilewise")
    return True


register()
