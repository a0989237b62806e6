"""Writing LLVM IR as text: a function that names its own values, and loops that carry values.

The text is final: no optimiser runs over it, only code generation, so what is written here is what the machine does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

Operand = str | int


class Loop:
    """A loop while it is written: its counter, the values it carries, and what they become in the next round."""

    def __init__(self, index: str, values: list[str]) -> None:
        self.index = index
        self.values = values
        self.next: list[str] = list(values)


class Function:
    """One function: `op` emits an instruction that yields a value, `do` one that does not."""

    def __init__(self, name: str, params: Sequence[tuple[str, str]], *, public: bool = False, result: str = "void"):
        self.name = name
        self.params = params
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
        """An instruction that yields a value; its name comes back."""
        name = self.fresh()
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def call(self, result: str, name: str, args: Sequence[tuple[str, Operand]]) -> str:
        """Call an intrinsic or an outside function, declared in the module on the way."""
        self.declarations.add(f"declare {result} @{name}({', '.join(kind for kind, _ in args)})")
        text = f"call {result} @{name}({', '.join(f'{kind} {value}' for kind, value in args)})"
        if result != "void":
            return self.op(text)
        self.do(text)
        return ""

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

    def at(self, kind: str, base: str, *terms: Operand) -> str:
        """The address of element `sum(terms)` of an array of `kind`."""
        for term in terms:
            base = self.op(f"getelementptr {kind}, ptr {base}, i64 {term}")
        return base

    def test(self, relation: str, a: Operand, b: Operand) -> str:
        return self.op(f"icmp {relation} i64 {a}, {b}")

    # control --------------------------------------------------------------------------------------------------

    @contextmanager
    def loop(
        self, start: Operand, stop: Operand, step: Operand = 1, carry: Sequence[tuple[str, str]] = ()
    ) -> Iterator[Loop]:
        """for index in range(start, stop, step), carrying (type, first value) pairs; `loop.next` sets the next ones."""
        head, body, done = self.label("head"), self.label("body"), self.label("done")
        before = self._block
        self.do(f"br label %{head}")
        self.start(head)
        index, after = self.fresh(), self.fresh()
        values = [self.fresh() for _ in carry]
        phis = len(self.lines)
        loop = Loop(index, values)
        self.lines.extend([""] * (1 + len(carry)))
        inside = self.op(f"icmp slt i64 {index}, {stop}")
        self.do(f"br i1 {inside}, label %{body}, label %{done}")
        self.start(body)
        yield loop
        self.lines.append(f"  {after} = add nsw i64 {index}, {step}")
        self.do(f"br label %{head}")
        latch = self._block
        self.lines[phis] = f"  {index} = phi i64 [{start}, %{before}], [{after}, %{latch}]"
        for at, ((kind, first), value, following) in enumerate(zip(carry, values, loop.next, strict=True)):
            self.lines[phis + 1 + at] = f"  {value} = phi {kind} [{first}, %{before}], [{following}, %{latch}]"
        self.start(done)

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """if condition: …"""
        yes, done = self.label("yes"), self.label("done")
        self.do(f"br i1 {condition}, label %{yes}, label %{done}")
        self.start(yes)
        yield
        self.do(f"br label %{done}")
        self.start(done)

    def either(self, condition: str, yes: Callable[[], None], no: Callable[[], None]) -> None:
        """if condition: yes() else: no()"""
        one, other, done = self.label("yes"), self.label("no"), self.label("done")
        self.do(f"br i1 {condition}, label %{one}, label %{other}")
        self.start(one)
        yes()
        self.do(f"br label %{done}")
        self.start(other)
        no()
        self.do(f"br label %{done}")
        self.start(done)

    def text(self) -> str:
        params = ", ".join(f"{kind} %{name}" for kind, name in self.params)
        head = f"define {'' if self.public else 'internal '}{self.result} @{self.name}({params}) #0"
        body = "\n".join(self.lines)
        ret = "" if self.result != "void" else "\n  ret void"
        return f"{head} {{\nentry:\n{body}{ret}\n}}\n"


class Table:
    """Functions of a module by number."""

    def __init__(self, name: str, functions: Sequence[str]) -> None:
        self.name, self.functions = name, functions

    def text(self) -> str:
        entries = ", ".join(f"ptr @{name}" for name in self.functions)
        return f"@{self.name} = internal constant [{len(self.functions)} x ptr] [{entries}]\n"


class Numbers:
    """So many 64-bit numbers that a module keeps from call to call, 0 at first: for hints, whoever writes them last."""

    def __init__(self, name: str, count: int) -> None:
        self.name, self.count = name, count

    def text(self) -> str:
        return f"@{self.name} = internal global [{self.count} x i64] zeroinitializer\n"


def module(parts: Sequence[Function | Table | Numbers]) -> str:
    """A whole module: every function, table and number, and a declaration for whatever they call outside it."""
    functions = [part for part in parts if isinstance(part, Function)]
    declared = sorted(set().union(*(f.declarations for f in functions)))
    own = {f"@{f.name}(" for f in functions}
    outside = [d for d in declared if not any(name in d for name in own)]
    return "\n".join([*outside, "", *(part.text() for part in parts), "attributes #0 = { nounwind }", ""])
