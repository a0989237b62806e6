"""Conversions, comparisons and operations of scalars, or of vectors of `width` lanes.

Where C leaves behaviour undefined, the host behaves as x86-64 and a kernel as the GPU: a shift count that is too large
is taken modulo the number of bits on x86-64, and shifts everything out on the GPU, where x / 0 is all ones."""

from __future__ import annotations

from tilewise.emulator.host.lower import float_to_integer
from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.float_to_integer import lanes_type, splat
from tilewise.emulator.host.lower.values import NotInLockstep
from tilewise.emulator.parse.types import Scalar

SIGNED_COMPARE = {"==": "eq", "!=": "ne", "<": "slt", ">": "sgt", "<=": "sle", ">=": "sge"}
UNSIGNED_COMPARE = {"==": "eq", "!=": "ne", "<": "ult", ">": "ugt", "<=": "ule", ">=": "uge"}
FLOAT_COMPARE = {"==": "oeq", "!=": "une", "<": "olt", ">": "ogt", "<=": "ole", ">=": "oge"}
INTEGER = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor", "/": "div", "%": "rem"}
FLOATING = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}


def converted(b: Builder, text: str, source: Scalar, type_: Scalar, width: int = 1) -> str:
    """As another type; the same text if that needs no instruction."""
    here, there = lanes_type(source.llvm, width), lanes_type(type_.llvm, width)
    extend = "sext" if source.signed and source.kind != "bool" else "zext"
    if source.llvm == type_.llvm and source.kind == type_.kind:
        return text
    if type_.kind == "bool":
        return b.make(f"{'fcmp une' if source.floating else 'icmp ne'} {here} {text}, zeroinitializer")
    if source.floating and not type_.floating:
        if b.program.device:
            return float_to_integer.on_card(b, text, source, type_, width)
        if width > 1:
            raise NotInLockstep(f"{source} as {type_} on the host")
        return float_to_integer.on_host(b, text, source, type_)
    if source.floating:
        op = "fpext" if type_.size > source.size else "fptrunc"
    elif type_.floating:
        op = "sitofp" if extend == "sext" else "uitofp"
    elif type_.bits == source.bits and type_.size * 8 <= source.bits:
        return text
    else:
        op = extend if type_.size * 8 > source.bits else "trunc"
    return b.make(f"{op} {here} {text} to {there}")


def operated(b: Builder, op: str, type_: Scalar, one: str, two: str, width: int = 1) -> str:
    """An operation on two values of this type, without a check for overflow; a comparison gives an i1."""
    kind = lanes_type(type_.llvm, width)
    if op in SIGNED_COMPARE:
        table = FLOAT_COMPARE if type_.floating else SIGNED_COMPARE if type_.signed else UNSIGNED_COMPARE
        return b.make(f"{'fcmp' if type_.floating else 'icmp'} {table[op]} {kind} {one}, {two}")
    if op in ("/", "%") and not type_.floating:
        return _divided(b, op, type_, one, two, width)
    return b.make(f"{(FLOATING if type_.floating else INTEGER)[op]} {kind} {one}, {two}")


def _divided(b: Builder, op: str, type_: Scalar, one: str, two: str, width: int) -> str:
    """On the card INT_MIN / -1 wraps. On the host the caller has already checked for that and for zero."""
    llvm, name = type_.llvm, ("s" if type_.signed else "u") + INTEGER[op]
    kind, truth = lanes_type(llvm, width), lanes_type("i1", width)
    if not b.program.device:
        return b.make(f"{name} {kind} {one}, {two}")
    odd = zero = b.make(f"icmp eq {kind} {two}, zeroinitializer")
    if type_.signed:
        odd = b.make(f"or {truth} {zero}, {b.make(f'icmp eq {kind} {two}, {splat(llvm, -1, width)}')}")
    divisor = b.make(f"select {truth} {odd}, {kind} {splat(llvm, 1, width)}, {kind} {two}")
    made = b.make(f"{name} {kind} {one}, {divisor}")
    if type_.signed and op == "/":
        made = b.make(f"select {truth} {odd}, {kind} {b.make(f'sub {kind} zeroinitializer, {one}')}, {kind} {made}")
    return b.make(f"select {truth} {zero}, {kind} {splat(llvm, -1, width)}, {kind} {made}")


def shifted(b: Builder, op: str, type_: Scalar, one: str, count: str, width: int = 1) -> str:
    """A negative count is treated as a large unsigned one."""
    kind, truth, last = (
        lanes_type(type_.llvm, width),
        lanes_type("i1", width),
        splat(type_.llvm, type_.size * 8 - 1, width),
    )
    name = "shl" if op == "<<" else "ashr" if type_.signed else "lshr"
    if not b.program.device:
        return b.make(f"{name} {kind} {one}, {b.make(f'and {kind} {count}, {last}')}")
    large = b.make(f"icmp ugt {kind} {count}, {last}")
    clamped = b.make(f"select {truth} {large}, {kind} {last}, {kind} {count}")
    made = b.make(f"{name} {kind} {one}, {clamped}")
    return made if name == "ashr" else b.make(f"select {truth} {large}, {kind} zeroinitializer, {kind} {made}")
