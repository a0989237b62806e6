"""Call expressions: of a built-in function, a function, a method, an object with operator(), or through a pointer."""

from __future__ import annotations

from dataclasses import replace

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.builtin import BUILTIN, INTERNAL
from tilewise.emulator.host.lower.call import call_choice, call_method, call_result, pass_value
from tilewise.emulator.host.lower.conversion import rvalue
from tilewise.emulator.host.lower.device_function import call_by_handle
from tilewise.emulator.host.lower.exceptions import check_thrown
from tilewise.emulator.host.lower.function_pointers import require_function
from tilewise.emulator.host.lower.function_text import by_address
from tilewise.emulator.host.lower.lanes.calls import call_in_lanes
from tilewise.emulator.host.lower.operands import operands
from tilewise.emulator.host.lower.values import Actual, Lowered, Overloads, Place, Value, is_object
from tilewise.emulator.parse import tree
from tilewise.emulator.parse.types import Array, FunctionType, Pointer, Record
from tilewise.emulator.sema.given import free
from tilewise.emulator.sema.overload import NoMatch, choose, methods, no_match

LOADS = frozenset({"__ldg", "__ldca", "__ldcg", "__ldcs"})


def lower_call(b: Builder, node: tree.Call) -> Lowered:
    if b.lanes is not None:
        made = call_in_lanes(b, node)
        if made is not None:
            return made
    if isinstance(node.function, tree.Name) and node.function.name in BUILTIN:
        if node.function.name in INTERNAL and not b.library:
            raise b.refuse(f"{node.function.name} is internal to the library: a program cannot call it", node)
        return BUILTIN[node.function.name](b, node)
    b.line = node.function.line or node.line or b.line
    line = b.line
    if b.program.recording is not None and isinstance(node.function, tree.Name) and node.function.name in LOADS:
        return rvalue(b, b.lower(tree.Unary("*", node.arguments[0], line=line, column=node.column)))  # it is logged so
    callee = _callee(b, node)
    if isinstance(callee, Overloads):
        values = operands(b, node.arguments, not _shuffles(callee))
        b.line = line
        return call_overloads(b, callee, values, node)
    if is_object(callee):
        values = operands(b, node.arguments)
        return call_method(b, callee, "operator()", values, node)
    pointer = rvalue(b, callee)
    if isinstance(pointer.type, Pointer) and isinstance(pointer.type.to, FunctionType):
        return _through_pointer(b, pointer, operands(b, node.arguments), node)
    raise b.refuse("this is not a function and cannot be called", node)


def _shuffles(callee: Overloads) -> bool:
    """A warp shuffle: only the lanes that others read need a value."""
    found = callee.functions
    return bool(found) and all(f.library and "shfl" in f.name for f in found)


def _callee(b: Builder, node: tree.Call) -> Lowered:
    """The called function; free functions are also looked up in the namespaces of their arguments."""
    std = _of_the_library(b, node)
    return std if std is not None else b.lower(node.function)


def _of_the_library(b: Builder, node: tree.Call) -> Overloads | None:
    """Argument-dependent lookup in std and cuda: begin(v), init(&barrier, n), unless the program has that name."""
    if not isinstance(node.function, tree.Name) or "::" in node.function.name:
        return None
    name, entities = node.function.name, b.program.entities
    known = {n: entities.functions[f"{n}::{name}"] for n in ("std", "cuda") if f"{n}::{name}" in entities.functions}
    found = known.get("std", [])
    if not known or b.find(name) is not None or (b.env.record is not None and methods(b.program, b.env.record, name)):
        return None
    if any(n in entities.functions or n in entities.variables for n in b.program.names.candidates(name, b.env.scope)):
        return None
    if found and any(_iterator(a) for a in node.arguments):
        return Overloads(f"std::{name}", free(found), node.function.arguments)
    env = replace(b.env, local=b.find)
    given = [b.program.type_of(a, env) for a in node.arguments if not isinstance(a, (tree.Braces, tree.Lambda))]
    classes = [t.to if isinstance(t, Pointer) else t for t in given]
    owned = [t.node.name for t in classes if isinstance(t, Record) and t.node is not None]
    for namespace, functions in known.items():
        if any(n.startswith(f"{namespace}::") for n in owned):
            return Overloads(f"{namespace}::{name}", free(functions), node.function.arguments)
    return None


def _iterator(node: tree.Node) -> bool:
    """v.begin(): a pointer here, but a class of namespace std in other implementations."""
    inside = node.function if isinstance(node, tree.Call) else None
    known = ("begin", "end", "cbegin", "cend", "rbegin", "rend")
    return isinstance(inside, (tree.Member, tree.Name)) and inside.name in known


def call_overloads(b: Builder, callee: Overloads, values: list[Actual], node: tree.Node) -> Value | Place:
    try:
        choice = choose(b.program, b.env, callee.name, callee.candidates, callee.arguments, values, callee.receiver)
    except NoMatch:
        if callee.further:
            return call_overloads(b, replace(callee, candidates=callee.further, further=[]), values, node)
        raise b.refuse(no_match(callee.name, callee.candidates, values), node) from None
    receiver = callee.receiver
    return call_choice(b, choice, receiver if isinstance(receiver, Place) else None, values, node, callee.qualified)


def _through_pointer(b: Builder, pointer: Value, values: list[Actual], node: tree.Call) -> Value | Place:
    assert isinstance(pointer.type, Pointer)
    target = pointer.type.to
    assert isinstance(target, FunctionType)
    if len(values) != len(target.parameters):
        raise b.refuse(f"this function takes {len(target.parameters)} arguments, {len(values)} are given", node)
    null = b.make(f"icmp eq ptr {pointer.text}, null")
    b.report_if(null, "rt_null_call", [("i32", b.line_text())])
    if not b.program.device:  # in kernels function pointers are handles
        require_function(b, pointer.text, target)
    given: list[tuple[str, str]] = []
    space = ""
    if isinstance(target.result, (Record, Array)):
        space = b.temporary(target.result)
        given.append((by_address(target.result), space))
    given += [pass_value(b, v, t) for v, t in zip(values, target.parameters, strict=True)]
    b.noted_line = 0
    if b.program.device:
        text = call_by_handle(b, pointer.text, target, given)
    else:
        text = b.call(target.result, pointer.text, given, "void" if space else None)
    check_thrown(b)
    return call_result(b, target.result, space or text)
