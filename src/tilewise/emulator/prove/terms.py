"""Polynomials over named integers, and conditions on them: what a generic thread's indices and branches are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

Monomial = tuple[str, ...]


class Poly:
    """A polynomial with integer coefficients; equal where it is the same polynomial."""

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms: dict[Monomial, int] = {m: c for m, c in terms.items() if c}

    @staticmethod
    def of(value: int | str) -> Poly:
        return Poly({(value,): 1} if isinstance(value, str) else {(): value})

    def __add__(self, other: Poly | int) -> Poly:
        out = dict(self.terms)
        for m, c in (other if isinstance(other, Poly) else Poly.of(other)).terms.items():
            out[m] = out.get(m, 0) + c
        return Poly(out)

    def __neg__(self) -> Poly:
        return Poly({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: Poly | int) -> Poly:
        return self + -(other if isinstance(other, Poly) else Poly.of(other))

    def __mul__(self, other: Poly | int) -> Poly:
        out: dict[Monomial, int] = {}
        for m, c in self.terms.items():
            for n, d in (other if isinstance(other, Poly) else Poly.of(other)).terms.items():
                key = tuple(sorted(m + n))
                out[key] = out.get(key, 0) + c * d
        return Poly(out)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Poly) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    @property
    def constant(self) -> int | None:
        """Its value, where it has no symbol."""
        return self.terms.get((), 0) if all(not m for m in self.terms) else None

    @property
    def linear(self) -> bool:
        return all(len(m) <= 1 for m in self.terms)

    @property
    def symbols(self) -> set[str]:
        return {s for m in self.terms for s in m}

    def by(self, symbol: str) -> tuple[Poly, Poly]:
        """(q, r) with self = q * symbol + r, and no `symbol` in r."""
        q: dict[Monomial, int] = {}
        r: dict[Monomial, int] = {}
        for m, c in self.terms.items():
            if symbol in m:
                at = m.index(symbol)
                q[m[:at] + m[at + 1 :]] = c
            else:
                r[m] = c
        return Poly(q), Poly(r)

    def replace(self, values: Mapping[str, Poly]) -> Poly:
        if not self.symbols & values.keys():
            return self
        out = Poly({})
        for m, c in self.terms.items():
            term = Poly.of(c)
            for s in m:
                term = term * values.get(s, Poly.of(s))
            out = out + term
        return out

    def __repr__(self) -> str:
        return " + ".join(f"{c}*{'*'.join(m)}" if m else str(c) for m, c in self.terms.items()) or "0"


ZERO, ONE = Poly.of(0), Poly.of(1)


class Cond:
    """A condition; `TRUE`, `FALSE`, `AtMostZero`, `IsZero`, `Flag`, `Not`, `All` or `AnyOf`."""


@dataclass(frozen=True)
class AtMostZero(Cond):
    poly: Poly


@dataclass(frozen=True)
class IsZero(Cond):
    poly: Poly


@dataclass(frozen=True)
class Flag(Cond):
    """A condition on data: true or false for each thread as it likes."""

    name: str


@dataclass(frozen=True)
class Not(Cond):
    part: Cond


@dataclass(frozen=True)
class All(Cond):
    parts: tuple[Cond, ...]


@dataclass(frozen=True)
class AnyOf(Cond):
    parts: tuple[Cond, ...]


TRUE: Cond = All(())
FALSE: Cond = AnyOf(())


def both(*parts: Cond) -> Cond:
    flat: dict[Cond, None] = {}
    for part in parts:
        for inner in part.parts if isinstance(part, All) else (part,):
            if inner == FALSE:
                return FALSE
            flat[inner] = None
    return next(iter(flat)) if len(flat) == 1 else All(tuple(flat))


def either(*parts: Cond) -> Cond:
    flat: dict[Cond, None] = {}
    for part in parts:
        for inner in part.parts if isinstance(part, AnyOf) else (part,):
            if inner == TRUE:
                return TRUE
            flat[inner] = None
    return next(iter(flat)) if len(flat) == 1 else AnyOf(tuple(flat))


def negate(cond: Cond) -> Cond:
    if isinstance(cond, Not):
        return cond.part
    if isinstance(cond, AtMostZero):
        return at_most(ONE, cond.poly)
    if isinstance(cond, All):
        return either(*(negate(p) for p in cond.parts))
    if isinstance(cond, AnyOf):
        return both(*(negate(p) for p in cond.parts))
    return Not(cond)


def at_most(a: Poly, b: Poly) -> Cond:
    poly = a - b
    value = poly.constant
    return AtMostZero(poly) if value is None else TRUE if value <= 0 else FALSE


def below(a: Poly, b: Poly) -> Cond:
    return at_most(a + 1, b)


def same(a: Poly, b: Poly) -> Cond:
    poly = a - b
    value = poly.constant
    return IsZero(poly) if value is None else TRUE if value == 0 else FALSE


def within(low: Poly, value: Poly, end: Poly) -> Cond:
    """low <= value < end."""
    return both(at_most(low, value), below(value, end))


def mapped(cond: Cond, poly: Callable[[Poly], Poly], flag: Callable[[str], str]) -> Cond:
    """The same condition over other polynomials and flags."""
    if isinstance(cond, AtMostZero):
        return at_most(poly(cond.poly), ZERO)
    if isinstance(cond, IsZero):
        return same(poly(cond.poly), ZERO)
    if isinstance(cond, Flag):
        return Flag(flag(cond.name))
    if isinstance(cond, Not):
        return negate(mapped(cond.part, poly, flag))
    if isinstance(cond, All):
        return both(*(mapped(p, poly, flag) for p in cond.parts))
    if isinstance(cond, AnyOf):
        return either(*(mapped(p, poly, flag) for p in cond.parts))
    raise TypeError(cond)


def polys_of(cond: Cond) -> Iterator[Poly]:
    if isinstance(cond, AtMostZero | IsZero):
        yield cond.poly
    elif isinstance(cond, Not):
        yield from polys_of(cond.part)
    elif isinstance(cond, All | AnyOf):
        for part in cond.parts:
            yield from polys_of(part)


def symbols_of(cond: Cond) -> set[str]:
    return {s for poly in polys_of(cond) for s in poly.symbols}


def flags_of(cond: Cond) -> set[str]:
    """The conditions on data in it."""
    if isinstance(cond, Flag):
        return {cond.name}
    parts = (cond.part,) if isinstance(cond, Not) else cond.parts if isinstance(cond, All | AnyOf) else ()
    return {name for part in parts for name in flags_of(part)}
