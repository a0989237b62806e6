"""Virtual methods: a table of functions a class, a pointer to it in every object, and calls that go through it.

An entry is a function and how far its own object begins from the pointer to the table: so one table serves every class
that shares that pointer, whatever its other bases. Tables are LLVM's constants, outside of the checked memory. The
pointers to them are not: an entry also says which class declared its method first, and a call goes through no entry
of another class, which may take and give other things."""

from __future__ import annotations

import zlib
from typing import Any

from tilewise.emulator.host.lower.builder import Builder, by_address
from tilewise.emulator.host.lower.checked_memory import store
from tilewise.emulator.host.lower.marks import OK
from tilewise.emulator.host.lower.program import Program
from tilewise.emulator.host.lower.values import INIT, Place, Value
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.late import late, provide
from tilewise.emulator.parse.types import Record, Slot
from tilewise.emulator.sema.layout import DESTRUCTOR, slot_of

POINTER = 8  # bytes
ENTRY = 16  # a function; the distance of its object (32 bits) and the number of what it overrides


def located(record: Record, slot: Slot) -> tuple[int, int] | None:
    """Where the pointer to the table lies that has the slot, and the slot's number there."""
    if slot in record.slots:
        assert record.vptr is not None
        return record.vptr, record.slots.index(slot)
    for base, offset in record.bases:
        found = located(base, slot)
        if found is not None:
            return found[0] + offset, found[1]
    return None


def overrider(p: Program, record: Record, slot: Slot) -> tuple[tree.Function, Record, int] | None:
    """The method that an object of exactly this class runs for a slot, its class, and where that lies in it."""
    for method in record.methods.get(slot[0], []):
        if not method.template and slot_of(p, method, record) == slot:
            return method, record, 0
    for base, offset in record.bases:
        found = overrider(p, base, slot)
        if found is not None:
            return found[0], found[1], found[2] + offset
    return None


def pointers(record: Record) -> dict[int, list[Slot]]:
    """Every pointer to a table in an object of the class: where it lies, and the slots behind it."""
    out = {offset + at: slots for base, offset in record.bases for at, slots in pointers(base).items()}
    if record.vptr is not None:
        out[record.vptr] = record.slots
    return out


def point_to_tables(b: Builder, record: Record, address: str) -> None:
    """From here on the object is one of this class: what a constructor does first, and a destructor."""
    for at, slots in pointers(record).items():
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
            second = (_number(p, record, at, slot) << 32) | ((distance - at) & 0xFFFFFFFF)
            p.table_entries[first + i] = f"{{ptr, i64}} {{ptr {function}, i64 {second}}}"
    return f"getelementptr (i8, ptr @tables, i64 {p.tables[key]})"


def _declared_by(record: Record, at: int, slot: Slot) -> Record:
    """The class that declared a virtual method first, of those that share the pointer at `at`."""
    for base, offset in record.bases:
        if slot in pointers(base).get(at - offset, ()):
            return _declared_by(base, at - offset, slot)
    return record


def _number(p: Program, record: Record, at: int, slot: Slot) -> int:
    """The same for a method and for all that override it: 31 bits."""
    declared = _declared_by(record, at, slot)
    return zlib.crc32(repr((slot, p.record_numbers.setdefault(id(declared), len(p.record_numbers)))).encode()) >> 1


def tables_text(p: Program) -> list[str]:
    """All tables in one: whether a pointer leads to one of them can be asked."""
    count = len(p.table_entries)
    return [
        f"@tables = internal constant [{count} x {{ptr, i64}}] [{', '.join(p.table_entries)}], align 16",
        f"@table_bytes = internal constant i64 {ENTRY * count}",
    ]


def _entry(p: Program, record: Record, slot: Slot) -> tuple[str, int]:
    if slot == DESTRUCTOR:
        return p.destroyer(record).symbol, 0
    found = overrider(p, record, slot)
    if found is None or (found[0].tokens is None and found[0].body is None):  # nobody wrote it
        return "null", 0
    method, owner, offset = found
    return p.instance(method, {}, owner).symbol, offset


def through_table(b: Builder, place: Place, slot: Slot) -> tuple[str, str]:
    """The function that the object itself names for a slot, and the object as that function knows it."""
    record = place.type
    assert isinstance(record, Record)
    found = located(record, slot)
    assert found is not None
    if b.program.device:
        raise b.refuse(f"{slot[0]} is virtual: virtual functions cannot be called on the card")
    at, number = found
    pointer = b.offset(place.address, at)
    checked = late.check_access(b, pointer, POINTER, place.check) if place.check else pointer
    table = b.make(f"load ptr, ptr {checked}")
    _known_table(b, table, number)
    entry = b.offset(table, ENTRY * number)
    function = b.make(f"load ptr, ptr {entry}{OK}")
    second = b.make(f"load i64, ptr {b.offset(entry, 8)}{OK}")
    distance = b.make(f"sext i32 {b.make(f'trunc i64 {second} to i32')} to i64")
    other = b.make(f"icmp ne i64 {b.make(f'lshr i64 {second}, 32')}, {_number(b.program, record, at, slot)}")
    b.complain(other, "rt_wild_call", [("i64", b.make(f"ptrtoint ptr {table} to i64")), ("i32", b.line_text())])
    null = b.make(f"icmp eq ptr {function}, null")
    b.complain(null, "rt_null_call", [("i32", b.line_text())])
    return function, b.offset(checked, distance)


def _known_table(b: Builder, table: str, number: int) -> None:
    """An object that no constructor made, or that was written over, leads nowhere: the program ends there."""
    where = b.make(f"ptrtoint ptr {table} to i64")
    distance = b.make(f"sub i64 {where}, ptrtoint (ptr @tables to i64)")
    last = b.make(f"add i64 {distance}, {ENTRY * number}")
    far = b.make(f"icmp uge i64 {last}, {b.make('load i64, ptr @table_bytes')}")
    before = b.make(f"icmp uge i64 {distance}, {b.make('load i64, ptr @table_bytes')}")
    crooked = b.make(f"icmp ne i64 {b.make(f'and i64 {distance}, 15')}, 0")
    bad = b.make(f"or i1 {b.make(f'or i1 {far}, {before}')}, {crooked}")
    b.complain(bad, "rt_null_call", [("i32", b.line_text())])


def virtual_slot(b: Builder, method: tree.Function, owner: Record | None, receiver: Any) -> Slot | None:
    """The slot that a call goes through; None where the method is not virtual."""
    record = getattr(receiver, "type", None)
    if owner is None or not isinstance(record, Record) or not pointers(record):
        return None
    if method.template or method.name == "<new>" or "static" in method.specifiers:
        return None
    slot = slot_of(b.program, method, owner)
    return slot if located(record, slot) is not None else None


def destroy_behind(b: Builder, record: Record, pointer: Value, check: int) -> str | None:
    """delete of a class with a virtual destructor: taken down as what it is; where the whole object begins."""
    if located(record, DESTRUCTOR) is None:
        return None
    function, whole = through_table(b, Place(record, pointer.text, check), DESTRUCTOR)
    b.noted_line = 0
    b.calls.add(function)
    b.emit(f"call void {function}({by_address(record)} {whole})")
    return whole


provide(destroy_behind, point_to_tables, through_table, virtual_slot)
