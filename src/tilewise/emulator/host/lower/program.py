"""A host program while it is lowered: types and templates resolved, functions asked for and written one by one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from tilewise.emulator.frontend.source import Source
from tilewise.emulator.host.language import tree, types
from tilewise.emulator.host.language.read_entity import Entities
from tilewise.emulator.host.language.reading import Names
from tilewise.emulator.host.language.types import Record, Scalar, Type
from tilewise.emulator.host.lower.late import late
from tilewise.emulator.host.lower.values import Unknown
from tilewise.errors import KernelError

MAX_INSTANCES = 4000
MOST_BYTES = 1 << 36  # of one type: less than the addresses of a program's memory
DESTROY = "<destroy>"


@dataclass
class Environment:
    """Where a name is looked up: template arguments, the namespace, the class."""

    bindings: dict[str, Any] = field(default_factory=dict)
    scope: str = ""
    record: Record | None = None
    local: Any = None  # finds a variable of the function that is being lowered


@dataclass(eq=False)
class Instance:
    """A function with its template arguments known."""

    symbol: str
    node: tree.Function
    env: Environment
    record: Record | None  # for methods that have a `this`
    result: Type
    parameters: list[Type]
    text: list[str] = field(default_factory=list)
    frame: int = 0
    calls: set[str] = field(default_factory=set)
    lambda_: Any = None
    device: bool = False  # as the card's threads run it

    @property
    def returns_object(self) -> bool:
        return isinstance(self.result, (Record, types.Array))


@dataclass
class LaunchSite:
    """One <<<…>>> of the program: the kernel it names, and how its arguments lie in memory."""

    node: tree.Launch
    kernel: tree.Function | None  # None: a pointer says which, when it runs
    bindings: dict[str, Any]
    parameters: list[Type]
    offsets: list[int]


@dataclass
class KernelHandle:
    """The kernel that an address stands for, where the host passes kernels around."""

    node: tree.Function
    bindings: dict[str, Any]
    parameters: list[Type]


class Program:
    def __init__(self, source: Source, entities: Entities, names: Names, memory: Any) -> None:
        self.source = source
        self.entities = entities
        self.names = names
        self.memory = memory  # base, size, shift, line_address; allocate(size, align, what), text(bytes)
        self.instances: dict[Any, Instance] = {}
        self.waiting: list[Instance] = []
        self.records: dict[Any, Record] = {}
        self.lambdas: dict[int, Record] = {}  # the classes of lambdas that capture nothing
        self.globals: dict[str, tuple[Type, int]] = {}
        self.externals: dict[str, str] = {}  # declarations
        self.functions_called: dict[str, tree.Function] = {}  # library functions without a body
        self.texts: dict[bytes, int] = {}
        self.words: list[str] = []  # names that the runtime is told by number
        self.word_numbers: dict[str, int] = {}
        self.launches: list[LaunchSite] = []
        self.kernel_handles: dict[int, KernelHandle] = {}  # by address
        self.device_functions: dict[
            Any, tuple[int, Any]
        ] = {}  # of the card, as values: the address that stands for each
        self.called_by_handle: dict[
            str, tuple[str, Any]
        ] = {}  # types of functions that this kernel calls by such values
        self.comparisons: list[Any] = []  # with a reference: what they compare is noted while it runs
        self.overflows: dict[int, int] = {}  # by line, where it is counted how often one was told
        self.addressed: dict[str, int] = {}  # functions whose address somebody has, and how each is called
        self.sum_kernels: dict[int, list[str]] = {}  # functions that add up blocks of sums, by their nest's cells
        self.symbols: dict[str, int] = {}
        self.tables: dict[tuple[int, int], int] = {}  # of virtual methods: where each begins among all entries
        self.table_entries: list[str] = []
        self.record_numbers: dict[int, int] = {}  # of classes that declare virtual methods
        self._destroyers: dict[int, Instance] = {}
        self._constants: dict[str, Any] = {}
        self.device = False  # what is lowered now runs in a kernel's threads
        self.shared: list[tuple[int, int]] = []  # __shared__ variables of the kernel: address and size
        self.spans: list[
            tuple[int, int]
        ] = []  # of the kernel lowered last: a pointer's number, and the cell of its ends
        self.watched = False  # the kernel that is lowered is watched for races in shared memory
        self.dynamic_shared = 0  # the address of extern __shared__ memory
        self.catches = False  # it has a catch: exceptions are followed
        self.exception_numbers: dict[Any, int] = {}
        self.thrown: list[list[tuple[int, int]]] = []  # for each throw: what it is taken as, and where that part begins
        self.thrown_address = 0  # of the flag that is set while an exception looks for its handler
        self.library_variables: set[str] = set()  # of known headers: made only where they are used

    # -- refusing

    def refusal(self, message: str, line: int, column: int = 1) -> KernelError:
        return self.source.error(message, line, column)

    # -- words and texts

    def text(self, word: str) -> int:
        if word not in self.word_numbers:
            self.word_numbers[word] = len(self.words)
            self.words.append(word)
        return self.word_numbers[word]

    def literal(self, value: bytes) -> int:
        """The address of a string literal."""
        if value not in self.texts:
            self.texts[value] = self.memory.constant(value + b"\0")
        return self.texts[value]

    def external(self, name: str, declaration: str = "") -> None:
        self.externals.setdefault(name, declaration)

    # -- types

    def resolve(self, node: Any, env: Environment) -> Type:
        """A type as written to the type meant."""
        made: Type = late.resolve(self, node, env)
        return made

    def size_of(self, type_: Type) -> int:
        if isinstance(type_, Record):
            self.layout(type_)
        if isinstance(type_, types.Array):
            self.size_of(type_.of)
        if type_.size > MOST_BYTES:
            raise self.refusal(f"{type_} takes {type_.size} bytes: no program has so many", 1)
        return type_.size

    def layout(self, record: Record) -> Record:
        if not record.laid_out:
            late.lay_out(self, record)
            if record.size > MOST_BYTES:
                raise self.refusal(f"{record} takes {record.size} bytes: no program has so many", 1)
        return record

    def record_environment(self, record: Record) -> Environment:
        return Environment(record.bindings, record.scope, record)

    # -- constants

    def enumerator(self, name: str) -> tuple[int, Scalar]:
        entry = self.entities.enumerators.get(name)
        if entry is None:
            raise Unknown
        if name not in self._constants:
            type_, node = entry
            scope = name.rpartition("::")[0]
            self._constants[name] = (int(late.evaluate(self, node, Environment(scope=scope))[0]), type_)
        found: tuple[int, Scalar] = self._constants[name]
        return found

    def constant_variable(self, name: str) -> tuple[Any, Scalar]:
        """The value of a file-level constant."""
        item = self.entities.variables[name]
        if not isinstance(item.type, tree.TypeConst) or (item.init is None and not item.arguments):
            raise Unknown
        if name not in self._constants:
            env = Environment(scope=name.rpartition("::")[0])
            if late.is_auto(item.type):  # its type is the value's
                return self._constant_auto(name, item, env)
            type_ = self.resolve(item.type, env)
            init = item.init if item.init is not None else (item.arguments or [None])[0]
            if isinstance(init, tree.Braces) and len(init.items) == 1:  # constexpr int n{7};
                init = init.items[0]
            if not isinstance(type_, Scalar) or isinstance(init, tree.Braces):
                raise Unknown
            self._constants[name] = None
            value = late.evaluate(self, init, env)[0]
            self._constants[name] = (late.wrap(type_, value), type_)
        if self._constants[name] is None:
            raise Unknown
        found: tuple[Any, Scalar] = self._constants[name]
        return found

    def _constant_auto(self, name: str, item: tree.Variable, env: Environment) -> tuple[Any, Scalar]:
        """constexpr auto n = 16;"""
        self._constants[name] = None
        init = item.init if item.init is not None else (item.arguments or [None])[0]
        if isinstance(init, (tree.Braces, tree.Lambda)):
            raise Unknown
        self._constants[name] = late.evaluate(self, init, env)
        found: tuple[Any, Scalar] = self._constants[name]
        return found

    # -- functions

    def functions_named(self, name: str, scope: str) -> tuple[str, list[tree.Function]]:
        for candidate in self.names.candidates(name, scope):
            if candidate in self.entities.functions:
                return candidate, self.entities.functions[candidate]
        return name, []

    def definition(self, node: tree.Function) -> tree.Function:
        """The one with a body, where `node` is only its declaration."""
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

    def instance(self, node: tree.Function, bindings: dict[str, Any], record: Record | None) -> Instance:
        """The function for these template arguments; it is written later if it is new."""
        key = (self.device, id(node), id(record), tuple(sorted((k, str(v), id(v) if isinstance(v, Record) else 0)
                                                  for k, v in bindings.items())))  # fmt: skip
        found = self.instances.get(key)
        if found is not None:
            return found
        if len(self.instances) > MAX_INSTANCES:
            raise self.refusal(f"more than {MAX_INSTANCES} functions and instances of templates", node.line)
        if node.on_device and not self.device:
            raise self.refusal(f"{node.name} is a __device__ function: the host cannot call it", node.line, node.column)
        base = self.record_environment(record) if record is not None else Environment(scope=node.scope)
        env = replace(base, bindings={**base.bindings, **bindings})
        parameters = [self.resolve(p.type, env) for p in node.parameters]
        result = types.VOID if node.result is None else self._result(node, env)
        if node.name.startswith("operator type"):
            result = self.conversion_type(node, env)
        method = record if record is not None and "static" not in node.words else None
        symbol = f'@"{node.name}.{len(self.instances)}"'
        made = Instance(symbol, node, env, method, result, parameters, device=self.device)
        if record is not None:
            made.lambda_ = record.captured
        self.instances[key] = made
        if isinstance(result, Scalar) and result.kind == "auto":
            late.write(self, made)
        else:
            self.waiting.append(made)
        return made

    def destroyer(self, record: Record) -> Instance:
        """A function that takes an object of the class down, members and bases included."""
        if id(record) not in self._destroyers:
            node = tree.Function(DESTROY, None, [], frozenset(), body=tree.Block([]), library=True, scope=record.scope)
            self._destroyers[id(record)] = self.instance(node, {}, record)
        return self._destroyers[id(record)]

    def declared(self, node: tree.Function, record: Record) -> Instance:
        """What a virtual method takes and gives; another one is called in its place, so this one is not written."""
        if node.tokens is not None or node.body is not None:
            return self.instance(node, {}, record)
        env = self.record_environment(record)
        parameters = [self.resolve(q.type, env) for q in node.parameters]
        return Instance("null", node, env, record, self._result(node, env), parameters)

    def conversion_type(self, node: tree.Function, env: Environment) -> Type:
        name = node.name.removeprefix("operator type ")
        stars = len(name) - len(name.rstrip("*"))
        base = next((t for t in types.NAMED.values() if str(t) == name.rstrip("*")), None)
        type_ = base if base is not None else self.resolve(tree.TypeName(name.rstrip("*")), env)
        for _ in range(stars):
            type_ = types.Pointer(type_)
        return type_

    def _result(self, node: tree.Function, env: Environment) -> Type:
        written = node.result
        if isinstance(written, tree.TypeAuto) or (
            isinstance(written, tree.TypeConst) and isinstance(written.of, tree.TypeAuto)
        ):
            return AUTO
        return self.resolve(written, env)


AUTO = Scalar("auto", "auto", 0, False, -3, "void")
