"""Global variables and statics: memory at a fixed address, initialised before main."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.device_variables import card_variable, shared_place
from tilewise.emulator.host.lower.initialise import complete_type
from tilewise.emulator.host.lower.never_assigned import never_assigned
from tilewise.emulator.host.lower.objects import default_initialise
from tilewise.emulator.host.lower.values import FULL, INIT, UNCHECKED, Local, Place, Value
from tilewise.emulator.parse import tree
from tilewise.emulator.parse.types import Array, Record, Reference, Type, innermost
from tilewise.emulator.sema.symbol_table import Environment

DEVICE = frozenset({"__device__", "__constant__", "__managed__"})
CONSTANT_BYTES = 64 << 10  # of every card
ON_THE_STACK = 64 << 10  # bytes of a __device__ variable's values that may be prepared on the program's stack


def _pointer(address: int) -> str:
    return f"inttoptr (i64 {address} to ptr)"


def static_memory(b: Builder, size: int) -> str:
    return _pointer(b.program.memory.static(size, "", False))


def global_place(b: Builder, name: str) -> Value | Place:
    """A global variable; its memory is allocated when it is first named."""
    program = b.program
    if "__shared__" in program.entities.variables[name].specifiers:
        if not program.device:
            raise b.refuse(f"{name} is shared memory of a block: only kernels have it", None)
        return shared_place(b, program.entities.variables[name])
    type_, address = memory_of(b, name)
    place = Place(type_, _pointer(address), INIT, name=name)
    if isinstance(type_, Reference):
        return Place(type_.to, b.make(f"load ptr, ptr {place.address}"), FULL, name=name)
    item = program.entities.variables[name]
    place.const = isinstance(item.type, tree.TypeConst)
    if program.device:
        return card_variable(b, name, item, place)
    if item.specifiers & DEVICE and "__managed__" not in item.specifiers:
        place.check = FULL  # the host may take its address, but not access it
    return place


def memory_of(b: Builder, name: str) -> tuple[Type, int]:
    program = b.program
    if name not in program.globals:
        item = program.entities.variables[name]
        with b.environment(Environment(scope=name.rpartition("::")[0])):
            type_ = _type(b, item)
        device = bool(item.specifiers & DEVICE)
        managed = "__managed__" in item.specifiers
        unset = device and not managed and never_assigned(program.entities, name, item)
        if "__constant__" in item.specifiers:
            program.constant_bytes += program.size_of(type_)
            if program.constant_bytes > CONSTANT_BYTES:
                message = f"the __constant__ variables take {program.constant_bytes} bytes: a card has {CONSTANT_BYTES}"
                raise program.refusal(message, item.line, item.column)
        address = program.memory.static(program.size_of(type_), name, device, managed, unset, item.line)
        program.globals[name] = (type_, address)
    return program.globals[name]


def _type(b: Builder, item: tree.Variable) -> Type:
    written = item.type.of if isinstance(item.type, tree.TypeConst) else item.type
    if tree.is_auto(item.type) and not isinstance(written, tree.TypePointer):
        if item.init is None:
            raise b.refuse(f"{item.name} is auto and has no value", item)
        made = b.program.type_of(item.init, b.env)
        return (
            Reference(made, isinstance(written.to, tree.TypeConst)) if isinstance(written, tree.TypeReference) else made
        )
    init = item.init if item.init is not None else item.arguments
    return complete_type(b, b.program.resolve(item.type, b.env), init)


def initialise_globals(b: Builder) -> None:
    """Every variable of the program, in the order of the file; of the library's, those that are used."""
    program = b.program
    for name in program.entities.order:
        item = program.entities.variables[name]
        if "function" in item.specifiers or ("extern" in item.specifiers and item.init is None):
            continue
        if name in program.library_variables and name not in program.globals:
            continue
        b.env = Environment(scope=name.rpartition("::")[0])
        b.line = item.line
        type_, address = memory_of(b, name)
        init: Any = item.init if item.init is not None else item.arguments
        if item.specifiers & DEVICE:
            _device(b, item, type_, address)
            continue
        if init is None:
            inner = innermost(type_)
            if not isinstance(inner, Record):
                continue
        with b.full_expression():
            if init is None:
                default_initialise(b, type_, _pointer(address))
            else:
                b.initialise(Place(type_, _pointer(address), INIT), init)
        if name not in program.library_variables:
            _ends_with_the_program(b, type_, address)


def _device(b: Builder, item: tree.Variable, type_: Type, address: int) -> None:
    """Initialise a __device__ variable: evaluate the initialiser on the host, then copy the bytes."""
    if item.init is None:
        return
    size = b.program.size_of(type_)
    large = size > ON_THE_STACK
    space = static_memory(b, size) if large else b.temporary(type_)
    b.for_card = True
    b.initialise(Place(type_, space, INIT), item.init)
    b.for_card = False
    b.emit(f"call void @llvm.memmove.p0.p0.i64(ptr {_pointer(address)}, ptr {space}, i64 {size}, i1 false)")


def _ends_with_the_program(b: Builder, type_: Type, address: int) -> None:
    """Register its destructor, which runs after main, in reverse order of construction."""
    if isinstance(type_, Record) and not b.program.layout(type_).trivial and not b.program.device:
        b.program.external("rt_static_destructor")
        destroyer = b.program.destroyer(type_).symbol
        b.emit(f"call void @rt_static_destructor(ptr {destroyer}, ptr {_pointer(address)})")


def local_static(b: Builder, item: tree.Variable) -> None:
    """static int n = 0; inside a function: initialised when it is first reached."""
    type_ = _type(b, item)
    address = b.program.memory.static(b.program.size_of(type_), item.name, False)
    init: Any = item.init if item.init is not None else item.arguments
    if init is not None or isinstance(type_, Record):
        flag = b.program.memory.static(8, "", False)
        once, done = b.label(), b.label()
        b.branch(b.make(f"icmp eq i8 {b.make(f'load i8, ptr {_pointer(flag)}')}, 0"), once, done)
        b.begin(once)
        b.emit(f"store i8 1, ptr {_pointer(flag)}")
        b.initialise(Place(type_, _pointer(address), INIT), init if init is not None else [])
        _ends_with_the_program(b, type_, address)
        b.begin(done)
    check = INIT if isinstance(type_, (Record, Array)) else UNCHECKED
    b.declare(item.name, Local(type_, _pointer(address), check, reference=isinstance(type_, Reference), static=True))


def static_member(b: Builder, record: Record, name: str, item: tree.Variable) -> Place:
    program = b.program
    if name not in program.globals:
        with b.environment(program.record_environment(record)):
            type_ = complete_type(b, program.resolve(item.type, b.env), item.init)
        program.globals[name] = (type_, program.memory.static(program.size_of(type_), name, False))
    type_, address = program.globals[name]
    return Place(type_, _pointer(address), INIT, name=name)
