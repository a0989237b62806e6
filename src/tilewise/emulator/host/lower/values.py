"""What an expression is while it is lowered: a value in a register, or a place in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewise.emulator.parse.types import Type
from tilewise.emulator.sema.given import Overloads as Overloads  # a value until its arguments are known

KNOWN = 0  # inside its object and given a value: no check
INIT = 1  # inside its object: only whether it was given a value is checked
FULL = 2  # reached through a pointer: everything is checked
SHARED = 3  # a block's array in a kernel that is watched for races
TRUSTED = 4  # reached through a pointer, and looked at before: no check


@dataclass(slots=True)
class Value:
    """`text` is LLVM's name of it; of a class, the address of a temporary."""

    type: Type
    text: str

    lvalue = const = False  # for `sema/overload`

    @property
    def zero(self) -> bool:
        return self.text == "0"


@dataclass(slots=True)
class Place:
    """An lvalue: `address` is a ptr. `flag` is the slot that says whether a register variable has a value."""

    type: Type
    address: str
    check: int = FULL
    flag: str = ""
    name: str = ""  # as the program calls it
    register: bool = False
    moved: bool = False  # std::move(x): may be taken apart
    const: bool = False
    span: tuple[str, str] | None = None  # the addresses from which to which everything has a value

    zero = False

    @property
    def lvalue(self) -> bool:
        return not self.moved


@dataclass(slots=True)
class Local:
    """A variable of a function that is being lowered."""

    type: Type
    address: str
    check: int
    flag: str = ""
    register: bool = False
    reference: bool = False  # the slot holds the address of what is meant
    constant: Any = None  # its value, where it is known
    size: str = ""  # in bytes, of an array whose length was not known before running
    row: str = ""  # the slot that holds a row's length in elements, where such an array has rows
    const: bool = False
    static: bool = False  # it lives as long as the program
