"""The report of `check`: all runs of a kernel or of a program, their faults, and the text for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, cast

from tilewise.emulator.machine.findings import Basis, Finding, Kind, Severity
from tilewise.i18n.messages import say
from tilewise.i18n.translation import translated
from tilewise.system.quantities import extent
from tilewise.teaching.trace.causes import Cause, group_by_cause
from tilewise.teaching.trace.findings_text import (
    change_of,
    finding_lines,
    findings_text,
    kind_label,
    line_label,
    message_of,
    quoted,
    wrapped,
)
from tilewise.teaching.trace.grouping import by_place, shape_name, thread_lines
from tilewise.teaching.trace.launch import ENTRY, SCHEMA, Run
from tilewise.teaching.trace.strict_json import strict

if TYPE_CHECKING:
    from tilewise.emulator.host.program_report import ProgramReport

SHOWN = 2  # causes printed in full; the others in a line each
TITLES = {Basis.OTHER_SIZES: "check.other.sizes", Basis.UNDECIDED: "check.undecided"}


@dataclass(frozen=True, repr=False)
class CheckReport:
    """One `Run` per launch, and the findings of all of them. `grounds` gives for each kernel the basis of its verdict,
    `not_judged` the reason for each kernel that could not be run."""

    file: str
    runs: tuple[Run, ...]
    grounds: Mapping[str, str] = field(default_factory=dict)
    not_judged: Mapping[str, str] = field(default_factory=dict)
    program: ProgramReport | None = None  # the run of its main, where there is one
    rejected: bool = False  # main does not compile: `not_judged` says where

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(f for run in self.runs for f in run.findings)

    @property
    def causes(self) -> list[Cause]:
        """The faults, grouped by the mistake that causes them."""
        return group_by_cause(by_place(self.runs))

    @property
    def faults(self) -> tuple[Finding, ...]:
        """The faults that `tilewise check` counts: for each cause seen, the finding closest to the mistake."""
        return tuple(cause.lead.finding for cause in self.causes if cause.basis is Basis.SEEN)

    @property
    def seen(self) -> tuple[Finding, ...]:
        """Every fault, symptoms included, of the requested run, of the program's own run, or of every possible run."""
        return self._faults(Basis.SEEN)

    @property
    def at_other_sizes(self) -> tuple[Finding, ...]:
        """Faults that only sizes other than the program's own show."""
        return self._faults(Basis.OTHER_SIZES)

    @property
    def undecided(self) -> tuple[Finding, ...]:
        """Faults under launches that the file does not contain."""
        return self._faults(Basis.UNDECIDED)

    def _faults(self, basis: Basis) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.severity is Severity.FAULT and f.basis is basis)

    @property
    def ok(self) -> bool:
        """Whether no fault was seen; `clean`: nor at other sizes."""
        return not self.seen

    @property
    def clean(self) -> bool:
        return not self.seen and not self.at_other_sizes

    @property
    def exit_code(self) -> int:
        """1 with a fault; 2 if there is none in what was judged, and main does not compile."""
        return 1 if not self.ok else 2 if self.rejected else 0

    def to_json(self) -> dict[str, Any]:
        made = {
            "schema": SCHEMA,
            "file": self.file,
            "ok": self.ok,
            "clean": self.clean,
            "verdict": verdict(self, True),
            "grounds": dict(self.grounds),
            "not_judged": dict(self.not_judged),
            "program": self.program.to_json() if self.program is not None else None,
            "runs": [r.to_json() for r in self.runs],
        }
        return cast(dict[str, Any], strict(made))

    def text(self, width: int = 80, lang: str = "en", costs: bool = False, everything: bool = False) -> str:
        """What `tilewise check` prints; `everything`: every finding with its threads and cells, not by cause."""
        lines = _runs(self, width, everything, lang)
        if everything:
            severities = tuple(Severity) if costs else (Severity.FAULT,)
        else:
            lines += _causes(self, width, lang)
            severities = (Severity.COST, Severity.NOTE) if costs else ()
        body = findings_text(self.runs, width, severities, len(self.runs), lang)
        lines += ["", body] if body else []
        return "\n".join([*lines, "", *wrapped(verdict(self, costs, lang), width)])

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        """In a notebook: the text that `tilewise check` prints."""
        return f"<pre>{escape(repr(self))}</pre>"


def _runs(report: CheckReport, width: int, everything: bool, lang: str) -> list[str]:
    """The runs of each kernel and their reason, equal ones together; then kernels that could not be run."""
    entries = list(dict.fromkeys(run.entry for run in report.runs))
    whole = everything or len(entries) == 1
    names: dict[str, list[str]] = {}
    details: dict[str, list[str]] = {}
    for entry in entries:
        runs = [run for run in report.runs if run.entry == entry]
        text = _grounds(report, runs, lang)
        names.setdefault(text, []).append(entry)
        details.setdefault(text, []).extend(_details(runs, width, whole, lang))
    lines: list[str] = []
    for text, entries in names.items():
        lines += wrapped(f"{', '.join(entries)} {text}", width)
        lines += list(dict.fromkeys(details[text]))
    for name, reason in report.not_judged.items():
        first = translated(reason.splitlines()[0], lang)
        lines += wrapped(say(lang, "check.not.judged", name=name, reason=first), width)
    return lines


def _grounds(report: CheckReport, runs: list[Run], lang: str) -> str:
    """The runs of a kernel, and their reason."""
    first = runs[0]
    ground = translated(report.grounds.get(first.entry, ""), lang)
    shapes = ", ".join(dict.fromkeys(shape_name(r) for r in runs if r.origin in ("probe", "given")))
    if any(r.origin == "own" for r in runs) or not shapes:
        return say(lang, "check.and.at", ground=ground, shapes=shapes) if shapes else ground
    tile = say(lang, "check.tile", tile=first.tile) if first.tile else ""
    given = say(lang, "check.given", shapes=shapes, tile=tile, block=extent(first.block))
    return f"{given}: {ground}" if ground else given


def _details(runs: list[Run], width: int, whole: bool, lang: str) -> list[str]:
    bound = "; ".join(translated(line, lang) for line in runs[0].binding)
    lines = wrapped(bound, width, "  ") if whole else []
    notes = list(dict.fromkeys(translated(note, lang) for run in runs for note in run.supplied))
    if notes and (whole or len(notes) < 3):
        lines += wrapped(say(lang, "table.supplied", names="; ".join(notes)), width, "  ")
    lines += [line for text in _traffic(runs, lang) for line in wrapped(text, width, "  ")]
    readings = list(dict.fromkeys(translated(r.reading, lang) for r in runs if r.reading))
    sentences = [say(lang, "check.reading", reading=reading) for reading in readings]
    return lines + [line for text in sentences for line in wrapped(text, width, "  ")]


def _traffic(runs: list[Run], lang: str) -> list[str]:
    """A note if the tiles save no loads."""
    for run in runs:
        counters = run.counters
        plain = counters.get("loads without tiles", 0)
        if run.shape is None or not run.tile or min(run.shape) < run.tile or run.shape[1] < 2 * run.tile:
            continue
        if counters.get("uses") and plain and counters.get("loads", 0) >= plain:
            return [say(lang, "check.traffic", loads=counters["loads"], shape=shape_name(run), plain=plain)]
    return []


def _causes(report: CheckReport, width: int, lang: str) -> list[str]:
    lines: list[str] = []
    shown = hidden = 0
    basis = Basis.SEEN
    for cause in report.causes:
        if cause.basis is not basis:
            basis = cause.basis
            lines += ["", *wrapped(say(lang, TITLES[basis]), width)]
        if cause.basis is Basis.SEEN and shown < SHOWN:
            lines += ["", *_full(cause, width, len(report.runs), lang)]
            shown += 1
        elif hidden < 4:
            lines += _short(cause, width, lang)
            hidden += 1
        else:
            lines += ["  " + say(lang, "check.more")]
            break
    return lines


def _full(cause: Cause, width: int, of: int, lang: str) -> list[str]:
    f = cause.lead.finding
    threads = thread_lines(frozenset(f.threads), 1, lang) if f.kind not in (Kind.WRONG_PRODUCT, Kind.UNCOVERED) else []
    if f.count <= 1:
        threads = []
    elif threads and f.count > len(f.touches):
        threads = [say(lang, "check.others", threads=threads[0])]
    lines = quoted(f.place) if f.place is not None else [f"{cause.lead.runs[0].file}: {cause.entry}"]
    lines += finding_lines(cause.lead, threads, width, of, lang, "  ")
    return lines + wrapped(related(cause, lang), width, "    ")


def _short(cause: Cause, width: int, lang: str) -> list[str]:
    f = cause.lead.finding
    at = f"{line_label(f, lang)}: " if f.line else ""
    shapes = ", ".join(dict.fromkeys(cause.lead.shapes))
    what = message_of(f, lang).split(": ")[0]
    if f.kind is Kind.RACE:
        what = say(lang, "check.race", hazard=f.hazard, scope=say(lang, f"check.scope.{f.scope}"), array=f.array)
    what = say(lang, "check.at", what=what, shapes=shapes) if shapes else what
    lines = wrapped(f"{at}{kind_label(f.kind, lang)}: {what}", width, "  ")
    lines += wrapped(change_of(f, lang), width, "    ")
    return lines + wrapped(related(cause, lang), width, "    ")


def related(cause: Cause, lang: str) -> str:
    """Other findings of the same mistake, and its symptoms."""
    parts = []
    lead = cause.lead.finding
    alike = [s.finding for s in cause.alike]
    if alike:
        places = dict.fromkeys(
            (f"{kind_label(f.kind, lang)} " if f.kind is not lead.kind else "")
            + line_label(f, lang)
            + (f" ({f.array})" if f.array else "")
            for f in alike
        )
        named = ", ".join(list(places)[:4]) + (" …" if len(places) > 4 else "")
        parts.append(say(lang, "check.alike", places=named))
    if cause.symptoms:
        found = [s.finding for s in cause.symptoms]
        places = dict.fromkeys(f"{kind_label(f.kind, lang)} {line_label(f, lang)}" for f in found)
        parts.append(say(lang, "check.symptoms", places=", ".join(list(places)[:4])))
    return "; ".join(parts)


def verdict_line(report: CheckReport, lang: str = "en") -> str:
    """One line with the verdict of `check`, for the trace of one shape."""
    shapes = ", ".join(dict.fromkeys(shape_name(r) for r in report.runs if r.shape is not None))
    command = say(lang, "check.at", what="tilewise check", shapes=shapes) if shapes else "tilewise check"
    return f"{command}: {verdict(report, True, lang)}"


def verdict(report: CheckReport, costs: bool, lang: str = "en") -> str:
    rest = len(by_place(report.runs, (Severity.COST, Severity.NOTE)))
    more = say(lang, "verdict.rest", count=rest) if rest and not costs else ""
    bases = [cause.basis for cause in report.causes]
    seen, other, undecided = (bases.count(basis) for basis in Basis)
    parts = [say(lang, "verdict.some", count=seen) if seen else say(lang, "verdict.none")]
    if other:
        parts.append(say(lang, "verdict.other", count=other))
    if undecided:
        parts.append(say(lang, "verdict.undecided", count=undecided))
    kernels = len(report.not_judged) - (ENTRY in report.not_judged)
    if kernels:
        parts.append(say(lang, "verdict.kernel", count=kernels))
    if ENTRY in report.not_judged:
        parts.append(say(lang, "verdict.main"))
    faults = ", ".join(parts) + ("," if len(parts) > 1 else "")
    launches = len(report.runs)
    if report.program is not None:  # the program's own run counts as the launches it made
        launches += len(report.program.launches) - 1
    return say(lang, "verdict.launch", count=launches, faults=faults) + more
