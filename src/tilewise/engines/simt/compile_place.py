"""From syntax to places: names, subscripts, members and dereferences; and their loads, stores and addresses."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from tilewise.engines.simt import ctype, places, touch
from tilewise.engines.simt.access import Site
from tilewise.engines.simt.context import Context
from tilewise.engines.simt.ctype import Array, Pointer, Scalar, Struct, Type, leaf_count, leaf_offset
from tilewise.engines.simt.facts import LOST, E, Facts, Fn, Variable
from tilewise.engines.simt.memory import UNSET
from tilewise.engines.simt.places import Place, Subscript
from tilewise.engines.simt.source import Source
from tilewise.engines.simt.syntax import Expr, File, Index, Member, Name, Node, Unary
from tilewise.engines.simt.types_of import TypeResolver


class PlaceCompiler(TypeResolver):
    def __init__(self, source: Source, file: File, facts: Facts) -> None:
        super().__init__(source, file)
        self.facts = facts
        self.scopes: list[dict[str, Variable]] = [{}]
        self.slots = 0
        self.sites = 0
        self.site_list: list[Site] = []
        self.path: tuple[Any, ...] = ()
        self.in_index = 0
        self.shared: list[tuple[str, Type, tuple[int, ...], bool]] = []  # name, type, dims, extern
        self.symbols: list[Any] = []  # names, or fixed values
        self.assigned: dict[Any, int] = {}

    # -- numbering

    def new_slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def new_memo(self) -> int:
        self.sites += 1
        return self.sites - 1

    def new_site(self, node: Node) -> Site:
        site = Site(self.new_memo(), node.span, self.text(node))
        self.site_list.append(site)
        return site

    def text(self, node: Node) -> str:
        span = node.span
        line = self.source.line(span.line)
        return line[span.column - 1 : span.column - 1 + span.length]

    def symbol(self, name: Any) -> int:
        if name not in self.symbols:
            self.symbols.append(name)
        return self.symbols.index(name)

    def find(self, name: str) -> Variable | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    @abstractmethod
    def expr(self, node: Expr) -> E:
        """Filled in further up the chain."""

    @abstractmethod
    def converted(self, e: E, type_: Type, node: Node) -> E:
        """Filled in further up the chain."""

    @abstractmethod
    def global_variable(self, name: str, node: Node) -> Variable | None:
        """Filled in further up the chain."""

    # -- places

    def place(self, node: Expr) -> Place | None:
        """The place an expression names; None where it is a mere value."""
        if isinstance(node, Name):
            variable = self.find(node.name) or self.global_variable(node.name, node)
            if variable is None or variable.storage == "constant":
                return None
            return self.variable_place(variable, node)
        if isinstance(node, Index):
            return self.index_place(node)
        if isinstance(node, Member):
            return self.member_place(node)
        if isinstance(node, Unary) and node.op == "*":
            pointer = self.decayed(self.expr(node.operand))
            return self.through(pointer, node)
        return None

    def variable_place(self, variable: Variable, node: Node) -> Place:
        site = self.new_site(node)
        if variable.storage == "reference":
            slot = variable.slot
            pointer = E(Pointer(variable.type), lambda c: c.f[slot], pure=True)
            return Place("pointer", variable.type, site, variable, pointer)
        return Place(variable.storage, variable.type, site, variable)

    def through(self, pointer: E, node: Node, subscript: Subscript | None = None) -> Place:
        if not isinstance(pointer.type, Pointer):
            raise self.refuse(f"{self.text(node)}: this is {pointer.type}, not a pointer", node)
        if isinstance(pointer.type.to, ctype.Void):
            raise self.refuse("a void pointer cannot be followed", node)
        if not leaf_count(pointer.type.to):
            raise self.refuse(f"{pointer.type.to} holds nothing", node)
        return Place(
            "pointer",
            pointer.type.to,
            self.new_site(node),
            None,
            pointer,
            0,
            [subscript] if subscript else [],
        )

    def subscript(self, node: Expr) -> E:
        self.in_index += 1
        try:
            index = self.expr(node)
        finally:
            self.in_index -= 1
        if not isinstance(index.type, Scalar) or index.type.floating:
            raise self.refuse(f"a subscript must be an integer, this is {index.type}", node)
        return index

    def index_place(self, node: Index) -> Place:
        base = self.place(node.base)
        if base is not None and isinstance(base.type, Array):
            inner = base.type.of
            index = self.subscript(node.index)
            length = base.type.length if not (base.variable and base.variable.dims == (0,)) else None
            made = base.inner(inner, 0, Subscript(index, leaf_count(inner), length))
            made.site = self.new_site(node)
            return made
        pointer = self.load(base) if base is not None else self.expr(node.base)
        pointer = self.decayed(pointer)
        if not isinstance(pointer.type, Pointer):
            raise self.refuse(f"{self.text(node.base)} is {pointer.type}; it has no elements", node.base)
        index = self.subscript(node.index)
        to = pointer.type.to
        return self.through(pointer, node, Subscript(index, leaf_count(to), None))

    def member_place(self, node: Member) -> Place | None:
        if node.arrow:
            base: Place | None = self.through(self.decayed(self.expr(node.base)), node)
        else:
            base = self.place(node.base)
        if base is None:
            return None
        struct = base.type
        if not isinstance(struct, Struct):
            raise self.refuse(f"{self.text(node.base)} is {struct}; it has no members", node)
        found = struct.field(node.name)
        if found is None:
            raise self.refuse(f"{struct} has no member {node.name}", node)
        made = base.inner(found.type, leaf_offset(struct, node.name))
        made.site = self.new_site(node)
        return made

    def decayed(self, e: E) -> E:
        return e

    # -- loads

    def load(self, place: Place) -> E:
        e = self.load_value(place)
        if isinstance(e.type, Pointer) and place.variable is not None and id(e) not in self.pointer_roots:
            self.pointer_roots[id(e)] = frozenset({place.variable.key})
            self.kept.append(e)
        return e

    def load_value(self, place: Place) -> E:
        type_ = place.type
        if isinstance(type_, Array):
            return self.address(place, Pointer(type_.of))
        if place.kind == "register":
            return self.load_register(place)
        locate, dtypes = self.locator(place), places.dtypes_of(type_)
        site = place.site
        if place.kind == "cells":

            def from_cells(c: Context) -> Any:
                return places.cells_load(c, locate(c), type_)

            e = E(type_, from_cells)
            variable = place.variable
            assert variable is not None
            if not place.subscripts:
                self.known_members(place, variable, e)
            if variable.key in self.facts.fed:
                e.fed = True
            return e
        if place.kind == "shared":

            def from_shared(c: Context) -> Any:
                buffer, local, flat, ok = locate(c)
                own = places.local_index(local) if c.recorder is not None else None
                return places.pack(type_, touch.read_shared(c, site, buffer, own, flat, ok, dtypes))

            return E(type_, from_shared, pure=False, shared=True)

        def from_pointer(c: Context) -> Any:
            return places.pointer_load(c, site, locate(c), type_, dtypes)

        return E(type_, from_pointer, pure=False, loads=True)

    def known_members(self, place: Place, variable: Variable, e: E) -> None:
        found: dict[int, int] = {}
        for leaf in range(leaf_count(place.type)):
            symbol = variable.members.get(str(place.offset + leaf))
            symbol = self.facts.members.get((variable.key, place.offset + leaf), symbol)
            if symbol is not None and symbol != LOST:
                found[leaf] = symbol
        if isinstance(place.type, Scalar):
            e.bare = found.get(0)
        else:
            e.members = found

    def load_register(self, place: Place) -> E:
        variable = place.variable
        assert variable is not None
        slot, key, name = variable.slot, variable.key, variable.name
        if self.in_index:
            self.facts.add(self.facts.index, key)
        type_, span = place.type, place.site.span

        def fn(c: Context) -> Any:
            value = c.f[slot]
            return value if value is not UNSET else unset(c, slot, type_, name, span)

        e = E(type_, fn, bare=variable.bare, fed=key in self.facts.fed)
        symbol = self.facts.carry.get(key)
        if symbol is not None and variable.row_slot >= 0:
            row_slot = variable.row_slot
            e.symbol, e.soft = symbol, key in self.facts.soft
            e.row = lambda c: c.f[row_slot] if c.f[row_slot] is not UNSET else np.int32(0)
            if symbol == LOST:
                e.row = None
        return e

    def note_usage(self, pointer: E, index: E) -> None:
        """Which leading dimension walks which pointer: evidence of what a size means."""
        symbol = index.symbol if index.symbol is not None else index.bare
        if symbol is not None and symbol >= 0:
            for key in self.pointer_roots.get(id(pointer), ()):
                self.usage.append((key, symbol))

    usage: list[tuple[Any, int]]

    def locator(self, place: Place) -> Fn:
        if place.kind == "pointer" and place.pointer is not None and place.subscripts:
            self.note_usage(place.pointer, place.subscripts[0].index)
        if place.kind == "cells":
            return places.locate_cells(place)
        if place.kind == "shared":
            return places.locate_shared(place, self.new_memo())
        constant = None
        if len(place.subscripts) >= 2 and place.subscripts[1].length is not None:
            constant = self.symbol(place.subscripts[0].stride)
        return places.locate_pointer(place, self.new_memo(), constant)

    # -- stores

    def note_store(self, place: Place) -> None:
        """Remember which pointers are stored through."""
        if place.kind == "pointer" and place.pointer is not None:
            key = self.pointer_roots.get(id(place.pointer))
            if key is not None:
                for k in key:
                    self.facts.add(self.facts.stored, k)
            else:
                self.facts.add(self.facts.stored, "*")

    pointer_roots: dict[int, frozenset[Any]]

    def store_at(self, place: Place, fed: bool = False) -> Any:
        """A function (c, located, value) that stores; the value already has the place's type."""
        type_, site = place.type, place.site
        if place.kind == "cells":
            return lambda c, located, value: places.cells_store(c, located, type_, value)
        if place.kind == "shared":

            def to_shared(c: Context, located: Any, value: Any) -> None:
                buffer, local, flat, ok = located
                own = places.local_index(local) if c.recorder is not None else None
                touch.write_shared(c, site, buffer, own, flat, ok, places.unpack(type_, value), fed)

            return to_shared
        self.note_store(place)
        return lambda c, located, value: places.pointer_store(c, site, located, type_, value)

    def load_at(self, place: Place) -> Any:
        type_, site, dtypes = place.type, place.site, places.dtypes_of(place.type)
        if place.kind == "cells":
            return lambda c, located: places.cells_load(c, located, type_)
        if place.kind == "shared":

            def from_shared(c: Context, located: Any) -> Any:
                buffer, local, flat, ok = located
                own = places.local_index(local) if c.recorder is not None else None
                return places.pack(type_, touch.read_shared(c, site, buffer, own, flat, ok, dtypes))

            return from_shared
        return lambda c, located: places.pointer_load(c, site, located, type_, dtypes)

    # -- addresses

    def address(self, place: Place, type_: Pointer) -> E:
        if place.kind == "register":
            assert place.variable is not None
            self.facts.add(self.facts.boxed, place.variable.key)
            return E(type_, lambda c: None)  # compiled again with the variable in a cell
        locate, kind = self.locator_of_address(place), place.kind
        e = E(type_, lambda c: places.pointer_to(locate(c), kind))
        if place.pointer is not None and id(place.pointer) in self.pointer_roots:
            self.pointer_roots[id(e)] = self.pointer_roots[id(place.pointer)]
            self.kept.append(e)
        if kind != "pointer":
            self.pointer_roots[id(e)] = frozenset()
            self.kept.append(e)
        return e

    kept: list[Any]  # expressions whose id is used as a key

    def locator_of_address(self, place: Place) -> Fn:
        """Like `locator`; an address one past the end is no fault."""
        if place.kind == "pointer" and isinstance(place.type, Array):
            place = place.inner(place.type)
        if place.kind == "shared":
            subs = [Subscript(s.index, s.stride, 1 << 40) for s in place.subscripts]
            place = Place("shared", place.type, place.site, place.variable, None, place.offset, subs)
        return self.locator(place)


def unset(c: Context, slot: int, type_: Type, name: str, span: Any) -> Any:
    """A register that nobody gave a value: report it and go on with poison."""
    from tilewise.engines.simt.arithmetic import poison
    from tilewise.engines.simt.findings import Kind
    from tilewise.engines.simt.memory import Pointer as At

    if not isinstance(type_, Scalar):
        return At(None, np.int64(0))
    if c.checks:
        c.collector.add(c, Kind.UNINITIALISED_READ, span, c.active_lanes(), array=name, access="register")
    value = poison(type_.dtype)
    c.f[slot] = value
    return value
