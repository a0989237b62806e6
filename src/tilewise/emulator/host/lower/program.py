"""A program while it is lowered: its symbol table, and a work list of function instances."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any

from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.declared import Entities, Names
from tilewise.emulator.parse.types import Record, Scalar, Type
from tilewise.emulator.sema.semantics import Semantics
from tilewise.emulator.sema.symbol_table import Environment
from tilewise.emulator.source.source import Source

MAX_INSTANCES = 4000
DESTROY = "<destroy>"


@dataclass(eq=False)
class Instance:
    """A function with its template arguments."""

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
    device: bool = False  # compiled for kernels

    @property
    def returns_object(self) -> bool:
        return isinstance(self.result, (Record, types.Array))


@dataclass
class LaunchSite:
    """One <<<…>>> of the program: its kernel, and the layout of its arguments."""

    node: tree.Launch
    kernel: tree.Function | None  # None: launched through a pointer
    bindings: dict[str, Any]
    parameters: list[Type]
    offsets: list[int]


@dataclass
class KernelHandle:
    """The kernel that a handle (an address) stands for."""

    node: tree.Function
    bindings: dict[str, Any]
    parameters: list[Type]


class Program(Semantics):
    def __init__(self, source: Source, entities: Entities, names: Names, memory: Any) -> None:
        super().__init__(source, entities, names)
        self.memory = memory  # runtime.memory.Memory
        self.instances: dict[Any, Instance] = {}
        self.pending: list[Instance] = []
        self.lambdas: dict[int, Record] = {}  # the classes of lambdas that capture nothing
        self.globals: dict[str, tuple[Type, int]] = {}
        self.constant_bytes = 0  # of the __constant__ variables
        self.externals: dict[str, str] = {}  # declarations
        self.functions_called: dict[str, tree.Function] = {}  # library functions without a body
        self.texts: dict[bytes, int] = {}
        self.name_table = [""]  # names that compiled code passes to the runtime by number
        self.uninitialised_locals: dict[str, int] = {}  # local arrays and objects without initialiser: first line
        self.name_numbers = {"": 0}
        self.launches: list[LaunchSite] = []
        self.kernel_handles: dict[int, KernelHandle] = {}  # by address
        self.device_functions: dict[Any, tuple[int, Any]] = {}  # whose address is taken: handle and function
        self.called_by_handle: dict[str, tuple[str, Any]] = {}  # function types that this kernel calls by handle
        self.comparisons: list[Any] = []  # with a reference: see `reference_comparisons`
        self.overflows: dict[int, int] = {}  # by line: the address of the count of reports
        self.address_taken: dict[str, int] = {}  # functions whose address is taken: their `call_form`
        self.symbols: dict[str, int] = {}
        self.tables: dict[tuple[int, int], int] = {}  # vtables: byte offset in `table_entries`
        self.table_entries: list[str] = []
        self.record_numbers: dict[int, int] = {}  # numbers of classes that declare virtual methods
        self._destroyers: dict[int, Instance] = {}
        self.lenient = False  # omit host statements that do not compile
        self.device = False  # lowering device code
        self.shared: list[tuple[int, int]] = []  # __shared__ variables of the kernel: address and size
        self.uninitialised_shared: list[tuple[int, int]] = []  # of them, those whose states are checked
        self.spans: list[tuple[int, int]] = []  # of the last kernel: pointer parameter, address of its block's ends
        self.instrumented = False  # lowering a kernel that checks for races
        self.recording: Any = None  # `recording.Recording` while lowering a kernel that records its events
        self.thread_frames = 0  # address of the coroutine frames
        self.work_log = 0  # address of the counters of instrumented kernels
        self.race_clock = self.race_cells = 0  # addresses of the clock of `races` and its cells for global memory
        self.async_queues = 0  # address of the rings of asynchronous copies
        self.dynamic_shared = 0  # the address of extern __shared__ memory
        self.catches = False  # it has a catch
        self.exception_numbers: dict[Any, int] = {}
        self.thrown: list[list[tuple[int, int]]] = []  # for each throw: numbers of the type and its bases, offsets
        self.thrown_address = 0  # of the flag that an exception is in flight

    # -- names and literals

    def name_number(self, name: str) -> int:
        if name not in self.name_numbers:
            self.name_numbers[name] = len(self.name_table)
            self.name_table.append(name)
        return self.name_numbers[name]

    def literal(self, value: bytes) -> int:
        """The address of a string literal."""
        if value not in self.texts:
            self.texts[value] = self.memory.constant(value + b"\0")
        return self.texts[value]

    def external(self, name: str, declaration: str = "") -> None:
        self.externals.setdefault(name, declaration)

    # -- functions

    @abstractmethod
    def write(self, instance: Instance) -> None:
        """Lower a function: its text, its frame and its result's type."""

    def instance(self, node: tree.Function, bindings: dict[str, Any], record: Record | None) -> Instance:
        """The function with these template arguments; a new one is added to the work list."""
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
            self.write(made)
        else:
            self.pending.append(made)
        return made

    def destroyer(self, record: Record) -> Instance:
        """A function that destroys an object of the class, members and bases included."""
        if id(record) not in self._destroyers:
            node = tree.Function(DESTROY, None, [], frozenset(), body=tree.Block([]), library=True, scope=record.scope)
            self._destroyers[id(record)] = self.instance(node, {}, record)
        return self._destroyers[id(record)]

    def declared(self, node: tree.Function, record: Record) -> Instance:
        """A virtual method's signature; if it is pure, there is no function to write."""
        if node.tokens is not None or node.body is not None:
            return self.instance(node, {}, record)
        env = self.record_environment(record)
        parameters = [self.resolve(q.type, env) for q in node.parameters]
        return Instance("null", node, env, record, self._result(node, env), parameters)

    def _result(self, node: tree.Function, env: Environment) -> Type:
        bare = node.result.of if isinstance(node.result, tree.TypeConst) else node.result
        return AUTO if isinstance(bare, tree.TypeAuto) else self.resolve(node.result, env)


AUTO = Scalar("auto", "auto", 0, False, -3, "void")
