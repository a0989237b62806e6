"""Asynchronous copies in instrumented kernels: their bytes may not be touched before the copying thread has waited.

The copy itself is made at once. The times of its cells in the race check have the highest bit set until a wait of that
thread finds the copy's group complete, or the block ends. Each thread has a ring of its latest copies."""

from __future__ import annotations

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.conversion import convert, rvalue
from tilewise.emulator.host.lower.program import Program
from tilewise.emulator.host.lower.races import CLOCK_BITS
from tilewise.emulator.host.lower.values import Value
from tilewise.emulator.parse import tree, types

COPIES = 128  # of a thread that may be pending; the oldest is then taken as complete
HEADER, ENTRY = 16, 16  # bytes: block, groups, first, end; address, size, group
QUEUE = HEADER + COPIES * ENTRY
THREADS = 1024

ASYNC_COPIES = """
define internal ptr @async_queue() #0 {{
  %me = load i32, ptr @thread
  %number = zext i32 %me to i64
  %far = mul i64 %number, {queue}
  %at = add i64 %far, {queues}
  %q = inttoptr i64 %at to ptr
  %block = load i32, {block}
  %own = load i32, ptr %q
  %current = icmp eq i32 %block, %own
  br i1 %current, label %done, label %fresh
fresh:
  call void @llvm.memset.p0.i64(ptr %q, i8 0, i64 {header}, i1 false)
  store i32 %block, ptr %q
  br label %done
done:
  ret ptr %q
}}
define internal ptr @async_entry(ptr %q, i32 %n) #0 {{
  %slot = and i32 %n, {last}
  %wide = zext i32 %slot to i64
  %far = mul i64 %wide, {entry}
  %off = add i64 %far, {header}
  %p = getelementptr i8, ptr %q, i64 %off
  ret ptr %p
}}
define internal void @async_mark(i64 %at, i32 %size, i1 %new) noinline #0 {{
entry:
  %me = load i32, ptr @thread
  %block = load i32, {block}
  %now = load i32, {clock}
  %mark = or i32 %now, -2147483648
  %to = select i1 %new, i32 %mark, i32 %now
  %any = load i32, {any}
  %high = shl i32 %any, 16
  %own = or i32 %high, %me
  br label %byte
byte:
  %i = phi i32 [ 0, %entry ], [ %i1, %next ]
  %wide = zext i32 %i to i64
  %here = add i64 %at, %wide
  %cell = call i64 @cell_of(i64 %here)
  %known = icmp ne i64 %cell, 0
  br i1 %known, label %found, label %next
found:
  %where = and i64 %cell, -2
  %p = inttoptr i64 %where to ptr
  %epoch = load i32, ptr %p
  %pw = getelementptr i32, ptr %p, i64 1
  %tag = load i32, ptr %pw
  %writer = and i32 %tag, 65535
  %mine = icmp eq i32 %writer, %me
  %marked = icmp slt i32 %epoch, 0
  %issued = and i32 %epoch, {clock_bits}
  %in_block = icmp uge i32 %issued, %block
  %pending = and i1 %marked, %in_block
  %complete = and i1 %mine, %pending
  %change = or i1 %complete, %new
  br i1 %change, label %write, label %next
write:
  store i32 %to, ptr %p
  store i32 %own, ptr %pw
  br label %next
next:
  %i1 = add i32 %i, 1
  %more = icmp ult i32 %i1, %size
  br i1 %more, label %byte, label %done
done:
  ret void
}}
define internal void @async_copy(i64 %to, i64 %from, i32 %size, i32 %line) noinline #0 {{
entry:
  %some = icmp ugt i32 %size, 0
  br i1 %some, label %record, label %none
none:
  ret void
record:
  call void @check_race(i64 %from, i32 0, i32 %line, i1 false)
  br label %byte
byte:
  %i = phi i32 [ 0, %record ], [ %i1, %byte ]
  %wide = zext i32 %i to i64
  %here = add i64 %to, %wide
  call void @check_race(i64 %here, i32 1, i32 %line, i1 false)
  %i1 = add i32 %i, 1
  %more = icmp ult i32 %i1, %size
  br i1 %more, label %byte, label %push
push:
  call void @async_mark(i64 %to, i32 %size, i1 true)
  %q = call ptr @async_queue()
  %pgroups = getelementptr i32, ptr %q, i64 1
  %pfirst = getelementptr i32, ptr %q, i64 2
  %pend = getelementptr i32, ptr %q, i64 3
  %first = load i32, ptr %pfirst
  %end = load i32, ptr %pend
  %held = sub i32 %end, %first
  %full = icmp eq i32 %held, {copies}
  br i1 %full, label %drop, label %keep
drop:
  call void @async_complete(ptr %q)
  br label %keep
keep:
  %p = call ptr @async_entry(ptr %q, i32 %end)
  store i64 %to, ptr %p
  %psize = getelementptr i32, ptr %p, i64 2
  store i32 %size, ptr %psize
  %pgroup = getelementptr i32, ptr %p, i64 3
  %groups = load i32, ptr %pgroups
  store i32 %groups, ptr %pgroup
  %end1 = add i32 %end, 1
  store i32 %end1, ptr %pend
  ret void
}}
define internal void @async_complete(ptr %q) #0 {{
  %pfirst = getelementptr i32, ptr %q, i64 2
  %first = load i32, ptr %pfirst
  %p = call ptr @async_entry(ptr %q, i32 %first)
  %at = load i64, ptr %p
  %psize = getelementptr i32, ptr %p, i64 2
  %size = load i32, ptr %psize
  call void @async_mark(i64 %at, i32 %size, i1 false)
  %first1 = add i32 %first, 1
  store i32 %first1, ptr %pfirst
  ret void
}}
define internal void @async_commit() #0 {{
  %q = call ptr @async_queue()
  %pgroups = getelementptr i32, ptr %q, i64 1
  %groups = load i32, ptr %pgroups
  %groups1 = add i32 %groups, 1
  store i32 %groups1, ptr %pgroups
  ret void
}}
define internal void @async_phase() #0 {{
  %now = load i32, {clock}
  %then = add i32 %now, 1
  store i32 %then, {clock}
  ret void
}}
define internal void @async_wait(i64 %pending) noinline #0 {{
entry:
  %q = call ptr @async_queue()
  %pgroups = getelementptr i32, ptr %q, i64 1
  %pfirst = getelementptr i32, ptr %q, i64 2
  %pend = getelementptr i32, ptr %q, i64 3
  %groups = load i32, ptr %pgroups
  %wide = zext i32 %groups to i64
  %fewer = icmp ugt i64 %pending, %wide
  %left = select i1 %fewer, i64 %wide, i64 %pending
  %complete64 = sub i64 %wide, %left
  %complete = trunc i64 %complete64 to i32
  br label %head
head:
  %first = load i32, ptr %pfirst
  %end = load i32, ptr %pend
  %any = icmp ne i32 %first, %end
  br i1 %any, label %look, label %done
look:
  %p = call ptr @async_entry(ptr %q, i32 %first)
  %pgroup = getelementptr i32, ptr %p, i64 3
  %group = load i32, ptr %pgroup
  %older = icmp ult i32 %group, %complete
  br i1 %older, label %finish, label %done
finish:
  call void @async_complete(ptr %q)
  br label %head
done:
  ret void
}}
"""


def async_functions(p: Program, addresses: dict[str, str]) -> str:
    """The helper functions, for a module that calls one of them; `addresses`: of the clock and its values."""
    p.async_queues = p.async_queues or p.memory.map_zeros(THREADS * QUEUE)
    return ASYNC_COPIES.format(
        queue=QUEUE,
        queues=p.async_queues,
        header=HEADER,
        entry=ENTRY,
        copies=COPIES,
        last=COPIES - 1,
        clock_bits=CLOCK_BITS,
        **addresses,
    )


def lower_async(b: Builder, node: tree.Call) -> Value:
    """__async_copy(to, from, bytes), __async_commit(), __async_wait(groups) and __async_phase(), which is the end of a
    phase of a cuda::barrier and counts as a barrier of the block. Without instrumentation nothing."""
    assert isinstance(node.function, tree.Name)
    name = node.function.name.removeprefix("__")
    given = [rvalue(b, b.lower(n)) for n in node.arguments]
    if b.program.instrumented:
        b.calls.add(f"@{name}")
        texts = [f"i64 {convert(b, v, types.ULONG).text}" for v in given if not isinstance(v.type, types.Pointer)]
        if name == "async_copy":
            to, source = (b.make(f"ptrtoint ptr {v.text} to i64") for v in given[:2])
            size = convert(b, given[2], types.INT).text
            texts = [f"i64 {to}", f"i64 {source}", f"i32 {size}", f"i32 {b.line_text()}"]
        b.emit(f"call void @{name}({', '.join(texts)})")
    return Value(types.VOID, "")
