"""Collects the findings of a run."""

from __future__ import annotations

from collections.abc import Callable

from tilewise.emulator.host.runtime.memory import Allocation
from tilewise.emulator.machine.findings import Finding, Kind, Severity
from tilewise.emulator.source.source import Place, Source

COMPILED = ("kernel", "load", "store")  # values of `access` in findings of compiled kernels
CAUSED_BY_EMPTY_INPUT = frozenset(  # possibly
    {Kind.UNINITIALISED_READ, Kind.DIVISION, Kind.LAUNCH, Kind.NULL_POINTER}
)


class Faults:
    """Findings, one for each kind, line and array (or access), with a count."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.found: dict[tuple[Kind, int, str], Finding] = {}
        self.kernel: list[Finding] = []  # the interpreter's
        self.notes: list[str] = []
        self.announce: Callable[[], None] | None = None  # called once, at the first fault
        self.on_missing_input: Callable[[int], None] | None = None  # ends the run at a fault CAUSED_BY_EMPTY_INPUT

    def add(
        self, kind: Kind, line: int, message: str, hint: str = "", *, array: str = "", access: str = "",
        other_line: int = 0, evidence: str = "",
    ) -> Finding:  # fmt: skip
        key = (kind, line, array or access)
        known = self.found.get(key)
        if known is not None:
            known.count += 1
            return known
        made = Finding(kind, message, self.place(line), array, access, hint=hint, count=1, evidence=evidence)
        if other_line:
            made.other_place = self.place(other_line)
        self._announce(made)
        self.found[key] = made
        return made

    def add_of(
        self, block: Allocation, kind: Kind, line: int, message: str, hint: str, access: str, other: int = 0
    ) -> Finding:
        """A finding about an allocation: its array is the block's name, or the line that allocated it."""
        return self.add(kind, line, message, hint, array=block.name or str(block.line), access=access, other_line=other)

    def drop_reads_before_racing_stores(self) -> None:
        """Threads run one after the other: what one reads before another stores to it is a race, and no uninitialised
        read."""
        races = [f for f in self.found.values() if f.kind is Kind.RACE]
        racing = {(f.array, place.line) for f in races for place in (f.place, f.other_place) if place is not None}
        for key, f in list(self.found.items()):
            if f.kind is Kind.UNINITIALISED_READ and (f.array, f.line) in racing:
                del self.found[key]

    def add_kernel(self, finding: Finding) -> None:
        self._announce(finding)
        self.kernel.append(finding)

    def _announce(self, finding: Finding) -> None:
        if finding.severity is not Severity.FAULT:
            return
        if self.on_missing_input is not None and finding.kind in CAUSED_BY_EMPTY_INPUT:
            end, self.on_missing_input = self.on_missing_input, None
            end(finding.line)
        if self.announce is not None:
            announce, self.announce = self.announce, None
            announce()

    def place(self, line: int) -> Place:
        text = self.source.line(line)
        column = len(text) - len(text.lstrip()) + 1
        return self.source.place(line, column, max(1, len(text.strip())))

    def has(self, kind: Kind) -> bool:
        return any(k[0] is kind for k in self.found)

    def all(self) -> list[Finding]:
        """All findings; of those of compiled kernels only what the interpreter, which is more precise, did not find."""
        known = {(f.kind, f.line) for f in self.kernel}
        found = list(self.found.values())  # at once: other threads of the program may still add to it
        own = (f for f in found if f.access not in COMPILED or (f.kind, f.line) not in known)
        return [*own, *self.kernel]
