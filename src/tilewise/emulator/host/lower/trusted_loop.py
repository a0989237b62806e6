"""Inner loops over arrays: what their checks would find is asked once, before the loop, and it then runs without them.

A loop `for (…; k < n; k++)` whose subscripts are sums and products of k and of what it does not change has its least
and greatest addresses at its first and last iteration. Where the arrays between them have values everywhere and no
subscript overflows at either end, none does between: the loop is written a second time without checks, and this is
decided as it runs. What a call may change is asked anew behind each call into the runtime (the epoch)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.subscripts import Subscripts, whole_number
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.late import provide
from tilewise.emulator.parse.types import Pointer, Record, Reference, Scalar

LEAST = 8  # iterations for which asking pays
PLAIN = (
    tree.Number, tree.Name, tree.Unary, tree.Step, tree.Binary, tree.Assign, tree.Ternary, tree.Index, tree.Cast,
    tree.Variable, tree.Declaration, tree.Expression, tree.Block, tree.If, tree.Jump, tree.Nothing, tree.Call,
    tree.TypeName, tree.TypeConst, tree.TypeFixed, tree.TypePointer,
)  # fmt: skip
PURE = frozenset({
    "sqrt", "sqrtf", "fabs", "fabsf", "abs", "exp", "expf", "log", "logf", "sin", "sinf", "cos", "cosf", "pow", "powf",
    "fmax", "fmaxf", "fmin", "fminf", "floor", "floorf", "ceil", "ceilf", "round", "tanh", "tanhf", "fmod",
})  # fmt: skip


@dataclass
class Loop:
    counter: str
    bound: Any
    closed: bool  # k <= bound
    changed: set[str]
    accesses: list[tree.Index] = field(default_factory=list)


def plain_loop(b: Builder, node: tree.For) -> Loop | None:
    """The loop, if its subscripts can be known at both ends; its counter is declared already."""
    if b.library or b.sure or b.watched or b.limits or b.program.watched:
        return None
    test, step = node.condition, node.step
    if not (isinstance(test, tree.Binary) and test.op in ("<", "<=") and isinstance(test.left, tree.Name)):
        return None
    counter = test.left.name
    if not (isinstance(step, tree.Step) and step.op == "+" and _is(step.operand, counter)):
        return None
    inside = list(tree.walk(node.body))
    if not all(isinstance(item, PLAIN) for item in inside) or not _pure_calls(inside):
        return None
    changed = {v.name for item in inside if isinstance(item, tree.Declaration) for v in item.items}
    for item in inside:
        target = item.target if isinstance(item, tree.Assign) else item.operand if isinstance(item, tree.Step) else None
        if isinstance(target, tree.Name):
            changed.add(target.name)
        if isinstance(item, tree.Unary) and item.op in ("&", "*"):
            return None
        if isinstance(item, tree.Variable) and item.words & {"static", "extern", "__shared__"}:
            return None
    if counter in changed or whole_number(b, counter) is None:
        return None
    loop = Loop(counter, test.right, test.op == "<=", changed)
    loop.accesses = [item for item in inside if isinstance(item, tree.Index) and _known(b, loop, item)]
    return loop if loop.accesses and _affine(b, loop, loop.bound, False) else None


def _pure_calls(inside: list[Any]) -> bool:
    calls = [item for item in inside if isinstance(item, tree.Call)]
    return all(isinstance(c.function, tree.Name) and c.function.name in PURE for c in calls)


def _is(node: Any, name: str) -> bool:
    return isinstance(node, tree.Name) and node.name == name


def _known(b: Builder, loop: Loop, node: tree.Index) -> bool:
    """p[affine], p a pointer to scalars or a vector of them that the loop leaves alone."""
    if not isinstance(node.base, tree.Name) or node.base.name in loop.changed:
        return False
    local = b.find(node.base.name)
    if local is None or (local.register and node.base.name in b.escaping):
        return False
    to = elements(b, node.base)
    return to is not None and _affine(b, loop, node.index, True)


def elements(b: Builder, node: Any) -> Scalar | None:
    """What an array holds that a pointer variable or a std::vector stands for; None for others."""
    local = b.find(node.name) if isinstance(node, tree.Name) else None
    if local is None or local.row:
        return None
    type_: Any = local.type.to if isinstance(local.type, Reference) else local.type
    if isinstance(type_, Pointer) and local.register and not local.reference and not local.flag:
        of: Any = type_.to
    elif isinstance(type_, Record) and type_.name.startswith(("vector<", "std::vector<")) and not local.register:
        of = type_.bindings.get("T")
    else:
        return None
    return of if isinstance(of, Scalar) and of is not types.BOOL and of is not types.VOID else None


def first_element(b: Builder, node: Any) -> str:
    """The pointer to an array that `elements` knows."""
    local = b.find(node.name)
    assert local is not None
    address = b.make(f"load ptr, ptr {local.address}, align 1") if local.reference else local.address
    return b.make(f"load ptr, ptr {address}, align 1")


def _affine(b: Builder, loop: Loop, node: Any, counted: bool) -> bool:
    """A sum of products of numbers, unchanged variables and (`counted`) the counter, which no product holds twice."""
    if isinstance(node, tree.Number):
        return isinstance(node.value, int)
    if isinstance(node, tree.Name):
        if node.owner is not None or node.arguments is not None:
            return False
        if node.name == loop.counter:
            return counted
        return node.name not in loop.changed and whole_number(b, node.name) is not None
    if isinstance(node, tree.Binary) and node.op in ("+", "-"):
        return _affine(b, loop, node.left, counted) and _affine(b, loop, node.right, counted)
    if isinstance(node, tree.Binary) and node.op == "*":
        left, right = _affine(b, loop, node.left, False), _affine(b, loop, node.right, False)
        return (left and _affine(b, loop, node.right, counted)) or (right and _affine(b, loop, node.left, counted))
    return False


class Ends(Subscripts):
    """The guard: addresses at both ends, and all that must hold for the loop to need no checks."""

    def __init__(self, b: Builder, loop: Loop) -> None:
        super().__init__(b)
        self.loop = loop

    def counters(self) -> tuple[str, str]:
        """The first and the last value of the counter."""
        b, loop = self.b, self.loop
        first, _ = self.variable(loop.counter)
        bound, _ = self.value(loop.bound, {})
        last = bound if loop.closed else b.make(f"sub i64 {bound}, 1")
        self.require(b.make(f"icmp sge i64 {first}, 0"))
        self.require(b.make(f"icmp slt i64 {bound}, {(1 << 31) - 1}"))
        self.require(b.make(f"icmp sge i64 {b.make(f'sub i64 {last}, {first}')}, {LEAST}"))
        return first, last

    def range(self, node: tree.Index, first: str, last: str, pointer: str) -> tuple[str, str]:
        """The addresses from which to which the loop touches this array."""
        b = self.b
        of = elements(b, node.base)
        assert of is not None
        one, _ = self.value(node.index, {self.loop.counter: first})
        two, _ = self.value(node.index, {self.loop.counter: last})
        less = b.make(f"icmp slt i64 {one}, {two}")
        low, high = b.make(f"select i1 {less}, i64 {one}, i64 {two}"), b.make(f"select i1 {less}, i64 {two}, i64 {one}")
        base = b.make(f"ptrtoint ptr {pointer} to i64")
        size = of.size
        start = b.make(f"add i64 {base}, {b.make(f'mul i64 {low}, {size}')}")
        behind = b.make(f"add i64 {high}, 1")
        return start, b.make(f"add i64 {base}, {b.make(f'mul i64 {behind}, {size}')}")


def choose(b: Builder, loop: Loop, quick: str, careful: str) -> dict[int, str]:
    """Go to `quick` where no check could find anything, else to `careful`; the first elements of the arrays."""
    ends = Ends(b, loop)
    first, last = ends.counters()
    bases = {id(node): first_element(b, node.base) for node in loop.accesses}
    ranges = [ends.range(node, first, last, bases[id(node)]) for node in loop.accesses]
    asked = b.label()
    b.emit(f"br i1 {ends.holds}, label %{asked}, label %{careful}")
    b.open = False
    b.begin(asked)
    for start, end in ranges:
        ask_whole(b, start, end, careful)
    b.jump(quick)
    return bases


def ask_whole(b: Builder, start: str, end: str, careful: str) -> None:
    """Whether this range has values everywhere: as it was found last time, or as the runtime finds now."""
    memory = b.program.memory
    b.program.external("rt_whole")
    site = memory.private(32)  # from, to, epoch, times not to ask

    def cell(i: int) -> str:
        return f"inttoptr (i64 {site + 8 * i} to ptr)"

    epoch = b.make(f"load i64, ptr inttoptr (i64 {memory.epoch_address} to ptr)")
    low, high, then = (b.make(f"load i64, ptr {cell(i)}") for i in range(3))
    inside = b.make(f"and i1 {b.make(f'icmp uge i64 {start}, {low}')}, {b.make(f'icmp ule i64 {end}, {high}')}")
    inside = b.make(f"and i1 {inside}, {b.make(f'icmp ult i64 {start}, {end}')}")  # not past the last address
    known = b.make(f"and i1 {inside}, {b.make(f'icmp eq i64 {epoch}, {then}')}")
    fine, miss, ask, wait = b.label(), b.label(), b.label(), b.label()
    b.branch(known, fine, miss)
    b.begin(miss)
    left = b.make(f"load i64, ptr {cell(3)}")
    b.branch(b.make(f"icmp sgt i64 {left}, 0"), wait, ask)
    b.begin(wait)
    b.emit(f"store i64 {b.make(f'sub i64 {left}, 1')}, ptr {cell(3)}")
    b.jump(careful)
    b.begin(ask)
    found = b.make(f"call i32 @rt_whole(i64 {start}, i64 {end}, i64 {site}, i32 {int(b.program.device)}) cold")
    b.branch(b.make(f"icmp ne i32 {found}, 0"), fine, careful)
    b.begin(fine)


provide(elements, first_element)
