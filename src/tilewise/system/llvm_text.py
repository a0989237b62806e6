"""Emission of LLVM IR as text: functions that name their values, and loops with carried values.

No optimiser runs over the text, only code generation, so the machine executes what is written here. A signature is a
string in LLVM's order, such as "ptr M, i64 row_m".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

Operand = str | int
# offset of an object's first own field: in a NumPy array the address of its elements, by NumPy's stable C interface; in
# a float its value
FIRST_FIELD = object.__basicsize__


def parameters(signature: str) -> list[tuple[str, str]]:
    """(type, name) of each parameter."""
    return [(kind, name) for kind, _, name in (one.strip().partition(" ") for one in signature.split(",") if one)]


class IRLoop:
    """A loop being emitted: its counter, the values it carries, and their values for the next round."""

    def __init__(self, index: str, values: list[str]) -> None:
        self.index = index
        self.values = values
        self.next: list[str] = list(values)


class IRFunction:
    """One function: `op` emits an instruction that yields a value, `do` one that does not."""

    def __init__(self, name: str, signature: str, *, public: bool = False, result: str = "void"):
        self.name = name
        self.params = parameters(signature)
        self.result = result
        self.public = public
        self.lines: list[str] = []
        self.declarations: set[str] = set()
        self._count = 0
        self._block = "entry"

    def fresh(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def op(self, text: str) -> str:
        """Emit an instruction that yields a value; the value's name."""
        name = self.fresh()
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def call(self, result: str, name: str, args: Sequence[tuple[str, Operand]]) -> str:
        """Call an intrinsic or an outside function, which the module declares."""
        self.declarations.add(f"declare {result} @{name}({', '.join(kind for kind, _ in args)})")
        text = f"call {result} @{name}({', '.join(f'{kind} {value}' for kind, value in args)})"
        if result != "void":
            return self.op(text)
        self.do(text)
        return ""

    def invoke(self, callee: str, signature: str, **arguments: Operand) -> None:
        """Call a function of this module by name, or through a register. A parameter that is not given is passed this
        function's parameter of the same name."""
        given = ", ".join(f"{kind} {arguments.pop(name, f'%{name}')}" for kind, name in parameters(signature))
        assert not arguments, f"{callee} has no parameters {', '.join(arguments)}"
        self.do(f"call void {callee if callee.startswith('%') else f'@{callee}'}({given})")

    def start(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")
        self._block = label

    def label(self, hint: str) -> str:
        self._count += 1
        return f"{hint}{self._count}"

    # integers and addresses -----------------------------------------------------------------------------------

    def add(self, a: Operand, b: Operand) -> str:
        return self.op(f"add nsw i64 {a}, {b}")

    def sub(self, a: Operand, b: Operand) -> str:
        return self.op(f"sub nsw i64 {a}, {b}")

    def mul(self, a: Operand, b: Operand) -> str:
        return self.op(f"mul nsw i64 {a}, {b}")

    def div(self, a: Operand, b: Operand) -> str:
        return self.op(f"udiv i64 {a}, {b}")

    def rem(self, a: Operand, b: Operand) -> str:
        return self.op(f"urem i64 {a}, {b}")

    def lower(self, a: Operand, b: Operand) -> str:
        """The smaller of two counts."""
        return self.op(f"select i1 {self.op(f'icmp slt i64 {a}, {b}')}, i64 {a}, i64 {b}")

    def higher(self, a: Operand, b: Operand) -> str:
        return self.op(f"select i1 {self.op(f'icmp sgt i64 {a}, {b}')}, i64 {a}, i64 {b}")

    def at(self, kind: str, base: str, *terms: Operand) -> str:
        """The address of element `sum(terms)` of an array of `kind`."""
        for term in terms:
            base = self.op(f"getelementptr {kind}, ptr {base}, i64 {term}")
        return base

    def test(self, relation: str, a: Operand, b: Operand) -> str:
        return self.op(f"icmp {relation} i64 {a}, {b}")

    def both(self, a: str, b: str) -> str:
        return self.op(f"and i1 {a}, {b}")

    def negated(self, condition: str) -> str:
        return self.op(f"xor i1 {condition}, true")

    def select(self, condition: str, kind: str, yes: Operand, no: Operand) -> str:
        return self.op(f"select i1 {condition}, {kind} {yes}, {kind} {no}")

    # memory and lanes -----------------------------------------------------------------------------------------

    def load(self, kind: str, place: str, align: int = 0) -> str:
        return self.op(f"load {kind}, ptr {place}" + (f", align {align}" if align else ""))

    def store(self, kind: str, value: Operand, place: str, align: int = 0) -> None:
        self.do(f"store {kind} {value}, ptr {place}" + (f", align {align}" if align else ""))

    def data_of(self, *names: str) -> list[str]:
        """The addresses of the elements of parameters that are NumPy's array objects."""
        return [self.load("ptr", self.at("i8", f"%{name}", FIRST_FIELD)) for name in names]

    def prefetch(self, address: str, locality: int = 3) -> None:
        """Prefetch into L1, or (locality 2) into L2."""
        self.call("void", "llvm.prefetch.p0", [("ptr", address), ("i32", 0), ("i32", locality), ("i32", 1)])

    def shuffle(self, kind: str, x: str, y: str, lanes: Sequence[int]) -> str:
        """These lanes of x and, with numbers after x's last, of y; both are vectors of type `kind`."""
        picks = ", ".join(f"i32 {lane}" for lane in lanes)
        return self.op(f"shufflevector {kind} {x}, {kind} {y}, <{len(lanes)} x i32> <{picks}>")

    def splat(self, kind: str, value: Operand, lanes: int) -> str:
        """A vector of `lanes` with the same element in each."""
        if lanes == 1:
            return str(value)
        vector = f"<{lanes} x {kind}>"
        one = self.op(f"insertelement {vector} poison, {kind} {value}, i32 0")
        return self.op(f"shufflevector {vector} {one}, {vector} poison, <{lanes} x i32> zeroinitializer")

    # control --------------------------------------------------------------------------------------------------

    def goto(self, label: str) -> None:
        self.do(f"br label %{label}")

    def branch(self, condition: str, yes: str, no: str, *, then: str = "") -> None:
        """Branch to the block `yes` or `no`; the next instructions belong to `yes`, or to `then`."""
        self.do(f"br i1 {condition}, label %{yes}, label %{no}")
        self.start(then or yes)

    @contextmanager
    def loop(
        self, start: Operand, stop: Operand, step: Operand = 1, carry: Sequence[tuple[str, str]] = ()
    ) -> Iterator[IRLoop]:
        """for index in range(start, stop, step), carrying (type, first value) pairs; `loop.next` sets the next ones."""
        head, body, done = self.label("head"), self.label("body"), self.label("done")
        before = self._block
        self.goto(head)
        self.start(head)
        index, after = self.fresh(), self.fresh()
        values = [self.fresh() for _ in carry]
        phis = len(self.lines)
        loop = IRLoop(index, values)
        self.lines.extend([""] * (1 + len(carry)))
        inside = self.op(f"icmp slt i64 {index}, {stop}")
        self.branch(inside, body, done)
        yield loop
        self.lines.append(f"  {after} = add nsw i64 {index}, {step}")
        self.goto(head)
        latch = self._block
        self.lines[phis] = f"  {index} = phi i64 [{start}, %{before}], [{after}, %{latch}]"
        for at, ((kind, first), value, following) in enumerate(zip(carry, values, loop.next, strict=True)):
            self.lines[phis + 1 + at] = f"  {value} = phi {kind} [{first}, %{before}], [{following}, %{latch}]"
        self.start(done)

    @contextmanager
    def when(self, condition: str, *, returns: bool = False) -> Iterator[None]:
        """if condition: …; `returns`: its last instruction is a `ret`."""
        yes, done = self.label("yes"), self.label("done")
        self.branch(condition, yes, done)
        yield
        if not returns:
            self.goto(done)
        self.start(done)

    def either(self, condition: str, yes: Callable[[], None], no: Callable[[], None]) -> None:
        """if condition: yes() else: no()"""
        one, other, done = self.label("yes"), self.label("no"), self.label("done")
        self.branch(condition, one, other)
        yes()
        self.goto(done)
        self.start(other)
        no()
        self.goto(done)
        self.start(done)

    def wrapped(self, around: Around) -> str:
        """A public function as two: the one that others call executes instructions before and after it."""
        params = ", ".join(f"{kind} %{name}" for kind, name in self.params)
        body = self.text().replace(f"define {self.result} @{self.name}(", f"define internal void @{self.name}.inside(")
        lines = f"{around.before}  call void @{self.name}.inside({params})\n{around.after}  ret void\n"
        return f"{body}define void @{self.name}({params}) #0 {{\nentry:\n{lines}}}\n"

    def text(self) -> str:
        params = ", ".join(f"{kind} %{name}" for kind, name in self.params)
        head = f"define {'' if self.public else 'internal '}{self.result} @{self.name}({params}) #0"
        body = "\n".join(self.lines)
        ret = "" if self.result != "void" else "\n  ret void"
        return f"{head} {{\nentry:\n{body}{ret}\n}}\n"


class FunctionTable:
    """Functions of a module by number."""

    def __init__(self, name: str, functions: Sequence[str]) -> None:
        self.name, self.functions = name, functions

    def text(self) -> str:
        entries = ", ".join(f"ptr @{name}" for name in self.functions)
        return f"@{self.name} = internal constant [{len(self.functions)} x ptr] [{entries}]\n"


class Numbers:
    """64-bit variables of a module that persist across calls, initially 0: hints, which threads write without locks."""

    def __init__(self, name: str, count: int) -> None:
        self.name, self.count = name, count

    def text(self) -> str:
        return f"@{self.name} = internal global [{self.count} x i64] zeroinitializer\n"


class Around(NamedTuple):
    """Instructions before and after the body of every public function of a module, and what they declare."""

    before: str
    after: str
    declarations: tuple[str, ...]


def module(parts: Sequence[IRFunction | FunctionTable | Numbers], around: Around | None = None) -> str:
    """A whole module: every function, table and number, and a declaration for whatever they call outside it."""
    functions = [part for part in parts if isinstance(part, IRFunction)]
    declared = sorted(set().union(*(f.declarations for f in functions), around.declarations if around else ()))
    own = {f"@{f.name}(" for f in functions}
    outside = [d for d in declared if not any(name in d for name in own)]
    texts = (
        part.wrapped(around) if around and isinstance(part, IRFunction) and part.public else part.text()
        for part in parts
    )
    return "\n".join([*outside, "", *texts, "attributes #0 = { nounwind }", ""])
