"""Expressions to functions of the context. Types are known here, so every conversion is decided before running."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from tilewise.emulator.compile.intrinsics import CONSTANTS
from tilewise.emulator.compile.operand import Operand
from tilewise.emulator.compile.operator import OperatorCompiler
from tilewise.emulator.compile.vector_ops import memoised
from tilewise.emulator.frontend import ctype
from tilewise.emulator.frontend.ctype import BOOL, INT, Array, Pointer, Reference, Scalar, Struct, Type
from tilewise.emulator.frontend.syntax import (
    Assign,
    Binary,
    Braces,
    Call,
    Cast,
    Construct,
    Expr,
    Index,
    Launch,
    Member,
    Name,
    Node,
    Number,
    SizeOf,
    Step,
    Ternary,
    Text,
    Unary,
)  # fmt: skip
from tilewise.emulator.machine.arithmetic import converter
from tilewise.emulator.machine.context import Context
from tilewise.emulator.machine.memory import Pointer as At
from tilewise.emulator.machine.program import Variable

BUILTIN_STRUCTS = ("threadIdx", "blockIdx", "blockDim", "gridDim")


class ExprCompiler(OperatorCompiler):
    def expr(self, node: Expr) -> Operand:
        self.depth += 1
        if self.depth > 400:
            raise self.refuse("this expression is nested too deep", node)
        try:
            return self.dispatch(node)
        finally:
            self.depth -= 1

    def dispatch(self, node: Expr) -> Operand:
        if isinstance(node, Number):
            e = self.constant_value(node.value, node.type)
            if node.origin and node.origin in self.dimension_names:
                e.bare = self.symbol(node.origin)
            return e
        if isinstance(node, Name):
            return self.name(node)
        if isinstance(node, (Index, Member)):
            return self.element(node)
        if isinstance(node, Binary):
            return self.binary(node)
        if isinstance(node, Unary):
            return self.unary(node)
        if isinstance(node, Assign):
            return self.assign(node)
        if isinstance(node, Step):
            return self.step(node)
        if isinstance(node, Ternary):
            return self.ternary(node)
        if isinstance(node, Cast):
            return self.cast(node)
        if isinstance(node, Call):
            return self.call(node)
        if isinstance(node, Construct):
            return self.construct(self.resolve(node.type), node.arguments, node)
        if isinstance(node, SizeOf):
            type_ = self.resolve(node.type) if node.type is not None else self.type_of(node.operand)
            return self.constant_value(np.uint64(type_.size), ctype.ULONG)
        if isinstance(node, Text):
            raise self.refuse("a string has no use here", node)
        if isinstance(node, Braces):
            raise self.refuse("braces are not expected here", node)
        if isinstance(node, Launch):
            raise self.refuse("a launch from inside a kernel is not supported", node)
        raise self.refuse("this is not supported in device code", node)

    @abstractmethod
    def call(self, node: Call) -> Operand:
        """Filled in further up the chain of compilers."""

    @abstractmethod
    def construct(self, type_: Type, arguments: list[Expr], node: Node) -> Operand:
        """Filled in further up the chain of compilers."""

    def type_of(self, node: Expr | None) -> Type:
        assert node is not None
        place = self.place(node)
        return place.type if place is not None else self.expr(node).type

    # -- names and elements

    def name(self, node: Name) -> Operand:
        name = node.name
        variable = self.find(name)
        if variable is None:
            given = self.lookup_template(name)
            if given is not None and not isinstance(given, Type):
                if not -(2**31) <= int(given) < 2**31:
                    raise self.refuse(f"{name} = {given} does not fit an int", node)
                return self.constant_value(np.int32(given), INT)
            if name in self.file.constants:
                return self.expr(self.file.constants[name])
            variable = self.global_variable(name, node)
        if variable is not None:
            if variable.storage == "constant":
                assert isinstance(variable.type, Scalar)
                e = self.constant_value(variable.const, variable.type)
                e.bare = variable.bare
                return e
            place = self.variable_place(variable, node)
            return self.load(place)
        if name in CONSTANTS:
            type_, value = CONSTANTS[name]
            return self.constant_value(type_.dtype.type(value), type_)
        if name in ("nullptr", "NULL"):
            return Operand(Pointer(ctype.VOID), lambda c: At(None, np.int64(0)))
        if name in BUILTIN_STRUCTS:
            return self.builtin_struct(name)
        supplied = self.supply(name, node)
        if supplied is not None:
            return supplied
        raise self.refuse(f"{name} is not declared", node)

    def supply(self, name: str, node: Node) -> Operand | None:
        """A constant that comes from a header that is not there."""
        return None

    def builtin_struct(self, name: str) -> Operand:
        keys = [f"{name}.{axis}" for axis in "xyz"]
        return Operand(ctype.UINT3, lambda c: tuple(c.builtins[k] for k in keys))

    def element(self, node: Index | Member) -> Operand:
        base = node.base
        if isinstance(base, Name) and base.name in BUILTIN_STRUCTS and self.find(base.name) is None:
            if not isinstance(node, Member) or node.name not in ("x", "y", "z"):
                raise self.refuse(f"{base.name} has the members x, y and z", node)
            key = f"{base.name}.{node.name}"
            return Operand(ctype.UINT, lambda c: c.builtins[key])
        place = self.place(node)
        if place is not None:
            return self.load(place)
        assert isinstance(node, Member)
        whole = self.expr(node.base)
        if not isinstance(whole.type, Struct):
            raise self.refuse(f"{self.text(node.base)} is {whole.type}; it has no members", node)
        found = whole.type.field(node.name)
        if found is None:
            raise self.refuse(f"{whole.type} has no member {node.name}", node)
        first, count = ctype.leaf_offset(whole.type, node.name), ctype.leaf_count(found.type)
        fn, single = whole.fn, isinstance(found.type, (Scalar, Pointer))
        if isinstance(found.type, Array):
            raise self.refuse("an array inside a value that has no place is not supported", node)

        def pick(c: Context) -> Any:
            value = fn(c)
            return value[first] if single else value[first : first + count]

        return Operand(found.type, pick, pure=whole.pure, shared=whole.shared, loads=whole.loads)

    # -- conversions

    def converted(self, e: Operand, type_: Type, node: Node) -> Operand:
        if isinstance(type_, Reference):
            type_ = type_.to
        have = e.type
        if isinstance(type_, Scalar) and isinstance(have, Scalar):
            convert = converter(have, type_)
            if convert is None:
                return Operand(type_, e.fn, e.const, e.pure, e.bare, e.symbol, e.row, e.soft, e.shared, e.loads, e.fed)
            if e.const is not None:
                with np.errstate(all="ignore"):
                    made = self.constant_value(convert(e.const), type_)
                made.bare = e.bare if not type_.floating else None
                return made
            fn = e.fn
            run = memoised(convert, fn, self.new_memo()) if not have.floating else lambda c: convert(fn(c))
            out = Operand(type_, run, None, e.pure, shared=e.shared, loads=e.loads, fed=e.fed)
            if not type_.floating and not have.floating and type_.size >= 4:
                out.bare, out.symbol, out.row, out.soft = e.bare, e.symbol, e.row, e.soft
            return out
        if isinstance(type_, Pointer) and isinstance(have, Pointer):
            made = Operand(type_, e.fn, e.const, e.pure, shared=e.shared, loads=e.loads)
            self.copy_roots(e, made)
            self.narrow(e, made, node)
            return made
        if isinstance(type_, Pointer) and isinstance(have, Scalar) and e.const is not None and e.const == 0:
            return Operand(type_, lambda c: At(None, np.int64(0)))
        if type_ is BOOL and isinstance(have, Pointer):
            fn = e.fn
            return Operand(BOOL, lambda c: np.bool_(fn(c).memory is not None), pure=e.pure)
        if isinstance(type_, Struct) and isinstance(have, Struct):
            names = {type_.name, have.name}
            if len(names) == 1 or names == {"dim3", "uint3"}:
                return e
        raise self.refuse(f"{have} cannot become {type_}", node)

    def narrow(self, e: Operand, made: Operand, node: Node) -> None:
        """(char*)a of floats may be moved and cast back, as rows of pitched memory are found. The machine
        has no parts of its cells, so that nothing is read through it."""
        sizes = []
        for pointer in (e.type, made.type):
            assert isinstance(pointer, Pointer)
            leaves = ctype.leaves(pointer.to)
            sizes.append(leaves[0].size if leaves else 0)
        root = self.narrowed.get(id(e), sizes[0])
        if id(e) in self.narrowed and e.type == made.type:
            raise self.refuse(f"parts of larger values seen through {e.type} are not supported", node)
        if 0 < sizes[1] < root:
            self.narrowed[id(made)] = root
            self.kept.append(made)

    def cast(self, node: Cast) -> Operand:
        type_ = self.resolve(node.type)
        if isinstance(type_, ctype.Void):
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

    @abstractmethod
    def global_variable(self, name: str, node: Node) -> Variable | None:
        """Filled in further up the chain of compilers."""

    depth: int
    dimension_names: frozenset[str]
