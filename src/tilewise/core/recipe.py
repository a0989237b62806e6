"""A recipe: the launches of a product with placeholders for its addresses. Pure values; nothing here needs a card.

Everything about a launch but the addresses of M, N, P, bias, scales and scratch follows from a call's signature and is
prepared once. A call only fills in the addresses and launches (`backends/cuda/launcher.py`).
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from tilewise.system.quantities import extent

BOUNDARY = 16  # bytes: base addresses are known modulo this
SCRATCH_BOUNDARY = 1024  # alignment of every piece of scratch memory
BASES = ("M", "N", "P", "scratch", "arg", "bias", "scale_m", "scale_n", "offsets")  # addresses that a call fills in


class Address(NamedTuple):
    """A base and an offset in bytes. `misalignment`: of the base, modulo 16; part of the signature."""

    base: str
    offset: int = 0
    misalignment: int = 0

    def __add__(self, nbytes: int) -> Address:  # type: ignore[override]
        return Address(self.base, self.offset + nbytes, self.misalignment)

    def __sub__(self, nbytes: int) -> Address:
        return self + -nbytes

    def __mod__(self, modulus: int) -> int:
        assert BOUNDARY % modulus == 0, f"addresses are known modulo {BOUNDARY}, not {modulus}"
        return (self.offset + self.misalignment) % modulus

    @property
    def alignment(self) -> int:
        """The largest power of two, up to 16, that divides it."""
        return math.gcd(self.offset + self.misalignment, BOUNDARY)


class TensorMap(NamedTuple):
    """A TMA tensor map: `lines` rows (or columns) of `length` elements, `lead` bytes apart, fetched in boxes.

    `stack`: (members, stride in bytes) of each axis of a stack, the innermost first."""

    address: Address
    kind: str  # uint8, uint16, uint32, tfloat32
    lines: int
    length: int
    lead: int
    box: int  # elements along a row
    box_lines: int
    swizzled: bool = True
    stack: tuple[tuple[int, int], ...] = ()


class Argument(NamedTuple):
    """One kernel parameter: its bytes, and the offsets of addresses and tensor maps in them."""

    data: bytes
    holes: tuple[tuple[int, Address], ...] = ()
    maps: tuple[tuple[int, TensorMap], ...] = ()


Value = Any  # Address, None, TensorMap, a ctypes scalar or array, a ctypes.Structure, an Argument
NULL = bytes(8)
PLAIN = frozenset((int, float, bool))


def argument(value: Value) -> Argument:
    """A parameter from what a launch is given: an address (None is the null pointer), a tensor map, a ctypes value."""
    kind = value.__class__
    if kind is Argument:
        return value  # type: ignore[no-any-return]
    if kind is Address:
        return Argument(NULL, ((0, value),))
    if kind is TensorMap:
        return Argument(bytes(128), (), ((0, value),))
    return Argument(NULL if value is None else bytes(value))


class StructLayout(NamedTuple):
    """A ctypes structure as a `struct.Struct`."""

    packed: struct.Struct  # a field that is no number is a byte string
    empty: tuple[Any, ...]  # default value of each field: 0, or b""
    fields: tuple[tuple[int, bool, Any], ...]  # (offset, whether it is a number, its ctypes type)
    numbers: int  # number of leading fields that are numbers


NUMBERS = {"i": "i", "I": "I", "q": "q", "Q": "Q", "l": "q", "L": "Q", "f": "f", "d": "d"}  # ctypes' codes, of 64 bits
if ctypes.sizeof(ctypes.c_long) != 8:
    NUMBERS |= {"l": "i", "L": "I"}


@lru_cache(maxsize=64)
def _struct_layout(kind: type[ctypes.Structure]) -> StructLayout:
    text, end, empty, fields = "=", 0, list[Any](), []
    for name, declared, *_ in kind._fields_:
        at, nbytes = getattr(kind, name).offset, ctypes.sizeof(declared)
        code = getattr(declared, "_type_", "") if issubclass(declared, ctypes._SimpleCData) else ""
        text += f"{at - end}x{NUMBERS.get(code) or f'{nbytes}s'}"
        empty.append(0 if code in NUMBERS else b"")
        fields.append((at, code in NUMBERS, declared))
        end = at + nbytes
    first = next((at for at, (_, is_number, _) in enumerate(fields) if not is_number), len(fields))
    return StructLayout(struct.Struct(f"{text}{ctypes.sizeof(kind) - end}x"), tuple(empty), tuple(fields), first)


def structure(kind: type[ctypes.Structure], *values: Value) -> Argument:
    """A ctypes structure whose fields may be addresses, tensor maps or structures with such fields."""
    layout = _struct_layout(kind)
    while values and values[-1] is None:
        values = values[:-1]
    if PLAIN.issuperset(map(type, values)) and layout.numbers >= len(values):
        return Argument(layout.packed.pack(*values, *layout.empty[len(values) :]))
    given = list(layout.empty)
    holes: list[tuple[int, Address]] = []
    maps: list[tuple[int, TensorMap]] = []
    for number, ((at, is_number, declared), value) in enumerate(zip(layout.fields, values, strict=False)):
        of = value.__class__
        if is_number and (of is int or of is float or of is bool):
            given[number] = value
        elif of is Address:
            holes.append((at, value))
        elif value is not None:
            part = argument(
                value if of is Argument or of is TensorMap or isinstance(value, declared) else declared(value)
            )
            given[number] = part.data if not is_number else declared.from_buffer_copy(part.data).value
            holes += [(at + offset, address) for offset, address in part.holes]
            maps += [(at + offset, made) for offset, made in part.maps]
    return Argument(layout.packed.pack(*given), tuple(holes), tuple(maps))


def array(values: Iterable[Value]) -> Argument:
    """Several values as one kernel parameter: an array of tensor maps, say."""
    data, holes, maps = b"", [], []
    for value in values:
        part = argument(value)
        holes += [(len(data) + offset, address) for offset, address in part.holes]
        maps += [(len(data) + offset, made) for offset, made in part.maps]
        data += part.data
    return Argument(data, tuple(holes), tuple(maps))


class Launch(NamedTuple):
    """One kernel launch. `overlap`: programmatic dependent launch; the kernel executes griddepcontrol.wait before it
    reads the results of the launch before it. `cluster`: blocks of a cluster along x; 1 also where the text sets it."""

    source: str
    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: tuple[Argument, ...]
    shared_bytes: int = 0
    overlap: bool = False
    cluster: int = 1

    @classmethod
    def of(
        cls,
        source: str,
        name: str,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        arguments: Iterable[Value],
        shared_bytes: int = 0,
        overlap: bool = False,
        cluster: int = 1,
    ) -> Launch:
        return cls(source, name, grid, block, tuple(map(argument, arguments)), shared_bytes, overlap, cluster)

    def __repr__(self) -> str:
        return f"Launch({self.name}, grid {extent(self.grid)} of {extent(self.block)})"


@dataclass(frozen=True)
class Zero:
    """Set 4 bytes on the card to 0."""

    address: Address


Step = Launch | Zero


@dataclass(frozen=True)
class Recipe:
    """The steps of one product, in stream order, and the scratch memory they share."""

    steps: tuple[Step, ...]
    scratch_bytes: int = 0

    @property
    def sources(self) -> tuple[str, ...]:
        """The distinct kernel texts, in launch order."""
        return tuple(dict.fromkeys(step.source for step in self.steps if isinstance(step, Launch)))


@dataclass
class Scratch:
    """Allocates the workspace of a recipe: each role gets an offset in one buffer."""

    size: int = 0

    def take(self, nbytes: int) -> Address:
        at = Address("scratch", self.size)
        self.size += -(-max(nbytes, 1) // SCRATCH_BOUNDARY) * SCRATCH_BOUNDARY
        return at

    def take_all(self, needs: dict[str, int]) -> dict[str, Address]:
        """An address for each role."""
        return {role: self.take(nbytes) for role, nbytes in needs.items()}
