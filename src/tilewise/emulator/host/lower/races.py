"""Race detection in compiled kernels, for those that the interpreter cannot run: a call before every access of shared
and global memory.

Every byte has a cell of 24 bytes: time, thread and line of its last write, and of its last read. Two threads of a
block race if they access one element between the same two barriers and one writes; in global memory also threads of
different blocks, anywhere in one launch. The clock counts barriers and blocks of all kernels: cells outlive a launch.
Barriers of warps order the threads of one warp alone: the upper half of a thread's number in a cell is the clock of
barriers of any kind."""

from __future__ import annotations

from tilewise.emulator.host.lower.function_text import FunctionText
from tilewise.emulator.host.lower.program import Program
from tilewise.emulator.host.lower.recording import ENTRY_BYTES, log_text
from tilewise.emulator.parse.types import Pointer, Type, stored

CELL = 24
SEVERAL = 1 << 15  # as a reader: several threads of the warp with this number; of several warps if all bits are set
BY_ATOMIC = 1 << 14  # of a writer: by an atomic operation
ATOMIC, SWAP = 2, 3  # accesses: an atomic operation; atomicCAS, which races with stores alone
EXCHANGE = 4  # atomicExch: an atomic operation of memory that may be uninitialised
PENDING = 8  # an access of bytes that an asynchronous copy may not have written yet
CLOCK_BITS = (1 << 31) - 1  # the highest bit of a write's time says that it is such a copy's, which is not waited for
LOGGED = 1 << 20  # accesses of global memory that are logged for the cost model
MAX_REPORTED = 200  # races of one module: each is a runtime call
GLOBAL_BYTES = 1 << 32  # of the card's memory, from its start, that have cells; pages are allocated on first access
BLOCK_TICK = """
  %now = load i32, {clock}
  %then = add i32 %now, 1
  store i32 %then, {clock}
  %first_block = icmp eq i64 %b, %first
  %launched = load i32, {launch}
  %launch = select i1 %first_block, i32 %then, i32 %launched
  store i32 %launch, {launch}
  store i32 %then, {block}"""
TICK = """
  %whole_block = icmp eq i8 %free, 1
  %step = zext i1 %whole_block to i32
  %now = load i32, {clock}
  %then = add i32 %now, %step
  store i32 %then, {clock}
  %any_now = load i32, {any}
  %any_then = add i32 %any_now, 1
  store i32 %any_then, {any}"""

INSTRUMENTATION = """
@reported = internal global i32 0
define internal void @report_race(i64 %at, i32 %line, i32 %other, i32 %other_thread, i32 %kind) noinline cold #0 {{
  %n = load i32, ptr @reported
  %n1 = add i32 %n, 1
  store i32 %n1, ptr @reported
  %below_limit = icmp ult i32 %n, {reported}
  br i1 %below_limit, label %yes, label %done
yes:
  call void @rt_race(i64 %at, i32 %line, i32 %other, i32 %other_thread, i32 %kind)
  br label %done
done:
  ret void
}}
define internal void @log_access(i64 %at, i32 %line) #0 {{
  %off = sub i64 %at, {device}
  %in = icmp ult i64 %off, {global_bytes}
  br i1 %in, label %yes, label %done
yes:
  call void @record(i64 %at, double 0.0, i32 0, i32 %line)
  br label %done
done:
  ret void
}}
define internal i64 @cell_of(i64 %at) alwaysinline #0 {{
entry:
{find}
  %off = sub i64 %at, {device}
  %in = icmp ult i64 %off, {global_bytes}
  %far = mul i64 %off, {cell}
  %cell_at = add i64 %far, {global_cells}
  %cell = or i64 %cell_at, 1
  br i1 %in, label %found, label %none
none:
  ret i64 0
found:
  %any = phi i64 {cells}[ %cell, %{last} ]
  ret i64 %any
}}
define internal void @check_race(i64 %at, i32 %write, i32 %line, i1 %same) noinline #0 {{
entry:
  call void @log_access(i64 %at, i32 %line)
  %cell = call i64 @cell_of(i64 %at)
  %known = icmp ne i64 %cell, 0
  br i1 %known, label %found, label %none
none:
  ret void
found:
  %global = trunc i64 %cell to i1
  %writes = icmp ne i32 %write, 0
  %plain = zext i1 %writes to i32
  %atomic = icmp uge i32 %write, {atomic}
  %cell_at = and i64 %cell, -2
  %p = inttoptr i64 %cell_at to ptr
  %now = load i32, {clock}
  %launch = load i32, {launch}
  %block = load i32, {block}
  %me = load i32, ptr @thread
  %pw = getelementptr i32, ptr %p, i64 1
  %plw = getelementptr i32, ptr %p, i64 2
  %pr = getelementptr i32, ptr %p, i64 3
  %prw = getelementptr i32, ptr %p, i64 4
  %prl = getelementptr i32, ptr %p, i64 5
  %any = load i32, {any}
  %mine = and i32 %any, 65535
  %high = shl i32 %any, 16
  %warp = lshr i32 %me, 5
  %wepoch = load i32, ptr %p
  %wtag = load i32, ptr %pw
  %wtagged = and i32 %wtag, {by_atomic}
  %watomic = icmp ne i32 %wtagged, 0
  %writer = and i32 %wtag, 16383
  %wwarp = lshr i32 %writer, 5
  %wsame_warp = icmp eq i32 %wwarp, %warp
  %wat = lshr i32 %wtag, 16
  %wearlier = icmp ne i32 %wat, %mine
  %wordered = and i1 %wsame_warp, %wearlier
  %wline = load i32, ptr %plw
  %repoch = load i32, ptr %pr
  %rtag = load i32, ptr %prw
  %reader = and i32 %rtag, 65535
  %several = icmp uge i32 %reader, {several}
  %rmany = and i32 %reader, 32767
  %rone = lshr i32 %reader, 5
  %rwarp = select i1 %several, i32 %rmany, i32 %rone
  %rsame_warp = icmp eq i32 %rwarp, %warp
  %rat = lshr i32 %rtag, 16
  %rearlier = icmp ne i32 %rat, %mine
  %rordered = and i1 %rsame_warp, %rearlier
  %rline = load i32, ptr %prl
  %wother = icmp ne i32 %writer, %me
  %asynchronous = icmp slt i32 %wepoch, 0
  %issued = and i32 %wepoch, {clock_bits}
  %in_block = icmp uge i32 %issued, %block
  %pending = and i1 %asynchronous, %in_block
  br i1 %pending, label %unfinished, label %settled
unfinished:
  %just_issued = icmp eq i32 %issued, %now
  %unordered = and i1 %just_issued, %wother
  %pending_kind = select i1 %unordered, i32 %plain, i32 {pending}
  call void @report_race(i64 %at, i32 %line, i32 %wline, i32 %writer, i32 %pending_kind)
  br label %settled
settled:
  %wnow = icmp eq i32 %wepoch, %now
  %wunordered = xor i1 %wordered, true
  %wunseen = and i1 %wother, %wunordered
  %wsame_block = and i1 %wnow, %wunseen
  %wsince = icmp uge i32 %wepoch, %launch
  %wbefore = icmp ult i32 %wepoch, %block
  %wblock = and i1 %wsince, %wbefore
  %wother_block = and i1 %wblock, %global
  %conflict = or i1 %wsame_block, %wother_block
  %differs = xor i1 %same, true
  %both_atomic = and i1 %atomic, %watomic
  %not_both = xor i1 %both_atomic, true
  %conflict_differs = and i1 %conflict, %differs
  %reported_conflict = and i1 %conflict_differs, %not_both
  %rnow = icmp eq i32 %repoch, %now
  %rother = icmp ne i32 %reader, %me
  %runordered = xor i1 %rordered, true
  %runseen = and i1 %rother, %runordered
  %rsame_block = and i1 %rnow, %runseen
  %rsince = icmp uge i32 %repoch, %launch
  %rbefore = icmp ult i32 %repoch, %block
  %rblock = and i1 %rsince, %rbefore
  %rother_block = and i1 %rblock, %global
  %read_before = or i1 %rsame_block, %rother_block
  %wkind = select i1 %wother_block, i32 4, i32 0
  %wwkind = or i32 %wkind, 1
  %rkind = select i1 %rother_block, i32 6, i32 2
  br i1 %writes, label %store, label %load
load:
  br i1 %conflict, label %raw, label %record_read
raw:
  call void @report_race(i64 %at, i32 %line, i32 %wline, i32 %writer, i32 %wkind)
  br label %record_read
record_read:
  store i32 %now, ptr %pr
  %with_mine = and i1 %rsame_block, %rsame_warp
  %with_others = xor i1 %read_before, %with_mine
  %of_warp = or i32 %warp, {several}
  %one = select i1 %with_mine, i32 %of_warp, i32 %me
  %who = select i1 %with_others, i32 65535, i32 %one
  %rtag1 = or i32 %high, %who
  store i32 %rtag1, ptr %prw
  store i32 %line, ptr %prl
  ret void
store:
  br i1 %reported_conflict, label %waw, label %readers
waw:
  call void @report_race(i64 %at, i32 %line, i32 %wline, i32 %writer, i32 %wwkind)
  br label %readers
readers:
  %swap = icmp eq i32 %write, {swap}
  br i1 %swap, label %done, label %overwrites
overwrites:
  %overwritten = and i1 %read_before, %differs
  br i1 %overwritten, label %war, label %record_write
war:
  call void @report_race(i64 %at, i32 %line, i32 %rline, i32 %reader, i32 %rkind)
  br label %record_write
record_write:
  %by = select i1 %atomic, i32 {by_atomic}, i32 0
  %me_by = or i32 %me, %by
  %wtag1 = or i32 %high, %me_by
  store i32 %now, ptr %p
  store i32 %wtag1, ptr %pw
  store i32 %line, ptr %plw
  br label %done
done:
  ret void
}}
"""


def record_access(b: FunctionText, address: str, type_: Type, value: str = "") -> None:
    """Call check_race before a read, or a write of `value`; storing the value that is already there is no race."""
    at = b.make(f"ptrtoint ptr {address} to i64")
    same = "false"
    if value and not isinstance(type_, Pointer):
        bits = f"i{type_.size * 8}"
        kind = stored(type_)
        fresh = value if kind == bits else b.make(f"bitcast {kind} {value} to {bits}")
        same = b.make(f"icmp eq {bits} {b.make(f'load {bits}, ptr {address}, align 1')}, {fresh}")
    record_address(b, at, int(bool(value)), same)


def record_address(b: FunctionText, at: str, write: int, same: str = "false") -> None:
    b.calls.add("@check_race")
    b.emit(f"call void @check_race(i64 {at}, i32 {write}, i32 {b.line_text()}, i1 {same})")


def count_statement(b: FunctionText) -> None:
    """Count a statement of a thread, for the cost model."""
    counter = f"ptr inttoptr (i64 {work_log(b.program) + 8} to ptr)"
    before = b.make(f"load i64, {counter}")
    b.emit(f"store i64 {b.make(f'add i64 {before}, 1')}, {counter}")


def work_log(p: Program) -> int:
    """The log of accesses of global memory; behind their number is that of statements."""
    p.work_log = p.work_log or p.memory.map_zeros(64 + ENTRY_BYTES * LOGGED)
    return p.work_log


def clock(p: Program) -> dict[str, str]:
    """Addresses of the clock, of its values when the launch and the block began, and of the clock of any barriers."""
    at = p.race_clock = p.race_clock or p.memory.private(64)
    names = {"clock": at, "launch": at + 4, "block": at + 8, "any": at + 12}
    return {name: f"ptr inttoptr (i64 {where} to ptr)" for name, where in names.items()}


def instrumentation(p: Program, enter_thread: str) -> str:
    """The helper functions, with a case for each __shared__ array of the kernel."""
    p.external("rt_race")
    p.race_cells = p.race_cells or p.memory.map_zeros(GLOBAL_BYTES * CELL)
    find, cells, last = [], "", "entry"
    for i, (start, size) in enumerate(p.shared):
        cell = p.memory.static(size * CELL, "", False)
        find += [
            f"  %off{i} = sub i64 %at, {start}", f"  %in{i} = icmp ult i64 %off{i}, {size}",
            f"  %far{i} = mul i64 %off{i}, {CELL}", f"  %cell{i} = add i64 %far{i}, {cell}",
            f"  br i1 %in{i}, label %found, label %next{i}", f"next{i}:",
        ]  # fmt: skip
        cells += f"[ %cell{i}, %{last} ], "
        last = f"next{i}"
    return log_text(work_log(p), LOGGED, enter_thread) + INSTRUMENTATION.format(
        reported=MAX_REPORTED, find="\n".join(find), cells=cells, last=last, cell=CELL, pending=PENDING, atomic=ATOMIC,
        swap=SWAP, by_atomic=BY_ATOMIC, several=SEVERAL, clock_bits=CLOCK_BITS, device=p.memory.device_start,
        global_bytes=GLOBAL_BYTES, global_cells=p.race_cells, **clock(p),
    )  # fmt: skip
