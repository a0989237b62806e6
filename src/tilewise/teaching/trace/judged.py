"""All runs of a kernel or of a program together, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from tilewise.emulator.machine.findings import Basis, Finding, Severity
from tilewise.teaching.trace.causes import Cause, causes_of
from tilewise.teaching.trace.grouping import same_place
from tilewise.teaching.trace.one_run import SCHEMA, Run
from tilewise.teaching.trace.strict_json import strict

if TYPE_CHECKING:
    from tilewise.emulator.host.program_report import ProgramReport


@dataclass(frozen=True, repr=False)
class Judged:
    """One `Run` a launch, and all findings of all of them together. `grounds` says for each
    kernel what its verdict stands on, `not_judged` which kernels could not be run and why."""

    file: str
    runs: tuple[Run, ...]
    grounds: Mapping[str, str] = field(default_factory=dict)
    not_judged: Mapping[str, str] = field(default_factory=dict)
    program: ProgramReport | None = None  # the run of its main, where there is one

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(f for run in self.runs for f in run.findings)

    @property
    def causes(self) -> list[Cause]:
        """The findings that are faults, brought together by the slip behind them."""
        return causes_of(same_place(self.runs))

    @property
    def faults(self) -> tuple[Finding, ...]:
        """As many as `tilewise check` says: of each cause that was seen, the finding nearest to the slip."""
        return tuple(cause.lead.finding for cause in self.causes if cause.basis is Basis.SEEN)

    @property
    def seen(self) -> tuple[Finding, ...]:
        """Every finding of the run that was asked for, of the program's own, or of every run there can be, that is a
        fault: symptoms too, and each run's own."""
        return self._faults(Basis.SEEN)

    @property
    def at_other_sizes(self) -> tuple[Finding, ...]:
        """Faults that only sizes show which are not the program's own."""
        return self._faults(Basis.OTHER_SIZES)

    @property
    def undecided(self) -> tuple[Finding, ...]:
        """What would be a fault under a launch that nobody wrote."""
        return self._faults(Basis.UNDECIDED)

    def _faults(self, basis: Basis) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.severity is Severity.FAULT and f.basis is basis)

    @property
    def ok(self) -> bool:
        """Nothing wrong was seen; `clean` is stricter: nor would anything be at other sizes."""
        return not self.seen

    @property
    def clean(self) -> bool:
        return not self.seen and not self.at_other_sizes

    def to_json(self) -> dict[str, Any]:
        made = {
            "schema": SCHEMA,
            "file": self.file,
            "ok": self.ok,
            "clean": self.clean,
            "grounds": dict(self.grounds),
            "not_judged": dict(self.not_judged),
            "program": self.program.to_json() if self.program is not None else None,
            "runs": [r.to_json() for r in self.runs],
        }
        return cast(dict[str, Any], strict(made))
