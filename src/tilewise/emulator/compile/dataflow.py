"""What flows where in a kernel. Some of it only shows once the whole kernel has been seen, so a kernel is compiled
again until nothing new is learnt: which integers carry a row, whose address is taken, what feeds an index."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tilewise.emulator.compile.operand import LOST


@dataclass
class DataFlow:
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

    def reached_by_stores(self) -> frozenset[Any]:
        """The pointer variables that a store may go through, themselves or by one made from them."""
        reached = set(self.stored)
        while True:
            more = {s for k in reached for s in self.sources.get(k, ())} - reached
            if not more:
                return frozenset(reached)
            reached |= more
