"""What record mode reads from a kernel's text: registers that are sums, assignments, and the rows of indices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.conversion import convert
from tilewise.emulator.host.lower.recording import GUESSED, NO_ROW, record_sum
from tilewise.emulator.host.lower.values import Place, Value
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Array, Scalar


def begin_function(b: Builder, node: tree.Function, body: Any) -> None:
    """Find the registers of a function that accumulate values of shared memory, or carry values of global memory."""
    recording = b.program.recording
    if recording is None or not b.program.device or b.library:
        return
    recording.in_kernel = "__global__" in node.specifiers
    recording.parameters = frozenset(p.name for p in node.parameters if "__global__" in node.specifiers)
    shared = {n for n, v in b.program.entities.variables.items() if "__shared__" in v.specifiers}
    pointers = {p.name for p in node.parameters}
    sums: set[str] = set()
    carried: set[str] = set()
    nodes = list(tree.walk(body))
    shared |= {n.name for n in nodes if isinstance(n, tree.Variable) and "__shared__" in n.specifiers}
    while True:
        before = len(carried)
        for node in nodes:
            first = node.init if isinstance(node, tree.Variable) and "__shared__" not in node.specifiers else None
            if first is not None and (_loads(first, pointers, shared) or _mentions(first, carried)):
                carried.add(node.name)
            if not isinstance(node, tree.Assign) or not (name := _base(node.target)) or name in shared:
                continue
            if name not in pointers and (_loads(node.value, pointers, shared) or _mentions(node.value, carried)):
                carried.add(name)
            plain = isinstance(node.target, tree.Name) and (node.op or _mentions(node.value, {name}))
            if plain and _indexes(node.value, shared):
                sums.add(name)
        if len(carried) == before:
            break
    recording.stepped = {
        node.target.name: _written(node.value)
        for node in nodes
        if isinstance(node, tree.Assign) and node.op in ("+", "-") and isinstance(node.target, tree.Name)
        and _written(node.value) in recording.dimensions
    }  # fmt: skip
    recording.sums, recording.carried = frozenset(sums), frozenset(carried)


def _base(node: Any) -> str:
    while isinstance(node, (tree.Index, tree.Member)):
        node = node.base
    return node.name if isinstance(node, tree.Name) else ""


def _roots(node: Any) -> list[str]:
    """The names that a pointer expression may begin at."""
    if isinstance(node, tree.Binary):
        return [*_roots(node.left), *_roots(node.right)] if node.op in "+-" else []
    return _roots(node.operand) if isinstance(node, tree.Cast) else [_base(node)]


def _mentions(node: Any, names: set[str]) -> bool:
    return any(isinstance(n, tree.Name) and n.name in names for n in tree.walk(node))


def _indexes(node: Any, names: set[str]) -> bool:
    return any(isinstance(n, tree.Index) and _base(n) in names for n in tree.walk(node))


def _loads(node: Any, pointers: set[str], shared: set[str]) -> bool:
    """Whether an expression loads through a pointer parameter."""
    return _indexes(node, pointers - shared)


@contextmanager
def assignment(b: Builder, node: tree.Assign) -> Iterator[None]:
    """While an assignment is lowered, its accesses are those of one statement."""
    recording = b.program.recording
    if recording is None:
        yield
        return
    before = recording.statement, recording.from_global
    recording.statements += 1
    recording.statement = recording.statements
    recording.from_global = bool(node.op) or _mentions(node.value, set(recording.carried))
    yield
    recording.statement, recording.from_global = before


def note_assigned(b: Builder, node: tree.Assign, target: Any, value: Value) -> None:
    """A register was assigned: it may be a sum, and the row of an index may have changed."""
    recording = b.program.recording
    if recording is None or not target.register or not isinstance(node.target, tree.Name):
        return
    name = node.target.name
    if name in recording.sums:
        record_sum(b, name, value.type, value.text)
    own = row_of(b, node.target) if node.op in ("+", "-") else None
    row = row_of(b, node.value)
    if node.op and own is not None and _written(node.value) == own[1].lstrip(GUESSED):
        keep_row(b, name, (b.make(f"{'add' if node.op == '+' else 'sub'} i32 {own[0]}, 1"), own[1]))
    elif node.op and own is not None and row is not None and row[1] == own[1]:
        keep_row(b, name, (b.make(f"{'add' if node.op == '+' else 'sub'} i32 {own[0]}, {row[0]}"), own[1]))
    elif not (node.op and row is None and own is not None):
        keep_row(b, name, row if node.op in ("", "+") else None)


# -- rows of indices: q in q * leading dimension + r


def recorded_element(b: Builder, pointer: Any, place: Place) -> Place:
    """What an expression points to, with the row of its index and the name that it begins at."""
    recording = b.program.recording
    if b.program.device and not b.library:
        place.row = row_of(b, pointer)
        names = (name for name in _roots(pointer) if name and (recording is None or name in recording.parameters))
        place.name = next(names, "")
    return place


def recorded_row(b: Builder, array: Array, base: Place, index: str) -> tuple[str, str] | None:
    """The first subscript of an element of a __shared__ array of rows, and their length."""
    if isinstance(array.of, Array):
        return b.make(f"trunc i64 {index} to i32"), str(array.of.length)
    return base.row


def row_of(b: Builder, node: Any) -> tuple[str, str] | None:
    """The row of an index as i32, and the leading dimension that it is multiplied by; None if it has none."""
    recording = b.program.recording
    if recording is None or not b.program.device or b.library:
        return None
    if isinstance(node, tree.Cast):
        return row_of(b, node.operand)
    if isinstance(node, tree.Name):
        kept = recording.rows.get(id(b.find(node.name)))
        return None if kept is None else (b.make(f"load i32, ptr {kept[0]}"), kept[1])
    if not isinstance(node, tree.Binary):
        return None
    if node.op == "*":
        for factor, other in ((node.left, node.right), (node.right, node.left)):
            if _written(other) in recording.dimensions and _repeatable(factor):
                return _integer(b, factor), _written(other)
        return None
    if node.op not in "+-":
        return None
    left, right = row_of(b, node.left), row_of(b, node.right)
    if left is None or right is None:
        return left or (right if node.op == "+" else None)
    if left[1].lstrip(GUESSED) != right[1].lstrip(GUESSED):
        return None
    return b.make(f"{'add' if node.op == '+' else 'sub'} i32 {left[0]}, {right[0]}"), max(left[1], right[1])


def first_row(b: Builder, name: str, init: Any) -> None:
    """A local's first value is an index of a row; of row 0 if it has none and moves by rows."""
    recording = b.program.recording
    if recording is not None and b.program.device and not b.library:
        local, start = b.find(name), None
        if name in recording.stepped and local is not None and isinstance(local.type, Scalar):
            start = "0", GUESSED + recording.stepped[name]
        keep_row(b, name, row_of(b, init) or start)


def keep_row(b: Builder, name: str, row: tuple[str, str] | None) -> None:
    """A local's value is an index of this row."""
    local = b.find(name)
    recording = b.program.recording
    if recording is None or local is None or not local.register:
        return
    kept = recording.rows.get(id(local))
    if row is None:
        if kept is not None:
            b.emit(f"store i32 {NO_ROW}, ptr {kept[0]}")
        return
    if kept is None:
        slot = b.alloca("i32")
        b.allocas.append(f"  store i32 {NO_ROW}, ptr {slot}")
        kept = recording.rows[id(local)] = slot, row[1], local
    b.emit(f"store i32 {row[0]}, ptr {kept[0]}")


def _written(node: Any) -> str:
    while isinstance(node, tree.Cast):
        node = node.operand
    if isinstance(node, tree.Member) and isinstance(node.base, tree.Name):
        return f"{node.base.name}.{node.name}"
    return node.name if isinstance(node, tree.Name) else ""


def _repeatable(node: Any) -> bool:
    """Whether an expression can be lowered twice: it has no side effect and loads no array."""
    if isinstance(node, (tree.Number, tree.Name)):
        return True
    if isinstance(node, tree.Member):
        return isinstance(node.base, tree.Name)
    if isinstance(node, tree.Cast):
        return _repeatable(node.operand)
    return isinstance(node, tree.Binary) and node.op in "+-*/%" and _repeatable(node.left) and _repeatable(node.right)


def _integer(b: Builder, node: Any) -> str:
    return convert(b, b.lower(node), types.INT, explicit=True).text
