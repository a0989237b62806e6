"""The runs of a submission that an assignment's items need: of its kernels on the grader's data, and of its program."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import PurePath

from tilewise.emulator.limits import Limits
from tilewise.emulator.machine.findings import Finding, Kind, Severity
from tilewise.emulator.prove.prove import Proof
from tilewise.i18n.messages import LANGUAGES
from tilewise.teaching.course.assignment import Assignment
from tilewise.teaching.course.comparing import inputs_of
from tilewise.teaching.course.programs import Outcome, combined_source, main_of, run_test
from tilewise.teaching.course.submissions import Submission, decoded, has_main
from tilewise.teaching.trace import CheckReport, Run, check
from tilewise.teaching.trace.findings_text import message_of
from tilewise.teaching.trace.grouping import by_place
from tilewise.teaching.trace.program_run import ALLOCATES
from tilewise.teaching.trace.proofs import prove_file

GRADED, REFUSED, STOPPED, CRASHED, LATE, UNREAD = "graded", "refused", "stopped", "crashed", "late", "unread"
AT_LINE = re.compile(r"(?:line |:)(\d+)")


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
    file: str = ""  # within the submission
    cause: str = ""  # the kind, or finer: race.RAW
    severity: str = "fault"


class Evidence:
    """The runs of a submission: of its kernels on the grader's data, and of its program. Each is made on first use."""

    def __init__(self, submission: Submission, assignment: Assignment, seed: int, limits: Limits) -> None:
        self.assignment, self.seed, self.limits = assignment, seed, limits
        provided = {name: (assignment.folder / name).read_bytes() for name in assignment.provided}
        if any(has_main(decoded(data)) for data in provided.values()):  # the lecturer's main replaces the student's
            kept = {p: d for p, d in submission.files.items() if p not in provided}
            self.files = {p: _without_main(d) for p, d in kept.items()} | provided
        else:
            self.files = {**submission.files, **provided}
        self.submission = submission

    @cached_property
    def texts(self) -> dict[str, str]:
        return self.submission.texts

    def shown(self, file: str) -> str:
        root = self.submission.root
        return (PurePath(root) / file).as_posix() if root and file else self.submission.file

    @cached_property
    def report(self) -> CheckReport:
        """The kernels with roles, at every shape."""
        one = self.assignment
        with combined_source(self.files) as path:
            return check(
                path, shape=list(one.shapes), tile=one.tile, entry=one.kernel, seed=self.seed,
                block=one.block, grid=one.grid, defines=one.defines or None, limits=self.limits,
                adversarial=False,  # shadow memory finds races in one run, and a class is large
                semiring=one.reference if over_semiring(one) else "plus_times",
            )  # fmt: skip

    def proof(self) -> Proof:
        """The proof of the graded kernel for every size."""
        one, entry = self.assignment, self.kernels[0].entry
        with combined_source(self.files) as path:
            report = prove_file(
                path, tile=one.tile, entry=entry, block=one.block, grid=one.grid, defines=one.defines or None,
                limits=self.limits,
            )  # fmt: skip
        return report.proofs[0]

    @cached_property
    def kernels(self) -> list[Run]:
        """The runs of one kernel: the first that multiplies through shared memory, else the first."""
        if not self.assignment.has_roles:
            return []
        entries = dict.fromkeys(run.entry for run in self.report.runs)
        shared = [e for e in entries if any(r.entry == e and r.counters.get("uses") for r in self.report.runs)]
        chosen = (shared or list(entries))[0]
        return [run for run in self.report.runs if run.entry == chosen]

    @cached_property
    def outcomes(self) -> dict[str, Outcome]:
        """The program's runs, by the name of their test."""
        made: dict[str, Outcome] = {}
        for test in self.assignment.runs:
            inputs = inputs_of(test, self.assignment, self.seed)
            made[test.name] = run_test(self.files, test, self.assignment, self.seed, inputs)
            if made[test.name].report.ended == "refused":  # it cannot be read: all runs would be refused
                break
        return made

    @cached_property
    def own_runs(self) -> list[Outcome]:
        """The runs of the program itself: kernels with roles run in the grader's launch, but the program's own launch
        may fail."""
        if self.assignment.runs or not self.assignment.has_roles:
            return list(self.outcomes.values())
        main = decoded(self.files.get(main_of(self.files), b""))
        if not has_main(main) or not ALLOCATES.search(main):
            return []
        runs = replace(self.assignment, points={"program": 0.0}).runs
        outcome = run_test(self.files, runs[0], self.assignment, self.seed, {})
        return [] if outcome.report.ended in ("refused", "unconfined", "failed") or outcome.report.wanted else [outcome]

    def refusal(self) -> tuple[str, str, int] | None:
        """Why nothing can be graded, as (status, message, line); None if it can."""
        if self.assignment.has_roles:
            if not any("__global__" in decoded(data) for data in self.files.values()):
                return REFUSED, "there is no __global__ function in it", 0
            return None
        ended = [outcome.report for outcome in self.outcomes.values()]
        if ended and ended[0].ended == "refused":
            line = AT_LINE.search(ended[0].message)
            first, *reason = ended[0].message.split("\n")
            return REFUSED, " ".join([first, *reason[: first.endswith(":")]]), int(line[1]) if line else 0
        if ended and all(report.ended == "limit" for report in ended):
            return STOPPED, ended[0].message, 0
        return None

    def findings(self) -> list[tuple[Finding, str, int]]:
        """Everything found, with its file and line in the submission."""
        found: list[Finding] = []
        if self.assignment.has_roles:
            found += [seen.finding for seen in by_place(self.report.runs, tuple(Severity))]
        found += [f for outcome in self.own_runs for f in outcome.report.findings]
        return [(f, f.place.file if f.place else "", f.line) for f in found]

    def found(self) -> tuple[Found, ...]:
        """The findings for reports: faults, and costs that have points."""
        out: dict[tuple[str, str, int], Found] = {}
        for f, file, line in self.findings():
            by_sum = f.kind is Kind.WRONG_PRODUCT and not over_semiring(self.assignment)
            if not by_sum and (f.severity is Severity.FAULT or str(f.kind) in self.assignment.points):
                out.setdefault((str(f.kind), self.inside(file), line), _found_one(f, self.inside(file), line))
        return tuple(out.values())

    def inside(self, file: str) -> str:
        """A file's path within the submission, from a finding's path."""
        name = file.replace("\\", "/")
        near = [p for p in self.files if name.endswith(p)]
        return max(near, key=len) if near else ""


def _without_main(data: bytes) -> bytes:
    """The text with a student's main renamed, so that the lecturer's replaces it."""
    text = decoded(data)
    return re.sub(r"\bmain(\s*\()", r"main_of_the_student\1", text).encode() if has_main(text) else data


def over_semiring(assignment: Assignment) -> bool:
    return not assignment.reference.partition(":")[0].endswith((".py", ".cu"))


def _found_one(f: Finding, file: str, line: int) -> Found:
    text = f.place.text if f.place else ""
    column = f.place.column if f.place else 0
    sentences = {language: message_of(f, language) for language in LANGUAGES}
    return Found(str(f.kind), line, column, text, f.hint, f.message, sentences, file, cause_of(f), str(f.severity))


def cause_of(f: Finding) -> str:
    """The cause, finer than the kind of finding: races within a block are distinguished by their hazard."""
    if f.kind is Kind.RACE:
        return f"{f.kind}.{f.hazard if f.shared_race else 'global'}"
    return str(f.kind)
