"""Cells that some thread stores to: of P by the end, of a shared array before they are read.

"For every cell there is a thread" becomes a question without "there is" by naming the thread: a store to
16 * by + ty takes cell R from by = R / 16 and ty = R % 16. The cell is not covered where that thread does not exist or
does not come to the store."""

from __future__ import annotations

from collections.abc import Iterable

from tilewise.emulator.prove.claim import Claim
from tilewise.emulator.prove.symbols import BLOCK, THREAD, Symbols
from tilewise.emulator.prove.terms import (
    ZERO,
    Cond,
    Poly,
    at_most,
    both,
    either,
    flags_of,
    mapped,
    negate,
    same,
    symbols_of,
    within,
)
from tilewise.emulator.prove.values import Access, Events, Region

STORING, ITERATION = ("store", "atomic"), "iteration#"


def uncovered(claim: Claim, region: Region, events: Events) -> Cond | None:
    """A cell of the matrix that no store takes; None where no thread could be named."""
    rows, columns = region.rows, region.columns
    if rows is None or columns is None or region.length is None:
        return None
    row, column = claim.symbols.fresh("row", launch=True), claim.symbols.fresh("column", launch=True)
    cell = row * columns + column
    inside = both(within(ZERO, row, rows), within(ZERO, column, columns))
    missed: list[Cond] = []
    for a in events.accesses:
        if a.region is not region or a.kind not in STORING:
            continue
        parts = [(a.offset, cell)]
        if columns.constant is None:
            q, r = a.offset.by(next(iter(columns.symbols)))
            parts = [(q, row), (r, column)] if q != ZERO else parts
        missed += [taken] if (taken := _missed(claim, a, parts, set())) is not None else []
    return both(inside, *missed) if missed else None


def unwritten(claim: Claim, events: Events) -> Iterable[tuple[Access, Cond | None]]:
    """Loads from shared memory of cells that no store before took; behind races, a store before is a barrier before."""
    for i, load in enumerate(events.accesses):
        if load.region.space != "shared" or load.kind == "store" or load.region.length is None:
            continue
        counters = {s for p in load.last for c in p.counters for s in c.symbols}
        shared = {s for s in symbols_of(load.path) | load.offset.symbols | counters if s.startswith(ITERATION)}
        fixed = shared | set(BLOCK)
        before = [a for a in events.accesses[:i] if a.region is load.region and a.kind == "store"]
        steps = [load.offset + cell for cell in range(load.width)]
        missed: list[Cond] = []
        for cell in steps:
            found = [_missed(claim, a, [(a.offset, cell)], fixed) for a in before]
            named = [f for f in found if f is not None]
            if not named:
                missed = []
                break
            missed.append(both(*named))
        inside = within(ZERO, load.offset, load.region.length - (load.width - 1))
        yield load, both(load.path, inside, either(*missed)) if missed else None


def _missed(claim: Claim, store: Access, parts: list[tuple[Poly, Poly]], fixed: set[str]) -> Cond | None:
    """That the thread named by the cells does not come to this store. `fixed` symbols are the reader's too."""
    symbols = claim.symbols
    chosen: dict[str, Poly] = {}
    exact: list[Cond] = []
    extra: dict[str, Cond] = {}  # symbols of parts of an index, and their ranges
    if store.width > 1:
        lane = symbols.fresh("lane")
        extra |= dict.fromkeys(lane.symbols, within(ZERO, lane, Poly.of(store.width)))
        parts = [(form + lane if i == len(parts) - 1 else form, cell) for i, (form, cell) in enumerate(parts)]
    left = list(parts)
    while left:
        form, target = left.pop()
        form, behind = _without_quotients(symbols, form, fixed, extra)
        free = [s for s in form.symbols if s not in fixed and s not in symbols.launch]
        if not form.linear or any(s in chosen or not (_free(s) or s in extra) for s in free):
            return None
        rest = target - Poly({m: c for m, c in form.terms.items() if not m or m[0] not in free})
        for s in sorted(free, key=lambda s: (-form.terms[(s,)], s)):
            if form.terms[(s,)] < 1:
                return None
            chosen[s], rest = symbols.divided(rest, form.terms[(s,)])
        exact.append(same(rest, ZERO))
        chosen |= {s: ZERO for _, whole in behind for s in whole.symbols - chosen.keys()}
        left += [(value, whole.replace(chosen)) for value, whole in behind]
    mentioned = symbols_of(store.path) | chosen.keys()
    every = mentioned | {s for f in symbols.closure(mentioned) for s in symbols_of(f)}
    chosen |= {s: ZERO for s in every - chosen.keys() - fixed if _free(s)}  # what the cell does not depend on
    if any(s in symbols.data for s in every) or any(f in symbols.data for f in flags_of(store.path)):
        return None
    named = dict(chosen)
    for s in every - chosen.keys() - fixed - symbols.launch:
        named[s] = symbols.fresh("named", launch=True)
    ranges: list[Cond] = [*extra.values(), *(c for s in chosen for c in symbols.facts.get(s, []))]
    given = [c for s in named.keys() - chosen.keys() for c in symbols.facts.get(s, [])]

    def renamed(cond: Cond) -> Cond:
        return mapped(cond, lambda p: p.replace(named), lambda f: f)

    return both(*map(renamed, given), negate(both(*exact, *map(renamed, ranges), renamed(store.path))))


def _without_quotients(
    symbols: Symbols, form: Poly, fixed: set[str], extra: dict[str, Cond]
) -> tuple[Poly, list[tuple[Poly, Poly]]]:
    """An index made of v / c and v % c, over two symbols of their own; and that v is c times the one plus the other."""
    behind: list[tuple[Poly, Poly]] = []
    for name in sorted(form.symbols & symbols.quotients.keys() - symbols.launch):
        value, by = symbols.quotients[name]
        if isinstance(by, Poly):
            continue
        pivots = [s for s in sorted(value.symbols) if value.terms.get((s,)) == 1 and _free(s) and s not in fixed]
        if pivots:
            quotient, rest = Poly.of(name), symbols.fresh("rest")
            extra |= dict.fromkeys(quotient.symbols, at_most(ZERO, quotient))
            extra |= dict.fromkeys(rest.symbols, within(ZERO, rest, Poly.of(by)))
            whole = quotient * by + rest
            form = form.replace({pivots[0]: whole - value + Poly.of(pivots[0])})
            behind.append((value, whole))
    return form, behind


def _free(symbol: str) -> bool:
    """A thread, a block or an iteration: what may be chosen."""
    return symbol in THREAD or symbol in BLOCK or symbol.startswith(ITERATION)
