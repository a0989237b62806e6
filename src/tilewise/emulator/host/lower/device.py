"""Kernels as compiled code: variables of the card and of a block, and one LLVM module that runs the threads of blocks.

Where threads wait for each other each has a stack of its own inside the caller's, and is left and taken up again by
exchanging stack pointers: a barrier is passed when everyone of the block waits at one."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

from tilewise.emulator.host.lower import containment
from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.conversion import convert
from tilewise.emulator.host.lower.device_function import by_handle_text, callable_ones
from tilewise.emulator.host.lower.function import write
from tilewise.emulator.host.lower.lockstep.kernel import group_functions, write_lockstep
from tilewise.emulator.host.lower.lost_values import COPY_STATES
from tilewise.emulator.host.lower.module import declarations, framed, head, native_stack, recursive
from tilewise.emulator.host.lower.program import Instance, LaunchSite, Program
from tilewise.emulator.host.lower.races import BLOCK_TICK, TICK, clock, watching
from tilewise.emulator.host.lower.values import FULL, KNOWN, SHARED, Local, Place, Value
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.late import late, provide
from tilewise.emulator.parse.types import Array, Record, Type

DYNAMIC_SHARED = 228 << 10
DYNAMIC_NAME = "shared memory"
STACK_OF_A_THREAD = (256 << 10) + 832  # no power of two: all threads would meet in one set of the cache
BYTES_A_LINE = 16  # of LLVM's text, that its value may take of the processor's stack
THREADS = 1024
ON_THE_CARD = frozenset({"__device__", "__constant__", "__managed__"})

X86 = (
    "pushq %rbp\\0Apushq %rbx\\0Apushq %r12\\0Apushq %r13\\0Apushq %r14\\0Apushq %r15\\0Amovq %rsp, (%rdi)\\0A"
    "movq %rsi, %rsp\\0Apopq %r15\\0Apopq %r14\\0Apopq %r13\\0Apopq %r12\\0Apopq %rbx\\0Apopq %rbp\\0Aretq"
)
ARM = (
    "sub sp, sp, #160\\0Astp x19, x20, [sp]\\0Astp x21, x22, [sp, #16]\\0Astp x23, x24, [sp, #32]\\0A"
    "stp x25, x26, [sp, #48]\\0Astp x27, x28, [sp, #64]\\0Astp x29, x30, [sp, #80]\\0Astp d8, d9, [sp, #96]\\0A"
    "stp d10, d11, [sp, #112]\\0Astp d12, d13, [sp, #128]\\0Astp d14, d15, [sp, #144]\\0Amov x9, sp\\0A"
    "str x9, [x0]\\0Amov sp, x1\\0Aldp x19, x20, [sp]\\0Aldp x21, x22, [sp, #16]\\0Aldp x23, x24, [sp, #32]\\0A"
    "ldp x25, x26, [sp, #48]\\0Aldp x27, x28, [sp, #64]\\0Aldp x29, x30, [sp, #80]\\0Aldp d8, d9, [sp, #96]\\0A"
    "ldp d10, d11, [sp, #112]\\0Aldp d12, d13, [sp, #128]\\0Aldp d14, d15, [sp, #144]\\0Aadd sp, sp, #160\\0Aret"
)
# (the exchange, bytes it keeps on the stack, where among them the address to go on at stands)
# Windows (AMD64 by its name there) passes arguments in other registers: kernels with barriers are interpreted there.
EXCHANGES = {"x86_64": (X86, 48, 48), "aarch64": (ARM, 160, 88), "arm64": (ARM, 160, 88)}

RUN_BLOCKS = """
define void @run_blocks(ptr %args, i64 %first, i64 %last, i64 %n, i64 %dynamic) #0 {{
entry:
{room}
  br i1 %too_deep, label %overflow, label %begin, !prof !0
overflow:
  call void @rt_stack_overflow(i32 {name})
  unreachable
begin:
  %stacks = alloca i8, i64 %room, align 16
{beyond}
  br label %block
block:
  %b = phi i64 [ %first, %begin ], [ %next, %threads ]
{tick}
{shared}
  call void {enter_block}(i64 %b)
  br label %threads
threads:
  call void @run_threads(ptr %args, i64 %n, ptr %stacks)
  %next = add i64 %b, 1
  %more = icmp ult i64 %next, %last
  br i1 %more, label %block, label %done
done:
  ret void
}}
"""
ONE_BY_ONE = """
define internal void @run_threads(ptr %args, i64 %n, ptr %stacks) #0 {{
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
IN_TURNS = """
@pointers = internal global [1024 x i64] zeroinitializer
@states = internal global [1024 x i8] zeroinitializer
@current = internal global i64 0
@home = internal global i64 0
@arguments = internal global ptr null
define internal void @exchange(ptr %keep, i64 %take) naked noinline nounwind {{
  call void asm sideeffect "{exchange}", ""()
  unreachable
}}
define internal void @rt_wait(i32 %kind) noinline nounwind {{
  %i = load i64, ptr @current
  %state = getelementptr i8, ptr @states, i64 %i
  %k = trunc i32 %kind to i8
  store i8 %k, ptr %state
  %frame = load i64, {sp}
  %mine = getelementptr i64, ptr @pointers, i64 %i
  %to = load i64, ptr @home
  call void @exchange(ptr %mine, i64 %to)
  store i64 %frame, {sp}
  ret void
}}
define internal void @begin_thread() noinline nounwind {{
  %args = load ptr, ptr @arguments
  call void @one_thread(ptr %args)
  call void @rt_wait(i32 3)
  unreachable
}}
define internal void @run_threads(ptr %args, i64 %n, ptr %stacks) noinline nounwind {{
entry:
  store ptr %args, ptr @arguments
  %frame = load i64, {sp}
  %least = load i64, {native}
  %begin = ptrtoint ptr @begin_thread to i64
  br label %prepare
prepare:
  %p = phi i64 [ 0, %entry ], [ %p1, %prepare ]
  %p1 = add i64 %p, 1
  %end = mul i64 %p1, {stack}
  %top = sub i64 %end, 256
  %kept = getelementptr i8, ptr %stacks, i64 %top
  %go = getelementptr i8, ptr %kept, i64 {go_on}
  store i64 %begin, ptr %go
  %number = ptrtoint ptr %kept to i64
  %slot = getelementptr i64, ptr @pointers, i64 %p
  store i64 %number, ptr %slot
  %fresh = getelementptr i8, ptr @states, i64 %p
  store i8 0, ptr %fresh
  %again = icmp ult i64 %p1, %n
  br i1 %again, label %prepare, label %round
round:
  br label %turn
turn:
  %t = phi i64 [ 0, %round ], [ %t1, %turned ]
  %t1 = add i64 %t, 1
  %where = getelementptr i8, ptr @states, i64 %t
  %state = load i8, ptr %where
  %ready = icmp eq i8 %state, 0
  br i1 %ready, label %go_on, label %turned
go_on:
  store i64 %t, ptr @current
  call void {enter_thread}(i64 %t)
  %room = mul i64 %t, {frame}
  %own = add i64 %frame, %room
  store i64 %own, {sp}
  %from = getelementptr i64, ptr @pointers, i64 %t
  %take = load i64, ptr %from
  %before = mul i64 %t, {stack}
  %lowest = getelementptr i8, ptr %stacks, i64 %before
  %last = getelementptr i8, ptr %lowest, i64 {left}
  %end_of_stack = ptrtoint ptr %last to i64
  store i64 %end_of_stack, {native}
  call void @exchange(ptr @home, i64 %take)
  store i64 %least, {native}
  br label %turned
turned:
  %more = icmp ult i64 %t1, %n
  br i1 %more, label %turn, label %look
look:
  %l = phi i64 [ 0, %turned ], [ %l1, %look ]
  %warps = phi i1 [ false, %turned ], [ %warps1, %look ]
  %blocks = phi i1 [ false, %turned ], [ %blocks1, %look ]
  %parts = phi i1 [ false, %turned ], [ %parts1, %look ]
  %l1 = add i64 %l, 1
  %at = getelementptr i8, ptr @states, i64 %l
  %s = load i8, ptr %at
  %is1 = icmp eq i8 %s, 1
  %is2 = icmp eq i8 %s, 2
  %is4 = icmp eq i8 %s, 4
  %blocks1 = or i1 %blocks, %is1
  %warps1 = or i1 %warps, %is2
  %parts1 = or i1 %parts, %is4
  %on = icmp ult i64 %l1, %n
  br i1 %on, label %look, label %decide
decide:
{tick}
  %whole = select i1 %warps1, i8 2, i8 1
  %free = select i1 %parts1, i8 4, i8 %whole
  %some = or i1 %warps1, %blocks1
  %any = or i1 %some, %parts1
  br i1 %any, label %release, label %done
release:
  %r = phi i64 [ 0, %decide ], [ %r1, %release ]
  %r1 = add i64 %r, 1
  %here = getelementptr i8, ptr @states, i64 %r
  %old = load i8, ptr %here
  %hit = icmp eq i8 %old, %free
  %new = select i1 %hit, i8 0, i8 %old
  store i8 %new, ptr %here
  %rest = icmp ult i64 %r1, %n
  br i1 %rest, label %release, label %round
done:
  store i64 %frame, {sp}
  ret void
}}
"""


def on_the_card(b: Builder, name: str, item: tree.Variable, place: Place) -> Place:
    """A file-level variable as a kernel's thread sees it."""
    if name in b.program.library_variables:
        place.check = KNOWN  # threadIdx and its kin
    elif item.words & ON_THE_CARD:
        place.check = FULL
    elif not b.library:
        raise b.refuse(f"{name} is a variable of the host: a kernel cannot reach it")
    return place


def declare_shared(b: Builder, item: tree.Variable) -> None:
    """__shared__ T x[…] inside a kernel: one for all threads of a block."""
    place = shared_place(b, item)
    b.declare(item.name, Local(place.type, place.address, place.check))


def shared_place(b: Builder, item: tree.Variable) -> Place:
    program = b.program
    type_: Type = program.resolve(item.type, b.env)
    if "extern" in item.words:
        if not program.dynamic_shared:
            program.dynamic_shared = program.memory.static(DYNAMIC_SHARED, DYNAMIC_NAME, False)
        address = program.dynamic_shared
        return Place(type_, f"inttoptr (i64 {address} to ptr)", FULL, name=item.name)
    size = program.size_of(type_)
    address = program.memory.static(size, item.name, False)
    program.shared.append((address, size))
    watched = program.watched and "volatile" not in item.words and not isinstance(type_, Record)
    return Place(type_, f"inttoptr (i64 {address} to ptr)", SHARED if watched else KNOWN, name=item.name)


def wait(b: Builder, node: tree.Call) -> Value:
    """__wait(1): until all threads of the block wait; __wait(2): of the warp; __wait(4): those of it that are here."""
    kind = convert(b, late.lower(b, node.arguments[0]), types.INT)
    b.program.external("rt_wait")
    b.calls.add("@rt_wait")
    b.noted_line = 0
    b.emit(f"call void @rt_wait(i32 {kind.text})")
    return Value(types.VOID, "")


def kernel_module(p: Program, site: LaunchSite, group: tuple[int, bool] | None = None, watched: bool = False) -> str:
    """LLVM's text: `run_blocks(arguments, first block, end, threads of a block, bytes of dynamic shared memory)`.

    `group`: so many threads side by side, and whether they lie in one row; groups of a block instead of its threads.
    `watched`: one by one, with a note at every touch of shared or global memory."""
    p.device, p.shared, p.dynamic_shared, p.externals, p.watched = True, [], 0, {}, watched
    p.called_by_handle = {}
    p.instances = {k: v for k, v in p.instances.items() if not v.device}
    try:
        assert site.kernel is not None
        kernel = p.instance(site.kernel, site.bindings, None)
        enter = [p.instance(p.entities.functions[name][0], {}, None) for name in ("__enter_block", "__enter_thread")]
        lanes = None
        by_handle: dict[str, Any] = {}
        while p.waiting:
            instance = p.waiting.pop()
            if group is not None and instance is kernel:
                lanes = write_lockstep(p, instance, *group)
            else:
                write(p, instance)
            if not p.waiting:
                by_handle = callable_ones(p)  # which may be new
    finally:
        p.device = p.watched = False
        p.waiting.clear()
    instances = [i for i in p.instances.values() if i.device]
    waits = any("@rt_wait" in i.calls for i in instances)
    in_circles = recursive(instances)
    out = [head(), COPY_STATES, containment.function(p), _one_thread(kernel, site), *by_handle_text(p, by_handle)]
    for instance in instances:
        out += framed(p, instance.text, instance.frame, instance.symbol in in_circles, instance.node.name)
    enter_thread = enter[1].symbol
    if lanes is not None:
        out.append(group_functions(lanes, enter_thread, [i for i in instances if i is not kernel]))
        enter_thread = "@enter_group"
    tick = block_tick = ""
    if watched:
        out.append(watching(p, enter_thread))
        enter_thread = "@enter_watched"
        tick, block_tick = (text.format(**clock(p)) for text in (TICK, BLOCK_TICK))
    stack = 0
    if waits:
        width = lanes.width if lanes else 1
        stack = _stack(p, kernel, instances, width)
        out.append(_in_turns(p, kernel, instances, bool(in_circles), enter_thread, width, tick, stack))
    else:
        out.append(ONE_BY_ONE.format(enter_thread=enter_thread))
    beyond, shared = _without_values(p)
    room = [f"  %wanted = mul i64 %n, {stack}", "  %room = add i64 %wanted, 16", "  %no_room = icmp eq i64 0, 1"]
    room += native_stack(p.memory, "no_room", "%room")
    out.append(RUN_BLOCKS.format(room="\n".join(room), beyond=beyond, tick=block_tick, shared=shared,
                                 enter_block=enter[0].symbol, name=p.text(kernel.node.name)))  # fmt: skip
    p.externals.pop("rt_wait", None)
    return "\n".join([*out, *declarations(p)])


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
    return "\n".join(["define internal void @one_thread(ptr %args) #0 {", *lines, call, "  ret void", "}"])


def _without_values(p: Program) -> tuple[str, str]:
    """extern __shared__ memory: beyond what was asked for there is none; when a block begins nobody has written to it.

    Nothing can give the memory beyond a state, so that is said once for all blocks: 228 KiB of states take longer
    than many a block. Arrays of a known length are touched without a look at their states, so that stores leave no
    mark there: read through a pointer (atomicAdd(&s[i], 1), a function that is given s) they must pass for memory
    that has values."""
    if not p.dynamic_shared:
        return "", ""
    there = p.dynamic_shared + p.memory.shift
    fill = "  call void @llvm.memset.p0.i64(ptr"
    beyond = [
        f"  %rest = sub i64 {DYNAMIC_SHARED}, %dynamic",
        f"  %after = add i64 {there}, %dynamic",
        "  %past = inttoptr i64 %after to ptr",
        f"{fill} %past, i8 0, i64 %rest, i1 false)",
    ]
    return "\n".join(beyond), f"{fill} inttoptr (i64 {there} to ptr), i8 1, i64 %dynamic, i1 false)"


def _stack(p: Program, kernel: Instance, instances: list[Instance], width: int) -> int:
    """Bytes of the processor's stack that each thread (or group of them) has; half is for what calls itself."""
    found = {i.symbol: i for i in instances}
    taken = _deepest(kernel.symbol, found, lambda i: BYTES_A_LINE * len(i.text), {})
    taken += BYTES_A_LINE * (width - 1) * len(kernel.text)  # its values are vectors
    stack = max(STACK_OF_A_THREAD, 2 * taken + 832)
    if stack > STACK_OF_A_THREAD * width:
        raise p.refusal(f"each thread may need {taken} bytes of the processor's stack", kernel.node.line)
    return -(-stack // 64) * 64


def _in_turns(
    p: Program, kernel: Instance, instances: list[Instance], circles: bool, enter_thread: str, width: int, tick: str,
    stack: int,
) -> str:  # fmt: skip
    machine = platform.machine()
    if machine not in EXCHANGES:
        raise p.refusal(f"a kernel whose threads wait for each other cannot be compiled for {machine}", 1)
    exchange, _, go_on = EXCHANGES[machine]
    room = (p.memory.stack_end - p.memory.stack_start) // 2 // THREADS * width
    found = {i.symbol: i for i in instances}
    frame = room if circles else _deepest(kernel.symbol, found, lambda i: i.frame + 128 if i.frame else 0, {})
    frame = -(-max(frame, 64) // 64) * 64
    if frame > room:
        raise p.refusal(f"each thread needs {frame} bytes of stack, {room} can be had", kernel.node.line)
    sp = f"ptr inttoptr (i64 {p.memory.stack_address} to ptr)"
    native = f"ptr inttoptr (i64 {p.memory.native_address} to ptr)"
    return IN_TURNS.format(exchange=exchange, sp=sp, stack=stack, go_on=go_on, frame=frame, native=native,
                           left=stack // 2, enter_thread=enter_thread, tick=tick)  # fmt: skip


def _deepest(symbol: str, instances: dict[str, Instance], own: Callable[[Instance], int], known: dict[str, int]) -> int:
    """Bytes of stack that the deepest chain of calls takes; what calls itself is counted once."""
    if symbol in instances and symbol not in known:
        known[symbol] = 0
        below = (_deepest(c, instances, own, known) for c in instances[symbol].calls)
        known[symbol] = own(instances[symbol]) + max(below, default=0)
    return known.get(symbol, 0)


provide(declare_shared, on_the_card, shared_place)
late.BUILTIN["__wait"] = wait
