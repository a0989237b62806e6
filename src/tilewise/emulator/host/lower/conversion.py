"""Conversions between types, lvalue to rvalue, and to references."""

from __future__ import annotations

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.checked_memory import store
from tilewise.emulator.host.lower.device_function import device_handle
from tilewise.emulator.host.lower.function_pointers import NO_FORM, call_form, explicit_choice
from tilewise.emulator.host.lower.kernel_handle import kernel_handle
from tilewise.emulator.host.lower.lanes.linear import as_scalar
from tilewise.emulator.host.lower.lanes.mask import vector
from tilewise.emulator.host.lower.places import load
from tilewise.emulator.host.lower.values import (
    FULL,
    INIT,
    Actual,
    InterleavedPlace,
    Lowered,
    NotInLockstep,
    Overloads,
    Place,
    Value,
    Wide,
    WidePlace,
    is_object,
)
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import (
    Array,
    FunctionType,
    Pointer,
    Record,
    Reference,
    Scalar,
    Type,
)  # fmt: skip
from tilewise.emulator.sema.given import free
from tilewise.emulator.sema.overload import conversion_operator, is_plain_function, reference_operator, same, with_auto


def rvalue(b: Builder, value: Actual) -> Value:
    """Lvalue to rvalue: a place is loaded, an array or function decays to a pointer."""
    if isinstance(value, Overloads):
        return function_address(b, value, None)
    if isinstance(value, tree.Braces):
        raise b.refuse("a list in braces needs a type here", value)
    if isinstance(value.type, Array) and not isinstance(value, (WidePlace, InterleavedPlace)):
        address = value.address if isinstance(value, Place) else value.text
        return Value(Pointer(value.type.of), address)
    if isinstance(value, Place):
        if isinstance(value.type, FunctionType):
            return Value(Pointer(value.type), value.address)
        return load(b, value)
    return value


def function_address(b: Builder, overloads: Overloads, wanted: Type | None) -> Value:
    on_card = any(c.on_device for c in overloads.functions)
    kernels = any("__global__" in c.specifiers for c in overloads.functions)
    if not kernels and (on_card or b.program.device or b.for_card):
        return device_handle(b, overloads, wanted)
    if on_card and not b.program.device:
        return kernel_handle(b, overloads, wanted)
    node, bindings, record, _ = explicit_choice(b, overloads, wanted)
    instance = b.program.instance(node, bindings, record)
    b.calls.add(instance.symbol)
    type_ = FunctionType(instance.result, tuple(instance.parameters))
    special = instance.record is not None or instance.node.variadic  # they take more than their parameters
    b.program.address_taken[instance.symbol] = NO_FORM if special else call_form(type_)
    return Value(Pointer(type_), instance.symbol)


def convert(b: Builder, value: Actual, type_: Type, explicit: bool = False) -> Value:
    """A value of `type_` from any value; for classes, a new temporary where constructors are needed."""
    if isinstance(type_, Reference):
        return bind(b, value, type_)
    if isinstance(value, Overloads) and not isinstance(type_, Scalar):  # a number or a bool is made of its address
        if explicit and len(value.functions) == 1 and not value.functions[0].on_device:
            return Value(type_, function_address(b, value, None).text)  # (int (*)(const void*, const void*))compare
        if isinstance(type_, Pointer) and not isinstance(type_.to, FunctionType) and type_.to is not types.VOID:
            raise b.refuse(f"{value.name} is a function and does not become {type_}")
        return function_address(b, value, type_)
    if explicit and type_ is types.VOID:  # (void)x of any x, objects of classes too
        return Value(type_, "")
    if isinstance(type_, Record):
        if isinstance(value, Value) and value.type is type_:
            return value
        return b.make_temporary(type_, [value])
    source = rvalue(b, value)
    if isinstance(source.type, Record):
        return _by_operator(b, value if is_object(value) else source, source.type, type_)
    made = scalar(b, source, type_, explicit)
    if made is None:
        raise b.refuse(f"{source.type} does not become {type_}")
    return made


def _by_operator(b: Builder, value: Lowered, record: Record, type_: Type) -> Value:
    if is_plain_function(record, type_):  # a lambda
        if "static" not in record.methods:
            call = with_auto(record.methods["operator()"][0])
            record.methods["static"] = [call.updated(name=record.name, specifiers=frozenset({"static"}))]
        return function_address(b, Overloads(record.name, free(record.methods["static"])), type_)
    wanted = conversion_operator(b.program, record, type_)
    if wanted is None:
        raise b.refuse(f"{record} does not become {type_}")
    return convert(b, b.call_method(value, wanted, []), type_)


def scalar(b: Builder, v: Value, type_: Type, explicit: bool = False) -> Value | None:
    """Between scalars and pointers; None where C++ has no such conversion."""
    source = v.type
    if isinstance(type_, Scalar) and type_.kind == "void":
        return Value(type_, "")
    if isinstance(v, Wide):
        return _in_lanes(b, v, type_)
    if source == type_:
        return Value(type_, v.text)
    if isinstance(type_, Scalar):
        if isinstance(source, Scalar) and source.kind != "null":
            return as_scalar(b, v, type_)
        if isinstance(source, (Pointer, Scalar)):
            if type_.kind == "bool":
                return Value(type_, b.make(f"icmp ne ptr {v.text}, null"))
            if explicit and type_.integral:
                return as_scalar(b, b.value(types.ULONG, f"ptrtoint ptr {v.text} to i64"), type_)
        return None
    if isinstance(type_, Pointer):
        if isinstance(source, Pointer):
            if isinstance(source.to, Record) and isinstance(type_.to, Record) and source.to is not type_.to:
                return _between_classes(b, v, source.to, type_)
            return Value(type_, v.text)
        if source is types.NULLPTR:
            return Value(type_, "null")
        if isinstance(source, Scalar) and source.integral and (explicit or v.text == "0"):
            return Value(type_, b.make(f"inttoptr i64 {as_scalar(b, v, types.LONG).text} to ptr"))
    return None


def _in_lanes(b: Builder, v: Wide, type_: Type) -> Value:
    source = v.type
    if isinstance(source, Scalar) and isinstance(type_, Scalar):
        return as_scalar(b, v, type_)
    if isinstance(source, Pointer) and type_ is types.BOOL:
        return Wide(type_, b.make(f"icmp ne {vector(b, source)} {v.vector}, zeroinitializer"))
    if not isinstance(source, Pointer) or not isinstance(type_, Pointer):
        raise NotInLockstep(f"{source} as {type_}")
    if source.to is type_.to or not (isinstance(source.to, Record) and isinstance(type_.to, Record)):
        return v.as_type(type_)
    raise NotInLockstep(f"{source} as {type_}")


def _between_classes(b: Builder, v: Value, source: Record, type_: Pointer) -> Value:
    target = type_.to
    assert isinstance(target, Record)
    b.program.layout(source)
    b.program.layout(target)
    up = source.derives(target)
    if up is not None:
        return Value(type_, b.offset(v.text, up))
    down = target.derives(source)
    return Value(type_, b.offset(v.text, -down) if down else v.text)


def truth(b: Builder, value: Actual) -> str:
    """An i1 for a condition."""
    return convert(b, value, types.BOOL).text


def bind(b: Builder, value: Actual, type_: Reference) -> Value:
    """A reference to a place, or to a temporary that holds the value."""
    if isinstance(value, Place) and same(value.type, type_.to):
        if value.register:
            return Value(type_, spill_value(b, load(b, value)))
        return Value(type_, value.address)
    if isinstance(value, Place) and isinstance(value.type, Record) and isinstance(type_.to, Record):
        b.program.layout(value.type)
        up = value.type.derives(type_.to)
        if up is not None:
            return Value(type_, b.offset(value.address, up))
    if isinstance(value, Value) and isinstance(value.type, Record) and isinstance(type_.to, Record):
        up = value.type.derives(type_.to)
        if up is not None:
            return Value(type_, b.offset(value.text, up))
    if isinstance(type_.to, FunctionType):
        return Value(type_, convert(b, value, Pointer(type_.to)).text)
    if is_object(value) and isinstance(value.type, Record) and value.type is not type_.to:
        operator = reference_operator(b.program, value.type, type_.to)
        if operator is not None:
            return bind(b, b.call_method(value, operator, []), type_)
    if isinstance(type_.to, Array):
        raise b.refuse(f"{getattr(value, 'type', 'this')} does not become {type_}")
    made = convert(b, value, type_.to)
    if isinstance(type_.to, Record):
        return Value(type_, made.text)
    return Value(type_, spill_value(b, made))


def spill_value(b: Builder, value: Value) -> str:
    """The address of a temporary with this value, for a const reference."""
    address = b.temporary(value.type)
    store(b, Place(value.type, address, INIT), value.text)
    return address


def place_of(value: Value) -> Place:
    """The place that a reference refers to."""
    assert isinstance(value.type, Reference)
    return Place(value.type.to, value.text, FULL, moved=value.type.rvalue, const=value.type.const)


def object_place(value: Value | Place) -> Place:
    """The place of an object; a temporary is an xvalue."""
    if isinstance(value, Place):
        return value
    return Place(value.type, value.text, INIT, moved=True)
