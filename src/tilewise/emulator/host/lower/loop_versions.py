"""Loop versioning: inner loops over arrays are emitted with and without checks; a test before the loop picks one.

In a loop `for (…; k < n; k++)` whose subscripts are sums and products of k and of loop invariants, the extreme
addresses belong to the first and last iteration. If the arrays are initialised between them and no subscript overflows
at either end, no check in the loop can fail. The result for an array is reused until the next runtime call (the
epoch)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.subscripts import Subscripts, integer_variable
from tilewise.emulator.parse import tree
from tilewise.emulator.sema.pure_functions import PURE
from tilewise.emulator.sema.symbol_table import Unknown

MIN_ITERATIONS = 8  # for which the test pays
SUPPORTED_NODES = (
    tree.Number, tree.Name, tree.Unary, tree.Step, tree.Binary, tree.Assign, tree.Ternary, tree.Index, tree.Cast,
    tree.Variable, tree.Declaration, tree.Expression, tree.Block, tree.If, tree.Jump, tree.Nothing, tree.Call,
    tree.TypeName, tree.TypeConst, tree.TypeFixed, tree.TypePointer,
)  # fmt: skip


@dataclass
class Counter:
    name: str
    bound: Any
    closed: bool  # i <= bound


@dataclass
class Loop:
    counter: Counter
    changed: set[str]
    accesses: list[tree.Index]


def versionable_loop(b: Builder, node: tree.For) -> Loop | None:
    """The loop, if its form allows two versions; its counter must be declared already."""
    if (
        b.library
        or b.no_overflow
        or b.differences
        or b.limit_tests
        or b.program.instrumented
        or b.program.recording
        or b.lanes is not None
    ):
        return None
    count, inside = counter(node), list(tree.walk(node.body))
    if count is None or not all(isinstance(item, SUPPORTED_NODES) for item in inside) or not _pure_calls(b, inside):
        return None
    changed = {v.name for item in inside if isinstance(item, tree.Declaration) for v in item.items}
    for item in inside:
        target = item.target if isinstance(item, tree.Assign) else item.operand if isinstance(item, tree.Step) else None
        if isinstance(target, tree.Name):
            changed.add(target.name)
        if isinstance(item, tree.Unary) and item.op in ("&", "*"):
            return None
        if isinstance(item, tree.Variable) and item.specifiers & {"static", "extern", "__shared__"}:
            return None
    accesses = [item for item in inside if isinstance(item, tree.Index) and isinstance(item.base, tree.Name)]
    if count.name in changed or integer_variable(b, count.name) is None or not accesses:
        return None
    return Loop(count, changed, accesses)


def counter(node: tree.For) -> Counter | None:
    test, step = node.condition, node.step
    if not (isinstance(test, tree.Binary) and test.op in ("<", "<=") and isinstance(test.left, tree.Name)):
        return None
    one = isinstance(step, tree.Step) and step.op == "+"
    if isinstance(step, tree.Assign) and step.op == "+":  # i += 1
        one = isinstance(step.value, tree.Number) and step.value.value == 1
    moved = step.operand if isinstance(step, tree.Step) else step.target if isinstance(step, tree.Assign) else None
    if not one or not isinstance(moved, tree.Name) or moved.name != test.left.name:
        return None
    return Counter(test.left.name, test.right, test.op == "<=")


def _pure_calls(b: Builder, inside: list[Any]) -> bool:
    names = [getattr(item.function, "name", "") for item in inside if isinstance(item, tree.Call)]
    return all(name in PURE and b.is_library(name) for name in names)


def version_test(b: Builder, loop: Loop, quick: str, careful: str) -> dict[int, str]:
    """Branch to `quick` if no check can fail, else to `careful`. By subscript: the address of its array; empty if there
    is nothing to test."""
    subscripts, name = Subscripts(b, (loop.counter.name,), loop.changed), loop.counter.name
    try:
        if subscripts.counters_in(loop.counter.bound):
            return {}
    except Unknown:
        return {}
    first, (bound, _) = subscripts.variable(name)[0], subscripts.value(loop.counter.bound, {})
    last = bound if loop.counter.closed else b.make(f"sub i64 {bound}, 1")
    subscripts.require(b.make(f"icmp sge i64 {first}, 0"))
    subscripts.require(b.make(f"icmp slt i64 {bound}, {(1 << 31) - 1}"))
    subscripts.require(b.make(f"icmp sge i64 {b.make(f'sub i64 {last}, {first}')}, {MIN_ITERATIONS}"))
    bases: dict[int, str] = {}
    ranges: list[tuple[str, str]] = []
    for node in loop.accesses:
        before, holds = len(b.lines), subscripts.holds
        try:
            made = subscripts.access(node)
            ranges.append(subscripts.byte_range(made, {name: (first, last)}))
            bases[id(node)] = made.first
        except Unknown:
            del b.lines[before:]
            subscripts.holds = holds
    known = b.label()
    b.branch(subscripts.holds, known, careful)
    b.begin(known)
    for start, end in ranges:
        check_initialised(b, start, end, careful)
    b.jump(quick)
    return bases


def check_initialised(b: Builder, start: str, end: str, careful: str) -> None:
    """Branch to `careful` unless this range is initialised: by a cached result, or else by a runtime call."""
    memory = b.program.memory
    b.program.external("rt_all_initialised")
    site = memory.private(32)  # initialised range: begin, end, its epoch; how often not to call the runtime

    def cell(i: int) -> str:
        return f"inttoptr (i64 {site + 8 * i} to ptr)"

    epoch = b.make(f"load i64, ptr inttoptr (i64 {memory.epoch_address} to ptr)")
    low, high, then = (b.make(f"load i64, ptr {cell(i)}") for i in range(3))
    inside = b.make(f"and i1 {b.make(f'icmp uge i64 {start}, {low}')}, {b.make(f'icmp ule i64 {end}, {high}')}")
    inside = b.make(f"and i1 {inside}, {b.make(f'icmp ult i64 {start}, {end}')}")  # not past the last address
    known = b.make(f"and i1 {inside}, {b.make(f'icmp eq i64 {epoch}, {then}')}")
    fine, miss, query, wait = b.label(), b.label(), b.label(), b.label()
    b.branch(known, fine, miss)
    b.begin(miss)
    left = b.make(f"load i64, ptr {cell(3)}")
    b.branch(b.make(f"icmp sgt i64 {left}, 0"), wait, query)
    b.begin(wait)
    b.emit(f"store i64 {b.make(f'sub i64 {left}, 1')}, ptr {cell(3)}")
    b.jump(careful)
    b.begin(query)
    found = b.make(
        f"call i32 @rt_all_initialised(i64 {start}, i64 {end}, i64 {site}, i32 {int(b.program.device)}) cold"
    )
    b.branch(b.make(f"icmp ne i32 {found}, 0"), fine, careful)
    b.begin(fine)
