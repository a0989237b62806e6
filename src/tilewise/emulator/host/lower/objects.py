"""Objects of classes: construction, copies, moves, assignment, destruction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.call import call_choice, call_instance
from tilewise.emulator.host.lower.checked_memory import check_range, copy_bytes, store, zero_fill
from tilewise.emulator.host.lower.conversion import convert, object_place
from tilewise.emulator.host.lower.function_text import by_address
from tilewise.emulator.host.lower.operands import operands
from tilewise.emulator.host.lower.races import record_address
from tilewise.emulator.host.lower.values import FULL, INIT, SHARED, Actual, Place, Value, is_object
from tilewise.emulator.host.lower.virtual import store_vptrs
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Array, Field, Record, Type, dimensions, innermost
from tilewise.emulator.sema.layout import copies
from tilewise.emulator.sema.overload import NoMatch, choose, constructors

RECORDED = 64


def make_temporary(b: Builder, record: Record, arguments: Sequence[Actual]) -> Value:
    b.program.layout(record)
    address = b.temporary(record)
    construct(b, record, address, arguments)
    if not record.trivial:
        b.temporaries.append((record, address))
    return Value(record, address)


def construct(b: Builder, record: Record, address: str, arguments: Sequence[Actual]) -> None:
    program = b.program
    program.layout(record)
    own = record.methods.get("<new>", [])
    if len(arguments) == 1 and isinstance(arguments[0], tree.Braces):
        if _from_braces(b, record, address, arguments[0]):
            return
        arguments = operands(b, arguments[0].items)
    only = arguments[0] if len(arguments) == 1 else None
    if is_object(only) and isinstance(only.type, Record):
        if only.type is record and not _has_copy_constructor(record):
            copy_members(b, record, address, object_place(only))
            return
        if only.type is not record and only.type.derives(record) is not None and not own:
            copy_members(b, record, address, _base_part(b, only, record))
            return
    if not own or (not arguments and all(m.defaulted for m in own)):
        if not arguments:
            construct_members(b, record, address)
            return
        if record.fields and not own and record.vptr is None:  # an aggregate in parentheses
            _aggregate(b, record, address, arguments, [None] * len(arguments))
            return
    try:
        choice = choose(b.program, b.env, str(record), constructors(record), None, arguments)
    except NoMatch:
        if len(arguments) == 1 and _convert_by_operator(b, record, address, arguments[0]):
            return
        given = ", ".join(str(getattr(a, "type", "{…}")) for a in arguments)
        raise b.refuse(f"no constructor of {record} takes ({given})") from None
    if choice.node.defaulted:
        if arguments:
            made = only if is_object(only) else convert(b, arguments[0], record)
            copy_members(b, record, address, object_place(made))
        else:
            construct_members(b, record, address)
        return
    instance = program.instance(choice.node, choice.bindings, record)
    call_instance(b, instance, address, arguments)


def _convert_by_operator(b: Builder, record: Record, address: str, value: Any) -> bool:
    source = getattr(value, "type", None)
    if not isinstance(source, Record):
        return False
    name = f"operator type {record.name}"
    if name not in source.methods:
        return False
    copy_members(b, record, address, object_place(b.call_method(value, name, [])))
    return True


def _has_copy_constructor(record: Record) -> bool:
    return any(copies(record, m) for m in record.methods.get("<new>", []))


def _from_braces(b: Builder, record: Record, address: str, braces: tree.Braces) -> bool:
    """{…} for an aggregate, or for a class with an initializer_list constructor; False for other classes."""
    own = record.methods.get("<new>", [])
    if record.node is not None and record.node.name == "std::initializer_list" and braces.items:
        _fill_initializer_list(b, record, address, braces)
        return True
    for method in own:
        written = method.parameters[0].type if method.parameters else None
        if isinstance(written, tree.TypeConst):
            written = written.of
        if isinstance(written, tree.TypeName) and written.name.endswith("initializer_list") and braces.items:
            _initializer_list(b, record, address, method, braces)
            return True
    if not own and record.vptr is None and (record.fields or record.bases):
        if len(braces.items) == 1 and not isinstance(braces.items[0], tree.Braces) and not braces.names[0]:
            value = operands(b, braces.items)[0]
            if is_object(value) and value.type is record:
                copy_members(b, record, address, object_place(value))
            else:
                _aggregate(b, record, address, [value], [None])
            return True
        _aggregate(b, record, address, braces.items, braces.names)
        return True
    return False


def _initializer_list(b: Builder, record: Record, address: str, method: tree.Function, braces: tree.Braces) -> None:
    env = b.program.record_environment(record)
    list_type = b.program.resolve(method.parameters[0].type, env)
    assert isinstance(list_type, Record)
    made = b.temporary(list_type)
    _fill_initializer_list(b, list_type, made, braces)
    call_instance(b, b.program.instance(method, {}, record), address, [Value(list_type, made)])


def _fill_initializer_list(b: Builder, list_type: Record, made: str, braces: tree.Braces) -> None:
    """Construct an initializer_list at `made`; its elements are temporaries."""
    b.program.layout(list_type)
    (item,) = list_type.bindings.values()
    assert isinstance(item, types.Type)
    space = b.temporary(Array(item, len(braces.items)))
    for i, node in enumerate(braces.items):
        at = b.offset(space, i * b.program.size_of(item))
        b.initialise(Place(item, at, INIT), node)
        if isinstance(item, Record) and not item.trivial:
            b.temporaries.append((item, at))
    store(b, Place(types.Pointer(item), made, INIT), space)
    store(b, Place(types.ULONG, b.offset(made, 8), INIT), str(len(braces.items)))


def _aggregate(
    b: Builder, record: Record, address: str, items: Sequence[Actual | tree.Node], names: list[str | None]
) -> None:
    """Members in order from a list; the others by their default member initialisers, else zero."""
    zero_fill(b, address, record.size)
    given: dict[str, Any] = {}
    targets = [(f, f.offset) for f in record.fields]
    order, left = 0, list(zip(items, names, strict=True))
    while left:
        value, name = left.pop(0)
        item: Actual | tree.Node | list[Actual | tree.Node] = value
        if name is None:
            if order >= len(targets):
                raise b.refuse(f"{record} has {len(targets)} members, {len(items)} values are given")
            name, of = targets[order][0].name, targets[order][0].type
            if isinstance(of, Array) and not isinstance(value, (tree.Braces, tree.Text)):  # brace elision
                cells = prod(dimensions(of))
                item = [value, *(one for one, _ in left[: cells - 1])]
                left = left[cells - 1 :]
        order = next((i for i, (f, _) in enumerate(targets) if f.name == name), -2) + 1
        if order < 0:
            raise b.refuse(f"{record} has no member {name}")
        given[name] = item
    for f, offset in targets:
        place = Place(f.type, b.offset(address, offset), INIT)
        if f.name in given:
            b.initialise(place, given[f.name])
        elif _by_own_initialiser(b, record, f, place):
            continue
        elif isinstance(f.type, Record) and not f.type.trivial:
            construct(b, f.type, place.address, [])


def construct_members(
    b: Builder, record: Record, address: str, given: dict[str, Any] | None = None, bases: dict[int, Any] | None = None
) -> None:
    """Construct bases and members, by the constructor's initialiser list or by their default member initialisers."""
    for base, offset in record.bases:
        value = (bases or {}).get(id(base), [])
        at = b.offset(address, offset)
        construct(b, base, at, operands(b, value) if isinstance(value, list) else [value])
    store_vptrs(b, record, address)
    for f in record.fields:
        at = b.offset(address, f.offset)
        with b.full_expression():
            if given is not None and f.name in given:
                b.initialise(Place(f.type, at, INIT), given[f.name])
            elif not _by_own_initialiser(b, record, f, Place(f.type, at, INIT)):
                default_initialise(b, f.type, at)


def _by_own_initialiser(b: Builder, record: Record, f: Field, place: Place) -> bool:
    """Initialise a member by its default member initialiser, if it has one."""
    init = (f.init.init if f.init.init is not None else f.init.arguments) if isinstance(f.init, tree.Variable) else None
    if init is not None:
        with b.environment(b.program.record_environment(record)):
            b.initialise(place, init)
    return init is not None


def default_initialise(b: Builder, type_: Type, address: str) -> None:
    if isinstance(type_, Record):
        b.program.layout(type_)
        if type_.methods.get("<new>") or type_.bases or type_.vptr is not None or _any_initialiser(type_):
            construct(b, type_, address, [])
    elif isinstance(type_, Array):
        inner = innermost(type_)
        if isinstance(inner, Record):
            count = type_.size // max(1, b.program.size_of(inner))
            for_each_element(b, address, str(count), inner.size, lambda at: default_initialise(b, inner, at))


def _any_initialiser(record: Record) -> bool:
    return any(
        (isinstance(f.init, tree.Variable) and f.init.init is not None)
        or (isinstance(f.type, Record) and not f.type.trivial)
        or isinstance(f.type, (Record, Array))
        for f in record.fields
    )


def for_each_element(b: Builder, address: str, count: str, size: int, action: Any, backwards: bool = False) -> None:
    """A loop that calls `action` with the address of each element."""
    slot = b.alloca("i64")
    b.emit(f"store i64 0, ptr {slot}")
    head, body, done = b.label(), b.label(), b.label()
    b.begin(head)
    i = b.make(f"load i64, ptr {slot}")
    b.branch(b.make(f"icmp ult i64 {i}, {count}"), body, done)
    b.begin(body)
    which = i
    if backwards:
        which = b.make(f"sub i64 {count}, {b.make(f'add i64 {i}, 1')}")
    action(b.offset(address, b.make(f"mul i64 {which}, {size}")))
    b.emit(f"store i64 {b.make(f'add i64 {i}, 1')}, ptr {slot}")
    b.jump(head)
    b.begin(done)


def copy_members(b: Builder, record: Record, address: str, source: Place) -> None:
    """The implicit copy or move constructor."""
    source = _accessed(b, source, record, False)
    if record.trivial:
        copy_bytes(b, address, source.address, record.size)
        return
    for base, offset in record.bases:
        construct(b, base, b.offset(address, offset), [_part(b, source, base, offset)])
    store_vptrs(b, record, address)
    for f in record.fields:
        at = b.offset(address, f.offset)
        if isinstance(f.type, Record):
            construct(b, f.type, at, [_part(b, source, f.type, f.offset)])
        else:
            copy_bytes(b, at, b.offset(source.address, f.offset), f.type.size)


def _accessed(b: Builder, place: Place, record: Record, write: bool) -> Place:
    """An object that is read or stored whole: checked, and in instrumented kernels recorded scalar by scalar."""
    if place.check == FULL:
        place = replace(place, address=check_range(b, place.address, record.size, write))
    if place.check in (FULL, SHARED) and b.program.instrumented and not b.library:
        for offset in _scalars(record):
            at = b.make(f"ptrtoint ptr {b.offset(place.address, offset)} to i64")
            record_address(b, at, int(write))
    return replace(place, check=INIT) if place.check == FULL else place


def _scalars(type_: Type, offset: int = 0) -> Iterator[int]:
    """Offsets of the scalars in an object, of at most RECORDED elements of an array."""
    if isinstance(type_, Record):
        for base, at in type_.bases:
            yield from _scalars(base, offset + at)
        for f in type_.fields:
            yield from _scalars(f.type, offset + f.offset)
    elif isinstance(type_, Array):
        for i in range(min(type_.length, RECORDED)):
            yield from _scalars(type_.of, offset + i * type_.of.size)
    else:
        yield offset


def _base_part(b: Builder, value: Value | Place, base: Record) -> Place:
    """The base subobject."""
    assert isinstance(value.type, Record)
    offset = b.program.layout(value.type).derives(base)
    assert offset is not None
    return _part(b, object_place(value), base, offset)


def _part(b: Builder, source: Place, type_: Type, offset: int) -> Place:
    return Place(type_, b.offset(source.address, offset), INIT, moved=source.moved, const=source.const)


def assign(b: Builder, target: Place, value: Actual) -> Value | Place:
    """target = value for objects, by the class's operator= or else member by member."""
    record = target.type
    assert isinstance(record, Record)
    b.program.layout(record)
    own: list[Any] = [(m, record, 0) for m in record.methods.get("operator=", [])]
    if isinstance(value, tree.Braces):
        value = make_temporary(b, record, [value])
    if own:
        try:
            choice = choose(b.program, b.env, "operator=", own, None, [value], target)
            if not choice.node.defaulted:
                return call_choice(b, choice, target, [value], None)
        except NoMatch:
            pass
    derived = is_object(value) and isinstance(value.type, Record) and value.type.derives(record) is not None
    if is_object(value) and (derived or value.type is record):
        source = object_place(value) if value.type is record else _base_part(b, value, record)
    else:
        source = object_place(convert(b, value, record))
    target = _accessed(b, target, record, True)
    if record.trivial or not _has_assignment(record):
        source = _accessed(b, source, record, False)
        if record.trivial:
            copy_bytes(b, target.address, source.address, record.size)
            return target
    for base, offset in record.bases:
        assign(b, _part(b, target, base, offset), _part(b, source, base, offset))
    for f in record.fields:
        if isinstance(f.type, Record):
            assign(b, _part(b, target, f.type, f.offset), _part(b, source, f.type, f.offset))
        else:
            copy_bytes(b, b.offset(target.address, f.offset), b.offset(source.address, f.offset), f.type.size)
    return target


def _has_assignment(record: Record) -> bool:
    return any(isinstance(f.type, Record) and not f.type.trivial for f in record.fields) or bool(record.bases)


def destroy(b: Builder, record: Record, address: str) -> None:
    """Call the destructor, then destroy members and bases in reverse order."""
    b.program.layout(record)
    if record.trivial or not b.open:
        return
    own = record.methods.get("~")
    if own and own[0].tokens is not None:
        instance = b.program.instance(own[0], {}, record)
        if instance.node.library:
            b.note_line(b.line)
        b.call(types.VOID, instance.symbol, [(by_address(record), address)])
    for f in reversed(record.fields):
        if isinstance(f.type, Record):
            destroy(b, f.type, b.offset(address, f.offset))
        elif isinstance(f.type, Array):
            inner = innermost(f.type)
            if isinstance(inner, Record) and not inner.trivial:
                destroy_array(b, inner, b.offset(address, f.offset), str(f.type.size // inner.size))
    for base, offset in reversed(record.bases):
        destroy(b, base, b.offset(address, offset))


def destroy_array(b: Builder, record: Record, address: str, length: str) -> None:
    for_each_element(b, address, length, record.size, lambda at: destroy(b, record, at), backwards=True)
