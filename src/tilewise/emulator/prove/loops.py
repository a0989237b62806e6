"""Loops of one generic thread: every iteration at once, each barrier with the counters around it.

A loop is executed twice. The first pass, with every changed variable unknown, shows by how much each grows in an
iteration; in the second a variable that grows by c is v + c * t in iteration t >= 0, checked at its end, and any other
is unknown. Loops that do not grow so are executed iteration by iteration where their condition is a constant."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace

from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Scalar, Type
from tilewise.emulator.prove.expressions import Expressions, changes
from tilewise.emulator.prove.terms import (
    FALSE,
    TRUE,
    ZERO,
    All,
    AtMostZero,
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
)
from tilewise.emulator.prove.values import (
    ANY,
    Events,
    Fields,
    Int,
    Nothing,
    NotModelled,
    Passed,
    Pointer,
    Real,
    Ref,
    State,
    Value,
)

UNROLLED = 64
ENTRY = "entry"


@dataclass
class Frame:
    """A function being executed: what it has returned so far, and on which path."""

    result: Type | None
    returned: list[tuple[Cond, Value]] = field(default_factory=list)


@dataclass
class Loop:
    """A loop as its node says: `after` for do … while."""

    condition: tree.Node | None
    step: tree.Node | None
    body: tree.Node
    after: bool
    node: tree.Node
    left: bool = False  # a thread may leave it by break or return
    skipped: list[State] = field(default_factory=list)  # at its `continue`s
    broken: list[State] = field(default_factory=list)  # at its `break`s


@dataclass
class Loops(Expressions):
    frames: list[Frame] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)

    @abstractmethod
    def execute(self, node: tree.Node | None) -> None:
        """A statement."""

    def loop(self, loop: Loop) -> None:
        before = self.state
        if loop.after and changes(loop.condition):
            raise NotModelled("do … while with a condition that changes a variable", loop.node.line)
        changed = self._changed(loop)
        while True:
            growth, end, uneven, more = self._rehearsed(loop, changed)
            if not more:
                break
            changed += more
        if uneven and self._unrolled(loop, before):
            return
        self.state = before
        t = self.symbols.fresh("iteration")
        self.symbols.fact(t, at_most(ZERO, t))
        meets = not all(p.barrier == ENTRY for p in end)
        last = self._last_before(before.last, end, t) if meets else before.last
        state = before.fork(before.path)
        state.last = last
        state.counters = (*before.counters, t) if meets else before.counters
        self._grown(state, before, growth, t, loop.node)
        self.state = state
        entered = self._iteration(loop, t)
        for slot, by in growth.items():
            value, start = self.state.variables[slot], before.variables[slot]
            if by is not None and (not _alike(value, start) or _plain(value) != _plain(start) + by * (t + 1)):
                raise NotModelled("a loop whose variables do not grow evenly", loop.node.line)
        self._after(loop, before, growth, end if meets else None, entered, t)

    def _changed(self, loop: Loop) -> list[int]:
        found: dict[int, None] = {}
        for part in (p for n in (loop.condition, loop.step, loop.body) for p in tree.walk(n)):
            target = (
                part.target if isinstance(part, tree.Assign) else part.operand if isinstance(part, tree.Step) else None
            )
            slot = self.slot(target.name) if isinstance(target, tree.Name) else None
            if slot is not None and not isinstance(self.state.variables[slot], Ref | Fields):
                found[slot] = None
        return list(found)

    def _unknown(self, slot: int, value: Value, why: str) -> Value:
        if isinstance(value, Pointer):
            offset = self.symbols.unknown(types.LONG, why)
            return Pointer(Ref(value.place.region, offset, value.place.type))
        type_ = self.typed[slot]
        if isinstance(type_, Scalar) and type_.integral:
            return Int(self.symbols.unknown(type_, why), type_)
        return Nothing() if isinstance(type_, types.Pointer) else Real()

    def _rehearsed(
        self, loop: Loop, changed: list[int]
    ) -> tuple[dict[int, Poly | None], tuple[Passed, ...], bool, list[int]]:
        """By how much each variable grows in an iteration (None: unevenly), the last barriers of one, whether the
        loop's condition depends on a variable that grows unevenly, and variables that change beside `changed`."""
        before, events, returned = self.state, self.events, list(self.frames[-1].returned)
        self.events = Events()
        state = before.fork(before.path)
        state.last = (Passed(TRUE, ENTRY),)
        mark = self.symbols.fresh("iteration")
        state.counters = (*before.counters, mark)
        first: dict[int, Poly] = {}
        for slot in changed:
            state.variables[slot] = self._unknown(
                slot, before.variables[slot], f"it changes in the loop of line {loop.node.line}"
            )
            if _number_like(state.variables[slot]):
                first[slot] = _plain(state.variables[slot])
        fixed, changing = self.symbols.count, {s for p in first.values() for s in p.symbols}
        self.state = state
        goes_on = self._iteration(replace(loop, skipped=[], broken=[]), mark)
        growth: dict[int, Poly | None] = {}
        for slot, start in first.items():
            value, old = self.state.variables[slot], before.variables[slot]
            if isinstance(value, Pointer) and not _alike(value, old):
                raise NotModelled("a pointer to one of two arrays", loop.node.line)
            by = _plain(value) - start if _alike(value, old) else None
            fixed_by = by is not None and not any(_made(s) > fixed or s in changing for s in by.symbols)
            growth[slot] = by if fixed_by else None
        end, behind = self.state.last, self.state.variables
        more = [s for s, v in before.variables.items() if s not in changed and behind[s] != v]
        self.events, self.state = events, before
        self.frames[-1].returned = returned
        moved = tuple(Passed(TRUE, p.barrier, self._counters(p, before, mark)) for p in end)
        uneven = {s for slot, by in growth.items() if by is None for s in first[slot].symbols}
        return growth, moved, bool(uneven & symbols_of(goes_on)), more

    def _counters(self, passed: Passed, before: State, mark: Poly) -> tuple[Poly, ...]:
        """Counters as a function of this loop's iteration, the last of `known`; those of inner loops are left open."""
        known = len(before.counters) + 1
        open_ = (self.symbols.fresh("inner") for _ in passed.counters[known:])
        return (*passed.counters[: known - 1], *(ZERO for _ in passed.counters[known - 1 : known]), *open_)

    def _last_before(self, before: tuple[Passed, ...], end: tuple[Passed, ...], t: Poly) -> tuple[Passed, ...]:
        """The last barrier at the start of iteration t."""
        first = same(t, ZERO)
        if any(p.barrier in (ENTRY, ANY) for p in end):
            return (Passed(TRUE, ANY),)
        depth = len(self.state.counters)
        again = [Passed(negate(first), p.barrier, _at(p.counters, depth, t - 1)) for p in end]
        return (*(Passed(both(first, p.when), p.barrier, p.counters) for p in before), *again)

    def _grown(self, state: State, before: State, growth: dict[int, Poly | None], t: Poly, node: tree.Node) -> None:
        """The variables as iteration t finds them."""
        for slot, by in growth.items():
            value = before.variables[slot]
            if by is None:
                state.variables[slot] = self._unknown(
                    slot, value, f"it changes unevenly in the loop of line {node.line}"
                )
            elif isinstance(value, Pointer):
                state.variables[slot] = Pointer(replace(value.place, offset=value.place.offset + by * t))
            elif isinstance(value, Int):
                state.variables[slot] = Int(value.poly + by * t, value.type)
            else:
                state.variables[slot] = self._unknown(slot, value, f"it changes in the loop of line {node.line}")

    def _monotone(self, cond: Cond, t: Poly) -> bool:
        """Whether it ends, and holds in every iteration before one in which it holds: e + c * t <= 0 with c > 0,
        and e the same in every iteration."""
        (name,) = t.symbols
        parts = cond.parts if isinstance(cond, All) else (cond,)
        grows = [isinstance(p, AtMostZero) and _positive(p.poly.by(name)[0]) for p in parts]
        inside = {s for s in symbols_of(cond) if _made(s) > _made(name)}  # made in this iteration
        behind = {s for c in self.symbols.closure(inside) for s in symbols_of(c)}
        varying = name in behind or any(s in self.symbols.data for s in (*inside, *behind) if _made(s) > _made(name))
        return bool(parts) and all(grows) and not varying

    def _iteration(self, loop: Loop, t: Poly) -> Cond:
        """One of its iterations, by the threads that come to it; the condition under which they do."""
        if loop.condition is not None and not loop.after and not changes(loop.condition):
            self.state.path = both(self.state.path, self._came(loop.condition, t))
        goes_on = self.condition(loop.condition) if loop.condition is not None else TRUE
        if loop.after:
            goes_on = either(same(t, ZERO), goes_on)
        self.state.path = both(self.state.path, goes_on)
        if _leaves(loop.body) or not self._monotone(goes_on, t):
            why = f"which iterations of the loop of line {loop.node.line} a thread comes to is not known"
            self.state.path = both(self.state.path, self.symbols.flag(why))
        self._body(loop)
        return goes_on

    def _came(self, condition: tree.Node, t: Poly) -> Cond:
        """Where its condition needs a range of the counter: this is the first iteration, or it held in the one before.
        That is induction: the ranges of that one have been shown by then."""
        events, self.events = self.events, Events()
        held = self.condition(condition)
        ranges, self.events = self.events.ranges, events
        (name,) = t.symbols
        fixed = not any(_made(s) > _made(name) for s in symbols_of(held)) and not flags_of(held)
        if not fixed or not any(name in symbols_of(o.must) for o in ranges):
            return TRUE
        return either(same(t, ZERO), _replaced(held, name, t - 1))

    def _body(self, loop: Loop) -> None:
        """The body and the step. Threads that `continue` did a part of it: what that changes is not known."""
        start = self.state
        self.state = start.fork(start.path)
        self.loops.append(loop)
        self.execute(loop.body)
        self.loops.pop()
        if loop.skipped:
            self.state.path = either(self.state.path, *(s.path for s in loop.skipped))
            for slot, value in start.variables.items():
                if any(s.variables[slot] is not value for s in (self.state, *loop.skipped)):
                    why = f"some threads continue in the loop of line {loop.node.line}"
                    self.state.variables[slot] = self._unknown(slot, value, why)
            if self.events.barriers:
                self.state.last = (Passed(TRUE, ANY),)
        if self.state.path != FALSE and loop.step is not None:
            self.rvalue(loop.step)

    def _after(
        self, loop: Loop, before: State, growth: dict[int, Poly | None], end: tuple[Passed, ...] | None, goes_on: Cond,
        t: Poly,
    ) -> None:  # fmt: skip
        """Behind the loop, after `trips` iterations of which the last was trips - 1."""
        out = before.fork(before.path)
        trips = self.symbols.fresh("trips")
        name = next(iter(t.symbols))
        self.symbols.fact(trips, at_most(ZERO, trips))
        if loop.left or changes(loop.condition):  # what a part of an iteration changed is not known
            beside = {s for b in loop.broken for s, v in before.variables.items() if b.variables[s] != v}
            growth = dict.fromkeys((*growth, *beside))
        even = not loop.left and not loop.after and self._monotone(goes_on, t)
        if even:
            ended = negate(_replaced(goes_on, name, trips))
            again = either(same(trips, ZERO), _replaced(goes_on, name, trips - 1))
            self.symbols.fact(trips, either(negate(before.path), both(ended, again)))
        elif _ends(loop.body):
            out.path = both(out.path, self.symbols.flag(f"threads may end in the loop of line {loop.node.line}"))
        self._grown(out, before, growth, trips, loop.node)
        if end is not None:
            if any(p.barrier in (ENTRY, ANY) for p in end):
                out.last = (Passed(TRUE, ANY),)
            else:
                none, depth = same(trips, ZERO), len(before.counters)
                behind = [Passed(negate(none), p.barrier, _at(p.counters, depth, trips - 1)) for p in end]
                out.last = (*(Passed(both(none, p.when), p.barrier, p.counters) for p in before.last), *behind)
        self.state = out

    def _unrolled(self, loop: Loop, before: State) -> bool:
        """Iteration by iteration, where the condition is a constant each time."""
        events, slots = Events(*(list(part) for part in vars(self.events).values())), self.slots
        returned = list(self.frames[-1].returned)
        self.state = before.fork(before.path)
        for i in range(UNROLLED):
            if loop.condition is not None and not (loop.after and i == 0):
                goes_on = self.condition(loop.condition)
                if goes_on == FALSE:
                    self.state.counters = before.counters
                    return True
                if goes_on != TRUE:
                    break
            if loop.condition is None:
                break
            self.state.counters = (*before.counters, Poly.of(i))
            inner = replace(loop, skipped=[], broken=[])
            self._body(inner)
            if inner.left:
                break
        self.events, self.slots = events, slots
        self.frames[-1].returned = returned
        return False


def _plain(value: Value) -> Poly:
    if isinstance(value, Int):
        return value.poly
    assert isinstance(value, Pointer)
    return value.place.offset


def _number_like(value: Value) -> bool:
    return isinstance(value, Int | Pointer)


def _alike(one: Value, two: Value) -> bool:
    """Two integers, or pointers into one array to one type."""
    if isinstance(one, Pointer) and isinstance(two, Pointer):
        return one.place.region is two.place.region and one.place.type == two.place.type
    return isinstance(one, Int) and isinstance(two, Int)


def _made(symbol: str) -> int:
    number = symbol.rpartition("#")[2]
    return int(number) if number.isdigit() else 0


def _at(counters: tuple[Poly, ...], depth: int, value: Poly) -> tuple[Poly, ...]:
    return (*counters[:depth], value, *counters[depth + 1 :])


def _ends(body: tree.Node) -> bool:
    return any(isinstance(part, tree.Return) for part in tree.walk(body))


def _leaves(body: tree.Node) -> bool:
    return _ends(body) or any(isinstance(part, tree.Jump) and part.keyword == "break" for part in tree.walk(body))


def _replaced(cond: Cond, name: str, value: Poly) -> Cond:
    return mapped(cond, lambda p: p.replace({name: value}), lambda f: f)


def _positive(by: Poly) -> bool:
    """A sum of positive constants and sizes."""
    return bool(by.terms) and all(c > 0 and not any("#" in s or "Idx" in s for s in m) for m, c in by.terms.items())
