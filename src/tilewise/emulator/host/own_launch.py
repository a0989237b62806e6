"""The launch as `main` makes it: walked from main to the <<<…>>>, with the sizes, allocations and copies on the way.

Nothing is executed: what the walk cannot know stays unknown, and then there is no own launch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tilewise.emulator.compile.resolver import TypeResolver
from tilewise.emulator.host.host_values import Typed, Unknown, called
from tilewise.emulator.host.launch_site import HostRun, LaunchSite, LaunchValue, host_body, host_functions
from tilewise.emulator.machine.ctype import Scalar
from tilewise.emulator.parse import tree
from tilewise.emulator.parse.packed_body import tokens_of
from tilewise.emulator.sema.symbol_table import SymbolTable

ALLOCATORS = ("cudaMalloc", "cudaMallocManaged", "cudaMallocHost", "cudaHostAlloc", "cudaMallocAsync")
COPIES = ("cudaMemcpy", "cudaMemcpyAsync")
CLEARS = ("cudaMemset", "cudaMemsetAsync")
IDLE = ("cudaFree", "cudaGetLastError", "cudaGetErrorString", "printf", "fprintf", "free")  # write nothing
DEPTH = 8


@dataclass
class Memory:
    """An allocation: how long, and whether something was put into it before the launch."""

    bytes: int | None
    filled: bool = False
    cleared: bool = False


@dataclass
class OwnLaunch:
    """Grid, block and arguments; an argument is a (type, value), a Memory, or None where it is not known."""

    value: LaunchValue
    site: LaunchSite
    arguments: list[Any] = field(default_factory=list)


class ProgramWalk(HostRun):
    def __init__(self, types: TypeResolver, supplied: dict[str, Typed], site: LaunchSite) -> None:
        super().__init__(types, {}, supplied)
        self.site = site
        self.memory: dict[str, Memory] = {}
        self.arguments: list[Any] = []
        self.level = 0
        self.reaching = _reaching(self.table, site.function)

    def find(self) -> OwnLaunch | None:
        mains = [f for f in self.table.entities.functions.get("main", []) if f.tokens]
        if not mains or id(mains[0]) not in self.reaching:
            return None
        self._walk(host_body(self.table, mains[0]), self.site.launch)
        if self.value_at is None:
            return None
        return OwnLaunch(self.value_at, self.site, self.arguments)

    # -- statements

    def _walk(self, node: Any | None, target: tree.Launch) -> bool:
        if isinstance(node, tree.Declaration):
            for item in node.items:
                for call in [c for e in (item.init, *(item.arguments or [])) if e is not None for c in _calls(e)]:
                    if self._call_effect(call, target):
                        return True
        if isinstance(node, tree.Unread):
            self._may_fill(node.mentioned)
        if isinstance(node, tree.If):
            for call in _calls(node.condition):
                if self._call_effect(call, target):
                    return True
            if self._try(node.condition) is None and _only_leaves(node.yes):
                return self._walk(node.no, target)  # if (argc != 2) { usage; return 1; }
        return super()._walk(node, target)

    def _effect(self, node: Any, target: tree.Launch) -> bool:
        if node is target:
            self.arguments = [self._argument(a) for a in target.arguments]
            return super()._effect(node, target)
        for call in _calls(node):
            if self._call_effect(call, target):
                return True
        if isinstance(node, tree.Launch):
            self._may_fill({_root(a) for a in node.arguments})
        if isinstance(node, tree.Assign):
            self._assign_pointer(node)
        return super()._effect(node, target)

    def _may_fill(self, names: set[str] | frozenset[str]) -> None:
        for name in names:
            if name in self.memory:
                self.memory[name].filled = True

    def _assign_pointer(self, node: tree.Assign) -> None:
        source = _root(node.value)
        if isinstance(node.target, tree.Name) and source in self.memory and not node.op:
            self.memory[node.target.name] = self.memory[source]

    def _declare(self, node: tree.Declaration) -> None:
        super()._declare(node)
        for item in node.items:
            if isinstance(item.init, (tree.Name, tree.Cast)) and _root(item.init) in self.memory:
                self.memory[item.name] = self.memory[_root(item.init)]

    # -- calls of the CUDA runtime, and of functions on the way to the launch

    def _call_effect(self, node: tree.Call, target: tree.Launch) -> bool:
        name = called(node)
        if name in ALLOCATORS and len(node.arguments) >= 2:
            size = self._try(node.arguments[1])
            known = int(size[1]) if isinstance(size, tuple) else None
            self.memory[_root(node.arguments[0])] = Memory(known, filled=name == "cudaMallocManaged")
        elif name in COPIES and len(node.arguments) >= 3:
            words = {_root(a) for a in node.arguments[3:]}
            memory = self.memory.get(_root(node.arguments[0]))
            if memory is not None and "cudaMemcpyDeviceToHost" not in words:
                memory.filled = True
        elif name in CLEARS and node.arguments:
            memory = self.memory.get(_root(node.arguments[0]))
            if memory is not None:
                memory.cleared = True
        elif name not in IDLE:  # whoever gets the pointer may write through it
            self._may_fill({_root(a) for a in node.arguments})
        self._may_change(node, name)
        for function in self.table.functions_named(name, "")[1]:
            if id(function) in self.reaching and function.tokens and self.level < DEPTH:
                return self._enter(function, node, target)
        return False

    def _may_change(self, node: tree.Call, name: str) -> None:
        """Variables that a call gets by reference or by address are not known afterwards."""
        functions = [f for f in self.table.functions_named(name, "")[1] if not f.library]
        for i, argument in enumerate(node.arguments):
            by_reference = name in self.table.entities.unread or any(
                i < len(f.parameters) and isinstance(f.parameters[i].type, tree.TypeReference) for f in functions
            )
            target = argument.operand if isinstance(argument, tree.Unary) and argument.op == "&" else argument
            if isinstance(target, tree.Name) and (by_reference or target is not argument) and target.name in self.names:
                self._set(target.name, None)

    def _enter(self, function: tree.Function, node: tree.Call, target: tree.Launch) -> bool:
        names: dict[str, Any] = {}
        memory: dict[str, Memory] = {}
        for parameter, argument in zip(function.parameters, node.arguments, strict=False):
            names[parameter.name] = self._try(argument)
            held = self.memory.get(_root(argument))
            if held is not None:
                memory[parameter.name] = held
        kept = self.names, self.memory
        self.names, self.memory = names, memory
        self.level += 1
        try:
            return self._walk(host_body(self.table, function), target)
        finally:
            self.level -= 1
            self.names, self.memory = kept

    def _argument(self, node: Any) -> Any:
        name = _root(node)
        if name in self.memory:
            return None if isinstance(node, tree.Binary) else self.memory[name]
        try:
            value = self.value(node)
        except Unknown:
            return None
        return value if isinstance(value, tuple) and isinstance(value[0], Scalar) else None


def _reaching(table: SymbolTable, site: tree.Function) -> set[int]:
    """The functions from which calls lead to the one with the launch."""
    reached, names = {id(site)}, {site.short}
    words = {id(f): (f, {t.text for t in tokens_of(f.tokens or [])}) for f in host_functions(table)}
    while True:
        more = {(number, f.short) for number, (f, used) in words.items() if number not in reached and used & names}
        if not more:
            return reached
        reached |= {number for number, _ in more}
        names |= {name for _, name in more}


def _calls(node: Any) -> list[tree.Call]:
    """All calls inside an expression, inner ones first."""
    if isinstance(node, tree.Call):
        return [c for a in node.arguments for c in _calls(a)] + [node]
    if isinstance(node, (tree.Unary, tree.Cast)):
        return _calls(node.operand)
    if isinstance(node, tree.Binary):
        return _calls(node.left) + _calls(node.right)
    if isinstance(node, tree.Assign):
        return _calls(node.value)
    if isinstance(node, tree.Ternary):
        return _calls(node.condition) + _calls(node.yes) + _calls(node.no)
    return []


def _root(node: Any) -> str:
    """The variable that an argument is, casts and & and + taken off: `(void**)&d_A` is d_A, `&m.data` is m.data."""
    while isinstance(node, (tree.Cast, tree.Unary)):
        node = node.operand
    if isinstance(node, tree.Binary) and node.op in ("+", "-"):
        return _root(node.left)
    if isinstance(node, tree.Member):
        return f"{_root(node.base)}.{node.name}"
    return node.name if isinstance(node, tree.Name) else ""


def _only_leaves(node: Any) -> bool:
    """Whether a branch ends the function: return or exit()."""
    last = node.body[-1] if isinstance(node, tree.Block) and node.body else node
    if isinstance(last, tree.Return):
        return True
    return (
        isinstance(last, tree.Expression)
        and isinstance(last.value, tree.Call)
        and called(last.value) in ("exit", "abort")
    )
