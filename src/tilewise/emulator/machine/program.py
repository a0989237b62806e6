"""What the machine runs: a kernel's closures with its variables, shared arrays and leading dimensions."""

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
    storage: str  # register, cells, shared, reference, constant
    row_slot: int = -1
    const: Any = None
    bare: int | None = None
    buffer: int = -1  # shared: its number
    dims: tuple[int, ...] = ()
    blank: bool = False  # declared without a first value: lanes that a condition leaves out must not read it
    members: dict[str, int] = field(default_factory=dict)  # leading dimensions among a struct's members


@dataclass
class GlobalArray:
    """A `__device__` or `__constant__` variable of the file."""

    name: str
    type: Type
    values: list[Any] | str | None  # None: zeros; words: why they cannot be made here


@dataclass
class Program:
    entry: str
    function: Function
    parameters: list[Variable]
    body: Run
    slots: int
    sites: int
    site_list: list[Site]
    shared: list[tuple[str, Type, tuple[int, ...], bool]]
    symbols: list[Any]
    supplied: dict[str, str]
    stored: frozenset[Any]  # keys of pointer variables that a store may go through; "*": through one that is not known
    sources: dict[Any, set[Any]]  # pointer variable <- the pointer variables it is made from
    arrays: list[GlobalArray] = field(default_factory=list)
    array_slots: list[int] = field(default_factory=list)
    usage: list[tuple[Any, int]] = field(default_factory=list)

    @property
    def static_shared(self) -> int:
        """Bytes of the arrays that the kernel declares __shared__ with their length."""
        return sum(type_.size for _, type_, _, external in self.shared if not external)

    def dynamic(self, size: int) -> dict[str, int]:
        """The extern __shared__ arrays, each with the bytes that a launch gives all of them together."""
        return {name: size for name, *_, external in self.shared if external}

    def stores_to(self, parameter: Variable) -> bool:
        return "*" in self.stored or parameter.key in self.stored
