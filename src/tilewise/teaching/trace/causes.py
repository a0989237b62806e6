"""Findings grouped by root cause: a missing barrier is listed once, with its consequences.

A cause is the finding closest to the mistake; `alike` are other findings of the same mistake, `symptoms` its
consequences (wrong products, races of stores that leave their row), which are only counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tilewise.emulator.machine.findings import Basis, Finding, Kind
from tilewise.teaching.trace.grouping import FindingRuns

# kinds by their distance from the mistake, causes before symptoms
FIRST = (
    Kind.ASSERTION, Kind.LAUNCH, Kind.DIVERGENT_BARRIER, Kind.RACE, Kind.UNINITIALISED_READ, Kind.INDEX_OVERFLOW,
    Kind.OUT_OF_BOUNDS, Kind.SILENT_OVERRUN, Kind.UNCOVERED, Kind.WRONG_PRODUCT,
)  # fmt: skip
ORDER = (
    *(kind for kind in Kind if kind not in FIRST),
    *FIRST,
)  # kinds of whole programs first

OUTSIDE = (Kind.OUT_OF_BOUNDS, Kind.SILENT_OVERRUN)  # accesses that leave their row


@dataclass
class Cause:
    lead: FindingRuns
    alike: list[FindingRuns] = field(default_factory=list)
    symptoms: list[FindingRuns] = field(default_factory=list)

    @property
    def entry(self) -> str:
        return self.lead.runs[0].entry

    @property
    def basis(self) -> Basis:
        return self.lead.basis


def group_by_cause(seen: Iterable[FindingRuns]) -> list[Cause]:
    """The causes of the findings, by their basis: seen, at other sizes, undecided."""
    groups: dict[tuple[int, str, tuple[object, ...]], list[FindingRuns]] = {}
    for one in seen:
        entry = one.runs[0].entry
        groups.setdefault((_rank(one.basis), entry, _mistake(one.finding)), []).append(one)
    made: dict[tuple[int, str], list[Cause]] = {}
    for (basis, entry, _), members in groups.items():
        members.sort(key=lambda s: (ORDER.index(s.finding.kind), s.finding.line))
        made.setdefault((basis, entry), []).append(Cause(members[0], members[1:]))
    out: list[Cause] = []
    for _, causes in sorted(made.items(), key=lambda item: item[0][0]):
        causes.sort(key=lambda c: (depth(c.lead.finding), c.lead.finding.line))
        out += _attach_symptoms(causes)
    return out


def _rank(basis: Basis) -> int:
    return list(Basis).index(basis)


def _mistake(finding: Finding) -> tuple[object, ...]:
    """The key of the mistake: the same for all its findings."""
    if finding.shared_race:
        return "barrier", finding.hazard, finding.line if finding.hazard == "WAW" else 0
    if finding.kind in OUTSIDE:
        return "bounds", finding.access
    if finding.kind is Kind.UNINITIALISED_READ:
        return "unfilled", finding.access, finding.line
    return str(finding.kind), finding.line


def depth(finding: Finding) -> int:
    """How far from the mistake a finding is. Races in global memory mostly follow from stores that leave their row,
    so they come late."""
    place = ORDER.index(finding.kind)
    return place if finding.kind is not Kind.RACE or finding.shared_race else ORDER.index(Kind.UNCOVERED)


def _attach_symptoms(causes: list[Cause]) -> list[Cause]:
    """Move symptoms to the first cause."""
    kept: list[Cause] = []
    for cause in causes:
        finding = cause.lead.finding
        follows = finding.kind is Kind.WRONG_PRODUCT
        follows |= (
            finding.kind is Kind.RACE and not finding.shared_race and any(c.lead.finding.kind in OUTSIDE for c in kept)
        )
        if follows and kept:
            kept[0].symptoms += [cause.lead, *cause.alike]
        else:
            kept.append(cause)
    return kept
