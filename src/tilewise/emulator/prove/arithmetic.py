"""Arithmetic, conversions and joined branches of one generic thread: an index is a polynomial of sizes and counters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Scalar, Type
from tilewise.emulator.prove.symbols import Symbols, limits_of
from tilewise.emulator.prove.terms import (
    FALSE,
    ONE,
    TRUE,
    ZERO,
    Cond,
    Poly,
    at_most,
    below,
    both,
    either,
    negate,
    same,
    within,
)
from tilewise.emulator.prove.values import (
    Access,
    Events,
    Fields,
    Int,
    Nothing,
    NotModelled,
    Obligation,
    Passed,
    Pointer,
    Real,
    Ref,
    State,
    Truth,
    Value,
)
from tilewise.emulator.sema.symbol_table import Environment, SymbolTable, Unknown
from tilewise.errors import KernelError

COMPARE: dict[str, Callable[[Poly, Poly], Cond]] = {
    "<": below, "<=": at_most, ">": lambda a, b: below(b, a), ">=": lambda a, b: at_most(b, a), "==": same,
    "!=": lambda a, b: negate(same(a, b)),
}  # fmt: skip


@dataclass
class Geometry:
    """The launch: blockDim and gridDim, which may depend on the sizes."""

    block: tuple[Poly, Poly, Poly]
    grid: tuple[Poly, Poly, Poly]


@dataclass
class Arithmetic(ABC):
    table: SymbolTable
    env: Environment
    symbols: Symbols
    geometry: Geometry | None  # None: on the host
    wrapping: set[int] = field(default_factory=set)  # expressions whose arithmetic may leave its type
    events: Events = field(default_factory=Events)
    state: State = field(default_factory=State)
    scopes: list[dict[str, int]] = field(default_factory=lambda: [{}])
    typed: dict[int, Type] = field(default_factory=dict)
    files: dict[int, Ref] = field(default_factory=dict)  # arrays of the file
    slots: int = 0
    assumes: bool = False  # a condition of the kernel's own is used: assert, __builtin_assume

    # -- variables

    def declare(self, name: str, type_: Type, value: Value) -> int:
        self.slots += 1
        self.scopes[-1][name] = self.slots
        self.typed[self.slots] = type_
        self.state.variables[self.slots] = value
        return self.slots

    def slot(self, name: str) -> int | None:
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def resolve(self, written: tree.Node) -> Type:
        try:
            return self.table.resolve(written, self.env)
        except (KernelError, Unknown) as error:
            raise NotModelled(f"a type that is not known here: {error}", written.line) from None

    def size(self, type_: Type, unit: int, line: int) -> int:
        size = self.table.size_of(type_)
        if size % unit:
            raise NotModelled(f"{type_} does not consist of whole elements of its array", line)
        return size // unit

    # -- values

    @abstractmethod
    def value(self, node: tree.Node) -> Value:
        """Its value, or the place where it lies."""

    def rvalue(self, node: tree.Node) -> Value:
        """Its value, loaded from memory where it lies there; an array is a pointer to its first element."""
        found = self.value(node)
        return self.loaded(found, node) if isinstance(found, Ref) else found

    def loaded(self, place: Ref, node: tree.Node) -> Value:
        if isinstance(place.type, types.Array):
            return Pointer(Ref(place.region, place.offset, place.type.of))
        self.access(place, "load", node)
        value = self.anything(place.type, f"a value of {place.region.name} decides", node.line)
        if isinstance(value, Int) and place.region.space == "global":
            self.symbols.loaded |= value.poly.symbols
        return value

    def anything(self, type_: Type, why: str, line: int) -> Value:
        if isinstance(type_, Scalar):
            return Int(self.symbols.unknown(type_, f"{why}, line {line}"), type_) if type_.integral else Real()
        if isinstance(type_, types.Pointer | types.Reference):
            raise NotModelled("a pointer that lies in memory", line)
        return Nothing()

    def number(self, node: tree.Node) -> Int:
        """An integer, promoted."""
        return self.whole(self.rvalue(node), node)

    def whole(self, value: Value, node: tree.Node) -> Int:
        if isinstance(value, Int):
            return value
        if isinstance(value, Truth):
            return Int(self.symbols.chosen(value.cond, ONE, ZERO), types.INT)
        raise NotModelled("a value that is no integer stands where one is needed", node.line)

    def condition(self, node: tree.Node) -> Cond:
        return self.truth(self.rvalue(node), node)

    def truth(self, value: Value, node: tree.Node) -> Cond:
        if isinstance(value, Truth):
            return value.cond
        if isinstance(value, Int):
            return negate(same(value.poly, ZERO))
        return self.symbols.flag(f"data decides, line {node.line}")

    # -- memory

    def access(self, place: Ref, kind: str, node: tree.Node) -> None:
        width = self.size(place.type, place.region.unit, node.line)
        here, cells = self.state, _alignment(place.type) // place.region.unit
        if cells > 1:
            aligned = same(self.symbols.divided(place.offset, cells)[1], ZERO)
            must = Obligation(here.path, aligned, node.line, f"{place.type} lies at multiples of its size")
            self.events.dimensions.append((place.region, must))
        self.events.accesses.append(Access(place.region, kind, place.offset, width, here.path, here.last, node.line))

    def element(self, base: Value, index: Int, node: tree.Node) -> Ref:
        if isinstance(base, Ref) and isinstance(base.type, types.Array):
            inside = within(ZERO, index.poly, Poly.of(base.type.length))
            if base.type.length:  # that of extern __shared__ is the launch's
                must = Obligation(self.state.path, inside, node.line, f"{base.region.name} has {base.type}")
                self.events.dimensions.append((base.region, must))
            step = self.size(base.type.of, base.region.unit, node.line)
            return Ref(base.region, base.offset + index.poly * step, base.type.of)
        if isinstance(base, Ref):
            base = self.loaded(base, node)
        if isinstance(base, Pointer):
            place = base.place
            row, columns = Poly.of(self.size(place.type, place.region.unit, node.line)), place.region.columns
            if isinstance(place.type, types.Array) and columns is not None and self.symbols.plain(columns) == row:
                row = columns
            return Ref(place.region, place.offset + index.poly * row, place.type)
        raise NotModelled("an index into what is no array", node.line)

    # -- arithmetic

    def kept(self, poly: Poly, type_: Scalar, node: tree.Node) -> Int:
        """The result of an operation, which must stay in its type: elsewhere it is any value of the type."""
        if id(node) in self.wrapping:
            return self._any(type_, f"the arithmetic of line {node.line} may overflow", node)
        low, high = limits_of(type_)
        inside = within(Poly.of(low), poly, Poly.of(high + 1))
        if inside != TRUE:
            self.events.ranges.append(Obligation(self.state.path, inside, node.line, str(type_), id(node)))
        return Int(poly, type_)

    def converted(self, value: Value, type_: Type, node: tree.Node) -> Value:
        """As a variable of the type holds it."""
        if isinstance(type_, types.Reference):
            type_ = type_.to
        if not isinstance(type_, Scalar):
            if isinstance(type_, types.Pointer) and isinstance(value, Pointer):
                return Pointer(Ref(value.place.region, value.place.offset, type_.to))
            return value
        if type_.floating:
            return Real(value.poly) if isinstance(value, Int) else value if isinstance(value, Real) else Real()
        if type_.kind == "void":
            return Nothing()
        if isinstance(value, Real):
            if value.top is not None and self.geometry is None:
                return Int(self.symbols.divided(value.top, value.bottom)[0], type_)
            return Int(self.symbols.unknown(type_, f"a floating value decides, line {node.line}"), type_)
        if type_.kind == "bool":
            return Truth(self.truth(value, node))
        number = self.whole(value, node)
        return number if number.type == type_ else self.kept(number.poly, type_, node)

    def binary(self, op: str, left: Value, right: Value, node: tree.Node) -> Value:
        if isinstance(left, Pointer) or isinstance(right, Pointer):
            return self._pointers(op, left, right, node)
        if isinstance(left, Nothing) or isinstance(right, Nothing):
            self._overloaded(op, node)
        if isinstance(left, Real | Nothing) or isinstance(right, Real | Nothing):
            if op in COMPARE:
                return Truth(self.symbols.flag(f"data decides, line {node.line}"))
            return _quotient(left, right) if op == "/" else Real()
        a, b = self.whole(left, node), self.whole(right, node)
        if op in ("<<", ">>"):
            return self._shift(op, a, b, node)
        if op in ("&", "|") and isinstance(left, Truth) and isinstance(right, Truth):
            return Truth(both(left.cond, right.cond) if op == "&" else either(left.cond, right.cond))
        type_ = types.common(types.promote(a.type), types.promote(b.type))
        a, b = self._fitting(a, type_, node), self._fitting(b, type_, node)
        if op in COMPARE:
            return Truth(COMPARE[op](a.poly, b.poly))
        if op in ("+", "-", "*"):
            poly = {"+": a.poly + b.poly, "-": a.poly - b.poly, "*": a.poly * b.poly}[op]
            return self.kept(poly, type_, node)
        return self._parts(op, a.poly, b.poly, type_, node)

    def _overloaded(self, op: str, node: tree.Node) -> None:
        """An operator of the file's own may do anything."""
        names = (f"operator{op}", f"operator{op}=")
        for name, functions in self.table.entities.functions.items():
            if name.rpartition("::")[2] in names and any(not f.library for f in functions):
                raise NotModelled(f"an own operator{op}", node.line)

    def _fitting(self, value: Int, type_: Scalar, node: tree.Node) -> Int:
        low, high = limits_of(type_)
        known = value.poly.constant
        if fits(value.type, type_) or (known is not None and low <= known <= high):
            return Int(value.poly, type_)
        return self.kept(value.poly, type_, node)

    def _parts(self, op: str, a: Poly, b: Poly, type_: Scalar, node: tree.Node) -> Int:
        """Division, remainder and bits, by constants."""
        b = self.symbols.plain(b)
        by, known = b.constant, a.constant
        if op in ("/", "%") and by is not None and by > 0:
            quotient, rest = self.symbols.divided(a, by)
            return Int(quotient if op == "/" else rest, type_)
        if op in ("/", "%") and by is None and self._divides(a, b) and id(node) not in self.wrapping:
            must = both(at_most(ZERO, a), at_most(ONE, b))
            self.events.ranges.append(Obligation(self.state.path, must, node.line, "a quotient", id(node)))
            quotient, rest = self.symbols.parted(a, b)
            return Int(quotient if op == "/" else rest, type_)
        if op == "&" and by is not None and by > 0 and by & (by + 1) == 0 and id(node) not in self.wrapping:
            self.events.ranges.append(Obligation(self.state.path, at_most(ZERO, a), node.line, "a mask", id(node)))
            return Int(self.symbols.divided(a, by + 1)[1], type_)
        if op in ("&", "|", "^") and by is not None and known is not None:
            return Int(Poly.of({"&": known & by, "|": known | by, "^": known ^ by}[op]), type_)
        return self._any(type_, f"{op} at line {node.line} is not linear", node)

    def _divides(self, a: Poly, b: Poly) -> bool:
        """By what is the same for every thread; on the host, where no sign has to be shown."""
        return b.symbols <= self.symbols.launch and (self.geometry is not None or (
            self.symbols.no_negative(a) and self.symbols.no_negative(b)))  # fmt: skip

    def _any(self, type_: Scalar, why: str, node: tree.Node) -> Int:
        symbol = self.symbols.unknown(type_, why)
        self.symbols.wrapped.setdefault(id(node), set()).update(symbol.symbols)
        return Int(symbol, type_)

    def _shift(self, op: str, a: Int, b: Int, node: tree.Node) -> Int:
        type_, by = types.promote(a.type), b.poly.constant
        if by is None or not 0 <= by < type_.size * 8 - 1 or id(node) in self.wrapping:
            return self._any(type_, f"{op} at line {node.line} is not linear", node)
        if op == "<<":
            return self.kept(a.poly * (1 << by), type_, node)
        self.events.ranges.append(Obligation(self.state.path, at_most(ZERO, a.poly), node.line, "a shift", id(node)))
        return Int(self.symbols.divided(a.poly, 1 << by)[0], type_)

    def _pointers(self, op: str, left: Value, right: Value, node: tree.Node) -> Value:
        if op in COMPARE:
            return Truth(self.symbols.flag(f"pointers are compared, line {node.line}"))
        if op == "+" and isinstance(right, Pointer):
            left, right = right, left
        if op not in ("+", "-") or not isinstance(left, Pointer) or isinstance(right, Pointer):
            raise NotModelled("arithmetic of two pointers", node.line)
        index = self.whole(right, node)
        signed = Int(index.poly if op == "+" else -index.poly, index.type)
        return Pointer(self.element(left, signed, node))

    # -- branches

    def branch(self, condition: Cond, yes: Callable[[], Value], no: Callable[[], Value], node: tree.Node) -> Value:
        """Both sides, each for the threads that take it; then what holds for either."""
        before = self.state
        first, second = before.fork(both(before.path, condition)), before.fork(both(before.path, negate(condition)))
        self.state = first
        one = yes() if first.path != FALSE else Nothing()
        first = self.state
        self.state = second
        two = no() if second.path != FALSE else Nothing()
        second = self.state
        if first.path == FALSE or second.path == FALSE:
            self.state = second if first.path == FALSE else first
            return two if first.path == FALSE else one
        self.state = self._joined(before, condition, first, second, node)
        return self.joined(condition, one, two, node)

    def _joined(self, before: State, condition: Cond, first: State, second: State, node: tree.Node) -> State:
        untouched = first.path == both(before.path, condition) and second.path == both(before.path, negate(condition))
        out = before.fork(before.path if untouched else either(first.path, second.path))
        for slot in before.variables:
            one, two = first.variables[slot], second.variables[slot]
            out.variables[slot] = one if one is two else self.joined(condition, one, two, node)
        if first.last != second.last:
            last = [Passed(both(p.when, c), p.barrier, p.counters)
                    for s, c in ((first, condition), (second, negate(condition))) for p in s.last]  # fmt: skip
            out.last = tuple(last)
        else:
            out.last = first.last
        return out

    def joined(self, condition: Cond, one: Value, two: Value, node: tree.Node) -> Value:
        if one == two:
            return one
        if isinstance(one, Truth) and isinstance(two, Truth):
            return Truth(either(both(condition, one.cond), both(negate(condition), two.cond)))
        if isinstance(one, Int | Truth) and isinstance(two, Int | Truth):
            a, b = self.whole(one, node), self.whole(two, node)
            return Int(self.symbols.chosen(condition, a.poly, b.poly), types.common(a.type, b.type))
        if isinstance(one, Pointer) and isinstance(two, Pointer) and one.place.region is two.place.region:
            offset = self.symbols.chosen(condition, one.place.offset, two.place.offset)
            return Pointer(Ref(one.place.region, offset, one.place.type))
        if isinstance(one, Pointer | Ref | Fields) or isinstance(two, Pointer | Ref | Fields):
            raise NotModelled("a pointer to one of two arrays", node.line)
        return Real() if isinstance(one, Real) or isinstance(two, Real) else Nothing()


def fits(inner: Scalar, type_: Scalar) -> bool:
    """Whether every value of the one is a value of the other."""
    (low, high), (least, most) = limits_of(type_), limits_of(inner)
    return low <= least and most <= high


def _alignment(type_: Type) -> int:
    """In bytes; vectors of two and four lie at multiples of their size."""
    of_library = isinstance(type_, types.Record) and type_.node is not None and type_.node.library
    vector = of_library and isinstance(type_, types.Record) and len(type_.fields) in (2, 4)
    return min(16, type_.size) if vector else type_.align


def _quotient(left: Value, right: Value) -> Real:
    """On the host, n / 16.0 for ceil."""
    if isinstance(left, Int):
        left = Real(left.poly)
    if isinstance(left, Real) and left.top is not None:
        by = right.poly.constant if isinstance(right, Int) else right.exact if isinstance(right, Real) else None
        if by is not None and by > 0:
            return Real(left.top, left.bottom * by)
    return Real()
