"""A compiled kernel: closures, variables, shared arrays and leading dimensions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tilewise.emulator.machine.access import Site
from tilewise.emulator.machine.control import Run
from tilewise.emulator.parse.tree import Function
from tilewise.emulator.parse.types import Type


@dataclass(slots=True)
class Variable:
    name: str
    type: Type
    key: tuple[Any, ...]
    slot: int
    storage: str  # register, cells, shared, reference, constant, closure
    row_slot: int = -1
    const: Any = None
    dimension: int | None = None  # the leading dimension that it equals, as in `Operand`
    buffer: int = -1  # of a shared array: its number
    dims: tuple[int, ...] = ()
    blank: bool = False  # declared without an initialiser: inactive lanes must not read it
    members: dict[str, int] = field(default_factory=dict)  # of a struct: leaf -> leading dimension


@dataclass
class GlobalArray:
    """A `__device__` or `__constant__` variable of the file."""

    name: str
    type: Type
    values: list[Any] | str | None  # None: zeros; a text: why they cannot be computed


@dataclass
class Program:
    entry: str
    function: Function
    parameters: list[Variable]
    body: Run
    slots: int
    memos: int
    site_list: list[Site]
    shared: list[tuple[str, Type, tuple[int, ...], bool]]
    symbols: list[Any]
    supplied: dict[str, str]
    stored: frozenset[Any]  # keys of pointer variables that a store may go through; "*": an unknown one
    sources: dict[Any, set[Any]]  # pointer variable -> the pointer variables it is derived from
    arrays: list[GlobalArray] = field(default_factory=list)
    array_slots: list[int] = field(default_factory=list)
    usage: list[tuple[Any, int]] = field(default_factory=list)
    waits_for_grid: bool = False  # all of its blocks run together
    copies_asynchronously: bool = False  # missing waits are found by compiled code only

    @property
    def static_shared(self) -> int:
        """Bytes of the __shared__ arrays of declared length."""
        return sum(type_.size for _, type_, _, external in self.shared if not external)

    def dynamic(self, size: int) -> dict[str, int]:
        """The extern __shared__ arrays, each with the dynamic bytes of the launch."""
        return {name: size for name, *_, external in self.shared if external}

    def stores_to(self, parameter: Variable) -> bool:
        return "*" in self.stored or parameter.key in self.stored
