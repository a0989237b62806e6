"""A kernel as a function that runs one group of threads in lanes, and the helper functions that it calls."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.conversion import rvalue
from tilewise.emulator.host.lower.escapes import escaping
from tilewise.emulator.host.lower.function import Lowering, declare_parameters, function_text
from tilewise.emulator.host.lower.lanes.divergence import Divergence
from tilewise.emulator.host.lower.lanes.inlined import with_functions_inlined
from tilewise.emulator.host.lower.lanes.linear import from_linear
from tilewise.emulator.host.lower.lanes.mask import Lanes, Region
from tilewise.emulator.host.lower.lanes.variables import declare
from tilewise.emulator.host.lower.program import Instance, Program
from tilewise.emulator.host.lower.scalars import scalars
from tilewise.emulator.host.lower.values import NotInLockstep, Value, Wide
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Pointer, Reference
from tilewise.emulator.sema.bodies import body_of

GROUPS = """
@group = internal global i64 0
define internal void @enter_group(i64 %g) #0 {{
  store i64 %g, ptr @group
  %t = mul i64 %g, {width}
  call void {enter_thread}(i64 %t)
  ret void
}}
define internal void @set_lane(i64 %l) noinline cold #0 {{
  %g = load i64, ptr @group
  %first = mul i64 %g, {width}
  %t = add i64 %first, %l
  call void {enter_thread}(i64 %t)
  ret void
}}
define internal void @first_lane({bits} %mask) noinline cold #0 {{
  %l = call {bits} @llvm.cttz.{bits}({bits} %mask, i1 false)
  %lane = zext {bits} %l to i64
  call void @set_lane(i64 %lane)
  ret void
}}
declare {bits} @llvm.cttz.{bits}({bits}, i1)
"""


def width_of(block: tuple[int, int, int]) -> tuple[int, bool]:
    """Lanes of a group, and whether every group lies in one row of the block."""
    for width in (16, 8, 4):
        if block[0] % width == 0:
            return width, True
    return 8, False


def write_lockstep(p: Program, instance: Instance, width: int, one_row: bool) -> Lanes:
    """Write the kernel's text for a group of `width` threads."""
    node = instance.node
    p.device = True
    b = Lowering(p, instance.env, node.library)
    b.line = node.line
    b.result = instance.result
    body = with_functions_inlined(b, node, body_of(p, node, instance.env))
    b.escaping = escaping(b, [body], False)
    if instance.record is not None or any(isinstance(t, Reference) for t in instance.parameters):
        raise NotInLockstep("a kernel with references")
    if any(q.name in b.escaping for q in node.parameters):
        raise NotInLockstep("a parameter whose address is taken")
    lanes = b.lanes = Lanes(width, one_row, Divergence(b, node.parameters, body, one_row))
    with b.scope():
        declare_parameters(b, instance)
        _begin(b, lanes)
        for i, (parameter, type_) in enumerate(zip(node.parameters, instance.parameters, strict=True)):
            if id(parameter) in lanes.divergence.varying_variables:
                declare(b, parameter.name, type_, Value(type_, f"%p{i}"), True)
        _spans(b, lanes, instance)
        b.statement(body)
    if b.open:
        b.jump("leave")
    instance.result = types.VOID
    instance.frame = b.frame
    instance.calls = b.calls
    instance.text = function_text(b, instance)
    return lanes


def _begin(b: Builder, lanes: Lanes) -> None:
    """Set threadIdx of the lanes, and the mask: a last group may have fewer threads than lanes."""
    truths = lanes.vector("i1")
    slot = b.alloca(truths)
    lanes.regions.append(Region(slot, "leave"))
    if lanes.one_row:
        index = {c: _component(b, "threadIdx", c) for c in "xyz"}
        lanes.index = {**index, "x": from_linear(b, types.UINT, index["x"].text, 1)}
        b.emit(f"store {truths} splat (i1 true), ptr {slot}")
        return
    x, y, z = (_component(b, "blockDim", c) for c in "xyz")
    group = b.make(f"trunc i64 {b.make('load i64, ptr @group')} to i32")
    thread = from_linear(b, types.UINT, b.make(f"mul i32 {group}, {lanes.width}"), 1)
    row = scalars(b, "/", thread, x)
    lanes.index = {"x": scalars(b, "%", thread, x), "y": scalars(b, "%", row, y), "z": scalars(b, "/", row, y)}
    number = b.make(f"mul i32 {b.make(f'mul i32 {x.text}, {y.text}')}, {z.text}")
    here: Any = scalars(b, "<", Wide(types.UINT, thread.vector), Value(types.UINT, number))
    b.emit(f"store {truths} {here.vector}, ptr {slot}")


def _spans(b: Builder, lanes: Lanes, instance: Instance) -> None:
    """For each pointer parameter that is never reassigned: a cell into which the launch writes its block's ends."""
    known = lanes.divergence
    b.program.spans = []
    for i, (parameter, type_) in enumerate(zip(instance.node.parameters, instance.parameters, strict=True)):
        constant = isinstance(type_, Pointer) and id(parameter) not in known.varying_variables | known.reassigned
        if not constant or not parameter.name:
            continue
        cell = b.program.memory.private(16)
        low, high = (b.make(f"load i64, ptr inttoptr (i64 {cell + 8 * k} to ptr)") for k in range(2))
        lanes.spans[parameter.name] = (b.find(parameter.name), low, high)
        b.program.spans.append((i, cell))


def _component(b: Builder, name: str, which: str) -> Value:
    return rvalue(b, b.lower(tree.Member(tree.Name(name), which, False)))


def group_functions(lanes: Lanes, enter_thread: str, others: list[Any]) -> str:
    """The helper functions; refused if a function that the kernel calls has a barrier."""
    if any("@rt_barrier" in instance.calls for instance in others):
        raise NotInLockstep("a function that waits for other threads")
    texts = [text for text in lanes.functions.values() if text]
    return "\n".join([GROUPS.format(width=lanes.width, bits=lanes.bits, enter_thread=enter_thread), *texts])
