"""Single instructions of LLVM text: registers with their types, and arithmetic as Python defines it."""

from __future__ import annotations

import math
import struct
from typing import Any, NamedTuple

from tilewise.system.python_source import FLOAT, INTEGER, TRUTH


class Register(NamedTuple):
    name: str
    kind: str
    path: tuple[str, ...] = ()  # of an OBJECT: the attributes that lead to it


class Instructions:
    """The instructions of one function."""

    def __init__(self) -> None:
        self._emitted: list[str] = []
        self._count = 0

    def _instruction(self, kind: str, text: str) -> Register:
        name = f"%{self._fresh('t')}"
        self._emit(f"{name} = {text}")
        return Register(name, kind)

    def _fresh(self, name: str) -> str:
        self._count += 1
        return f"{name}.{self._count}"

    def _emit(self, line: str) -> None:
        self._emitted.append(f"  {line}")

    def _label(self, name: str) -> None:
        self._emitted.append(f"{name}:")

    def _truth_of(self, value: Register) -> Register:
        if value.kind == TRUTH:
            return value
        if value.kind == INTEGER:
            return self._instruction(TRUTH, f"icmp ne i64 {value.name}, 0")
        return self._instruction(TRUTH, f"fcmp une double {value.name}, 0x0000000000000000")

    def _number(self, value: Register) -> Register:
        return self._instruction(INTEGER, f"zext i1 {value.name} to i64") if value.kind == TRUTH else value

    def _as_float(self, value: Register) -> Register:
        if value.kind == INTEGER:
            return self._instruction(FLOAT, f"sitofp i64 {value.name} to double")
        return self._instruction(FLOAT, f"uitofp i1 {value.name} to double") if value.kind == TRUTH else value

    def _extreme(self, name: str, left: Register, right: Register) -> Register:
        """min or max as in Python: the first operand where neither compares beyond the other."""
        kind = left.kind if left.kind == right.kind else FLOAT
        if kind == FLOAT:
            left, right = self._as_float(left), self._as_float(right)
        beyond = {"min": "lt", "max": "gt"}[name]
        test = f"icmp s{beyond} i64" if kind == INTEGER else f"fcmp o{beyond} double"
        other = self._instruction(TRUTH, f"{test} {right.name}, {left.name}")
        return self._instruction(kind, f"select i1 {other.name}, {kind} {right.name}, {kind} {left.name}")

    # helpers

    def _integer_division(self, left: Register, right: Register, rest: bool) -> Register:
        """Floor division, as in Python: the truncated quotient is one too large where signs differ. A divisor of 0
        (an exception in Python, a signal on x86, 0 on ARM) counts as 1: a formula must not end the process."""
        nothing = self._instruction(TRUTH, f"icmp eq i64 {right.name}, 0")
        right = self._instruction(INTEGER, f"select i1 {nothing.name}, i64 1, i64 {right.name}")
        whole = self._instruction(INTEGER, f"sdiv i64 {left.name}, {right.name}")
        left_over = self._instruction(INTEGER, f"srem i64 {left.name}, {right.name}")
        some = self._instruction(TRUTH, f"icmp ne i64 {left_over.name}, 0")
        mixed = self._instruction(INTEGER, f"xor i64 {left_over.name}, {right.name}")
        apart = self._instruction(TRUTH, f"icmp slt i64 {mixed.name}, 0")
        both = self._instruction(TRUTH, f"and i1 {some.name}, {apart.name}")
        if rest:
            more = self._instruction(INTEGER, f"select i1 {both.name}, i64 {right.name}, i64 0")
            return self._instruction(INTEGER, f"add i64 {left_over.name}, {more.name}")
        one = self._instruction(INTEGER, f"zext i1 {both.name} to i64")
        return self._instruction(INTEGER, f"sub i64 {whole.name}, {one.name}")


def constant(value: Any) -> Register:
    if isinstance(value, bool):
        return Register("true" if value else "false", TRUTH)
    if isinstance(value, int):
        return Register(str(value), INTEGER)
    assert isinstance(value, float), f"{value!r} is no number"
    assert not math.isnan(value)
    return Register(f"0x{struct.unpack('>Q', struct.pack('>d', value))[0]:016X}", FLOAT)
