"""Grades one submission. Points come from P in device memory after the student's kernel ran on random data of the
grader; what the program prints or computes on the host does not count."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from tilewise.emulator.check.binding import operands
from tilewise.emulator.limits import DEFAULT, Limits
from tilewise.emulator.machine.findings import Finding, Kind
from tilewise.errors import KernelError, LimitError, TilewiseError
from tilewise.i18n.messages import LANGUAGES
from tilewise.teaching.course.assignment import Assignment
from tilewise.teaching.course.reference import expected, wrong_cells
from tilewise.teaching.course.whole_program import run_whole
from tilewise.teaching.trace import CheckReport, Run, check
from tilewise.teaching.trace.findings_text import message_of
from tilewise.teaching.trace.grouping import same_place

MOST_BYTES = 1_000_000  # of a submission
LIMITS = replace(DEFAULT, seconds=1.5, memory=256 << 20, printf=20, tokens=200_000)
GRADED, REFUSED, STOPPED, CRASHED, LATE, UNREAD = "graded", "refused", "stopped", "crashed", "late", "unread"


@dataclass(frozen=True)
class Item:
    """Points for one thing, and why not all of them: the key of a message, with its values."""

    name: str
    points: float
    most: float
    why: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """A finding as reports show it."""

    kind: str
    line: int
    column: int
    text: str
    hint: str
    message: str
    messages: Mapping[str, str] = field(default_factory=dict)  # `message` in every language


@dataclass(frozen=True)
class Grade:
    name: str
    file: str
    status: str
    items: tuple[Item, ...] = ()
    found: tuple[Found, ...] = ()
    trouble: str = ""  # why it could not be graded: the emulator's sentence
    line: int = 0
    seconds: float = 0.0
    source: str = ""

    @property
    def points(self) -> float:
        return sum(item.points for item in self.items)

    @property
    def most(self) -> float:
        return sum(item.most for item in self.items)

    @property
    def full(self) -> bool:
        return self.points >= self.most - 1e-9

    def to_json(self) -> dict[str, Any]:
        made = asdict(self)
        del made["source"]
        for found in made["found"]:
            found["told"] = found.pop("messages")
        return {**made, "points": self.points, "most": self.most}


def nothing(name: str, file: str, assignment: Assignment, status: str, trouble: str, **more: Any) -> Grade:
    """No points, and why: a file that was not read, not accepted, or not finished."""
    items = tuple(Item(key, 0.0, most, f"grade.{status}") for key, most in assignment.points.items())
    return Grade(name, file, status, items, trouble=trouble, **more)


def grade_text(
    text: str, assignment: Assignment, seed: int, name: str = "", file: str = "", limits: Limits = LIMITS
) -> Grade:
    started = time.perf_counter()
    made = _grade(text, assignment, seed, name, file, limits)
    return replace(made, seconds=round(time.perf_counter() - started, 4), source=text)


def _grade(text: str, assignment: Assignment, seed: int, name: str, file: str, limits: Limits) -> Grade:
    if "__global__" not in text:
        return nothing(name, file, assignment, REFUSED, "there is no __global__ function in it")
    try:
        report = check(
            text, shape=list(assignment.shapes), tile=assignment.tile, entry=assignment.kernel, seed=seed,
            block=assignment.block, grid=assignment.grid, defines=assignment.defines or None, limits=limits,
            adversarial=False,  # shadow memory finds races in one run, and a class is large
            semiring=assignment.reference if _over_semiring(assignment) else "plus_times",
        )  # fmt: skip
    except LimitError as error:
        return nothing(name, file, assignment, STOPPED, str(error))
    except KernelError as error:
        return nothing(name, file, assignment, REFUSED, error.message, line=error.line)
    except TilewiseError as error:
        return nothing(name, file, assignment, REFUSED, str(error))
    runs = _of_one_kernel(report)
    graders = {"parses": _parses, "product": _product, "faults": _faults, "traffic": _traffic, "calls": _calls}
    found = _found(assignment, report)
    items = []
    for key, most in assignment.points.items():
        if key == "program":
            item, more = _program(assignment, most, text, file)
            found += tuple(one for one in more if (one.kind, one.line) not in {(f.kind, f.line) for f in found})
            items.append(item)
        else:
            items.append(graders[key](assignment, most, runs, text, seed))
    return Grade(name, file, GRADED, tuple(items), found)


def _over_semiring(assignment: Assignment) -> bool:
    return not assignment.reference.partition(":")[0].endswith((".py", ".cu"))


def _of_one_kernel(report: CheckReport) -> list[Run]:
    """The runs of one kernel: the first that multiplies through shared memory, else the first."""
    entries = dict.fromkeys(run.entry for run in report.runs)
    shared = [e for e in entries if any(r.entry == e and r.counters.get("uses") for r in report.runs)]
    chosen = (shared or list(entries))[0]
    return [run for run in report.runs if run.entry == chosen]


def _found(assignment: Assignment, report: CheckReport) -> tuple[Found, ...]:
    out = []
    for seen in same_place(report.runs):
        f = seen.finding
        if f.kind is Kind.WRONG_PRODUCT and not _over_semiring(assignment):
            continue
        out.append(_found_one(f))
    return tuple(out)


def _found_one(f: Finding) -> Found:
    text = f.place.text if f.place else ""
    column = f.place.column if f.place else 0
    sentences = {language: message_of(f, language) for language in LANGUAGES}
    return Found(str(f.kind), f.line, column, text, f.hint, f.message, sentences)


# -- the items: each (assignment, most points, runs, text, seed) -> Item


def _parses(assignment: Assignment, most: float, runs: list[Run], text: str, seed: int) -> Item:
    return Item("parses", most, most)


def _product(assignment: Assignment, most: float, runs: list[Run], text: str, seed: int) -> Item:
    """An equal share for each size at which P is right."""
    right, wrong = 0, None
    for shape in assignment.shapes:
        run = next((r for r in runs if r.shape == shape), None)
        cells = _wrong(assignment, run, seed) if run is not None else None
        if cells is not None and not cells.any():
            right += 1
        elif wrong is None:
            wrong = {"shape": "x".join(map(str, shape)), "count": int(cells.sum()) if cells is not None else "–"}
    points = most * right / len(assignment.shapes)
    return Item("product", points, most, "grade.product" if wrong else "", wrong or {})


def _wrong(assignment: Assignment, run: Run, seed: int) -> np.ndarray | None:
    """The cells of P in device memory that differ from the reference; the operands are made again from the seed."""
    have = run.arrays.get("P")
    if have is None or run.shape is None or "M" not in run.arrays:
        return None
    one, two = operands(run.shape, run.arrays["M"].dtype, 1, seed)
    return wrong_cells(np.asarray(have), expected(assignment, run.shape, one, two, seed))


def _faults(assignment: Assignment, most: float, runs: list[Run], text: str, seed: int) -> Item:
    kinds = [str(f.kind) for run in runs for f in run.faults if f.kind is not Kind.WRONG_PRODUCT]
    if not kinds:
        return Item("faults", most, most)
    return Item("faults", 0.0, most, "grade.faults", {"kinds": list(dict.fromkeys(kinds))})


def _traffic(assignment: Assignment, most: float, runs: list[Run], text: str, seed: int) -> Item:
    """Whether M and N are loaded no more often than with tiles of that width in shared memory."""
    for run in runs:
        if run.shape is None:
            continue
        m, k, n = run.shape
        tile = assignment.tiles_of or assignment.tile or run.tile or 1
        needed = m * k * -(-n // tile) + k * n * -(-m // tile)
        loads = _loads(run)
        if not run.counters.get("uses") or loads > needed:
            values = {"shape": f"{m}x{k}x{n}", "loads": loads, "needed": needed, "tile": tile}
            return Item("traffic", 0.0, most, "grade.traffic", values)
    item = _product(assignment, most, runs, text, seed)  # a kernel that loads nothing has little traffic, too
    return replace(item, name="traffic", why=item.why and "grade.traffic.wrong")


def _loads(run: Run) -> int:
    """Loads of M and N from global memory."""
    names = [match[1] for line in run.binding if (match := re.match(r"(\w+): [MN],", line))]
    return sum(run.counters.get(f"loads of {name}", 0) for name in names)


def _program(assignment: Assignment, most: float, text: str, file: str) -> tuple[Item, tuple[Found, ...]]:
    """The whole program, main included: it ends with status 0, and nothing is wrong on the host or in its launches."""
    report = run_whole(text, assignment, file)
    found = tuple(_found_one(f) for f in report.faults)
    if report.ok and not report.status:
        return Item("program", most, most), found
    if found:
        kinds = list(dict.fromkeys(f.kind for f in found))
        return Item("program", 0.0, most, "grade.program.faults", {"kinds": kinds}), found
    values = {"status": report.status, "message": report.message.split("\n")[0]}
    return Item("program", 0.0, most, "grade.program.ended", values), found


def _calls(assignment: Assignment, most: float, runs: list[Run], text: str, seed: int) -> Item:
    code = re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"', " ", text, flags=re.S)
    used = [name for name in assignment.forbidden if re.search(rf"\b{re.escape(name)}\s*[(<]", code)]
    if not used:
        return Item("calls", most, most)
    return Item("calls", 0.0, most, "grade.calls", {"names": ", ".join(used)})
