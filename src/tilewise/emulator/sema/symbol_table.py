"""The symbol table: names, types and constants of a program, looked up in an environment."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from types import NoneType
from typing import Protocol, TypeAlias

from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.declared import Entities, Names
from tilewise.emulator.parse.types import Bindings, Constant, Number, Record, Scalar, Type
from tilewise.emulator.source.source import SPAN, Source
from tilewise.errors import KernelError

HOST_VARIABLE = "is a variable of the host: make it const, or pass its value to the kernel"

MAX_TYPE_BYTES = 1 << 36  # below the address space of a program's memory


class Unknown(Exception):
    """Not a constant expression."""


class KnownLocal(Protocol):
    """A local variable, with its value where that is known."""

    @property
    def type(self) -> Type | None: ...
    @property
    def constant(self) -> Number | None: ...


Locals: TypeAlias = Callable[[str], KnownLocal | None]
Instance: TypeAlias = tuple[int, tuple[tuple[str, str, int], ...]]  # of a class template


@dataclass
class Environment:
    """Where a name is looked up: template arguments, the namespace, the class."""

    bindings: Bindings = field(default_factory=dict)
    scope: str = ""
    record: Record | None = None
    local: Locals | None = None  # of the function that is being compiled
    type_of: Callable[[tree.Node], Type] | None = (
        None  # of an expression, for decltype and sizeof; None: `SymbolTable`'s
    )
    depth: int = 0  # of calls in a constant expression


class SymbolTable(ABC):
    """What is declared, and the mutually recursive questions about it: a type may have a constant for its length, a
    constant may be the size of a type. `Semantics` answers them."""

    def __init__(self, source: Source, entities: Entities, names: Names) -> None:
        self.source = source
        self.entities = entities
        self.names = names
        self.records: dict[Instance, Record] = {}
        self.bodies: dict[
            tuple[tree.Function, bool], tree.Block
        ] = {}  # parsed; not kept in the nodes, which programs share
        self.constants: dict[str, Constant | None] = {}  # None: being computed
        self.member_constants: dict[tuple[Record, str], Constant] = {}
        self.library_variables: set[str] = set()  # of known headers, emitted only if used
        self.constants_are_written = False  # by the host program: __constant__ initialisers may change
        self.supplied: set[str] = set()  # types of missing headers

    def refusal(self, message: str, line: int, column: int = 1) -> KernelError:
        return self.source.error(message, line, column)

    # -- types

    @abstractmethod
    def resolve(self, node: tree.Node | Type, env: Environment) -> Type:
        """The type that a type node refers to."""

    @abstractmethod
    def type_of(self, node: tree.Node, env: Environment) -> Type:
        """The type of an expression that is not evaluated: of decltype."""

    @abstractmethod
    def lay_out(self, record: Record) -> None:
        """Find the offsets of a class's bases and members, its size and its alignment."""

    def size_of(self, type_: Type) -> int:
        if isinstance(type_, Record):
            self.layout(type_)
        if isinstance(type_, types.Array):
            self.size_of(type_.of)
        if type_.size > MAX_TYPE_BYTES:
            raise self.refusal(f"{type_} takes {type_.size} bytes: no program has so many", 1)
        return type_.size

    def layout(self, record: Record) -> Record:
        if not record.laid_out:
            self.lay_out(record)
            if record.size > MAX_TYPE_BYTES:
                raise self.refusal(f"{record} takes {record.size} bytes: no program has so many", 1)
        return record

    def record_environment(self, record: Record) -> Environment:
        return Environment(record.bindings, record.scope, record)

    # -- constants

    @abstractmethod
    def evaluate(self, node: tree.Node | None, env: Environment, local: Locals | None = None) -> Constant:
        """The value and type of a constant expression; raises Unknown."""

    def enumerator(self, name: str) -> Constant:
        entry = self.entities.enumerators.get(name)
        if entry is None:
            raise Unknown
        if name not in self.constants:
            type_, node = entry
            scope = name.rpartition("::")[0]
            value, own = self.evaluate(node, Environment(scope=scope))
            if own.floating:
                raise Unknown
            self.constants[name] = (value, type_)
        return self._known(name)

    def constant_variable(self, name: str) -> Constant:
        """The value and type of a file-level constant."""
        item = self.entities.variables[name]
        if not isinstance(item.type, tree.TypeConst) or (item.init is None and not item.arguments):
            raise Unknown
        if name not in self.constants:
            env = Environment(scope=name.rpartition("::")[0])
            type_ = None if tree.is_auto(item.type) else self.resolve(item.type, env)  # auto: the initialiser's type
            init = item.init if item.init is not None else next(iter(item.arguments or []), None)
            if type_ is not None and isinstance(init, tree.Braces) and len(init.items) == 1:  # constexpr int n{7};
                init = init.items[0]
            if isinstance(init, (tree.Braces, tree.Lambda)) or not isinstance(type_, (Scalar, NoneType)):
                raise Unknown
            self.constants[name] = None  # while it is computed
            value, own = self.evaluate(init, env)
            self.constants[name] = (value, own) if type_ is None else (types.wrap(type_, value), type_)
        return self._known(name)

    def _known(self, name: str) -> Constant:
        found = self.constants[name]
        if found is None:
            raise Unknown
        return found

    # -- functions

    def functions_named(self, name: str, scope: str) -> tuple[str, list[tree.Function]]:
        for candidate in self.names.candidates(name, scope):
            if candidate in self.entities.functions:
                return candidate, self.entities.functions[candidate]
        return name, []

    def require_declared(self, name: str, found: list[tree.Function], node: tree.Name, env: Environment) -> None:
        """Refuse a function of the program that this file declares below its use only. Classes and templates see what
        follows them."""
        first = min(found, key=lambda f: f.line)
        below = node.line > 0 and all(f.line > node.line and f.line // SPAN == node.line // SPAN for f in found)
        below = below and name not in self.names.prototypes
        if below and not first.library and env.record is None and not env.bindings:
            message = f"{name} is declared at line {first.line % SPAN}, below its use: declare it above"
            raise self.refusal(message, node.line, max(1, node.column))

    def definition(self, node: tree.Function) -> tree.Function:
        """The definition of a declared function; `node` itself if there is none."""
        if node.tokens is not None or node.body is not None or node.owner is not None or node.library:
            return node
        for other in self.entities.functions.get(node.name, []):
            if other.tokens is not None and len(other.parameters) == len(node.parameters):
                if bool(other.template) != bool(node.template):
                    continue
                if not other.template and self._signature(other) != self._signature(node):
                    continue
                for mine, theirs in zip(other.parameters, node.parameters, strict=True):
                    mine.default = mine.default or theirs.default
                return other
        return node

    def _signature(self, node: tree.Function) -> list[str]:
        env = Environment(scope=node.scope)
        return [str(self.resolve(p.type, env)) for p in node.parameters]

    def conversion_type(self, node: tree.Function, env: Environment) -> Type:
        spelled = node.name.removeprefix("operator type ")
        name = spelled.rstrip("&")
        stars = len(name) - len(name.rstrip("*"))
        base = next((t for t in types.NAMED.values() if str(t) == name.rstrip("*")), None)
        type_ = base if base is not None else self.resolve(tree.TypeName(name.rstrip("*")), env)
        for _ in range(stars):
            type_ = types.Pointer(type_)
        return type_ if name == spelled else types.Reference(type_)
