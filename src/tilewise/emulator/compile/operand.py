"""A compiled expression: its type, the closure that computes it for all lanes, and facts about its value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tilewise.emulator.machine.arithmetic import Value
from tilewise.emulator.machine.context import Context
from tilewise.emulator.parse.types import Type

Fn = Callable[[Context], Value]
MIXED = -1  # rows of different leading dimensions were mixed: not decidable


@dataclass(frozen=True, eq=False)
class Closure(Type):  # a Type, because a template parameter may be bound to it
    """The type of a lambda: its tree, and the scopes of the lambda expression."""

    node: Any
    scopes: Any
    env: Any

    size = align = 1

    def __str__(self) -> str:
        return "a lambda"


@dataclass(slots=True)
class Operand:
    """A compiled expression. Leading dimensions are numbered (`Program.symbols`): `dimension` is the one that the value
    equals. If `symbol` is set, the value is row * (that leading dimension) + column, and `row` computes the row."""

    type: Type
    fn: Fn
    const: Any = None  # the value, if known at compile time
    pure: bool = True  # has no effects and reads no memory: may be evaluated for inactive lanes
    dimension: int | None = None
    symbol: int | None = None
    row: Fn | None = None
    guessed: bool = False  # `row` counts a leading dimension that may have been meant as columns
    shared: bool = False  # reads shared memory
    loads: bool = False  # reads global memory
    from_global: bool = False  # depends on a register loaded from global memory
    members: dict[int, int] = field(default_factory=dict)  # of a struct: leaf -> leading dimension

    @classmethod
    def of(cls, type_: Type, fn: Fn, *parts: Operand, pure: bool = True) -> Operand:
        """An operand computed from others."""
        return cls(
            type_, fn, pure=pure and all(e.pure for e in parts), shared=any(e.shared for e in parts),
            loads=any(e.loads for e in parts), from_global=any(e.from_global for e in parts),
        )  # fmt: skip
