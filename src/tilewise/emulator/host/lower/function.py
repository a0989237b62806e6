"""Lowers one function to LLVM text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilewise.emulator.host.lower import call, expression, initialise, objects, statement
from tilewise.emulator.host.lower.barrier_checks import note_end
from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.checked_memory import copy_bytes, store
from tilewise.emulator.host.lower.conversion import rvalue
from tilewise.emulator.host.lower.escapes import escaping
from tilewise.emulator.host.lower.function_text import by_address
from tilewise.emulator.host.lower.objects import construct, construct_members
from tilewise.emulator.host.lower.operands import operands
from tilewise.emulator.host.lower.program import AUTO, DESTROY, Instance, Program
from tilewise.emulator.host.lower.recorded_text import begin_function
from tilewise.emulator.host.lower.reference_comparisons import find_comparisons
from tilewise.emulator.host.lower.values import INIT, UNCHECKED, Local, Overloads, Place, Value
from tilewise.emulator.host.lower.virtual import store_vptrs
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Pointer, Record, Reference, Type, stored
from tilewise.emulator.sema.bodies import body_of
from tilewise.emulator.sema.symbol_table import Environment


class Lowering(Builder):
    """A builder with the lowerings that call each other."""

    lower = expression.lower
    statement = statement.statement
    initialise = initialise.initialise
    call_method = call.call_method
    make_temporary = objects.make_temporary
    destroy = objects.destroy
    destroy_array = objects.destroy_array


class LoweredProgram(Program):
    def write(self, instance: Instance) -> None:
        write(self, instance)

    def type_of(self, node: Any, env: Environment) -> Type:
        return type_of(self, node, env)


def write(p: Program, instance: Instance) -> None:
    node = instance.node
    p.device = instance.device
    b = Lowering(p, instance.env, node.library)
    b.line = node.line
    b.result = instance.result
    b.variadic = node.variadic
    body = b.body = body_of(p, node, instance.env, p.lenient and not instance.device)
    find_comparisons(b, body)
    b.escaping = escaping(b, [body, *(i[1] for i in node.initialisers)], isinstance(instance.result, Reference))
    if instance.lambda_ is not None:
        instance.lambda_.enter(b)
    elif instance.record is not None:
        const = "const method" in node.specifiers
        b.this = Value(Pointer(instance.record, const), "%this")
    begin_function(b, node, body)
    with b.scope():
        declare_parameters(b, instance)
        if node.name == "<new>":
            _construct_members(b, instance)
        elif node.name == "~" and instance.record is not None:
            store_vptrs(b, instance.record, "%this")
        elif node.name == DESTROY:
            assert instance.record is not None
            b.destroy(instance.record, "%this")
        b.statement(body)
    if b.open:
        _falls_off(b, instance)
        note_end(b, instance)
        b.jump("leave")
    if b.result is AUTO:
        b.result = types.VOID
    instance.result = b.result if b.result is not None else types.VOID
    instance.frame = b.frame
    instance.calls = b.calls
    instance.text = function_text(b, instance)


def _falls_off(b: Builder, instance: Instance) -> None:
    """Report that control reaches the end of a function with a result."""
    result = instance.result
    if result in (types.VOID, AUTO) or instance.node.name in ("main", "<new>", "~") or instance.node.library:
        return
    b.program.external("rt_no_return")
    name_id = b.program.name_number(instance.node.name)
    b.emit(f"call void @rt_no_return(i32 {name_id}, i32 {instance.node.line})")


def declare_parameters(b: Builder, instance: Instance) -> None:
    for i, (parameter, type_) in enumerate(zip(instance.node.parameters, instance.parameters, strict=True)):
        if not parameter.name:
            continue
        text = f"%p{i}"
        const = isinstance(parameter.type, tree.TypeConst)
        if isinstance(type_, Reference):
            slot = b.alloca("ptr")
            b.emit(f"store ptr {text}, ptr {slot}")
            b.declare(parameter.name, Local(type_, slot, UNCHECKED, reference=True))
        elif isinstance(type_, Record):
            if "__global__" in instance.node.specifiers:  # each thread gets a copy
                address = b.frame_slot(type_.size, type_.align)
                copy_bytes(b, address, text, type_.size)
                text = address
            b.declare(parameter.name, Local(type_, text, INIT, const=const))
        elif parameter.name in b.escaping:
            address = b.frame_slot(type_.size, type_.align)
            store(b, Place(type_, address, INIT), text)
            b.declare(parameter.name, Local(type_, address, UNCHECKED, const=const))
        else:
            slot = b.alloca(stored(type_))
            b.emit(f"store {stored(type_)} {b.to_memory(type_, text)}, ptr {slot}")
            b.declare(parameter.name, Local(type_, slot, UNCHECKED, register=True, const=const))


def _construct_members(b: Builder, instance: Instance) -> None:
    """Members and bases, by the constructor's initialiser list or else by default."""
    record = instance.record
    assert record is not None
    given: dict[str, Any] = {}
    bases: dict[int, Any] = {}
    for target, value in instance.node.initialisers:
        if isinstance(target, str):
            if record.field(target) is None:
                raise b.refuse(f"{record} has no member {target}", instance.node)
            given[target] = value
            continue
        type_ = b.program.resolve(target, b.env)
        if type_ is record:  # a delegating constructor
            construct(b, record, "%this", operands(b, value) if isinstance(value, list) else [value])
            return
        bases[id(type_)] = value
    construct_members(b, record, "%this", given, bases)


def signature(instance: Instance) -> tuple[str, str]:
    """LLVM result type and parameters."""
    parameters: list[str] = []
    result = instance.result.llvm
    if instance.returns_object:
        parameters.append(f"{by_address(instance.result)} %result")
        result = "void"
    if instance.record is not None:
        parameters.append(f"{by_address(instance.record)} %this")
    parameters += [
        f"{by_address(t) if isinstance(t, Record) else t.llvm} %p{i}" for i, t in enumerate(instance.parameters)
    ]
    if instance.node.variadic:  # as `pack_variadic` lays them out
        parameters += ["ptr %variadic", "i64 %variadic_count"]
    return result, ", ".join(parameters)


def function_text(b: Builder, instance: Instance) -> list[str]:
    result, parameters = signature(instance)
    out = [f"define {result} {instance.symbol}({parameters}) {b.attributes} {{", "entry:"]
    if result != "void":
        out.append(f"  %returned = alloca {result}")
        out.append(f"  store {result} zeroinitializer, ptr %returned")
    out += b.allocas
    out.append("@@ENTER@@")
    out += b.slots
    out += b.lines
    out.append("leave:")
    out.append("@@LEAVE@@")
    if result == "void":
        out.append("  ret void")
    else:
        out.append(f"  %give = load {result}, ptr %returned")
        out.append(f"  ret {result} %give")
    out.append("}")
    return out


def type_of(p: Program, node: Any, env: Environment) -> Type:
    """decltype: lower the expression with a separate builder, keep only its type."""
    b = Lowering(p, replace(env), True)
    b.outer = env.local
    value = b.lower(node)
    if isinstance(value, Overloads):
        pointer = rvalue(b, value).type
        taken = isinstance(node, tree.Unary)  # decltype(&f)
        return pointer.to if isinstance(pointer, Pointer) and not taken else pointer
    made: Type = value.type
    return made
