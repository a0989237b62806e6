"""Finds loop nests whose inner loop is a sum: for j { … for k sum += a[…] * b[…]; … }.

They are found on the tree, before the outer loop is lowered. Inside, memory may only be changed by visible stores: the
only calls are of functions that compute or print, the only objects are std::vectors."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.loop_versions import SUPPORTED_NODES, Counter, counter
from tilewise.emulator.parse import tree
from tilewise.emulator.parse.types import Array, Pointer, Record, Reference
from tilewise.emulator.sema.pure_functions import PURE

NEST_NODES = (*SUPPORTED_NODES, tree.For, tree.Text, tree.Return, tree.Member)
PRINTS = frozenset({  # runtime calls: each increments the epoch
    "printf", "fprintf", "puts", "putchar", "exit", "abort", "__assert_failed",
})  # fmt: skip
MAX_ARRAYS = 4  # that a sum reads


class Nest:
    """`valid`: 1 while the stored sums, of the columns from `begin` on, are current; `ranges`: first and last address
    that they read of each array."""

    def __init__(self, b: Builder, column: Counter, term: Counter, inner: tree.For) -> None:
        self.column, self.term, self.inner = column, term, inner
        self.valid, self.begin = hidden_variable(b), hidden_variable(b)
        self.ranges = [(hidden_variable(b), hidden_variable(b)) for _ in range(MAX_ARRAYS)]

    def invalidate(self, b: Builder) -> None:
        b.emit(f"store i64 0, ptr {self.valid}")

    def overlaps(self, b: Builder, at: str, size: int) -> str:
        """Whether these bytes are among those that the sums read."""
        out, end = "false", b.make(f"add i64 {at}, {size}")
        for first, last in self.ranges:
            low, high = (b.make(f"load i64, ptr {where}") for where in (first, last))
            into = b.make(f"and i1 {b.make(f'icmp ugt i64 {end}, {low}')}, {b.make(f'icmp ult i64 {at}, {high}')}")
            out = b.make(f"or i1 {out}, {into}")
        return out

    def note_store(self, b: Builder, address: str, size: int) -> None:
        """A store inside the nest invalidates the sums if it writes to an array that they read."""
        into = self.overlaps(b, b.make(f"ptrtoint ptr {address} to i64"), size)
        holds = b.make(f"load i64, ptr {self.valid}")
        b.emit(f"store i64 {b.make(f'select i1 {into}, i64 0, i64 {holds}')}, ptr {self.valid}")


def hidden_variable(b: Builder) -> str:
    """A variable that the program does not have, zero at first."""
    made = b.alloca("i64")
    b.allocas.append(f"  store i64 0, ptr {made}")
    return made


def find_nest(b: Builder, node: tree.For) -> Nest | None:
    if b.library or b.program.device or b.nest is not None or b.lanes is not None:
        return None
    inside = list(tree.walk(node.body))
    loops = [item for item in inside if isinstance(item, tree.For)]
    if len(loops) != 1 or not all(isinstance(item, NEST_NODES) for item in inside):
        return None
    column, term = counter(node), counter(loops[0])
    if column is None or term is None or column.name == term.name or not _only_stores(b, inside):
        return None
    return Nest(b, column, term, loops[0])


def _only_stores(b: Builder, inside: list[Any]) -> bool:
    members = {id(item.base) for item in inside if isinstance(item, tree.Member)}
    for item in inside:
        if isinstance(item, tree.Unary) and item.op == "&":
            return False
        if isinstance(item, tree.Variable):
            kind = item.type.of if isinstance(item.type, tree.TypeConst) else item.type
            if not isinstance(kind, tree.TypeFixed) or item.specifiers & {"static", "extern"}:
                return False
        if isinstance(item, tree.Call) and not _harmless(b, item):
            return False
        if isinstance(item, tree.Name) and id(item) not in members and _object(b, item):
            return False
    return True


def _harmless(b: Builder, node: tree.Call) -> bool:
    name = node.function.name if isinstance(node.function, tree.Name) else ""
    return name in PURE | PRINTS and b.is_library(name)


def _object(b: Builder, node: tree.Name) -> bool:
    """Whether it is an object, or an array of objects, of a class that may overload operators."""
    local = b.find(node.name)
    type_: Any = None if local is None else local.type
    if local is None:
        for name in b.program.names.candidates(node.name, b.env.scope):
            item = b.program.entities.variables.get(name)
            if item is not None:
                written = item.type
                while isinstance(written, (tree.TypeConst, tree.TypeArray, tree.TypePointer)):
                    written = written.to if isinstance(written, tree.TypePointer) else written.of
                return not isinstance(written, tree.TypeFixed)
        return False
    while isinstance(type_, (Array, Pointer, Reference)):
        type_ = type_.of if isinstance(type_, Array) else type_.to
    return isinstance(type_, Record) and not type_.name.startswith(("vector<", "std::vector<"))
