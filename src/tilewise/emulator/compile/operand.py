"""A compiled expression: its type, the closure that computes it for all lanes, and what is known of its value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tilewise.emulator.machine.arithmetic import Value
from tilewise.emulator.machine.context import Context
from tilewise.emulator.parse.types import Type

Fn = Callable[[Context], Value]
LOST = -1  # rows of different leading dimensions were mixed: not decidable


@dataclass(frozen=True, eq=False)
class Closure(Type):  # a template parameter may be bound to it
    """The type of a lambda: its tree, and the variables that were in scope where it stands."""

    node: Any
    scopes: Any
    env: Any

    size = align = 1

    def __str__(self) -> str:
        return "a lambda"


@dataclass(slots=True)
class Operand:
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

    @classmethod
    def of(cls, type_: Type, fn: Fn, *parts: Operand, pure: bool = True) -> Operand:
        """Computed from others: what one of them reads, it reads."""
        return cls(
            type_, fn, pure=pure and all(e.pure for e in parts), shared=any(e.shared for e in parts),
            loads=any(e.loads for e in parts), fed=any(e.fed for e in parts),
        )  # fmt: skip
