"""Lvalues of expressions: names, subscripts, members, dereferences; their loads, stores and addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewise.emulator.compile import lvalue
from tilewise.emulator.compile.dataflow import DataFlow
from tilewise.emulator.compile.lvalue import Lvalue, Subscript
from tilewise.emulator.compile.operand import MIXED, Fn, Operand
from tilewise.emulator.compile.resolver import TypeResolver
from tilewise.emulator.machine import load_store
from tilewise.emulator.machine.access import Site
from tilewise.emulator.machine.arithmetic import poison
from tilewise.emulator.machine.context import Context
from tilewise.emulator.machine.findings import Kind
from tilewise.emulator.machine.leaves import dtype_of, dtypes_of, leaf_count, leaf_offset
from tilewise.emulator.machine.memory import UNSET
from tilewise.emulator.machine.memory import Pointer as At
from tilewise.emulator.machine.program import Variable
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Array, Pointer, Record, Reference, Scalar, Type
from tilewise.emulator.sema.symbol_table import SymbolTable


class PlaceCompiler(TypeResolver):
    def __init__(self, table: SymbolTable, flow: DataFlow) -> None:
        super().__init__(table)
        self.flow = flow
        self.scopes: list[dict[str, Variable]] = [{}]
        self.slots = 0
        self.memos = 0
        self.site_list: list[Site] = []
        self.path: tuple[Any, ...] = ()
        self.in_index = 0
        self.shared: list[tuple[str, Type, tuple[int, ...], bool]] = []  # name, type, dims, extern
        self.symbols: list[Any] = []  # leading dimensions: names, or constants
        self.assigned: dict[Any, int] = {}
        self.call_site: tree.Node | None = (
            None  # in a header's function: the program's call, where findings are reported
        )

    # -- numbering

    def new_slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def new_memo(self) -> int:
        self.memos += 1
        return self.memos - 1

    def new_site(self, node: tree.Node) -> Site:
        node = self.call_site or node
        site = Site(self.new_memo(), node.span, self.text(node))
        self.site_list.append(site)
        return site

    def text(self, node: tree.Node) -> str:
        span = node.span
        line = self.source.line(span.line)
        return line[span.column - 1 : span.column - 1 + span.length]

    def symbol(self, name: Any) -> int:
        if name not in self.symbols:
            self.symbols.append(name)
        return self.symbols.index(name)

    def own_field(self, name: str) -> bool:
        """Whether the class whose method is being compiled has this field."""
        this = self.find("this")
        return this is not None and isinstance(this.type, Record) and this.type.field(name) is not None

    def find(self, name: str) -> Variable | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    expr: Callable[[Any], Operand]
    converted: Callable[[Operand, Type, tree.Node], Operand]
    global_variable: Callable[[str, tree.Node], Variable | None]
    called_place: Callable[[Any], Lvalue | None]
    # -- places

    def place(self, node: Any) -> Lvalue | None:
        """The lvalue of an expression; None if it is an rvalue."""
        if isinstance(node, tree.Name):
            if node.owner is not None:
                return None
            variable = self.find(node.name)
            if variable is None and self.own_field(node.name):
                return self.member_place(tree.Member(tree.This(), node.name, True, extent=node.span))
            variable = variable or self.global_variable(node.name, node)
            if variable is None or variable.storage in ("constant", "closure"):
                return None
            return self.variable_place(variable, node)
        if isinstance(node, tree.Index):
            return self.index_place(node)
        if isinstance(node, tree.Member):
            return self.member_place(node)
        if isinstance(node, tree.Unary) and node.op == "*":
            pointer = self.expr(node.operand)
            return self.through(pointer, node) if not isinstance(pointer.type, Record) else self.called_place(node)
        return self.called_place(node) if isinstance(node, tree.Call) else None

    def variable_place(self, variable: Variable, node: tree.Node) -> Lvalue:
        site = self.new_site(node)
        if variable.storage == "reference":
            slot = variable.slot
            pointer = Operand(Pointer(variable.type), lambda c: c.registers[slot], pure=True)
            return Lvalue("pointer", variable.type, site, variable, pointer)
        return Lvalue(variable.storage, variable.type, site, variable)

    def through(self, pointer: Operand, node: tree.Node, subscript: Subscript | None = None) -> Lvalue:
        if not isinstance(pointer.type, Pointer):
            raise self.refuse(f"{self.text(node)}: this is {pointer.type}, not a pointer", node)
        if pointer.type.to is types.VOID:
            raise self.refuse("a void pointer cannot be followed", node)
        if id(pointer) in self.narrowed:
            raise self.refuse(f"parts of larger values seen through {pointer.type} are not supported", node)
        return Lvalue(
            "pointer",
            pointer.type.to,
            self.new_site(node),
            None,
            pointer,
            0,
            [subscript] if subscript else [],
        )

    def subscript(self, node: Any) -> Operand:
        self.in_index += 1
        try:
            index = self.expr(node)
        finally:
            self.in_index -= 1
        if not isinstance(index.type, Scalar) or index.type.floating:
            raise self.refuse(f"a subscript must be an integer, this is {index.type}", node)
        return index

    def index_place(self, node: tree.Index) -> Lvalue | None:
        base = self.place(node.base)
        if base is not None and isinstance(base.type, Array):
            inner = base.type.of
            index = self.subscript(node.index)
            length = base.type.length if not (base.variable and base.variable.dims == (0,)) else None
            made = base.inner(inner, 0, Subscript(index, leaf_count(inner), length))
            made.site = self.new_site(node)
            return made
        pointer = self.load(base) if base is not None else self.expr(node.base)
        if isinstance(pointer.type, Record):
            return self.called_place(node)
        if not isinstance(pointer.type, Pointer):
            raise self.refuse(f"{self.text(node.base)} is {pointer.type}; it has no elements", node.base)
        index = self.subscript(node.index)
        to = pointer.type.to
        return self.through(pointer, node, Subscript(index, leaf_count(to), None))

    def member_place(self, node: tree.Member) -> Lvalue | None:
        if node.arrow:
            base: Lvalue | None = self.through(self.expr(node.base), node)
        else:
            base = self.place(node.base)
        if base is None:
            return None
        struct = base.type
        if not isinstance(struct, Record):
            raise self.refuse(f"{self.text(node.base)} is {struct}; it has no members", node)
        found = struct.field(node.name)
        if found is None:
            raise self.refuse(f"{struct} has no member {node.name}", node)
        type_, first = found[0].type, leaf_offset(struct, found[1])
        if isinstance(type_, Reference):
            return self.through(self.load(base.inner(Pointer(type_.to), first)), node)
        made = base.inner(type_, first)
        made.site = self.new_site(node)
        return made

    # -- loads

    def load(self, place: Lvalue) -> Operand:
        e = self.load_value(place)
        if isinstance(e.type, Pointer) and place.variable is not None and id(e) not in self.pointer_roots:
            self.pointer_roots[id(e)] = frozenset({place.variable.key})
            self.kept.append(e)
        return e

    def load_value(self, place: Lvalue) -> Operand:
        type_ = place.type
        if isinstance(type_, Array):
            return self.address(place, Pointer(type_.of))
        if place.kind == "register":
            return self.load_register(place)
        locate, get = self.locator(place), self.load_at(place)
        if place.kind == "cells":
            variable = place.variable
            assert variable is not None
            e = Operand(type_, lambda c: get(c, locate(c)), pure=not variable.blank)
            if not place.subscripts:
                self.known_members(place, variable, e)
            if variable.key in self.flow.from_global:
                e.from_global = True
            return e
        shared = place.kind == "shared"
        return Operand(type_, lambda c: get(c, locate(c)), pure=False, shared=shared, loads=not shared)

    def known_members(self, place: Lvalue, variable: Variable, e: Operand) -> None:
        found: dict[int, int] = {}
        for leaf in range(leaf_count(place.type)):
            symbol = variable.members.get(str(place.offset + leaf))
            symbol = self.flow.members.get((variable.key, place.offset + leaf), symbol)
            if symbol is not None and symbol != MIXED:
                found[leaf] = symbol
        if isinstance(place.type, Scalar):
            e.dimension = found.get(0)
        else:
            e.members = found

    def load_register(self, place: Lvalue) -> Operand:
        variable = place.variable
        assert variable is not None
        slot, key, name = variable.slot, variable.key, variable.name
        if self.in_index:
            self.flow.add(self.flow.index, key)
        type_, span = place.type, place.site.span

        def fn(c: Context) -> Any:
            value = c.registers[slot]
            return value if value is not UNSET else unset(c, slot, type_, name, span)

        e = Operand(
            type_, fn, pure=not variable.blank, dimension=variable.dimension, from_global=key in self.flow.from_global
        )
        symbol = self.flow.row_symbols.get(key)
        if symbol is not None and variable.row_slot >= 0:
            row_slot = variable.row_slot
            e.symbol, e.guessed = symbol, key in self.flow.guessed
            e.row = lambda c: c.registers[row_slot] if c.registers[row_slot] is not UNSET else np.int32(0)
            if symbol == MIXED:
                e.row = None
        return e

    def note_usage(self, pointer: Operand, index: Operand) -> None:
        """Record which leading dimension steps through which pointer, for `check.roles`."""
        symbol = index.symbol if index.symbol is not None else index.dimension
        if symbol is not None and symbol >= 0:
            for key in self.pointer_roots.get(id(pointer), ()):
                self.usage.append((key, symbol))

    usage: list[tuple[Any, int]]

    def locator(self, place: Lvalue) -> Fn:
        if place.kind == "pointer" and place.pointer is not None and place.subscripts:
            self.note_usage(place.pointer, place.subscripts[0].index)
        if place.kind == "cells":
            return lvalue.locate_cells(place)
        if place.kind == "shared":
            return lvalue.locate_shared(place, self.new_memo())
        constant = None
        if len(place.subscripts) >= 2 and place.subscripts[1].length is not None:
            constant = self.symbol(place.subscripts[0].stride)
        return lvalue.locate_pointer(place, self.new_memo(), constant)

    # -- stores

    def note_store(self, place: Lvalue) -> None:
        """Record the pointers that are stored through."""
        if place.kind == "pointer" and place.pointer is not None:
            key = self.pointer_roots.get(id(place.pointer))
            if key is not None:
                for k in key:
                    self.flow.add(self.flow.stored, k)
            else:
                self.flow.add(self.flow.stored, "*")

    pointer_roots: dict[int, frozenset[Any]]

    def store_at(self, place: Lvalue, from_global: bool = False) -> Any:
        """A function (c, located, value) that stores a value of the place's type."""
        type_, site = place.type, place.site
        if place.kind == "cells":
            return lambda c, located, value: lvalue.cells_store(c, located, type_, value)
        if place.kind == "shared":

            def to_shared(c: Context, located: Any, value: Any) -> None:
                buffer, local, flat, ok = located
                own = lvalue.local_index(local) if c.recorder is not None else None
                load_store.write_at(
                    c, site, buffer, own, flat, ok, lvalue.unpack(type_, value), from_global=from_global
                )

            return to_shared
        self.note_store(place)
        return lambda c, located, value: lvalue.pointer_store(c, site, located, type_, value)

    def load_at(self, place: Lvalue) -> Any:
        type_, site, dtypes = place.type, place.site, dtypes_of(place.type)
        if place.kind == "cells":
            return lambda c, located: lvalue.cells_load(c, site, located, type_)
        if place.kind == "shared":

            def from_shared(c: Context, located: Any) -> Any:
                buffer, local, flat, ok = located
                own = lvalue.local_index(local) if c.recorder is not None else None
                return lvalue.pack(type_, load_store.read_at(c, site, buffer, own, flat, ok, dtypes))

            return from_shared
        return lambda c, located: lvalue.pointer_load(c, site, located, type_, dtypes)

    # -- addresses

    def address(self, place: Lvalue, type_: Pointer) -> Operand:
        if place.kind == "register":
            assert place.variable is not None
            self.flow.add(self.flow.address_taken, place.variable.key)
            return Operand(type_, lambda c: None)  # the next pass compiles the variable as a cell
        locate, kind = self.locator_of_address(place), place.kind
        e = Operand(type_, lambda c: lvalue.pointer_to(locate(c), kind))
        if place.pointer is not None and id(place.pointer) in self.pointer_roots:
            self.pointer_roots[id(e)] = self.pointer_roots[id(place.pointer)]
            self.kept.append(e)
        if kind != "pointer":
            self.pointer_roots[id(e)] = frozenset()
            self.kept.append(e)
        return e

    kept: list[Any]  # operands whose id is a key of pointer_roots or narrowed
    narrowed: dict[int, int]  # id of a pointer operand cast to a smaller element type -> bytes of the original element

    def locator_of_address(self, place: Lvalue) -> Fn:
        """As `locator`; an address one past the end is allowed."""
        if place.kind == "pointer" and isinstance(place.type, Array):
            place = place.inner(place.type)
        if place.kind == "shared":
            subs = [Subscript(s.index, s.stride, 1 << 40) for s in place.subscripts]
            place = Lvalue("shared", place.type, place.site, place.variable, None, place.offset, subs)
        return self.locator(place)


def unset(c: Context, slot: int, type_: Type, name: str, span: Any) -> Any:
    """Report the read of an uninitialised register; its value is poison."""
    if not isinstance(type_, Scalar):
        return At(None, np.int64(0))
    if c.checks:
        c.collector.add(c, Kind.UNINITIALISED_READ, span, c.active_lanes(), array=name, access="register")
    value = poison(dtype_of(type_))
    c.registers[slot] = value
    return value
