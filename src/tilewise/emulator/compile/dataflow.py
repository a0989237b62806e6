"""Data flow between a kernel's variables: which integers are multiples of a leading dimension, whose address is taken,
which feed an index. A pass may find facts that earlier code depends on, so compilation is repeated to a fixed point."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tilewise.emulator.compile.operand import MIXED


@dataclass
class DataFlow:
    row_symbols: dict[Any, int] = field(default_factory=dict)  # variable -> leading dimension of its rows, or MIXED
    guessed: set[Any] = field(default_factory=set)  # variables whose row count is a guess
    address_taken: set[Any] = field(default_factory=set)
    index: set[Any] = field(default_factory=set)  # variables that feed an index
    from_global: set[Any] = field(default_factory=set)  # variables that depend on a global load
    sums: set[Any] = field(default_factory=set)  # registers that accumulate values from shared memory
    stored: set[Any] = field(default_factory=set)  # pointers that are stored through
    sources: dict[Any, set[Any]] = field(default_factory=dict)  # pointer variable -> those it is derived from
    members: dict[Any, int] = field(default_factory=dict)  # (variable, leaf) -> leading dimension, or MIXED
    assigned: dict[Any, int] = field(default_factory=dict)  # number of assignments in the last pass
    changed: bool = False

    def add(self, kind: set[Any], key: Any) -> None:
        if key not in kind:
            kind.add(key)
            self.changed = True

    def note_row_symbol(self, key: Any, symbol: int, guessed: bool) -> None:
        known = self.row_symbols.get(key)
        new = symbol if known is None or known == symbol else MIXED
        if new != known:
            self.row_symbols[key] = new
            self.changed = True
        if guessed:
            self.add(self.guessed, key)

    def note_member(self, key: Any, symbol: int | None) -> None:
        known = self.members.get(key)
        new = MIXED if symbol is None or (known is not None and known != symbol) else symbol
        if known != new and not (known is None and new == MIXED):
            self.members[key] = new
            self.changed = True

    def reached_by_stores(self) -> frozenset[Any]:
        """The pointer variables that a store may go through, directly or by a pointer derived from them."""
        reached = set(self.stored)
        while True:
            more = {s for k in reached for s in self.sources.get(k, ())} - reached
            if not more:
                return frozenset(reached)
            reached |= more
