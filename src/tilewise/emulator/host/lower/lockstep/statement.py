"""Statements of a kernel in all lanes: branches and loops that lanes take differently run with some of them."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.checked_memory import clear
from tilewise.emulator.host.lower.declare import lower_declaration
from tilewise.emulator.host.lower.initialise import complete
from tilewise.emulator.host.lower.lockstep.divergence import BARRIER, NotInLockstep
from tilewise.emulator.host.lower.lockstep.expression import (
    as_wide,
    lower,
    put,
    rvalue,
    truth,
    varies,
)
from tilewise.emulator.host.lower.lockstep.region import leave_if_empty, region
from tilewise.emulator.host.lower.lockstep.wide import (
    Loop,
    OwnPlace,
    Region,
    WideLocal,
    elements_of,
    lanes_of,
    vector,
)
from tilewise.emulator.host.lower.statement import condition as condition_one
from tilewise.emulator.host.lower.values import Value
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Array, Pointer, Reference, Scalar, Type

OWN_BYTES = 1 << 14  # of arrays that every thread has for itself


def statement(b: Builder, node: Any) -> None:
    if node.line:
        b.line = node.line
    TABLE[type(node)](b, node)


def _block(b: Builder, node: tree.Block) -> None:
    with b.scope():
        for item in node.body:
            if b.open:
                statement(b, item)


def _expression(b: Builder, node: tree.Expression) -> None:
    value = node.value
    if isinstance(value, tree.Call) and value.function.name == BARRIER:
        b.program.external("rt_wait")
        b.calls.add("@rt_wait")
        b.noted_line = 0
        b.emit("call void @rt_wait(i32 1)")
        return
    with b.full_expression():
        lower(b, value)


def _declaration(b: Builder, node: tree.Declaration) -> None:
    for item in node.items:
        b.line = item.line or b.line
        with b.full_expression():
            _variable(b, item)


def _variable(b: Builder, item: tree.Variable) -> None:
    lanes = lanes_of(b)
    init: Any = item.init if item.init is not None else item.arguments
    if isinstance(init, list) and len(init) == 1:
        init = init[0]
    varying = id(item) in lanes.divergence.varying
    apart = item.words & {"__shared__", "static", "extern", "function"}
    if apart and not (varying or ("static" in item.words)):
        lower_declaration(b, tree.Declaration([item], line=item.line))
        return
    if apart:
        raise NotInLockstep(f"{item.name} at line {item.line}")
    if not tree.is_auto(item.type):
        type_ = complete(b, b.program.resolve(item.type, b.env), item.init)
        if isinstance(type_, Array):
            _own_array(b, item, type_, init)
            return
        if isinstance(type_, Reference) or item.name in b.escaping:
            raise NotInLockstep(f"{item.name}, whose address is taken, at line {item.line}")
    elif not varying:
        lower_declaration(b, tree.Declaration([item], line=item.line))
        return
    else:
        type_ = rvalue(b, lower(b, init)).type if init is not None and not isinstance(init, tree.Braces) else types.VOID
    if not varying:
        lower_declaration(b, tree.Declaration([item], line=item.line))
        return
    if isinstance(init, tree.Braces):
        init = init.items[0] if len(init.items) == 1 else tree.Number(0, types.INT)
    if not isinstance(type_, (Scalar, Pointer)) or type_ is types.VOID or isinstance(init, list):
        raise NotInLockstep(f"{item.name} of type {type_} at line {item.line}")
    declare(b, item.name, type_, None if init is None else lower(b, init), id(item) in lanes.divergence.assigned)


def declare(b: Builder, name: str, type_: Type, init: Any, assigned: bool) -> None:
    """A variable that lanes differ in."""
    lanes = lanes_of(b)
    local = WideLocal(type_, region=len(lanes.regions), name=name)
    if init is not None:
        value = as_wide(b, init, type_)
        if not assigned:
            local.bound = value
            b.declare(name, local)
            return
    kind = vector(b, type_)
    local.slot = b.alloca(kind)
    if init is not None:
        b.emit(f"store {kind} {value.text}, ptr {local.slot}")
    else:
        truths = lanes.vector("i1")
        local.flag = b.alloca(truths)
        b.allocas.append(f"  store {truths} zeroinitializer, ptr {local.flag}")
        b.allocas.append(f"  store {kind} zeroinitializer, ptr {local.slot}")
        b.emit(f"store {truths} zeroinitializer, ptr {local.flag}")
    b.declare(name, local)


def _own_array(b: Builder, item: tree.Variable, type_: Array, init: Any) -> None:
    """An array that every thread has for itself: the lanes' elements lie side by side."""
    width, size = lanes_of(b).width, b.program.size_of(type_)
    inner: Type = type_
    while isinstance(inner, Array):
        inner = inner.of
    if size > OWN_BYTES or not size or not isinstance(inner, (Scalar, Pointer)) or inner.size not in (1, 2, 4, 8):
        raise NotInLockstep(f"{item.name}, an array of {size} bytes, at line {item.line}")
    address = b.frame_slot(size * width, 64)
    b.shade(address, str(size * width), 1)
    place = OwnPlace(type_, b.make(f"ptrtoint ptr {address} to i64"), Value(types.LONG, "0"))
    if init is not None:
        if not isinstance(init, tree.Braces) or any(init.names):
            raise NotInLockstep(f"how {item.name} is given values at line {item.line}")
        clear(b, address, size * width)
        _fill(b, place, init, 0)
    else:
        b.program.blank_locals.setdefault(item.name, b.line)
    b.declare(item.name, place)


def _fill(b: Builder, place: OwnPlace, given: tree.Braces, first: int) -> None:
    array = place.type
    assert isinstance(array, Array)
    many = elements_of(array.of)
    for i, node in enumerate(given.items):
        part = OwnPlace(array.of, place.start, Value(types.LONG, str(first + i * many)))
        if isinstance(node, tree.Braces) and isinstance(array.of, Array):
            _fill(b, part, node, first + i * many)
        elif isinstance(node, tree.Braces) or isinstance(array.of, Array):
            raise NotInLockstep("a list of values without its braces")
        else:
            put(b, part, lower(b, node))


def _if(b: Builder, node: tree.If) -> None:
    lanes = lanes_of(b)
    if not varies(b, node.condition):
        yes, done = b.label(), b.label()
        no = b.label() if node.no is not None else done
        b.branch(condition_one(b, node.condition), yes, no)
        for label, side in ((yes, node.yes), (no, node.no)):
            if side is not None:
                b.begin(label)
                with b.scope():
                    statement(b, side)
                if b.open:
                    b.jump(done)
        b.begin(done)
        return
    truths = lanes.vector("i1")
    with b.full_expression():
        condition = truth(b, node.condition)
    kept = b.alloca(truths)
    b.emit(f"store {truths} {condition}, ptr {kept}")
    for side, turned in ((node.yes, False), (node.no, True)):
        if side is None:
            continue
        asked = b.make(f"load {truths}, ptr {kept}")
        if turned:
            asked = b.make(f"xor {truths} {asked}, splat (i1 true)")
        with region(b, asked), b.scope():
            statement(b, side)


def _for(b: Builder, node: tree.For) -> None:
    with b.scope():
        if id(node) in lanes_of(b).divergence.leaving:
            _parted(b, node)
            return
        if node.init is not None:
            statement(b, node.init)
        head, body, step, done = (b.label() for _ in range(4))
        b.begin(head)
        if node.condition is not None:
            b.branch(condition_one(b, node.condition), body, done)
            b.begin(body)
        _body(b, node.body, done, step, False)
        b.begin(step)
        if node.step is not None:
            with b.full_expression():
                lower(b, node.step)
        b.jump(head)
        b.begin(done)


def _while(b: Builder, node: tree.While) -> None:
    if id(node) in lanes_of(b).divergence.leaving:
        _parted(b, node)
        return
    head, body, done = (b.label() for _ in range(3))
    if node.after:
        b.begin(body)
        _body(b, node.body, done, head, False)
        b.begin(head)
        b.branch(condition_one(b, node.condition), body, done)
    else:
        b.begin(head)
        b.branch(condition_one(b, node.condition), body, done)
        b.begin(body)
        _body(b, node.body, done, head, False)
        if b.open:
            b.jump(head)
    b.begin(done)


def _body(b: Builder, node: Any, leave: str, again: str, parted: bool) -> None:
    lanes = lanes_of(b)
    lanes.loops.append(Loop(leave, again, len(lanes.regions), parted))
    with b.scope():
        statement(b, node)
    lanes.loops.pop()


def _parted(b: Builder, node: Any) -> None:
    """A loop that lanes leave one by one: it goes on while there is one in it."""
    lanes = lanes_of(b)
    truths = lanes.vector("i1")
    whole = Region(b.alloca(truths), b.label())
    b.emit(f"store {truths} {lanes.mask(b)}, ptr {whole.slot}")
    lanes.regions.append(whole)
    head, check, body, step = (b.label() for _ in range(4))
    if isinstance(node, tree.For) and node.init is not None:
        statement(b, node.init)
    if isinstance(node, tree.While) and node.after:
        b.jump(body)
    b.begin(head)
    if node.condition is not None:
        _narrow(b, node.condition, whole)
    b.begin(check)
    b.branch(lanes.any(b), body, whole.exit)
    b.begin(body)
    inner = Region(b.alloca(truths), step)
    b.emit(f"store {truths} {lanes.mask(b)}, ptr {inner.slot}")
    lanes.regions.append(inner)
    _body(b, node.body, whole.exit, step, True)
    lanes.regions.pop()
    b.begin(step)
    go = b.label()
    b.branch(lanes.any(b), go, whole.exit)
    b.begin(go)
    if isinstance(node, tree.For) and node.step is not None:
        with b.full_expression():
            lower(b, node.step)
    b.jump(head)
    lanes.regions.pop()
    b.begin(whole.exit)
    leave_if_empty(b, whole)


def _narrow(b: Builder, condition: Any, whole: Region) -> None:
    truths = lanes_of(b).vector("i1")
    with b.full_expression():
        asked = truth(b, condition)
    b.emit(f"store {truths} {b.make(f'and {truths} {lanes_of(b).mask(b)}, {asked}')}, ptr {whole.slot}")


def _jump(b: Builder, node: tree.Jump) -> None:
    lanes = lanes_of(b)
    loop = lanes.loops[-1]
    if not loop.parted:
        if loop.regions != len(lanes.regions):
            raise NotInLockstep(f"{node.word} at line {node.line}")
        b.jump(loop.leave if node.word == "break" else loop.again)
        return
    first = loop.regions - (2 if node.word == "break" else 1)  # the loop's own region and its body's, or the body's
    _off(b, lanes.regions[first:])


def _off(b: Builder, regions: list[Region]) -> None:
    """The lanes that run here leave these regions; none is left in the innermost."""
    lanes = lanes_of(b)
    truths = lanes.vector("i1")
    others = b.make(f"xor {truths} {lanes.mask(b)}, splat (i1 true)")
    for r in regions:
        here = b.make(f"load {truths}, ptr {r.slot}")
        b.emit(f"store {truths} {b.make(f'and {truths} {here}, {others}')}, ptr {r.slot}")
    for r in regions[1:]:
        r.left = True
    b.jump(lanes.regions[-1].exit)


def _return(b: Builder, node: tree.Return) -> None:
    regions = lanes_of(b).regions
    if len(regions) == 1:
        b.jump("leave")
        return
    _off(b, regions)


def _nothing(b: Builder, node: Any) -> None:
    return


TABLE: dict[type, Any] = {
    tree.Block: _block, tree.Expression: _expression, tree.Declaration: _declaration, tree.If: _if, tree.For: _for,
    tree.While: _while, tree.Jump: _jump, tree.Return: _return, tree.Nothing: _nothing,
}  # fmt: skip
