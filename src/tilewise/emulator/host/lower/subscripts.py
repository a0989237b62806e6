"""Subscripts that are sums and products of counters and of what a loop leaves alone: their values at the loop's ends.

No product holds a counter twice, so the least and the greatest value stand at the ends of the counters; where no part
of a subscript leaves its type there, none does between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.scalars import with_overflow
from tilewise.emulator.host.lower.values import Local
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.late import provide
from tilewise.emulator.parse.types import Array, Pointer, Record, Reference, Scalar, Type
from tilewise.emulator.sema.symbol_table import Unknown

FAR = 1 << 40


@dataclass
class Access:
    """An element of an array: subscripts from the left, each with its limit and how many elements it steps over."""

    first: str  # element, a pointer
    base: str  # and as i64
    parts: list[tuple[Any, int, int]]
    type: Scalar
    counters: set[str]  # that its subscripts have


def whole_number(b: Builder, name: str) -> Local | None:
    """A variable that is a whole number in a register, where nobody else can change it."""
    local = b.find(name)
    fits = local is not None and local.register and not local.reference and isinstance(local.type, Scalar)
    if not fits or name in b.escaping:
        return None
    assert local is not None
    return local if local.type.integral and local.type.size in (4, 8) else None  # type: ignore[attr-defined]


def elements(b: Builder, node: Any) -> Scalar | None:
    """What an array holds that a pointer variable or a std::vector stands for; None for others."""
    local = b.find(node.name) if isinstance(node, tree.Name) else None
    if local is None or local.row:
        return None
    type_: Any = local.type.to if isinstance(local.type, Reference) else local.type
    if isinstance(type_, Pointer) and local.register and not local.reference and not local.flag:
        of: Any = type_.to
    elif isinstance(type_, Record) and type_.name.startswith(("vector<", "std::vector<")) and not local.register:
        of = type_.bindings.get("T")
    else:
        return None
    return of if isinstance(of, Scalar) and of is not types.BOOL and of is not types.VOID else None


def first_element(b: Builder, node: Any) -> str:
    """The pointer to an array that `elements` knows."""
    local = b.find(node.name)
    assert local is not None
    address = b.make(f"load ptr, ptr {local.address}, align 1") if local.reference else local.address
    return b.make(f"load ptr, ptr {address}, align 1")


class Subscripts:
    """`holds` is an i1: every access so far had a value and stayed within its type. What is not as simple
    raises Unknown."""

    def __init__(self, b: Builder, counters: tuple[str, ...], changed: set[str]) -> None:
        self.b, self.counters, self.changed = b, counters, changed  # `changed`: names that the loop gives other values
        self.holds = "true"

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

    def leaf(self, node: Any) -> tuple[str, Scalar]:
        """What the loop does not change: its value as i64, and its type."""
        if not isinstance(node, tree.Name) or node.owner is not None or node.arguments is not None:
            raise Unknown
        if node.name in self.changed or whole_number(self.b, node.name) is None:
            raise Unknown
        return self.variable(node.name)

    def array(self, node: Any) -> tuple[Type, str]:
        """The type of an array that the loop leaves alone, and a pointer to its first element."""
        of = elements(self.b, node)
        if of is None or node.name in self.changed:
            raise Unknown
        local = self.b.find(node.name)
        if local is None or (local.register and node.name in self.b.escaping):
            raise Unknown
        return Pointer(of), first_element(self.b, node)

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
            return self.leaf(node)
        (one, left), (two, right) = self.value(node.left, at), self.value(node.right, at)
        result, over = with_overflow(b, node.op, types.LONG, one, two)
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

    def used(self, node: Any) -> set[str]:
        """The counters in a subscript; every leaf of it is evaluated here."""
        if isinstance(node, tree.Number) and isinstance(node.value, int):
            return set()
        if isinstance(node, tree.Name) and node.name in self.counters and node.owner is None:
            if node.name in self.changed:  # another variable of that name, inside the loop
                raise Unknown
            return {node.name}
        if isinstance(node, tree.Binary) and node.op in ("+", "-", "*"):
            left, right = self.used(node.left), self.used(node.right)
            if node.op == "*" and left and right:
                raise Unknown
            return left | right
        self.leaf(node)
        return set()

    def access(self, node: tree.Index) -> Access:
        indices: list[Any] = []
        base: Any = node
        while isinstance(base, tree.Index):
            indices.insert(0, base.index)
            base = base.base
        type_, first = self.array(base)
        parts, type_ = _parts(indices, type_)
        if not isinstance(type_, Scalar) or type_.kind not in ("int", "float"):
            raise Unknown
        counters = {name for index, _, _ in parts for name in self.used(index)}
        return Access(first, self.b.make(f"ptrtoint ptr {first} to i64"), parts, type_, counters)

    def element_address(self, made: Access, at: dict[str, str]) -> str:
        """Of an element, as i64, its subscripts within their limits."""
        b = self.b
        address = made.base
        for index, limit, step in made.parts:
            text, _ = self.value(index, at)
            if limit:
                self.require(b.make(f"icmp ult i64 {text}, {limit}"))
            else:  # no product with the size of an element may be past the last address, and come back
                near = b.make(f"add i64 {text}, {FAR // (step * made.type.size)}")
                self.require(b.make(f"icmp ult i64 {near}, {2 * (FAR // (step * made.type.size))}"))
            address = b.make(f"add i64 {address}, {b.make(f'mul i64 {text}, {step * made.type.size}')}")
        return address

    def byte_step(self, made: Access, counter: str, at: dict[str, str]) -> str:
        """By how many bytes an element moves with a counter."""
        b = self.b
        out = "0"
        for index, _, step in made.parts:
            by = self.step(index, counter, at)
            out = b.make(f"add i64 {out}, {b.make(f'mul i64 {by}, {step * made.type.size}')}")
        return out

    def byte_range(self, made: Access, box: dict[str, tuple[str, str]]) -> tuple[str, str]:
        """The addresses from which to which the block reads this array: its least and greatest stand at corners."""
        b = self.b
        low = high = ""
        for corner in corners({name: box[name] for name in self.counters if name in made.counters}):
            address = self.element_address(made, corner)
            if not low:
                low = high = address
                continue
            low = b.make(f"select i1 {b.make(f'icmp ult i64 {address}, {low}')}, i64 {address}, i64 {low}")
            high = b.make(f"select i1 {b.make(f'icmp ugt i64 {address}, {high}')}, i64 {address}, i64 {high}")
        return low, b.make(f"add i64 {high}, {made.type.size}")


def corners(ranges: dict[str, tuple[str, str]]) -> list[dict[str, str]]:
    """Every choice of the first or the last value of each counter."""
    out: list[dict[str, str]] = [{}]
    for name, (first, last) in ranges.items():
        out = [{**known, name: value} for known in out for value in (first, last)]
    return out


def _parts(indices: list[Any], type_: Type) -> tuple[list[tuple[Any, int, int]], Type]:
    """Each subscript with its limit (0: none is known) and its elements; the type of what they reach."""
    found: list[tuple[Any, int]] = []
    for number, index in enumerate(indices):
        if isinstance(type_, Array) and type_.length:
            found.append((index, type_.length))
            type_ = type_.of
        elif isinstance(type_, Pointer) and number == 0:
            found.append((index, 0))
            type_ = type_.to
        else:
            raise Unknown
    out: list[tuple[Any, int, int]] = []
    elements_ = 1
    for index, limit in reversed(found):
        out.insert(0, (index, limit, elements_))
        elements_ *= limit
    return out, type_


provide(elements, first_element)
