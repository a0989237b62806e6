"""Pointers to kernels in host code: handles by which a launch finds the kernel.

A handle is the address of 16 unused bytes; each kernel has its own."""

from __future__ import annotations

from dataclasses import replace

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.function_pointers import explicit_choice
from tilewise.emulator.host.lower.program import KernelHandle
from tilewise.emulator.host.lower.values import Overloads, Value
from tilewise.emulator.parse import types
from tilewise.emulator.parse.types import FunctionType, Pointer, Type
from tilewise.emulator.sema.given import free
from tilewise.errors import KernelError


def kernel_handle(b: Builder, overloads: Overloads, wanted: Type | None) -> Value:
    """The handle of the overload of the wanted type, or of the only one."""
    target = wanted.to if isinstance(wanted, (Pointer, types.Reference)) else wanted
    kernels = [c for c in overloads.functions if "__global__" in c.specifiers]
    kernels.sort(key=lambda k: k.tokens is None)  # definitions before declarations
    try:
        node, bindings, _, found = explicit_choice(b, replace(overloads, candidates=free(kernels)), wanted)
    except KernelError:
        if kernels and isinstance(target, FunctionType):
            raise b.refuse(f"no kernel {overloads.name} has the type {target}") from None
        return Value(wanted if isinstance(wanted, Pointer) else types.VOIDP, "null")
    parameters = [types.bare(p) for p in found]
    address = _address(b, KernelHandle(node, bindings, parameters))
    type_ = wanted if isinstance(wanted, Pointer) else Pointer(FunctionType(types.VOID, tuple(parameters)))
    return Value(type_, f"inttoptr (i64 {address} to ptr)")


def _address(b: Builder, handle: KernelHandle) -> int:
    handles = b.program.kernel_handles
    for address, known in handles.items():
        if known.node is handle.node and {k: str(v) for k, v in known.bindings.items()} == {
            k: str(v) for k, v in handle.bindings.items()
        }:
            return address
    address = int(b.program.memory.constant(bytes(16)))
    handles[address] = handle
    return address
