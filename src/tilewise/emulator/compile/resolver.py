"""Type resolution for kernels: types that the machine does not support are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewise.emulator.machine.leaves import NUMBERS, numeric
from tilewise.emulator.parse import tree
from tilewise.emulator.parse.types import Array, FunctionType, Pointer, Record, Reference, Scalar, Type
from tilewise.emulator.sema.symbol_table import Environment, SymbolTable
from tilewise.errors import KernelError


class TypeResolver:
    def __init__(self, table: SymbolTable) -> None:
        self.table = table
        self.source = table.source
        self.env = Environment()  # of the function being compiled
        self.supported: set[int] = set()  # ids of classes that were checked

    def refuse(self, message: str, node: tree.Node) -> KernelError:
        return self.source.error(message, *node.span)

    constant: Callable[[Any], int]
    type_of: Callable[[Any], Type]

    def resolve(self, node: Any) -> Type:
        type_ = self.table.resolve(node, self.env)
        self._require_supported(type_, node)
        return numeric(type_)

    def _require_supported(self, type_: Type, node: tree.Node) -> None:
        inner: Any = type_
        while isinstance(inner, (Pointer, Reference, Array)):
            inner = inner.of if isinstance(inner, Array) else inner.to
        if isinstance(inner, FunctionType):
            raise self.refuse("pointers to functions are not supported", node)
        if not isinstance(inner, Record) or id(inner) in self.supported or inner.name in NUMBERS:
            return
        self.table.layout(inner)
        self.supported.add(id(inner))
        if (inner.node is not None and inner.node.keyword == "union") or "@" in inner.name:
            raise self.refuse("unions are not supported", node)
        if inner.vptr is not None:
            raise self.refuse("virtual methods are not supported", node)
        for f in inner.members:
            self._require_supported(f.type, node)

    def written_type(self, type_: Type) -> Type:
        """The program's type (class __half) for a type of the machine (number), for binding template parameters."""
        if isinstance(type_, (Pointer, Reference)):
            return type(type_)(self.written_type(type_.to), type_.const)
        if isinstance(type_, Array):
            return Array(self.written_type(type_.of), type_.length)
        number = isinstance(type_, Scalar) and type_.name in NUMBERS
        return self.table.resolve(tree.TypeName(str(type_)), self.env) if number else type_
