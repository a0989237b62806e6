"""What a generic thread computes with: integers as polynomials, places in memory, and its state between statements."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewise.emulator.parse.types import Scalar, Type
from tilewise.emulator.prove.terms import TRUE, Cond, Poly

ANY = "any barrier"  # the last barrier is not known
START = "start"


class NotModelled(Exception):
    """A part of the kernel that is not understood here: nothing is claimed then."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.reason, self.line = reason, line


@dataclass(frozen=True)
class Int:
    poly: Poly
    type: Scalar


@dataclass(frozen=True)
class Truth:
    """The value of a comparison, kept as the condition that it is."""

    cond: Cond


@dataclass(frozen=True)
class Real:
    """A floating value: data. On the host it may be known as `top / bottom`."""

    top: Poly | None = None
    bottom: int = 1

    @property
    def exact(self) -> int | None:
        return self.top.constant if self.top is not None and self.bottom == 1 else None


@dataclass(eq=False)
class Region:
    """An array. Lengths and offsets count units, its scalars; `rows` and `columns` where it is a matrix."""

    name: str
    space: str  # "global", "shared", "local" or "constant"
    unit: int  # bytes
    length: Poly | None
    rows: Poly | None = None
    columns: Poly | None = None


@dataclass(frozen=True)
class Ref:
    """A place: the region, the offset in units, and the type that lies there."""

    region: Region
    offset: Poly
    type: Type


@dataclass(frozen=True)
class Pointer:
    place: Ref


@dataclass(frozen=True)
class Nothing:
    """A value that no index is made of."""


@dataclass(frozen=True)
class Fields:
    """An object with known members: a parameter such as Matrix M, or a dim3."""

    parts: tuple[tuple[str, Value], ...]

    def get(self, name: str) -> Value | None:
        return dict(self.parts).get(name)


Value = Int | Truth | Real | Ref | Pointer | Nothing | Fields


@dataclass(frozen=True)
class Passed:
    """The last barrier that a thread has passed, where `when` holds, with the counters of the loops around it."""

    when: Cond
    barrier: str
    counters: tuple[Poly, ...] = ()


@dataclass
class State:
    """Where a generic thread stands. `path` holds for the threads that come here."""

    variables: dict[int, Value] = field(default_factory=dict)
    path: Cond = TRUE
    last: tuple[Passed, ...] = (Passed(TRUE, START),)
    counters: tuple[Poly, ...] = ()

    def fork(self, path: Cond) -> State:
        return State(dict(self.variables), path, self.last, self.counters)


@dataclass(frozen=True)
class Access:
    """One memory access of a generic thread: `width` units from `offset`."""

    region: Region
    kind: str  # "load", "store" or "atomic"
    offset: Poly
    width: int
    path: Cond
    last: tuple[Passed, ...]
    line: int


@dataclass(frozen=True)
class Obligation:
    """What must hold wherever `path` does."""

    path: Cond
    must: Cond
    line: int
    what: str
    node: int = 0  # the expression whose value it is about


@dataclass(frozen=True)
class Barrier:
    path: Cond
    counters: tuple[Poly, ...]
    name: str
    line: int


@dataclass
class Events:
    """All that a generic thread does, over every path of the kernel."""

    accesses: list[Access] = field(default_factory=list)
    dimensions: list[tuple[Region, Obligation]] = field(default_factory=list)  # an index stays in its own dimension
    ranges: list[Obligation] = field(default_factory=list)  # arithmetic stays in its type
    barriers: list[Barrier] = field(default_factory=list)
