"""C++ types in the x86-64 Linux ABI (LP64, signed char), and their LLVM types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tilewise.emulator.parse import tree


class Type:
    """`size` and `align` in bytes; `llvm` is the type of a value of it."""

    size: int
    align: int
    llvm: str


@dataclass(frozen=True)
class Scalar(Type):
    name: str
    kind: str  # "int", "float", "bool", "void"
    size: int
    signed: bool
    rank: int
    llvm: str

    @property
    def align(self) -> int:  # type: ignore[override]
        return max(1, self.size)

    def __reduce__(self) -> str | tuple[Any, ...]:  # unpickled basic types are the constants below
        if type(self) is Scalar and self.name in BY_NAME:
            return basic, (self.name,)
        return super().__reduce__()

    @property
    def bits(self) -> int:
        return 1 if self.kind == "bool" else self.size * 8

    @property
    def floating(self) -> bool:
        return self.kind == "float"

    @property
    def integral(self) -> bool:
        return self.kind in ("int", "bool")

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Enum(Scalar):
    """An enumeration: its underlying integer type, distinguished by name."""

    scoped: bool = False


@dataclass(frozen=True)
class Pointer(Type):
    to: Type
    const: bool = field(default=False, compare=False)
    size = 8
    align = 8
    llvm = "ptr"

    def __str__(self) -> str:
        return f"{'const ' if self.const else ''}{self.to}*"


@dataclass(frozen=True)
class Reference(Type):
    to: Type
    const: bool = field(default=False, compare=False)
    rvalue: bool = False
    size = 8
    align = 8
    llvm = "ptr"

    def __str__(self) -> str:
        return f"{'const ' if self.const else ''}{self.to}{'&&' if self.rvalue else '&'}"


@dataclass(frozen=True)
class Array(Type):
    of: Type
    length: int

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.of.size * self.length

    @property
    def align(self) -> int:  # type: ignore[override]
        return self.of.align

    @property
    def llvm(self) -> str:  # type: ignore[override]
        return f"[{self.size} x i8]"

    def __str__(self) -> str:
        lengths, inner = f"[{self.length}]", self.of
        while isinstance(inner, Array):
            lengths, inner = f"{lengths}[{inner.length}]", inner.of
        return f"{inner}{lengths}"


@dataclass(frozen=True)
class FunctionType(Type):
    result: Type
    parameters: tuple[Type, ...]
    variadic: bool = False
    size = 1
    align = 1
    llvm = "ptr"

    def __str__(self) -> str:
        return f"{self.result}({', '.join(map(str, self.parameters))})"


@dataclass(frozen=True)
class TemplateName(Type):
    """A class template that is itself given as a template argument."""

    name: str
    size = 1
    align = 1
    llvm = "ptr"

    def __str__(self) -> str:
        return self.name


Number: TypeAlias = int | float
Constant: TypeAlias = tuple[Number, Scalar]
Argument: TypeAlias = Type | Constant  # of a template
Bindings: TypeAlias = dict[str, Argument]  # of template parameters
Slot = tuple[str, tuple[str, ...], bool]  # a virtual method: name, parameter types, const


@dataclass(eq=False)
class Field:
    name: str
    type: Type
    offset: int
    init: Any = None


@dataclass(eq=False)
class Record(Type):
    """A class with its layout; one object per class or class template instance."""

    name: str
    node: tree.Class | None  # None: of a lambda
    bindings: Bindings  # of the template parameters, or those of a specialisation
    arguments: list[Argument] | None = None  # of a specialisation: the primary template's arguments
    fields: list[Field] = field(default_factory=list)
    bases: list[tuple[Record, int]] = field(default_factory=list)
    methods: dict[str, list[tree.Function]] = field(default_factory=dict)
    size: int = 1
    align: int = 1
    laid_out: bool = False
    scope: str = ""
    trivial: bool = True  # no destructor and no copy operation, neither has a member one
    vptr: int | None = None  # the offset of the vtable pointer
    slots: list[Slot] = field(default_factory=list)  # of the vtable
    captured: Any = None

    @property
    def llvm(self) -> str:  # type: ignore[override]
        return "ptr"

    def field(self, name: str) -> tuple[Field, int] | None:
        for f in self.fields:
            if f.name == name:
                return f, f.offset
        for base, offset in self.bases:
            found = base.field(name)
            if found is not None:
                return found[0], found[1] + offset
        return None

    @property
    def lineage(self) -> Iterator[Record]:
        """The class, its first base, the first base of that, …"""
        record: Record | None = self
        while record is not None:
            yield record
            record = record.bases[0][0] if record.bases else None

    @property
    def members(self) -> list[Field]:
        """Fields of the bases, then its own, each at its offset in the object."""
        inherited = [(f, at) for base, at in self.bases for f in base.members]
        return [Field(f.name, f.type, f.offset + at, f.init) for f, at in inherited] + self.fields

    def methods_named(self, name: str) -> list[tuple[tree.Function, Record, int]]:
        """Methods of that name, each with its class and that class's offset in this one."""
        own = [(m, self, 0) for m in self.methods.get(name, [])]
        if own:
            return own
        for base, offset in self.bases:
            found = [(m, r, o + offset) for m, r, o in base.methods_named(name)]
            if found:
                return found
        return []

    def derives(self, other: Record) -> int | None:
        """The offset of `other` in this class; None if it is no base."""
        if self is other:
            return 0
        for base, offset in self.bases:
            inner = base.derives(other)
            if inner is not None:
                return inner + offset
        return None

    def __str__(self) -> str:
        return self.name.removeprefix("std::")


VOID = Scalar("void", "void", 0, False, -1, "void")
BOOL = Scalar("bool", "bool", 1, False, 0, "i1")
CHAR = Scalar("char", "int", 1, True, 1, "i8")
SCHAR = Scalar("signed char", "int", 1, True, 1, "i8")
UCHAR = Scalar("unsigned char", "int", 1, False, 1, "i8")
SHORT = Scalar("short", "int", 2, True, 2, "i16")
USHORT = Scalar("unsigned short", "int", 2, False, 2, "i16")
INT = Scalar("int", "int", 4, True, 3, "i32")
UINT = Scalar("unsigned int", "int", 4, False, 3, "i32")
LONG = Scalar("long", "int", 8, True, 4, "i64")
ULONG = Scalar("unsigned long", "int", 8, False, 4, "i64")
LLONG = Scalar("long long", "int", 8, True, 5, "i64")
ULLONG = Scalar("unsigned long long", "int", 8, False, 5, "i64")
HALF = Scalar("__half", "float", 2, True, 10, "half")
BFLOAT16 = Scalar("__nv_bfloat16", "float", 2, True, 11, "bfloat")
FLOAT = Scalar("float", "float", 4, True, 12, "float")
DOUBLE = Scalar("double", "float", 8, True, 13, "double")
NULLPTR = Scalar("nullptr_t", "null", 8, False, -2, "ptr")
VOIDP = Pointer(VOID)

NAMED: dict[str, Type] = {
    "void": VOID, "bool": BOOL, "char": CHAR, "short": SHORT, "int": INT, "long": LONG, "float": FLOAT,
    "double": DOUBLE, "size_t": ULONG, "ssize_t": LONG, "ptrdiff_t": LONG, "int8_t": SCHAR, "uint8_t": UCHAR,
    "int16_t": SHORT, "uint16_t": USHORT, "int32_t": INT, "uint32_t": UINT, "int64_t": LONG, "uint64_t": ULONG,
    "intptr_t": LONG, "uintptr_t": ULONG, "wchar_t": INT, "time_t": LONG, "clock_t": LONG, "uint": UINT,
    "ushort": USHORT, "ulong": ULONG, "uchar": UCHAR, "u_int32_t": UINT, "__half": HALF, "half": HALF,
    "char16_t": USHORT, "char32_t": UINT, "nullptr_t": NULLPTR,
    "int_fast32_t": LONG, "uint_fast32_t": ULONG,
}  # fmt: skip
BY_NAME = {
    t.name: t
    for t in (VOID, BOOL, CHAR, SCHAR, UCHAR, SHORT, USHORT, INT, UINT, LONG, ULONG, LLONG, ULLONG, HALF, BFLOAT16,
              FLOAT, DOUBLE, NULLPTR)
}  # fmt: skip


def basic(name: str) -> Scalar:
    return BY_NAME[name]


UNSIGNED = {SCHAR: UCHAR, CHAR: UCHAR, SHORT: USHORT, INT: UINT, LONG: ULONG, LLONG: ULLONG}


def promote(type_: Scalar) -> Scalar:
    if isinstance(type_, Enum):
        type_ = next(t for t in (INT, UINT, LONG, ULONG, CHAR, UCHAR, SHORT, USHORT) if t.llvm == type_.llvm
                     and t.signed == type_.signed)  # fmt: skip
    return INT if type_.integral and type_.rank < INT.rank else type_


def common(a: Scalar, b: Scalar) -> Scalar:
    """The usual arithmetic conversions."""
    if a.floating or b.floating:
        return a if a.rank >= b.rank else b
    a, b = promote(a), promote(b)
    if a.signed == b.signed:
        return a if a.rank >= b.rank else b
    u, s = (b, a) if a.signed else (a, b)
    if u.rank >= s.rank:
        return u
    return s if s.size > u.size else UNSIGNED[s]


def stored(type_: Type) -> str:
    """The LLVM type in memory: a bool is a byte."""
    return "i8" if type_ is BOOL else type_.llvm


def bare(type_: Type) -> Type:
    return type_.to if isinstance(type_, Reference) else type_


def dimensions(type_: Type) -> list[int]:
    """The lengths of an array of arrays, the outer one first."""
    return [type_.length, *dimensions(type_.of)] if isinstance(type_, Array) else []


def innermost(type_: Type) -> Type:
    """The element type of an array of arrays."""
    while isinstance(type_, Array):
        type_ = type_.of
    return type_


def _truncated(type_: Scalar, value: float) -> int:
    """As x86-64's cvttsd2si: the least number for one that does not fit; through 64 bits to unsigned int and larger."""
    least = -(1 << 31) if type_.size < 4 or (type_.size == 4 and type_.signed) else -(1 << 63)
    most = 1 << 64 if type_.size == 8 and not type_.signed else -least
    return int(value) if least - 1 < value < most else least


def wrap(type_: Scalar, value: Number) -> Number:
    """The value that a variable of this type has after `value` is assigned."""
    if type_.floating:
        return float(value)
    if type_.kind == "bool":
        return int(bool(value))
    value = _truncated(type_, value) if isinstance(value, float) else int(value)
    bits = type_.size * 8
    value &= (1 << bits) - 1
    return value - (1 << bits) if type_.signed and value >> (bits - 1) else value
