"""Races in shared memory, for kernels that the interpreting machine cannot run: compiled with a note at every touch.

A cell of 24 bytes goes with every byte of the block's arrays: when, by whom and on which line it was written last, and
read last. Two threads that touch one element between two barriers, one of them writing, race."""

from __future__ import annotations

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.program import Program
from tilewise.emulator.parse.types import Pointer, Type

CELL = 24
TOLD = 200  # of one module: each is a call into the runtime
TICK = "  %now = load i32, ptr @epoch\n  %then = add i32 %now, 1\n  store i32 %then, ptr @epoch"

WATCH = """
@epoch = internal global i32 0
@who = internal global i32 0
@told = internal global i32 0
define internal void @enter_watched(i64 %t) #0 {{
  %n = trunc i64 %t to i32
  store i32 %n, ptr @who
  call void {enter_thread}(i64 %t)
  ret void
}}
define internal void @tell(i64 %at, i32 %line, i32 %other, i32 %who, i32 %kind) noinline cold #0 {{
  %n = load i32, ptr @told
  %n1 = add i32 %n, 1
  store i32 %n1, ptr @told
  %few = icmp ult i32 %n, {told}
  br i1 %few, label %yes, label %done
yes:
  call void @rt_race(i64 %at, i32 %line, i32 %other, i32 %who, i32 %kind)
  br label %done
done:
  ret void
}}
define internal void @touch(i64 %at, i32 %write, i32 %line, i1 %same) noinline #0 {{
entry:
{find}
  ret void
found:
  %cell = phi i64 {cells}
  %p = inttoptr i64 %cell to ptr
  %now = load i32, ptr @epoch
  %me = load i32, ptr @who
  %pw = getelementptr i32, ptr %p, i64 1
  %plw = getelementptr i32, ptr %p, i64 2
  %pr = getelementptr i32, ptr %p, i64 3
  %prw = getelementptr i32, ptr %p, i64 4
  %prl = getelementptr i32, ptr %p, i64 5
  %wepoch = load i32, ptr %p
  %writer = load i32, ptr %pw
  %wline = load i32, ptr %plw
  %repoch = load i32, ptr %pr
  %reader = load i32, ptr %prw
  %rline = load i32, ptr %prl
  %wnow = icmp eq i32 %wepoch, %now
  %wother = icmp ne i32 %writer, %me
  %met = and i1 %wnow, %wother
  %differs = xor i1 %same, true
  %clash = and i1 %met, %differs
  %rnow = icmp eq i32 %repoch, %now
  %rother = icmp ne i32 %reader, %me
  %seen = and i1 %rnow, %rother
  %writes = icmp ne i32 %write, 0
  br i1 %writes, label %store, label %load
load:
  br i1 %met, label %raw, label %noted
raw:
  call void @tell(i64 %at, i32 %line, i32 %wline, i32 %writer, i32 0)
  br label %noted
noted:
  store i32 %now, ptr %pr
  %others = select i1 %seen, i32 -1, i32 %me
  store i32 %others, ptr %prw
  store i32 %line, ptr %prl
  ret void
store:
  br i1 %clash, label %waw, label %readers
waw:
  call void @tell(i64 %at, i32 %line, i32 %wline, i32 %writer, i32 1)
  br label %readers
readers:
  %overwritten = and i1 %seen, %differs
  br i1 %overwritten, label %war, label %written
war:
  call void @tell(i64 %at, i32 %line, i32 %rline, i32 %reader, i32 2)
  br label %written
written:
  store i32 %now, ptr %p
  store i32 %me, ptr %pw
  store i32 %line, ptr %plw
  ret void
}}
"""


def note_touch(b: Builder, address: str, type_: Type, value: str = "") -> None:
    """Before an element of shared memory is read, or (`value`) written; a store of what is there already is no race."""
    at = b.make(f"ptrtoint ptr {address} to i64")
    same = "false"
    if value and not isinstance(type_, Pointer):
        bits = f"i{type_.size * 8}"
        kind = b.stored(type_)
        fresh = value if kind == bits else b.make(f"bitcast {kind} {value} to {bits}")
        same = b.make(f"icmp eq {bits} {b.make(f'load {bits}, ptr {address}, align 1')}, {fresh}")
    b.calls.add("@touch")
    b.emit(f"call void @touch(i64 {at}, i32 {int(bool(value))}, i32 {b.line_text()}, i1 {same})")


def watching(p: Program, enter_thread: str) -> str:
    """The functions that go with it, for the arrays that the kernel was found to have."""
    p.external("rt_race")
    find, cells = [], []
    for i, (start, size) in enumerate(p.shared):
        cell = p.memory.static(size * CELL, "", False)
        find += [
            f"  %off{i} = sub i64 %at, {start}", f"  %in{i} = icmp ult i64 %off{i}, {size}",
            f"  %far{i} = mul i64 %off{i}, {CELL}", f"  %cell{i} = add i64 %far{i}, {cell}",
            f"  br i1 %in{i}, label %found, label %next{i}", f"next{i}:",
        ]  # fmt: skip
        cells.append(f"[ %cell{i}, %{'entry' if i == 0 else f'next{i - 1}'} ]")
    return WATCH.format(enter_thread=enter_thread, told=TOLD, find="\n".join(find), cells=", ".join(cells))
