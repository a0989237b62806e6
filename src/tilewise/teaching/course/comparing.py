"""Expected results: P over a semiring or by the lecturer's function or kernel; a program's output by its test."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tilewise.errors import UsageError
from tilewise.teaching.course.assignment import Assignment, Shape, Test
from tilewise.teaching.course.programs import Outcome, run_test
from tilewise.teaching.course.submissions import decoded, has_main

TOLERANCE = {2: 2e-2, 4: 1e-4, 8: 1e-10}
LONG = 60  # characters of a token in a report


@dataclass(frozen=True)
class Verdict:
    """The right share, and the key and values of the message that explains the rest."""

    share: float
    why: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


RIGHT = Verdict(1.0)


def expected(assignment: Assignment, shape: Shape, M: np.ndarray, N: np.ndarray, seed: int) -> np.ndarray:
    """The expected P for operands that are the grader's copies, not those that the kernel may have overwritten."""
    file, _, name = assignment.reference.partition(":")
    if file.endswith(".py"):
        return np.asarray(function_of(assignment.folder / file, name)(M.copy(), N.copy()))
    if file.endswith(".cu"):
        return by_kernel(assignment, assignment.folder / file, shape, seed)
    if assignment.reference == "plus_times" and M.dtype.kind == "f":
        return np.asarray(M.astype(np.float64) @ N.astype(np.float64))
    from tilewise.algebra.builtin import find_semiring
    from tilewise.dispatch.product import matmul

    return np.asarray(matmul(M, N, semiring=find_semiring(assignment.reference), device="cpu"))


@lru_cache(maxsize=16)
def function_of(file: Path, name: str) -> Callable[..., Any]:
    found = runpy.run_path(str(file)).get(name)
    if not callable(found):
        raise UsageError(f"{file} has no function {name}")
    return found  # type: ignore[no-any-return]


def by_kernel(assignment: Assignment, file: Path, shape: Shape, seed: int) -> np.ndarray:
    from tilewise.teaching.trace import check

    run = check(file, shape=shape, tile=assignment.tile, seed=seed, adversarial=False).runs[0]
    if "P" not in run.arrays:
        raise UsageError(f"{file}: the reference kernel has no P")
    return run.arrays["P"].copy()


def wrong_cells(have: np.ndarray, want: np.ndarray, tolerance: float | None = None) -> np.ndarray:
    """A mask of the cells that differ from the expected ones; NaN is always wrong."""
    if have.shape != want.shape:
        return np.ones(have.shape, np.bool_)
    if have.dtype.kind in "iub" and not tolerance:
        return np.asarray(have != want.astype(have.dtype))
    near = TOLERANCE.get(have.dtype.itemsize, 1e-4) if tolerance is None else tolerance
    with np.errstate(all="ignore"):
        far = np.abs(have.astype(np.float64) - want) <= near * (1 + np.abs(want))
        return ~np.asarray((have == want) | far)


# -- a program's output


def inputs_of(test: Test, assignment: Assignment, seed: int) -> dict[str, bytes]:
    """The input files of a run, by name."""
    made: dict[str, bytes] = {}
    for given in test.inputs:
        file, _, name = given.partition(":")
        path = assignment.folder / file
        made |= function_of(path, name)(seed) if name else {path.name: path.read_bytes()}
    return made


def judge_run(outcome: Outcome, test: Test, assignment: Assignment, seed: int) -> Verdict:
    """Whether a run ended with the expected status and gave the expected output."""
    report = outcome.report
    if report.ended != "exit" or report.status != test.status:
        values = {"status": report.status, "message": report.message.split("\n")[0]}
        return Verdict(0.0, "grade.program.ended", values)
    if test.output and outcome.output is None:
        return Verdict(0.0, "grade.output.missing", {"file": test.output})
    if test.property:
        return _by_property(outcome, test, assignment)
    want = _wanted(test, assignment, seed)
    if want is None:
        return RIGHT
    have = outcome.output if test.output and outcome.output is not None else outcome.text.encode()
    if test.dtype:
        return _same_numbers(have, want, test)
    if test.output and not test.tolerance:
        return RIGHT if have == want else Verdict(0.0, "grade.output.bytes", {"file": test.output})
    return same_text(have.decode("utf-8", "replace"), want.decode("utf-8", "replace"), test)


def _wanted(test: Test, assignment: Assignment, seed: int) -> bytes | None:
    if test.expected is not None:
        return test.expected.replace("{seed}", str(seed)).encode()
    if test.expected_file:
        return (assignment.folder / test.expected_file).read_bytes()
    if not test.reference:
        return None
    run = replace(test, title="", message="")  # texts by language are no part of a run, and cannot be a cache's key
    return by_program(run, assignment.folder, assignment.provided, seed)


@lru_cache(maxsize=64)
def by_program(test: Test, folder: Path, provided: tuple[str, ...], seed: int) -> bytes:
    """The output of the lecturer's program with the same input; with the provided main if it has none."""
    path = folder / test.reference
    own = Assignment(folder=folder, seconds=60.0, unsafe=True)
    files = {p.name: p.read_bytes() for p in folder.iterdir() if p.suffix in (".h", ".cuh", ".hpp") and p.is_file()}
    files |= {path.name: path.read_bytes()}
    if not has_main(decoded(files[path.name])):
        files |= {name: (folder / name).read_bytes() for name in provided}
    outcome = run_test(files, test, own, seed, inputs_of(test, own, seed))
    made = outcome.output if test.output else outcome.text.encode()
    if not outcome.report.ok or outcome.report.status != test.status or made is None:
        why = outcome.report.message or "; ".join(map(str, outcome.report.faults)) or f"status {outcome.report.status}"
        raise UsageError(f"{path}: the reference itself fails: {why}")
    return made


def _by_property(outcome: Outcome, test: Test, assignment: Assignment) -> Verdict:
    """The verdict of the lecturer's function, which returns True, a share from 0 to 1, a text for failure, or both."""
    file, _, name = test.property.partition(":")
    given = function_of(assignment.folder / file, name)(outcome)
    share, text = given if isinstance(given, tuple) else (0.0, given) if isinstance(given, str) else (given, "")
    share = min(1.0, max(0.0, float(share)))
    if share == 1.0:
        return RIGHT
    return Verdict(share if test.partial else 0.0, "grade.property", {"text": text or test.property})


def same_text(have: str, want: str, test: Test) -> Verdict:
    """Compare tokens in order, numbers within the tolerance; the first difference is reported."""
    rows, wanted = _tokens(have), _tokens(want)
    wrong = max(0, len(rows) - len(wanted))
    first = None
    for i, (line, token) in enumerate(wanted):
        mine = rows[i][1] if i < len(rows) else ""
        if not _near(mine, token, test.tolerance):
            wrong += 1
            first = first or {"line": rows[i][0] if i < len(rows) else line, "have": mine[:LONG], "want": token[:LONG]}
    if not wrong:
        return RIGHT
    if first is None:
        extra = rows[len(wanted)]
        first = {"line": extra[0], "have": extra[1][:LONG], "want": ""}
    share = max(0.0, 1 - wrong / max(1, len(wanted))) if test.partial else 0.0
    return _different(test, share, "grade.output", first)


def _different(test: Test, share: float, why: str, values: dict[str, Any]) -> Verdict:
    return Verdict(share, "grade.output.hidden", {}) if test.hidden else Verdict(share, why, values)


def _tokens(text: str) -> list[tuple[int, str]]:
    return [
        (i, token)
        for i, line in enumerate(text.splitlines(), 1)
        for token in re.findall(r"[^\s,;:=()\[\]]+|[,;:=()\[\]]", line)
    ]


def _near(have: str, want: str, tolerance: float) -> bool:
    if have == want or not tolerance:
        return have == want
    try:
        one, two = float(have), float(want)
    except ValueError:
        return False
    return one == two or abs(one - two) <= tolerance * (1 + abs(two))


def _same_numbers(have: bytes, want: bytes, test: Test) -> Verdict:
    try:
        kind = np.dtype(test.dtype)
    except TypeError:
        raise UsageError(f"test {test.name}: {test.dtype!r} is no dtype of NumPy") from None
    if len(have) != len(want) or len(have) % kind.itemsize:
        return Verdict(0.0, "grade.output.length", {"file": test.output, "have": len(have), "want": len(want)})
    mine, other = np.frombuffer(have, kind), np.frombuffer(want, kind)
    wrong = wrong_cells(mine, other, test.tolerance or None)
    if not wrong.any():
        return RIGHT
    at = int(np.argmax(wrong))
    values = {"line": at, "have": mine[at], "want": other[at], "count": int(wrong.sum()), "file": test.output}
    share = 1 - wrong.mean() if test.partial else 0.0
    values = {k: v if isinstance(v, int | str) else f"{v:.6g}" for k, v in values.items()}
    return _different(test, float(share), "grade.output.element", values)
