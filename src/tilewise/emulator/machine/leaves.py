"""Types as NumPy holds them: dtypes of numbers, and the leaves (numbers and pointers) of arrays and classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tilewise.emulator.parse.types import (
    BFLOAT16,
    HALF,
    NULLPTR,
    VOID,
    VOIDP,
    Array,
    Pointer,
    Record,
    Reference,
    Scalar,
    Type,
    innermost,
)

NUMBERS = {"__half": HALF, "__nv_bfloat16": BFLOAT16}  # classes in the headers, numbers in the machine
DTYPES = {  # by kind, bytes and sign
    (kind, size, signed): np.dtype(f"{letter}{size}")
    for kind, signed, letter, sizes in (
        ("int", True, "i", (1, 2, 4, 8)), ("int", False, "u", (1, 2, 4, 8)), ("bool", False, "b", (1,)),
        ("float", True, "f", (2, 4, 8)),
    )
    for size in sizes
}  # fmt: skip


def numeric(type_: Type) -> Type:
    """The type with the classes in NUMBERS replaced by numbers."""
    if isinstance(type_, Scalar):
        return VOIDP if type_ is NULLPTR else type_
    if isinstance(type_, (Pointer, Reference)):
        to = numeric(type_.to)
        return type_ if to is type_.to else replace(type_, to=to)
    if isinstance(type_, Array):
        of = numeric(type_.of)
        return type_ if of is type_.of else replace(type_, of=of)
    return NUMBERS.get(type_.name, type_) if isinstance(type_, Record) else type_


def dtype_of(type_: Scalar) -> np.dtype[Any]:
    if type_ is BFLOAT16:  # not in NumPy
        import ml_dtypes

        made: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return made
    return DTYPES[type_.kind, type_.size, type_.signed]


def placed_leaves(type_: Type, offset: int = 0) -> list[tuple[Scalar | Pointer, int]]:
    """The numbers and pointers of a value, bases first, each with its offset in bytes."""
    type_ = numeric(type_)
    if isinstance(type_, Array):
        return [x for i in range(type_.length) for x in placed_leaves(type_.of, offset + i * type_.of.size)]
    if isinstance(type_, Reference):
        return [(Pointer(type_.to), offset)]
    if isinstance(type_, Record):
        return [x for f in type_.members for x in placed_leaves(f.type, offset + f.offset)]
    return [(type_, offset)] if isinstance(type_, (Scalar, Pointer)) and type_ is not VOID else []


def leaves(type_: Type) -> list[Scalar | Pointer]:
    if isinstance(type_, Array):
        return leaves(type_.of) * type_.length
    if isinstance(type_, Scalar):
        return [type_] if type_ is not VOID else []
    return [leaf for leaf, _ in placed_leaves(type_)]


def leaf_count(type_: Type) -> int:
    if isinstance(type_, Array):
        return leaf_count(type_.of) * type_.length
    return len(leaves(type_)) if isinstance(type_, Record) else 1


def leaf_offset(record: Record, offset: int) -> int:
    """The index of the leaf at this offset in bytes."""
    return sum(at < offset for _, at in placed_leaves(record))


def dtypes_of(type_: Type) -> list[Any]:
    """The dtypes of the leaves; None for a pointer."""
    return [dtype_of(leaf) if isinstance(leaf, Scalar) else None for leaf in leaves(type_)]


def element_dtype(type_: Type) -> Any:
    """The dtype of a buffer of this type, and the cells per element; (None, 0) if its leaves differ."""
    inner = innermost(type_)
    dtypes = set(dtypes_of(inner))
    if len(dtypes) != 1 or None in dtypes:
        return None, 0
    return dtypes.pop(), leaf_count(inner)
