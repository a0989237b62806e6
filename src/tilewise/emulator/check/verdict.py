"""What the findings of a kernel's runs rest on: seen in the run itself, only at other sizes, or not decided.

The program's own launch decides where there is one. Without it, what shows at sizes that fit the tile shows always;
what needs an edge happens at other sizes; and what rests on a launch that nobody wrote is not decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewise.emulator.check.simulate import Simulation
from tilewise.emulator.machine.findings import Basis, Finding, Kind, Severity
from tilewise.system.quantities import extent


@dataclass(frozen=True)
class Tried:
    """One run of a kernel and why it was made: "own" (as main launches it), "given" (as asked for) or "probe"."""

    origin: str
    done: Simulation
    fits: bool = True  # every size is a multiple of the tile

    @property
    def whole(self) -> bool:
        """Whether it is all of the program's own launch."""
        return self.origin == "own" and self.done.launch.blocks is None


def settle(tried: Sequence[Tried], main: bool = False) -> str:
    """Give every finding its basis; the sentence that says on what the verdict stands. `main`: the file has one, so
    that sizes chosen by this check alone are other sizes."""
    if any(t.origin == "given" for t in tried):
        return ""
    if any(t.origin == "free" for t in tried):
        done = tried[0].done
        block = extent(done.geometry.block)
        return (
            f"{done.reason}: barriers and shared memory were looked at in blocks of {block} threads; whether "
            f"{', '.join(done.bound.buffers)} are long enough is not decided"
        )
    own = [t for t in tried if t.origin == "own"]
    if own:
        seen = {_key(f) for t in own for f in t.done.findings}
        for t in tried:
            _set(t.done.findings, seen)
        return _own_words(own[0].done)
    fitting = [t for t in tried if t.fits]
    if any(t.done.invented for t in tried):
        if not all(_stands(t.done) for t in fitting):
            for t in tried:
                for f in t.done.findings:
                    f.basis = Basis.UNDECIDED
            return _invented_words(tried[0].done) + "; what follows from that is not decided"
        words = _invented_words(tried[0].done)
    else:
        words = "the file fixes no sizes, so its launch was evaluated for these"
    shown = [{_key(f) for f in t.done.findings if not _zero_grid(t.done, f)} for t in fitting if not main]
    seen = set.intersection(*shown) if shown else set()  # at sizes that fit, and at square ones, too
    seen |= {_key(f) for t in tried for f in t.done.findings if _missing_barrier(f)}
    for t in tried:
        _set(t.done.findings, seen)
        if not t.done.prepared.allocates_output(t.done.bound.matrices):
            _doubt(t.done)
    return words


def _key(finding: Finding) -> tuple[object, ...]:
    return finding.line, finding.kind, finding.array, finding.access, finding.hazard, finding.scope


def _set(findings: list[Finding], seen: set[tuple[object, ...]]) -> None:
    for f in findings:
        f.basis = Basis.SEEN if _key(f) in seen or f.severity is not Severity.FAULT else Basis.OTHER_SIZES


def _doubt(done: Simulation) -> None:
    """P was allocated, and perhaps cleared, where the walk did not come: what it held is not known."""
    output = done.bound.of("P")
    unread = [f for f in done.findings if f.kind is Kind.UNINITIALISED_READ and output and f.array == output.name]
    for f in done.findings:
        if f in unread or (unread and f.kind is Kind.WRONG_PRODUCT):
            f.basis = Basis.UNDECIDED


def _zero_grid(done: Simulation, finding: Finding) -> bool:
    """A grid that comes to nothing does so for small sizes only."""
    return finding.kind is Kind.LAUNCH and min(done.geometry.grid) < 1


def _missing_barrier(finding: Finding) -> bool:
    """A race in shared memory: no launch makes it right."""
    return finding.kind is Kind.RACE and finding.scope == "within a block" and finding.access in ("read", "write")


def _stands(done: Simulation) -> bool:
    """Whether an invented launch fits the kernel. One that does not leaves cells of P out, stores past P, or leaves
    parts of a tile empty."""
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


def _own_words(done: Simulation) -> str:
    line = done.site.launch.span.line if done.site is not None else 0
    sizes = ", ".join(f"{n} = {v}" for n, v in done.bound.sizes.items())
    grid, block = extent(done.geometry.grid), extent(done.geometry.block)
    return f"as main launches it, line {line}: grid {grid} of {block}" + (f", {sizes}" if sizes else "")


def _invented_words(done: Simulation) -> str:
    block = extent(done.geometry.block)
    return f"nothing here launches the kernel: blocks of {block} threads are taken from its tile"
