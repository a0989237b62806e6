"""What `tilewise check` prints: what ran and on what the verdict stands, one cause after the other, the verdict; in
the reader's language."""

from __future__ import annotations

import textwrap

from tilewise.emulator.machine.findings import Basis, Kind, Severity
from tilewise.i18n.messages import counted, say
from tilewise.i18n.translation import translated
from tilewise.teaching.trace.causes import Cause
from tilewise.teaching.trace.findings_text import findings_text, quoted
from tilewise.teaching.trace.grouping import same_place, shape_name, thread_lines
from tilewise.teaching.trace.judged import Judged
from tilewise.teaching.trace.one_run import Run
from tilewise.teaching.trace.told_finding import evidence_of, kind_word, message_of, place_word

SHOWN = 2  # causes told in full; the others in a line each
TITLES = {Basis.OTHER_SIZES: "check.other.sizes", Basis.UNDECIDED: "check.undecided"}


def report_text(
    report: Judged, width: int = 80, costs: bool = False, everything: bool = False, lang: str = "en"
) -> str:
    """`everything`: every finding with its threads and cells, as they were found."""
    lines: list[str] = []
    entries = list(dict.fromkeys(run.entry for run in report.runs))
    whole = everything or len(entries) == 1
    told: dict[str, list[str]] = {}
    details: dict[str, list[str]] = {}
    for entry in entries:
        runs = [run for run in report.runs if run.entry == entry]
        text = _stands_on(report, runs, lang)
        told.setdefault(text, []).append(entry)
        details.setdefault(text, []).extend(_details(runs, width, whole, lang))
    for text, names in told.items():
        lines += _wrap(f"{', '.join(names)} {text}", width)
        lines += list(dict.fromkeys(details[text]))
    for name, reason in report.not_judged.items():
        lines += _wrap(say(lang, "check.not.judged", name=name, reason=translated(reason.splitlines()[0], lang)), width)
    if everything:
        severities = tuple(Severity) if costs else (Severity.FAULT,)
        body = findings_text(report.runs, width, severities, len(report.runs), lang)
        lines += ["", body] if body else []
    else:
        lines += _causes(report, width, lang)
        if costs:
            body = findings_text(report.runs, width, (Severity.COST, Severity.NOTE), len(report.runs), lang)
            lines += ["", body] if body else []
    lines += ["", *_wrap(verdict(report, costs, lang), width)]
    return "\n".join(lines)


def _stands_on(report: Judged, runs: list[Run], lang: str) -> str:
    """What was run of a kernel, and why that."""
    first = runs[0]
    by, bx = first.block[1], first.block[0]
    ground = translated(report.grounds.get(first.entry, ""), lang)
    shapes = ", ".join(dict.fromkeys(shape_name(r) for r in runs if r.origin in ("probe", "given")))
    if any(r.origin == "own" for r in runs) or not shapes:
        return say(lang, "check.and.at", ground=ground, shapes=shapes) if shapes else ground
    tile = say(lang, "check.tile", tile=first.tile) if first.tile else ""
    return say(lang, "check.given", shapes=shapes, tile=tile, by=by, bx=bx) + (f": {ground}" if ground else "")


def _details(runs: list[Run], width: int, whole: bool, lang: str) -> list[str]:
    bound = "; ".join(translated(line, lang) for line in runs[0].binding)
    lines = _wrap(bound, width, "  ") if whole else []
    notes = list(dict.fromkeys(translated(note, lang) for run in runs for note in run.supplied))
    if notes and (whole or len(notes) < 3):
        lines += _wrap(say(lang, "table.supplied", names="; ".join(notes)), width, "  ")
    lines += [line for text in _traffic(runs, lang) for line in _wrap(text, width, "  ")]
    readings = list(dict.fromkeys(translated(r.reading, lang) for r in runs if r.reading))
    sentences = [say(lang, "check.reading", reading=reading) for reading in readings]
    return lines + [line for text in sentences for line in _wrap(text, width, "  ")]


def _traffic(runs: list[Run], lang: str) -> list[str]:
    """Tiles that are loaded and not used: as many loads as a kernel without tiles makes."""
    for run in runs:
        counted = run.counters
        plain = counted.get("loads without tiles", 0)
        if run.shape is None or not run.tile or min(run.shape) < run.tile or run.shape[1] < 2 * run.tile:
            continue
        if counted.get("uses") and plain and counted.get("loads", 0) >= plain:
            return [say(lang, "check.traffic", loads=counted["loads"], shape=shape_name(run), plain=plain)]
    return []


def _causes(report: Judged, width: int, lang: str) -> list[str]:
    lines: list[str] = []
    shown = hidden = 0
    basis = Basis.SEEN
    for cause in report.causes:
        if cause.basis is not basis:
            basis = cause.basis
            lines += ["", *_wrap(say(lang, TITLES[basis]), width)]
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
    lines = quoted(f.place) if f.place is not None else [f"{cause.lead.runs[0].file}: {cause.entry}"]
    lines += _wrap(f"{kind_word(f.kind, lang)}: {message_of(f, lang)}", width, "  ")
    whose = thread_lines(frozenset(f.threads), 1, lang) if f.kind not in (Kind.WRONG_PRODUCT, Kind.UNCOVERED) else []
    if whose and f.count > 1:
        more = f.count > len(f.touches)
        lines += _wrap(say(lang, "check.others", threads=whose[0]) if more else whose[0], width, "    ")
    lines += _wrap(evidence_of(f, lang), width, "    ")
    if of > 1 and cause.lead.shapes:
        shapes = ", ".join(dict.fromkeys(cause.lead.shapes))
        lines += _wrap(say(lang, "findings.shapes", shapes=shapes), width, "    ")
    if f.hint:
        lines += _wrap(say(lang, "check.change", hint=translated(f.hint, lang)), width, "    ")
    lines += _wrap(_beside(cause, lang), width, "    ")
    return lines


def _short(cause: Cause, width: int, lang: str) -> list[str]:
    f = cause.lead.finding
    at = f"{place_word(f, lang)}: " if f.line else ""
    shapes = ", ".join(dict.fromkeys(cause.lead.shapes))
    what = message_of(f, lang).split(": ")[0]
    if f.kind is Kind.RACE:
        what = say(lang, "check.race", hazard=f.hazard, scope=say(lang, f"check.scope.{f.scope}"), array=f.array)
    what = say(lang, "check.at", what=what, shapes=shapes) if shapes else what
    lines = _wrap(f"{at}{kind_word(f.kind, lang)}: {what}", width, "  ")
    if f.hint:
        lines += _wrap(say(lang, "check.change", hint=translated(f.hint, lang)), width, "    ")
    lines += _wrap(_beside(cause, lang), width, "    ")
    return lines


def _beside(cause: Cause, lang: str) -> str:
    parts = []
    lead = cause.lead.finding
    alike = [s.finding for s in cause.alike]
    if alike:
        places = dict.fromkeys(
            (f"{kind_word(f.kind, lang)} " if f.kind is not lead.kind else "")
            + place_word(f, lang)
            + (f" ({f.array})" if f.array else "")
            for f in alike
        )
        named = ", ".join(list(places)[:4]) + (" …" if len(places) > 4 else "")
        parts.append(say(lang, "check.alike", places=named))
    if cause.symptoms:
        found = [s.finding for s in cause.symptoms]
        places = dict.fromkeys(f"{kind_word(f.kind, lang)} {place_word(f, lang)}" for f in found)
        parts.append(say(lang, "check.symptoms", places=", ".join(list(places)[:4])))
    return "; ".join(parts)


def beyond(report: Judged, lang: str = "en") -> str:
    """One line under a run of one shape: what `check` finds with the others."""
    shapes = ", ".join(dict.fromkeys(shape_name(r) for r in report.runs if r.shape is not None))
    command = say(lang, "check.at", what="tilewise check", shapes=shapes) if shapes else "tilewise check"
    return f"{command}: {verdict(report, True, lang)}"


def verdict(report: Judged, costs: bool, lang: str = "en") -> str:
    rest = len(same_place(report.runs, (Severity.COST, Severity.NOTE)))
    more = say(lang, "verdict.rest", count=rest) if rest and not costs else ""
    bases = [cause.basis for cause in report.causes]
    seen, other, undecided = (bases.count(basis) for basis in Basis)
    parts = [counted(lang, "verdict", seen) if seen else say(lang, "verdict.none")]
    if other:
        parts.append(counted(lang, "verdict.other", other))
    if undecided:
        parts.append(say(lang, "verdict.undecided", count=undecided))
    if report.not_judged:
        parts.append(counted(lang, "verdict.kernel", len(report.not_judged)))
    faults = ", ".join(parts) + ("," if len(parts) > 1 else "")
    launches = len(report.runs)
    if report.program is not None:  # the program's own run stands for the launches it made
        launches += len(report.program.launches) - 1
    return counted(lang, "verdict.launch", launches, faults=faults) + more


def _wrap(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent + "  ", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
