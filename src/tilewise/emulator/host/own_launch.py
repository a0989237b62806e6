"""The launch as `main` makes it: walked from main to the <<<…>>>, with the sizes, allocations and copies on the way.

Nothing is executed: what the walk cannot know stays unknown, and then there is no own launch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tilewise.emulator.frontend.ctype import Scalar
from tilewise.emulator.frontend.syntax import (
    Assign,
    Binary,
    Block,
    Call,
    Cast,
    Declaration,
    Expr,
    ExprStmt,
    File,
    Function,
    If,
    Launch,
    Member,
    Name,
    Opaque,
    ReferenceType,
    Return,
    Stmt,
    Ternary,
    Unary,
)  # fmt: skip
from tilewise.emulator.frontend.type_resolver import TypeResolver
from tilewise.emulator.host.host_values import Typed, Unknown
from tilewise.emulator.host.launch_site import HostRun, LaunchSite, LaunchValue

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
    def __init__(self, types: TypeResolver, file: File, supplied: dict[str, Typed], site: LaunchSite) -> None:
        super().__init__(types, file, {}, supplied)
        self.site = site
        self.memory: dict[str, Memory] = {}
        self.arguments: list[Any] = []
        self.level = 0
        self.reaching = _reaching(file, site.function)

    def find(self) -> OwnLaunch | None:
        mains = [f for f in self.file.functions.get("main", []) if f.body is not None]
        if not mains or id(mains[0]) not in self.reaching:
            return None
        self._walk(mains[0].body, self.site.launch)
        if self.value_at is None:
            return None
        return OwnLaunch(self.value_at, self.site, self.arguments)

    # -- statements

    def _walk(self, node: Stmt | None, target: Launch) -> bool:
        if isinstance(node, Declaration):
            for item in node.items:
                for call in [c for e in (item.init, *(item.arguments or [])) if e is not None for c in _calls(e)]:
                    if self._call_effect(call, target):
                        return True
        if isinstance(node, Opaque):
            self._may_fill(node.mentioned)
        if isinstance(node, If):
            for call in _calls(node.condition):
                if self._call_effect(call, target):
                    return True
            if self._try(node.condition) is None and _only_leaves(node.yes):
                return self._walk(node.no, target)  # if (argc != 2) { usage; return 1; }
        return super()._walk(node, target)

    def _effect(self, node: Expr, target: Launch) -> bool:
        if node is target:
            self.arguments = [self._argument(a) for a in target.arguments]
            return super()._effect(node, target)
        for call in _calls(node):
            if self._call_effect(call, target):
                return True
        if isinstance(node, Launch):
            self._may_fill({_root(a) for a in node.arguments})
        if isinstance(node, Assign):
            self._assign_pointer(node)
        return super()._effect(node, target)

    def _may_fill(self, names: set[str] | frozenset[str]) -> None:
        for name in names:
            if name in self.memory:
                self.memory[name].filled = True

    def _assign_pointer(self, node: Assign) -> None:
        source = _root(node.value)
        if isinstance(node.target, Name) and source in self.memory and not node.op:
            self.memory[node.target.name] = self.memory[source]

    def _declare(self, node: Declaration) -> None:
        super()._declare(node)
        for item in node.items:
            if isinstance(item.init, (Name, Cast)) and _root(item.init) in self.memory:
                self.memory[item.name] = self.memory[_root(item.init)]

    # -- calls of the CUDA runtime, and of functions on the way to the launch

    def _call_effect(self, node: Call, target: Launch) -> bool:
        name = node.name.split("::")[-1]
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
        for function in self.file.functions.get(name, []):
            if id(function) in self.reaching and function.body is not None and self.level < DEPTH:
                return self._enter(function, node, target)
        return False

    def _may_change(self, node: Call, name: str) -> None:
        """Variables that a call gets by reference or by address are not known afterwards."""
        functions = [f for f in self.file.functions.get(name, []) if f.body is not None or f.parameters]
        for i, argument in enumerate(node.arguments):
            by_reference = any(
                (i < len(f.parameters) and isinstance(f.parameters[i].type, ReferenceType)) or f.refusal is not None
                for f in functions
            )
            target = argument.operand if isinstance(argument, Unary) and argument.op == "&" else argument
            if isinstance(target, Name) and (by_reference or target is not argument) and target.name in self.names:
                self._set(target.name, None)

    def _enter(self, function: Function, node: Call, target: Launch) -> bool:
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
            return self._walk(function.body, target)
        finally:
            self.level -= 1
            self.names, self.memory = kept

    def _argument(self, node: Expr) -> Any:
        name = _root(node)
        if name in self.memory:
            return None if isinstance(node, Binary) else self.memory[name]
        try:
            value = self.value(node)
        except Unknown:
            return None
        return value if isinstance(value, tuple) and isinstance(value[0], Scalar) else None


def _reaching(file: File, site: Function) -> set[int]:
    """The functions from which calls lead to the one with the launch."""
    reached, names = {id(site)}, {site.name}
    while True:
        more = {
            (id(f), f.name)
            for functions in file.functions.values()
            for f in functions
            if f.body is not None and id(f) not in reached and any(t.text in names for t in f.tokens)
        }
        if not more:
            return reached
        reached |= {number for number, _ in more}
        names |= {name for _, name in more}


def _calls(node: Any) -> list[Call]:
    """All calls inside an expression, inner ones first."""
    if isinstance(node, Call):
        return [c for a in node.arguments for c in _calls(a)] + [node]
    if isinstance(node, (Unary, Cast)):
        return _calls(node.operand)
    if isinstance(node, Binary):
        return _calls(node.left) + _calls(node.right)
    if isinstance(node, Assign):
        return _calls(node.value)
    if isinstance(node, Ternary):
        return _calls(node.condition) + _calls(node.yes) + _calls(node.no)
    return []


def _root(node: Any) -> str:
    """The variable that an argument is, casts and & and + taken off: `(void**)&d_A` is d_A, `&m.data` is m.data."""
    while isinstance(node, (Cast, Unary)):
        node = node.operand
    if isinstance(node, Binary) and node.op in ("+", "-"):
        return _root(node.left)
    if isinstance(node, Member):
        return f"{_root(node.base)}.{node.name}"
    return node.name if isinstance(node, Name) else ""


def _only_leaves(node: Stmt) -> bool:
    """Whether a branch ends the function: return or exit()."""
    last = node.body[-1] if isinstance(node, Block) and node.body else node
    if isinstance(last, Return):
        return True
    return isinstance(last, ExprStmt) and isinstance(last.value, Call) and last.value.name in ("exit", "abort")
