"""The exercises: a starter that fails, a solution that passes, hints by what was found; and the learner's progress.

Each is a folder with exercise.toml (texts in every language), assignment.toml, starter.cu and solution.cu.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from tilewise.errors import FileError, UsageError
from tilewise.teaching.course.assignment import Assignment, read_assignment
from tilewise.teaching.course.grading import LIMITS, Grade, grade_text
from tilewise.teaching.page.export import write

PROGRESS = ".tilewise-learn.json"
SEED_SPACE = 2**31
PATIENT = replace(LIMITS, seconds=10.0)  # one file, graded while its author waits


@dataclass(frozen=True)
class Exercise:
    name: str  # 06-wait-for-the-tile
    folder: Path
    titles: dict[str, str]
    texts: dict[str, str]
    hints: dict[str, dict[str, str]]  # by kind of finding, or by an item of the assignment; then by language

    @property
    def number(self) -> int:
        return int(self.name.partition("-")[0])

    @property
    def file_name(self) -> str:
        return f"{self.name}.cu"

    @property
    def starter(self) -> str:
        return (self.folder / "starter.cu").read_text(encoding="utf-8")

    @property
    def solution(self) -> str:
        return (self.folder / "solution.cu").read_text(encoding="utf-8")

    @property
    def assignment(self) -> Assignment:
        return read_assignment(self.folder / "assignment.toml")

    def grade(self, text: str, seed: int) -> Grade:
        return grade_text(text, self.assignment, seed, self.name, self.file_name, PATIENT)

    def hints_for(self, grade: Grade, language: str) -> list[str]:
        """The hints about what this attempt shows, in the order in which the exercise gives them."""
        shown = {found.kind for found in grade.found} | {item.name for item in grade.items if item.points < item.most}
        return [texts[language] for kind, texts in self.hints.items() if kind in shown]


def folder_of_exercises() -> Path:
    """Inside the package where it was installed; docs/exercises in a checkout."""
    inside = Path(__file__).parent / "exercises"
    beside = Path(__file__).parents[4] / "docs" / "exercises"
    for folder in (inside, beside):
        if folder.is_dir():
            return folder
    raise FileError(f"the exercises are not there: neither {inside} nor {beside}")


@lru_cache(maxsize=1)
def exercises() -> tuple[Exercise, ...]:
    out = []
    for file in sorted(folder_of_exercises().glob("*/exercise.toml")):
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        out.append(Exercise(file.parent.name, file.parent, table["title"], table["text"], table["hints"]))
    return tuple(out)


def find_exercise(given: str) -> Exercise:
    """By its number or by its name."""
    for one in exercises():
        if given in (one.name, str(one.number), f"{one.number:02d}"):
            return one
    names = ", ".join(f"{one.number} ({one.name.partition('-')[2]})" for one in exercises())
    raise UsageError(f"there is no exercise {given!r}; there are {names}")


class Progress:
    """Which exercises are solved, remembered in a small file beside the attempts."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / PROGRESS
        try:
            known = json.loads(self.file.read_text(encoding="utf-8"))
            self.solved: set[str] = set(known["solved"]) & {one.name for one in exercises()}
        except (OSError, ValueError, KeyError, TypeError):
            self.solved = set()

    def solve(self, exercise: Exercise) -> None:
        self.solved.add(exercise.name)
        write(self.file, json.dumps({"schema": 1, "solved": sorted(self.solved)}) + "\n")

    @property
    def next(self) -> Exercise | None:
        return next((one for one in exercises() if one.name not in self.solved), None)
