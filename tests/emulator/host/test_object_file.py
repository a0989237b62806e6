"""Object files of WebAssembly, made by hand: what the linker moves, what it keeps, and what it refuses."""

from __future__ import annotations

import pytest

from tilewise.emulator.host.target.object_file import MAGIC, Imported, leb, link, vector
from tilewise.errors import EngineError

wasmtime = pytest.importorskip("wasmtime", reason="wasmtime is an extra: tilewise[wasm]")
BASE = 3 << 20
I32, I64 = 0x7F, 0x7E
CODE_FUNCTION, TABLE_SLEB, MEMORY_SLEB, MEMORY_PLAIN, TABLE_PLAIN = 0, 18, 15, 16, 19


def named(text):
    return leb(len(text)) + text.encode()


def section(number, body):
    return bytes([number]) + leb(len(body)) + body


def custom(name, body):
    return section(0, named(name) + body)


def relocations(section_number, *entries):
    """(type, where) of each; an address has an addend of 0."""
    rows = [bytes([kind]) + leb(at) + leb(0) + (leb(0) if kind in (14, 15, 16) else b"") for kind, at in entries]
    return leb(section_number) + vector(rows)


def symbols(*rows):
    body = vector(list(rows))
    return leb(2) + bytes([8]) + leb(len(body)) + body


def function_symbol(name, number, undefined=False):
    return bytes([0, 0x10 if undefined else 0]) + leb(number) + (b"" if undefined else named(name))


def data_symbol(name, undefined=False):
    return bytes([1, 0x10 if undefined else 0]) + named(name) + (b"" if undefined else leb(0) + leb(0) + leb(8))


def body_of(instructions):
    code = leb(0) + instructions + b"\x0b"
    return leb(len(code)) + code


def object_file(
    *, code=None, relocated=((MEMORY_SLEB, 4),), table=False, elements=b"", linking=None, extra=b"", data_at=0,
    imports=(), types=None,
):  # fmt: skip
    """A function `start` that loads 8 bytes at the address 16 of the file's data."""
    types = types or [bytes([0x60]) + vector([]) + vector([bytes([I64])])]
    code = code or body_of(b"\x42" + leb(16, signed=True, width=10) + b"\x29\x00\x00")
    given = [named("env") + named("__linear_memory") + bytes([2, 4, 1]), *imports]
    if table:
        given.append(named("env") + named("__indirect_function_table") + bytes([1, 0x70, 4, 1]))
    number = len([one for one in imports if one[-2] == 0])
    parts = [
        section(1, vector(types)), section(2, vector(given)), section(3, vector([leb(len(types) - 1)])),
        elements, extra,
        section(10, vector([code])),
        section(11, vector([leb(0) + b"\x42" + leb(data_at, signed=True) + b"\x0b" + leb(24) + bytes(range(24))])),
        custom("linking", symbols(function_symbol("start", number), data_symbol("d")) if linking is None else linking),
        custom("reloc.CODE", relocations(4, *relocated)),
    ]  # fmt: skip
    return MAGIC + b"".join(parts)


def linked(data, sizes=None):
    def place(size):
        if sizes is not None:
            sizes.append(size)
        return BASE

    return link(data, "start", place)


def loaded(module, *functions):
    config = wasmtime.Config()
    config.wasm_memory64 = True
    store = wasmtime.Store(wasmtime.Engine(config))
    memory = wasmtime.Memory(store, wasmtime.MemoryType(wasmtime.Limits(80, 80), is_64=True))
    made = wasmtime.Module(store.engine, module.binary)
    instance = wasmtime.Instance(store, made, [memory, *(make(store) for make in functions)])
    return store, memory, instance.exports(store)


def test_data_and_its_addresses_move():
    sizes = []
    store, memory, exports = loaded(linked(object_file(), sizes))
    assert sizes == [24]
    assert exports["start"](store) == int.from_bytes(bytes(range(16, 24)), "little")
    assert memory.read(store, BASE, BASE + 24) == bytes(range(24))


def test_a_field_without_a_relocation_keeps_its_number():
    """The constant 16 is then an address of the page below, which holds zeros."""
    store, _, exports = loaded(linked(object_file(relocated=())))
    assert exports["start"](store) == 0


def test_addresses_in_data_move_by_the_base():
    data = object_file(data_at=0) + custom("reloc.DATA", relocations(5, (MEMORY_PLAIN, 14)))
    store, memory, _ = loaded(linked(data))
    written = memory.read(store, BASE, BASE + 24)
    there = 14 - 6  # the section begins with a count, the segment's flags, its address and its length
    expected = (int.from_bytes(bytes(range(there, there + 8)), "little") + BASE) & (1 << 64) - 1
    assert int.from_bytes(written[there : there + 8], "little") == expected
    assert written[:there] == bytes(range(there))


def test_the_table_becomes_the_modules_own():
    """start calls through the entry 1, which is the imported function."""
    function = bytes([0x60]) + vector([]) + vector([bytes([I64])])
    imported = named("env") + named("f") + bytes([0, 0])
    call = body_of(b"\x42" + leb(1, signed=True, width=10) + b"\x11\x00\x00")
    element = section(9, vector([leb(0) + b"\x42\x01\x0b" + vector([leb(0)])]))
    data = object_file(code=call, relocated=((TABLE_SLEB, 4),), table=True, elements=element, imports=[imported],
                       types=[function])  # fmt: skip
    module = linked(data)
    assert module.functions == (Imported("f", "i64", ()),)
    seven = wasmtime.FuncType([], [wasmtime.ValType.i64()])
    store, _, exports = loaded(module, lambda store: wasmtime.Func(store, seven, lambda: 7))
    assert exports["start"](store) == 7
    assert exports["table"].size(store) == 2
    assert exports["table"].get(store, 1)(store) == 7


def test_imports_have_their_types_by_llvm_names():
    kind = bytes([0x60]) + vector([bytes([k]) for k in (I32, I64, 0x7D, 0x7C, 0x7B)]) + vector([])
    imported = named("env") + named("g") + bytes([0, 0])
    start = bytes([0x60]) + vector([]) + vector([bytes([I64])])
    module = linked(object_file(imports=[imported], types=[kind, start]))
    assert module.functions == (Imported("g", "void", ("i32", "i64", "float", "double", "other")),)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"\x7fELF", "not an object file"),
        (object_file(relocated=((11, 4),)), "relocation of type 11"),
        (object_file(relocated=((MEMORY_SLEB, 4000),)), "relocation at byte 4000"),
        (object_file(relocated=((MEMORY_SLEB, 2),)), "10 are expected"),
        (object_file(linking=b""), "linking section"),
        (object_file(linking=symbols(data_symbol("errno", undefined=True))), "errno, which it does not define"),
        (object_file(linking=symbols(function_symbol("other", 0))), "does not define start"),
        (object_file(extra=section(8, leb(0))), "section 8"),
        (object_file(table=True, elements=section(9, vector([leb(0) + b"\x42\x05\x0b\x00"]))), "begin at 1"),
        (object_file(imports=[named("env") + named("__tls_base") + bytes([3, I64, 1])]), "imports __tls_base"),
        (object_file()[:-3], "ends at byte"),
    ],
)  # fmt: skip
def test_what_llvm_does_not_emit_is_refused(data, what):
    with pytest.raises(EngineError, match=what):
        linked(data)


@pytest.mark.parametrize(
    "value", [0, 1, 63, 64, 127, 128, -1, -64, -65, 1 << 40, -(1 << 40), (1 << 63) - 1, -(1 << 63)]
)
def test_padded_numbers_have_ten_bytes_and_their_value(value):
    text = leb(value, signed=True, width=10)
    assert len(text) == 10
    number = sum((byte & 127) << 7 * i for i, byte in enumerate(text)) & (1 << 64) - 1
    assert number - (1 << 64 if number >> 63 else 0) == value
