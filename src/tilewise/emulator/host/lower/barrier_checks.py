"""Divergent barriers in instrumented kernels: when all threads of a block have ended or wait at a barrier of the block,
those that reached the end of the kernel, or wait at a later line, are missing. Threads that returned early are not.
Those at a later line go on waiting, as in lockstep execution."""

from __future__ import annotations

from tilewise.emulator.host.lower.function_text import FunctionText
from tilewise.emulator.host.lower.program import Instance, Program

HELD = 32  # state of a thread that waits at a later line: no bit of those in `device.py`
BARRIER_CHECKS = """
@barrier_line = internal global [1024 x i32] zeroinitializer
@end_reached = internal global [1024 x i32] zeroinitializer
define internal void @note_barrier(i32 %line) #0 {{
  %t = load i64, ptr @current
  %own = getelementptr i32, ptr @barrier_line, i64 %t
  store i32 %line, ptr %own
  ret void
}}
define internal void @note_end() #0 {{
  %t = load i64, ptr @current
  %own = getelementptr i32, ptr @end_reached, i64 %t
  %block = load i32, {block}
  store i32 %block, ptr %own
  ret void
}}
define internal void @check_barrier(i64 %n) noinline #0 {{
entry:
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %i1, %look ]
  %lowest = phi i32 [ -1, %entry ], [ %lowest1, %look ]
  %pi = getelementptr i8, ptr @states, i64 %i
  %pl = getelementptr i32, ptr @barrier_line, i64 %i
  %was = load i8, ptr %pi
  %here = load i32, ptr %pl
  %held = icmp eq i8 %was, {held}
  %is = select i1 %held, i8 1, i8 %was
  store i8 %is, ptr %pi
  %more_kinds = load i8, ptr @waiting
  %kind = select i1 %held, i8 1, i8 0
  %kinds1 = or i8 %more_kinds, %kind
  store i8 %kinds1, ptr @waiting
  %at_barrier = icmp eq i8 %is, 1
  %lower = icmp ult i32 %here, %lowest
  %new_lowest = and i1 %at_barrier, %lower
  %lowest1 = select i1 %new_lowest, i32 %here, i32 %lowest
  %i1 = add i64 %i, 1
  %again = icmp ult i64 %i1, %n
  br i1 %again, label %look, label %looked
looked:
  %kinds = load i8, ptr @waiting
  %only_block = icmp eq i8 %kinds, 1
  %block = load i32, {block}
  br i1 %only_block, label %thread, label %done
thread:
  %t = phi i64 [ 0, %looked ], [ %t1, %thread ]
  %missing = phi i32 [ 0, %looked ], [ %missing1, %thread ]
  %first = phi i64 [ 0, %looked ], [ %first1, %thread ]
  %state_at = getelementptr i8, ptr @states, i64 %t
  %line_at = getelementptr i32, ptr @barrier_line, i64 %t
  %end_at = getelementptr i32, ptr @end_reached, i64 %t
  %state = load i8, ptr %state_at
  %own = load i32, ptr %line_at
  %end = load i32, ptr %end_at
  %waits = icmp eq i8 %state, 1
  %other = icmp ne i32 %own, %lowest1
  %elsewhere = and i1 %waits, %other
  %kept = select i1 %elsewhere, i8 {held}, i8 %state
  store i8 %kept, ptr %state_at
  %ended = icmp eq i8 %state, 8
  %reached = icmp eq i32 %end, %block
  %over = and i1 %ended, %reached
  %absent = or i1 %elsewhere, %over
  %before = icmp eq i32 %missing, 0
  %new = and i1 %absent, %before
  %first1 = select i1 %new, i64 %t, i64 %first
  %one = zext i1 %absent to i32
  %missing1 = add i32 %missing, %one
  %t1 = add i64 %t, 1
  %more = icmp ult i64 %t1, %n
  br i1 %more, label %thread, label %counted
counted:
  %divergent = icmp ugt i32 %missing1, 0
  br i1 %divergent, label %report, label %done
report:
  call void @enter_observed(i64 %first1)
  call void @rt_divergent_barrier(i32 %lowest1, i32 %missing1)
  br label %done
done:
  ret void
}}
"""
CHECK = "  call void @check_barrier(i64 %n)\n"
NO_BARRIERS = "\ndefine internal void @note_end() #0 {\n  ret void\n}\n"


def barrier_checks(p: Program, block: str) -> str:
    """The helper functions; `block`: the address of the clock's value when the block began."""
    p.external("rt_divergent_barrier")
    return BARRIER_CHECKS.format(block=block, held=HELD)


def note_barrier(b: FunctionText) -> None:
    if b.program.instrumented:
        b.emit(f"call void @note_barrier(i32 {b.line_text()})")


def note_end(b: FunctionText, instance: Instance) -> None:
    """Control reaches the end of a function."""
    if b.program.instrumented and "__global__" in instance.node.specifiers:
        b.emit("call void @note_end()")
