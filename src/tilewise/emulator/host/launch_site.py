"""The launch in the file: where it is, and what its <<<grid, block>>> comes to for the sizes asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tilewise.emulator.frontend import ctype
from tilewise.emulator.frontend.ctype import Scalar
from tilewise.emulator.frontend.syntax import (
    Assign,
    AutoType,
    Binary,
    Block,
    Call,
    Declaration,
    Expr,
    ExprStmt,
    File,
    For,
    Function,
    If,
    Launch,
    Member,
    Name,
    Number,
    Opaque,
    Step,
    Stmt,
    Switch,
    TypeNode,
    While,
)  # fmt: skip
from tilewise.emulator.frontend.type_resolver import TypeResolver
from tilewise.emulator.host.host_values import HostValues, Typed, Unknown, convert


@dataclass
class LaunchSite:
    """One <<<…>>> of a kernel, in the host function that makes it."""

    launch: Launch
    function: Function
    arguments: list[str] = field(default_factory=list)  # the name each argument is, or ""


@dataclass
class LaunchValue:
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    shared: int | None  # bytes of extern __shared__ memory; None where they could not be found
    template: list[Any]
    unknown: str = ""  # why grid or block could not be found


def find_launches(file: File, kernel: str) -> list[LaunchSite]:
    out: list[LaunchSite] = []
    for functions in file.functions.values():
        for function in functions:
            if function.body is not None and "__global__" not in function.words:
                for launch in _launches(function.body):
                    if launch.kernel.name.split("::")[-1] == kernel:
                        names = [_argument_name(a) for a in launch.arguments]
                        out.append(LaunchSite(launch, function, names))
    return out


def _argument_name(node: Expr) -> str:
    from tilewise.emulator.frontend.syntax import Cast, Unary

    while isinstance(node, (Cast, Unary)):
        node = node.operand
    if isinstance(node, Number):
        return node.origin
    if isinstance(node, Member) and isinstance(node.base, Name):
        return f"{node.base.name}.{node.name}"
    return node.name if isinstance(node, Name) else ""


def _launches(node: Any) -> list[Launch]:
    """All launches below a statement or expression."""
    if isinstance(node, Launch):
        return [node]
    if isinstance(node, Block):
        return [x for s in node.body for x in _launches(s)]
    if isinstance(node, Switch):
        return [x for s in node.body for x in _launches(s)]
    if isinstance(node, If):
        return _launches(node.yes) + (_launches(node.no) if node.no else [])
    if isinstance(node, (For, While)):
        return _launches(node.body)
    if isinstance(node, ExprStmt):
        return _launches(node.value)
    if isinstance(node, Binary):
        return _launches(node.left) + _launches(node.right)
    if isinstance(node, Call):
        return [x for a in node.arguments for x in _launches(a)]
    return []


class HostRun(HostValues):
    """Walks the host function once, in order, keeping what is known; forced names keep the value given."""

    def __init__(self, types: TypeResolver, file: File, forced: dict[str, Any], supplied: dict[str, Typed]) -> None:
        """`supplied` are constants of headers that are not there; the file's own names come first."""
        super().__init__(types, file.functions)
        self.supplied = supplied
        self.file = file
        self.forced = forced
        self.names.update(forced)
        self.outer = self._global
        self._busy: set[str] = set()
        self.value_at: LaunchValue | None = None

    def _global(self, name: str) -> Typed | None:
        if name in self.file.constants:
            return self.scalar(self.file.constants[name])
        entry = self.file.variables.get(name)
        if entry is None or entry[0].init is None or name in self._busy:
            return self.supplied.get(name)
        self._busy.add(name)
        try:
            value = self.value(entry[0].init)
            type_ = self._type(entry[0].type)
            return convert(value, type_) if isinstance(type_, Scalar) else value
        finally:
            self._busy.discard(name)

    def run(self, site: LaunchSite) -> LaunchValue:
        assert site.function.body is not None
        self._walk(site.function.body, site.launch)
        if self.value_at is None:
            return LaunchValue(None, None, None, [], "the launch stands where it cannot be followed")
        return self.value_at

    def _set(self, name: str, value: Any) -> None:
        if name not in self.forced:
            self.names[name] = value

    def _try(self, node: Expr) -> Any:
        try:
            return self.value(node)
        except Unknown:
            return None

    def _walk(self, node: Stmt | None, target: Launch) -> bool:
        """True once the launch was met."""
        if node is None:
            return False
        if isinstance(node, Block):
            return any(self._walk(s, target) for s in node.body)
        if isinstance(node, Declaration):
            self._declare(node)
        elif isinstance(node, ExprStmt):
            return self._effect(node.value, target)
        elif isinstance(node, If):
            condition = self._try(node.condition)
            if isinstance(condition, tuple):
                inside = node.yes if condition[1] else node.no
                if target in _launches(node.yes) and inside is not node.yes:
                    inside = node.yes
                return self._walk(inside, target)
            return self._walk(node.yes, target) or self._walk(node.no, target)
        elif isinstance(node, For):
            self._walk(node.init, target)
            return self._walk(node.body, target)
        elif isinstance(node, While):
            return self._walk(node.body, target)
        elif isinstance(node, Switch):
            return any(self._walk(s, target) for s in node.body)
        elif isinstance(node, Opaque):
            for name in node.names:
                if name in self.names and name not in self.forced and not isinstance(self.names[name], dict):
                    self.names[name] = None
        return False

    def _declare(self, node: Declaration) -> None:
        for item in node.items:
            value: Any = None
            type_: Any = None
            if isinstance(item.type, TypeNode) and not isinstance(item.type, AutoType):
                try:
                    type_ = self._type(item.type)
                except Unknown:
                    type_ = None
            try:
                if type_ is ctype.DIM3:
                    value = self.dim3([item.init] if item.init is not None else item.arguments or [])
                elif item.init is not None:
                    value = self.value(item.init)
                elif item.arguments is not None and len(item.arguments) == 1:
                    value = self.value(item.arguments[0])
            except Unknown:
                value = None
            if isinstance(type_, Scalar) and isinstance(value, tuple):
                value = convert(value, type_)
            self._set(item.name, value)

    def _effect(self, node: Expr, target: Launch) -> bool:
        if isinstance(node, Launch):
            if node is target:
                self.value_at = self._launch(node)
                return True
            return False
        if isinstance(node, Binary) and node.op == ",":
            return self._effect(node.left, target) or self._effect(node.right, target)
        if isinstance(node, Call):
            return any(self._effect(a, target) for a in node.arguments if target in _launches(a))
        if isinstance(node, Assign):
            self._assign(node)
        elif isinstance(node, Step) and isinstance(node.target, Name):
            self._set(node.target.name, None)
        return False

    def _assign(self, node: Assign) -> Any:
        value = self._assign(node.value) if isinstance(node.value, Assign) else self._try(node.value)
        target = node.target
        if node.op and value is not None:
            old = self._try(target)
            value = self.operate(node.op, old, value) if isinstance(old, tuple) and isinstance(value, tuple) else None
        if isinstance(target, Name):
            old = self.names.get(target.name)
            if isinstance(old, tuple) and isinstance(value, tuple):
                value = convert(value, old[0])
            self._set(target.name, value)
        elif isinstance(target, Member) and isinstance(target.base, Name):
            base = self.names.get(target.base.name)
            if isinstance(base, list) and target.name in ("x", "y", "z"):
                parts = list(base)
                known = convert(value, ctype.UINT) if isinstance(value, tuple) else None
                parts["xyz".index(target.name)] = known
                self.names[target.base.name] = parts
                return known
        return value

    def _launch(self, node: Launch) -> LaunchValue:
        found: list[Any] = []
        unknown = ""
        for argument in node.configuration[:2]:
            try:
                value = self.value(argument)
                parts = value if isinstance(value, list) else self.dim3([argument])
                if any(p is None for p in parts):
                    raise Unknown(f"a part of {'block' if found else 'grid'} is not known before the host runs")
                found.append(tuple(int(p[1]) for p in parts))
            except Unknown as error:
                unknown = unknown or str(error)
                found.append(None)
        while len(found) < 2:
            found.append(None)
            unknown = unknown or "<<<…>>> needs a grid and a block"
        shared: int | None = 0
        if len(node.configuration) > 2:
            try:
                shared = int(self.scalar(node.configuration[2])[1])
            except Unknown as error:
                shared, unknown = None, unknown or str(error)
        template: list[Any] = []
        for argument in node.kernel.arguments or []:
            try:
                if isinstance(argument, TypeNode):
                    template.append(self._type(argument))
                else:
                    template.append(int(self.scalar(argument)[1]))
            except Unknown:
                template.append(None)
        return LaunchValue(found[0], found[1], shared, template, unknown)
