"""Types as written to types of the machine: the symbol table resolves names, array lengths are compiled here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from tilewise.emulator.compile.operand import Closure
from tilewise.emulator.machine import ctype
from tilewise.emulator.machine.ctype import Array, Pointer, Reference, Scalar, Struct, Type
from tilewise.emulator.parse import tree, types
from tilewise.emulator.sema import layout, type_resolution, unify
from tilewise.emulator.sema.symbol_table import Environment, SymbolTable
from tilewise.errors import KernelError

MAX_LENGTH = 1 << 28
CLASS_SCALARS = {"__half": lambda: ctype.HALF, "__nv_bfloat16": ctype.bfloat16}  # classes in the headers
PARTS = (layout, type_resolution, unify)  # imported for what they provide to the symbol table


class TypeResolver(ABC):
    def __init__(self, table: SymbolTable) -> None:
        self.table = table
        self.source = table.source
        self.env = Environment()  # of the function that is compiled
        self.structs: dict[int, Struct] = {}  # by their record

    def refuse(self, message: str, node: tree.Node) -> KernelError:
        return self.source.error(message, *node.span)

    @abstractmethod
    def constant(self, node: Any) -> int:
        """Filled in further up the chain."""

    @abstractmethod
    def type_of(self, node: Any) -> Type:
        """Filled in further up the chain."""

    def resolve(self, node: Any) -> Type:
        if isinstance(node, tree.TypeConst):
            return self.resolve(node.of)
        if isinstance(node, (tree.TypePointer, tree.TypeReference)):
            to, const = self.resolve(node.to), isinstance(node.to, tree.TypeConst)
            to = to.to if isinstance(to, Reference) else to
            return Pointer(to, const) if isinstance(node, tree.TypePointer) else Reference(to, const)
        if isinstance(node, tree.TypeArray):
            return self._array(node)
        if isinstance(node, tree.TypeOf):
            return self.type_of(node.value)
        if isinstance(node, tree.TypeAuto):
            raise self.refuse("auto needs a value to take its type from", node)
        return self.machine_type(self.table.resolve(node, self.env), node)

    def _array(self, node: tree.TypeArray) -> Type:
        if node.length is None:
            return Array(self.resolve(node.of), 0)
        length = self.constant(node.length)
        if not 0 <= length <= MAX_LENGTH:
            raise self.refuse(f"an array of {length} elements cannot be made", node.length)
        of = self.resolve(node.of)
        if isinstance(of, (Reference, ctype.Void)):
            raise self.refuse(f"an array cannot hold {of}", node)
        return Array(of, length)

    def machine_type(self, type_: types.Type, node: tree.Node) -> Type:
        """A type of the program as the machine's: its scalars are NumPy's, its classes are their leaves."""
        if isinstance(type_, Closure):
            return type_
        if isinstance(type_, types.Enum):
            return {(8, True): ctype.LONG, (8, False): ctype.ULONG}.get((type_.size, type_.signed), ctype.INT)
        if isinstance(type_, types.Scalar):
            return Pointer(ctype.VOID) if type_ is types.NULLPTR else ctype.BY_NAME[type_.name]
        if isinstance(type_, types.Pointer):
            if isinstance(type_.to, types.FunctionType):
                raise self.refuse("pointers to functions are not supported", node)
            return Pointer(self.machine_type(type_.to, node), type_.const)
        if isinstance(type_, types.Reference):
            return Reference(self.machine_type(type_.to, node), type_.const)
        if isinstance(type_, types.Array):
            return Array(self.machine_type(type_.of, node), type_.length)
        if isinstance(type_, types.Record):
            return CLASS_SCALARS[type_.name]() if type_.name in CLASS_SCALARS else self._struct(type_, node)
        raise self.refuse(f"{type_} is not supported here", node)

    def _struct(self, record: types.Record, node: tree.Node) -> Struct:
        known = self.structs.get(id(record))
        if known is not None:
            return known
        self.table.layout(record)
        if (record.node is not None and record.node.word == "union") or "@" in record.name:
            raise self.refuse("unions are not supported", node)
        if record.vptr is not None:
            raise self.refuse("virtual methods are not supported", node)
        made = self.structs[id(record)] = Struct(record.name.rpartition("::")[2], (), record.align, record.size, record)
        fields = [f for base, _ in record.bases for f in self._struct(base, node).fields]
        fields += [ctype.Field(f.name, self.machine_type(f.type, node), f.offset) for f in record.fields]
        object.__setattr__(made, "fields", tuple(fields))
        return made

    def written_type(self, type_: Type) -> types.Type:
        """A type of the machine as the symbol table knows it: what a template parameter is bound to."""
        if isinstance(type_, Struct):
            record: types.Record = type_.record
            return record
        if isinstance(type_, (Pointer, Reference)):
            made = types.Pointer if isinstance(type_, Pointer) else types.Reference
            return made(self.written_type(type_.to), type_.const)
        if isinstance(type_, Array):
            return types.Array(self.written_type(type_.of), type_.length)
        if isinstance(type_, Scalar) and type_.name in CLASS_SCALARS:
            return self.table.resolve(tree.TypeName(type_.name), self.env)
        return types.BY_NAME[str(type_)]
