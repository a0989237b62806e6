"""Expressions. Types are known, so that conversions are chosen at compile time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tilewise.emulator.compile.operand import Operand
from tilewise.emulator.compile.operator import OperatorCompiler
from tilewise.emulator.compile.vector_ops import memoised
from tilewise.emulator.machine.arithmetic import converter
from tilewise.emulator.machine.context import Context
from tilewise.emulator.machine.leaves import dtype_of, leaf_count, leaf_offset, leaves, numeric
from tilewise.emulator.machine.memory import Pointer as At
from tilewise.emulator.machine.warp import WARP
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import BOOL, Array, Pointer, Record, Reference, Scalar, Type
from tilewise.emulator.sema import constants
from tilewise.emulator.sema.symbol_table import Unknown

BUILTIN_STRUCTS = ("threadIdx", "blockIdx", "blockDim", "gridDim")


class ExprCompiler(OperatorCompiler):
    def expr(self, node: Any) -> Operand:
        self.depth += 1
        if self.depth > 400:
            raise self.refuse("this expression is nested too deep", node)
        try:
            return self.dispatch(node)
        finally:
            self.depth -= 1

    def dispatch(self, node: Any) -> Operand:
        name = EXPRESSIONS.get(type(node))
        if name is None:
            raise self.refuse(REFUSED.get(type(node), "this is not supported in device code"), node)
        made: Operand = getattr(self, name)(node)
        return made

    def number(self, node: tree.Number) -> Operand:
        if node.type is types.NULLPTR:
            return self.null_pointer()
        e = self.constant_value(dtype_of(node.type).type(node.value), node.type)
        if node.origin and node.origin in self.dimension_names:
            e.dimension = self.symbol(node.origin)
        return e

    def construction(self, node: tree.Construct) -> Operand:
        return self.construct(self.resolve(node.type), node.items, node)

    def size(self, node: tree.SizeOf) -> Operand:
        type_ = self.resolve(node.type) if node.type is not None else self.type_of(node.operand)
        self.table.size_of(type_)
        return self.constant_value(np.uint64(type_.align if node.alignment else type_.size), types.ULONG)

    def this(self, node: tree.This) -> Operand:
        return self.unary(tree.Unary("&", tree.Name("this")))

    call: Callable[[tree.Call], Operand]
    constructed: Callable[[Record, list[Any], tree.Node], Operand]
    supply: Callable[[str, tree.Node], Operand | None]  # a constant of a missing header

    def type_of(self, node: Any | None) -> Type:
        assert node is not None
        place = self.place(node)
        return place.type if place is not None else self.expr(node).type

    def null_pointer(self) -> Operand:
        return Operand(types.VOIDP, lambda c: At(None, np.int64(0)))

    # -- names and elements

    def name(self, node: tree.Name) -> Operand:
        name = node.name
        variable = self.find(name) if node.owner is None else None
        if variable is None:
            if node.owner is None and self.own_field(name):
                place = self.place(node)
                assert place is not None
                return self.load(place)
            known = self.known_value(node)
            if known is not None:
                return known
            variable = self.global_variable(name, node)
        if variable is not None:
            if variable.storage == "closure":
                return Operand(variable.type, lambda c: None)
            if variable.storage == "constant":
                assert isinstance(variable.type, Scalar)
                e = self.constant_value(variable.const, variable.type)
                e.dimension = variable.dimension
                return e
            place = self.variable_place(variable, node)
            return self.load(place)
        if name == "warpSize":
            return self.constant_value(np.int32(WARP), types.INT)
        if name in ("nullptr", "NULL"):
            return self.null_pointer()
        if name in BUILTIN_STRUCTS:
            return self.builtin_struct(name)
        supplied = self.supply(name, node)
        if supplied is not None:
            return supplied
        raise self.refuse(f"{name} is not declared", node)

    def known_value(self, node: tree.Name) -> Operand | None:
        """A template argument, an enumerator or a static constant of a class."""
        try:
            value, type_ = constants.evaluate(self.table, node, self.env)
        except Unknown:
            return None
        if node.owner is None and node.name not in self.env.bindings and self.file_variable(node.name) is not None:
            return None  # of the file: `global_variable` checks whether it is a leading dimension
        return self.constant_value(dtype_of(type_).type(value), type_)

    def builtin_struct(self, name: str) -> Operand:
        keys = [f"{name}.{axis}" for axis in "xyz"]
        type_ = self.resolve(tree.TypeName("uint3"))
        return Operand(type_, lambda c: tuple(c.builtins[k] for k in keys))

    def element(self, node: tree.Index | tree.Member) -> Operand:
        base = node.base
        if isinstance(base, tree.Name) and base.name in BUILTIN_STRUCTS and self.find(base.name) is None:
            if not isinstance(node, tree.Member) or node.name not in ("x", "y", "z"):
                raise self.refuse(f"{base.name} has the members x, y and z", node)
            key = f"{base.name}.{node.name}"
            return Operand(types.UINT, lambda c: c.builtins[key])
        place = self.place(node)
        if place is not None:
            return self.load(place)
        if isinstance(node, tree.Index):
            made = self.operator_call("operator[]", [node.base, node.index], node)
            if made is None:
                raise self.refuse(f"{self.text(node.base)} has no elements", node)
            return made
        whole = self.expr(node.base)
        if not isinstance(whole.type, Record):
            raise self.refuse(f"{self.text(node.base)} is {whole.type}; it has no members", node)
        found = whole.type.field(node.name)
        if found is None:
            raise self.refuse(f"{whole.type} has no member {node.name}", node)
        type_ = numeric(found[0].type)
        first, count = leaf_offset(whole.type, found[1]), leaf_count(type_)
        fn, single = whole.fn, isinstance(type_, (Scalar, Pointer))
        if isinstance(type_, Array):
            raise self.refuse("an array inside a value that has no place is not supported", node)

        def pick(c: Context) -> Any:
            value = fn(c)
            return value[first] if single else value[first : first + count]

        return Operand.of(type_, pick, whole)

    # -- conversions

    def converted(self, e: Operand, type_: Type, node: tree.Node) -> Operand:
        if isinstance(type_, Reference):
            type_ = type_.to
        have = e.type
        if isinstance(type_, Scalar) and isinstance(have, Scalar):
            convert = converter(have, type_)
            if convert is None:
                return e if type_ is have else replace(e, type=type_, members={})
            if e.const is not None:
                with np.errstate(all="ignore"):
                    made = self.constant_value(convert(e.const), type_)
                made.dimension = e.dimension if not type_.floating else None
                return made
            fn = e.fn
            run = memoised(convert, fn, self.new_memo()) if not have.floating else lambda c: convert(fn(c))
            out = Operand.of(type_, run, e)
            if not type_.floating and not have.floating and type_.size >= 4:
                out.dimension, out.symbol, out.row, out.guessed = e.dimension, e.symbol, e.row, e.guessed
            return out
        if isinstance(type_, Pointer) and isinstance(have, Pointer):
            made = Operand.of(type_, e.fn, e)
            made.const = e.const
            self.copy_roots(e, made)
            self.narrow(e, made, node)
            return made
        if isinstance(type_, Pointer) and isinstance(have, Scalar) and e.const is not None and e.const == 0:
            return Operand(type_, lambda c: At(None, np.int64(0)))
        if type_ is BOOL and isinstance(have, Pointer):
            fn = e.fn
            return Operand.of(BOOL, lambda c: ~fn(c).null, e)
        if isinstance(have, Record) and (type_ is have or {str(type_), have.name} == {"dim3", "uint3"}):
            return e
        if isinstance(have, Scalar) and isinstance(type_, Record) and type_.methods.get("<new>"):
            return self.constructed(type_, [node], node)
        raise self.refuse(f"{have} cannot become {type_}", node)

    def narrow(self, e: Operand, made: Operand, node: tree.Node) -> None:
        """Record a cast to a smaller element, as (char*)a for rows of pitched memory: it may be offset and cast back,
        but not dereferenced, because a cell of the machine has no parts."""
        sizes = []
        for pointer in (e.type, made.type):
            assert isinstance(pointer, Pointer)
            first = leaves(pointer.to)[:1]
            sizes.append(first[0].size if first else 0)
        root = self.narrowed.get(id(e), sizes[0])
        if id(e) in self.narrowed and e.type == made.type:
            raise self.refuse(f"parts of larger values seen through {e.type} are not supported", node)
        if 0 < sizes[1] < root:
            self.narrowed[id(made)] = root
            self.kept.append(made)

    def cast(self, node: tree.Cast) -> Operand:
        type_ = self.resolve(node.type)
        if type_ is types.VOID:
            return self.expr(node.operand)
        if isinstance(type_, Reference):
            place = self.place(node.operand)
            if place is None:
                raise self.refuse("only a place can be cast to a reference", node)
            pointer = self.converted(self.address(place, Pointer(place.type)), Pointer(type_.to), node)
            return self.load(self.through(pointer, node))
        e = self.expr(node.operand)
        if isinstance(e.type, Pointer) and isinstance(type_, Scalar):
            raise self.refuse("a pointer cannot be seen as a number here", node)
        return self.converted(e, type_, node)

    closure: Callable[[tree.Lambda], Operand]
    file_variable: Callable[[str], tree.Variable | None]
    depth: int
    dimension_names: frozenset[str]


EXPRESSIONS: dict[type, str] = {  # node type -> method
    tree.Number: "number", tree.Name: "name", tree.Index: "element", tree.Member: "element", tree.Binary: "binary",
    tree.Unary: "unary", tree.Assign: "assign", tree.Step: "step", tree.Ternary: "ternary", tree.Cast: "cast",
    tree.Call: "call", tree.Construct: "construction", tree.SizeOf: "size", tree.This: "this", tree.Lambda: "closure",
}  # fmt: skip
REFUSED: dict[type, str] = {
    tree.Text: "a string has no use here", tree.Braces: "braces are not expected here",
    tree.Launch: "a launch from inside a kernel is not supported",
}  # fmt: skip
