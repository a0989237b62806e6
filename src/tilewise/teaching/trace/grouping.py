"""Findings grouped for reports: one for each source place over all shapes, with its threads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tilewise.emulator.machine.findings import Basis, Finding, Severity
from tilewise.emulator.machine.lanes import Name
from tilewise.emulator.source.source import Place
from tilewise.i18n.messages import say
from tilewise.system.quantities import coordinates
from tilewise.teaching.trace.launch import Run

Threads = frozenset[tuple[Name, Name]]  # (block, thread)


@dataclass
class FindingRuns:
    """A finding of the first run, and all runs with the same finding at the same place."""

    finding: Finding
    runs: list[Run] = field(default_factory=list)
    bases: list[Basis] = field(default_factory=list)  # as each of the runs has it

    @property
    def basis(self) -> Basis:
        """SEEN if any of the runs has it."""
        return Basis.SEEN if Basis.SEEN in self.bases else self.finding.basis

    @property
    def shapes(self) -> list[str]:
        return [shape_name(run) for run in self.runs if run.shape is not None]


@dataclass
class Group:
    """Findings of one source line by the same threads."""

    place: Place | None
    threads: Threads
    seen: list[FindingRuns] = field(default_factory=list)


def shape_name(run: Run) -> str:
    return "x".join(map(str, run.shape)) if run.shape is not None else "as given"


def by_place(runs: Iterable[Run], severities: Sequence[Severity] = (Severity.FAULT,)) -> list[FindingRuns]:
    """Every finding once, with its runs, in source order."""
    found: dict[tuple[object, ...], FindingRuns] = {}
    for run in runs:
        for f in run.findings:
            if f.severity not in severities:
                continue
            column = f.place.column if f.place else 0
            key = (run.entry, f.line, column, f.kind, f.array, f.access, f.hazard, f.scope)
            one = found.setdefault(key, FindingRuns(f))
            one.runs.append(run)
            one.bases.append(f.basis)
    return sorted(found.values(), key=lambda s: (s.finding.severity != Severity.FAULT, s.finding.line))


def by_line_and_threads(seen: Iterable[FindingRuns]) -> list[Group]:
    """Findings grouped by line and by the set of their threads."""
    groups: dict[tuple[object, ...], Group] = {}
    for one in seen:
        place = one.finding.place
        threads = frozenset(one.finding.threads)
        key = (place.file if place else "", place.line if place else 0, threads)
        groups.setdefault(key, Group(place, threads)).seen.append(one)
    return list(groups.values())


def _by_rows(who: tuple[Name, Name]) -> tuple[Name, Name]:
    """Sort key of the hardware's numbering: x varies fastest."""
    return who[0][::-1], who[1][::-1]


def thread_lines(threads: Threads, most: int = 3, lang: str = "en") -> list[str]:
    """Threads as text, blocks with the same threads together: "threads (x 1, y 0) (x 1, y 1) of block (x 0, y 0)"."""
    blocks: dict[Name, list[Name]] = {}
    for block, thread in sorted(threads, key=_by_rows):
        if thread:
            blocks.setdefault(block, []).append(thread)
    alike: dict[tuple[Name, ...], list[Name]] = {}
    for block, mine in blocks.items():
        alike.setdefault(tuple(mine), []).append(block)
    lines = []
    for members, same_threads in alike.items():
        home = say(lang, "check.blocks", count=len(same_threads), blocks=names(same_threads, lang=lang))
        lines.append(say(lang, "check.threads", count=len(members), threads=names(members, lang=lang), blocks=home))
    if len(lines) > most:
        left = sum(map(len, list(alike.values())[most - 1 :]))
        lines = [*lines[: most - 1], say(lang, "check.threads.more", count=left)]
    return lines


def names(members: Sequence[Name], most: int = 6, lang: str = "en") -> str:
    """(x 1, y 0) (x 1, y 1), or (x 0–15, y 3) for a whole rectangle, or the first few."""
    if len(members) <= 4:
        return " ".join(map(coordinates, members))
    axes = [sorted(set(axis)) for axis in zip(*members, strict=True)]
    whole = 1
    for axis in axes:
        whole *= len(axis) if axis[-1] - axis[0] + 1 == len(axis) else 0
    if whole == len(members):
        parts = [f"{a[0]}" if len(a) == 1 else f"{a[0]}–{a[-1]}" for a in axes]
        return coordinates(parts)
    shown = " ".join(map(coordinates, members[:most]))
    return shown if len(members) <= most else say(lang, "check.names.more", names=shown, count=len(members) - most)
