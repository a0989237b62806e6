"""Where the copy of an object takes values away from bytes that had them: loops without checks have to ask anew.

Such a loop remembers which arrays have values everywhere until the epoch goes on. Calls into the runtime see to that;
an object is copied without one."""

from __future__ import annotations

from tilewise.emulator.host.lower.builder import Builder

# `own`: bits of a state that say whose memory it is, which a copy leaves as they are
COPY_STATES = """
define internal void @copy_states(ptr %to, ptr %from, i64 %n, i8 %own, ptr %epoch) #0 {
entry:
  %others = xor i8 %own, -1
  br label %more
more:
  %i = phi i64 [ 0, %entry ], [ %j, %more ]
  %lost = phi i8 [ 0, %entry ], [ %with, %more ]
  %a = getelementptr i8, ptr %to, i64 %i
  %b = getelementptr i8, ptr %from, i64 %i
  %x = load i8, ptr %a
  %y = load i8, ptr %b
  %kept = and i8 %x, %own
  %given = and i8 %y, %others
  %z = or i8 %kept, %given
  store i8 %z, ptr %a
  %lacks = xor i8 %z, -1
  %gone = and i8 %x, %lacks
  %with = or i8 %lost, %gone
  %j = add i64 %i, 1
  %on = icmp ult i64 %j, %n
  br i1 %on, label %more, label %seen
seen:
  %any = icmp ne i8 %with, 0
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
VALUE = 2


def copy_states(b: Builder, to: str, source: str, size: int) -> None:
    """The states of an object's bytes, from shadow to shadow; on the card whether they have a value alone."""
    if size:
        b.takes_values = b.program.memory.loses_values = True
        own = ~VALUE if b.program.device else 0
        epoch = f"inttoptr (i64 {b.program.memory.epoch_address} to ptr)"
        b.emit(f"call void @copy_states(ptr {to}, ptr {source}, i64 {size}, i8 {own}, ptr {epoch})")
