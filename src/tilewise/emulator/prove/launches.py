"""The launch in the file, read with the sizes as symbols: blockDim, gridDim, shared bytes and allocations."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewise.emulator.host.launch_site import LaunchSite, host_body, launches_in
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Scalar
from tilewise.emulator.prove.expressions import Expressions
from tilewise.emulator.prove.terms import ONE, Poly
from tilewise.emulator.prove.values import Fields, Int, Nothing, NotModelled, Real, Value
from tilewise.emulator.sema.bodies import body_of
from tilewise.emulator.sema.symbol_table import Environment, Unknown
from tilewise.errors import KernelError

DIM3 = ("dim3", "uint3", "make_uint3")
Three = tuple[Poly, Poly, Poly]


@dataclass
class Host(Expressions):
    """The host function up to its launch. `sizes` are names of it that stand for the sizes of the claim."""

    sizes: dict[str, Poly] = field(default_factory=dict)
    allocated: dict[str, tuple[Poly, int]] = field(default_factory=dict)  # bytes, line
    single: bool = False  # the grid is computed in float

    def at(self, site: LaunchSite) -> tuple[Three, Three, Poly]:
        """Grid, block and bytes of shared memory."""
        for parameter in site.function.parameters:
            self._set(parameter.name, Nothing())
        if not self._read(host_body(self.table, site.function), site.launch):
            raise NotModelled("the launch stands where it cannot be followed", site.launch.line)
        given = site.launch.configuration
        if len(given) < 2:
            raise NotModelled("<<<…>>> needs a grid and a block", site.launch.line)
        shared = self._number(given[2]) if len(given) > 2 else Poly.of(0)
        return self._three(given[0]), self._three(given[1]), shared

    def _set(self, name: str, value: Value) -> None:
        self.declare(name, types.INT, Int(self.sizes[name], types.INT) if name in self.sizes else value)

    def _try(self, node: tree.Node) -> Value:
        before = len(self.events.ranges)
        try:
            return self.rvalue(node)
        except (NotModelled, KernelError, Unknown, RecursionError):
            del self.events.ranges[before:]
            return Nothing()

    def _read(self, node: tree.Node | None, target: tree.Launch) -> bool:
        if node is None:
            return False
        if isinstance(node, tree.Block):
            return any(self._read(part, target) for part in node.body)
        if isinstance(node, tree.Declaration):
            for item in node.items:
                self._declared(item)
            return False
        if target in launches_in(node):
            inner = [getattr(node, part, None) for part in ("init", "yes", "no", "body")]
            if isinstance(node, tree.For | tree.While):
                self._forget(node)
            return isinstance(node, tree.Expression) or any(self._read(part, target) for part in inner)
        if isinstance(node, tree.Expression):
            self._effect(node.value)
        else:
            self._forget(node)
        return False

    def _declared(self, item: tree.Variable) -> None:
        plain = item.type.of if isinstance(item.type, tree.TypeConst) else item.type
        given = [item.init] if item.init is not None else item.arguments or []
        if isinstance(plain, tree.TypeName) and plain.name in DIM3:
            self.declare(item.name, types.INT, self._fields(given))
            return
        value = self._try(given[0]) if len(given) == 1 else Nothing()
        if isinstance(value, Int | Real) and not tree.is_auto(item.type):
            try:
                type_ = types.bare(self.resolve(item.type))
                value = self.converted(value, type_, item) if isinstance(type_, Scalar) else Nothing()
            except NotModelled:
                value = Nothing()
        self._set(item.name, value)

    def _fields(self, given: list[tree.Node]) -> Value:
        try:
            found = self._three(given[0]) if len(given) == 1 else tuple(self._number(g) for g in given)
        except NotModelled:
            return Nothing()
        three = (*found, ONE, ONE, ONE)[:3]
        return Fields(tuple((axis, Int(size, types.UINT)) for axis, size in zip("xyz", three, strict=True)))

    def _forget(self, node: tree.Node) -> None:
        """What it may change is not known."""
        for part in tree.walk(node):
            target = (
                part.target
                if isinstance(part, tree.Assign)
                else part.operand
                if isinstance(part, tree.Step | tree.Unary)
                else None
            )
            while isinstance(target, tree.Member):
                target = target.base
            if isinstance(target, tree.Name):
                self._set(target.name, Nothing())
            if isinstance(part, tree.Unread):
                for name in part.changed:
                    self._set(name, Nothing())

    def _effect(self, node: tree.Node) -> None:
        for part in tree.walk(node):
            if _called(part) in ("cudaMalloc", "cudaMallocManaged"):
                self._allocation(part)
                return
        if isinstance(node, tree.Assign) and not node.op and isinstance(node.target, tree.Name):
            self._set(node.target.name, self._try(node.value))
        elif isinstance(node, tree.Assign) and not node.op and isinstance(node.target, tree.Member):
            self._member(node.target, node)
        else:
            self._forget(node)

    def _member(self, target: tree.Member, node: tree.Assign) -> None:
        name = target.base.name if isinstance(target.base, tree.Name) else ""
        slot = self.slot(name)
        whole = self.state.variables[slot] if slot is not None else None
        value = self._try(node.value)
        if slot is not None and isinstance(whole, Fields) and isinstance(value, Int):
            parts = {**dict(whole.parts), target.name: value}
            self.state.variables[slot] = Fields(tuple(parts.items()))
        else:
            self._forget(node)

    def _allocation(self, node: tree.Call) -> None:
        target, bytes_ = node.arguments[0], self._try(node.arguments[1])
        while isinstance(target, tree.Cast | tree.Unary):
            target = target.operand
        if isinstance(target, tree.Name):
            size = bytes_.poly if isinstance(bytes_, Int) else self.symbols.fresh("bytes", launch=True)
            self.allocated[target.name] = size, node.line

    def _number(self, node: tree.Node) -> Poly:
        value = self.rvalue(node)
        if isinstance(value, Real):
            value = self.converted(value, types.INT, node)
        return self.whole(value, node).poly

    def _three(self, node: tree.Node) -> Three:
        inner = (
            node.arguments
            if isinstance(node, tree.Construct | tree.Call)
            else node.items
            if isinstance(node, tree.Braces)
            else None
        )
        name = node.type.name if isinstance(node, tree.Construct) and isinstance(node.type, tree.TypeName) else ""
        if isinstance(node, tree.Call) and isinstance(node.function, tree.Name):
            name = node.function.name
        if inner is not None and (isinstance(node, tree.Braces) or name in DIM3):
            if len(inner) == 1 and isinstance(inner[0], tree.Braces):
                return self._three(inner[0])
            x, y, z = [*(self._number(part) for part in inner), ONE, ONE, ONE][:3]
            return x, y, z
        value = self.rvalue(node)
        if isinstance(value, Fields):
            x, y, z = (part.poly for _, part in value.parts if isinstance(part, Int))
            return x, y, z
        return self._number(node), ONE, ONE

    # -- what only the host has

    def name(self, node: tree.Name) -> Value:
        if self.slot(node.name) is None and node.name in self.sizes:
            return Int(self.sizes[node.name], types.INT)
        if self.slot(node.name) is None:
            item = self.table.entities.variables.get(node.name)
            if item is not None and item.init is not None and not isinstance(item.type, tree.TypeConst):
                return self._try(item.init)
        return super().name(node)

    def value(self, node: tree.Node) -> Value:
        if isinstance(node, tree.Number) and node.origin in self.sizes:
            return Int(self.sizes[node.origin], types.INT)
        if isinstance(node, tree.Cast | tree.Construct) and self.resolve(node.type) is types.FLOAT:
            self.single = True
        if isinstance(node, tree.Number) and node.type is types.FLOAT:
            self.single = True
        if isinstance(node, tree.Call) and _called(node) in ("ceil", "ceilf", "std::ceil"):
            return self._ceil(node)
        return super().value(node)

    def _ceil(self, node: tree.Call) -> Value:
        value = self.rvalue(node.arguments[0])
        self.single = self.single or (isinstance(node.function, tree.Name) and node.function.name == "ceilf")
        if isinstance(value, Int):
            return Real(value.poly)
        if isinstance(value, Real) and value.top is not None:
            return Real(self.symbols.divided(value.top + (value.bottom - 1), value.bottom)[0])
        raise NotModelled("ceil of a value that is not known", node.line)

    def call(self, function: tree.Function, node: tree.Call) -> Value:
        """Functions of one return: (a + b - 1) / b by another name."""
        env = Environment(scope=function.scope)
        body = body_of(self.table, function, env, lenient=True).body
        if len(body) != 1 or not isinstance(body[0], tree.Return) or body[0].value is None or function.template:
            raise NotModelled(f"{function.short} is more than one return", node.line)
        given = [self.rvalue(a) for a in node.arguments]
        outer, self.scopes = self.scopes, [{}]
        for parameter, value in zip(function.parameters, given, strict=True):
            type_ = types.bare(self.table.resolve(parameter.type, env))
            self.declare(parameter.name, type_, self.converted(value, type_, node))
        try:
            return self.converted(self.rvalue(body[0].value), self.table.resolve(function.result, env), node)
        finally:
            self.scopes = outer


def _called(node: tree.Node) -> str:
    return node.function.name if isinstance(node, tree.Call) and isinstance(node.function, tree.Name) else ""
