"""Local variables: in a register unless their address is taken, else in the checked frame; range-based for loops."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.checked_memory import zero_fill
from tilewise.emulator.host.lower.class_arguments import deduced_class
from tilewise.emulator.host.lower.conversion import bind, convert, object_place, rvalue
from tilewise.emulator.host.lower.device_variables import declare_shared
from tilewise.emulator.host.lower.globals import local_static, static_memory
from tilewise.emulator.host.lower.initialise import complete_type
from tilewise.emulator.host.lower.lanes.variables import declared_in_lanes
from tilewise.emulator.host.lower.names import member_place
from tilewise.emulator.host.lower.objects import default_initialise
from tilewise.emulator.host.lower.recorded_text import first_row
from tilewise.emulator.host.lower.values import FULL, INIT, UNCHECKED, Local, Overloads, Place, Value, is_object
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Array, Pointer, Record, Reference, Scalar, Type, innermost, stored
from tilewise.emulator.sema import constants
from tilewise.emulator.sema.symbol_table import Unknown

STACK_LIMIT, LOCAL_LIMIT = 8 << 20, 512 << 10  # bytes: of the host's stack, of a thread's local memory


def lower_declaration(b: Builder, node: tree.Declaration) -> None:
    for item in node.items:
        b.line = item.line or b.line
        with b.full_expression():
            _variable(b, item)


def condition(b: Builder, node: Any) -> Value:
    """A condition as a bool or a vector of them; it may declare a variable."""
    if isinstance(node, tree.Declaration):
        lower_declaration(b, node)
        node = tree.Name(node.items[-1].name, line=node.line)
    with b.full_expression():
        return convert(b, b.lower(node), types.BOOL)


def _variable(b: Builder, item: tree.Variable) -> None:
    if b.lanes is not None and declared_in_lanes(b, item):
        return
    if "function" in item.specifiers:
        return
    if "__shared__" in item.specifiers:
        if not b.program.device:
            raise b.refuse(f"{item.name} is shared memory of a block: only kernels have it", item)
        declare_shared(b, item)
        return
    if "extern" in item.specifiers:
        return
    if "static" in item.specifiers:
        local_static(b, item)
        return
    init: Any = item.init if item.init is not None else item.arguments
    if tree.is_auto(item.type):
        declare_auto(b, item.name, item.type, init, item)
        return
    try:
        type_ = deduced_class(b, item.type, init) or complete_type(b, b.program.resolve(item.type, b.env), init)
    except Exception:
        if isinstance(item.type, tree.TypeArray) and item.type.length is not None:
            _variable_length(b, item)
            return
        raise
    const = isinstance(item.type, tree.TypeConst)
    constant = None
    given = item.init
    if isinstance(given, tree.Braces) and len(given.items) == 1:  # constexpr int n{7};
        given = given.items[0]
    if const and isinstance(type_, Scalar) and given is not None and not isinstance(given, tree.Braces):
        try:
            constant = types.wrap(type_, constants.evaluate(b.program, given, b.env, b.find)[0])
        except Unknown:
            constant = None
    declare(b, item.name, type_, init, const, constant)
    first_row(b, item.name, init)


def declare_auto(b: Builder, name: str, written: Any, init: Any, node: Any) -> None:
    """auto x = …"""
    if isinstance(init, list) and len(init) == 1:
        init = init[0]
    if init is None or isinstance(init, (list, tree.Braces)):
        raise b.refuse(f"auto {name} needs one value", node)
    value = init if isinstance(init, (Value, Place)) else b.lower(init)
    if isinstance(value, Overloads):
        value = rvalue(b, value)
    reference = written.of if isinstance(written, tree.TypeConst) else written
    if isinstance(reference, tree.TypeReference):
        const = isinstance(reference.to, tree.TypeConst) or (isinstance(value, Place) and value.const)
        declare(b, name, Reference(value.type, const), value, False, None)
        return
    type_ = value.type
    if isinstance(type_, (Array, types.FunctionType)):
        type_ = rvalue(b, value).type
    declare(b, name, type_, value, isinstance(written, tree.TypeConst), None)


def declare(b: Builder, name: str, type_: Type, init: Any, const: bool, constant: Any) -> None:
    program = b.program
    if isinstance(type_, Reference):
        _reference(b, name, type_, init)
        return
    size = program.size_of(type_)
    if type_ is types.VOID:
        raise b.refuse(f"{name} cannot be void")
    if not isinstance(type_, (Record, Array)) and name not in b.escaping:
        _register(b, name, type_, init, const, constant)
        return
    limit = LOCAL_LIMIT if program.device else STACK_LIMIT
    if size > limit:
        program.external("rt_large_local")
        b.emit(
            f"call void @rt_large_local(i64 {size}, i64 {limit}, i32 {program.name_number(name)}, i32 {b.line_text()})"
        )
        address = static_memory(b, size)
    else:
        address = b.frame_slot(size, type_.align)
    b.set_state(address, str(size), 1)
    check = INIT
    if not isinstance(type_, (Record, Array)) and init is not None:
        check = UNCHECKED
    local = Local(type_, address, check, const=const, constant=constant)
    place = Place(type_, address, INIT, name=name)
    if init is not None:
        if isinstance(init, tree.Node):
            b.declare(name, local)  # a lambda may name itself
        b.initialise(place, init)
    else:
        program.uninitialised_locals.setdefault(name, b.line)
        default_initialise(b, type_, address)
    b.declare(name, local)
    inner = innermost(type_)
    if isinstance(inner, Record) and not program.layout(inner).trivial:
        if isinstance(type_, Record):
            b.scopes[-1].destroy.append((inner, address))
        else:
            b.scopes[-1].arrays.append((inner, address, size // inner.size))


def _register(b: Builder, name: str, type_: Type, init: Any, const: bool, constant: Any) -> None:
    slot = b.alloca(stored(type_))
    if init is None or _mentions(init, name):  # int *p = (int *)malloc(n * sizeof(*p)): p is declared, uninitialised
        flag = b.alloca("i1")
        b.allocas.append(f"  store i1 false, ptr {flag}")
        b.emit(f"store i1 false, ptr {flag}")
        b.allocas.append(f"  store {stored(type_)} zeroinitializer, ptr {slot}")
        b.declare(name, Local(type_, slot, UNCHECKED, flag, True, constant=constant, const=const))
    if init is not None:
        b.initialise(Place(type_, slot, UNCHECKED, register=True), init)
        b.declare(name, Local(type_, slot, UNCHECKED, "", True, constant=constant, const=const))


def _mentions(init: Any, name: str) -> bool:
    """Whether a variable's initialiser names the variable itself."""
    return any(isinstance(node, tree.Name) and node.name == name for node in tree.walk(init))


def _reference(b: Builder, name: str, type_: Reference, init: Any) -> None:
    if isinstance(init, list):
        init = init[0] if init else None
    if init is None:
        raise b.refuse(f"the reference {name} needs something to refer to")
    value = init if isinstance(init, (Value, Place)) else b.lower(init)
    made = bind(b, value, type_)
    for found in [t for t in b.temporaries if t[1] == made.text]:  # lifetime extension
        b.temporaries.remove(found)
        b.scopes[-1].destroy.append(found)
    slot = b.alloca("ptr")
    b.emit(f"store ptr {made.text}, ptr {slot}")
    b.declare(name, Local(type_, slot, UNCHECKED, reference=True))


def _variable_length(b: Builder, item: tree.Variable) -> None:
    """float a[n]: a variable-length array."""
    rows = item.type.of if isinstance(item.type.of, tree.TypeArray) and item.init is None else None
    of = b.program.resolve(item.type.of if rows is None else rows.of, b.env)
    count = convert(b, b.lower(item.type.length), types.LONG).text
    row = ""
    if rows is not None:  # float a[n][m]: the row length is stored, too
        row, wide = b.alloca("i64"), convert(b, b.lower(rows.length), types.LONG).text
        b.emit(f"store i64 {wide}, ptr {row}")
        count = b.make(f"mul i64 {count}, {wide}")
    size = b.make(f"mul i64 {count}, {b.program.size_of(of)}")
    b.program.external("rt_variable_length", "declare ptr @rt_variable_length(i64, i32, i32)")
    name_id = b.program.name_number(item.name)
    address = b.make(f"call ptr @rt_variable_length(i64 {size}, i32 {name_id}, i32 {b.line_text()})")
    if item.init is not None:
        _first_values(b, item, of, address, size)
    slot = b.alloca("ptr")
    b.emit(f"store ptr {address}, ptr {slot}")
    b.declare(item.name, Local(Pointer(of), slot, UNCHECKED, register=True, size=size, row=row))


def _first_values(b: Builder, item: tree.Variable, of: Type, address: str, size: str) -> None:
    """float a[n] = {0}, an extension of g++: the given values, then zeros."""
    if not isinstance(item.init, tree.Braces) or not isinstance(of, types.Scalar):
        raise b.refuse(f"an array of a length that is not constant ({item.name}) cannot have initial values", item)
    negative = b.make(f"icmp slt i64 {size}, 0")  # reported by rt_variable_length
    zero_fill(b, address, b.make(f"select i1 {negative}, i64 0, i64 {size}"))
    for i, value in enumerate(item.init.items):
        b.initialise(Place(of, b.offset(address, i * of.size), FULL), value)


def lower_bindings(b: Builder, node: tree.Bindings) -> None:
    """auto [a, b] = e."""
    assert node.value is not None
    with b.full_expression():
        value = b.lower(node.value)
        if not is_object(value) or not isinstance(value.type, Record):
            raise b.refuse("auto [...] needs an object with members", node)
        record = b.program.layout(value.type)
        if len(record.fields) != len(node.names):
            raise b.refuse(f"{record} has {len(record.fields)} members, {len(node.names)} names are given", node)
        if not node.reference or isinstance(value, Value):
            declare(b, "<bound>", record, value, False, None)
            hidden = b.find("<bound>")
            assert hidden is not None
            value = Place(record, hidden.address, INIT)
        for name, f in zip(node.names, record.fields, strict=True):
            place = member_place(b, object_place(value), f.name, node)
            assert isinstance(place, Place)
            slot = b.alloca("ptr")
            b.emit(f"store ptr {place.address}, ptr {slot}")
            b.declare(name, Local(Reference(place.type), slot, UNCHECKED, reference=True))


def lower_for_each(b: Builder, node: tree.ForEach) -> None:
    """for (x : range), over arrays and objects with begin() and end()."""
    with b.scope():
        over = _range(b, node)
        if isinstance(over.type, Array):
            first = Value(Pointer(over.type.of), over.address)
            last = Value(Pointer(over.type.of), b.offset(over.address, over.type.size))
        else:
            first, last = (rvalue(b, b.call_method(over, name, [])) for name in ("begin", "end"))
        declare(b, "<at>", first.type, first, False, None)
        declare(b, "<end>", last.type, last, False, None)
        where: dict[str, Any] = {"line": node.line, "column": node.column}
        at, end, taken = tree.Name("<at>", **where), tree.Name("<end>", **where), node.variable
        item = tree.Unary("*", at, **where)
        if isinstance(taken, tree.Bindings):
            taken.value = item
        elif isinstance(taken, tree.Declaration):
            taken.items[0].init = item
        different, step = tree.Binary("!=", at, end, **where), tree.Step("+", at, True, **where)
        b.statement(tree.For(None, different, step, tree.Block([taken, node.body]), **where))


def _range(b: Builder, node: tree.ForEach) -> Place:
    if isinstance(node.range, tree.Braces):
        items = node.range.items
        if not items:
            raise b.refuse("an empty list in braces has no type to go through", node)
        first = rvalue(b, b.lower(items[0]))
        declare(b, "<range>", Array(first.type, len(items)), node.range, False, None)
        hidden = b.find("<range>")
        assert hidden is not None
        return Place(hidden.type, hidden.address, INIT)
    value = b.lower(node.range)
    if isinstance(value, Place):
        return value
    if isinstance(value, Overloads):
        raise b.refuse("a function is nothing to go through", node)
    declare(b, "<range>", value.type, value, False, None)
    hidden = b.find("<range>")
    assert hidden is not None
    return Place(hidden.type, hidden.address, FULL)
