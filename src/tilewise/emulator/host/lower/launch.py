"""kernel<<<grid, block, shared, stream>>>(…): store the arguments to memory, then call rt_launch."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.checked_memory import check_range, copy_bytes, store
from tilewise.emulator.host.lower.conversion import convert, rvalue
from tilewise.emulator.host.lower.operands import operands
from tilewise.emulator.host.lower.program import LaunchSite, Program
from tilewise.emulator.host.lower.values import FULL, INIT, Actual, Overloads, Place, Value
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Array, Record, Reference, Type
from tilewise.emulator.sema.given import free
from tilewise.emulator.sema.overload import NoMatch, choose, no_match
from tilewise.emulator.sema.symbol_table import Environment


def lower_launch(b: Builder, node: tree.Launch) -> Value:
    program = b.program
    assert node.kernel is not None
    kernel = b.lower(node.kernel)
    values: list[Any]
    if isinstance(kernel, Overloads):
        values = operands(b, node.arguments)
        site, handle = _known_kernel(b, node, kernel, values), "null"
    else:
        site, handle, values = _through_pointer(b, node, kernel)
    offsets, size = argument_offsets(program, site.parameters)
    site.offsets += offsets
    space = b.temporary(Array(types.CHAR, max(1, size)))
    for i, (type_, offset) in enumerate(zip(site.parameters, offsets, strict=True)):
        value = values[i] if i < len(values) else _default(b, site.kernel, site.bindings, i)
        _argument(b, value, type_, b.offset(space, offset))
    dim3 = program.resolve(tree.TypeName("dim3"), Environment())
    if len(node.configuration) < 2:
        raise b.refuse("a launch needs a grid and a block: <<<grid, block>>>", node)
    grid = _dim3(b, node.configuration[0], dim3)
    block = _dim3(b, node.configuration[1], dim3)
    shared, stream = "0", "0"
    if len(node.configuration) > 2:
        shared = convert(b, b.lower(node.configuration[2]), types.ULONG).text
    if len(node.configuration) > 3:
        given = convert(b, b.lower(node.configuration[3]), types.VOIDP)
        stream = b.make(f"ptrtoint ptr {given.text} to i64")
    number = len(program.launches)
    program.launches.append(site)
    program.external("rt_launch")
    b.line = node.line
    b.note_line(node.line)
    b.emit(
        f"call void @rt_launch(i32 {number}, ptr {handle}, ptr {grid}, ptr {block}, i64 {shared}, i64 {stream}, "
        f"ptr {space})"
    )
    return Value(types.VOID, "")


def _known_kernel(b: Builder, node: tree.Launch, kernel: Overloads, values: list[Any]) -> LaunchSite:
    program = b.program
    kernels = free(c for c in kernel.functions if "__global__" in c.specifiers)
    if not kernels:
        raise b.refuse(f"{kernel.name} is not a __global__ function and cannot be launched", node.kernel)
    try:
        choice = choose(b.program, b.env, kernel.name, kernels, kernel.arguments, values)
    except NoMatch:
        raise b.refuse(no_match(kernel.name, kernels, values), node) from None
    b.line = node.line
    env = Environment(choice.bindings, choice.node.scope)
    parameters = [types.bare(program.resolve(p.type, env)) for p in choice.node.parameters]
    return LaunchSite(node, program.definition(choice.node), choice.bindings, parameters, [])


def _default(b: Builder, kernel: tree.Function | None, bindings: dict[str, Any], i: int) -> Any:
    assert kernel is not None  # through a pointer, every argument is given
    with b.environment(Environment(bindings, kernel.scope)):
        return b.lower(kernel.parameters[i].default)


def _through_pointer(b: Builder, node: tree.Launch, kernel: Any) -> tuple[LaunchSite, str, list[Any]]:
    """kernels[i]<<<…>>>(…): the kernel is known at run time, its parameter types now."""
    pointer = rvalue(b, kernel)
    target = pointer.type.to if isinstance(pointer.type, types.Pointer) else None
    if not isinstance(target, types.FunctionType):
        raise b.refuse("only a __global__ function can be launched", node.kernel)
    if len(target.parameters) != len(node.arguments):
        raise b.refuse(f"this kernel takes {len(target.parameters)} arguments, {len(node.arguments)} are given", node)
    values = operands(b, node.arguments)
    return LaunchSite(node, None, {}, [types.bare(t) for t in target.parameters], []), pointer.text, values


def argument_offsets(program: Program, parameters: list[Type]) -> tuple[list[int], int]:
    """Offset of each argument in a launch's argument block, and the block's size."""
    offsets, at = [], 0
    for type_ in parameters:
        size = program.size_of(type_)
        at = -(-at // max(1, type_.align)) * max(1, type_.align)
        offsets.append(at)
        at += size
    return offsets, at


def _argument(b: Builder, value: Actual, type_: Type, address: str) -> None:
    if isinstance(type_, Record):
        copy_bytes(b, address, convert(b, value, type_).text, type_.size)
    elif isinstance(type_, Reference):
        raise b.refuse("a kernel cannot take references")
    else:
        store(b, Place(type_, address, INIT), convert(b, value, type_).text)


def _dim3(b: Builder, node: Any, dim3: Type) -> str:
    assert isinstance(dim3, Record)
    if isinstance(node, tree.Braces):
        return str(b.make_temporary(dim3, [node]).text)
    value = b.lower(node)
    if isinstance(value, (Value, Place)) and value.type is dim3:
        if isinstance(value, Place) and value.check == FULL:
            return check_range(b, value.address, dim3.size, False)
        return value.address if isinstance(value, Place) else value.text
    if isinstance(value, (Value, Place)) and isinstance(value.type, types.Scalar):
        value = convert(b, value, types.UINT)
    return convert(b, value, dim3).text
