"""Kernels as compiled code: __device__ and __shared__ variables, and an LLVM module that runs blocks of threads.

In a kernel with barriers each thread is a coroutine, suspended at barriers: values that are live across one are kept in
its coroutine frame, and the threads continue when all of the block wait. Functions with barriers are inlined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewise.emulator.host.lower import containment
from tilewise.emulator.host.lower.async_copies import async_functions
from tilewise.emulator.host.lower.barrier_checks import CHECK, NO_BARRIERS, barrier_checks
from tilewise.emulator.host.lower.copied_states import COPY_STATES
from tilewise.emulator.host.lower.device_function import by_handle_text, handle_targets
from tilewise.emulator.host.lower.device_variables import MAX_DYNAMIC_SHARED
from tilewise.emulator.host.lower.lanes.kernel import group_functions, write_lockstep
from tilewise.emulator.host.lower.module import HEAD, declarations, framed, recursive
from tilewise.emulator.host.lower.program import Instance, LaunchSite, Program
from tilewise.emulator.host.lower.races import BLOCK_TICK, TICK, clock, instrumentation
from tilewise.emulator.host.lower.recording import BLOCK, Recording, poisoned, text_of, without_empty_calls
from tilewise.emulator.parse import types
from tilewise.emulator.parse.types import Array, Record

THREADS = 1024
RUN_BLOCKS_TYPES = ("void", "ptr", "i64", "i64", "i64", "i64")


RUN_BLOCKS = """
define void @run_blocks(ptr %args, i64 %first, i64 %last, i64 %n, i64 %dynamic) #0 {{
entry:
{beyond}
  br label %block
block:
  %b = phi i64 [ %first, %entry ], [ %next, %threads ]
{tick}
{shared}
  call void {enter_block}(i64 %b)
  br label %threads
threads:
  call void @run_threads(ptr %args, i64 %n)
  %next = add i64 %b, 1
  %more = icmp ult i64 %next, %last
  br i1 %more, label %block, label %done
done:
  ret void
}}
"""
SEQUENTIAL_THREADS = """
define internal void @run_threads(ptr %args, i64 %n) #0 {{
entry:
  br label %thread
thread:
  %t = phi i64 [ 0, %entry ], [ %next, %thread ]
  call void {enter_thread}(i64 %t)
  call void @one_thread(ptr %args)
  %next = add i64 %t, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %thread, label %done
done:
  ret void
}}
"""
COROUTINE_THREADS = """
@next = internal global [1024 x ptr] zeroinitializer
@frames = internal global [1024 x ptr] zeroinitializer
@states = internal global [1024 x i8] zeroinitializer
@waiting = internal global i8 0
@current = internal global i64 0
@frames_top = internal global i64 0
@arguments = internal global ptr null
declare token @llvm.coro.id.retcon(i32, i32, ptr, ptr, ptr, ptr)
declare ptr @llvm.coro.begin(token, ptr)
declare i1 @llvm.coro.suspend.retcon.i1(...)
declare {end} @llvm.coro.end(ptr, i1, token)
declare ptr @llvm.coro.prepare.retcon(ptr)
declare ptr @resume(ptr, i1)
define internal ptr @take_frame(i32 %bytes) #0 {{
  %at = load i64, ptr @frames_top
  %size = zext i32 %bytes to i64
  %up = add i64 %size, 255
  %whole = and i64 %up, -256
  %end = add i64 %at, %whole
  store i64 %end, ptr @frames_top
  %over = icmp ugt i64 %end, {frames_end}
  br i1 %over, label %overflow, label %fine, !prof !0
overflow:
  call void @rt_stack_overflow(i32 {name})
  unreachable
fine:
  %frame = inttoptr i64 %at to ptr
  ret ptr %frame
}}
define internal void @leave_frame(ptr %frame) #0 {{
  ret void
}}
define internal void @rt_barrier(i32 %kind) alwaysinline nounwind {{
  %i = load i64, ptr @current
  %state = getelementptr i8, ptr @states, i64 %i
  %k = trunc i32 %kind to i8
  store i8 %k, ptr %state
  %others = load i8, ptr @waiting
  %all = or i8 %others, %k
  store i8 %all, ptr @waiting
  %frame = load i64, {sp}
  %unwind = call i1 (...) @llvm.coro.suspend.retcon.i1()
  store i64 %frame, {sp}
  ret void
}}
define internal ptr @begin_thread(ptr %frame, ptr %args) presplitcoroutine nounwind {{
  %id = call token @llvm.coro.id.retcon(i32 8, i32 8, ptr %frame, ptr @resume, ptr @take_frame, ptr @leave_frame)
  %handle = call ptr @llvm.coro.begin(token %id, ptr null)
  call void @one_thread(ptr %args)
  {ended}call {end} @llvm.coro.end(ptr %handle, i1 false, token none)
  unreachable
}}
define internal ptr @start_thread(ptr %frame, i1 %unwind) #0 {{
  %args = load ptr, ptr @arguments
  %begin = call ptr @llvm.coro.prepare.retcon(ptr @begin_thread)
  %next = call ptr %begin(ptr %frame, ptr %args)
  ret ptr %next
}}
define internal void @run_threads(ptr %args, i64 %n) noinline nounwind {{
entry:
  store ptr %args, ptr @arguments
  store i64 {frames}, ptr @frames_top
  %stack = load i64, {sp}
  br label %prepare
prepare:
  %p = phi i64 [ 0, %entry ], [ %p1, %prepare ]
  %first = getelementptr ptr, ptr @next, i64 %p
  store ptr @start_thread, ptr %first
  %fresh = getelementptr i8, ptr @states, i64 %p
  store i8 0, ptr %fresh
  %p1 = add i64 %p, 1
  %again = icmp ult i64 %p1, %n
  br i1 %again, label %prepare, label %round
round:
  br label %thread
thread:
  %t = phi i64 [ 0, %round ], [ %t1, %next_thread ]
  %where = getelementptr i8, ptr @states, i64 %t
  %state = load i8, ptr %where
  %ready = icmp eq i8 %state, 0
  br i1 %ready, label %resume_thread, label %next_thread
resume_thread:
  store i64 %t, ptr @current
  call void {enter_thread}(i64 %t)
  %room = mul i64 %t, {frame}
  %own = add i64 %stack, %room
  store i64 %own, {sp}
  %from = getelementptr ptr, ptr @next, i64 %t
  %go = load ptr, ptr %from
  %frame = getelementptr ptr, ptr @frames, i64 %t
  %next = call ptr %go(ptr %frame, i1 false)
  store ptr %next, ptr %from
  %over = icmp eq ptr %next, null
  br i1 %over, label %ended, label %next_thread
ended:
  store i8 8, ptr %where
  br label %next_thread
next_thread:
  %t1 = add i64 %t, 1
  %more = icmp ult i64 %t1, %n
  br i1 %more, label %thread, label %barrier
barrier:
{check}
  %kinds = load i8, ptr @waiting
  %parts_bit = and i8 %kinds, 4
  %parts = icmp ne i8 %parts_bit, 0
  %warps_bit = and i8 %kinds, 2
  %warps = icmp ne i8 %warps_bit, 0
  %whole = select i1 %warps, i8 2, i8 1
  %stopped = select i1 %parts, i8 4, i8 %whole
  %with_yields = or i8 %stopped, 16
  %yields = icmp uge i8 %kinds, 16
  %apart = icmp ne i8 %stopped, 1
  %both = and i1 %yields, %apart
  %woken = select i1 %yields, i8 16, i8 %stopped
  %free = select i1 %both, i8 %with_yields, i8 %woken
{tick}
  %any = icmp ne i8 %kinds, 0
  br i1 %any, label %release, label %done
release:
  %r = phi i64 [ 0, %barrier ], [ %r1, %release ]
  %here = getelementptr i8, ptr @states, i64 %r
  %old = load i8, ptr %here
  %of_those = and i8 %old, %free
  %hit = icmp ne i8 %of_those, 0
  %new = select i1 %hit, i8 0, i8 %old
  store i8 %new, ptr %here
  %r1 = add i64 %r, 1
  %rest = icmp ult i64 %r1, %n
  br i1 %rest, label %release, label %released
released:
  %kept = xor i8 %free, -1
  %left = and i8 %kinds, %kept
  store i8 %left, ptr @waiting
  br label %round
done:
  store i64 %stack, {sp}
  ret void
}}
"""


def kernel_module(
    p: Program,
    site: LaunchSite,
    group: tuple[int, bool] | None,
    instrumented: bool = False,
    recording: Recording | None = None,
) -> str:
    """LLVM text: `run_blocks(arguments, first block, end, threads of a block, bytes of dynamic shared memory)`.

    `group`: vectorise over this many threads; whether they lie in one row. The text then counts groups, not threads.
    `instrumented`: call `check_race` before every access of shared or global memory. `recording`: log these accesses
    instead (`lower/recording.py`)."""
    p.device, p.shared, p.uninitialised_shared, p.dynamic_shared = True, [], [], 0
    p.externals, p.called_by_handle, p.instrumented, p.recording = {}, {}, instrumented, recording
    p.instances = {k: v for k, v in p.instances.items() if not v.device}
    try:
        assert site.kernel is not None
        kernel = p.instance(site.kernel, site.bindings, None)
        enter = [p.instance(p.entities.functions[name][0], {}, None) for name in ("__enter_block", "__enter_thread")]
        lanes = None
        by_handle: dict[str, Any] = {}
        while p.pending:
            instance = p.pending.pop()
            if group is not None and instance is kernel:
                lanes = write_lockstep(p, instance, *group)
            else:
                p.write(instance)
            if not p.pending:
                by_handle = handle_targets(p)  # may add pending instances
    finally:
        p.device = p.instrumented = False
        p.pending.clear()
        p.recording = None
    instances = [i for i in p.instances.values() if i.device]
    if recording is not None:
        without_empty_calls(instances)
    with_barriers = _functions_with_barriers(p, kernel, instances, by_handle)
    may_recurse = recursive(instances)
    out = [HEAD, COPY_STATES, containment.function(p), _one_thread(kernel, site), *by_handle_text(p, by_handle)]
    for instance in instances:
        text = framed(p, instance.text, instance.frame, instance.symbol in may_recurse, instance.node.name)
        if instance.symbol in with_barriers:
            text[0] = text[0].replace("define", "define internal", 1).removesuffix("{") + "alwaysinline {"
        out += text
    enter_thread = enter[1].symbol
    if lanes is not None:
        out.append(group_functions(lanes, enter_thread, [i for i in instances if i is not kernel]))
        enter_thread = "@enter_group"
    support, enter_thread, tick, block_tick = _observed(p, enter_thread, instances, instrumented, recording)
    out += support
    if with_barriers:
        width = lanes.width if lanes else 1
        out.append(_coroutine_threads(p, kernel, instances, bool(may_recurse), enter_thread, width, tick))
    else:
        out.append(SEQUENTIAL_THREADS.format(enter_thread=enter_thread))
    beyond, shared = _reset_shared(p, "" if recording is None else poisoned(p))
    out.append(RUN_BLOCKS.format(beyond=beyond, tick=block_tick, shared=shared, enter_block=enter[0].symbol))
    p.externals.pop("rt_barrier", None)
    return "\n".join([*out, *declarations(p)])


def _observed(
    p: Program, enter_thread: str, instances: list[Instance], instrumented: bool, recording: Recording | None
) -> tuple[list[str], str, str, str]:
    """What checks for races or records needs: functions, the one that begins a thread, what is done at the end of an
    interval between barriers and at the begin of a block."""
    if instrumented:
        tick, block_tick = (text.format(**clock(p)) for text in (TICK, BLOCK_TICK))
        support = [instrumentation(p, enter_thread)]
        if any(call.startswith("@async_") for i in instances for call in i.calls):
            support.append(async_functions(p, clock(p)))
        if any("@rt_barrier" in i.calls for i in instances):
            return [*support, barrier_checks(p, clock(p)["block"])], "@enter_observed", tick, block_tick
        return [*support, NO_BARRIERS], "@enter_observed", tick, block_tick
    if recording is not None:
        p.externals.pop("rt_invalid_access", None)
        return [text_of(p, recording, enter_thread)], "@enter_observed", "", BLOCK
    return [], enter_thread, "", ""


def _one_thread(kernel: Instance, site: LaunchSite) -> str:
    lines, given = [], []
    for i, (type_, offset) in enumerate(zip(site.parameters, site.offsets, strict=True)):
        lines.append(f"  %a{i} = getelementptr i8, ptr %args, i64 {offset}")
        if isinstance(type_, (Record, Array)):
            given.append(f"ptr %a{i}")
        elif type_ is types.BOOL:
            lines += [f"  %b{i} = load i8, ptr %a{i}", f"  %v{i} = trunc i8 %b{i} to i1"]
            given.append(f"i1 %v{i}")
        else:
            lines.append(f"  %v{i} = load {type_.llvm}, ptr %a{i}, align 1")
            given.append(f"{type_.llvm} %v{i}")
    call = f"  call void {kernel.symbol}({', '.join(given)})"
    return "\n".join(["define internal void @one_thread(ptr %args) #0 alwaysinline {", *lines, call, "  ret void", "}"])


def _reset_shared(p: Program, static: str) -> tuple[str, str]:
    """States of __shared__ memory: of extern arrays unaddressable beyond the requested size, and uninitialised when a
    block begins.

    The states beyond cannot change, so they are set once per launch: 228 KiB of states take longer than many blocks.
    Static arrays are initialised unless the kernel is instrumented: accesses by subscript do not set their states, and
    accesses through a pointer (atomicAdd(&s[i], 1), a function with a parameter s) would then be reported. `static`:
    what else is done to them."""
    fill = "  call void @llvm.memset.p0.i64(ptr"
    static += "".join(
        f"{fill} inttoptr (i64 {start + p.memory.shift} to ptr), i8 1, i64 {size}, i1 false)\n"
        for start, size in p.uninitialised_shared
    )
    if not p.dynamic_shared:
        return "", static
    there = p.dynamic_shared + p.memory.shift
    beyond = [
        f"  %rest = sub i64 {MAX_DYNAMIC_SHARED}, %dynamic",
        f"  %after = add i64 {there}, %dynamic",
        "  %past = inttoptr i64 %after to ptr",
        f"{fill} %past, i8 0, i64 %rest, i1 false)",
    ]
    return "\n".join(beyond), f"{fill} inttoptr (i64 {there} to ptr), i8 1, i64 %dynamic, i1 false)\n{static}"


def _functions_with_barriers(
    p: Program, kernel: Instance, instances: list[Instance], by_handle: dict[str, Any]
) -> set[str]:
    """Functions that contain or call a barrier; refused if one of them is recursive, since they are inlined."""
    calls = {i.symbol: i.calls for i in instances}
    calls |= {symbol: {i.symbol for _, i in cases} for symbol, cases in by_handle.items()}
    found = {"@rt_barrier"}
    while more := {symbol for symbol in calls.keys() - found if calls[symbol] & found}:
        found |= more
    found.discard("@rt_barrier")
    cycles, called = found, set().union(*(calls[symbol] for symbol in found))
    while (inner := {symbol for symbol in cycles & called if calls[symbol] & cycles}) != cycles:
        cycles, called = inner, set().union(*(calls[symbol] for symbol in inner))
    if cycles:
        line = next((i.node.line for i in instances if i.symbol in cycles), kernel.node.line)
        raise p.refusal("a function with a barrier calls itself: write the recursion as a loop", line)
    return found


def _coroutine_threads(
    p: Program, kernel: Instance, instances: list[Instance], recursive: bool, enter_thread: str, width: int, tick: str
) -> str:
    from llvmlite.binding import llvm_version_info

    room = (p.memory.stack_end - p.memory.stack_start) // 2 // THREADS * width
    found = {i.symbol: i for i in instances}
    frame = room if recursive else _max_stack(kernel.symbol, found, lambda i: i.frame + 128 if i.frame else 0, {})
    frame = -(-max(frame, 64) // 64) * 64
    if frame > room:
        raise p.refusal(f"each thread needs {frame} bytes of stack, {room} can be had", kernel.node.line)
    p.thread_frames = p.thread_frames or p.memory.map_zeros(p.memory.layout.frames)
    end, ended = ("void", "") if llvm_version_info[0] >= 22 else ("i1", "%ended = ")
    return COROUTINE_THREADS.format(
        sp=f"ptr inttoptr (i64 {p.memory.stack_address} to ptr)", frame=frame, enter_thread=enter_thread, tick=tick,
        check=CHECK if tick else "",
        frames=p.thread_frames, frames_end=p.thread_frames + p.memory.layout.frames,
        name=p.name_number(kernel.node.name), end=end, ended=ended,
    )  # fmt: skip


def _max_stack(
    symbol: str, instances: dict[str, Instance], own: Callable[[Instance], int], known: dict[str, int]
) -> int:
    """Bytes of stack of the deepest chain of calls."""
    if symbol in instances and symbol not in known:
        known[symbol] = 0
        below = (_max_stack(c, instances, own, known) for c in instances[symbol].calls)
        known[symbol] = own(instances[symbol]) + max(below, default=0)
    return known.get(symbol, 0)
