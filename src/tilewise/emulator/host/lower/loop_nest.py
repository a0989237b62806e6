"""Two loops one in the other, the inner one a sum: for j { … for k sum += a[…] * b[…]; … }.

Found before the outer one is lowered, by its text alone. Nothing inside may change memory in a way that its stores do
not show: no calls but of functions that compute or print, and no objects but vectors."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.subscripts import whole_number
from tilewise.emulator.host.lower.trusted_loop import PLAIN, PURE, Counter, counter
from tilewise.emulator.parse import tree
from tilewise.emulator.parse.types import Array, Pointer, Record, Reference

SEEN = (*PLAIN, tree.For, tree.Text, tree.Return, tree.Member)
PRINTS = frozenset({  # the epoch goes on with each
    "printf", "fprintf", "puts", "putchar", "exit", "abort", "__assert_failed",
})  # fmt: skip
MOST_ARRAYS = 4  # that a sum is made of


class Nest:
    """`held`: 1 while the sums of the columns from `begin` on are what the loop would give; `ranges`: from and to where
    they read each array."""

    def __init__(self, b: Builder, column: Counter, term: Counter, inner: tree.For) -> None:
        self.column, self.term, self.inner = column, term, inner
        self.held, self.begin = slot(b), slot(b)
        self.ranges = [(slot(b), slot(b)) for _ in range(MOST_ARRAYS)]

    def forget(self, b: Builder) -> None:
        b.emit(f"store i64 0, ptr {self.held}")

    def reads(self, b: Builder, at: str, size: int) -> str:
        """Whether these bytes are among those that the sums came from."""
        out, end = "false", b.make(f"add i64 {at}, {size}")
        for first, last in self.ranges:
            low, high = (b.make(f"load i64, ptr {where}") for where in (first, last))
            into = b.make(f"and i1 {b.make(f'icmp ugt i64 {end}, {low}')}, {b.make(f'icmp ult i64 {at}, {high}')}")
            out = b.make(f"or i1 {out}, {into}")
        return out

    def note_store(self, b: Builder, address: str, size: int) -> None:
        """A store inside the nest: into one of the arrays it reads, and its sums no longer hold."""
        into = self.reads(b, b.make(f"ptrtoint ptr {address} to i64"), size)
        holds = b.make(f"load i64, ptr {self.held}")
        b.emit(f"store i64 {b.make(f'select i1 {into}, i64 0, i64 {holds}')}, ptr {self.held}")


def slot(b: Builder) -> str:
    """A variable of the function that the program does not know."""
    made = b.alloca("i64")
    b.allocas.append(f"  store i64 0, ptr {made}")
    return made


def find_nest(b: Builder, node: tree.For) -> Nest | None:
    if b.library or b.program.device or b.nest is not None or b.lanes is not None:
        return None
    inside = list(tree.walk(node.body))
    loops = [item for item in inside if isinstance(item, tree.For)]
    if len(loops) != 1 or not all(isinstance(item, SEEN) for item in inside):
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
    if not isinstance(node.function, tree.Name) or node.function.name not in PURE | PRINTS:
        return False
    _, found = b.program.functions_named(node.function.name, b.env.scope)
    return all(function.library for function in found)


def _object(b: Builder, node: tree.Name) -> bool:
    """Of a class, which may have operators of its own, or an array of such."""
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


def in_registers(b: Builder, nest: Nest) -> bool:
    return all(whole_number(b, c.name) is not None for c in (nest.column, nest.term))
