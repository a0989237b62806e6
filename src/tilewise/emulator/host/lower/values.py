"""Results of lowering an expression: a Value in a register or a Place in memory, of one thread or of lanes.

In a vectorised kernel a uniform expression is a Value or a Place as for one thread; a varying one is a Wide, a
WidePlace, an InterleavedPlace or a WideVariable. Reading the `text` or `address` of those raises NotInLockstep: code
that does not support lanes does so, and the kernel's threads are then run one by one."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeGuard

from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Pointer, Record, Scalar, Type
from tilewise.emulator.sema.given import Overloads as Overloads
from tilewise.errors import EngineError

# checks of a place's accesses
UNCHECKED = 0  # inside its object, and initialised
INIT = 1  # inside its object: check that it is initialised
FULL = 2  # reached through a pointer: check bounds and initialisation
SHARED = 3  # __shared__ in a kernel that is recorded: checked against the arrays' ends
PRECHECKED = 4  # reached through a pointer, and checked before the loop


class NotInLockstep(EngineError):
    """The kernel cannot be vectorised, for this reason; its threads are run one by one instead."""


def _of_one_thread(value: Any) -> str:
    raise NotInLockstep(f"such a use of {value.type}")


@dataclass(slots=True)
class Value:
    """`text` is its LLVM name; for a class, the address of a temporary."""

    type: Type
    text: str

    lvalue = const = False  # for `sema/overload`

    @property
    def zero(self) -> bool:
        return self.text == "0"


@dataclass(slots=True)
class Place:
    """An lvalue: `address` is a ptr; `flag` is the slot of an i1: whether a register variable is initialised."""

    type: Type
    address: str
    check: int = FULL
    flag: str = ""
    name: str = ""  # in the program
    register: bool = False
    moved: bool = False  # an xvalue: std::move(x)
    const: bool = False
    span: tuple[str, str] | None = None  # begin and end of an initialised range that it probably lies in
    row: tuple[str, str] | None = None  # of its index, in record mode: see `recorded_text.row_of`
    column: int = 0  # in the text, in record mode

    zero = False

    @property
    def lvalue(self) -> bool:
        return not self.moved


@dataclass(slots=True)
class Local:
    """A local variable."""

    type: Type
    address: str
    check: int
    flag: str = ""
    register: bool = False
    reference: bool = False  # the slot holds the address of the referred object
    constant: Any = None  # its compile-time value, if known
    size: str = ""  # of a variable-length array, in bytes
    row: str = ""  # slot of the row length, in elements, of a variable-length array with two dimensions
    const: bool = False
    static: bool = False


class Wide(Value):
    """A value in every lane: `vector` is its LLVM name; pointers are addresses as i64.

    It is linear if it has a `base`: lane l has `base + l * stride`, modulo its width. `valid` is an i1, computed at run
    time: no lane wrapped, so that this also holds in 64 bits."""

    __slots__ = ("base", "stride", "valid", "vector")
    text = property(_of_one_thread)
    zero = False

    def __init__(self, type_: Type, vector: str, base: str = "", stride: int = 0, valid: str = "true") -> None:
        self.type, self.vector, self.base, self.stride, self.valid = type_, vector, base, stride, valid

    def as_type(self, type_: Type) -> Wide:
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
    """An lvalue with an address per lane."""

    __slots__ = ("at",)

    def __init__(
        self, type_: Type, at: Wide, check: int, const: bool = False, span: tuple[str, str] | None = None
    ) -> None:
        super().__init__(type_, check, const, span)
        self.at = at


class InterleavedPlace(_LanesPlace):
    """A per-thread array, or a part of it: element e of lane l lies at index e * width + l."""

    __slots__ = ("element", "start")

    def __init__(self, type_: Type, start: str, element: Value, name: str) -> None:
        super().__init__(type_, INIT)
        self.start, self.element, self.name = start, element, name  # address as i64; index, of type long


class WideVariable(_LanesPlace):
    """A varying variable in `slot`; `region`: number of mask regions that were open at its declaration."""

    __slots__ = ("region", "slot")

    def __init__(self, type_: Type, slot: str, flag: str, name: str, region: int) -> None:
        super().__init__(type_, UNCHECKED)
        self.slot, self.flag, self.name, self.region, self.register = slot, flag, name, region, True


class WideLocal(Local):
    """A variable of lanes; `bound` is the value itself if it is never reassigned."""

    __slots__ = ("bound",)
    address = property(_of_one_thread)

    def __init__(self, bound: Wide | InterleavedPlace | WideVariable) -> None:
        self.type, self.check, self.flag, self.register = bound.type, INIT, getattr(bound, "flag", ""), False
        self.constant, self.size, self.row, self.reference, self.const, self.static = None, "", "", False, False, False
        self.bound = bound


Lowered: TypeAlias = Value | Place | Overloads  # an expression
Actual: TypeAlias = Lowered | tree.Braces  # an argument; {…} is lowered when the parameter's type is known


def is_object(value: Actual | None) -> TypeGuard[Value | Place]:
    """Whether it is an object of a class."""
    return isinstance(value, (Value, Place)) and isinstance(value.type, Record)


def number_text(value: Any, type_: Scalar) -> str:
    if not type_.floating:
        return str(int(value)) if type_.kind != "bool" else ("true" if value else "false")
    real = float(value)
    if type_ is types.FLOAT:
        try:
            real = struct.unpack("<f", struct.pack("<f", real))[0]
        except OverflowError:
            real = float("inf") if real > 0 else float("-inf")
    return f"0x{struct.unpack('<Q', struct.pack('<d', real))[0]:016X}"


def constant(value: Any, type_: Scalar) -> Value:
    return Value(type_, number_text(value, type_))


def dereference(pointer: Value) -> Place:
    """What a pointer points to."""
    type_ = pointer.type
    assert isinstance(type_, Pointer)
    if isinstance(pointer, Wide):
        return WidePlace(type_.to, pointer, FULL, type_.const)
    return Place(type_.to, pointer.text, FULL, const=type_.const)
