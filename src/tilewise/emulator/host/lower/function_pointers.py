"""Pointers to functions: which overload is meant, and what a caller must know of a function that a pointer calls."""

from __future__ import annotations

import zlib
from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.values import Overloads, Value
from tilewise.emulator.parse import tree
from tilewise.emulator.parse.types import Array, FunctionType, Pointer, Record, Reference, Type
from tilewise.emulator.sema.deduce import deduce
from tilewise.emulator.sema.overload import surroundings
from tilewise.emulator.sema.symbol_table import Environment

IN_REGISTERS = 5  # parameters that every ABI passes in registers, beside the address of a returned object
NO_FORM = 1 << 32  # the call form of functions that no pointer can call


def explicit_choice(
    b: Builder, overloads: Overloads, wanted: Type | None
) -> tuple[tree.Function, dict[str, Any], Record | None, tuple[Type, ...]]:
    """The overload whose address is taken, and its parameter types: the one of the wanted type, or the only one."""
    target = wanted.to if isinstance(wanted, (Pointer, Reference)) else wanted
    wanted_types = target.parameters if isinstance(target, FunctionType) else ()
    program = b.program
    for node, record, _ in overloads.candidates:
        if record is not None and "static" not in node.specifiers:
            raise b.refuse(f"{node.name} is a function of {record.name} and is not called: {node.name}()")
        env = surroundings(program, node, record)
        bindings: dict[str, Any] = {}
        if node.template:
            made = deduce(program, node, overloads.arguments, [Value(t, "") for t in wanted_types], env, b.env)
            if made is None:
                continue
            bindings = made
        inner = Environment({**env.bindings, **bindings}, env.scope, env.record)
        parameters = tuple(program.resolve(p.type, inner) for p in node.parameters)
        if isinstance(target, FunctionType) and parameters != target.parameters:
            continue
        return program.definition(node), bindings, record, parameters
    raise b.refuse(f"no function {overloads.name} fits here")


def call_form(type_: FunctionType) -> int:
    """A hash of what caller and callee must agree on for memory safety. Scalars in registers may differ in number.
    Objects are passed by addresses that the callee does not check, so their positions must match; parameters beyond
    the registers are on the stack, so all their types must match."""
    objects = [isinstance(t, (Record, Array)) for t in (type_.result, *type_.parameters)]
    if not any(objects) and len(type_.parameters) <= IN_REGISTERS:
        return 0
    kinds = [t.llvm for t in type_.parameters]
    return zlib.crc32(repr((objects, kinds if len(kinds) > IN_REGISTERS else [])).encode())


def require_function(b: Builder, pointer: str, type_: FunctionType) -> None:
    """End the program if a pointer is not a function of it with this call form. Kernels use handles instead."""
    known = b.make(f"call i1 @known_function(ptr {pointer}, i64 {call_form(type_)})")
    wild, at = b.make(f"xor i1 {known}, true"), b.make(f"ptrtoint ptr {pointer} to i64")
    b.report_if(wild, "rt_bad_call", [("i64", at), ("i32", b.line_text())])
