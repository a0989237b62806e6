"""What the variables of the host are: sizes, arrays by their bytes, dim3, and what is computed of them.

Sizes are the names in `sizes`, or, with `fixed`, every integer of the host that is a number of two or more there, or
that the host reads from elsewhere; those in `fixed` stay what they are."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Scalar, Type
from tilewise.emulator.prove.expressions import Expressions
from tilewise.emulator.prove.symbols import limits_of
from tilewise.emulator.prove.terms import ONE, TRUE, ZERO, All, Cond, Poly, at_most, both, within
from tilewise.emulator.prove.values import (
    Fields,
    Int,
    Nothing,
    NotModelled,
    Obligation,
    Pointer,
    Real,
    Ref,
    Region,
    Truth,
    Value,
)
from tilewise.emulator.sema.bodies import body_of
from tilewise.emulator.sema.symbol_table import Environment

DIM3 = ("dim3", "uint3", "make_uint3")
EXACT = {4: 1 << 22, 8: 1 << 51}  # numbers whose quotients a floating type rounds to the same whole number
LITERAL = (tree.Number, tree.Binary, tree.Unary, tree.Cast, tree.TypeName, tree.TypeFixed)
Three = tuple[Poly, Poly, Poly]


@dataclass
class HostValues(Expressions):
    sizes: dict[str, Poly] = field(default_factory=dict)
    structs: dict[str, Fields] = field(default_factory=dict)  # matrices of the host by name: rows and columns
    fixed: set[str] | None = None
    macros: dict[str, int] = field(default_factory=dict)  # those that are one number
    named: dict[str, int | None] = field(default_factory=dict)  # symbols made here: their number in the file
    constants: dict[str, int] = field(default_factory=dict)  # numbers of variables that stay what they are
    literals: dict[int, int] = field(default_factory=dict)  # by slot: the number that a variable begins with
    read: set[int] = field(default_factory=set)  # slots that were read
    guards: list[tuple[int, Cond]] = field(default_factory=list)  # checks that leave the program, by line
    loose: set[str] = field(default_factory=set)  # variables that may change where their name does not stand
    owners: dict[str, int] = field(default_factory=dict)  # whose slot a symbol is
    allocated: dict[Region, int] = field(default_factory=dict)  # by line
    unknown: dict[str, Region] = field(default_factory=dict)  # arrays that come from outside, by name
    looping: bool = False
    single: bool = False  # the grid is computed in float

    @abstractmethod
    def attempt(self, node: tree.Node) -> Value:
        """Its value; Nothing where it is not known, and then what it may change is not known either."""

    def array(self, name: str, type_: Type = types.FLOAT) -> Ref:
        """The start of an array of the host that nothing says the length of."""
        return Ref(self.unknown.setdefault(name, Region(name, "global", 1, None)), ZERO, type_)

    def _name(self, written: tree.Node, name: str, value: Value, leaf: bool = False) -> None:
        """A variable or parameter of the host function, as its type holds it."""
        type_: Type = types.INT
        if name in self.structs:
            self.declare(name, type_, self.structs[name])
            return
        try:
            resolved = self.resolve(written)
            if not isinstance(value, Int | Real | Truth) or isinstance(resolved, Scalar):
                type_ = resolved
            else:
                value = Nothing()
        except NotModelled:
            value = Nothing()
        self.declare(name, type_, Nothing())
        self._set(name, value, written, leaf)

    def _set(self, name: str, value: Value, node: tree.Node, leaf: bool = False) -> None:
        """A size of the claim is what it is at the launch: what was made of an earlier value is not known then."""
        slot = self.slot(name)
        if slot is None:
            return
        if name in self.loose and name not in self.sizes:
            self.state.variables[slot] = Nothing()
            return
        if name in self.sizes:
            if self.state.variables[slot] != Nothing():
                self._stale(self.sizes[name].symbols)
            value = Int(self.sizes[name], types.LONG)
        elif self.fixed is not None and isinstance(type_ := self.typed[slot], Scalar) and type_.integral:
            value = self._symbol(name, slot, value, type_, leaf)
        try:
            self.state.variables[slot] = self.converted(value, self.typed[slot], node) if value != Nothing() else value
        except NotModelled:
            self.state.variables[slot] = Nothing()

    def _symbol(self, name: str, slot: int, value: Value, type_: Scalar, leaf: bool) -> Value:
        """A size, where the host reads the value from elsewhere or the file has a number for it."""
        assert self.fixed is not None
        known = value.poly.constant if isinstance(value, Int) and leaf else None
        unknown = value == Nothing()
        if known is not None:
            self.literals[slot] = known
        if unknown and slot not in self.read and not self.looping:  # nothing was made of the number that it had
            known = self.literals.get(slot)
        if known is not None and known > 1 and name in self.fixed:
            self.constants[name] = known
            return Int(Poly.of(known), type_)
        if type_.kind == "bool" or not (unknown or (known is not None and known > 1 and name not in self.fixed)):
            return value
        if unknown and self.looping:
            return Int(self.any_value(name, type_), type_)
        self._stale({n for n, owner in self.owners.items() if owner == slot})
        return Int(self._size(name, known, type_, slot), type_)

    def _size(self, name: str, known: int | None, type_: Scalar, slot: int = 0) -> Poly:
        while self.owners.get(name, slot) != slot:
            name += "'"
        self.owners[name] = slot
        self.named[name] = known
        self.symbols.launch.add(name)
        self.symbols.facts[name] = [at_most(Poly.of(name), Poly.of(limits_of(type_)[1]))]
        return Poly.of(name)

    def any_value(self, name: str, type_: Scalar) -> Poly:
        symbol = self.symbols.fresh(name, launch=True)
        low, high = limits_of(type_)
        self.symbols.fact(symbol, within(Poly.of(low), symbol, Poly.of(high + 1)))
        return symbol

    def _stale(self, sizes: set[str]) -> None:
        regions: dict[int, Region] = {}
        parts = self.state.path.parts if isinstance(self.state.path, All) else (self.state.path,)
        still = [p for p in parts if not self.symbols.behind_all(p) & sizes]
        self.state.path = both(*still)
        self.guards = [(line, c) for line, c in self.guards if c in still]
        for slot, value in self.state.variables.items():
            self.state.variables[slot] = self._without(value, sizes, regions)

    def _without(self, value: Value, sizes: set[str], regions: dict[int, Region]) -> Value:
        """The value, where it was not made of an earlier value of these sizes."""
        if isinstance(value, Fields):
            return Fields(tuple((name, self._without(part, sizes, regions)) for name, part in value.parts))
        if isinstance(value, Pointer):
            region = value.place.region
            if region.length is not None and self.symbols.behind(region.length) & sizes:
                fresh = regions.setdefault(id(region), Region(region.name, "global", 1, None))
                self.allocated[fresh] = self.allocated.get(region, 0)
                return self._without(Pointer(Ref(fresh, value.place.offset, value.place.type)), sizes, regions)
            return Nothing() if self.symbols.behind(value.place.offset) & sizes else value
        poly = value.poly if isinstance(value, Int) else value.top if isinstance(value, Real) else None
        return Nothing() if poly is not None and self.symbols.behind(poly) & sizes else value

    def _fields(self, given: list[tree.Node]) -> Value:
        try:
            found = self._three(given[0]) if len(given) == 1 else tuple(self._number(g) for g in given)
        except NotModelled:
            return Nothing()
        three = (*found, ONE, ONE, ONE)[:3]
        return Fields(tuple((axis, Int(size, types.UINT)) for axis, size in zip("xyz", three, strict=True)))

    def _member(self, target: tree.Member, value: Value) -> bool:
        name = target.base.name if isinstance(target.base, tree.Name) else ""
        slot = self.slot(name)
        whole = self.state.variables[slot] if slot is not None else None
        if slot is None or not isinstance(whole, Fields) or not isinstance(value, Int | Pointer | Nothing):
            return False
        parts = {**dict(whole.parts), target.name: value}
        self.state.variables[slot] = Fields(tuple(parts.items()))
        return True

    def _number(self, node: tree.Node) -> Poly:
        value = self.rvalue(node)
        if isinstance(value, Real):
            value = self.converted(value, types.INT, node)
        return self.whole(value, node).poly

    def _three(self, node: tree.Node) -> Three:
        inner = (
            node.arguments
            if isinstance(node, tree.Construct | tree.Call)
            else node.items
            if isinstance(node, tree.Braces)
            else None
        )
        name = node.type.name if isinstance(node, tree.Construct) and isinstance(node.type, tree.TypeName) else ""
        if isinstance(node, tree.Call) and isinstance(node.function, tree.Name):
            name = node.function.name
        if inner is not None and (isinstance(node, tree.Braces) or name in DIM3):
            if len(inner) == 1 and isinstance(inner[0], tree.Braces):
                return self._three(inner[0])
            x, y, z = [*(self._number(part) for part in inner), ONE, ONE, ONE][:3]
            return x, y, z
        value = self.rvalue(node)
        if isinstance(value, Fields):
            parts = [part.poly for _, part in value.parts if isinstance(part, Int)]
            if len(parts) != 3:
                raise NotModelled("blocks or threads that the host computes elsewhere", node.line)
            return parts[0], parts[1], parts[2]
        return self._number(node), ONE, ONE

    def store(self, target: tree.Node, value: Value, node: tree.Node) -> Value:
        slot = self.slot(target.name) if isinstance(target, tree.Name) else None
        if slot is None or not isinstance(target, tree.Name):
            return super().store(target, value, node)
        self._set(target.name, value, node)
        return self.state.variables[slot]

    def step(self, node: tree.Step) -> Value:
        if isinstance(node.operand, tree.Name) and node.operand.name in self.sizes:
            raise NotModelled(f"{node.operand.name} is stepped", node.line)
        return super().step(node)

    def converted(self, value: Value, type_: Type, node: tree.Node) -> Value:
        self.single = self.single or type_ == types.FLOAT
        if isinstance(type_, Scalar) and type_.floating:
            self._exact(value, type_.size, node)
        return super().converted(value, type_, node)

    def _exact(self, value: Value, bytes_: int, node: tree.Node) -> None:
        """A number that a floating type holds."""
        number = value.poly if isinstance(value, Int) else value.top if isinstance(value, Real) else None
        most = Poly.of(EXACT.get(bytes_, EXACT[4]))
        held = within(-most, number, most + 1) if number is not None else TRUE
        if held != TRUE:
            self.events.ranges.append(Obligation(self.state.path, held, node.line, "a floating number", id(node)))

    def binary(self, op: str, left: Value, right: Value, node: tree.Node) -> Value:
        if isinstance(left, Real) or isinstance(right, Real):
            for value in (left, right):
                self._exact(value, 4 if self.single else 8, node)
        return super().binary(op, left, right, node)

    def name(self, node: tree.Name) -> Value:
        if (slot := self.slot(node.name)) is not None:
            self.read.add(slot)
        if self.slot(node.name) is None and node.name in self.sizes:
            return Int(self.sizes[node.name], types.INT)
        if self.slot(node.name) is None:
            item = self.table.entities.variables.get(node.name)
            if item is not None and item.init is not None and node.name not in (self.fixed or ()):
                if not isinstance(item.type, tree.TypeConst):
                    return Nothing()
                if self.fixed is not None:
                    return self._of_file_scope(node, item)
        return super().name(node)

    def _of_file_scope(self, node: tree.Name, item: tree.Variable) -> Value:
        type_ = self.resolve(item.type)
        value = self.attempt(item.init) if item.init is not None else Nothing()
        known = value.poly.constant if isinstance(value, Int) and literal(item.init) else None
        if isinstance(type_, Scalar) and type_.integral and known is not None and known > 1:
            return Int(self._size(node.name, known, type_), type_)
        return self.converted(value, type_, node) if value != Nothing() else super().name(node)

    def value(self, node: Any) -> Value:
        if isinstance(node, tree.Name):
            return self.name(node)
        origin = node.origin if isinstance(node, tree.Number) else ""
        if self.macros.get(origin, getattr(node, "value", 0)) != getattr(node, "value", 0):
            return Int(Poly.of(int(node.value)), node.type)  # it was defined twice
        if origin in self.sizes:
            return Int(self.sizes[origin], types.INT)
        if self.fixed is not None and self.macros.get(origin, 0) > 1 and origin not in self.fixed:
            return Int(self._size(origin, self.macros[origin], node.type), node.type)
        if isinstance(node, tree.Number) and node.type is types.FLOAT:
            self.single = True
        if isinstance(node, tree.Call) and called(node) in ("ceil", "ceilf", "std::ceil"):
            return self._ceil(node)
        return super().value(node)

    def _ceil(self, node: tree.Call) -> Value:
        value = self.rvalue(node.arguments[0])
        self.single = self.single or called(node) == "ceilf"
        self._exact(value, 4 if self.single else 8, node)
        if isinstance(value, Int):
            return Real(value.poly)
        if isinstance(value, Real) and value.top is not None:
            up = self.symbols.divided(value.top + (value.bottom - 1), value.bottom)[0]
            if all(c >= 0 for c in value.top.terms.values()):
                return Real(up)
            return Real(
                self.symbols.chosen(at_most(ZERO, value.top), up, self.symbols.divided(value.top, value.bottom)[0])
            )
        raise NotModelled("ceil of a value that is not known", node.line)

    def call(self, function: tree.Function, node: tree.Call) -> Value:
        """Functions of one return: (a + b - 1) / b by another name."""
        env = Environment(scope=function.scope)
        body = body_of(self.table, function, env, lenient=True).body
        if len(body) != 1 or not isinstance(body[0], tree.Return) or body[0].value is None or function.template:
            raise NotModelled(f"{function.short} is more than one return", node.line)
        given = [self.rvalue(a) for a in node.arguments]
        outer, self.scopes = self.scopes, [self.scopes[0], {}]
        for parameter, value in zip(function.parameters, given, strict=True):
            if isinstance(parameter.type, tree.TypeReference) and not isinstance(parameter.type.to, tree.TypeConst):
                raise NotModelled(f"{function.short} takes a reference", node.line)
            type_ = types.bare(self.table.resolve(parameter.type, env))
            self.declare(parameter.name, type_, self.converted(value, type_, node))
        try:
            return self.converted(self.rvalue(body[0].value), self.table.resolve(function.result, env), node)
        finally:
            self.scopes = outer


def literal(node: tree.Node | None) -> bool:
    """A number, or an expression of numbers, that no macro stands for."""
    parts = list(tree.walk(node)) if node is not None else []
    return bool(parts) and all(isinstance(p, LITERAL) and not getattr(p, "origin", "") for p in parts)


def called(node: tree.Node) -> str:
    return node.function.name if isinstance(node, tree.Call) and isinstance(node.function, tree.Name) else ""
