"""The basis of findings: seen in the run itself, only at other sizes, or not decided.

The program's own launch decides, if there is one. Without it, findings at sizes that are multiples of the tile count as
seen, those that need an edge as of other sizes, and those that rest on an assumed launch as not decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewise.emulator.check.simulate import Simulation
from tilewise.emulator.machine.findings import Basis, Finding, Kind, Severity
from tilewise.system.quantities import extent


@dataclass(frozen=True)
class Tried:
    """One run of a kernel and its reason: "own" (main's launch), "given" (requested), "free" or "probe"."""

    origin: str
    done: Simulation
    fits: bool = True  # every size is a multiple of the tile

    @property
    def whole(self) -> bool:
        """Whether it ran all blocks of the program's own launch."""
        return self.origin == "own" and self.done.launch.blocks is None


def assign_basis(tried: Sequence[Tried], main: bool = False, ran: bool = False) -> str:
    """Set the basis of every finding; the sentence that states it. `main`: the file has one, so that sizes chosen here
    count as other sizes. `ran`: it came to its end and launched this kernel."""
    if any(t.origin == "given" for t in tried):
        return ""
    if any(t.origin == "free" for t in tried):
        done = tried[0].done
        block, names = extent(done.geometry.block), ", ".join(done.bound.buffers)
        if ran:
            return (
                f"{done.reason}: barriers and shared memory were looked at in blocks of {block} threads, bounds in the "
                "run of main"
            )
        if not names:
            return f"{done.reason}: barriers and shared memory were looked at in blocks of {block} threads"
        return (
            f"{done.reason}: barriers and shared memory were looked at in blocks of {block} threads; the "
            f"length of {names} is not decided"
        )
    own = [t for t in tried if t.origin == "own"]
    if own:
        seen = {_key(f) for t in own for f in t.done.findings}
        for t in tried:
            _set(t.done.findings, seen)
        return _own_basis(own[0].done)
    fitting = [t for t in tried if t.fits]
    if any(t.done.assumed for t in tried):
        if not all(_fits(t.done) for t in fitting):
            for t in tried:
                for f in t.done.findings:
                    f.basis = Basis.UNDECIDED
            return _assumed_basis(tried[0].done) + "; what follows from that is not decided"
        basis = _assumed_basis(tried[0].done)
    else:
        basis = "the file fixes no sizes, so its launch was evaluated for these"
    shown = [{_key(f) for f in t.done.findings if not _zero_grid(t.done, f)} for t in fitting if not main]
    seen = set.intersection(*shown) if shown else set()  # at all sizes that are multiples of the tile
    seen |= {_key(f) for t in tried for f in t.done.findings if f.shared_race}
    for t in tried:
        _set(t.done.findings, seen)
        if not t.done.prepared.allocates_output(t.done.bound.matrices):
            _mark_undecided(t.done)
    return basis


def _key(finding: Finding) -> tuple[object, ...]:
    return finding.line, finding.kind, finding.array, finding.access, finding.hazard, finding.scope


def _set(findings: list[Finding], seen: set[tuple[object, ...]]) -> None:
    for f in findings:
        f.basis = Basis.SEEN if _key(f) in seen or f.severity is not Severity.FAULT else Basis.OTHER_SIZES


def _mark_undecided(done: Simulation) -> None:
    """P was allocated outside the function that launches: findings that rest on its old contents are not decided."""
    output = done.bound.of("P")
    unset = [f for f in done.findings if f.kind is Kind.UNINITIALISED_READ and output and f.array == output.name]
    for f in done.findings:
        if f in unset or (unset and f.kind is Kind.WRONG_PRODUCT):
            f.basis = Basis.UNDECIDED


def _zero_grid(done: Simulation, finding: Finding) -> bool:
    """Whether the launch has an empty grid, which happens for small sizes only."""
    return finding.kind is Kind.LAUNCH and min(done.geometry.grid) < 1


def _fits(done: Simulation) -> bool:
    """Whether an assumed launch fits the kernel: it covers P, stores nothing past P and fills the tiles."""
    output = done.bound.of("P")
    name = output.name if output is not None else ""
    shared = {name for name, *_ in done.launch.program.shared}
    for f in done.findings:
        if f.kind is Kind.UNCOVERED or (f.kind is Kind.UNINITIALISED_READ and f.array in shared):
            return False
        if f.kind in (Kind.OUT_OF_BOUNDS, Kind.SILENT_OVERRUN) and f.array == name and f.access == "store":
            return False
        if f.kind is Kind.OUT_OF_BOUNDS and f.array in shared and not done.prepared.has_own_tile:
            return False
    return True


def _own_basis(done: Simulation) -> str:
    sizes = ", ".join(f"{n} = {v}" for n, v in done.bound.sizes.items())
    grid, block = extent(done.geometry.grid), extent(done.geometry.block)
    return f"as main launches it, line {done.line}: grid {grid} of {block}" + (f", {sizes}" if sizes else "")


def _assumed_basis(done: Simulation) -> str:
    block = extent(done.geometry.block)
    return f"nothing here launches the kernel: blocks of {block} threads are taken from its tile"
