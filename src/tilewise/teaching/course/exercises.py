"""Exercises: a starter that fails, a solution that passes, hints by finding; and the learner's progress.

Each is a folder with exercise.toml (texts in one or more languages), assignment.toml, starter.cu and solution.cu. A
course's own are read from a folder or an archive, and made and checked by `tilewise exercise`.
"""

from __future__ import annotations

import atexit
import json
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from tilewise.errors import FileError, UsageError
from tilewise.i18n.messages import LANGUAGES
from tilewise.system.output import write_whole
from tilewise.teaching.course.assignment import Assignment, in_language, read_assignment, read_table
from tilewise.teaching.course.grading import LIMITS, Grade, grade_text
from tilewise.teaching.course.hints import CHANGE, Hint, hints_of
from tilewise.teaching.course.submissions import ARCHIVES, unpacked

PROGRESS = ".tilewise-learn.json"
SEED_SPACE = 2**31
PATIENT = replace(LIMITS, seconds=10.0)  # one file, graded while its author waits
BEGIN, END = "// BEGIN SOLUTION", "// END SOLUTION"


@dataclass(frozen=True)
class Exercise:
    name: str  # 06-wait-for-the-tile
    folder: Path
    titles: Mapping[str, str]
    texts: Mapping[str, str]
    hints: Mapping[str, Mapping[str, str]]  # by cause, kind of finding or item of the assignment; then by language

    @property
    def number(self) -> int:
        digits = re.match(r"\d+", self.name)
        return int(digits[0]) if digits else 0

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

    def hints_for(self, grade: Grade, language: str, step: int = CHANGE) -> list[Hint]:
        """The hints for the findings of this attempt, up to this step."""
        return hints_of(grade, self.hints, language, step)


def folder_of_exercises() -> Path:
    """The folder of our exercises: in an installed package inside it, in a checkout docs/exercises."""
    inside = Path(__file__).parent / "exercises"
    beside = Path(__file__).parents[4] / "docs" / "exercises"
    for folder in (inside, beside):
        if folder.is_dir():
            return folder
    raise FileError(f"the exercises are not there: neither {inside} nor {beside}")


@lru_cache(maxsize=4)
def exercises(source: Path | None = None) -> tuple[Exercise, ...]:
    """Our exercises, or those in a folder, a .zip or a .tar; the folder may be a single exercise."""
    folder = folder_of_exercises() if source is None else _opened(source)
    files = sorted(folder.glob("**/exercise.toml"))
    if not files:
        raise UsageError(f"{source}: there is no exercise.toml in it; tilewise exercise new makes one")
    return tuple(read_exercise(file.parent) for file in files)


def read_exercise(folder: Path) -> Exercise:
    table = read_table(folder / "exercise.toml")
    for name in ("assignment.toml", "starter.cu", "solution.cu"):
        if not (folder / name).is_file():
            raise UsageError(f"{folder}: an exercise has {name} beside exercise.toml")
    hints = table.get("hints", {})
    if not isinstance(hints, dict) or not all(isinstance(one, dict | str) for one in hints.values()):
        raise UsageError(f"{folder / 'exercise.toml'}: [hints.KIND] has a text for each language")
    own = {key: in_all(text, folder) for key, text in hints.items()}
    return Exercise(folder.name, folder, in_all(table.get("title"), folder), in_all(table.get("text"), folder), own)


def in_all(text: Any, folder: Path) -> dict[str, str]:
    """A text for every language, from those that the course has."""
    texts = {"en": text} if isinstance(text, str) else text
    if not isinstance(texts, dict) or not texts or not all(isinstance(one, str) for one in texts.values()):
        raise UsageError(f"{folder / 'exercise.toml'}: title and text must be texts, or a table such as {{ en = … }}")
    return {language: in_language(texts, language) for language in LANGUAGES}


def _opened(source: Path) -> Path:
    if source.is_dir():
        return source
    if not source.name.endswith(ARCHIVES) or not source.is_file():
        raise UsageError(f"{source}: exercises come from a folder, a .zip or a .tar")
    folder = Path(tempfile.mkdtemp(prefix="tilewise-exercises-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name, data in unpacked(source.read_bytes()).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def find_exercise(given: str, source: Path | None = None) -> Exercise:
    """The exercise with this number or name."""
    for one in exercises(source):
        if given in (one.name, str(one.number), f"{one.number:02d}"):
            return one
    names = ", ".join(f"{one.number} ({one.name.partition('-')[2]})" for one in exercises(source))
    raise UsageError(f"there is no exercise {given!r}; there are {names}")


# -- making an exercise


def new_exercise(folder: Path, solution: str, title: str, text: str, points: str) -> Exercise:
    """Write its files; the starter is the solution without what is between // BEGIN SOLUTION and // END SOLUTION."""
    if BEGIN not in solution or END not in solution:
        raise UsageError(f"the solution has no part between {BEGIN} and {END}, which the starter would leave out")
    if (folder / "exercise.toml").exists():
        raise UsageError(f"{folder}: there is an exercise already")
    folder.mkdir(parents=True, exist_ok=True)
    starter = re.sub(rf"([ \t]*){BEGIN}[^\n]*\n.*?{END}[^\n]*", r"\1// TODO", solution, flags=re.DOTALL)
    whole = re.sub(rf"[ \t]*(?:{BEGIN}|{END})[^\n]*\n", "", solution)
    texts = {"title": title, "text": text}
    for name, content in {
        "starter.cu": starter, "solution.cu": whole, "assignment.toml": points,
        "exercise.toml": "".join(f"{k} = {json.dumps(v, ensure_ascii=False)}\n" for k, v in texts.items()),
    }.items():  # fmt: skip
        write_whole(folder / name, content)
    return read_exercise(folder)


def problems_of(one: Exercise, seed: int) -> list[str]:
    """Problems of an exercise: the solution must pass, the starter fail, and each hint match one of its findings."""
    begun, done = one.grade(one.starter, seed), one.grade(one.solution, seed)
    out = []
    if not done.full:
        why = done.trouble or ", ".join(item.name for item in done.items if item.points < item.most)
        out.append(f"the solution has {done.points:g} of {done.most:g} points: {why}")
    if begun.full:
        out.append("the starter has all points already")
    shown = {f.cause for f in begun.found} | {f.kind for f in begun.found}
    shown |= {item.name for item in begun.items if item.points < item.most}
    out += [f"the hint {key} is about nothing that the starter shows" for key in one.hints if key not in shown]
    return out


class Progress:
    """The solved exercises and the last hint steps, in a file beside the attempts."""

    def __init__(self, folder: Path, source: Path | None = None) -> None:
        self.file, self.source = folder / PROGRESS, source
        self.steps: dict[str, tuple[str, int]] = {}  # by exercise: the causes of the last attempt, and the step
        try:
            known = json.loads(self.file.read_text(encoding="utf-8"))
            self.solved: set[str] = set(known["solved"])
            self.steps = {str(k): (str(v[0]), int(v[1])) for k, v in known.get("hints", {}).items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError):
            self.solved = set()

    def step(self, exercise: Exercise, grade: Grade) -> int:
        """The next hint step: incremented if an attempt has the same causes as the one before, else 1."""
        shown = " ".join(sorted({f.cause for f in grade.found})) or grade.status
        before, step = self.steps.get(exercise.name, ("", 0))
        self.steps[exercise.name] = (shown, min(CHANGE, step + 1) if shown == before else 1)
        self._write()
        return self.steps[exercise.name][1]

    def solve(self, exercise: Exercise) -> None:
        self.solved.add(exercise.name)
        self.steps.pop(exercise.name, None)
        self._write()

    def _write(self) -> None:
        write_whole(self.file, json.dumps({"schema": 1, "solved": sorted(self.solved), "hints": self.steps}) + "\n")

    @property
    def done(self) -> int:
        return len(self.solved & {one.name for one in exercises(self.source)})

    @property
    def next(self) -> Exercise | None:
        return next((one for one in exercises(self.source) if one.name not in self.solved), None)
