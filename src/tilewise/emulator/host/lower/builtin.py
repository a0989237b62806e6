"""Built-in functions, lowered in place: those that the library's headers cannot express in C++."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewise.emulator.host.lower.async_copies import lower_async
from tilewise.emulator.host.lower.barrier_checks import note_barrier
from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.checked_memory import check_access, check_object
from tilewise.emulator.host.lower.conversion import convert, object_place, rvalue
from tilewise.emulator.host.lower.objects import construct
from tilewise.emulator.host.lower.operands import operands, unevaluated_type
from tilewise.emulator.host.lower.races import EXCHANGE, record_address
from tilewise.emulator.host.lower.recording import record_barrier
from tilewise.emulator.host.lower.values import FULL, INIT, Lowered, Overloads, Place, Value
from tilewise.emulator.parse import tree, types


def _intrinsic(name: str, type_: types.Scalar) -> Callable[[Builder, tree.Call], Value]:
    """An LLVM intrinsic of numbers of one type."""

    def call(b: Builder, node: tree.Call) -> Value:
        given = ", ".join(f"{type_.llvm} {convert(b, b.lower(n), type_).text}" for n in node.arguments)
        b.program.external(name)
        return b.value(type_, f"call {type_.llvm} @{name}({given})")

    return call


def _make(b: Builder, node: tree.Call) -> Lowered:
    """__make(p, …): construct an object at p, of the type that p points to."""
    pointer = convert(b, b.lower(node.arguments[0]), unevaluated_type(b, node.arguments[0]))
    to = pointer.type.to  # type: ignore[attr-defined]
    given = operands(b, node.arguments[1:])
    if isinstance(to, types.Record):
        b.set_state(pointer.text, str(b.program.size_of(to)), 1)
        b.program.memory.may_uninitialise = True
        construct(b, to, pointer.text, given)
        return Value(types.VOID, "")
    b.initialise(Place(to, pointer.text, INIT), given[0] if given else Value(types.INT, "0"))
    return Value(types.VOID, "")


def _unmake(b: Builder, node: tree.Call) -> Lowered:
    """__unmake(p): destroy the object at p."""
    _destroy_pointee(b, node)
    return Value(types.VOID, "")


def _destroy_pointee(b: Builder, node: tree.Call) -> tuple[Any, Any]:
    """Call the destructor; the pointer, and the type that it points to."""
    pointer = rvalue(b, b.lower(node.arguments[0]))
    assert isinstance(pointer.type, types.Pointer)
    to = pointer.type.to
    if isinstance(to, types.Record) and not b.program.layout(to).trivial:
        b.destroy(to, check_object(b, pointer.text, to.size))
    return pointer, to


def _drop(b: Builder, node: tree.Call) -> Lowered:
    """__drop(p): destroy the object and make its bytes unaddressable; a new epoch invalidates checks of them."""
    pointer, to = _destroy_pointee(b, node)
    b.set_state(pointer.text, str(b.program.size_of(to)), 0)
    b.program.memory.may_uninitialise = True
    epoch = f"ptr inttoptr (i64 {b.program.memory.epoch_address} to ptr)"
    after = b.make(f"add i64 {b.make(f'load i64, {epoch}')}, 1")
    b.emit(f"store i64 {after}, {epoch}")
    return Value(types.VOID, "")


def _addressof(b: Builder, node: tree.Call) -> Lowered:
    value = b.lower(node.arguments[0])
    if isinstance(value, Overloads):
        return value
    place = object_place(value)
    return Value(types.Pointer(place.type), place.address)


def _variadic(b: Builder, node: tree.Call) -> Lowered:
    """The variadic arguments of this call: the start of a va_list."""
    _require_variadic(b, node)
    return Value(types.Pointer(types.CHAR), "%variadic")


def _require_variadic(b: Builder, node: tree.Call) -> None:
    if not b.variadic:
        raise b.refuse("va_start stands in a function that takes no further arguments (...)", node)


def _variadic_count(b: Builder, node: tree.Call) -> Lowered:
    _require_variadic(b, node)
    return Value(types.LONG, "%variadic_count")


def _wait(b: Builder, node: tree.Call) -> Value:
    """A barrier: 1 of the block, 2 of the warp, 4 of the warp's active threads; 8, of the grid, is interpreted; 16 lets
    other threads run."""
    if isinstance(node.arguments[0], tree.Number) and node.arguments[0].value == 8:
        raise b.refuse("a barrier of the whole grid is not compiled", node)
    kind = convert(b, b.lower(node.arguments[0]), types.INT)
    if b.program.recording is not None:
        record_barrier(b)
    note_barrier(b)
    b.program.external("rt_barrier")
    b.calls.add("@rt_barrier")
    b.noted_line = 0
    b.emit(f"call void @rt_barrier(i32 {kind.text})")
    return Value(types.VOID, "")


def _accessed(b: Builder, node: tree.Call) -> Value:
    """__accessed(p, write): an access of the library that counts as the program's when races are looked for."""
    pointer, write = (rvalue(b, b.lower(n)) for n in node.arguments)
    if b.program.instrumented:
        if int(write.text) == EXCHANGE:
            check_access(b, pointer.text, pointer.type.to.size, FULL, write=True)  # type: ignore[attr-defined]
        record_address(b, b.make(f"ptrtoint ptr {pointer.text} to i64"), int(write.text))
    return Value(types.VOID, "")


BUILTIN = {
    "__builtin_sqrt": _intrinsic("llvm.sqrt.f64", types.DOUBLE),
    "__builtin_sqrtf": _intrinsic("llvm.sqrt.f32", types.FLOAT),
    "__builtin_fabs": _intrinsic("llvm.fabs.f64", types.DOUBLE),
    "__builtin_fabsf": _intrinsic("llvm.fabs.f32", types.FLOAT),
    "__builtin_fmin": _intrinsic("llvm.minnum.f64", types.DOUBLE),
    "__builtin_fminf": _intrinsic("llvm.minnum.f32", types.FLOAT),
    "__builtin_fmax": _intrinsic("llvm.maxnum.f64", types.DOUBLE),
    "__builtin_fmaxf": _intrinsic("llvm.maxnum.f32", types.FLOAT),
    "__make": _make, "__unmake": _unmake, "__drop": _drop, "std::addressof": _addressof,
    **dict.fromkeys(("__async_copy", "__async_commit", "__async_wait", "__async_phase"), lower_async),
    "__accessed": _accessed, "__wait": _wait, "__variadic": _variadic, "__variadic_count": _variadic_count,
}  # fmt: skip

INTERNAL = frozenset(
    {"__make", "__unmake", "__drop", "__wait", "__accessed"}
)  # only the library may call them: no pointer checks
