"""What an expression is while it is lowered: a value in a register, or a place in memory; of one thread or of lanes.

Where threads run side by side an expression that they agree on is a Value or a Place as for one thread. What lanes may
differ in is a Wide, a WidePlace, an OwnPlace or a WideVariable: these have no `text` and no `address` of one thread,
and whoever asks for it knows no lanes: the kernel's threads are run one by one instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewise.emulator.parse.types import Type
from tilewise.emulator.sema.given import Overloads as Overloads  # a value until its arguments are known
from tilewise.errors import EngineError

KNOWN = 0  # inside its object and given a value: no check
INIT = 1  # inside its object: only whether it was given a value is checked
FULL = 2  # reached through a pointer: everything is checked
SHARED = 3  # a block's array in a kernel that is watched for races
TRUSTED = 4  # reached through a pointer, and looked at before: no check


class NotInLockstep(EngineError):
    """What of a kernel keeps its threads from being run side by side; they are run one by one instead."""


def _of_one_thread(value: Any) -> str:
    raise NotInLockstep(f"such a use of {value.type}")


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


class Wide(Value):
    """A value in every lane: `vector` is LLVM's name of it; pointers are addresses as i64.

    It is linear where lane l has `base + l * stride`: true without exception in the width it was computed in. It stays
    so in 64 bits where nothing wrapped between the first lane and the last, which is `valid`, known as it runs."""

    __slots__ = ("base", "stride", "valid", "vector")
    text = property(_of_one_thread)
    zero = False

    def __init__(self, type_: Type, vector: str, base: str = "", stride: int = 0, valid: str = "true") -> None:
        self.type, self.vector, self.base, self.stride, self.valid = type_, vector, base, stride, valid

    def as_type(self, type_: Type) -> Wide:
        """The same bits."""
        return Wide(type_, self.vector, self.base, self.stride, self.valid)


class _LanesPlace(Place):
    """An lvalue of lanes."""

    __slots__ = ()
    address = property(_of_one_thread)

    def __init__(self, type_: Type, check: int, const: bool = False, span: tuple[str, str] | None = None) -> None:
        self.type, self.check, self.const, self.span = type_, check, const, span
        self.flag = self.name = ""
        self.register = self.moved = False


class WidePlace(_LanesPlace):
    """An lvalue that is elsewhere in every lane."""

    __slots__ = ("at",)

    def __init__(
        self, type_: Type, at: Wide, check: int, const: bool = False, span: tuple[str, str] | None = None
    ) -> None:
        super().__init__(type_, check, const, span)
        self.at = at


class OwnPlace(_LanesPlace):
    """A thread's own array, or a part of it: element e of lane l lies at (e * width + l) of its memory."""

    __slots__ = ("element", "start")

    def __init__(self, type_: Type, start: str, element: Value) -> None:
        super().__init__(type_, INIT)
        self.start, self.element = start, element  # its address as i64; a number of type long


class WideVariable(_LanesPlace):
    """A variable that lanes differ in, in `slot`; `region`: how many were open where it was declared."""

    __slots__ = ("region", "slot")

    def __init__(self, type_: Type, slot: str, flag: str, name: str, region: int) -> None:
        super().__init__(type_, KNOWN)
        self.slot, self.flag, self.name, self.region, self.register = slot, flag, name, region, True


class WideLocal(Local):
    """Its name: the variable, or what it is bound to where it is never assigned to again."""

    __slots__ = ("bound",)
    address = property(_of_one_thread)

    def __init__(self, bound: Wide | OwnPlace | WideVariable) -> None:
        self.type, self.check, self.flag, self.register = bound.type, INIT, getattr(bound, "flag", ""), False
        self.constant, self.size, self.row, self.reference, self.const, self.static = None, "", "", False, False, False
        self.bound = bound
