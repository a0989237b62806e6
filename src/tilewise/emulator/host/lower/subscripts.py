"""Subscripts that are sums and products of counters and of what a loop leaves alone: their values at the loop's ends.

No product holds a counter twice, so the least and the greatest value stand at the ends of the counters; where no part
of a subscript leaves its type there, none does between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.values import Local
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Scalar

FAR = 1 << 40
Leaf = Callable[[Any], tuple[str, Scalar]]  # what does not change: its value as i64, and its type


def whole_number(b: Builder, name: str) -> Local | None:
    """A variable that is a whole number in a register, where nobody else can change it."""
    local = b.find(name)
    fits = local is not None and local.register and not local.reference and isinstance(local.type, Scalar)
    if not fits or name in b.escaping:
        return None
    assert local is not None
    return local if local.type.integral and local.type.size in (4, 8) else None  # type: ignore[attr-defined]


class Subscripts:
    """`holds` is an i1: everything that was asked so far had a value and stayed within its type."""

    def __init__(self, b: Builder, leaf: Leaf | None = None) -> None:
        self.b = b
        self.holds = "true"
        self._leaf = leaf or (lambda node: self.variable(node.name))

    def require(self, condition: str) -> None:
        self.holds = self.b.make(f"and i1 {self.holds}, {condition}")

    def variable(self, name: str) -> tuple[str, Scalar]:
        """A register variable as i64, which must have a value."""
        b = self.b
        local = whole_number(b, name)
        assert local is not None
        assert isinstance(local.type, Scalar)
        if local.flag:
            self.require(b.make(f"load i1, ptr {local.flag}"))
        text = b.make(f"load {local.type.llvm}, ptr {local.address}, align 1")
        if local.type.size == 4:
            text = b.make(f"{'sext' if local.type.signed else 'zext'} i32 {text} to i64")
        return text, local.type

    def value(self, node: Any, at: dict[str, str]) -> tuple[str, Scalar]:
        """A subscript as i64 with the counters at `at`; every part of it within its own type."""
        b = self.b
        if isinstance(node, tree.Number):
            return str(node.value), node.type if isinstance(node.type, Scalar) else types.INT
        if isinstance(node, tree.Name) and node.name in at:
            local = whole_number(b, node.name)
            assert local is not None
            assert isinstance(local.type, Scalar)
            return at[node.name], local.type
        if not isinstance(node, tree.Binary):
            return self._leaf(node)
        (one, left), (two, right) = self.value(node.left, at), self.value(node.right, at)
        kind = {"+": "sadd", "-": "ssub", "*": "smul"}[node.op]
        b.program.external(f"llvm.{kind}.with.overflow.i64")
        both = b.make(f"call {{i64, i1}} @llvm.{kind}.with.overflow.i64(i64 {one}, i64 {two})")
        result = b.make(f"extractvalue {{i64, i1}} {both}, 0")
        over = b.make(f"extractvalue {{i64, i1}} {both}, 1")
        self.require(b.make(f"xor i1 {over}, true"))
        wide = left if left.size > right.size or (left.size == right.size and not left.signed) else right
        low, high = (-(1 << 31), 1 << 31) if wide.signed and wide.size == 4 else (0, 1 << 31 if wide.size == 4 else FAR)
        self.require(b.make(f"icmp sge i64 {result}, {low}"))
        self.require(b.make(f"icmp slt i64 {result}, {high}"))
        return result, wide

    def step(self, node: Any, counter: str, at: dict[str, str]) -> str:
        """By how much a subscript grows when the counter grows by one."""
        b = self.b
        if isinstance(node, tree.Name) and node.name == counter:
            return "1"
        if not isinstance(node, tree.Binary):
            return "0"
        one, two = self.step(node.left, counter, at), self.step(node.right, counter, at)
        if one == two == "0":
            return "0"
        if node.op in "+-":
            return b.make(f"{'add' if node.op == '+' else 'sub'} i64 {one}, {two}")
        factor, _ = self.value(node.right if two == "0" else node.left, at)
        return b.make(f"mul i64 {one if two == '0' else two}, {factor}")


def corners(ranges: dict[str, tuple[str, str]]) -> list[dict[str, str]]:
    """Every choice of the first or the last value of each counter."""
    out: list[dict[str, str]] = [{}]
    for name, (first, last) in ranges.items():
        out = [{**known, name: value} for known in out for value in (first, last)]
    return out
