"""Builds the LLVM text of one function: blocks, temporaries, the frame in checked memory, destructor calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from tilewise.emulator.host.lower.function_text import FunctionText
from tilewise.emulator.host.lower.program import Program
from tilewise.emulator.host.lower.values import Actual, Local, Lowered, Place, Value
from tilewise.emulator.parse import tree
from tilewise.emulator.parse.types import Record, Type
from tilewise.emulator.sema.symbol_table import Environment


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


class Builder(FunctionText, ABC):
    """The text of a function, and the mutually recursive lowerings: a statement contains expressions, an expression
    may call a lambda, an object's end calls a destructor. `function.Lowering` has them."""

    def __init__(self, program: Program, environment: Environment, library: bool) -> None:
        super().__init__(program, library)
        self.scopes: list[Scope] = [Scope()]
        self.env = replace(environment, local=self.find)
        self.for_card = False  # lowering the initialiser of a __device__ variable
        self.targets: list[Target] = []
        self.labels: dict[str, str] = {}
        self.handlers: list[tuple[int, str]] = []  # of enclosing try blocks: scopes that remain open, label
        self.temporaries: list[tuple[Record, str]] = []
        self.conditional: set[str] = set()  # slots in `temporaries`: they hold the object's address, or null
        self.result: Type | None = None
        self.body: Any = None  # of the function
        self.variadic = False
        self.escaping: set[str] = set()
        self.this: Value | None = None
        self.cases: list[Any] = []
        self.differences: dict[int, Any] = {}  # see `reference_comparisons`, by node: the `-` in fabs(a - b)
        self.limit_tests: dict[int, Any] = {}  # and comparisons of it with a limit
        self.prechecked: dict[int, str] = {}  # subscripts, by node, that were checked before the enclosing loop:
        # the array's address, loaded once: the loop may store to the memory that holds the pointer
        self.computed: dict[int, Any] = {}  # values of expressions that are already lowered, by node
        self.nest: Any = None  # the enclosing loop nest whose inner sums are vectorised (`adjacent_sums`)
        self.no_overflow = False  # what is lowered now is known not to overflow
        self.lanes: Any = None  # `Lanes` of a vectorised kernel
        self.outer: Any = None  # looks up variables of the enclosing function, for unevaluated operands

    # -- what the parts of a program become

    @abstractmethod
    def lower(self, node: tree.Node) -> Lowered:
        """An expression: a Value, a Place, or Overloads for the name of a function."""

    @abstractmethod
    def statement(self, node: tree.Node) -> None: ...

    @abstractmethod
    def initialise(self, place: Place, init: Any) -> None:
        """Give a place its first value: an expression, {…}, a list of constructor arguments or a lowered value."""

    @abstractmethod
    def call_method(
        self, receiver: Lowered, name: str, values: Sequence[Actual], node: tree.Node | None = None
    ) -> Value | Place:
        """Call a method by name on an object."""

    @abstractmethod
    def make_temporary(self, record: Record, arguments: Sequence[Actual]) -> Value:
        """An object that is destroyed at the end of the full expression."""

    @abstractmethod
    def destroy(self, record: Record, address: str) -> None:
        """Call the destructor, then destroy members and bases in reverse order."""

    @abstractmethod
    def destroy_array(self, record: Record, address: str, length: str) -> None:
        """Destroy the elements of an array, the last one first."""

    def loop_body(self, body: Any, target: Target) -> None:
        self.targets.append(target)
        with self.scope():
            self.statement(body)
        self.targets.pop()

    def before_report(self) -> None:
        if self.lanes is not None:
            self.lanes.set_reporting_lane(self)

    def note_store(self, address: str, size: int) -> None:
        if self.nest is not None and size:
            self.nest.note_store(self, address, size)
        elif self.nest is not None:
            self.nest.invalidate(self)

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
            self.destroy_array(record, address, str(length))
        for record, address in reversed(scope.destroy):
            self.destroy(record, address)

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
            if address not in self.conditional:
                self.destroy(record, address)
                continue
            made, done = self.label(), self.label()
            there = self.make(f"load ptr, ptr {address}")
            self.branch(self.make(f"icmp ne ptr {there}, null"), made, done)
            self.begin(made)
            self.emit(f"store ptr null, ptr {address}")
            self.destroy(record, there)
            self.begin(done)
        self.temporaries = []

    def deferred_temporaries(self) -> list[tuple[Record, str]]:
        """The temporaries of an operand that is not always evaluated, for the end of the full expression."""
        out = []
        for record, address in self.temporaries:
            if address not in self.conditional:
                slot = self.alloca("ptr")
                self.allocas.append(f"  store ptr null, ptr {slot}")
                self.emit(f"store ptr {address}, ptr {slot}")
                self.conditional.add(slot)
                address = slot
            out.append((record, address))
        return out
