"""C's types: scalars with their NumPy dtype, pointers, arrays, structs; promotions and the usual conversions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Type(ABC):
    @property
    @abstractmethod
    def size(self) -> int: ...

    @property
    def align(self) -> int:
        return self.size


@dataclass(frozen=True)
class Void(Type):
    @property
    def size(self) -> int:
        return 1

    def __str__(self) -> str:
        return "void"


@dataclass(frozen=True)
class Scalar(Type):
    name: str
    dtype: Any
    rank: int  # integers: conversion rank; floats: above all integers

    @property
    def size(self) -> int:
        return int(self.dtype.itemsize)

    @property
    def floating(self) -> bool:
        return self.rank >= 10

    @property
    def unsigned(self) -> bool:
        return bool(self.dtype.kind == "u")

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Pointer(Type):
    to: Type
    const: bool = False

    @property
    def size(self) -> int:
        return 8

    def __str__(self) -> str:
        return f"{'const ' if self.const else ''}{self.to}*"


@dataclass(frozen=True)
class Array(Type):
    of: Type
    length: int

    @property
    def size(self) -> int:
        return self.of.size * self.length

    @property
    def align(self) -> int:
        return self.of.align

    def __str__(self) -> str:
        return f"{self.of}[{self.length}]"


@dataclass(frozen=True)
class Field:
    name: str
    type: Type
    offset: int


@dataclass(frozen=True)
class Struct(Type):
    name: str
    fields: tuple[Field, ...] = field(default=(), compare=False)
    alignment: int = field(default=1, compare=False)
    bytes: int = field(default=0, compare=False)
    record: Any = field(default=None, compare=False)  # the class, as the symbol table has it

    @property
    def size(self) -> int:
        return self.bytes

    @property
    def align(self) -> int:
        return self.alignment

    def field(self, name: str) -> Field | None:
        return next((f for f in self.fields if f.name == name), None)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Reference(Type):
    to: Type
    const: bool = False

    @property
    def size(self) -> int:
        return 8

    def __str__(self) -> str:
        return f"{self.to}&"


VOID = Void()
BOOL = Scalar("bool", np.dtype(np.bool_), 0)
CHAR = Scalar("char", np.dtype(np.int8), 1)
SCHAR = Scalar("signed char", np.dtype(np.int8), 1)
UCHAR = Scalar("unsigned char", np.dtype(np.uint8), 1)
SHORT = Scalar("short", np.dtype(np.int16), 2)
USHORT = Scalar("unsigned short", np.dtype(np.uint16), 2)
INT = Scalar("int", np.dtype(np.int32), 3)
UINT = Scalar("unsigned int", np.dtype(np.uint32), 3)
LONG = Scalar("long", np.dtype(np.int64), 4)
ULONG = Scalar("unsigned long", np.dtype(np.uint64), 4)
LLONG = Scalar("long long", np.dtype(np.int64), 5)
ULLONG = Scalar("unsigned long long", np.dtype(np.uint64), 5)
HALF = Scalar("__half", np.dtype(np.float16), 10)
FLOAT = Scalar("float", np.dtype(np.float32), 12)
DOUBLE = Scalar("double", np.dtype(np.float64), 13)


def bfloat16() -> Scalar:
    """The type of `__nv_bfloat16`; NumPy has none of its own."""
    import ml_dtypes

    return Scalar("__nv_bfloat16", np.dtype(ml_dtypes.bfloat16), 11)


BY_NAME: dict[str, Type] = {
    t.name: t
    for t in (BOOL, CHAR, SCHAR, UCHAR, SHORT, USHORT, INT, UINT, LONG, ULONG, LLONG, ULLONG, HALF, FLOAT, DOUBLE)
} | {"void": VOID}  # fmt: skip


def promote(type_: Scalar) -> Scalar:
    """Integers narrower than int compute as int."""
    return INT if type_.rank < INT.rank else type_


def common(a: Scalar, b: Scalar) -> Scalar:
    """The usual arithmetic conversions."""
    if a.floating or b.floating:
        return a if a.rank >= b.rank else b
    a, b = promote(a), promote(b)
    if a.unsigned == b.unsigned:
        return a if a.rank >= b.rank else b
    u, s = (a, b) if a.unsigned else (b, a)
    if u.rank >= s.rank:
        return u
    if s.size > u.size:
        return s
    return {LONG: ULONG, LLONG: ULLONG}.get(s, UINT)


def leaves(type_: Type) -> list[Scalar | Pointer]:
    """The scalars and pointers a value is made of, in memory order."""
    if isinstance(type_, (Scalar, Pointer)):
        return [type_]
    if isinstance(type_, Array):
        return leaves(type_.of) * type_.length
    if isinstance(type_, Struct):
        return [leaf for f in type_.fields for leaf in leaves(f.type)]
    return []


def leaf_count(type_: Type) -> int:
    if isinstance(type_, Array):
        return leaf_count(type_.of) * type_.length
    if isinstance(type_, Struct):
        return sum(leaf_count(f.type) for f in type_.fields)
    return 1


def leaf_offset(struct: Struct, name: str) -> int:
    """How many leaves come before the member."""
    count = 0
    for f in struct.fields:
        if f.name == name:
            return count
        count += leaf_count(f.type)
    raise KeyError(name)


def dtypes_of(type_: Type) -> list[Any]:
    """The dtypes of the leaves; None for a pointer."""
    return [leaf.dtype if isinstance(leaf, Scalar) else None for leaf in leaves(type_)]


def innermost(type_: Type) -> Type:
    """What an array of arrays is made of."""
    while isinstance(type_, Array):
        type_ = type_.of
    return type_


def element_dtype(type_: Type) -> Any:
    """The dtype that a buffer behind a pointer to this type holds, and how many cells an element has."""
    inner = innermost(type_)
    dtypes = set(dtypes_of(inner))
    if len(dtypes) != 1 or None in dtypes:
        return None, 0
    return dtypes.pop(), leaf_count(inner)
