"""A host program while it is lowered: types and templates resolved, functions asked for and written one by one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.declared import Entities
from tilewise.emulator.parse.late import late
from tilewise.emulator.parse.reading import Names
from tilewise.emulator.parse.types import Record, Scalar, Type
from tilewise.emulator.sema.symbol_table import Environment, SymbolTable
from tilewise.emulator.source.source import Source

MAX_INSTANCES = 4000
DESTROY = "<destroy>"


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


class Program(SymbolTable):
    def __init__(self, source: Source, entities: Entities, names: Names, memory: Any) -> None:
        super().__init__(source, entities, names)
        self.memory = memory  # base, size, shift, line_address; allocate(size, align, what), text(bytes)
        self.instances: dict[Any, Instance] = {}
        self.waiting: list[Instance] = []
        self.lambdas: dict[int, Record] = {}  # the classes of lambdas that capture nothing
        self.globals: dict[str, tuple[Type, int]] = {}
        self.externals: dict[str, str] = {}  # declarations
        self.functions_called: dict[str, tree.Function] = {}  # library functions without a body
        self.texts: dict[bytes, int] = {}
        self.words: list[str] = []  # names that the runtime is told by number
        self.blank_locals: dict[str, int] = {}  # local arrays and objects without a first value: the line of the first
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
        self.symbols: dict[str, int] = {}
        self.tables: dict[tuple[int, int], int] = {}  # of virtual methods: where each begins among all entries
        self.table_entries: list[str] = []
        self.record_numbers: dict[int, int] = {}  # of classes that declare virtual methods
        self._destroyers: dict[int, Instance] = {}
        self.lenient = False  # statements of the host that do not compile are left out
        self.device = False  # what is lowered now runs in a kernel's threads
        self.shared: list[tuple[int, int]] = []  # __shared__ variables of the kernel: address and size
        self.spans: list[
            tuple[int, int]
        ] = []  # of the kernel lowered last: a pointer's number, and the cell of its ends
        self.watched = False  # the kernel that is lowered is watched for races
        self.thread_frames = 0  # where threads that wait for each other keep what they need after a barrier
        self.work_log = 0  # where watched kernels count what they do
        self.race_clock = self.race_cells = 0  # where the clock of watched kernels and their notes on global memory are
        self.dynamic_shared = 0  # the address of extern __shared__ memory
        self.catches = False  # it has a catch: exceptions are followed
        self.exception_numbers: dict[Any, int] = {}
        self.thrown: list[list[tuple[int, int]]] = []  # for each throw: what it is taken as, and where that part begins
        self.thrown_address = 0  # of the flag that is set while an exception looks for its handler

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

    # -- functions

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
        method = record if record is not None and "static" not in node.specifiers else None
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

    def _result(self, node: tree.Function, env: Environment) -> Type:
        written = node.result
        if isinstance(written, tree.TypeAuto) or (
            isinstance(written, tree.TypeConst) and isinstance(written.of, tree.TypeAuto)
        ):
            return AUTO
        return self.resolve(written, env)


AUTO = Scalar("auto", "auto", 0, False, -3, "void")
