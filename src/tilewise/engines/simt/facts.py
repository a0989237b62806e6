"""What the compiler knows of variables. Some of it only shows once the whole kernel has been seen, so a kernel is
compiled again until nothing new is learnt: which integers carry a row, whose address is taken, what feeds an index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tilewise.engines.simt.arithmetic import Value
from tilewise.engines.simt.context import Context
from tilewise.engines.simt.ctype import Scalar, Type

Fn = Callable[[Context], Value]
LOST = -1  # rows of different leading dimensions were mixed: not decidable


@dataclass(slots=True)
class E:
    """A compiled expression. `bare` is the leading dimension it *is*; `symbol` the one it is a multiple of plus a
    column, and then `row` computes the multiple."""

    type: Type
    fn: Fn
    const: Any = None  # the value, where it is known before running
    pure: bool = True  # reads no memory and changes nothing: may be evaluated for lanes that are off
    bare: int | None = None
    symbol: int | None = None
    row: Fn | None = None
    soft: bool = False
    shared: bool = False  # reads shared memory
    loads: bool = False  # reads global memory
    fed: bool = False  # depends on a register that a global load filled
    members: dict[int, int] = field(default_factory=dict)  # of a struct: leaves that are leading dimensions

    @property
    def scalar(self) -> Scalar:
        assert isinstance(self.type, Scalar)
        return self.type


@dataclass(slots=True)
class Variable:
    name: str
    type: Type
    key: tuple[Any, ...]
    slot: int
    storage: str  # register, cells, shared, reference, constant
    row_slot: int = -1
    const: Any = None
    bare: int | None = None
    buffer: int = -1  # shared: its number
    dims: tuple[int, ...] = ()
    members: dict[str, int] = field(default_factory=dict)  # leading dimensions among a struct's members


@dataclass
class Facts:
    carry: dict[Any, int] = field(default_factory=dict)
    soft: set[Any] = field(default_factory=set)
    boxed: set[Any] = field(default_factory=set)
    index: set[Any] = field(default_factory=set)
    fed: set[Any] = field(default_factory=set)
    sums: set[Any] = field(default_factory=set)
    stored: set[Any] = field(default_factory=set)  # pointers that are stored through
    sources: dict[Any, set[Any]] = field(default_factory=dict)  # pointer variable <- pointer variables
    members: dict[Any, int] = field(default_factory=dict)  # (variable, leaf) -> leading dimension, or LOST
    assigned: dict[Any, int] = field(default_factory=dict)  # how often, in the last pass
    changed: bool = False

    def add(self, kind: set[Any], key: Any) -> None:
        if key not in kind:
            kind.add(key)
            self.changed = True

    def note_carry(self, key: Any, symbol: int, soft: bool) -> None:
        known = self.carry.get(key)
        new = symbol if known is None or known == symbol else LOST
        if new != known:
            self.carry[key] = new
            self.changed = True
        if soft:
            self.add(self.soft, key)

    def note_member(self, key: Any, symbol: int | None) -> None:
        known = self.members.get(key)
        new = LOST if symbol is None or (known is not None and known != symbol) else symbol
        if known != new and not (known is None and new == LOST):
            self.members[key] = new
            self.changed = True

    def stored_through(self, key: Any) -> bool:
        """Whether a store may reach memory through this pointer variable or one made from it."""
        reached = set(self.stored)
        while True:
            more = {s for k in reached for s in self.sources.get(k, ())} - reached
            if not more:
                return key in reached
            reached |= more
