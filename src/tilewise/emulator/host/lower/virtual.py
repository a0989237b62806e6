"""Virtual methods: vtables, vptrs in objects, and calls through them.

An entry has a function and the offset from the vptr to that function's object, as thunks would add. Vtables are LLVM
constants, outside of the checked memory, but vptrs are not: each entry also has a hash of the method and of the class
that declared it first, and a call checks that, so that a wrong vptr cannot lead to a function of another signature."""

from __future__ import annotations

import zlib
from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.checked_memory import check_access, store
from tilewise.emulator.host.lower.function_text import by_address
from tilewise.emulator.host.lower.marks import OK
from tilewise.emulator.host.lower.program import Program
from tilewise.emulator.host.lower.values import INIT, Place, Value
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Record, Slot
from tilewise.emulator.sema.layout import DESTRUCTOR, slot_of

POINTER = 8  # bytes
ENTRY = 16  # bytes: a function; the offset of its object (32 bits) and the hash of the method (31 bits)


def find_slot(record: Record, slot: Slot) -> tuple[int, int] | None:
    """The offset of the vptr whose vtable has the slot, and the slot's index there."""
    if slot in record.slots:
        assert record.vptr is not None
        return record.vptr, record.slots.index(slot)
    for base, offset in record.bases:
        found = find_slot(base, slot)
        if found is not None:
            return found[0] + offset, found[1]
    return None


def overrider(p: Program, record: Record, slot: Slot) -> tuple[tree.Function, Record, int] | None:
    """The final overrider of a slot in this class, its class, and that class's offset."""
    for method in record.methods.get(slot[0], []):
        if not method.template and slot_of(p, method, record) == slot:
            return method, record, 0
    for base, offset in record.bases:
        found = overrider(p, base, slot)
        if found is not None:
            return found[0], found[1], found[2] + offset
    return None


def vptrs(record: Record) -> dict[int, list[Slot]]:
    """Offsets of all vptrs in an object of the class, with their slots."""
    out = {offset + at: slots for base, offset in record.bases for at, slots in vptrs(base).items()}
    if record.vptr is not None:
        out[record.vptr] = record.slots
    return out


def store_vptrs(b: Builder, record: Record, address: str) -> None:
    """Set the object's vptrs to this class's vtables, at the start of a constructor or destructor."""
    for at, slots in vptrs(record).items():
        if b.program.device:
            raise b.refuse(f"{record} has virtual functions: objects of it cannot be made on the card")
        symbol = _table(b, record, at, slots)
        place = Place(types.VOIDP, b.offset(address, at), INIT)
        store(b, place, symbol)


def _table(b: Builder, record: Record, at: int, slots: list[Slot]) -> str:
    p = b.program
    key = (id(record), at)
    if key not in p.tables:
        p.tables[key] = ENTRY * len(p.table_entries)
        first = len(p.table_entries)
        p.table_entries += [""] * len(slots)
        for i, slot in enumerate(slots):
            function, distance = _entry(p, record, slot)
            second = (_method_hash(p, record, at, slot) << 32) | ((distance - at) & 0xFFFFFFFF)
            p.table_entries[first + i] = f"{{ptr, i64}} {{ptr {function}, i64 {second}}}"
    return f"getelementptr (i8, ptr @tables, i64 {p.tables[key]})"


def _declared_by(record: Record, at: int, slot: Slot) -> Record:
    """The class that declared a virtual method first, of those that share the vptr at `at`."""
    for base, offset in record.bases:
        if slot in vptrs(base).get(at - offset, ()):
            return _declared_by(base, at - offset, slot)
    return record


def _method_hash(p: Program, record: Record, at: int, slot: Slot) -> int:
    """The same for a method and its overriders: 31 bits."""
    declared = _declared_by(record, at, slot)
    return zlib.crc32(repr((slot, p.record_numbers.setdefault(id(declared), len(p.record_numbers)))).encode()) >> 1


def tables_text(p: Program) -> list[str]:
    """All vtables in one constant, so that a vptr can be compared with its bounds."""
    count = len(p.table_entries)
    return [
        f"@tables = internal constant [{count} x {{ptr, i64}}] [{', '.join(p.table_entries)}], align 16",
        f"@table_bytes = internal constant i64 {ENTRY * count}",
    ]


def _entry(p: Program, record: Record, slot: Slot) -> tuple[str, int]:
    if slot == DESTRUCTOR:
        return p.destroyer(record).symbol, 0
    found = overrider(p, record, slot)
    if found is None or (found[0].tokens is None and found[0].body is None):  # pure
        return "null", 0
    method, owner, offset = found
    return p.instance(method, {}, owner).symbol, offset


def virtual_callee(b: Builder, place: Place, slot: Slot) -> tuple[str, str]:
    """The function of a slot from the object's vtable, and the object adjusted to that function's class."""
    record = place.type
    assert isinstance(record, Record)
    found = find_slot(record, slot)
    assert found is not None
    if b.program.device:
        raise b.refuse(f"{slot[0]} is virtual: virtual functions cannot be called on the card")
    at, number = found
    pointer = b.offset(place.address, at)
    checked = check_access(b, pointer, POINTER, place.check) if place.check else pointer
    table = b.make(f"load ptr, ptr {checked}")
    _check_vtable(b, table, number)
    entry = b.offset(table, ENTRY * number)
    function = b.make(f"load ptr, ptr {entry}{OK}")
    second = b.make(f"load i64, ptr {b.offset(entry, 8)}{OK}")
    distance = b.make(f"sext i32 {b.make(f'trunc i64 {second} to i32')} to i64")
    other = b.make(f"icmp ne i64 {b.make(f'lshr i64 {second}, 32')}, {_method_hash(b.program, record, at, slot)}")
    b.report_if(other, "rt_bad_call", [("i64", b.make(f"ptrtoint ptr {table} to i64")), ("i32", b.line_text())])
    null = b.make(f"icmp eq ptr {function}, null")
    b.report_if(null, "rt_null_call", [("i32", b.line_text())])
    return function, b.offset(checked, distance)


def _check_vtable(b: Builder, table: str, number: int) -> None:
    """End the program if the vptr does not point into the vtables: the object was not constructed, or overwritten."""
    where = b.make(f"ptrtoint ptr {table} to i64")
    distance = b.make(f"sub i64 {where}, ptrtoint (ptr @tables to i64)")
    last = b.make(f"add i64 {distance}, {ENTRY * number}")
    far = b.make(f"icmp uge i64 {last}, {b.make('load i64, ptr @table_bytes')}")
    before = b.make(f"icmp uge i64 {distance}, {b.make('load i64, ptr @table_bytes')}")
    misaligned = b.make(f"icmp ne i64 {b.make(f'and i64 {distance}, 15')}, 0")
    bad = b.make(f"or i1 {b.make(f'or i1 {far}, {before}')}, {misaligned}")
    b.report_if(bad, "rt_null_call", [("i32", b.line_text())])


def virtual_slot(b: Builder, method: tree.Function, owner: Record | None, receiver: Any) -> Slot | None:
    """The method's slot; None if it is not virtual."""
    record = getattr(receiver, "type", None)
    if owner is None or not isinstance(record, Record) or not vptrs(record):
        return None
    if method.template or method.name == "<new>" or "static" in method.specifiers:
        return None
    slot = slot_of(b.program, method, owner)
    return slot if find_slot(record, slot) is not None else None


def virtual_delete(b: Builder, record: Record, pointer: Value, check: int) -> str | None:
    """delete of a class with a virtual destructor: call it; the address of the complete object. None without one."""
    if find_slot(record, DESTRUCTOR) is None:
        return None
    function, whole = virtual_callee(b, Place(record, pointer.text, check), DESTRUCTOR)
    b.noted_line = 0
    b.calls.add(function)
    b.emit(f"call void {function}({by_address(record)} {whole})")
    return whole
