"""Statements of one generic thread: every path of the kernel, its arrays, barriers and functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Type
from tilewise.emulator.prove.loops import Frame, Loop, Loops
from tilewise.emulator.prove.terms import FALSE, TRUE, ZERO, Poly
from tilewise.emulator.prove.values import (
    Barrier,
    Int,
    Nothing,
    NotModelled,
    Passed,
    Ref,
    Region,
    Value,
)
from tilewise.emulator.sema.bodies import body_of
from tilewise.emulator.sema.symbol_table import Environment
from tilewise.errors import KernelError

DEEPEST = 8


@dataclass
class Thread(Loops):
    shared: dict[str, Region] = field(default_factory=dict)
    dynamic: Poly | None = None  # bytes of extern __shared__ memory

    def run(self, function: tree.Function) -> None:
        self.frames.append(Frame(None))
        self.execute(body_of(self.table, function, self.env))

    def execute(self, node: tree.Node | None) -> None:
        if node is None or isinstance(node, tree.Nothing) or self.state.path == FALSE:
            return
        rule = STATEMENTS.get(type(node))
        if rule is None:
            raise NotModelled(f"{type(node).__name__.lower()} is not modelled", node.line)
        rule(self, node)

    def block(self, node: tree.Block) -> None:
        self.scopes.append({})
        for part in node.body:
            self.execute(part)
        self.scopes.pop()

    def expression(self, node: tree.Expression) -> None:
        found = self.value(node.value)
        if isinstance(found, Ref):
            self.loaded(found, node)

    def choice(self, node: tree.If) -> None:
        self.scopes.append({})
        self.execute(node.init)
        if isinstance(node.condition, tree.Declaration):
            raise NotModelled("a declaration as a condition", node.line)

        def side(part: tree.Node | None) -> Value:
            self.execute(part)
            return Nothing()

        self.branch(self.condition(node.condition), lambda: side(node.yes), lambda: side(node.no), node)
        self.scopes.pop()

    def returning(self, node: tree.Return) -> None:
        frame = self.frames[-1]
        value = self.rvalue(node.value) if node.value is not None else Nothing()
        if frame.result is not None:
            value = self.converted(value, frame.result, node)
        frame.returned.append((self.state.path, value))
        for loop in self.loops:
            loop.left = True
        self.state.path = FALSE

    def jump(self, node: tree.Jump) -> None:
        if node.keyword not in ("break", "continue") or not self.loops:
            raise NotModelled(f"{node.keyword} is not modelled", node.line)
        loop = self.loops[-1]
        (loop.broken if node.keyword == "break" else loop.skipped).append(self.state.fork(self.state.path))
        loop.left = loop.left or node.keyword == "break"
        self.state.path = FALSE

    # -- declarations

    def declaration(self, node: tree.Declaration) -> None:
        for item in node.items:
            self.variable(item)

    def variable(self, item: tree.Variable) -> None:
        init = item.init if item.init is not None else next(iter(item.arguments or []), None)
        if "static" in item.specifiers and "__shared__" not in item.specifiers:
            raise NotModelled(f"{item.name} is static", item.line)
        if tree.is_auto(item.type) and init is not None:
            if isinstance(item.type, tree.TypeReference):
                self.reference(item.name, None, init, item)
                return
            value = self.rvalue(init)
            self.declare(item.name, value.type if isinstance(value, Int) else types.FLOAT, value)
            return
        type_ = self.resolve(item.type)
        if isinstance(type_, types.Reference) and init is not None:
            self.reference(item.name, type_, init, item)
            return
        if "__shared__" in item.specifiers or isinstance(type_, types.Array | types.Record):
            self.array(item, type_)
            return
        if isinstance(init, tree.Braces):
            init = init.items[0] if init.items else tree.Number(0, types.INT, line=item.line)
        if init is None:
            fresh: Value = (
                Nothing() if isinstance(type_, types.Pointer) else self.anything(type_, "it has no value", item.line)
            )
            self.declare(item.name, type_, fresh)
        else:
            self.declare(item.name, type_, self.converted(self.rvalue(init), type_, item))

    def reference(self, name: str, type_: types.Reference | None, init: tree.Node, node: tree.Node) -> None:
        """Another name of a variable, or of a place in memory; `type_` is None for auto&."""
        slot = self.slot(init.name) if isinstance(init, tree.Name) else None
        place = self.value(init)
        if isinstance(place, Ref):
            self.declare(name, place.type, place)
        elif slot is not None and (type_ is None or type_.to == self.typed[slot]):
            self.scopes[-1][name] = slot
        elif slot is None and type_ is not None and type_.const:
            self.declare(name, type_.to, self.converted(place, type_.to, node))
        else:
            raise NotModelled("a reference to what is no variable", node.line)

    def array(self, item: tree.Variable, type_: Type) -> None:
        shared = "__shared__" in item.specifiers
        if item.arguments:
            raise NotModelled(f"{item.name} is made by a constructor", item.line)
        unit, length = self.laid(type_, item.line)
        known: Poly | None = Poly.of(length)
        if shared and "extern" in item.specifiers:
            known = None if self.dynamic is None else self.symbols.divided(self.dynamic, unit)[0]
        region = Region(item.name, "shared" if shared else "local", unit, known)
        if shared:  # all of extern memory begins at one address
            key = "extern" if "extern" in item.specifiers else f"{item.name}@{item.line}:{item.column}"
            region = self.shared.setdefault(key, region)
            if region.unit != unit:
                raise NotModelled("extern shared memory of two types", item.line)
        if isinstance(item.init, tree.Braces):
            for part in tree.walk(item.init):
                if isinstance(part, tree.Assign | tree.Step | tree.Call | tree.Index):
                    raise NotModelled("an array whose first values are computed", item.line)
        elif item.init is not None:
            self.rvalue(item.init)
        self.declare(item.name, type_, Ref(region, ZERO, type_))

    # -- barriers

    def barrier(self, node: tree.Call) -> Value:
        here = self.state
        name = f"{node.line}:{node.column}"
        self.events.barriers.append(Barrier(here.path, here.counters, name, node.line))
        here.last = (Passed(TRUE, name, here.counters),)
        return Nothing()

    # -- functions

    def call(self, function: tree.Function, node: tree.Call) -> Value:
        if len(self.frames) > DEEPEST or function.template or function.variadic:
            raise NotModelled(f"{function.short} is recursive or a template", node.line)
        outer, env, path, last = self.scopes, self.env, self.state.path, self.state.last
        inner: dict[str, int] = {}
        known = tuple(self.state.variables)
        env_inside = Environment(scope=function.scope)
        for parameter, given in zip(function.parameters, node.arguments, strict=True):
            type_ = self.table.resolve(parameter.type, env_inside)
            self.scopes.append({})
            if isinstance(type_, types.Reference):
                self.reference(parameter.name, type_, given, node)
            else:
                self.declare(parameter.name, type_, self.converted(self.rvalue(given), type_, node))
            inner |= self.scopes.pop()
        try:
            body = body_of(self.table, function, env_inside)
            result = self.table.resolve(function.result, env_inside)
        except KernelError as error:
            raise NotModelled(f"{function.short} cannot be read: {error.message}", node.line) from None
        frame = Frame(result)
        self.frames.append(frame)
        loops, self.loops = self.loops, []
        self.scopes, self.env = [outer[0], inner], env_inside
        self.execute(body)
        self.scopes, self.env, self.loops = outer, env, loops
        self.frames.pop()
        parted = len(frame.returned) > 1 or (frame.returned and self.state.path != FALSE)
        if parted and (self.state.last != last or set(inner.values()) & set(known)):
            raise NotModelled(f"{function.short} returns early and changes its caller", node.line)
        self.state.path = path
        if not frame.returned:
            return Nothing()
        value = frame.returned[-1][1]
        for where, other in reversed(frame.returned[:-1]):
            value = self.joined(where, other, value, node)
        return value

    def counted(self, node: tree.For) -> None:
        self.scopes.append({})
        self.execute(node.init)
        self.loop(Loop(node.condition, node.step, node.body, False, node))
        self.scopes.pop()

    def repeated(self, node: tree.While) -> None:
        self.loop(Loop(node.condition, None, node.body, node.after, node))


STATEMENTS: dict[type, Callable[..., None]] = {
    tree.Block: Thread.block, tree.Expression: Thread.expression, tree.If: Thread.choice, tree.Return: Thread.returning,
    tree.Jump: Thread.jump, tree.Declaration: Thread.declaration, tree.For: Thread.counted, tree.While: Thread.repeated,
}  # fmt: skip
