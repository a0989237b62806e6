"""The launch in the file: where it is, and what its <<<grid, block>>> comes to for given sizes."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.packed_body import tokens_of
from tilewise.emulator.parse.types import Scalar
from tilewise.emulator.sema.bodies import body_of
from tilewise.emulator.sema.constants import evaluate
from tilewise.emulator.sema.symbol_table import Environment, SymbolTable, Unknown
from tilewise.emulator.sema.type_resolution import argument as template_argument
from tilewise.errors import KernelError

Typed = tuple[Any, Scalar]
VECTORS = ("dim3", "uint3", "make_uint3")


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
    arguments: list[Any] = field(default_factory=list)  # a number, or None where it is none or not known


def find_launches(table: SymbolTable, kernel: str) -> list[LaunchSite]:
    out: list[LaunchSite] = []
    for function in host_functions(table):
        if any(t.text in ("<<<", "<<") for t in tokens_of(function.tokens or [])):
            for launch in launches_in(host_body(table, function)):
                if isinstance(launch.kernel, tree.Name) and launch.kernel.name.rpartition("::")[2] == kernel:
                    out.append(LaunchSite(launch, function, [_argument_name(a) for a in launch.arguments]))
    return out


def host_functions(table: SymbolTable) -> list[tree.Function]:
    """The program's own that have a body and are no kernels, methods after the rest."""
    entities = table.entities
    free = [f for functions in entities.functions.values() for f in functions]
    methods = [m for classes in entities.classes.values() for c in classes for m in c.methods]
    return [f for f in [*free, *methods] if f.tokens and not f.library and "__global__" not in f.specifiers]


def host_body(table: SymbolTable, function: tree.Function) -> tree.Block:
    """Its body as far as it can be read."""
    try:
        return body_of(table, function, Environment(scope=function.scope), lenient=True)
    except KernelError:
        return tree.Block([])


def launches_in(node: Any) -> list[tree.Launch]:
    found = [item for item in tree.walk(node) if isinstance(item, tree.Launch)]
    return sorted(found, key=lambda launch: (launch.line, launch.column))


def _argument_name(node: Any) -> str:
    while isinstance(node, (tree.Cast, tree.Unary)):
        node = node.operand
    if isinstance(node, tree.Number):
        return node.origin
    if isinstance(node, tree.Member) and isinstance(node.base, tree.Name):
        return f"{node.base.name}.{node.name}"
    return node.name if isinstance(node, tree.Name) else ""


class HostNames:
    """The host function of a launch, read in order up to it: what its names come to for the sizes given.

    `forced` names keep their values; members stand under their paths, `grid.x`. `supplied` are constants of headers
    that are not there: the file's own names come first."""

    def __init__(self, table: SymbolTable, forced: dict[str, Typed], supplied: dict[str, Typed]) -> None:
        self.table, self.forced, self.supplied = table, forced, supplied
        self.known: dict[str, Typed | None] = dict(forced)
        self.environment = Environment(local=self.lookup)
        self.busy: set[str] = set()

    def at(self, site: LaunchSite) -> LaunchValue:
        if not self._read(host_body(self.table, site.function), site.launch):
            return LaunchValue(None, None, None, [], "the launch stands where it cannot be followed")
        return self._launch(site.launch)

    def lookup(self, name: str) -> Any:
        """What the symbol table wants to know of a variable; None where it is none of the function's."""
        if name in self.known:
            found = self.known[name]
        else:
            item = self.table.entities.variables.get(name)
            if item is None or item.init is None or isinstance(item.type, tree.TypeConst) or name in self.busy:
                found = self.supplied.get(name)
            else:
                self.busy.add(name)
                found = self._converted(self._try(item.init), item.type)
                self.busy.discard(name)
            if found is None:
                return None
        return SimpleNamespace(constant=found and found[0], type=found and found[1])

    def value(self, node: Any) -> Typed:
        try:
            return evaluate(self.table, node, self.environment)
        except KernelError as error:
            raise Unknown(error.message) from None

    def _try(self, node: Any) -> Typed | None:
        try:
            return self.value(node)
        except Unknown:
            return None

    def _converted(self, value: Typed | None, written: Any) -> Typed | None:
        if value is None or tree.is_auto(written):
            return value
        try:
            type_ = types.bare(self.table.resolve(written, self.environment))
        except (KernelError, Unknown):
            return value
        return (types.wrap(type_, value[0]), type_) if isinstance(type_, Scalar) else value

    def _read(self, node: Any, target: tree.Launch) -> bool:
        """True once the launch was met."""
        if isinstance(node, tree.Block):
            return any(self._read(part, target) for part in node.body)
        if isinstance(node, tree.If):
            condition = self._try(node.condition)
            if condition is not None and target not in launches_in(node):
                return self._read(node.yes if condition[0] else node.no, target)
            return self._read(node.yes, target) or self._read(node.no, target)
        if isinstance(node, (tree.For, tree.While, tree.Switch)):
            return self._read(getattr(node, "init", None), target) or self._read(node.body, target)
        if isinstance(node, tree.Declaration):
            for item in node.items:
                given = [item.init] if item.init is not None else item.arguments or []
                self._set(item.name, given, item.type)
        elif isinstance(node, tree.Expression):
            return self._effect(node.value, target)
        elif isinstance(node, tree.Unread):
            for name in node.changed:
                self._put(name, None)
        return False

    def _effect(self, node: Any, target: tree.Launch) -> bool:
        if target in launches_in(node):
            return True
        for part in tree.walk(node):
            if isinstance(part, tree.Assign):
                self._assign(part)
            elif isinstance(part, tree.Step):
                self._put(_argument_name(part.operand), None)
        return False

    def _assign(self, node: tree.Assign) -> None:
        name, value = _argument_name(node.target), node.value
        while isinstance(value, tree.Assign):
            value = value.value
        if node.op:
            value = tree.Binary(node.op, node.target, value)
        old = self.known.get(name)
        self._set(name, [value], old[1] if old is not None else tree.TypeAuto())

    def _set(self, name: str, given: list[Any], written: Any) -> None:
        """A variable's new value: a number, or three of a dim3."""
        parts = _components(given[0]) if len(given) == 1 else given
        plain = written.of if isinstance(written, tree.TypeConst) else written
        dim3 = isinstance(plain, tree.TypeName) and plain.name in VECTORS
        if dim3 or (len(given) == 1 and parts is not None and not isinstance(given[0], tree.Braces)):
            try:
                for axis, size in zip("xyz", self._three(parts if parts is not None else given), strict=True):
                    self._put(f"{name}.{axis}", (size, types.UINT))
            except Unknown:
                for axis in "xyz":
                    self._put(f"{name}.{axis}", None)
            return
        source = given[0].name if len(given) == 1 and isinstance(given[0], tree.Name) else ""
        for axis in "xyz":  # a copy of a dim3
            if f"{source}.{axis}" in self.known:
                self._put(f"{name}.{axis}", self.known[f"{source}.{axis}"])
        self._put(name, self._converted(self._try(given[0]), written) if len(given) == 1 else None)

    def _put(self, name: str, value: Typed | None) -> None:
        if name and name not in self.forced:
            self.known[name] = value

    def _three(self, given: list[Any]) -> tuple[int, int, int]:
        if len(given) == 1 and isinstance(given[0], tree.Name) and f"{given[0].name}.x" in self.known:
            found = [self.known[f"{given[0].name}.{axis}"] for axis in "xyz"]
            if any(part is None for part in found):
                raise Unknown(f"a part of {given[0].name} is not known before the host runs")
            return tuple(int(part[0]) for part in found if part is not None)  # type: ignore[return-value]
        if len(given) == 1 and (inner := _components(given[0])) is not None:
            return self._three(inner)
        sizes = [int(types.wrap(types.UINT, self.value(part)[0])) for part in given[:3]]
        x, y, z = [*sizes, 1, 1, 1][:3]
        return x, y, z

    def _launch(self, node: tree.Launch) -> LaunchValue:
        found: list[Any] = []
        unknown = "" if len(node.configuration) > 1 else "<<<…>>> needs a grid and a block"
        for argument in node.configuration[:2]:
            try:
                found.append(self._three([argument]))
            except Unknown as error:
                unknown = unknown or str(error) or f"{_text(argument)} is not known before the host runs"
                found.append(None)
        shared: int | None = 0
        if len(node.configuration) > 2:
            size = self._try(node.configuration[2])
            shared = int(size[0]) if size is not None else None
            unknown = unknown or ("" if size is not None else "the bytes of shared memory are not known")
        template: list[Any] = []
        named = node.kernel.arguments if isinstance(node.kernel, (tree.Name, tree.Member)) else None
        for argument in named or []:
            try:
                template.append(template_argument(self.table, argument, self.environment))
            except (KernelError, Unknown):
                template.append(None)
        grid, block = [*found, None, None][:2]
        numbers = [self._try(argument) for argument in node.arguments]
        return LaunchValue(grid, block, shared, template, unknown, [number and number[0] for number in numbers])


def _components(node: Any) -> list[Any] | None:
    """The arguments of `dim3(…)` or `{…}`; None where it is neither."""
    if isinstance(node, tree.Braces):
        return node.items
    if isinstance(node, tree.Construct) and isinstance(node.type, tree.TypeName) and node.type.name in VECTORS:
        return node.items
    if isinstance(node, tree.Call) and isinstance(node.function, tree.Name) and node.function.name in VECTORS:
        return node.arguments
    return None


def _text(node: Any) -> str:
    return _argument_name(node) or "a part of it"
