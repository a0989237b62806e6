"""Reads the inner sum of a loop nest: its arrays and subscripts, its invariants, its accumulator.

An invariant is a name, a member or a constant. Each is a key: its value is compared with that when the sums were
computed. Anything else raises Unknown, and the loop is lowered as usual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.checked_memory import require_initialised
from tilewise.emulator.host.lower.conversion import rvalue
from tilewise.emulator.host.lower.expression import lower
from tilewise.emulator.host.lower.loop_nest import Nest
from tilewise.emulator.host.lower.marks import OK
from tilewise.emulator.host.lower.names import local_place
from tilewise.emulator.host.lower.subscripts import Access, Subscripts, elements, first_element
from tilewise.emulator.host.lower.values import PRECHECKED, Overloads, Place, Value
from tilewise.emulator.parse import tree
from tilewise.emulator.parse.types import Array, Pointer, Scalar, Type
from tilewise.emulator.sema.symbol_table import Unknown

TOTAL = "<total>"


@dataclass
class Term:
    """One iteration: local variables, then the sum."""

    locals: list[tuple[str, Scalar, Any]]
    result: Any  # an expression in which `total` is the sum so far
    total: Any


class Sums(Subscripts):
    """The subscripts and other inputs of a nest's sum."""

    def __init__(self, b: Builder, nest: Nest) -> None:
        super().__init__(b, (nest.column.name, nest.term.name), set())
        self.nest = nest
        self.keys: list[str] = []
        self.leaves: dict[str, tuple[str, Scalar]] = {}
        self.accesses: dict[int, Access] = {}  # array elements that the term reads, by node
        self.scalars: dict[int, Value] = {}  # invariants, by node

    def invariant(self, node: Any) -> tuple[str, Scalar]:
        """An integer; if the nest does change it, the keys differ."""
        name = self.invariant_name(node)
        if name not in self.leaves:
            value = rvalue(self.b, lower(self.b, node))
            if not isinstance(value.type, Scalar) or value.type.kind != "int" or value.type.size not in (4, 8):
                raise Unknown
            self.leaves[name] = (self.bits(value), value.type)
            self.keys.append(self.leaves[name][0])
        return self.leaves[name]

    def invariant_name(self, node: Any) -> str:
        """The source text of a name or a member of a variable outside the loop."""
        name = _written(node)
        root = node.base if isinstance(node, tree.Member) else node
        if isinstance(root, tree.Name) and root.name in self.changed:
            raise Unknown
        return name

    def bits(self, value: Value) -> str:
        """A scalar as i64: integers extended, floats by their bits."""
        b, type_ = self.b, value.type
        assert isinstance(type_, Scalar)
        text = value.text
        if type_.floating:
            text = b.make(f"bitcast {type_.llvm} {text} to i{type_.size * 8}")
        if type_.size == 8:
            return text
        return b.make(f"{'sext' if type_.signed and not type_.floating else 'zext'} i{type_.size * 8} {text} to i64")

    def array(self, node: Any) -> tuple[Type, str]:
        b = self.b
        self.invariant_name(node)
        of, local = elements(b, node), b.find(node.name) if isinstance(node, tree.Name) else None
        if local is not None and local.row:
            raise Unknown
        if of is not None and local is not None and not isinstance(local.type, Pointer):
            return Pointer(of), first_element(b, node)
        value = b.lower(node)
        if isinstance(value, Overloads) or not isinstance(value.type, (Array, Pointer)):
            raise Unknown
        return value.type, rvalue(b, value).text

    def access(self, node: tree.Index) -> Access:
        made = super().access(node)
        self.keys.append(made.base)
        return made

    def collect_reads(self, node: Any, total: Any, own: set[str]) -> None:
        """Record the array elements and invariants that an expression of the term reads."""
        if node is total or (isinstance(node, tree.Name) and node.name in own):
            return
        if isinstance(node, tree.Index):
            self.accesses[id(node)] = self.access(node)
        elif isinstance(node, tree.Binary) and node.op in ("+", "-", "*", "/"):
            self.collect_reads(node.left, total, own)
            self.collect_reads(node.right, total, own)
        elif isinstance(node, tree.Cast) or (isinstance(node, tree.Unary) and node.op == "-"):
            self.collect_reads(node.operand, total, own)
        else:
            self._collect_invariant(node)

    def _collect_invariant(self, node: Any) -> None:
        if self.invariant_name(node) in self.counters:
            raise Unknown
        value = rvalue(self.b, lower(self.b, node))
        if not isinstance(value.type, Scalar) or value.type.kind not in ("int", "float"):
            raise Unknown
        self.scalars[id(node)] = value
        self.keys.append(self.bits(value))


def _written(node: Any) -> str:
    """The source text of a name, member or constant; raises Unknown for anything else."""
    if isinstance(node, tree.Name) and node.owner is None and node.arguments is None:
        return node.name
    if isinstance(node, tree.Member) and isinstance(node.base, tree.Name) and not node.owner:
        return f"{_written(node.base)}{'->' if node.arrow else '.'}{node.name}"
    if isinstance(node, tree.Number):
        return str(node.value)
    raise Unknown


def _same(one: Any, two: Any) -> bool:
    """Whether both are the same variable or element in the source."""
    if type(one) is not type(two):
        return False
    if isinstance(one, tree.Index):
        return _same(one.base, two.base) and _same(one.index, two.index)
    if isinstance(one, tree.Binary):
        return bool(one.op == two.op) and _same(one.left, two.left) and _same(one.right, two.right)
    try:
        return _written(one) == _written(two)
    except Unknown:
        return False


def read_term(sums: Sums, node: tree.For) -> tuple[Term, Any]:
    """One iteration, and the accumulator's expression."""
    b = sums.b
    body = node.body.body if isinstance(node.body, tree.Block) else [node.body]
    while len(body) == 1 and isinstance(body[0], tree.Block):
        body = body[0].body
    last = body[-1].value if body and isinstance(body[-1], tree.Expression) else None
    if not isinstance(last, tree.Assign) or not all(isinstance(item, tree.Declaration) for item in body[:-1]):
        raise Unknown
    if last.op:
        total: Any = tree.Name(TOTAL)
        result: Any = tree.Binary(last.op, total, last.value)
    else:
        result = last.value
        if not isinstance(result, tree.Binary) or not _same(result.left, last.target):
            raise Unknown
        total = result.left
    own: list[tuple[str, Scalar, Any]] = []
    declared = [item for part in body[:-1] if isinstance(part, tree.Declaration) for item in part.items]
    sums.changed = {item.name for item in declared}
    if isinstance(last.target, tree.Name) and last.target.name in sums.changed | set(sums.counters):
        raise Unknown
    for item in declared:
        type_ = b.program.resolve(item.type, b.env)
        if not isinstance(type_, Scalar) or item.init is None or isinstance(item.init, tree.Braces):
            raise Unknown
        sums.collect_reads(item.init, total, {name for name, _, _ in own})
        own.append((item.name, type_, item.init))
    sums.collect_reads(result, total, {name for name, _, _ in own})
    return Term(own, result, total), last.target


@dataclass
class Accumulator:
    """Its place, its value before the loop, and, for an array element, its address."""

    place: Place
    first: Value
    address: str


def read_accumulator(sums: Sums, target: Any, column: str) -> Accumulator:
    b = sums.b
    if isinstance(target, tree.Name):
        local = b.find(target.name)
        if local is None or not local.register or local.reference or target.name in b.escaping:
            raise Unknown
        found, address = local_place(b, local, target.name), ""
        if not isinstance(found, Place):
            raise Unknown
        place = found
        if local.flag:
            sums.require(b.make(f"load i1, ptr {local.flag}"))
    elif isinstance(target, tree.Index):
        made = sums.access(target)
        sums.keys.pop()  # not a key: its address is computed for each column
        if sums.nest.term.name in made.counters:
            raise Unknown
        address = sums.element_address(made, {sums.nest.column.name: column})
        place = Place(made.type, b.make(f"inttoptr i64 {address} to ptr"), PRECHECKED)
    else:
        raise Unknown
    type_ = place.type
    if not isinstance(type_, Scalar) or type_.kind not in ("int", "float") or type_.size not in (4, 8):
        raise Unknown
    there = place.address
    if address:
        there = b.make(f"inttoptr i64 {require_initialised(b, address, type_.size, sums)} to ptr")
    return Accumulator(place, Value(type_, b.make(f"load {type_.llvm}, ptr {there}, align 1{OK}")), address)
