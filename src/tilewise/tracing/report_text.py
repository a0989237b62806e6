"""What `tilewise check` prints: what ran and on what the verdict stands, one cause after the other, the verdict."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from tilewise.engines.simt.machine.findings import Basis, Finding, Kind, Severity
from tilewise.tracing import Report, Run
from tilewise.tracing.causes import Cause, causes_of
from tilewise.tracing.findings_text import findings_text, quoted
from tilewise.tracing.grouping import Seen, same_place, shape_name, thread_lines

SHOWN = 2  # causes told in full; the others in a line each
TITLES = {
    Basis.SEEN: "",
    Basis.OTHER_SIZES: "at other sizes:",
    Basis.UNDECIDED: "not decided, for the launch is not known:",
}


def report_text(report: Report, width: int = 80, costs: bool = False, everything: bool = False) -> str:
    """`everything`: every finding with its threads and cells, as they were found."""
    lines: list[str] = []
    entries = list(dict.fromkeys(run.entry for run in report.runs))
    whole = everything or len(entries) == 1
    told: dict[str, list[str]] = {}
    details: dict[str, list[str]] = {}
    for entry in entries:
        runs = [run for run in report.runs if run.entry == entry]
        text = _stands_on(report, runs)
        told.setdefault(text, []).append(entry)
        details.setdefault(text, []).extend(_details(runs, width, whole))
    for text, names in told.items():
        lines += _wrap(f"{', '.join(names)} {text}", width)
        lines += list(dict.fromkeys(details[text]))
    for name, reason in report.not_judged.items():
        lines += _wrap(f"{name}: not judged: {reason.splitlines()[0]}", width)
    if everything:
        severities = tuple(Severity) if costs else (Severity.FAULT,)
        body = findings_text(report.runs, width, severities, len(report.runs))
        lines += ["", body] if body else []
    else:
        lines += _causes(report, width)
        if costs:
            body = findings_text(report.runs, width, (Severity.COST, Severity.NOTE), len(report.runs))
            lines += ["", body] if body else []
    lines += ["", *_wrap(verdict(report, costs), width)]
    return "\n".join(lines)


def _stands_on(report: Report, runs: list[Run]) -> str:
    """What was run of a kernel, and why that."""
    first = runs[0]
    by, bx = first.block[1], first.block[0]
    ground = report.grounds.get(first.entry, "")
    shapes = ", ".join(dict.fromkeys(shape_name(r) for r in runs if r.origin in ("probe", "given")))
    if any(r.origin == "own" for r in runs) or not shapes:
        return ground + (f"; and at {shapes}" if shapes else "")
    tile = f", tile {first.tile}" if first.tile else ""
    return f"{shapes}{tile}, blocks of {by} x {bx} threads" + (f": {ground}" if ground else "")


def _details(runs: list[Run], width: int, whole: bool) -> list[str]:
    lines = _wrap("; ".join(runs[0].binding), width, "  ") if whole else []
    notes = list(dict.fromkeys(note for run in runs for note in run.supplied))
    if notes and (whole or len(notes) < 3):
        lines += _wrap("supplied: " + "; ".join(notes), width, "  ")
    lines += [line for text in _traffic(runs) for line in _wrap(text, width, "  ")]
    readings = list(dict.fromkeys(r.reading for r in runs if r.reading))
    return lines + [line for text in readings for line in _wrap(f"P is right if {text}", width, "  ")]


def _traffic(runs: list[Run]) -> list[str]:
    """Tiles that are loaded and not used: as many loads as a kernel without tiles makes."""
    for run in runs:
        counted = run.counters
        plain = counted.get("loads without tiles", 0)
        if run.shape is None or not run.tile or min(run.shape) < run.tile or run.shape[1] < 2 * run.tile:
            continue
        if counted.get("uses") and plain and counted.get("loads", 0) >= plain:
            return [f"its tiles save nothing: {counted['loads']} loads at {shape_name(run)}, {plain} without tiles"]
    return []


def _causes(report: Report, width: int) -> list[str]:
    lines: list[str] = []
    shown = hidden = 0
    basis = Basis.SEEN
    for cause in causes_of(_all(report.runs)):
        if cause.basis is not basis:
            basis = cause.basis
            lines += ["", *_wrap(f"{TITLES[basis]}", width)]
        if cause.basis is Basis.SEEN and shown < SHOWN:
            lines += ["", *_full(cause, width, len(report.runs))]
            shown += 1
        elif hidden < 4:
            lines += _short(cause, width)
            hidden += 1
        else:
            lines += ["  … more: --all shows them"]
            break
    return lines


def _all(runs: Sequence[Run]) -> list[Seen]:
    """Every fault once; seen anywhere is seen."""
    found = same_place(runs)
    for one in found:
        bases = [_same(f, one.finding) for run in one.runs for f in run.findings]
        if Basis.SEEN in bases:
            one.finding.basis = Basis.SEEN
    return found


def _same(finding: Finding, other: Finding) -> Basis | None:
    alike = (finding.kind, finding.line, finding.array, finding.access) == (
        other.kind, other.line, other.array, other.access
    )  # fmt: skip
    return finding.basis if alike else None


def _full(cause: Cause, width: int, of: int) -> list[str]:
    f = cause.lead.finding
    lines = quoted(f.place) if f.place is not None else [f"{cause.lead.runs[0].file}: {cause.entry}"]
    lines += _wrap(f"{f.kind}: {f.message}", width, "  ")
    whose = thread_lines(frozenset(f.threads), 1) if f.kind not in (Kind.WRONG_PRODUCT, Kind.UNCOVERED) else []
    if whose and f.count > 1:
        lines += _wrap(f"{whose[0]}{', and others' if f.count > len(f.touches) else ''}", width, "    ")
    if f.evidence and f.evidence not in f.message:
        lines += _wrap(f.evidence, width, "    ")
    if of > 1 and cause.lead.shapes:
        lines += _wrap(f"seen at {', '.join(dict.fromkeys(cause.lead.shapes))}", width, "    ")
    if f.hint:
        lines += _wrap(f"change: {f.hint}", width, "    ")
    lines += _wrap(_beside(cause), width, "    ")
    return lines


def _short(cause: Cause, width: int) -> list[str]:
    f = cause.lead.finding
    at = f"line {f.line}: " if f.line else ""
    sizes = f" at {', '.join(dict.fromkeys(cause.lead.shapes))}" if cause.lead.shapes else ""
    what = f.message.split(": ")[0] if f.kind is not Kind.RACE else f"{f.hazard} race {f.scope} on {f.array}"
    lines = _wrap(f"{at}{f.kind}: {what}{sizes}", width, "  ")
    if f.hint:
        lines += _wrap(f"change: {f.hint}", width, "    ")
    lines += _wrap(_beside(cause), width, "    ")
    return lines


def _beside(cause: Cause) -> str:
    parts = []
    lead = cause.lead.finding
    alike = [s.finding for s in cause.alike]
    if alike:
        places = dict.fromkeys(
            (f"{f.kind} " if f.kind is not lead.kind else "") + f"line {f.line}" + (f" ({f.array})" if f.array else "")
            for f in alike
        )
        parts.append("the same slip: " + ", ".join(list(places)[:4]) + (" …" if len(places) > 4 else ""))
    if cause.symptoms:
        places = dict.fromkeys(f"{s.finding.kind} line {s.finding.line}" for s in cause.symptoms)
        parts.append("with it: " + ", ".join(list(places)[:4]))
    return "; ".join(parts)


def beyond(report: Report) -> str:
    """One line under a run of one shape: what `check` finds with the others."""
    shapes = ", ".join(dict.fromkeys(shape_name(r) for r in report.runs if r.shape is not None))
    return f"tilewise check{' at ' if shapes else ''}{shapes}: {verdict(report, True)}"


def verdict(report: Report, costs: bool) -> str:
    total = len(report.runs)
    launches = f"{total} launch{'es' if total != 1 else ''}"
    rest = len(same_place(report.runs, (Severity.COST, Severity.NOTE)))
    more = f"; {rest} costs and notes: --costs shows them" if rest and not costs else ""
    counted = causes_of(_all(report.runs))
    seen = sum(c.basis is Basis.SEEN for c in counted)
    other = sum(c.basis is Basis.OTHER_SIZES for c in counted)
    undecided = sum(c.basis is Basis.UNDECIDED for c in counted)
    parts = [f"{seen} fault{'s' if seen != 1 else ''}" if seen else "no faults"]
    if other:
        parts.append(f"{other} at other sizes (--strict counts {'it' if other == 1 else 'them'})")
    if undecided:
        parts.append(f"{undecided} not decided")
    if report.not_judged:
        parts.append(f"{len(report.not_judged)} kernel{'s' if len(report.not_judged) > 1 else ''} not judged")
    return f"{', '.join(parts)}{',' if len(parts) > 1 else ''} in {launches}{more}"


def _wrap(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent + "  ", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
