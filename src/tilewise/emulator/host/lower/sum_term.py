"""What the innermost sum of a nest is made of: its arrays and their subscripts, what does not change, what holds it.

Names, members and constants alone stand for what a nest leaves alone; each is a key: it is compared with what it was
when the sums were made. Anything else raises Unknown, and the loop is lowered as it stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.checked_memory import holds_value
from tilewise.emulator.host.lower.conversion import rvalue
from tilewise.emulator.host.lower.expression import lower
from tilewise.emulator.host.lower.loop_nest import Nest
from tilewise.emulator.host.lower.marks import OK
from tilewise.emulator.host.lower.names import local_place
from tilewise.emulator.host.lower.subscripts import FAR, Subscripts, corners
from tilewise.emulator.host.lower.trusted_loop import elements, first_element
from tilewise.emulator.host.lower.values import TRUSTED, Place, Value
from tilewise.emulator.parse import tree
from tilewise.emulator.parse.types import Array, Pointer, Scalar, Type
from tilewise.emulator.sema.symbol_table import Unknown

TOTAL = "<total>"


@dataclass
class Access:
    """An element of an array: subscripts from the left, each with its limit and how many elements it steps over."""

    base: str  # the first element, as i64
    parts: list[tuple[Any, int, int]]
    type: Scalar
    counters: set[str]  # that its subscripts have


@dataclass
class Term:
    """What one iteration does: local values, then the sum."""

    locals: list[tuple[str, Scalar, Any]]
    result: Any  # an expression in which `total` is the sum so far
    total: Any


class Sums:
    """The sums of one nest while the loop that adds them up is lowered."""

    def __init__(self, b: Builder, nest: Nest) -> None:
        self.b, self.nest = b, nest
        self.keys: list[str] = []
        self.leaves: dict[str, tuple[str, Scalar]] = {}
        self.subscripts = Subscripts(b, self.leaf)
        self.counters = (nest.column.name, nest.term.name)
        self.accesses: dict[int, Access] = {}  # what the term reads, by its node,
        self.scalars: dict[int, Value] = {}  # and what does not change
        self.inner: set[str] = set()  # names of the loop's own variables, which are no others outside

    # -- what the term is made of

    def leaf(self, node: Any) -> tuple[str, Scalar]:
        """A whole number that the nest does not change, or that is seen to have changed."""
        name = self.outside(node)
        if name not in self.leaves:
            value = rvalue(self.b, lower(self.b, node))
            if not isinstance(value.type, Scalar) or value.type.kind != "int" or value.type.size not in (4, 8):
                raise Unknown
            self.leaves[name] = (self.bits(value), value.type)
            self.keys.append(self.leaves[name][0])
        return self.leaves[name]

    def outside(self, node: Any) -> str:
        """A name or a member as it is written, of a variable outside the loop."""
        name = _written(node)
        root = node.base if isinstance(node, tree.Member) else node
        if isinstance(root, tree.Name) and root.name in self.inner:
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

    def used(self, node: Any) -> set[str]:
        """The counters in a subscript; every leaf of it is asked for its value here."""
        if isinstance(node, tree.Number) and isinstance(node.value, int):
            return set()
        if isinstance(node, tree.Name) and node.name in self.counters and node.owner is None:
            return {self.outside(node)}
        if isinstance(node, tree.Binary) and node.op in ("+", "-", "*"):
            left, right = self.used(node.left), self.used(node.right)
            if node.op == "*" and left and right:
                raise Unknown
            return left | right
        self.leaf(node)
        return set()

    def access(self, node: tree.Index) -> Access:
        b = self.b
        indices: list[Any] = []
        base: Any = node
        while isinstance(base, tree.Index):
            indices.insert(0, base.index)
            base = base.base
        self.outside(base)
        of = elements(b, base)
        local = b.find(base.name) if isinstance(base, tree.Name) else None
        if isinstance(base, tree.Name) and local is not None and local.row:
            raise Unknown
        if of is not None and local is not None and not isinstance(local.type, Pointer):
            type_: Type = Pointer(of)
            first = first_element(b, base)
        else:
            value = lower(b, base)
            if not isinstance(getattr(value, "type", None), (Array, Pointer)):
                raise Unknown
            type_, first = value.type, rvalue(b, value).text
        parts, type_ = _parts(b, indices, type_)
        if not isinstance(type_, Scalar) or type_.kind not in ("int", "float"):
            raise Unknown
        text = b.make(f"ptrtoint ptr {first} to i64")
        self.keys.append(text)
        return Access(text, parts, type_, {name for index, _, _ in parts for name in self.used(index)})

    def gather(self, node: Any, total: Any, own: set[str]) -> None:
        """Everything that an expression of the term reads."""
        if node is total or (isinstance(node, tree.Name) and node.name in own):
            return
        if isinstance(node, tree.Index):
            self.accesses[id(node)] = self.access(node)
        elif isinstance(node, tree.Binary) and node.op in ("+", "-", "*", "/"):
            self.gather(node.left, total, own)
            self.gather(node.right, total, own)
        elif isinstance(node, tree.Cast) or (isinstance(node, tree.Unary) and node.op == "-"):
            self.gather(node.operand, total, own)
        else:
            self._scalar(node)

    def _scalar(self, node: Any) -> None:
        if self.outside(node) in self.counters:
            raise Unknown
        value = rvalue(self.b, lower(self.b, node))
        if not isinstance(value.type, Scalar) or value.type.kind not in ("int", "float"):
            raise Unknown
        self.scalars[id(node)] = value
        self.keys.append(self.bits(value))


def _written(node: Any) -> str:
    """A name or a member as it is written; nothing else does for what a nest leaves alone."""
    if isinstance(node, tree.Name) and node.owner is None and node.arguments is None:
        return node.name
    if isinstance(node, tree.Member) and isinstance(node.base, tree.Name) and not node.owner:
        return f"{_written(node.base)}{'->' if node.arrow else '.'}{node.name}"
    if isinstance(node, tree.Number):
        return str(node.value)
    raise Unknown


def _parts(b: Builder, indices: list[Any], type_: Type) -> tuple[list[tuple[Any, int, int]], Type]:
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


def _same(one: Any, two: Any) -> bool:
    """The same variable or element, as written."""
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
    """What one iteration does, and what holds the sum."""
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
    sums.inner = {item.name for declaration in body[:-1] for item in declaration.items}
    if isinstance(last.target, tree.Name) and last.target.name in sums.inner | set(sums.counters):
        raise Unknown
    for item in (v for declaration in body[:-1] for v in declaration.items):
        type_ = b.program.resolve(item.type, b.env)
        if not isinstance(type_, Scalar) or item.init is None or isinstance(item.init, tree.Braces):
            raise Unknown
        sums.gather(item.init, total, {name for name, _, _ in own})
        own.append((item.name, type_, item.init))
    sums.gather(result, total, {name for name, _, _ in own})
    return Term(own, result, total), last.target


@dataclass
class Holder:
    """What holds the sum: where it is, its value before the loop, and an element's address."""

    place: Place
    first: Value
    address: str


def read_holder(sums: Sums, target: Any, column: str) -> Holder:
    b = sums.b
    if isinstance(target, tree.Name):
        local = b.find(target.name)
        if local is None or not local.register or local.reference or target.name in b.escaping:
            raise Unknown
        place, address = local_place(b, local, target.name), ""
        if local.flag:
            sums.subscripts.require(b.make(f"load i1, ptr {local.flag}"))
    elif isinstance(target, tree.Index):
        made = sums.access(target)
        sums.keys.pop()  # where it stands is asked each time
        if sums.nest.term.name in made.counters:
            raise Unknown
        address = element_address(sums, made, {sums.nest.column.name: column})
        place = Place(made.type, b.make(f"inttoptr i64 {address} to ptr"), TRUSTED)
    else:
        raise Unknown
    type_ = place.type
    if not isinstance(type_, Scalar) or type_.kind not in ("int", "float") or type_.size not in (4, 8):
        raise Unknown
    there = place.address
    if address:
        there = b.make(f"inttoptr i64 {holds_value(b, address, type_.size, sums.subscripts)} to ptr")
    return Holder(place, Value(type_, b.make(f"load {type_.llvm}, ptr {there}, align 1{OK}")), address)


def element_address(sums: Sums, made: Access, at: dict[str, str]) -> str:
    """Of an element, as i64, its subscripts within their limits."""
    b = sums.b
    address = made.base
    for index, limit, step in made.parts:
        text, _ = sums.subscripts.value(index, at)
        if limit:
            sums.subscripts.require(b.make(f"icmp ult i64 {text}, {limit}"))
        else:  # no product with the size of an element may be past the last address, and come back
            near = b.make(f"add i64 {text}, {FAR // (step * made.type.size)}")
            sums.subscripts.require(b.make(f"icmp ult i64 {near}, {2 * (FAR // (step * made.type.size))}"))
        address = b.make(f"add i64 {address}, {b.make(f'mul i64 {text}, {step * made.type.size}')}")
    return address


def byte_step(sums: Sums, made: Access, counter: str, at: dict[str, str]) -> str:
    """By how many bytes an element moves with a counter."""
    b = sums.b
    out = "0"
    for index, _, step in made.parts:
        by = sums.subscripts.step(index, counter, at)
        out = b.make(f"add i64 {out}, {b.make(f'mul i64 {by}, {step * made.type.size}')}")
    return out


def byte_range(sums: Sums, made: Access, box: dict[str, tuple[str, str]]) -> tuple[str, str]:
    """The addresses from which to which the block reads this array: its least and greatest stand at corners."""
    b = sums.b
    low = high = ""
    for corner in corners({name: box[name] for name in sums.counters if name in made.counters}):
        address = element_address(sums, made, corner)
        if not low:
            low = high = address
            continue
        low = b.make(f"select i1 {b.make(f'icmp ult i64 {address}, {low}')}, i64 {address}, i64 {low}")
        high = b.make(f"select i1 {b.make(f'icmp ugt i64 {address}, {high}')}, i64 {address}, i64 {high}")
    return low, b.make(f"add i64 {high}, {made.type.size}")
