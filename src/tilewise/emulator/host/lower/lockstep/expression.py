"""Expressions of a kernel in all lanes. What lanes share is lowered as for one thread."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.host.lower.arithmetic import UNSIGNED_COMPARE
from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.conversion import convert as convert_one
from tilewise.emulator.host.lower.conversion import object_place
from tilewise.emulator.host.lower.conversion import rvalue as rvalue_one
from tilewise.emulator.host.lower.handed_on import handed_on
from tilewise.emulator.host.lower.lockstep import calls, memory
from tilewise.emulator.host.lower.lockstep.divergence import NotInLockstep
from tilewise.emulator.host.lower.lockstep.region import region
from tilewise.emulator.host.lower.lockstep.wide import (
    OwnPlace,
    Wide,
    WideLocal,
    WidePlace,
    assign_local,
    convert,
    elements_of,
    lanes_of,
    scalars,
    vector,
    widen,
)
from tilewise.emulator.host.lower.values import FULL, INIT, KNOWN, Overloads, Place, Value
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.late import late
from tilewise.emulator.parse.types import Array, Pointer, Record, Scalar, Type

LOGICAL = {"&&": "and", "||": "or"}


def varies(b: Builder, node: Any) -> bool:
    return id(node) in lanes_of(b).divergence.varied


def lower(b: Builder, node: Any) -> Any:
    """A Value or a Place where lanes agree; else Wide, WidePlace or OwnPlace."""
    if isinstance(node, tree.Member) and isinstance(node.base, tree.Name) and node.base.name == "threadIdx":
        return lanes_of(b).index[node.name]
    if not varies(b, node):
        return late.lower(b, node)
    known = TABLE.get(type(node))
    if known is None:
        raise NotInLockstep(f"{type(node).__name__} at line {node.line}")
    if node.line:
        b.line = node.line
    return known(b, node)


def rvalue(b: Builder, value: Any) -> Any:
    if isinstance(value, OwnPlace):
        value = memory.own_address(b, value)
    if isinstance(value, WidePlace):
        return memory.load(b, value)
    if isinstance(value, Wide):
        return value
    made = rvalue_one(b, value)
    if isinstance(made.type, Record):
        raise NotInLockstep(f"a value of type {made.type}")
    return made


def as_wide(b: Builder, value: Any, type_: Type) -> Wide:
    made = rvalue(b, value)
    return convert(b, made, type_) if isinstance(made, Wide) else widen(b, convert_one(b, made, type_, explicit=True))


def truth(b: Builder, node: Any) -> str:
    """A vector of i1."""
    return as_wide(b, lower(b, node), types.BOOL).text


def _name(b: Builder, node: tree.Name) -> Any:
    local = b.find(node.name)
    if isinstance(local, OwnPlace):
        return local
    assert isinstance(local, WideLocal)
    if local.bound is not None:
        return local.bound
    lanes = lanes_of(b)
    if local.flag:
        truths = lanes.vector("i1")
        lacks = b.make(f"xor {truths} {b.make(f'load {truths}, ptr {local.flag}')}, splat (i1 true)")
        calls.tell_unset(b, b.make(f"and {truths} {lacks}, {lanes.mask(b)}"), local.name)
    return Wide(local.type, b.make(f"load {vector(b, local.type)}, ptr {local.slot}"))


def binary(b: Builder, op: str, left: Any, right: Any, node: Any) -> Any:
    """Of rvalues."""
    if not isinstance(left, Wide) and not isinstance(right, Wide):
        return rvalue(b, late.binary(b, op, left, right, node))
    if isinstance(left.type, Pointer) or isinstance(right.type, Pointer):
        return _pointers(b, op, left, right, node)
    return scalars(b, op, left, right)


def _pointers(b: Builder, op: str, left: Any, right: Any, node: Any) -> Wide:
    if op in UNSIGNED_COMPARE:
        one, two = (as_wide(b, v, types.VOIDP) for v in (left, right))
        return Wide(types.BOOL, b.make(f"icmp {UNSIGNED_COMPARE[op]} {vector(b, types.VOIDP)} {one.text}, {two.text}"))
    if op == "+" and isinstance(right.type, Pointer):
        left, right = right, left
    if op not in "+-" or isinstance(right.type, Pointer) or not right.type.integral:
        raise NotInLockstep(f"{op} of {left.type} and {right.type}")
    size = late.element_size(b, left.type.to, node)
    at = memory.moved(b, widen(b, left), right, size if op == "+" else -size)
    return Wide(left.type, at.text, at.base, at.stride, at.valid)


def _binary(b: Builder, node: tree.Binary) -> Any:
    if node.op in LOGICAL:
        return _logical(b, node)
    if node.op == ",":
        lower(b, node.left)
        return lower(b, node.right)
    left = rvalue(b, lower(b, node.left))
    right = rvalue(b, lower(b, node.right))
    b.line = node.line
    return binary(b, node.op, left, right, node)


def simple(b: Builder, node: Any) -> bool:
    """Nothing is touched by it: it may be computed for lanes that do not want it."""
    if isinstance(node, tree.Name):
        local = b.find(node.name)
        return local is not None and not getattr(local, "flag", "") and not isinstance(local, OwnPlace)
    if isinstance(node, tree.Binary):
        return node.op != "," and simple(b, node.left) and simple(b, node.right)
    if isinstance(node, tree.Unary):
        return node.op in "+-!~" and simple(b, node.operand)
    if isinstance(node, tree.Cast):
        return simple(b, node.operand)
    if isinstance(node, tree.Member) and isinstance(node.base, tree.Name):
        return node.base.name in ("threadIdx", "blockIdx", "blockDim", "gridDim")
    return isinstance(node, tree.Number)


def _logical(b: Builder, node: tree.Binary) -> Wide:
    lanes = lanes_of(b)
    truths = lanes.vector("i1")
    left = truth(b, node.left)
    if simple(b, node.right):
        return Wide(types.BOOL, b.make(f"{LOGICAL[node.op]} {truths} {left}, {truth(b, node.right)}"))
    slot = b.alloca(truths)
    b.emit(f"store {truths} {left}, ptr {slot}")
    asked = left if node.op == "&&" else b.make(f"xor {truths} {left}, splat (i1 true)")
    with region(b, asked):
        right = truth(b, node.right)
        b.emit(f"store {truths} {b.make(f'{LOGICAL[node.op]} {truths} {left}, {right}')}, ptr {slot}")
    return Wide(types.BOOL, b.make(f"load {truths}, ptr {slot}"))


def _ternary(b: Builder, node: tree.Ternary) -> Wide:
    lanes = lanes_of(b)
    truths = lanes.vector("i1")
    condition = truth(b, node.condition)
    if simple(b, node.yes) and simple(b, node.no):
        yes, no = rvalue(b, lower(b, node.yes)), rvalue(b, lower(b, node.no))
        type_ = _common(yes.type, no.type)
        one, two = as_wide(b, yes, type_).text, as_wide(b, no, type_).text
    else:
        type_ = _common(_type_of(b, node.yes), _type_of(b, node.no))
        one, two = "", ""
        opposite = b.make(f"xor {truths} {condition}, splat (i1 true)")
        kind = vector(b, type_)
        slots = []
        for side, asked in ((node.yes, condition), (node.no, opposite)):
            slot = b.alloca(kind)
            b.emit(f"store {kind} zeroinitializer, ptr {slot}")
            with region(b, asked):
                b.emit(f"store {kind} {as_wide(b, lower(b, side), type_).text}, ptr {slot}")
            slots.append(slot)
        one, two = (b.make(f"load {kind}, ptr {slot}") for slot in slots)
    kind = vector(b, type_)
    return Wide(type_, b.make(f"select {truths} {condition}, {kind} {one}, {kind} {two}"))


def _type_of(b: Builder, node: Any) -> Type:
    """Lowered, its type kept, its code thrown away."""
    lines, opened, line = list(b.lines), b.open, b.noted_line
    made = rvalue(b, lower(b, node)).type
    b.lines[:], b.open, b.noted_line = lines, opened, line
    found: Type = made
    return found


def _common(one: Type, two: Type) -> Type:
    if one == two:
        return one
    if isinstance(one, Scalar) and isinstance(two, Scalar):
        return types.common(one, two)
    if isinstance(one, Pointer) and isinstance(two, Pointer):
        return one
    raise NotInLockstep(f"?: of {one} and {two}")


def _index(b: Builder, node: tree.Index) -> Any:
    base = lower(b, node.base)
    index = rvalue(b, lower(b, node.index))
    b.line = node.line
    if isinstance(base, Overloads) or not isinstance(index.type, Scalar) or not index.type.integral:
        raise NotInLockstep("such a subscript")
    if isinstance(base, OwnPlace):
        return _own_element(b, base, index)
    if isinstance(base.type, Record):
        raise NotInLockstep(f"elements of {base.type}")
    if not isinstance(base.type, Array):
        pointer = rvalue(b, base)
        if not isinstance(pointer.type, Pointer):
            raise NotInLockstep(f"elements of {pointer.type}")
        at = memory.moved(b, widen(b, pointer), index, late.element_size(b, pointer.type.to, node))
        span = lanes_of(b).span(b, node.base.name) if isinstance(node.base, tree.Name) else None
        return WidePlace(pointer.type.to, at, FULL, pointer.type.const, span)
    array = base.type
    place = base if isinstance(base, WidePlace) else object_place(base)
    if isinstance(place, Place):
        place = WidePlace(array, widen(b, Value(Pointer(array.of), place.address)), place.check, place.const)
    held = memory.held(b, widen(b, index), array.length) if array.length else widen(b, index)
    check = place.check if place.check in (FULL, KNOWN) else INIT
    if not array.length:
        check = FULL
    at = memory.moved(b, place.address, held, late.element_size(b, array.of, node))
    return WidePlace(array.of, at, check, place.const)


def _own_element(b: Builder, base: OwnPlace, index: Any) -> OwnPlace:
    array = base.type
    if not isinstance(array, Array):
        pointer = memory.load(b, memory.own_address(b, base))  # an array of pointers
        raise NotInLockstep(f"elements of {pointer.type}")
    many = elements_of(array.of)
    held = memory.held(b, widen(b, index), array.length)
    step = scalars(b, "*", held, Value(types.LONG, str(many)))
    return OwnPlace(array.of, base.start, scalars(b, "+", widen(b, base.element), step))


def _member(b: Builder, node: tree.Member) -> Any:
    base = lower(b, node.base)
    if node.arrow:
        pointer = rvalue(b, base)
        if not isinstance(pointer.type, Pointer):
            raise NotInLockstep("such a ->")
        base = WidePlace(pointer.type.to, widen(b, pointer), FULL, pointer.type.const)
    if not isinstance(base, WidePlace) or not isinstance(base.type, Record):
        raise NotInLockstep("a member of such an object")
    found = b.program.layout(base.type) and base.type.field(node.name)
    if not found or isinstance(found[0].type, (types.Reference, Record)):
        raise NotInLockstep(f"the member {node.name}")
    f, offset = found
    return WidePlace(f.type, memory.moved(b, base.address, Value(types.LONG, str(offset)), 1), base.check, base.const)


def _unary(b: Builder, node: tree.Unary) -> Any:
    value = lower(b, node.operand)
    b.line = node.line
    if node.op == "&":
        if not isinstance(value, WidePlace):
            raise NotInLockstep("an address of a thread's own variable")
        at = value.address
        return Wide(Pointer(value.type, value.const), at.text, at.base, at.stride, at.valid)
    made = rvalue(b, value)
    if not isinstance(made, Wide):
        raise NotInLockstep(f"{node.op} of {made.type}")
    if node.op == "*":
        if not isinstance(made.type, Pointer):
            raise b.refuse(f"{made.type} is not a pointer", node)
        return WidePlace(made.type.to, made, FULL, made.type.const)
    if node.op == "!":
        truths = vector(b, types.BOOL)
        return Wide(types.BOOL, b.make(f"xor {truths} {convert(b, made, types.BOOL).text}, splat (i1 true)"))
    if not isinstance(made.type, Scalar):
        raise NotInLockstep(f"{node.op} of {made.type}")
    type_ = types.promote(made.type)
    made = convert(b, made, type_)
    kind = vector(b, type_)
    if node.op == "+":
        return made
    if node.op == "~":
        return Wide(type_, b.make(f"xor {kind} {made.text}, splat ({type_.llvm} -1)"))
    if type_.floating:
        return Wide(type_, b.make(f"fneg {kind} {made.text}"))
    return scalars(b, "-", Value(type_, "0"), made)


def _cast(b: Builder, node: tree.Cast) -> Any:
    type_ = b.program.resolve(node.type, b.env)
    return as_wide(b, lower(b, node.operand), type_)


def _construct(b: Builder, node: tree.Construct) -> Any:
    type_ = b.program.resolve(node.type, b.env)
    if not isinstance(type_, Scalar) or len(node.arguments) != 1 or node.braces:
        raise NotInLockstep(f"an object of {type_}")
    return as_wide(b, lower(b, node.arguments[0]), type_)


def put(b: Builder, target: Any, value: Any) -> None:
    """Into a place in memory: what lanes differ in, or where."""
    if isinstance(target, OwnPlace):
        target = memory.own_address(b, target)
    if isinstance(target, Place):
        if target.register:
            raise NotInLockstep(f"lanes that differ in {target.name}")
        address = widen(b, Value(Pointer(target.type), target.address))
        target = WidePlace(target.type, Wide(types.LONG, address.text), target.check, target.const)
    if not isinstance(target, WidePlace) or not isinstance(target.type, (Scalar, Pointer)):
        raise NotInLockstep("an assignment to such an object")
    memory.store(b, target, as_wide(b, value, target.type))


def _hand_on(b: Builder, node: tree.Assign, source: WideLocal, local: Any) -> Any:
    value = Wide(source.type, b.make(f"load {vector(b, source.type)}, ptr {source.slot}"))
    if local is None:
        target = lower(b, node.target)
        b.line = node.line
        put(b, target, value)
        return target
    lanes, truths = lanes_of(b), lanes_of(b).vector("i1")
    before, has = (b.make(f"load {truths}, ptr {at}") for at in (local.flag, source.flag))
    assign_local(b, local, value)
    b.emit(f"store {truths} {b.make(f'select {truths} {lanes.mask(b)}, {truths} {has}, {truths} {before}')}, "
           f"ptr {local.flag}")  # fmt: skip
    return value


def _assign(b: Builder, node: tree.Assign) -> Any:
    if isinstance(node.value, tree.Braces):
        raise NotInLockstep("an assignment of a list")
    local = b.find(node.target.name) if isinstance(node.target, tree.Name) else None
    source = handed_on(b, node)
    if isinstance(source, WideLocal):
        return _hand_on(b, node, source, local)
    value = rvalue(b, lower(b, node.value))
    if isinstance(local, WideLocal):
        b.line = node.line
        if node.op:
            value = binary(b, node.op, _name(b, node.target), value, node)
        assign_local(b, local, as_wide(b, value, local.type))
        return _name(b, node.target)
    target = lower(b, node.target)
    b.line = node.line
    if node.op:
        value = binary(b, node.op, rvalue(b, target), value, node)
    put(b, target, value)
    return target


def _step(b: Builder, node: tree.Step) -> Any:
    one = Value(types.INT, "1")
    local = b.find(node.operand.name) if isinstance(node.operand, tree.Name) else None
    b.line = node.line
    if isinstance(local, WideLocal):
        old = _name(b, node.operand)
        assign_local(b, local, as_wide(b, binary(b, node.op, old, one, node), local.type))
        return _name(b, node.operand) if node.prefix else old
    target = lower(b, node.operand)
    old = rvalue(b, target)
    put(b, target, binary(b, node.op, old, one, node))
    return target if node.prefix else old


def _call(b: Builder, node: tree.Call) -> Any:
    given = [n if isinstance(n, (tree.Number, tree.Text)) else rvalue(b, lower(b, n)) for n in node.arguments]
    b.line = node.line
    return calls.lane_by_lane(b, node, given)


TABLE: dict[type, Any] = {
    tree.Name: _name, tree.Binary: _binary, tree.Ternary: _ternary, tree.Index: _index, tree.Member: _member,
    tree.Unary: _unary, tree.Cast: _cast, tree.Construct: _construct, tree.Assign: _assign, tree.Step: _step,
    tree.Call: _call,
}  # fmt: skip
