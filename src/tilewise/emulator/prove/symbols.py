"""The symbols of one kernel: whose each is (the launch's, a block's or a thread's) and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tilewise.emulator.parse.types import Scalar
from tilewise.emulator.prove.terms import (
    ONE,
    TRUE,
    ZERO,
    All,
    Cond,
    Flag,
    Poly,
    at_most,
    below,
    both,
    either,
    flags_of,
    mapped,
    negate,
    same,
    symbols_of,
    within,
)

AXES = ("x", "y", "z")
THREAD = tuple(f"threadIdx.{axis}" for axis in AXES)
BLOCK = tuple(f"blockIdx.{axis}" for axis in AXES)


@dataclass
class Symbols:
    """`facts` of a symbol hold whenever it is mentioned. Symbols that are neither the launch's nor a block's are a
    thread's own: two generic threads have two of each."""

    sizes: list[str] = field(default_factory=list)  # at least 1, the same for the whole launch
    launch: set[str] = field(default_factory=set)
    fixed: dict[str, int] = field(default_factory=dict)  # constants that rows are told apart by
    facts: dict[str, list[Cond]] = field(default_factory=dict)
    data: dict[str, str] = field(default_factory=dict)  # symbols whose value is not modelled: why
    loaded: set[str] = field(default_factory=set)  # those of them that are values of the program's arrays
    quotients: dict[str, tuple[Poly, int | Poly]] = field(default_factory=dict)  # value and divisor
    remainders: dict[str, tuple[Poly, Poly]] = field(default_factory=dict)  # of divisors that are no constants
    choices: dict[str, tuple[Cond, Poly, Poly]] = field(default_factory=dict)  # condition ? the one : the other
    wrapped: dict[int, set[str]] = field(default_factory=dict)  # by expression: what stands for a value that may wrap
    count: int = 0

    def fresh(self, hint: str, *, launch: bool = False) -> Poly:
        self.count += 1
        name = f"{hint}#{self.count}"
        if launch:
            self.launch.add(name)
        return Poly.of(name)

    def flag(self, why: str) -> Cond:
        self.count += 1
        name = f"flag#{self.count}"
        self.data[name] = why
        return Flag(name)

    def fact(self, symbol: Poly, cond: Cond) -> None:
        (name,) = symbol.symbols
        self.facts.setdefault(name, []).append(cond)

    def unknown(self, type_: Scalar, why: str) -> Poly:
        """Any value of the type."""
        symbol = self.fresh("any")
        low, high = limits_of(type_)
        self.fact(symbol, within(Poly.of(low), symbol, Poly.of(high + 1)))
        self.data[next(iter(symbol.symbols))] = why
        return symbol

    def divided(self, value: Poly, by: int) -> tuple[Poly, Poly]:
        """C's quotient and remainder by a positive constant: both truncate towards zero."""
        known = value.constant
        if known is not None:
            quotient = truncated(known, by)
            return Poly.of(quotient), Poly.of(known - quotient * by)
        if all(c % by == 0 for c in value.terms.values()):
            return Poly({m: c // by for m, c in value.terms.items()}), ZERO
        for name, known_as in self.quotients.items():
            if known_as == (value, by):
                return Poly.of(name), value - Poly.of(name) * by
        quotient_ = self.fresh("quotient", launch=value.symbols <= self.launch)
        self.quotients[next(iter(quotient_.symbols))] = value, by
        rest = value - quotient_ * by
        end = Poly.of(by)
        positive, negative = at_most(ZERO, value), below(value, ZERO)
        self.fact(quotient_, either(negative, within(ZERO, rest, end)))
        self.fact(quotient_, either(positive, within(ONE - end, rest, ONE)))
        return quotient_, rest

    def parted(self, value: Poly, by: Poly) -> tuple[Poly, Poly]:
        """Quotient and remainder of a number >= 0 by one >= 1: of others nothing is known."""
        for name, known_as in self.quotients.items():
            if known_as == (value, by):
                return Poly.of(name), Poly.of(next(r for r, whole in self.remainders.items() if whole == (value, by)))
        uniform = value.symbols | by.symbols <= self.launch
        quotient, rest = self.fresh("quotient", launch=uniform), self.fresh("remainder", launch=uniform)
        self.quotients[next(iter(quotient.symbols))] = self.remainders[next(iter(rest.symbols))] = value, by
        known = both(same(value, quotient * by + rest), at_most(ZERO, quotient), within(ZERO, rest, by))
        for symbol in (quotient, rest):
            self.fact(symbol, either(below(value, ZERO), below(by, ONE), known))
        return quotient, rest

    def chosen(self, condition: Cond, yes: Poly, no: Poly) -> Poly:
        uniform = (symbols_of(condition) | yes.symbols | no.symbols) <= self.launch and not flags_of(condition)
        symbol = self.fresh("either", launch=uniform)
        self.fact(symbol, either(negate(condition), same(symbol, yes)))
        self.fact(symbol, either(condition, same(symbol, no)))
        self.choices[next(iter(symbol.symbols))] = condition, yes, no
        return symbol

    def behind(self, poly: Poly) -> set[str]:
        """Its symbols, those of the quotients and choices among them, and so on."""
        seen: set[str] = set()
        left = set(poly.symbols)
        while left:
            name = left.pop()
            seen.add(name)
            for value, by in [t[name] for t in (self.quotients, self.remainders) if name in t]:
                left |= (value.symbols | (by.symbols if isinstance(by, Poly) else set())) - seen
            if name in self.choices:
                condition, yes, no = self.choices[name]
                left |= (symbols_of(condition) | yes.symbols | no.symbols) - seen
        return seen

    def behind_all(self, cond: Cond) -> set[str]:
        return {b for s in symbols_of(cond) for b in self.behind(Poly.of(s))}

    def natural(self, name: str) -> bool:
        """Whether it is known to be no negative number."""
        base = name.partition("@")[0]
        if base in self.quotients:
            value, by = self.quotients[base]
            positive = isinstance(by, int) or (by.symbols <= set(self.sizes) and min(by.terms.values()) > 0)
            return positive and self.no_negative(value)
        least = at_most(ZERO, Poly.of(base))
        known = (p for c in self.facts.get(base, []) for p in (c.parts if isinstance(c, All) else (c,)))
        return base in self.sizes or self.fixed.get(base, -1) >= 0 or any(p == least for p in known)

    def no_negative(self, poly: Poly) -> bool:
        return all(c > 0 and all(map(self.natural, m)) for m, c in poly.terms.items())

    def plain(self, poly: Poly) -> Poly:
        return poly.replace({name: Poly.of(number) for name, number in self.fixed.items()})

    def at(self, poly: Poly, values: Mapping[str, int]) -> int:
        """Its value at these sizes; KeyError where a symbol has none."""
        known = {**self.fixed, **values}

        def number(name: str) -> int:
            if name not in known:
                if name in self.quotients or name in self.remainders:
                    value, by = (self.quotients if name in self.quotients else self.remainders)[name]
                    whole, divisor = self.at(value, known), by if isinstance(by, int) else self.at(by, known)
                    quotient = truncated(whole, divisor)
                    known[name] = quotient if name in self.quotients else whole - quotient * divisor
                else:
                    condition, yes, no = self.choices[name]
                    known[name] = self.at(yes if self.holds(condition, known) else no, known)
            return known[name]

        constant = poly.replace({s: Poly.of(number(s)) for s in poly.symbols}).constant
        assert constant is not None
        return constant

    def holds(self, cond: Cond, values: Mapping[str, int]) -> bool:
        fixed = mapped(cond, lambda p: Poly.of(self.at(p, values)), lambda f: f)
        return fixed == TRUE

    def own(self, name: str, who: str) -> str:
        """Its name in the generic thread `who`, "1.a" for thread 1 of block a."""
        if name in self.launch:
            return name
        return f"{name}@{who.rpartition('.')[2] if name in BLOCK else who}"

    def renamed(self, poly: Poly, who: str) -> Poly:
        return poly.replace({s: Poly.of(self.own(s, who)) for s in poly.symbols})

    def copied(self, cond: Cond, who: str) -> Cond:
        return mapped(cond, lambda p: self.renamed(p, who), lambda f: f"{f}@{who}")

    def closure(self, left: set[str]) -> list[Cond]:
        """The facts on each of these symbols, on the symbols of those facts, and so on."""
        seen: set[str] = set()
        out: list[Cond] = []
        while left := left - seen:
            seen |= left
            found = [c for s in sorted(left) for c in self.facts_of(s)]
            out += found
            left = {s for c in found for s in symbols_of(c)}
        return out

    def facts_of(self, name: str) -> list[Cond]:
        """Of a thread's copy of a symbol: the facts with the other symbols of that thread."""
        base, at, who = name.partition("@")
        found = self.facts.get(base, [])
        return [self.copied(c, who) for c in found] if at else found


def truncated(value: int, by: int) -> int:
    return abs(value) // by * (1 if value >= 0 else -1)


def limits_of(type_: Scalar) -> tuple[int, int]:
    bits = type_.size * 8
    if type_.kind == "bool":
        return 0, 1
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if type_.signed else (0, (1 << bits) - 1)


def differ(symbols: Symbols, names: tuple[str, ...], first: str, second: str) -> Cond:
    """Two threads or two blocks that differ on some axis."""
    pairs = [(Poly.of(symbols.own(n, first)), Poly.of(symbols.own(n, second))) for n in names]
    return either(*(negate(same(a, b)) for a, b in pairs))
