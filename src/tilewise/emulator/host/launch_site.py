"""The launch in the file: where it is, and what its <<<grid, block>>> comes to for the sizes asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from tilewise.emulator.compile.resolver import TypeResolver
from tilewise.emulator.host.host_values import HostValues, Typed, Unknown, convert
from tilewise.emulator.machine import ctype
from tilewise.emulator.machine.ctype import Scalar, Struct
from tilewise.emulator.parse import tree
from tilewise.emulator.parse.packed_body import tokens_of
from tilewise.emulator.sema.bodies import body_of
from tilewise.emulator.sema.constants import evaluate
from tilewise.emulator.sema.symbol_table import Environment, SymbolTable
from tilewise.emulator.sema.symbol_table import Unknown as NotConstant
from tilewise.emulator.sema.type_resolution import argument as template_argument
from tilewise.errors import KernelError


@dataclass
class LaunchSite:
    """One <<<…>>> of a kernel, in the host function that makes it."""

    launch: tree.Launch
    function: tree.Function
    arguments: list[str] = field(default_factory=list)  # the name each argument is, or ""


@dataclass
class LaunchValue:
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    shared: int | None  # bytes of extern __shared__ memory; None where they could not be found
    template: list[Any]
    unknown: str = ""  # why grid or block could not be found


def find_launches(table: SymbolTable, kernel: str) -> list[LaunchSite]:
    out: list[LaunchSite] = []
    for function in host_functions(table):
        if any(t.text in ("<<<", "<<") for t in tokens_of(function.tokens or [])):
            for launch in _launches(host_body(table, function)):
                if isinstance(launch.kernel, tree.Name) and launch.kernel.name.rpartition("::")[2] == kernel:
                    out.append(LaunchSite(launch, function, [_argument_name(a) for a in launch.arguments]))
    return out


def host_functions(table: SymbolTable) -> list[tree.Function]:
    """The program's own that have a body and are no kernels, methods after the rest."""
    entities = table.entities
    free = [f for functions in entities.functions.values() for f in functions]
    methods = [m for classes in entities.classes.values() for c in classes for m in c.methods]
    return [f for f in [*free, *methods] if f.tokens and not f.library and "__global__" not in f.words]


def host_body(table: SymbolTable, function: tree.Function) -> tree.Block:
    """Its body as far as it can be read."""
    try:
        return body_of(table, function, Environment(scope=function.scope), lenient=True)
    except KernelError:
        return tree.Block([])


def _argument_name(node: Any) -> str:
    while isinstance(node, (tree.Cast, tree.Unary)):
        node = node.operand
    if isinstance(node, tree.Number):
        return node.origin
    if isinstance(node, tree.Member) and isinstance(node.base, tree.Name):
        return f"{node.base.name}.{node.name}"
    return node.name if isinstance(node, tree.Name) else ""


def _launches(node: Any) -> list[tree.Launch]:
    """All launches below a statement or expression."""
    if isinstance(node, tree.Launch):
        return [node]
    if isinstance(node, tree.Block):
        return [x for s in node.body for x in _launches(s)]
    if isinstance(node, tree.Switch):
        return _launches(node.body)
    if isinstance(node, tree.If):
        return _launches(node.yes) + (_launches(node.no) if node.no else [])
    if isinstance(node, (tree.For, tree.While)):
        return _launches(node.body)
    if isinstance(node, tree.Expression):
        return _launches(node.value)
    if isinstance(node, tree.Binary):
        return _launches(node.left) + _launches(node.right)
    if isinstance(node, tree.Call):
        return [x for a in node.arguments for x in _launches(a)]
    return []


class HostRun(HostValues):
    """Walks the host function once, in order, keeping what is known; forced names keep the value given."""

    def __init__(self, types: TypeResolver, forced: dict[str, Any], supplied: dict[str, Typed]) -> None:
        """`supplied` are constants of headers that are not there; the file's own names come first."""
        super().__init__(types)
        self.supplied = supplied
        self.forced = forced
        self.names.update(forced)
        self.outer = self._global
        self._busy: set[str] = set()
        self.value_at: LaunchValue | None = None

    def _global(self, name: str) -> Typed | None:
        try:
            known = evaluate(self.table, tree.Name(name), Environment())
        except NotConstant:
            known = None
        if known is not None:
            scalar = self.types.machine_type(known[1], tree.Name(name))
            return (scalar, scalar.dtype.type(known[0])) if isinstance(scalar, Scalar) else None
        item = self.table.entities.variables.get(name)
        if item is None or item.init is None or name in self._busy:
            return self.supplied.get(name)
        self._busy.add(name)
        try:
            value = self.value(item.init)
            type_ = self._type(item.type)
            return convert(value, type_) if isinstance(type_, Scalar) else value
        finally:
            self._busy.discard(name)

    def run(self, site: LaunchSite) -> LaunchValue:
        self._walk(host_body(self.table, site.function), site.launch)
        if self.value_at is None:
            return LaunchValue(None, None, None, [], "the launch stands where it cannot be followed")
        return self.value_at

    def _known(self, name: str) -> Any:
        """What the symbol table asks of a host function's variables."""
        if name not in self.names:
            return None
        value = self.names[name]
        known = value[1].item() if isinstance(value, tuple) else None
        type_ = self.types.written_type(value[0]) if isinstance(value, tuple) else None
        return SimpleNamespace(constant=known, type=type_)

    def _set(self, name: str, value: Any) -> None:
        if name not in self.forced:
            self.names[name] = value

    def _try(self, node: Any) -> Any:
        try:
            return self.value(node)
        except Unknown:
            return None

    def _walk(self, node: Any | None, target: tree.Launch) -> bool:
        """True once the launch was met."""
        if node is None:
            return False
        if isinstance(node, tree.Block):
            return any(self._walk(s, target) for s in node.body)
        if isinstance(node, tree.Declaration):
            self._declare(node)
        elif isinstance(node, tree.Expression):
            return self._effect(node.value, target)
        elif isinstance(node, tree.If):
            condition = self._try(node.condition)
            if isinstance(condition, tuple):
                inside = node.yes if condition[1] else node.no
                if target in _launches(node.yes) and inside is not node.yes:
                    inside = node.yes
                return self._walk(inside, target)
            return self._walk(node.yes, target) or self._walk(node.no, target)
        elif isinstance(node, tree.For):
            self._walk(node.init, target)
            return self._walk(node.body, target)
        elif isinstance(node, (tree.While, tree.Switch)):
            return self._walk(node.body, target)
        elif isinstance(node, tree.Unread):
            for name in node.changed:
                if name in self.names and name not in self.forced and not isinstance(self.names[name], dict):
                    self.names[name] = None
        return False

    def _declare(self, node: tree.Declaration) -> None:
        for item in node.items:
            value: Any = None
            type_: Any = None
            if not tree.is_auto(item.type):
                try:
                    type_ = self._type(item.type)
                except Unknown:
                    type_ = None
            try:
                if isinstance(type_, Struct) and type_.name == "dim3":
                    value = self.dim3(_given(item))
                elif item.init is not None:
                    value = self.value(item.init)
                elif item.arguments is not None and len(item.arguments) == 1:
                    value = self.value(item.arguments[0])
            except Unknown:
                value = None
            if isinstance(type_, Scalar) and isinstance(value, tuple):
                value = convert(value, type_)
            self._set(item.name, value)

    def _effect(self, node: Any, target: tree.Launch) -> bool:
        if isinstance(node, tree.Launch):
            if node is target:
                self.value_at = self._launch(node)
                return True
            return False
        if isinstance(node, tree.Binary) and node.op == ",":
            return self._effect(node.left, target) or self._effect(node.right, target)
        if isinstance(node, tree.Call):
            return any(self._effect(a, target) for a in node.arguments if target in _launches(a))
        if isinstance(node, tree.Assign):
            self._assign(node)
        elif isinstance(node, tree.Step) and isinstance(node.operand, tree.Name):
            self._set(node.operand.name, None)
        return False

    def _assign(self, node: tree.Assign) -> Any:
        value = self._assign(node.value) if isinstance(node.value, tree.Assign) else self._try(node.value)
        target = node.target
        if node.op and value is not None:
            old = self._try(target)
            value = self.operate(node.op, old, value) if isinstance(old, tuple) and isinstance(value, tuple) else None
        if isinstance(target, tree.Name):
            old = self.names.get(target.name)
            if isinstance(old, tuple) and isinstance(value, tuple):
                value = convert(value, old[0])
            self._set(target.name, value)
        elif isinstance(target, tree.Member) and isinstance(target.base, tree.Name):
            base = self.names.get(target.base.name)
            if isinstance(base, list) and target.name in ("x", "y", "z"):
                parts = list(base)
                known = convert(value, ctype.UINT) if isinstance(value, tuple) else None
                parts["xyz".index(target.name)] = known
                self.names[target.base.name] = parts
                return known
        return value

    def _launch(self, node: tree.Launch) -> LaunchValue:
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
                template.append(template_argument(self.table, argument, Environment(local=self._known)))
            except (KernelError, NotConstant):
                template.append(None)
        return LaunchValue(found[0], found[1], shared, template, unknown)


def _given(item: tree.Variable) -> list[Any]:
    if isinstance(item.init, tree.Braces):
        return item.init.items
    return [item.init] if item.init is not None else item.arguments or []
