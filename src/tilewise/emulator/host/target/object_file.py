"""Links one WebAssembly object file of LLVM (wasm64) to a module that can be loaded.

An object file numbers its functions, globals and table entries as the loaded module does, and lays out its data from
address 0. What is left to do: data goes to its place in the memory, the table becomes the module's own (no other module
can change or call its entries), the entry function is exported. Relocations follow the tool conventions
(github.com/WebAssembly/tool-conventions, Linking.md); one that LLVM does not emit for our modules is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tilewise.errors import EngineError

MAGIC = b"\0asm\1\0\0\0"
CUSTOM, TYPE, IMPORT, FUNCTION, TABLE, EXPORT, ELEMENT, DATA_COUNT, CODE, DATA = 0, 1, 2, 3, 4, 7, 9, 12, 10, 11
ORDER = (TYPE, IMPORT, FUNCTION, TABLE, EXPORT, ELEMENT, DATA_COUNT, CODE, DATA)
KIND_FUNCTION, KIND_TABLE, KIND_MEMORY, KIND_GLOBAL = range(4)
SYMBOL_FUNCTION, SYMBOL_DATA, SYMBOL_GLOBAL, SYMBOL_SECTION, SYMBOL_TAG, SYMBOL_TABLE = range(6)
SYMBOL_TABLE_OF_LINKING = 8
UNDEFINED, EXPLICIT_NAME = 0x10, 0x40
# relocations whose number is the loaded module's already: of functions, types, globals, tables and table entries
FINAL = frozenset({0, 1, 6, 7, 18, 19, 20})
# addresses, which move with the data: by type, whether the field is a signed or unsigned LEB of 10 bytes or plain
ADDRESSES = {14: "leb", 15: "leb", 16: "plain"}
VALUES = {0x7F: "i32", 0x7E: "i64", 0x7D: "float", 0x7C: "double"}
I64_CONST, END, FUNCREF = 0x42, 0x0B, 0x70
PAGE = 1 << 16
MEMORY, STACK_POINTER = "__linear_memory", "__stack_pointer"


@dataclass(frozen=True)
class Imported:
    """A function that the module imports, with its wasm types under LLVM's names."""

    name: str
    result: str
    parameters: tuple[str, ...]


@dataclass(frozen=True)
class Module:
    binary: bytes
    given: tuple[str, ...]  # what it imports first: MEMORY and STACK_POINTER, or one of them
    functions: tuple[Imported, ...]  # what it imports after that
    names: dict[int, str]  # of the functions that it defines, by their numbers


class Reader:
    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def byte(self) -> int:
        if self.at >= len(self.data):
            raise EngineError(f"an object file ends at byte {self.at}, in the middle of an entry")
        self.at += 1
        return self.data[self.at - 1]

    def number(self) -> int:
        """An unsigned LEB."""
        out = shift = 0
        while True:
            byte = self.byte()
            out |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return out

    def take(self, size: int) -> bytes:
        if self.at + size > len(self.data):
            raise EngineError(f"an object file ends at byte {len(self.data)}, {size} bytes at {self.at} are missing")
        self.at += size
        return self.data[self.at - size : self.at]

    def name(self) -> str:
        return self.take(self.number()).decode("utf-8", "replace")


def leb(value: int, signed: bool = False, width: int = 0) -> bytes:
    """A LEB; `width`: padded to this many bytes."""
    out = bytearray()
    while True:
        byte, value = value & 127, value >> 7
        done = (value == 0 and not (signed and byte & 64)) or (signed and value == -1 and byte & 64)
        if done and len(out) + 1 >= width:
            return bytes([*out, byte])
        out.append(byte | 128)
        if len(out) > 10:
            raise EngineError(f"an address of an object file does not fit in {width} bytes")


def vector(items: list[bytes]) -> bytes:
    return leb(len(items)) + b"".join(items)


def link(data: bytes, entry: str, place: Callable[[int], int]) -> Module:
    """The module of an object file that exports `entry`. `place`: the address of so many bytes for its data."""
    known, custom = _sections(data)
    types = _types(known.get(TYPE, b"\0"))
    imports, given, functions, table = _imports(known.get(IMPORT, b"\0"), types)
    symbols = _symbols(custom.get("linking", b""))
    segments = _segments(known.get(DATA, b"\0"))
    base = place(max((at + len(part) for at, part in segments), default=0)) if segments else 0
    for section in (CODE, DATA):
        name = f"reloc.{'CODE' if section == CODE else 'DATA'}"
        if name in custom:
            known[section] = _relocated(known[section], custom[name], base)
    if segments:
        moved = [leb(0) + bytes([I64_CONST]) + leb(base + at, signed=True) + bytes([END]) + leb(len(part)) + part
                 for at, part in _segments(known[DATA])]  # fmt: skip
        known[DATA] = vector(moved)
    known[IMPORT] = imports
    if table:
        least = leb(1 + _elements(known.get(ELEMENT, b"\0")))
        known[TABLE] = vector([bytes([FUNCREF, 5]) + least + least])  # 64-bit, with a maximum
    number = symbols.get(entry)
    if number is None:
        raise EngineError(f"an object file does not define {entry}")
    exports = [_export(entry, KIND_FUNCTION, number)]
    if table:
        exports.append(_export("table", KIND_TABLE, 0))
    known[EXPORT] = vector(exports)
    body = b"".join(bytes([n]) + leb(len(known[n])) + known[n] for n in ORDER if known.get(n))
    return Module(MAGIC + body, given, tuple(functions), {n: name for name, n in symbols.items()})


def _sections(data: bytes) -> tuple[dict[int, bytes], dict[str, bytes]]:
    """Sections by number, custom ones by name."""
    if data[:8] != MAGIC:
        raise EngineError("not an object file of WebAssembly")
    known: dict[int, bytes] = {}
    custom: dict[str, bytes] = {}
    reader = Reader(data, 8)
    while reader.at < len(data):
        number = reader.byte()
        body = reader.take(reader.number())
        if number != CUSTOM:
            if number not in ORDER or number == EXPORT:
                raise EngineError(f"an object file with a section {number}, which LLVM does not emit for programs")
            known[number] = body
            continue
        inner = Reader(body)
        name = inner.name()
        custom[name] = body[inner.at :]
    return known, custom


def _types(body: bytes) -> list[tuple[str, tuple[str, ...]]]:
    reader, out = Reader(body), []
    for _ in range(reader.number()):
        if reader.byte() != 0x60:
            raise EngineError("an object file with a type that is no function's")
        parameters = tuple(VALUES.get(reader.byte(), "other") for _ in range(reader.number()))
        results = [VALUES.get(reader.byte(), "other") for _ in range(reader.number())]
        out.append((results[0] if len(results) == 1 else "other" if results else "void", parameters))
    return out


def _imports(
    body: bytes, types: list[tuple[str, tuple[str, ...]]]
) -> tuple[bytes, tuple[str, ...], list[Imported], bool]:
    """The import section without the table, what it imports beside functions, these, and whether it had a table."""
    reader, kept, functions, table = Reader(body), [], [], False
    for _ in range(reader.number()):
        start = reader.at
        reader.name()
        name, kind = reader.name(), reader.byte()
        if kind == KIND_FUNCTION:
            functions.append(Imported(name, *types[reader.number()]))
        elif kind == KIND_TABLE:
            reader.byte()
            _limits(reader)
            table = True
            continue
        elif kind == KIND_MEMORY and name == MEMORY:
            _limits(reader)
        elif kind == KIND_GLOBAL and name == STACK_POINTER:
            reader.take(2)
        else:
            raise EngineError(f"an object file imports {name}, which programs do not have")
        kept.append((kind, name, body[start : reader.at]))
    kept.sort(key=lambda one: one[0] == KIND_FUNCTION)  # each kind is numbered by itself
    given = tuple(name for kind, name, _ in kept if kind != KIND_FUNCTION)
    return vector([text for _, _, text in kept]), given, functions, table


def _limits(reader: Reader) -> None:
    if reader.byte() & 1:
        reader.number()
    reader.number()


def _symbols(body: bytes) -> dict[str, int]:
    """The numbers of the functions that the file defines, by name."""
    out: dict[str, int] = {}
    reader = Reader(body)
    if not body or reader.number() != 2:
        raise EngineError("an object file without a linking section of version 2")
    while reader.at < len(body):
        kind = reader.byte()
        inner = Reader(reader.take(reader.number()))
        if kind != SYMBOL_TABLE_OF_LINKING:
            continue
        for _ in range(inner.number()):
            what, flags = inner.byte(), inner.number()
            defined = not flags & UNDEFINED
            if what == SYMBOL_DATA:
                name = inner.name()
                if not defined:
                    raise EngineError(f"an object file refers to the data of {name}, which it does not define")
                inner.number(), inner.number(), inner.number()
            elif what == SYMBOL_SECTION:
                inner.number()
            else:
                number = inner.number()
                name = inner.name() if defined or flags & EXPLICIT_NAME else ""
                if what == SYMBOL_FUNCTION and defined:
                    out[name] = number
    return out


def _segments(body: bytes) -> list[tuple[int, bytes]]:
    reader, out = Reader(body), []
    for _ in range(reader.number()):
        if reader.number() != 0 or reader.byte() != I64_CONST:
            raise EngineError("an object file with a data segment that is not at a constant address")
        at = reader.number()
        if reader.byte() != END:
            raise EngineError("an object file with a data segment that is not at a constant address")
        out.append((at, reader.take(reader.number())))
    return out


def _elements(body: bytes) -> int:
    """How many functions have their address taken: table entries 1 … n."""
    reader = Reader(body)
    count = reader.number()
    if count == 0:
        return 0
    if count != 1 or reader.number() != 0 or reader.byte() != I64_CONST or reader.number() != 1:
        raise EngineError("an object file whose table entries do not begin at 1")
    reader.byte()
    return reader.number()


def _relocated(section: bytes, relocations: bytes, base: int) -> bytes:
    """The section with `base` added to each address in it."""
    out = bytearray(section)
    for kind, at in _places(relocations):
        if kind in FINAL:
            continue
        how = ADDRESSES.get(kind)
        if how is None:
            raise EngineError(f"an object file with a relocation of type {kind}, which is not supported")
        if at + (10 if how == "leb" else 8) > len(out):
            raise EngineError(f"an object file with a relocation at byte {at} of {len(out)}")
        if how == "plain":
            value = int.from_bytes(out[at : at + 8], "little") + base
            out[at : at + 8] = (value & (1 << 64) - 1).to_bytes(8, "little")
            continue
        field = Reader(section, at)
        value = field.number()
        if field.at != at + 10:
            raise EngineError(f"an object file with an address of {field.at - at} bytes at byte {at}: 10 are expected")
        value = (value & (1 << 64) - 1) - (1 << 64 if value >> 63 & 1 else 0)  # of a signed one
        out[at : at + 10] = leb(value + base, signed=kind == 15, width=10)
    return bytes(out)


def _places(relocations: bytes) -> Iterator[tuple[int, int]]:
    reader = Reader(relocations)
    reader.number()  # the section
    for _ in range(reader.number()):
        kind, at, _ = reader.byte(), reader.number(), reader.number()
        if kind in ADDRESSES or kind in (3, 4, 5, 8, 9, 22, 23):
            reader.number()  # the addend, which the field contains
        yield kind, at


def _export(name: str, kind: int, number: int) -> bytes:
    text = name.encode()
    return leb(len(text)) + text + bytes([kind]) + leb(number)
