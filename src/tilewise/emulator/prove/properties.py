"""The properties of a kernel as conditions that no size may meet: each the list of its possible faults."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilewise.emulator.machine.findings import Finding, Kind
from tilewise.emulator.prove.claim import Claim
from tilewise.emulator.prove.coverage import uncovered, unwritten
from tilewise.emulator.prove.symbols import BLOCK, THREAD, differ
from tilewise.emulator.prove.terms import ZERO, Cond, Poly, at_most, both, either, negate, same, within
from tilewise.emulator.prove.values import ANY, Access, Events, Passed

FIRST, SECOND, ELSEWHERE = "1.a", "2.a", "2.b"
NO_THREAD = "which thread stores to a cell does not follow from the index"


@dataclass(frozen=True)
class Fault:
    """A fault that must be impossible."""

    cond: Cond
    line: int
    array: str = ""
    other: int = 0  # line of the other access
    by_data: bool = False  # the index is made of values of an array, which only the program knows


@dataclass(frozen=True)
class Property:
    name: str
    statement: str
    kinds: frozenset[Kind]
    faults: tuple[Fault, ...]
    rests: tuple[str, ...] = ()  # on these being proved
    undecided: tuple[tuple[int, str], ...] = ()

    def shown_by(self, finding: Finding) -> bool:
        """Whether a finding of the emulator is a fault of this property."""
        if finding.kind not in self.kinds:
            return False
        if finding.kind not in (Kind.OUT_OF_BOUNDS, Kind.RACE, Kind.SILENT_OVERRUN):
            return True
        found = [fault for fault in self.faults if fault.array == finding.array]
        here = [fault for fault in found if fault.line == finding.line]
        return bool(found) and not (here and all(fault.by_data for fault in here))


def properties(claim: Claim, events: Events) -> list[Property]:
    spaces = {"global": "global memory", "shared": "shared memory"}
    text = "every grid has a block, every block at most 1,024 threads, 64 along z"
    site = claim.prepared.site
    line = site.launch.line if site is not None else claim.prepared.function.line
    made = [Property("launch", text, frozenset({Kind.LAUNCH}), tuple(Fault(c, line) for c in claim.refused()))]
    for space, text in spaces.items():
        inside = tuple(_bounds(claim, events, (space,) if space == "global" else (space, "local")))
        if inside or space == "global":
            kinds = frozenset({Kind.OUT_OF_BOUNDS, Kind.SILENT_OVERRUN} if space == "shared" else {Kind.OUT_OF_BOUNDS})
            unknown = [(a.line, f"how long {a.region.name} is") for a in events.accesses
                       if a.region.space == space and a.region.length is None]  # fmt: skip
            made.append(Property(f"{space} bounds", f"every access to {text} is inside its array", kinds, inside,
                                 undecided=tuple(unknown[:1])))  # fmt: skip
    if any(region.rows is not None for region in claim.regions.values()):
        rows, open_ = _rows(events)
        made.append(Property("rows", "every access to a matrix is inside its row", frozenset({Kind.SILENT_OVERRUN}),
                             tuple(rows), undecided=tuple(open_)))  # fmt: skip
    races = frozenset({Kind.RACE})
    if any(a.region.space == "shared" for a in events.accesses):
        text = "no two threads meet in a shared cell between two barriers, one of them writing"
        made.append(Property("shared races", text, races, tuple(_races(claim, events, "shared")), ("barriers",)))
        made.append(_filled(claim, events))
    text = "no two threads meet in a cell of global memory, one of them writing"
    made.append(Property("global races", text, races, tuple(_races(claim, events, "global")), ("barriers",)))
    if events.barriers:
        text = "every barrier is reached by all threads of a block or by none"
        divergent = frozenset({Kind.DIVERGENT_BARRIER})
        made.append(Property("barriers", text, divergent, tuple(_barriers(claim, events))))
    if (made_p := claim.output) is not None:
        missed, line = uncovered(claim, made_p, events), claim.prepared.function.line
        made.append(Property("coverage", f"every cell of {made_p.name} is stored to", frozenset({Kind.UNCOVERED}),
                             (Fault(missed, line, made_p.name),) if missed is not None else (),
                             undecided=() if missed is not None else ((line, NO_THREAD),)))  # fmt: skip
    return made


def _filled(claim: Claim, events: Events) -> Property:
    found = list(unwritten(claim, events))
    faults = tuple(Fault(cond, a.line, a.region.name) for a, cond in found if cond is not None)
    undecided = tuple((a.line, NO_THREAD) for a, cond in found if cond is None)
    text = "every cell of shared memory is stored to before it is read"
    return Property("shared reads", text, frozenset({Kind.UNINITIALISED_READ}), faults, ("barriers", "shared races"),
                    undecided)  # fmt: skip


def _bounds(claim: Claim, events: Events, spaces: tuple[str, ...]) -> Iterator[Fault]:
    for a in events.accesses:
        if a.region.space in spaces and a.region.length is not None:
            inside = within(ZERO, a.offset, a.region.length - (a.width - 1))
            by_data = bool(claim.symbols.behind(a.offset) & claim.symbols.loaded)
            yield Fault(both(a.path, negate(inside)), a.line, a.region.name, by_data=by_data)
        elif a.region.space in spaces:
            yield Fault(a.path, a.line, a.region.name)
    for region, must in events.dimensions:
        if region.space in spaces:
            yield Fault(both(must.path, negate(must.must)), must.line, region.name)


def _rows(events: Events) -> tuple[list[Fault], list[tuple[int, str]]]:
    """An index q * LD + r must have 0 <= r < LD, with q and r as the index is written."""
    faults: list[Fault] = []
    undecided: list[tuple[int, str]] = []
    for a in events.accesses:
        rows, columns = a.region.rows, a.region.columns
        if rows is None or columns is None:
            continue
        (width,) = columns.symbols
        q, r = a.offset.by(width)
        if not r.linear or not q.linear:
            strange = sorted(
                {s for m in (*q.terms, *r.terms) if len(m) > 1 for s in m if "#" not in s and "." not in s}
            )
            if strange and q == ZERO:  # another leading dimension
                q, r = a.offset.by(strange[0])
                meant = both(same(q * columns, q * Poly.of(strange[0])), _in_row(q, r, rows, columns, a.width))
                faults.append(Fault(both(a.path, negate(meant)), a.line, a.region.name))
            else:
                undecided.append((a.line, f"the index of {a.region.name} is no row and column"))
            continue
        faults.append(Fault(both(a.path, negate(_in_row(q, r, rows, columns, a.width))), a.line, a.region.name))
    return faults, undecided


def _in_row(q: Poly, r: Poly, rows: Poly, columns: Poly, width: int) -> Cond:
    return both(within(ZERO, q, rows), within(ZERO, r, columns - (width - 1)))


def _races(claim: Claim, events: Events, space: str) -> Iterator[Fault]:
    found = list(dict.fromkeys(a for a in events.accesses if a.region.space == space))
    for i, a in enumerate(found):
        for b in found[i:]:
            kinds = {a.kind, b.kind}
            if a.region is not b.region or kinds in ({"load"}, {"atomic"}):
                continue
            meets = _meet(claim, a, b, SECOND)
            meets = both(meets, _same_interval(claim, a, b), differ(claim.symbols, THREAD, FIRST, SECOND))
            yield Fault(meets, a.line, a.region.name, b.line)
            if space == "global":
                apart = both(_meet(claim, a, b, ELSEWHERE), differ(claim.symbols, BLOCK, FIRST, ELSEWHERE))
                yield Fault(apart, a.line, a.region.name, b.line)


def _meet(claim: Claim, a: Access, b: Access, other: str) -> Cond:
    symbols = claim.symbols
    first, second = symbols.renamed(a.offset, FIRST), symbols.renamed(b.offset, other)
    if a.width == b.width == 1:
        overlap = same(first, second)
    else:
        overlap = both(at_most(first - second, Poly.of(b.width - 1)), at_most(second - first, Poly.of(a.width - 1)))
    inside = [within(ZERO, start, x.region.length - (x.width - 1))
              for x, start in ((a, first), (b, second)) if x.region.length is not None]  # fmt: skip
    return both(symbols.copied(a.path, FIRST), symbols.copied(b.path, other), overlap, *inside)


def _same_interval(claim: Claim, a: Access, b: Access) -> Cond:
    symbols = claim.symbols

    def both_passed(p: Passed, q: Passed) -> Cond:
        when = both(symbols.copied(p.when, FIRST), symbols.copied(q.when, SECOND))
        if ANY in (p.barrier, q.barrier):
            return when
        if p.barrier != q.barrier or len(p.counters) != len(q.counters):
            return either()
        equal = [same(symbols.renamed(x, FIRST), symbols.renamed(y, SECOND))
                 for x, y in zip(p.counters, q.counters, strict=True)]  # fmt: skip
        return both(when, *equal)

    return either(*(both_passed(p, q) for p in a.last for q in b.last))


def _barriers(claim: Claim, events: Events) -> Iterator[Fault]:
    symbols = claim.symbols
    for b in dict.fromkeys(events.barriers):
        equal = [same(symbols.renamed(c, FIRST), symbols.renamed(c, SECOND)) for c in b.counters]
        reached, missed = symbols.copied(b.path, FIRST), negate(symbols.copied(b.path, SECOND))
        here = [at_most(ZERO, Poly.of(symbols.own(n, who))) for n in THREAD for who in (FIRST, SECOND)]
        yield Fault(both(reached, *equal, *here, missed), b.line)


def overflow(events: Events, host: Events | None = None) -> list[Fault]:
    """Arithmetic that leaves its type; `other` is the expression."""
    ranges = dict.fromkeys((*events.ranges, *(host.ranges if host is not None else ())))
    return [Fault(both(o.path, negate(o.must)), o.line, o.what, o.node) for o in ranges]
