"""Findings about a kernel: one `Finding` per kind, source place and array, with the threads concerned."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from tilewise.emulator.source.source import Place

Cell = tuple[int, int]


class Kind(StrEnum):
    """Faults first, then costs; the value is printed, and the rule id in SARIF."""

    OUT_OF_BOUNDS = "out-of-bounds"
    SILENT_OVERRUN = "silent-overrun"
    RACE = "race"
    DIVERGENT_BARRIER = "divergent-barrier"
    UNINITIALISED_READ = "uninitialised-read"
    INDEX_OVERFLOW = "index-overflow"
    UNCOVERED = "uncovered"
    WRONG_PRODUCT = "wrong-product"
    ASSERTION = "assertion"
    LAUNCH = "launch"
    NULL_POINTER = "null-pointer"
    USE_AFTER_FREE = "use-after-free"
    DOUBLE_FREE = "double-free"
    WRONG_FREE = "wrong-free"
    LEAK = "leak"
    SMALL_ALLOCATION = "small-allocation"
    COPY = "copy"
    DEVICE_POINTER = "device-pointer-on-the-host"
    HOST_POINTER = "host-pointer-on-the-device"
    NOT_COPIED_BACK = "not-copied-back"
    NOT_SYNCHRONISED = "not-synchronised"
    COMPARISON = "comparison"
    ARGUMENT = "argument"
    OVERFLOW = "overflow"
    DIVISION = "division"
    STACK = "stack"
    NO_RETURN = "no-return"
    FORMAT = "format"
    BANK_CONFLICT = "bank-conflict"
    UNCOALESCED = "uncoalesced"
    DIVERGENCE = "divergence"
    NOT_DECIDABLE = "not-decidable"


class Severity(StrEnum):
    FAULT = "fault"
    COST = "cost"
    NOTE = "note"


class Basis(StrEnum):
    """The evidence for a finding. SEEN, in the requested or the program's own launch, is a fault without doubt."""

    SEEN = "seen"
    OTHER_SIZES = "other-sizes"
    UNDECIDED = "not-decided"


COSTS = frozenset({Kind.BANK_CONFLICT, Kind.UNCOALESCED, Kind.DIVERGENCE, Kind.LEAK})
NOTES = frozenset({Kind.NOT_DECIDABLE, Kind.NOT_COPIED_BACK})


def severity_of(kind: Kind) -> Severity:
    if kind in COSTS:
        return Severity.COST
    return Severity.NOTE if kind in NOTES else Severity.FAULT


@dataclass(frozen=True)
class Touch:
    """One thread's access in a finding. `requested` and `reached` are (row, column) where the array has rows;
    `reached` is None outside the allocation; `other` is the thread it races with, as (block, thread)."""

    block: tuple[int, ...]
    thread: tuple[int, ...]
    phase: int
    requested: tuple[int, ...] | None = None
    reached: tuple[int, ...] | None = None
    other: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    value: float | None = None


@dataclass(frozen=True)
class Wrong:
    """Wrong cells of P: their number and one of them. `order` is the schedule of the threads."""

    cells: int
    cell: Cell
    held: float
    expected: float
    order: str = "together"  # or "first to last", "last to first": one thread at a time


STALE = "stale"  # a read of a cell that was not uninitialised, but keeps the value of an earlier phase


@dataclass
class Finding:
    """One fault or cost. `count` is exact over the whole grid; `touches` keeps the first ones (see `Limits`)."""

    kind: Kind
    message: str
    place: Place | None
    array: str = ""
    access: str = ""  # "load", "store", "read" or "write" (shared), "barrier", "launch"
    hazard: str = ""  # for races: "RAW", "WAR", "WAW", with "between blocks" in `scope`; of uninitialised reads: STALE
    scope: str = ""
    count: int = 0
    touches: list[Touch] = field(default_factory=list)
    hint: str = ""
    other_place: Place | None = None
    evidence: str = ""
    wrong: Wrong | None = None
    basis: Basis = Basis.SEEN
    in_warp: bool = False  # a race inside one warp, in code that the rest of the block does not reach

    @property
    def severity(self) -> Severity:
        return severity_of(self.kind)

    @property
    def shared_race(self) -> bool:
        """Whether it is a race in shared memory, which every launch has."""
        return self.kind is Kind.RACE and self.scope == "within a block" and self.access in ("read", "write")

    @property
    def line(self) -> int:
        return self.place.line if self.place else 0

    @property
    def threads(self) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """The distinct (block, thread) pairs in order: (bx, by), (tx, ty)."""
        return list(dict.fromkeys((t.block, t.thread) for t in self.touches))

    def to_json(self) -> dict[str, Any]:
        place = self.place
        other = self.other_place
        return {
            "kind": str(self.kind),
            "severity": str(self.severity),
            "basis": str(self.basis),
            "message": self.message,
            "file": place.file if place else None,
            "line": place.line if place else None,
            "column": place.column if place else None,
            "length": place.length if place else None,
            "text": place.text if place else None,
            "array": self.array,
            "access": self.access,
            "hazard": self.hazard,
            "scope": self.scope,
            "count": self.count,
            "hint": self.hint,
            "evidence": self.evidence,
            "wrong": asdict(self.wrong) if self.wrong else None,
            "other_line": other.line if other else None,
            "other_text": other.text if other else None,
            "touches": [
                {
                    "block": list(t.block),
                    "thread": list(t.thread),
                    "phase": t.phase,
                    "asked": list(t.requested) if t.requested is not None else None,
                    "reached": list(t.reached) if t.reached is not None else None,
                    "other": [list(t.other[0]), list(t.other[1])] if t.other is not None else None,
                    "value": t.value,
                }
                for t in self.touches
            ],
        }

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        return f"{where}{self.kind}: {self.message}"
