"""The launch in the file, read with the sizes as symbols: blockDim, gridDim, shared bytes and allocations."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tilewise.emulator.host.launch_site import LaunchSite, host_body, host_functions, launches_in
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.packed_body import tokens_of
from tilewise.emulator.parse.types import Scalar, Type
from tilewise.emulator.prove.expressions import Expressions
from tilewise.emulator.prove.terms import ONE, Poly
from tilewise.emulator.prove.values import Fields, Int, Nothing, NotModelled, Real, Truth, Value
from tilewise.emulator.sema.bodies import body_of
from tilewise.emulator.sema.symbol_table import Environment, Unknown
from tilewise.errors import KernelError

CHANGING = ("=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "++", "--")
DIM3 = ("dim3", "uint3", "make_uint3")
Three = tuple[Poly, Poly, Poly]


@dataclass
class Host(Expressions):
    """The host function up to its launch. `sizes` are names of it that stand for the sizes of the claim."""

    sizes: dict[str, Poly] = field(default_factory=dict)
    structs: dict[str, Fields] = field(default_factory=dict)  # matrices of the host by name: rows and columns
    allocated: dict[str, tuple[Poly, int]] = field(default_factory=dict)  # bytes, line
    single: bool = False  # the grid is computed in float

    def at(self, site: LaunchSite) -> tuple[Three, Three, Poly]:
        """Grid, block and bytes of shared memory."""
        for parameter in site.function.parameters:
            self._name(parameter.type, parameter.name, Nothing())
        if not self._read(host_body(self.table, site.function), site.launch):
            raise NotModelled("the launch stands where it cannot be followed", site.launch.line)
        given = site.launch.configuration
        if len(given) < 2:
            raise NotModelled("<<<…>>> needs a grid and a block", site.launch.line)
        shared = self._number(given[2]) if len(given) > 2 else Poly.of(0)
        return self._three(given[0]), self._three(given[1]), shared

    def _name(self, written: tree.Node, name: str, value: Value) -> None:
        """A variable or parameter of the host function, as its type holds it."""
        type_: Type = types.INT
        if name in self.structs:
            self.declare(name, type_, self.structs[name])
            return
        try:
            resolved = self.resolve(written)
            if not isinstance(value, Int | Real | Truth) or isinstance(resolved, Scalar):
                type_ = resolved
            else:
                value = Nothing()
        except NotModelled:
            value = Nothing()
        self.declare(name, type_, Nothing())
        self._set(name, value, written)

    def _set(self, name: str, value: Value, node: tree.Node) -> None:
        """A size of the claim is what it is at the launch: what was made of an earlier value is not known then."""
        slot = self.slot(name)
        if slot is None:
            return
        if name in self.sizes:
            if self.state.variables[slot] != Nothing():
                self._stale(self.sizes[name].symbols)
            value = Int(self.sizes[name], types.LONG)
        try:
            self.state.variables[slot] = self.converted(value, self.typed[slot], node) if value != Nothing() else value
        except NotModelled:
            self.state.variables[slot] = Nothing()

    def _stale(self, sizes: set[str]) -> None:
        for slot, value in self.state.variables.items():
            parts = [p for _, p in value.parts] if isinstance(value, Fields) else [value]
            polys = [p.poly if isinstance(p, Int) else p.top for p in parts if isinstance(p, Int | Real)]
            if any(p is not None and p.symbols & sizes for p in polys):
                self.state.variables[slot] = Nothing()
        for name, (bytes_, line) in self.allocated.items():
            if bytes_.symbols & sizes:
                self.allocated[name] = self.symbols.fresh("bytes", launch=True), line

    def _try(self, node: tree.Node) -> Value:
        before = len(self.events.ranges)
        try:
            return self.rvalue(node)
        except (NotModelled, KernelError, Unknown, RecursionError):
            del self.events.ranges[before:]
            self._forget(node)
            return Nothing()

    def _read(self, node: tree.Node | None, target: tree.Launch) -> bool:
        """True once the launch was met."""
        if node is None or isinstance(node, tree.Nothing):
            return False
        if target in launches_in(node):
            return self._inside(node, target)
        if isinstance(node, tree.Block):
            self.scopes.append({})
            for part in node.body:
                self._read(part, target)
            self.scopes.pop()
        elif isinstance(node, tree.Declaration):
            for item in node.items:
                self._declared(item)
        elif isinstance(node, tree.Expression):
            self._effect(node.value)
        elif isinstance(node, tree.While) and node.after and isinstance(node.condition, tree.Number):
            return self._read(node.body, target)  # a macro's do … while (0)
        else:
            if isinstance(node, tree.If):
                self._allocations(node.condition)
            self._forget(node)
        return False

    def _inside(self, node: tree.Node, target: tree.Launch) -> bool:
        """Of a branch only the side with the launch is read; a loop may have been through its body before."""
        self.scopes.append({})
        if isinstance(node, tree.Block):
            return any(self._read(part, target) for part in node.body)
        if isinstance(node, tree.If):
            self._read(node.init, target)
            self._forget(node.condition)
            return self._read(node.yes if target in launches_in(node.yes) else node.no, target)
        if isinstance(node, tree.For | tree.While):
            if isinstance(node, tree.For):
                self._read(node.init, target)
            self._forget(node)
            return self._read(node.body, target)
        return isinstance(node, tree.Expression)

    def _declared(self, item: tree.Variable) -> None:
        plain = item.type.of if isinstance(item.type, tree.TypeConst) else item.type
        given = [item.init] if item.init is not None else item.arguments or []
        if isinstance(plain, tree.TypeName) and plain.name in DIM3:
            self.declare(item.name, types.INT, self._fields(given))
            return
        for part in given:
            self._allocations(part)
        if isinstance(item.type, tree.TypeReference) and given and isinstance(given[0], tree.Name):
            if given[0].name in self.sizes:
                raise NotModelled(f"{item.name} is another name of {given[0].name}", item.line)
            self._forget(tree.Unary("&", given[0], line=item.line))
        value = self._try(given[0]) if len(given) == 1 and not isinstance(item.type, tree.TypeReference) else Nothing()
        if tree.is_auto(item.type):
            self.declare(item.name, value.type if isinstance(value, Int) else types.DOUBLE, value)
        else:
            self._name(item.type, item.name, value)

    def _fields(self, given: list[tree.Node]) -> Value:
        try:
            found = self._three(given[0]) if len(given) == 1 else tuple(self._number(g) for g in given)
        except NotModelled:
            return Nothing()
        three = (*found, ONE, ONE, ONE)[:3]
        return Fields(tuple((axis, Int(size, types.UINT)) for axis, size in zip("xyz", three, strict=True)))

    def _forget(self, node: tree.Node | None) -> None:
        """What it may change is not known."""
        for part in tree.walk(node):
            targets: list[tree.Node] = []
            if isinstance(part, tree.Assign):
                targets = [part.target]
            elif isinstance(part, tree.Step) or (isinstance(part, tree.Unary) and part.op == "&"):
                targets = [part.operand]
            elif isinstance(part, tree.Binary) and part.op == ">>":  # std::cin >> n
                targets = [part.right]
            elif isinstance(part, tree.Call):
                targets = self._by_reference(part)
            for target in targets:
                while isinstance(target, tree.Member):
                    target = target.base
                if isinstance(target, tree.Name):
                    self._set(target.name, Nothing(), part)
            for name in part.changed if isinstance(part, tree.Unread) else ():
                self._set(name, Nothing(), part)

    def _by_reference(self, node: tree.Call) -> list[tree.Node]:
        """Arguments that the function may change: what is not the file's own takes values or addresses."""
        if not isinstance(node.function, tree.Name):
            return list(node.arguments)
        _, functions = self.table.functions_named(node.function.name, self.env.scope)
        return [a for f in functions if not f.library for p, a in zip(f.parameters, node.arguments, strict=False)
                if isinstance(p.type, tree.TypeReference)]  # fmt: skip

    def _effect(self, node: tree.Node) -> None:
        self._allocations(node)
        if isinstance(node, tree.Assign) and not node.op and isinstance(node.target, tree.Name):
            self._set(node.target.name, self._try(node.value), node)
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

    def _allocations(self, node: tree.Node) -> None:
        for part in tree.walk(node):
            if _called(part) not in ("cudaMalloc", "cudaMallocManaged"):
                continue
            target, bytes_ = path_of(part.arguments[0]), self._try(part.arguments[1])
            known = bytes_.poly if isinstance(bytes_, Int) else self.symbols.fresh("bytes", launch=True)
            self.allocated[target] = known, part.line

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

    def converted(self, value: Value, type_: Type, node: tree.Node) -> Value:
        self.single = self.single or type_ == types.FLOAT
        return super().converted(value, type_, node)

    def name(self, node: tree.Name) -> Value:
        if self.slot(node.name) is None and node.name in self.sizes:
            return Int(self.sizes[node.name], types.INT)
        if self.slot(node.name) is None:
            item = self.table.entities.variables.get(node.name)
            if item is not None and item.init is not None and not isinstance(item.type, tree.TypeConst):
                return self._try(item.init) if self._never_assigned(node.name) else Nothing()
        return super().name(node)

    def _never_assigned(self, name: str) -> bool:
        """A variable of the file that no function of the host changes."""
        for function in host_functions(self.table):
            tokens = [t.text for t in tokens_of(function.tokens or [])]
            for i, text in enumerate(tokens):
                if text == name and (tokens[i - 1] in ("&", "++", "--", ">>") or tokens[i + 1] in CHANGING):
                    return False
        return True

    def value(self, node: tree.Node) -> Value:
        if isinstance(node, tree.Number) and node.origin in self.sizes:
            return Int(self.sizes[node.origin], types.INT)
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
            if isinstance(parameter.type, tree.TypeReference) and not isinstance(parameter.type.to, tree.TypeConst):
                raise NotModelled(f"{function.short} takes a reference", node.line)
            type_ = types.bare(self.table.resolve(parameter.type, env))
            self.declare(parameter.name, type_, self.converted(value, type_, node))
        try:
            return self.converted(self.rvalue(body[0].value), self.table.resolve(function.result, env), node)
        finally:
            self.scopes = outer


def path_of(node: tree.Node) -> str:
    """The name that a place of the host has, d_M.elements; "" for any other."""
    while isinstance(node, tree.Cast) or (isinstance(node, tree.Unary) and node.op == "&"):
        node = node.operand
    if isinstance(node, tree.Member):
        base = path_of(node.base)
        return f"{base}.{node.name}" if base else ""
    return node.name if isinstance(node, tree.Name) else ""


def written_in(body: tree.Node) -> Counter[str]:
    """How often each place of a host function is assigned or its address is taken."""
    found: Counter[str] = Counter()
    for part in tree.walk(body):
        init = part.init if isinstance(part, tree.Variable) else part.value if isinstance(part, tree.Assign) else None
        if isinstance(part, tree.Unary) and part.op == "&":
            found[path_of(part.operand)] += 1
        elif init is not None and not (isinstance(init, tree.Number) and not init.value):
            found[part.name if isinstance(part, tree.Variable) else path_of(part.target)] += 1
        elif isinstance(part, tree.Step):
            found[path_of(part.operand)] += 1
    return found


def _called(node: tree.Node) -> str:
    return node.function.name if isinstance(node, tree.Call) and isinstance(node.function, tree.Name) else ""
