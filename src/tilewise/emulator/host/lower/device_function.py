"""Pointers to __device__ functions: handles, and dispatch of calls by handle.

Each kernel is a module with its own copies of functions, and the host, which copies such pointers, has none: machine
addresses are not valid between them. A handle is the address of 16 unused bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.function_pointers import explicit_choice
from tilewise.emulator.host.lower.program import Instance, Program
from tilewise.emulator.host.lower.values import Overloads, Value
from tilewise.emulator.parse import tree
from tilewise.emulator.parse.types import Array, FunctionType, Pointer, Record, Type


@dataclass
class DeviceFunction:
    node: tree.Function
    bindings: dict[str, Any]
    record: Record | None
    parameters: tuple[Type, ...]


def device_handle(b: Builder, overloads: Overloads, wanted: Type | None) -> Value:
    """The handle of the overload of the wanted type, or of the only one."""
    node, bindings, record, parameters = explicit_choice(b, overloads, wanted)
    functions = b.program.device_functions
    key = (id(node), str(bindings), id(record))
    if key not in functions:
        made = DeviceFunction(node, bindings, record, parameters)
        functions[key] = (int(b.program.memory.constant(bytes(16))), made)
    text = f"inttoptr (i64 {functions[key][0]} to ptr)"
    if isinstance(wanted, Pointer):
        return Value(wanted, text)
    instance = b.program.instance(node, bindings, record)
    return Value(Pointer(FunctionType(instance.result, tuple(instance.parameters))), text)


def call_by_handle(b: Builder, pointer: str, target: FunctionType, given: list[tuple[str, str]]) -> str:
    """Call the function of this type that the handle stands for."""
    called = b.program.called_by_handle
    symbol, _ = called.setdefault(str(target), (f"@by_handle.{len(called)}", target))
    b.calls.add("%by_handle")  # may reach any function
    void = "void" if isinstance(target.result, (Record, Array)) else None
    return b.call(target.result, symbol, [("ptr", pointer), ("i32", b.line_text()), *given], void)


def handle_targets(p: Program) -> dict[str, list[tuple[int, Instance]]]:
    """For each function type that is called by handle, the functions of that type whose handle was taken."""
    out: dict[str, list[tuple[int, Instance]]] = {}
    for symbol, target in p.called_by_handle.values():
        out[symbol] = []
        for address, one in list(p.device_functions.values()):
            if one.parameters == tuple(target.parameters):
                instance = p.instance(one.node, one.bindings, one.record)
                if instance.result == target.result:
                    out[symbol].append((address, instance))
    return out


def by_handle_text(p: Program, cases: dict[str, list[tuple[int, Instance]]]) -> list[str]:
    out: list[str] = []
    for symbol, target in p.called_by_handle.values():
        p.external("rt_bad_call")
        object_ = isinstance(target.result, (Record, Array))
        kinds = ["ptr"] * object_ + ["ptr" if isinstance(t, (Record, Array)) else t.llvm for t in target.parameters]
        given = [f"{kind} %a{i}" for i, kind in enumerate(kinds)]
        result = "void" if object_ else target.result.llvm
        arms = " ".join(f"i64 {address}, label %f{address}" for address, _ in cases[symbol])
        out += [f"define internal {result} {symbol}({', '.join(['ptr %f', 'i32 %line', *given])}) #0 alwaysinline {{",
                "  %at = ptrtoint ptr %f to i64", f"  switch i64 %at, label %wild [ {arms} ]"]  # fmt: skip
        for address, instance in cases[symbol]:
            call = f"call {result} {instance.symbol}({', '.join(given)})"
            named, value = ("", "void") if result == "void" else (f"%r{address} = ", f"{result} %r{address}")
            out += [f"f{address}:", f"  {named}{call}", f"  ret {value}"]
        out += ["wild:", "  call void @rt_bad_call(i64 %at, i32 %line) cold",
                "  ret void" if result == "void" else f"  ret {result} zeroinitializer", "}"]  # fmt: skip
    return out
