"""Variables of the card in kernels: __device__, __constant__ and __shared__."""

from __future__ import annotations

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.values import FULL, SHARED, UNCHECKED, Local, Place
from tilewise.emulator.parse import tree
from tilewise.emulator.parse.types import Record, Type
from tilewise.emulator.sema.symbol_table import HOST_VARIABLE

MAX_DYNAMIC_SHARED = 228 << 10
ON_THE_CARD = frozenset({"__device__", "__constant__", "__managed__"})
STREAMS = ("std::cout", "std::cerr", "std::clog", "std::cin")


def card_variable(b: Builder, name: str, item: tree.Variable, place: Place) -> Place:
    """A global variable in device code."""
    if name in STREAMS and not b.library:
        raise b.refuse(f"{name} is the host's: a kernel prints with printf")
    if name in b.program.library_variables:
        place.check = UNCHECKED  # threadIdx, blockIdx, …
    elif item.specifiers & ON_THE_CARD:
        place.check = FULL
    elif not b.library:
        raise b.refuse(f"{name} {HOST_VARIABLE}")
    return place


def declare_shared(b: Builder, item: tree.Variable) -> None:
    """__shared__ T x[…] inside a kernel."""
    place = shared_place(b, item)
    b.declare(item.name, Local(place.type, place.address, place.check))


def shared_place(b: Builder, item: tree.Variable) -> Place:
    program = b.program
    type_: Type = program.resolve(item.type, b.env)
    if "extern" in item.specifiers:
        if not program.dynamic_shared:
            program.dynamic_shared = program.memory.static(MAX_DYNAMIC_SHARED, item.name, False)
            program.shared.append((program.dynamic_shared, MAX_DYNAMIC_SHARED))
            if program.recording is not None:
                program.recording.shared.append((item.name, type_, program.dynamic_shared))
        address = program.dynamic_shared
        return Place(type_, f"inttoptr (i64 {address} to ptr)", FULL, name=item.name)
    size = program.size_of(type_)
    address = program.memory.static(size, item.name, False)
    program.shared.append((address, size))
    if program.recording is not None:
        program.recording.shared.append((item.name, type_, address))
    check = UNCHECKED
    if isinstance(type_, Record):
        pass  # its methods do not set states
    elif program.recording is not None:
        check = SHARED
    elif program.instrumented and "volatile" not in item.specifiers:
        check = FULL
        program.uninitialised_shared.append((address, size))
    return Place(type_, f"inttoptr (i64 {address} to ptr)", check, name=item.name)
