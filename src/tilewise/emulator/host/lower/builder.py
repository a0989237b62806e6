"""Builds the LLVM text of one function: blocks, temporaries, the frame in checked memory, destructor calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from tilewise.emulator.host.lower.marks import SHADOW
from tilewise.emulator.host.lower.program import Program
from tilewise.emulator.host.lower.values import Local, Value
from tilewise.emulator.parse.late import late
from tilewise.emulator.parse.types import BOOL, Record, Type
from tilewise.emulator.sema.symbol_table import Environment
from tilewise.errors import KernelError

FRAME_GAP = 64  # unaddressable bytes between variables of a frame


def by_address(type_: Type) -> str:
    """Objects are passed by address; the callee does not check it, so `containment` checks it in each call."""
    return f"ptr dereferenceable({max(1, type_.size)})"


@dataclass
class Scope:
    names: dict[str, Any] = field(default_factory=dict)
    destroy: list[tuple[Record, str]] = field(default_factory=list)  # objects to destroy at its end
    arrays: list[tuple[Record, str, int]] = field(default_factory=list)
    hides_outer: bool = False  # names of outer scopes are not visible


@dataclass
class Target:
    """Labels of break and continue, and the number of scopes that remain open there."""

    leave: str
    again: str | None
    depth: int
    regions: int = 0  # open mask regions in the loop's body
    divergent: bool = False  # each lane leaves on its own


class Builder:
    def __init__(self, program: Program, environment: Environment, library: bool) -> None:
        self.program = program
        self.scopes: list[Scope] = [Scope()]
        self.env = replace(environment, local=self.find)
        self.library = library
        self.for_card = False  # lowering the initialiser of a __device__ variable
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.slots: list[str] = []  # frame addresses, computed in the entry block: a goto may skip a declaration
        self.count = 0
        self.open = True
        self.frame = 0
        self.targets: list[Target] = []
        self.labels: dict[str, str] = {}
        self.handlers: list[tuple[int, str]] = []  # of enclosing try blocks: scopes that remain open, label
        self.temporaries: list[tuple[Record, str]] = []
        self.result: Type | None = None
        self.body: Any = None  # of the function
        self.variadic = False
        self.calls: set[str] = set()
        self.line = 0
        self.escaping: set[str] = set()
        self.this: Any = None
        self.cases: list[Any] = []
        self.statics = 0
        self.noted_line = 0
        self.differences: dict[int, Any] = {}  # see `reference_comparisons`, by node: the `-` in fabs(a - b)
        self.limit_tests: dict[int, Any] = {}  # and comparisons of it with a limit
        self.prechecked: dict[int, str] = {}  # subscripts, by node, that were checked before the enclosing loop:
        # the array's address, loaded once: the loop may store to the memory that holds the pointer
        self.computed: dict[int, Any] = {}  # values of expressions that are already lowered, by node
        self.may_uninitialise = False  # an object was copied: initialised bytes may have become uninitialised
        self.nest: Any = None  # the enclosing loop nest whose inner sums are vectorised (`adjacent_sums`)
        self.attributes = "#0"  # of the function; #1 enables this processor's vector instructions
        self.no_overflow = False  # what is lowered now is known not to overflow
        self.lanes: Any = None  # `Lanes` of a vectorised kernel
        self.outer: Any = None  # looks up variables of the enclosing function, for unevaluated operands

    # -- text

    def name(self) -> str:
        self.count += 1
        return f"%t{self.count}"

    def label(self) -> str:
        self.count += 1
        return f"L{self.count}"

    def emit(self, text: str) -> None:
        if self.open:
            self.lines.append("  " + text)

    def make(self, text: str) -> str:
        """Emit an instruction with a result; the result's name."""
        name = self.name()
        self.emit(f"{name} = {text}")
        return name

    def value(self, type_: Type, text: str) -> Value:
        return Value(type_, self.make(text))

    def begin(self, label: str) -> None:
        if self.open:
            self.lines.append(f"  br label %{label}")
        self.lines.append(f"{label}:")
        self.open = True
        self.noted_line = 0

    def jump(self, label: str) -> None:
        self.emit(f"br label %{label}")
        self.open = False

    def branch(self, condition: str, yes: str, no: str, likely: bool | None = None) -> None:
        weights = "" if likely is None else f", !prof !{int(likely)}"
        self.emit(f"br i1 {condition}, label %{yes}, label %{no}{weights}")
        self.open = False

    def alloca(self, llvm: str) -> str:
        self.count += 1
        name = f"%v{self.count}"
        self.allocas.append(f"  {name} = alloca {llvm}")
        return name

    def refuse(self, message: str, node: Any = None) -> KernelError:
        line = getattr(node, "line", 0) or self.line
        return self.program.refusal(message, line, getattr(node, "column", 1) or 1)

    # -- the frame

    def frame_slot(self, size: int, align: int) -> str:
        """A ptr into the function's frame on the checked stack."""
        align = max(16, align)
        self.frame = -(-self.frame // align) * align
        offset = self.frame
        self.frame += size + max(FRAME_GAP, min(size, 1 << 20))
        at, address = self.name(), self.name()
        self.slots.append(f"  {at} = add i64 %frame, {offset + FRAME_GAP}")
        self.slots.append(f"  {address} = inttoptr i64 {at} to ptr")
        return address

    def temporary(self, type_: Type) -> str:
        """Memory for an unnamed object: addressable, not initialised."""
        address = self.frame_slot(type_.size, type_.align)
        self.set_state(address, str(type_.size), 1)
        return address

    def set_state(self, address: str, size: str, state: int) -> None:
        """Set the shadow of bytes: 0 unaddressable, 1 uninitialised, 3 initialised."""
        at = self.make(f"ptrtoint ptr {address} to i64")
        there = self.make(f"add i64 {at}, {self.program.memory.shift}{SHADOW}")
        pointer = self.make(f"inttoptr i64 {there} to ptr")
        self.emit(f"call void @llvm.memset.p0.i64(ptr {pointer}, i8 {state}, i64 {size}, i1 false)")

    def offset(self, address: str, bytes_: int | str) -> str:
        if bytes_ == 0:
            return address
        return self.make(f"getelementptr i8, ptr {address}, i64 {bytes_}")

    # -- names

    def declare(self, name: str, local: Any) -> None:
        self.scopes[-1].names[name] = local

    def find(self, name: str) -> Local | None:
        for scope in reversed(self.scopes):
            if name in scope.names:
                found: Local = scope.names[name]
                return found
            if scope.hides_outer:
                return None
        if self.outer is not None:
            found_outside: Local | None = self.outer(name)
            return found_outside
        return None

    def is_library(self, name: str) -> bool:
        """Whether all functions of this name are the library's, so that what it does is known."""
        return all(function.library for function in self.program.functions_named(name, self.env.scope)[1])

    @contextmanager
    def scope(self) -> Iterator[Scope]:
        made = Scope()
        self.scopes.append(made)
        yield made
        self.clean(made)
        self.scopes.pop()

    @contextmanager
    def environment(self, env: Environment) -> Iterator[None]:
        """For default arguments and member initialisers: names are looked up where they are written."""
        outer, self.env = self.env, env
        try:
            with self.scope() as inner:
                inner.hides_outer = True
                yield
        finally:
            self.env = outer

    def clean(self, scope: Scope) -> None:
        if not self.open:
            return
        for record, address, length in reversed(scope.arrays):
            late.destroy_array(self, record, address, str(length))
        for record, address in reversed(scope.destroy):
            late.destroy(self, record, address)

    def clean_to(self, depth: int) -> None:
        """Destroy the objects of the scopes above `depth`, which a jump leaves."""
        for scope in reversed(self.scopes[depth:]):
            self.clean(scope)

    @contextmanager
    def full_expression(self) -> Iterator[None]:
        """Temporaries made inside are destroyed at its end."""
        outer, self.temporaries = self.temporaries, []
        yield
        self.end_temporaries()
        self.temporaries = outer

    def end_temporaries(self) -> None:
        for record, address in reversed(self.temporaries):
            late.destroy(self, record, address)
        self.temporaries = []

    # -- calls

    def note_line(self, line: int, column: int = 0) -> None:
        """Store the current line, and the column of a call on it, where the runtime reads them for its reports."""
        place = line | column << 32
        if not self.library and line and self.noted_line != place:
            self.emit(f"store i64 {place}, ptr inttoptr (i64 {self.program.memory.line_address} to ptr)")
            self.noted_line = place

    def call(self, result: Type, callee: str, arguments: list[tuple[str, str]], llvm: str | None = None) -> str:
        """Emit a call; arguments are (LLVM type, text). The name of the result, or ''."""
        given = ", ".join(f"{t} {v}" for t, v in arguments)
        kind = llvm if llvm is not None else result.llvm
        self.calls.add(callee)
        if kind == "void":
            self.emit(f"call void {callee}({given})")
            return ""
        return self.make(f"call {kind} {callee}({given})")

    def report_if(self, condition: str, callee: str, arguments: list[tuple[str, str]]) -> None:
        """If `condition` holds, which is unlikely, call a reporting function of the runtime."""
        bad, good = self.label(), self.label()
        self.branch(condition, bad, good, likely=False)
        self.begin(bad)
        self.program.external(callee)
        if self.lanes is not None:
            self.lanes.set_reporting_lane(self)
        given = ", ".join(f"{t} {v}" for t, v in arguments)
        self.emit(f"call void @{callee}({given}) cold")
        self.jump(good)
        self.begin(good)

    def line_text(self) -> str:
        """The line to report: the current one; in a library function, that of the program's call."""
        if not self.library:
            return str(self.line)
        return self.make(f"load i32, ptr inttoptr (i64 {self.program.memory.line_address} to ptr)")

    def to_memory(self, type_: Type, text: str) -> str:
        return self.make(f"zext i1 {text} to i8") if type_ is BOOL else text

    def from_memory(self, type_: Type, text: str) -> str:
        return self.make(f"trunc i8 {text} to i1") if type_ is BOOL else text
