"""Values of all lanes at once: LLVM vectors, and what is known of them where they rise from lane to lane.

A value is linear where lane l has `base + l * stride`: true without exception in the width it was computed in. It stays
so in 64 bits where nothing wrapped between the first lane and the last, which is `valid`, known as the program runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tilewise.emulator.host.lower.arithmetic import FLOATING, INTEGER, SIGNED_COMPARE, converted, operated, shifted
from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.lockstep.divergence import Divergence, NotInLockstep
from tilewise.emulator.host.lower.values import Value
from tilewise.emulator.parse import types
from tilewise.emulator.parse.types import Array, Pointer, Scalar, Type


@dataclass(slots=True)
class Wide:
    type: Type
    text: str  # a vector; of pointers, their addresses as i64
    base: str = ""  # linear: of the first lane
    stride: int = 0
    valid: str = "true"


@dataclass(slots=True)
class WidePlace:
    """An lvalue that is elsewhere in every lane."""

    type: Type
    address: Wide
    check: int
    const: bool = False
    span: tuple[str, str] | None = None  # as of a Place


@dataclass(slots=True)
class OwnPlace:
    """A thread's own array, or a part of it: element e of lane l lies at (e * width + l) of its memory."""

    type: Type
    start: str  # address of it, i64
    element: Any  # Value or Wide of type long


@dataclass(slots=True)
class WideLocal:
    """A variable that lanes differ in; `bound` where it is never assigned to again."""

    type: Type
    slot: str = ""
    flag: str = ""
    region: int = 0
    name: str = ""
    bound: Wide | None = None


@dataclass(slots=True)
class Region:
    """Code that some of the lanes run: which, in `slot`; where it ends."""

    slot: str
    exit: str
    left: bool = False  # lanes may have left the region around it, too


@dataclass(slots=True)
class Loop:
    leave: str
    again: str
    regions: int  # that are open in its body
    parted: bool  # lanes leave it one by one


@dataclass
class Lanes:
    """Of the kernel that is being lowered."""

    width: int
    rows: bool
    divergence: Divergence
    regions: list[Region] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    functions: dict[str, str] = field(default_factory=dict)  # text of what is called from here, by name
    index: dict[str, Any] = field(default_factory=dict)  # threadIdx
    spans: dict[str, tuple[Any, str, str]] = field(default_factory=dict)  # pointers: the variable, and its block's ends

    @property
    def bits(self) -> str:
        return f"i{self.width}"

    def vector(self, llvm: str) -> str:
        return f"<{self.width} x {llvm}>"

    def mask(self, b: Builder) -> str:
        return b.make(f"load {self.vector('i1')}, ptr {self.regions[-1].slot}")

    def mask_bits(self, b: Builder, mask: str = "") -> str:
        return b.make(f"bitcast {self.vector('i1')} {mask or self.mask(b)} to {self.bits}")

    def any(self, b: Builder, mask: str = "") -> str:
        return b.make(f"icmp ne {self.bits} {self.mask_bits(b, mask)}, 0")

    def all(self, b: Builder, mask: str = "") -> str:
        return b.make(f"icmp eq {self.bits} {self.mask_bits(b, mask)}, -1")

    def span(self, b: Builder, name: str) -> tuple[str, str] | None:
        """The ends of the block that the parameter of this name points into, where it has values everywhere."""
        found = self.spans.get(name)
        return found[1:] if found is not None and b.find(name) is found[0] else None

    def who(self, b: Builder) -> None:
        """Before something is told: it is the first lane that runs here."""
        self.functions["first"] = ""
        b.emit(f"call void @first_lane({self.bits} {self.mask_bits(b)})")


def lanes_of(b: Builder) -> Lanes:
    found: Lanes = b.lanes
    return found


def register(type_: Type) -> str:
    """LLVM's type of one lane."""
    if isinstance(type_, Pointer):
        return "i64"
    if not isinstance(type_, Scalar) or type_.kind in ("void", "null"):
        raise NotInLockstep(f"a value of type {type_}")
    return type_.llvm


def elements_of(type_: Type) -> int:
    """Scalars in an array of arrays, or 1."""
    many = 1
    while isinstance(type_, Array):
        many *= type_.length
        type_ = type_.of
    return many


def vector(b: Builder, type_: Type) -> str:
    return lanes_of(b).vector(register(type_))


def same_in_all(b: Builder, llvm: str, text: str) -> str:
    kind = lanes_of(b).vector(llvm)
    first = b.make(f"insertelement {kind} poison, {llvm} {text}, i64 0")
    return b.make(f"shufflevector {kind} {first}, {kind} poison, {lanes_of(b).vector('i32')} zeroinitializer")


def counted(b: Builder, llvm: str, stride: int) -> str:
    """<0, stride, 2 * stride, …>."""
    return "<" + ", ".join(f"{llvm} {stride * i}" for i in range(lanes_of(b).width)) + ">"


def from_linear(b: Builder, type_: Type, base: str, stride: int, valid: str = "true") -> Wide:
    llvm = register(type_)
    spread = same_in_all(b, llvm, base)
    text = b.make(f"add {vector(b, type_)} {spread}, {counted(b, llvm, stride)}")
    return Wide(type_, text, base, stride, valid)


def widen(b: Builder, value: Value | Wide) -> Wide:
    """A value of all lanes, of one that they share too."""
    if isinstance(value, Wide):
        return value
    text = value.text
    if isinstance(value.type, Pointer):
        text = b.make(f"ptrtoint ptr {text} to i64")
    llvm = register(value.type)
    integer = isinstance(value.type, Pointer) or (isinstance(value.type, Scalar) and value.type.kind == "int")
    return Wide(value.type, same_in_all(b, llvm, text), text if integer else "", 0)


def both(b: Builder, one: str, two: str) -> str:
    if one == "true" or two == "true":
        return two if one == "true" else one
    return b.make(f"and i1 {one}, {two}")


def convert(b: Builder, value: Wide, type_: Type) -> Wide:
    """Between scalars and pointers, as `conversion` does it."""
    source = value.type
    if source == type_:
        return value
    if isinstance(source, Pointer):
        if isinstance(type_, Pointer):
            return Wide(type_, value.text, value.base, value.stride, value.valid)
        if type_ is types.BOOL:
            return Wide(type_, b.make(f"icmp ne {vector(b, source)} {value.text}, zeroinitializer"))
        raise NotInLockstep(f"{source} as {type_}")
    if not isinstance(source, Scalar) or not isinstance(type_, Scalar) or "void" in (source.kind, type_.kind):
        raise NotInLockstep(f"{source} as {type_}")
    return _arithmetic(b, value, source, type_)


def _arithmetic(b: Builder, value: Wide, source: Scalar, type_: Scalar) -> Wide:
    """A linear value stays so: with more bits where no lane wrapped."""
    text, valid = converted(b, value.text, source, type_, lanes_of(b).width), value.valid
    longer = type_.size * 8 > source.bits
    if not value.base or type_.kind != "int" or (longer and source.size < 4):
        return Wide(type_, text)
    if longer and value.stride:
        last = b.make(f"add {source.llvm} {value.base}, {value.stride * (lanes_of(b).width - 1)}")
        order = ("s" if source.signed else "u") + ("ge" if value.stride > 0 else "le")
        valid = both(b, valid, b.make(f"icmp {order} {source.llvm} {last}, {value.base}"))
    return Wide(type_, text, converted(b, value.base, source, type_), value.stride, valid)


def _number(text: str) -> int | None:
    return int(text) if text.lstrip("-").isdigit() else None


def scalars(b: Builder, op: str, left: Value | Wide, right: Value | Wide) -> Wide:
    """The usual arithmetic conversions, then the operation in all lanes."""
    first, second = left.type, right.type
    if not isinstance(first, Scalar) or not isinstance(second, Scalar):
        raise NotInLockstep(f"{op} of {first} and {second}")
    if op in ("<<", ">>"):
        return _shift(b, op, widen(b, left), widen(b, right))
    type_ = types.common(first, second)
    one, two = convert(b, widen(b, left), type_), convert(b, widen(b, right), type_)
    if type_.floating and op not in FLOATING and op not in SIGNED_COMPARE:
        raise b.refuse(f"{op} does not work on {type_}")
    if op not in INTEGER and op not in SIGNED_COMPARE:
        raise NotInLockstep(f"the operator {op}")
    text = operated(b, op, type_, one.text, two.text, lanes_of(b).width)
    made = Wide(types.BOOL if op in SIGNED_COMPARE else type_, text)
    if not type_.floating and op in "+-*":
        _still_linear(b, op, made, one, two)
    return made


def _still_linear(b: Builder, op: str, made: Wide, one: Wide, two: Wide) -> None:
    if not one.base or not two.base:
        return
    stride = one.stride + two.stride if op == "+" else one.stride - two.stride
    if op == "*":
        times, of = (_number(two.base), one) if not two.stride else (_number(one.base), two)
        if one.stride and two.stride:
            return
        if not one.stride and not two.stride:
            stride = 0
        elif times is None:
            return
        else:
            stride = times * of.stride
    if abs(stride) > 1 << 20:
        return
    assert isinstance(made.type, Scalar)
    made.base = b.make(f"{INTEGER[op]} {made.type.llvm} {one.base}, {two.base}")
    made.stride, made.valid = stride, both(b, one.valid, two.valid)


def _shift(b: Builder, op: str, left: Wide, right: Wide) -> Wide:
    first = left.type
    assert isinstance(first, Scalar)
    type_ = types.promote(first)
    one = convert(b, left, type_)
    count = convert(b, right, types.LONG if type_.size == 8 else types.INT).text
    return Wide(type_, shifted(b, op, type_, one.text, count, lanes_of(b).width))


def assign_local(b: Builder, local: WideLocal, value: Wide) -> None:
    """Store to a variable in the lanes that are active."""
    lanes = lanes_of(b)
    kind, truths, text = vector(b, local.type), lanes.vector("i1"), value.text
    elsewhere = local.region != len(lanes.regions)
    if elsewhere:
        old = b.make(f"load {kind}, ptr {local.slot}")
        text = b.make(f"select {truths} {lanes.mask(b)}, {kind} {text}, {kind} {old}")
    b.emit(f"store {kind} {text}, ptr {local.slot}")
    if local.flag:
        has = b.make(f"or {truths} {b.make(f'load {truths}, ptr {local.flag}')}, {lanes.mask(b)}")
        b.emit(f"store {truths} {has}, ptr {local.flag}")
