"""Where the copy of an object takes values away from bytes that had them: loops without checks have to ask anew.

Such a loop remembers which arrays have values everywhere until the epoch goes on. Calls into the runtime see to that;
an object is copied without one."""

from __future__ import annotations

from tilewise.engines.simt.host.lower.builder import Builder

TEXT = """
define internal void @copy_states(ptr %to, ptr %from, i64 %n, ptr %epoch) #0 {
entry:
  br label %more
more:
  %i = phi i64 [ 0, %entry ], [ %j, %more ]
  %lost = phi i8 [ 0, %entry ], [ %with, %more ]
  %a = getelementptr i8, ptr %to, i64 %i
  %b = getelementptr i8, ptr %from, i64 %i
  %x = load i8, ptr %a
  %y = load i8, ptr %b
  %lacks = xor i8 %y, -1
  %gone = and i8 %x, %lacks
  %with = or i8 %lost, %gone
  %j = add i64 %i, 1
  %on = icmp ult i64 %j, %n
  br i1 %on, label %more, label %seen
seen:
  call void @llvm.memmove.p0.p0.i64(ptr %to, ptr %from, i64 %n, i1 false)
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


def copy_states(b: Builder, to: str, source: str, size: int) -> None:
    """The states of an object's bytes, from shadow to shadow."""
    if size:
        b.takes_values = True
        b.emit(f"call void @copy_states(ptr {to}, ptr {source}, i64 {size}, ptr {_epoch(b)})")


def _epoch(b: Builder) -> str:
    return f"inttoptr (i64 {b.program.memory.epoch_address} to ptr)"
