"""What came of running a kernel: one `Run` a launch, and the `Report` over all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tilewise.engines.simt.machine.findings import Basis, Finding, Severity
from tilewise.tracing.strict_json import strict

if TYPE_CHECKING:
    from tilewise.engines.simt.host.process import ProgramReport
    from tilewise.tracing.causes import Cause

Shape = tuple[int, int, int]
SCHEMA = 1


@dataclass(frozen=True)
class Run:
    """One launch: what was bound to what, what it counted, what it found."""

    file: str
    entry: str
    shape: Shape | None
    tile: int | None
    grid: tuple[int, int, int]  # (x, y, z), as CUDA writes it
    block: tuple[int, int, int]
    binding: tuple[str, ...]  # one line an argument: "d_M: M, 3x3 float"
    supplied: tuple[str, ...]  # names the file did not define and that were supplied: "TILE_WIDTH = 2"
    counters: Mapping[str, int]
    findings: tuple[Finding, ...]
    output: str = ""  # what printf wrote
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)  # bound arrays afterwards
    origin: str = "given"  # or "own", as main launches it, or "probe", a shape that finds bugs
    reading: str = ""  # under which other reading P is right

    @property
    def faults(self) -> tuple[Finding, ...]:
        """What was found wrong; not what hangs on a launch that nobody wrote."""
        return tuple(f for f in self.findings if f.severity is Severity.FAULT and f.basis is not Basis.UNDECIDED)

    def to_json(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "entry": self.entry,
            "shape": list(self.shape) if self.shape else None,
            "tile": self.tile,
            "grid": list(self.grid),
            "block": list(self.block),
            "binding": list(self.binding),
            "supplied": list(self.supplied),
            "counters": dict(self.counters),
            "findings": [f.to_json() for f in self.findings],
            "output": self.output,
            "origin": self.origin,
            "reading": self.reading,
        }


@dataclass(frozen=True, repr=False)
class Report:
    """What `check` gives back: one `Run` a launch, and all findings of all of them together. `grounds` says for each
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
        from tilewise.tracing.causes import causes_of  # groups runs, which are made here
        from tilewise.tracing.grouping import same_place

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

    def text(self, width: int = 80, lang: str = "en") -> str:
        """What `tilewise check` prints."""
        from tilewise.tracing.report_text import report_text

        return report_text(self, width, lang=lang)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        """In a notebook: the text that `tilewise check` prints."""
        return f"<pre>{escape(repr(self))}</pre>"
