"""Comparisons with a reference, `fabs(a[i] - b[i]) > limit`: compiled code records what they compare, so that
runtime/comparisons.py can report those that could not have failed.

They are found on a function's tree before it is lowered. Each has a record of five numbers: the largest absolute value,
the limit, and how many values were compared, failed, and were NaN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.conversion import convert
from tilewise.emulator.host.lower.values import Value
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Scalar
from tilewise.errors import KernelError

ABSOLUTE = frozenset({"fabs", "fabsf", "abs", "labs", "std::abs", "std::fabs", "std::fabsf"})
LARGEST, LIMIT, COUNT, FAILED, NAN = range(0, 40, 8)  # offsets in the record


@dataclass
class Comparison:
    line: int
    address: int
    truncated: bool = False  # the difference is converted to an integer
    floating: bool = False  # the values are floats
    has_limit: bool = False


def find_comparisons(b: Builder, body: Any) -> None:
    """Find the comparisons in a function's body."""
    if b.library or b.program.device:
        return
    differences: dict[str, tuple[tree.Binary, Comparison]] = {}
    by_call: dict[int, tuple[tree.Binary, Comparison]] = {}
    nodes = list(tree.walk(body))
    for node in nodes:
        found = _difference(node)
        if found is not None:
            made = Comparison(node.line, int(b.program.memory.constant(bytes(40))), _truncated_inside(node))
            by_call[id(node)] = (found, made)
            b.differences[id(found)] = made
    if not by_call:
        return
    for node in nodes:
        if isinstance(node, tree.Variable) and id(node.init) in by_call:
            differences[node.name] = by_call[id(node.init)]
            differences[node.name][1].truncated |= _is_integer_type(b, node.type)
        elif isinstance(node, tree.Assign) and isinstance(node.target, tree.Name) and id(node.value) in by_call:
            differences[node.target.name] = by_call[id(node.value)]
    for node in nodes:
        if isinstance(node, tree.Binary) and node.op in ("<", ">", "<=", ">="):
            for side, part in enumerate((node.left, node.right)):
                known = by_call.get(id(part)) or (differences.get(part.name) if isinstance(part, tree.Name) else None)
                if known is not None:
                    known[1].line, known[1].has_limit = node.line, True
                    b.limit_tests[id(node)] = (known[1], side)
    b.program.comparisons += [made for _, made in by_call.values()]


def _difference(node: Any) -> tree.Binary | None:
    """The `-` in fabs(a[i] - b[i])."""
    if not isinstance(node, tree.Call) or not isinstance(node.function, tree.Name) or len(node.arguments) != 1:
        return None
    if node.function.name not in ABSOLUTE:
        return None
    inner = node.arguments[0]
    while isinstance(inner, tree.Cast):
        inner = inner.operand
    if not isinstance(inner, tree.Binary) or inner.op != "-":
        return None
    return inner if any(isinstance(part, tree.Index) for part in tree.walk(inner)) else None


def _truncated_inside(node: tree.Call) -> bool:
    inner = node.arguments[0]
    cast = isinstance(inner, tree.Cast) and isinstance(inner.type, tree.TypeFixed) and _is_integer(inner.type.type)
    return cast or (isinstance(node.function, tree.Name) and node.function.name == "labs")


def _is_integer_type(b: Builder, written: Any) -> bool:
    try:
        return _is_integer(b.program.resolve(written, b.env))
    except KernelError:
        return False


def _is_integer(type_: Any) -> bool:
    return isinstance(type_, Scalar) and type_.kind == "int"


def record_values(b: Builder, made: Comparison, left: Value, right: Value) -> None:
    """Record the two values whose difference is computed."""
    if not isinstance(left.type, Scalar) or not isinstance(right.type, Scalar):
        return
    made.floating = made.floating or left.type.floating or right.type.floating
    for value in (left, right):
        wide = convert(b, value, types.DOUBLE).text
        b.program.external("llvm.fabs.f64")
        size = b.make(f"call double @llvm.fabs.f64(double {wide})")
        largest = _load(b, made, LARGEST, "double")
        above = b.make(f"fcmp ogt double {size}, {largest}")
        _store(b, made, LARGEST, "double", b.make(f"select i1 {above}, double {size}, double {largest}"))
        _count(b, made, NAN, b.make(f"fcmp uno double {wide}, {wide}"))
    _store(b, made, COUNT, "i64", b.make(f"add i64 {_load(b, made, COUNT, 'i64')}, 1"))


def record_limit(b: Builder, made: Comparison, side: int, op: str, values: tuple[Value, Value], result: Value) -> None:
    """Record the limit, and whether the comparison failed: the difference is larger."""
    limit = values[1 - side]
    if not isinstance(limit.type, Scalar) or limit.type.kind == "null":
        return
    _store(b, made, LIMIT, "double", convert(b, limit, types.DOUBLE).text)
    larger = (op[0] == ">") == (side == 0)
    _count(b, made, FAILED, result.text if larger else b.make(f"xor i1 {result.text}, true"))


def _count(b: Builder, made: Comparison, which: int, condition: str) -> None:
    one = b.make(f"zext i1 {condition} to i64")
    _store(b, made, which, "i64", b.make(f"add i64 {_load(b, made, which, 'i64')}, {one}"))


def _pointer(made: Comparison, which: int) -> str:
    return f"ptr inttoptr (i64 {made.address + which} to ptr)"


def _load(b: Builder, made: Comparison, which: int, llvm: str) -> str:
    return b.make(f"load {llvm}, {_pointer(made, which)}")


def _store(b: Builder, made: Comparison, which: int, llvm: str, text: str) -> None:
    b.emit(f"store {llvm} {text}, {_pointer(made, which)}")
