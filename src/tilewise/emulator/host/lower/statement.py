"""Lowers statements to LLVM: TABLE has a function for each kind of node."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilewise.emulator.host.lower.adjacent_sums import reuse_sum
from tilewise.emulator.host.lower.builder import Builder, Scope, Target
from tilewise.emulator.host.lower.checked_memory import copy_bytes
from tilewise.emulator.host.lower.conversion import bind, convert, rvalue
from tilewise.emulator.host.lower.declare import condition, lower_bindings, lower_declaration, lower_for_each
from tilewise.emulator.host.lower.exceptions import lower_try
from tilewise.emulator.host.lower.lanes import control
from tilewise.emulator.host.lower.lanes.mask import leave_regions
from tilewise.emulator.host.lower.loop_nest import find_nest
from tilewise.emulator.host.lower.loop_versions import version_test, versionable_loop
from tilewise.emulator.host.lower.named_result import elided_variable, may_be_moved, not_destroyed
from tilewise.emulator.host.lower.program import AUTO
from tilewise.emulator.host.lower.races import count_statement
from tilewise.emulator.host.lower.recording import SiteKind, mark
from tilewise.emulator.host.lower.values import INIT, Overloads, Place, Value, Wide
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Record, Reference
from tilewise.emulator.sema import constants
from tilewise.emulator.sema.symbol_table import Unknown
from tilewise.errors import KernelError

BODY = 3  # scopes that are open in a function's outermost block, which has the labels of goto


def statement(b: Builder, node: Any) -> None:
    if node.line:
        b.line = node.line
    if b.program.instrumented and b.open and not b.library and not isinstance(node, tree.Block):
        count_statement(b)
    if b.program.lenient and not (b.library or b.program.device):
        _leniently(b, node)
    else:
        TABLE[type(node)](b, node)


def _leniently(b: Builder, node: Any) -> None:
    """Omit a statement that does not compile. It may be the one that fills an array: the blocks that its pointers point
    to become initialised."""
    lines, opened = len(b.lines), b.open
    stacks: tuple[list[Any], ...] = (b.scopes, b.targets, b.cases, b.temporaries)
    depths = [len(stack) for stack in stacks]
    try:
        if isinstance(node, tree.Unread):
            raise b.refuse("this statement cannot be read", node)
        TABLE[type(node)](b, node)
    except KernelError:
        del b.lines[lines:]
        b.open, b.noted_line, b.temporaries = opened, 0, stacks[-1]
        for stack, depth in zip(stacks, depths, strict=True):
            del stack[depth:]
        names = {part.name for part in tree.walk(node) if isinstance(part, tree.Name)}
        for name in sorted(node.mentioned if isinstance(node, tree.Unread) else names):
            local = b.find(name)
            if local is not None and isinstance(local.type, types.Pointer):
                b.program.external("rt_assume_initialised")
                b.emit(f"call void @rt_assume_initialised(ptr {b.make(f'load ptr, ptr {local.address}, align 1')})")


def _block(b: Builder, node: tree.Block) -> None:
    with b.scope():
        for item in node.body:
            if b.open or b.lanes is None:
                statement(b, item)


def _expression(b: Builder, node: tree.Expression) -> None:
    with b.full_expression():
        b.lower(node.value)


def _if(b: Builder, node: tree.If) -> None:
    if node.constant:
        try:
            value, _ = constants.evaluate(b.program, node.condition, replace(b.env, local=b.find), b.find)
            chosen = node.yes if value else node.no
            if chosen is not None:
                statement(b, chosen)
            return
        except Unknown:
            pass
    with b.scope():
        if node.init is not None:
            statement(b, node.init)
        test = condition(b, node.condition)
        if isinstance(test, Wide):
            control.branch(b, node, test)
            return
        yes, done = b.label(), b.label()
        no = b.label() if node.no is not None else done
        b.branch(test.text, yes, no)
        b.begin(yes)
        with b.scope():
            statement(b, node.yes)
        if node.no is not None:
            if b.open:
                b.jump(done)
            b.begin(no)
            with b.scope():
                statement(b, node.no)
        b.begin(done)


def _for(b: Builder, node: tree.For) -> None:
    nest = find_nest(b, node)
    if nest is not None:
        b.nest = nest
        nest.invalidate(b)
    _for_loop(b, node)
    if nest is not None:
        b.nest = None


def _for_loop(b: Builder, node: tree.For) -> None:
    with b.scope():
        if b.lanes is not None and control.loop(b, node):
            return
        if node.init is not None:
            statement(b, node.init)
        done = b.label()
        if b.nest is not None and b.nest.inner is node:
            reuse_sum(b, b.nest, node, done)
        loop = versionable_loop(b, node)
        if loop is not None:
            quick, careful = b.label(), b.label()
            before, was_open, b.may_uninitialise = len(b.lines), b.open, False
            trusted = version_test(b, loop, quick, careful)
            if trusted:
                b.begin(quick)
                b.prechecked = trusted
                _iterations(b, node, done, True)
                b.prechecked = {}
            if b.may_uninitialise or not trusted:  # the loop may uninitialise what was checked before it
                del b.lines[before:]
                b.open = was_open
            else:
                b.begin(careful)
        _iterations(b, node, done, False)
        b.begin(done)
        mark(b, SiteKind.LEAVE)


def _iterations(b: Builder, node: tree.For, done: str, sure: bool) -> None:
    """A loop after its init statement; `sure`: its counter does not overflow."""
    head, body, step = b.label(), b.label(), b.label()
    mark(b, SiteKind.LOOP)
    b.begin(head)
    mark(b, SiteKind.ITERATION)
    with b.scope():
        if node.condition is not None:
            b.line = node.condition.line or node.line
            b.branch(condition(b, node.condition).text, body, done)
            b.begin(body)
        b.loop_body(node.body, _target(b, done, step))
    b.begin(step)
    if node.step is not None:
        b.no_overflow = sure
        with b.full_expression():
            b.lower(node.step)
        b.no_overflow = False
    b.jump(head)


def _target(b: Builder, leave: str, again: str) -> Target:
    return Target(leave, again, len(b.scopes), len(b.lanes.regions) if b.lanes is not None else 0)


def _while(b: Builder, node: tree.While) -> None:
    if b.lanes is not None and control.loop(b, node):
        return
    head, body, done = b.label(), b.label(), b.label()
    mark(b, SiteKind.LOOP)
    if node.after:
        test = b.label()
        b.begin(body)
        mark(b, SiteKind.ITERATION)
        b.loop_body(node.body, _target(b, done, test))
        b.begin(test)
        b.branch(condition(b, node.condition).text, body, done)
        b.begin(done)
        mark(b, SiteKind.LEAVE)
        return
    b.begin(head)
    mark(b, SiteKind.ITERATION)
    with b.scope():
        b.branch(condition(b, node.condition).text, body, done)
        b.begin(body)
        b.loop_body(node.body, _target(b, done, head))
    if b.open:
        b.jump(head)
    b.begin(done)
    mark(b, SiteKind.LEAVE)


def _switch(b: Builder, node: tree.Switch) -> None:
    with b.full_expression():
        value = rvalue(b, b.lower(node.value))
        if isinstance(value.type, types.Scalar) and value.type.integral:
            value = convert(b, value, types.promote(value.type))
        else:
            raise b.refuse(f"switch needs an integer, not {value.type}", node)
    done = b.label()
    b.cases.append((value.type, []))
    where = len(b.lines)
    b.lines.append("")  # the switch itself, once its cases are known
    b.open = False
    b.targets.append(Target(done, b.targets[-1].again if b.targets else None, len(b.scopes)))
    with b.scope():
        statement(b, node.body)
    b.targets.pop()
    type_, found = b.cases.pop()
    b.begin(done)
    default = next((label for number, label in found if number is None), done)
    cases = " ".join(f"{type_.llvm} {number}, label %{label}" for number, label in found if number is not None)
    b.lines[where] = f"  switch {type_.llvm} {value.text}, label %{default} [ {cases} ]"


def _case(b: Builder, node: tree.Case) -> None:
    if not b.cases:
        raise b.refuse("a case stands in no switch", node)
    type_, found = b.cases[-1]
    label = b.label()
    number = None
    if node.value is not None:
        try:
            number = types.wrap(type_, constants.evaluate(b.program, node.value, b.env, b.find)[0])
        except Unknown:
            raise b.refuse("a case must be known before running", node) from None
    found.append((number, label))
    b.begin(label)


def _jump(b: Builder, node: tree.Jump) -> None:
    if not b.targets:
        raise b.refuse(f"{node.keyword} stands in no loop", node)
    if b.lanes is not None and control.jump(b, node):
        return
    target = b.targets[-1]
    if node.keyword == "break":
        b.clean_to(target.depth)
        b.jump(target.leave)
        return
    if target.again is None:
        raise b.refuse("continue stands in no loop", node)
    b.clean_to(next(t.depth for t in b.targets if t.again == target.again))  # a switch has the label of its loop
    b.jump(target.again)


def _label(b: Builder, node: tree.Label) -> None:
    b.begin(b.labels.setdefault(node.name, b.label()))


def _goto(b: Builder, node: tree.Goto) -> None:
    label = b.labels.setdefault(node.name, b.label())
    b.clean_to(BODY)
    b.jump(label)


def _return(b: Builder, node: tree.Return) -> None:
    mark(b, SiteKind.EXIT)
    if node.value is None:
        if b.result not in (None, types.VOID, AUTO):
            raise b.refuse(f"return needs a value: the function gives {b.result}", node)
        leave(b)
        return
    with b.full_expression():
        found = _give(b, node)
    with not_destroyed(found):
        leave(b)


def leave(b: Builder) -> None:
    """Destroy the function's objects, and jump to its end."""
    b.clean_to(1)
    if b.lanes is not None and len(b.lanes.regions) > 1:
        leave_regions(b, b.lanes.regions)
    else:
        b.jump("leave")


def _give(b: Builder, node: tree.Return) -> tuple[Scope, int] | None:
    """Store the returned value; the variable that becomes the result, if one does."""
    assert node.value is not None
    value: Any = node.value if isinstance(node.value, tree.Braces) else b.lower(node.value)
    if b.result is AUTO:
        made = rvalue(b, value) if isinstance(value, (Overloads, tree.Braces)) else value
        b.result = types.Pointer(made.type.of) if isinstance(made.type, types.Array) else made.type
    result = b.result
    assert result is not None
    if result is types.VOID:
        return None
    if isinstance(result, Record):
        if isinstance(node.value, tree.Name) and isinstance(value, Place):
            value.moved = value.moved or may_be_moved(b, node.value.name)
        b.program.layout(result)
        b.set_state("%result", str(result.size), 1)
        found = elided_variable(b, node.value)
        if found is not None and value.type is result:
            copy_bytes(b, "%result", value.address, result.size)
            return found
        b.initialise(Place(result, "%result", INIT), value)
        return None
    if isinstance(value, tree.Braces):
        value = b.lower(value.items[0]) if value.items else Value(types.INT, "0")
    made = bind(b, value, result) if isinstance(result, Reference) else convert(b, value, result)
    b.emit(f"store {result.llvm} {made.text}, ptr %returned")
    return None


def _nothing(b: Builder, node: tree.Nothing) -> None:
    return


TABLE: dict[type, Any] = {
    tree.Block: _block, tree.Expression: _expression, tree.Declaration: lower_declaration, tree.If: _if,
    tree.For: _for, tree.ForEach: lower_for_each, tree.While: _while, tree.Switch: _switch, tree.Case: _case,
    tree.Jump: _jump, tree.Label: _label, tree.Goto: _goto, tree.Return: _return, tree.Try: lower_try,
    tree.Nothing: _nothing, tree.Bindings: lower_bindings,
}  # fmt: skip
