"""Ranges of subscripts that are sums and products of loop counters and loop invariants.

They are linear in each counter (no product contains two), so their extreme values are at the ends of the counters'
ranges; if no part of a subscript overflows there, none does in between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.scalars import with_overflow
from tilewise.emulator.host.lower.values import Local
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Array, Pointer, Record, Reference, Scalar, Type
from tilewise.emulator.sema.symbol_table import Unknown

MAX_ELEMENTS = 1 << 40


@dataclass
class Access:
    """An element of an array: its subscripts from the left, each with its limit and its stride in elements."""

    first: str  # the array's address
    base: str  # as i64
    parts: list[tuple[Any, int, int]]
    type: Scalar
    counters: set[str]  # in its subscripts


def integer_variable(b: Builder, name: str) -> Local | None:
    """An integer variable in a register, whose address is not taken."""
    local = b.find(name)
    fits = local is not None and local.register and not local.reference and isinstance(local.type, Scalar)
    if not fits or name in b.escaping:
        return None
    assert local is not None
    return local if local.type.integral and local.type.size in (4, 8) else None  # type: ignore[attr-defined]


def elements(b: Builder, node: Any) -> Scalar | None:
    """The element type of a pointer variable or std::vector; None for other expressions."""
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
    """The address of an array for which `elements` gives a type."""
    local = b.find(node.name)
    assert local is not None
    address = b.make(f"load ptr, ptr {local.address}, align 1") if local.reference else local.address
    return b.make(f"load ptr, ptr {address}, align 1")


class Subscripts:
    """Lowers subscripts; `holds` is an i1: nothing so far was uninitialised or overflowed. Raises Unknown for other
    expressions."""

    def __init__(self, b: Builder, counters: tuple[str, ...], changed: set[str]) -> None:
        self.b, self.counters, self.changed = b, counters, changed  # `changed`: names that the loop assigns
        self.holds = "true"

    def require(self, condition: str) -> None:
        self.holds = self.b.make(f"and i1 {self.holds}, {condition}")

    def variable(self, name: str) -> tuple[str, Scalar]:
        """A register variable as i64; requires that it is initialised."""
        b = self.b
        local = integer_variable(b, name)
        assert local is not None
        assert isinstance(local.type, Scalar)
        if local.flag:
            self.require(b.make(f"load i1, ptr {local.flag}"))
        text = b.make(f"load {local.type.llvm}, ptr {local.address}, align 1")
        if local.type.size == 4:
            text = b.make(f"{'sext' if local.type.signed else 'zext'} i32 {text} to i64")
        return text, local.type

    def invariant(self, node: Any) -> tuple[str, Scalar]:
        """A loop invariant as i64, and its type."""
        if not isinstance(node, tree.Name) or node.owner is not None or node.arguments is not None:
            raise Unknown
        if node.name in self.changed or integer_variable(self.b, node.name) is None:
            raise Unknown
        return self.variable(node.name)

    def array(self, node: Any) -> tuple[Type, str]:
        """The type and address of an array whose variable the loop does not change."""
        of = elements(self.b, node)
        if of is None or node.name in self.changed:
            raise Unknown
        local = self.b.find(node.name)
        if local is None or (local.register and node.name in self.b.escaping):
            raise Unknown
        return Pointer(of), first_element(self.b, node)

    def value(self, node: Any, at: dict[str, str]) -> tuple[str, Scalar]:
        """A subscript as i64 with the counters at `at`; requires that no part of it overflows."""
        b = self.b
        if isinstance(node, tree.Number):
            return str(node.value), node.type if isinstance(node.type, Scalar) else types.INT
        if isinstance(node, tree.Name) and node.name in at:
            local = integer_variable(b, node.name)
            assert local is not None
            assert isinstance(local.type, Scalar)
            return at[node.name], local.type
        if not isinstance(node, tree.Binary):
            return self.invariant(node)
        (one, left), (two, right) = self.value(node.left, at), self.value(node.right, at)
        result, over = with_overflow(b, node.op, types.LONG, one, two)
        self.require(b.make(f"xor i1 {over}, true"))
        wide = left if left.size > right.size or (left.size == right.size and not left.signed) else right
        low, high = (
            (-(1 << 31), 1 << 31)
            if wide.signed and wide.size == 4
            else (0, 1 << 31 if wide.size == 4 else MAX_ELEMENTS)
        )
        self.require(b.make(f"icmp sge i64 {result}, {low}"))
        self.require(b.make(f"icmp slt i64 {result}, {high}"))
        return result, wide

    def step(self, node: Any, counter: str, at: dict[str, str]) -> str:
        """The derivative of a subscript by the counter."""
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

    def counters_in(self, node: Any) -> set[str]:
        """The counters in a subscript; its invariants are lowered here."""
        if isinstance(node, tree.Number) and isinstance(node.value, int):
            return set()
        if isinstance(node, tree.Name) and node.name in self.counters and node.owner is None:
            if node.name in self.changed:  # another variable of that name, inside the loop
                raise Unknown
            return {node.name}
        if isinstance(node, tree.Binary) and node.op in ("+", "-", "*"):
            left, right = self.counters_in(node.left), self.counters_in(node.right)
            if node.op == "*" and left and right:
                raise Unknown
            return left | right
        self.invariant(node)
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
        counters = {name for index, _, _ in parts for name in self.counters_in(index)}
        return Access(first, self.b.make(f"ptrtoint ptr {first} to i64"), parts, type_, counters)

    def element_address(self, made: Access, at: dict[str, str]) -> str:
        """An element's address as i64; requires that its subscripts are within their limits."""
        b = self.b
        address = made.base
        for index, limit, step in made.parts:
            text, _ = self.value(index, at)
            if limit:
                self.require(b.make(f"icmp ult i64 {text}, {limit}"))
            else:  # the product with the element size must not wrap
                near = b.make(f"add i64 {text}, {MAX_ELEMENTS // (step * made.type.size)}")
                self.require(b.make(f"icmp ult i64 {near}, {2 * (MAX_ELEMENTS // (step * made.type.size))}"))
            address = b.make(f"add i64 {address}, {b.make(f'mul i64 {text}, {step * made.type.size}')}")
        return address

    def byte_step(self, made: Access, counter: str, at: dict[str, str]) -> str:
        """The stride in bytes of an element's address by the counter."""
        b = self.b
        out = "0"
        for index, _, step in made.parts:
            by = self.step(index, counter, at)
            out = b.make(f"add i64 {out}, {b.make(f'mul i64 {by}, {step * made.type.size}')}")
        return out

    def byte_range(self, made: Access, box: dict[str, tuple[str, str]]) -> tuple[str, str]:
        """First and last address that the loops access, over the corners of the counters' ranges."""
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
    """Each subscript with its limit (0: unknown) and stride in elements; the element type."""
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
