"""Types as written to types as meant: typedefs, structs, template parameters, array lengths."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from tilewise.emulator.frontend import ctype
from tilewise.emulator.frontend.ctype import Array, Pointer, Reference, Struct, Type
from tilewise.emulator.frontend.source import Source
from tilewise.emulator.frontend.syntax import (
    ArrayType,
    AutoType,
    Expr,
    File,
    FixedType,
    NamedType,
    Node,
    PointerType,
    ReferenceType,
    TypeNode,
)  # fmt: skip
from tilewise.errors import KernelError

SUPPLIED_MATRIX = ctype.make_struct(
    "Matrix",
    [
        ("width", ctype.INT),
        ("height", ctype.INT),
        ("pitch", ctype.INT),
        ("stride", ctype.INT),
        ("elements", Pointer(ctype.FLOAT)),
    ],
)
SUPPLIED_NUMBERS = ("DATA_TYPE", "DTYPE", "DataType", "real", "REAL", "scalar_t", "ElementType", "element_t")
MAX_LENGTH = 1 << 28


class TypeResolver(ABC):
    """Shared by the compiler and the reader of launches; `constant` evaluates an expression to an integer."""

    def __init__(self, source: Source, file: File) -> None:
        self.source = source
        self.file = file
        self.template: list[dict[str, Any]] = [{}]  # innermost last: name -> Type or value
        self.structs: dict[Any, Struct] = {}
        self.supplied: dict[str, str] = {}
        self._resolving: list[str] = []

    def refuse(self, message: str, node: Node) -> KernelError:
        span = node.span
        return self.source.error(message, span.line, span.column, span.length)

    @abstractmethod
    def constant(self, node: Expr) -> int:
        """Filled in further up the chain."""

    def lookup_template(self, name: str) -> Any:
        for level in reversed(self.template):
            if name in level:
                return level[name]
        return None

    def resolve(self, node: TypeNode) -> Type:
        if isinstance(node, FixedType):
            return node.type
        if isinstance(node, (PointerType, ReferenceType)):
            to = self.resolve(node.to)
            if isinstance(to, Reference):
                raise self.refuse("a reference can be neither pointed nor referred to", node)
            return Pointer(to, node.const) if isinstance(node, PointerType) else Reference(to, node.const)
        if isinstance(node, ArrayType):
            if node.length is None:
                return Array(self.resolve(node.of), 0)
            length = self.constant(node.length)
            if not 0 <= length <= MAX_LENGTH:
                raise self.refuse(f"an array of {length} elements cannot be made", node.length)
            of = self.resolve(node.of)
            if isinstance(of, (Reference, ctype.Void)):
                raise self.refuse(f"an array cannot hold {of}", node)
            return Array(of, length)
        if isinstance(node, NamedType):
            return self.named(node)
        if isinstance(node, AutoType):
            raise self.refuse("auto needs a value to take its type from", node)
        raise self.refuse("this type is not understood", node)

    def named(self, node: NamedType) -> Type:
        name = node.name
        found = self.lookup_template(name)
        if isinstance(found, Type):
            return found
        if name in self.file.structs:
            return self.struct(node)
        if name in self.file.typedefs:
            if name in self._resolving or len(self._resolving) > 50:
                raise self.refuse(f"{name} is defined by itself", node)
            self._resolving.append(name)
            try:
                return self.resolve(self.file.typedefs[name])
            finally:
                self._resolving.pop()
        if name in ctype.NAMED:
            return ctype.NAMED[name]
        if name in ctype.BFLOAT_NAMES:
            return ctype.bfloat16()
        if name == "Matrix":
            self.supplied["Matrix"] = "struct { int width, height, pitch, stride; float *elements; }"
            return SUPPLIED_MATRIX
        if name in SUPPLIED_NUMBERS:
            self.supplied[name] = "float"
            return ctype.FLOAT
        if name in self.file.skipped:
            reason = self.file.skipped[name]
            raise self.refuse(f"the type {name} was not understood where it is defined ({reason})", node)
        raise self.refuse(f"the type {name} is not declared", node)

    def struct(self, node: NamedType) -> Struct:
        definition = self.file.structs[node.name]
        arguments = [self.resolve(a) if isinstance(a, TypeNode) else self.constant(a) for a in node.arguments]
        key = (
            node.name,
            tuple(str(a) for a in arguments),
            id(self.template[-1]) if definition.template else 0,
        )
        known = self.structs.get(key)
        if known is not None:
            return known
        if node.name in self._resolving:
            raise self.refuse(f"{node.name} contains itself", node)
        self._resolving.append(node.name)
        level = {p.name: a for p, a in zip(definition.template, arguments, strict=False)}
        self.template.append(level)
        try:
            members = [(m.name, self._member(m.type, node.name)) for m in definition.members]
        finally:
            self.template.pop()
            self._resolving.pop()
        made = ctype.make_struct(node.name, members, definition.alignment)
        self.structs[key] = made
        return made

    def _member(self, node: TypeNode, inside: str) -> Type:
        if isinstance(node, PointerType) and isinstance(node.to, NamedType) and node.to.name == inside:
            return Pointer(ctype.VOID)
        return self.resolve(node)
