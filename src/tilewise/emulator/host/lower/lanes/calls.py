"""Calls with divergent arguments: a loop over the active lanes calls the function with that lane's threadIdx."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.builtin import BUILTIN
from tilewise.emulator.host.lower.conversion import rvalue
from tilewise.emulator.host.lower.lanes.divergence import BARRIER
from tilewise.emulator.host.lower.lanes.linear import as_scalar, widen
from tilewise.emulator.host.lower.lanes.mask import lanes_of
from tilewise.emulator.host.lower.lanes.memory import from_memory, in_memory, to_memory
from tilewise.emulator.host.lower.marks import WITHIN
from tilewise.emulator.host.lower.values import UNCHECKED, Local, Lowered, NotInLockstep, Value, Wide
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Array, Pointer, Record, Scalar, stored

VECTORS = {
    "sqrtf": ("sqrt", 1),
    "sqrt": ("sqrt", 1),
    "fabsf": ("fabs", 1),
    "fabs": ("fabs", 1),
    "fmaf": ("fma", 3),
    "fma": ("fma", 3),
    **{f"f{name}{f}": (f"{name}num", 2) for name in ("min", "max") for f in ("f", "")},
}


def call_in_lanes(b: Builder, node: tree.Call) -> Lowered | None:
    """A barrier or a divergent call; None for a call that is uniform: it is lowered as for one thread."""
    if isinstance(node.function, tree.Name) and node.function.name == BARRIER:
        return BUILTIN["__wait"](b, tree.Call(node.function, [tree.Number(1, types.INT)], line=node.line))
    if not lanes_of(b).varies(node):
        return None
    given = [n if isinstance(n, (tree.Number, tree.Text)) else rvalue(b, b.lower(n)) for n in node.arguments]
    b.line = node.line
    if any(isinstance(getattr(value, "type", None), Record) for value in given):
        raise NotInLockstep(f"an object in the call at line {node.line}")
    return _lane_by_lane(b, node, given)


def _lane_by_lane(b: Builder, node: tree.Call, given: list[Any]) -> Lowered:
    """The call's value in all lanes; `given` are literals (tree nodes), Values and Wides."""
    if not isinstance(node.function, (tree.Name, tree.Member)) or node.function.name in BUILTIN:
        raise NotInLockstep(f"the call at line {node.line}")
    name = node.function.name.rpartition("::")[2]
    what, count = VECTORS.get(name, ("", -1))
    if len(given) == count and b.find(name) is None and b.is_library(node.function.name):
        made = _as_vector(b, what, name.endswith("f"), given)
        if made is not None:
            return made
    lanes = lanes_of(b)
    slots = [_spilled(b, value) if isinstance(value, Wide) else "" for value in given]
    mask = lanes.mask_bits(b)
    counter = b.alloca("i64")
    b.emit(f"store i64 0, ptr {counter}")
    head, run, more, done = (b.label() for _ in range(4))
    b.begin(head)
    lane = b.make(f"load i64, ptr {counter}")
    number = b.make(f"trunc i64 {lane} to {lanes.bits}")
    b.branch(b.make(f"trunc {lanes.bits} {b.make(f'lshr {lanes.bits} {mask}, {number}')} to i1"), run, more)
    b.begin(run)
    b.emit(f"call void @set_lane(i64 {lane})")
    result = _call_once(b, node, [_of_lane(b, v, s, lane) for v, s in zip(given, slots, strict=True)])
    results = _store_result(b, result, lane) if result.type is not types.VOID else ""
    b.begin(more)
    b.emit(f"store i64 {b.make(f'add i64 {lane}, 1')}, ptr {counter}")
    b.branch(b.make(f"icmp ult i64 {lane}, {lanes.width - 1}"), head, done)
    b.begin(done)
    if not results:
        return result
    kind = lanes.vector(in_memory(result.type).llvm)
    return from_memory(b, result.type, b.make(f"load {kind}, ptr {results}"))


def _as_vector(b: Builder, what: str, single: bool, given: list[Any]) -> Wide | None:
    """sqrt, fabs and fma of floating values as a vector intrinsic."""
    if not any(isinstance(v, Wide) for v in given) or not all(isinstance(v, (Wide, Value)) for v in given):
        return None
    if not all(isinstance(v.type, Scalar) and v.type.floating for v in given):
        return None
    type_ = types.FLOAT if single or all(v.type is types.FLOAT for v in given) else types.DOUBLE
    lanes = lanes_of(b)
    kind, short = lanes.vector(type_.llvm), f"v{lanes.width}f{type_.size * 8}"
    intrinsic = f"llvm.{what}.{short}"
    b.program.externals[intrinsic] = f"declare {kind} @{intrinsic}({', '.join([kind] * len(given))})"
    texts = ", ".join(f"{kind} {widen(b, as_scalar(b, v, type_)).vector}" for v in given)
    return Wide(type_, b.make(f"call {kind} @{intrinsic}({texts})"))


def _spilled(b: Builder, value: Wide) -> str:
    """A stack slot with the vector, from which single lanes are loaded."""
    kind, text = to_memory(b, value)
    slot = b.alloca(kind)
    b.emit(f"store {kind} {text}, ptr {slot}")
    return slot


def _of_lane(b: Builder, value: Any, slot: str, lane: str) -> Any:
    if not slot:
        return value
    llvm = in_memory(value.type).llvm
    text = b.make(f"load {llvm}, ptr {b.make(f'getelementptr {llvm}, ptr {slot}, i64 {lane}{WITHIN}')}")
    if isinstance(value.type, Pointer):
        return b.value(value.type, f"inttoptr i64 {text} to ptr")
    return Value(value.type, b.from_memory(value.type, text))


def _call_once(b: Builder, node: tree.Call, values: list[Any]) -> Value:
    """The call for one lane: each computed argument becomes a hidden variable, so that it is not evaluated again."""
    b.note_line(b.line)
    with b.scope(), b.full_expression():
        names: list[Any] = []
        for i, value in enumerate(values):
            if isinstance(value, tree.Node):
                names.append(value)
                continue
            slot = b.alloca(stored(value.type))
            b.emit(f"store {stored(value.type)} {b.to_memory(value.type, value.text)}, ptr {slot}")
            b.declare(f"$ {i}", Local(value.type, slot, UNCHECKED, register=True))
            names.append(tree.Name(f"$ {i}", line=node.line))
        made = rvalue(b, b.lower(tree.Call(node.function, names, line=node.line)))
    if isinstance(made.type, (Record, Array)):
        raise NotInLockstep(f"a call that gives {made.type} at line {node.line}")
    return made


def _store_result(b: Builder, result: Value, lane: str) -> str:
    """Store one lane's result into a vector on the stack; the vector's slot."""
    llvm, text = in_memory(result.type).llvm, b.to_memory(result.type, result.text)
    if isinstance(result.type, Pointer):
        text = b.make(f"ptrtoint ptr {text} to i64")
    kind = lanes_of(b).vector(llvm)
    slot = b.alloca(kind)
    b.allocas.append(f"  store {kind} zeroinitializer, ptr {slot}")
    b.emit(f"store {llvm} {text}, ptr {b.make(f'getelementptr {llvm}, ptr {slot}, i64 {lane}{WITHIN}')}")
    return slot
