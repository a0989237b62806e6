"""Grades one submission: each item of the assignment is a function of its runs (`evidence`).

Points for a product come from P in device memory after the student's kernel ran on random data of the grader; points
for a test from the program's output. A program's messages about itself can only lower its points."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import PurePath
from typing import Any

import numpy as np

from tilewise.emulator.check.binding import operands
from tilewise.emulator.limits import DEFAULT, Limits
from tilewise.emulator.machine.findings import Kind
from tilewise.emulator.prove.prove import Verdict
from tilewise.errors import KernelError, LimitError, TilewiseError
from tilewise.i18n.messages import LANGUAGES
from tilewise.teaching.course.assignment import KINDS, Assignment, in_language
from tilewise.teaching.course.comparing import expected, judge_run, wrong_cells
from tilewise.teaching.course.evidence import GRADED, REFUSED, STOPPED, UNREAD, Evidence, Found
from tilewise.teaching.course.submissions import COMMENT, Submission
from tilewise.teaching.trace import Run

LIMITS = replace(DEFAULT, seconds=1.5, memory=256 << 20, printf=20, tokens=200_000)


@dataclass(frozen=True)
class Item:
    """The points of one item, and the key and values of the message that explains missing ones."""

    name: str
    points: float
    most: float
    why: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Grade:
    name: str
    file: str
    status: str
    items: tuple[Item, ...] = ()
    found: tuple[Found, ...] = ()
    trouble: str = ""  # why it could not be graded: the emulator's message
    line: int = 0
    seconds: float = 0.0
    sources: Mapping[str, str] = field(default_factory=dict)  # by their paths within the submission
    id: str = ""
    root: str = ""

    @property
    def points(self) -> float:
        return sum(item.points for item in self.items)

    @property
    def most(self) -> float:
        return sum(item.most for item in self.items)

    @property
    def full(self) -> bool:
        return self.points >= self.most - 1e-9

    def path(self, file: str) -> str:
        """The path of a file of the submission."""
        return (PurePath(self.root) / file).as_posix() if self.root and file else self.file

    def to_json(self) -> dict[str, Any]:
        made = asdict(self)
        del made["sources"]
        for found in made["found"]:
            found["told"] = found.pop("messages")
        return {**made, "points": self.points, "most": self.most}


def ungraded(submission: Submission, assignment: Assignment, status: str, trouble: str, line: int = 0) -> Grade:
    """A grade without points, for a submission that was not read, accepted or finished."""
    items = tuple(Item(key, 0.0, most, f"grade.{status}") for key, most in assignment.items.items())
    one = submission
    return Grade(one.name, one.file, status, items, (), trouble, line, sources=one.texts, id=one.id, root=one.root)


def grade_text(
    text: str, assignment: Assignment, seed: int, name: str = "", file: str = "", limits: Limits = LIMITS
) -> Grade:
    """The grade of one file's text."""
    inside = re.split(r"[\\/]", file)[-1] if file not in ("", "-", "cell") else "program.cu"
    return grade(Submission(name, file, {inside: text.encode()}), assignment, seed, limits)


def grade(submission: Submission, assignment: Assignment, seed: int, limits: Limits = LIMITS) -> Grade:
    started = time.perf_counter()
    made = _grade(submission, assignment, seed, limits)
    return replace(made, seconds=round(time.perf_counter() - started, 4))


def _grade(submission: Submission, assignment: Assignment, seed: int, limits: Limits) -> Grade:
    if submission.trouble:
        return ungraded(submission, assignment, UNREAD, submission.trouble)
    evidence = Evidence(submission, assignment, seed, limits)
    try:
        refused = evidence.refusal()
        if refused:
            return ungraded(submission, assignment, *refused)
        items = [_item(evidence, key, most) for key, most in assignment.items.items()]
    except LimitError as error:
        return ungraded(submission, assignment, STOPPED, str(error))
    except KernelError as error:
        file = evidence.shown(evidence.inside(error.file))
        return replace(ungraded(submission, assignment, REFUSED, error.message, error.line), file=file)
    except TilewiseError as error:
        return ungraded(submission, assignment, REFUSED, str(error))
    one = submission
    return Grade(
        one.name, one.file, GRADED, tuple(items), evidence.found(), sources=evidence.texts, id=one.id, root=one.root
    )


# -- the items: each (evidence, most points) -> Item


def _item(evidence: Evidence, key: str, most: float) -> Item:
    if key in KINDS:
        return _of_kind(evidence, most, key)
    if key in ITEMS:
        return ITEMS[key](evidence, most)
    return _of_test(evidence, most, key)


def _parses(evidence: Evidence, most: float) -> Item:
    assert evidence.kernels or not evidence.assignment.has_roles
    return Item("parses", most, most)


def _product(evidence: Evidence, most: float) -> Item:
    """An equal share for each size at which P is right; no points if the program's own launch fails."""
    assignment = evidence.assignment
    failing = [f for outcome in evidence.own_runs for f in outcome.report.faults if f.kind is Kind.LAUNCH]
    if failing:
        return Item("product", 0.0, most, "grade.product.launch", {"line": failing[0].line})
    right, wrong = 0, None
    for shape in assignment.shapes:
        run = next((r for r in evidence.kernels if r.shape == shape), None)
        cells = _wrong(assignment, run, evidence.seed) if run is not None else None
        if cells is not None and not cells.any():
            right += 1
        elif wrong is None:
            wrong = {"shape": "x".join(map(str, shape)), "count": int(cells.sum()) if cells is not None else "–"}
    points = most * right / len(assignment.shapes)
    return Item("product", points, most, "grade.product" if wrong else "", wrong or {})


def _wrong(assignment: Assignment, run: Run, seed: int) -> np.ndarray | None:
    """The cells of P in device memory that differ from the reference, whose operands are drawn again from the seed."""
    have = run.arrays.get("P")
    if have is None or run.shape is None or "M" not in run.arrays:
        return None
    one, two = operands(run.shape, run.arrays["M"].dtype, 1, seed)
    return wrong_cells(np.asarray(have), expected(assignment, run.shape, one, two, seed))


def _faults(evidence: Evidence, most: float) -> Item:
    """No fault in the kernels with roles or, if there are none, in the program's runs. Kinds with points of their own
    are not counted."""
    found = [f for run in evidence.kernels for f in run.faults if f.kind is not Kind.WRONG_PRODUCT]
    for outcome in evidence.own_runs:
        found += [f for f in outcome.report.faults if f.kind is Kind.LAUNCH or not evidence.assignment.has_roles]
    kinds = [str(f.kind) for f in found if str(f.kind) not in evidence.assignment.points]
    if not kinds:
        return Item("faults", most, most)
    return Item("faults", 0.0, most, "grade.faults", {"kinds": list(dict.fromkeys(kinds))})


def _of_kind(evidence: Evidence, most: float, kind: str) -> Item:
    """No finding of one kind, a fault or a cost."""
    lines = [line for f, _, line in evidence.findings() if str(f.kind) == kind]
    if not lines:
        return Item(kind, most, most)
    return Item(kind, 0.0, most, "grade.kind", {"kinds": [kind], "line": lines[0]})


def _traffic(evidence: Evidence, most: float) -> Item:
    """Whether M and N are loaded no more often than with tiles of that width in shared memory."""
    for run in evidence.kernels:
        if run.shape is None:
            continue
        m, k, n = run.shape
        tile = evidence.assignment.tiles_of or evidence.assignment.tile or run.tile or 1
        needed = m * k * -(-n // tile) + k * n * -(-m // tile)
        loads = _loads(run)
        if not run.counters.get("uses") or loads > needed:
            values = {"shape": f"{m}x{k}x{n}", "loads": loads, "needed": needed, "tile": tile}
            return Item("traffic", 0.0, most, "grade.traffic", values)
    item = _product(evidence, most)  # a kernel that loads nothing has little traffic, but a wrong P
    return replace(item, name="traffic", why="grade.traffic.wrong" if item.why == "grade.product" else item.why)


def _proof(evidence: Evidence, most: float) -> Item:
    """Every property of the kernel is proved for every size."""
    short = [a for a in evidence.proof().answers if a.verdict is not Verdict.PROVED]
    if not short:
        return Item("proof", most, most)
    refuted = next((a for a in short if a.witness is not None), short[0])
    reason = refuted.witness.finding.message if refuted.witness is not None else refuted.reason
    return Item("proof", 0.0, most, "grade.proof", {"line": refuted.line, "reason": reason})


def _loads(run: Run) -> int:
    """Loads of M and N from global memory."""
    names = [match[1] for line in run.binding if (match := re.match(r"(\w+): [MN],", line))]
    return sum(run.counters.get(f"loads of {name}", 0) for name in names)


def _program(evidence: Evidence, most: float) -> Item:
    """Every run ends with status 0, and nothing is wrong on the host or in its launches."""
    for test in evidence.assignment.runs:
        outcome = evidence.outcomes.get(test.name)
        if outcome is None:
            continue
        kinds = list(dict.fromkeys(str(f.kind) for f in outcome.report.faults))
        if kinds:
            return Item("program", 0.0, most, "grade.program.faults", {"kinds": kinds})
        if not outcome.report.ok or outcome.report.status != test.status:
            values = {"status": outcome.report.status, "message": outcome.report.message.split("\n")[0]}
            return Item("program", 0.0, most, "grade.program.ended", values)
    return Item("program", most, most)


def _kernels(evidence: Evidence, most: float) -> Item:
    """Every run launches the kernels that the assignment names, or any if it names none."""
    for outcome in evidence.outcomes.values():
        launched = {
            str(launch.get("kernel", "")).partition("<")[0].rpartition("::")[2] for launch in outcome.report.launches
        }
        missing = [name for name in evidence.assignment.kernels if name not in launched]
        if missing or not launched:
            return Item("kernels", 0.0, most, "grade.kernels", {"names": ", ".join(missing) or "__global__"})
    return Item("kernels", most, most)


def _calls(evidence: Evidence, most: float) -> Item:
    code = COMMENT.sub(" ", "\n".join(evidence.texts.values()))

    def called(name: str) -> bool:
        return re.search(rf"\b{re.escape(name)}\s*[(<]", code) is not None

    used = [name for name in evidence.assignment.forbidden if called(name)]
    if used:
        return Item("calls", 0.0, most, "grade.calls", {"names": ", ".join(used)})
    missing = [name for name in evidence.assignment.required if not called(name)]
    if missing:
        return Item("calls", 0.0, most, "grade.calls.missing", {"names": ", ".join(missing)})
    return Item("calls", most, most)


def _of_test(evidence: Evidence, most: float, name: str) -> Item:
    test = next(t for t in evidence.assignment.tests if t.name == name)
    verdict = judge_run(evidence.outcomes[name], test, evidence.assignment, evidence.seed)
    why, values = verdict.why, dict(verdict.values)
    if why and test.message:
        why, values = "grade.property", {"texts": {code: in_language(test.message, code) for code in LANGUAGES}}
    return Item(name, most * verdict.share, most, why, values)


ITEMS: Mapping[str, Callable[[Evidence, float], Item]] = {
    "parses": _parses, "product": _product, "faults": _faults, "traffic": _traffic, "proof": _proof, "calls": _calls,
    "program": _program, "kernels": _kernels,
}  # fmt: skip
