"""Record mode of a kernel: its accesses of shared and global memory, its sums and its barriers append to a log.

Between two barriers the threads of compiled code run one after the other. Marks of loop iterations and of calls are
logged too, so that the page (and `tests/support/recorded_events.py`) brings the events into lockstep order. The kernel
is not stopped by an invalid access: it is logged with the address that was requested, and uses scratch memory."""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from tilewise.emulator.host.lower.function_text import FunctionText
from tilewise.emulator.host.lower.program import Instance, Program
from tilewise.emulator.host.lower.values import Place, Value
from tilewise.emulator.parse import types
from tilewise.emulator.parse.types import Pointer, Scalar, Type, stored

ENTRY_BYTES = 32  # address i64, value f64, row i32, site i32, thread i32, block i32
NO_ROW = -(1 << 31)
GUESSED = "~"  # before the leading dimension of a row that was counted by adding that dimension: it may mean columns
SCRATCH = 64  # bytes that invalid loads read, all ones: NaN as a floating value; as many follow for invalid stores
NAN = dict.fromkeys(("float", "double"), "0x7FF8000000000000")
CALLEE = re.compile(r"  call void @record_mark\(i32 \d+\) ;(@.+)$")
LOG = """
@thread = internal global i32 0
@block = internal global i32 0
define internal void @enter_observed(i64 %t) #0 {{
  %n = trunc i64 %t to i32
  store i32 %n, ptr @thread
  call void {enter_thread}(i64 %t)
  ret void
}}
define internal void @record(i64 %at, double %value, i32 %row, i32 %site) noinline #0 {{
  %n = load i64, {count}
  %n1 = add i64 %n, 1
  store i64 %n1, {count}
  %fits = icmp ult i64 %n, {capacity}
  br i1 %fits, label %keep, label %done
keep:
  %far = mul i64 %n, {entry}
  %entry = add i64 %far, {log}
  %p = inttoptr i64 %entry to ptr
  %pv = getelementptr i8, ptr %p, i64 8
  %pr = getelementptr i8, ptr %p, i64 16
  %ps = getelementptr i8, ptr %p, i64 20
  %pt = getelementptr i8, ptr %p, i64 24
  %pb = getelementptr i8, ptr %p, i64 28
  %t = load i32, ptr @thread
  %b = load i32, ptr @block
  store i64 %at, ptr %p
  store double %value, ptr %pv
  store i32 %row, ptr %pr
  store i32 %site, ptr %ps
  store i32 %t, ptr %pt
  store i32 %b, ptr %pb
  br label %done
done:
  ret void
}}
"""
RECORD = """
define internal void @record_mark(i32 %site) #0 {{
  call void @record(i64 0, double 0.0, i32 {no_row}, i32 %site)
  ret void
}}
define internal i64 @shared_address(i64 %at, i64 %size, i64 %scratch) #0 {{
{shared}
  ret i64 %scratch
inside:
  ret i64 %at
}}
define internal ptr @rt_invalid_access(i64 %at, i64 %size, i32 %kind, i32 %line) #0 {{
  %load = icmp eq i32 %kind, 0
  %off = sub i64 %at, {base}
  %in = icmp ult i64 %off, {memory}
  %both = and i1 %load, %in
  br i1 %both, label %look, label %outside
look:
  %there = add i64 %at, {shift}
  %state_at = inttoptr i64 %there to ptr
  %state = load i8, ptr %state_at
  %kept = and i8 %state, 5
  %uninitialised = icmp ne i8 %kept, 0
  br i1 %uninitialised, label %inside, label %outside
inside:
  %p = inttoptr i64 %at to ptr
  ret ptr %p
outside:
  %store = and i32 %kind, 1
  %stores = icmp ne i32 %store, 0
  %scratch = select i1 %stores, i64 {store_scratch}, i64 {scratch}
  %q = inttoptr i64 %scratch to ptr
  ret ptr %q
}}
"""
BLOCK = """  %recorded_block = trunc i64 %b to i32
  store i32 %recorded_block, ptr @block"""


class SiteKind(IntEnum):
    READ = 0
    WRITE = 1
    SUM = 2
    BARRIER = 3  # the row of its entries is the line
    LOOP = 4
    ITERATION = 5
    CALL = 6
    LEAVE = 7  # the end of a loop or a call
    UNSET = 8  # a register was read that has no value
    EXIT = 9  # the kernel returns before its end


@dataclass(frozen=True)
class Site:
    """What an entry of the log is: sites are numbered in the order of the text of their function."""

    kind: SiteKind
    line: int
    statement: int  # number of the assignment that it is part of; 0: of none
    name: str = ""  # of the register of a sum, or of one without a value
    array: str = ""  # the parameter or __shared__ array that is accessed, where the text names it
    dimension: str = ""  # the leading dimension that the entries' rows were multiplied by
    from_global: bool = False  # a store of a value that depends on a register loaded from global memory
    column: int = 0  # of the text that is accessed


@dataclass
class Recording:
    """What is recorded of a kernel."""

    dimensions: frozenset[str]  # names that may be leading dimensions: parameters and members of parameters
    log: int = 0  # address of the number of entries; they follow at `entries`
    capacity: int = 0
    scratch: int = 0  # address
    sites: list[Site] = field(default_factory=list)
    shared: list[tuple[str, Type, int]] = field(default_factory=list)  # name, type and address of __shared__ arrays
    parameters: frozenset[str] = frozenset()  # of the kernel, while it is lowered
    in_kernel: bool = False
    sums: frozenset[str] = frozenset()  # registers that accumulate values from shared memory
    stepped: dict[str, str] = field(default_factory=dict)  # registers that move by rows, and the leading dimension
    carried: frozenset[str] = frozenset()  # registers that depend on a load of global memory
    statements: int = 0
    statement: int = 0  # that is being lowered
    from_global: bool = False  # its value depends on `carried`
    rows: dict[int, tuple[str, str, Any]] = field(default_factory=dict)  # by id of a local: slot, dimension, the local

    @property
    def entries(self) -> int:
        return self.log + 64

    def reserve(self, p: Program, capacity: int) -> None:
        self.log, self.capacity = p.memory.map_zeros(64 + ENTRY_BYTES * capacity), capacity
        self.scratch = p.memory.static(2 * SCRATCH, "", False)
        p.memory.cells(self.scratch, ctypes.c_uint8, SCRATCH)[:] = [255] * SCRATCH

    def site(
        self, b: FunctionText, kind: SiteKind, name: str = "", array: str = "", dimension: str = "", column: int = 0
    ) -> int:
        carried = self.from_global and kind is SiteKind.WRITE
        made = Site(kind, b.line, self.statement, name, array, dimension, carried, column)
        self.sites.append(made)
        return len(self.sites) - 1


def record(b: FunctionText, kind: SiteKind, place: Place, text: str) -> None:
    """Log an access; `text` is the value that was loaded or is stored."""
    row, dimension = place.row or (str(NO_ROW), "")
    number = recording_of(b).site(b, kind, array=place.name, dimension=dimension, column=place.column)
    at = b.make(f"ptrtoint ptr {place.address} to i64")
    _emit(b, number, at, _as_double(b, place.type, text), row)


def record_sum(b: FunctionText, name: str, type_: Type, text: str) -> None:
    _emit(b, recording_of(b).site(b, SiteKind.SUM, name), "0", _as_double(b, type_, text), str(NO_ROW))


def record_unset(b: FunctionText, place: Place, has: str) -> Value:
    """Log the read of a register if it has no value; a floating one is NaN then."""
    number = recording_of(b).site(b, SiteKind.UNSET, place.name)
    bad, good = b.label(), b.label()
    b.branch(has, good, bad, likely=True)
    b.begin(bad)
    _emit(b, number, "0", "0.0", str(NO_ROW))
    b.jump(good)
    b.begin(good)
    kind = stored(place.type)
    text = b.make(f"load {kind}, ptr {place.address}, align 1")
    if isinstance(place.type, Scalar) and place.type.floating and kind in NAN:
        text = b.make(f"select i1 {has}, {kind} {text}, {kind} {NAN[kind]}")
    return Value(place.type, b.from_memory(place.type, text))


def record_barrier(b: FunctionText) -> None:
    _emit(b, recording_of(b).site(b, SiteKind.BARRIER), "0", "0.0", b.line_text())


def mark(b: FunctionText, kind: SiteKind, callee: str = "") -> None:
    """Log the begin or end of a loop, an iteration or a call; `callee`: omitted if this function records nothing."""
    recording = b.program.recording
    if recording is not None and b.program.device and not b.library and (recording.in_kernel or kind != SiteKind.EXIT):
        b.calls.add("@record") if not callee else None
        b.emit(f"call void @record_mark(i32 {recording.site(b, kind)})" + (f" ;{callee}" if callee else ""))


def refuse_stores(b: FunctionText, function: Instance, node: Any) -> None:
    """What a function of the library loads and stores through a pointer is not logged: atomic operations, memcpy."""
    if any(isinstance(type_, Pointer) for type_ in function.parameters):
        raise b.refuse(f"a kernel that calls {function.node.name} cannot be recorded", node)


def recording_of(b: FunctionText) -> Recording:
    found: Recording | None = b.program.recording
    assert found is not None
    return found


def _emit(b: FunctionText, site: int, at: str, value: str, row: str) -> None:
    b.calls.add("@record")
    b.emit(f"call void @record(i64 {at}, double {value}, i32 {row}, i32 {site})")


def _as_double(b: FunctionText, type_: Type, text: str) -> str:
    if not isinstance(type_, Scalar):
        return "0.0"
    if type_.floating:
        return text if type_.size == 8 else b.make(f"fpext {type_.llvm} {text} to double")
    return b.make(f"{'sitofp' if type_.signed and type_ is not types.BOOL else 'uitofp'} {type_.llvm} {text} to double")


def recorded_address(b: FunctionText, address: str, size: int, write: bool = False) -> str:
    """The address of an element of a __shared__ array, or of scratch memory if it is outside of all of them."""
    at = b.make(f"ptrtoint ptr {address} to i64")
    scratch = recording_of(b).scratch + SCRATCH * write
    return b.make(f"inttoptr i64 {b.make(f'call i64 @shared_address(i64 {at}, i64 {size}, i64 {scratch})')} to ptr")


def text_of(p: Program, recording: Recording, enter_thread: str) -> str:
    """The functions that record, for the __shared__ arrays of the kernel."""
    lines = []
    for i, (start, size) in enumerate(p.shared):
        lines += [
            f"  %off{i} = sub i64 %at, {start}", f"  %room{i} = sub i64 {size}, %size",
            f"  %in{i} = icmp ule i64 %off{i}, %room{i}", f"  br i1 %in{i}, label %inside, label %next{i}", f"next{i}:",
        ]  # fmt: skip
    if not lines:
        lines = ["  br i1 false, label %inside, label %outside", "outside:"]
    return log_text(recording.log, recording.capacity, enter_thread) + RECORD.format(
        shared="\n".join(lines), scratch=recording.scratch, store_scratch=recording.scratch + SCRATCH, no_row=NO_ROW,
        base=p.memory.base, memory=p.memory.size - 64, shift=p.memory.shift,
    )  # fmt: skip


def log_text(log: int, capacity: int, enter_thread: str) -> str:
    """The functions that begin a thread and append to the log at an address: the number of entries, and in its second
    cache line the entries."""
    return LOG.format(
        enter_thread=enter_thread, entry=ENTRY_BYTES, count=f"ptr inttoptr (i64 {log} to ptr)", log=log + 64,
        capacity=capacity,
    )  # fmt: skip


def poisoned(p: Program) -> str:
    """Static __shared__ arrays hold NaN when a block begins."""
    arrays = ((start, size) for start, size in p.shared if start != p.dynamic_shared)
    return "".join(
        f"  call void @llvm.memset.p0.i64(ptr inttoptr (i64 {start} to ptr), i8 255, i64 {size}, i1 false)\n"
        for start, size in arrays
    )


def without_empty_calls(instances: list[Instance]) -> None:
    """Remove the marks of calls that record nothing."""
    calls = {i.symbol: i.calls for i in instances}
    found = {"@record"}
    while more := {symbol for symbol in calls.keys() - found if calls[symbol] & found}:
        found |= more
    for instance in instances:
        kept = ((line, CALLEE.match(line)) for line in instance.text)
        instance.text = [line for line, callee in kept if callee is None or callee[1] in found]
