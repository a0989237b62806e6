"""Shifts by more bits than there are: x86-64 counts them modulo the width, a card shifts everything out."""

from __future__ import annotations

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.parse.types import Scalar


def _name(op: str, type_: Scalar) -> str:
    return "shl" if op == "<<" else "ashr" if type_.signed else "lshr"


def on_host(b: Builder, op: str, type_: Scalar, one: str, count: str) -> str:
    count = b.make(f"and {type_.llvm} {count}, {type_.size * 8 - 1}")
    return b.make(f"{_name(op, type_)} {type_.llvm} {one}, {count}")


def on_card(b: Builder, op: str, type_: Scalar, one: str, count: str, width: int = 0) -> str:
    """Of one thread, or of `width` of them as lanes of a vector. A count below 0 is a large one."""
    kind = f"<{width} x {type_.llvm}>" if width else type_.llvm
    truth = f"<{width} x i1>" if width else "i1"
    last = f"splat ({type_.llvm} {type_.size * 8 - 1})" if width else str(type_.size * 8 - 1)
    name = _name(op, type_)
    out = b.make(f"icmp ugt {kind} {count}, {last}")
    within = b.make(f"select {truth} {out}, {kind} {last}, {kind} {count}")
    made = b.make(f"{name} {kind} {one}, {within}")
    nothing = "zeroinitializer" if width else "0"
    return made if name == "ashr" else b.make(f"select {truth} {out}, {kind} {nothing}, {kind} {made}")
