"""Copies the states of an object's bytes; increments the epoch if initialised bytes become uninitialised.

Prechecked loops rely on arrays being initialised until the epoch changes. Runtime calls increment it; object copies are
compiled code and must do so themselves."""

from __future__ import annotations

from tilewise.emulator.host.lower.function_text import FunctionText

# `own`: bits of a state that a copy does not change
COPY_STATES = """
define internal void @copy_states(ptr %to, ptr %from, i64 %n, i8 %own, ptr %epoch) #0 {
entry:
  %others = xor i8 %own, -1
  br label %more
more:
  %i = phi i64 [ 0, %entry ], [ %j, %more ]
  %lost = phi i8 [ 0, %entry ], [ %lost1, %more ]
  %a = getelementptr i8, ptr %to, i64 %i
  %b = getelementptr i8, ptr %from, i64 %i
  %x = load i8, ptr %a
  %y = load i8, ptr %b
  %kept = and i8 %x, %own
  %given = and i8 %y, %others
  %z = or i8 %kept, %given
  store i8 %z, ptr %a
  %cleared = xor i8 %z, -1
  %lost_here = and i8 %x, %cleared
  %lost1 = or i8 %lost, %lost_here
  %j = add i64 %i, 1
  %on = icmp ult i64 %j, %n
  br i1 %on, label %more, label %test
test:
  %any = icmp ne i8 %lost1, 0
  br i1 %any, label %next, label %done, !prof !0
next:
  %then = load i64, ptr %epoch
  %now = add i64 %then, 1
  store i64 %now, ptr %epoch
  br label %done
done:
  ret void
}
"""
INIT_BIT = 2


def copy_states(b: FunctionText, to: str, source: str, size: int) -> None:
    """Copy the states of an object's bytes; in kernels only the bit that they are initialised."""
    if size:
        b.may_uninitialise = b.program.memory.may_uninitialise = True
        own = ~INIT_BIT if b.program.device else 0
        epoch = f"inttoptr (i64 {b.program.memory.epoch_address} to ptr)"
        b.emit(f"call void @copy_states(ptr {to}, ptr {source}, i64 {size}, i8 {own}, ptr {epoch})")
