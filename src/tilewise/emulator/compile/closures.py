"""Lambdas: captures by value are copied at the lambda expression, the others are the enclosing variables."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.compile.inline import InlineCompiler
from tilewise.emulator.compile.operand import Closure, Operand
from tilewise.emulator.machine.context import Context
from tilewise.emulator.machine.program import Variable
from tilewise.emulator.parse import tree

NO_COPY = ("shared", "constant", "closure")  # storage that need not be copied


class ClosureCompiler(InlineCompiler):
    def closure(self, node: tree.Lambda) -> Operand:
        copies: dict[str, Variable] = {}
        starts: list[Any] = []
        scopes = [*map(dict, self.scopes[1:]), copies]
        kept, self.path = self.path, (*self.path, id(node))
        for i, (name, init) in enumerate(self.copied(node)):
            value = self.expr(init)
            if isinstance(value.type, Closure):
                copies[name] = Variable(name, value.type, (*self.path, i), -1, "closure")
                starts.append(value.fn)
            else:
                copies[name] = self.new_variable(name, value.type, i)
                starts.append(self.initialise(copies[name], value, node))
        self.path = kept

        def run(c: Context) -> None:
            for start in starts:
                start(c)

        return Operand(Closure(node, scopes, self.env), run, pure=not starts)

    def copied(self, node: tree.Lambda) -> list[tuple[str, Any]]:
        """The names that a lambda captures by value, and their initialisers."""
        out = [(n, init or tree.Name(n, extent=node.span)) for n, reference, init in node.captures if not reference]
        if node.default == "=":
            known = {n for n, _, _ in node.captures} | {p.name for p in node.parameters}
            used = {item.name: item for item in tree.walk(node.body) if isinstance(item, tree.Name)}
            out += sorted(((name, item) for name, item in used.items() if name not in known), key=lambda one: one[0])
        return [(n, init) for n, init in out if not isinstance(init, tree.Name) or self.changeable(init.name)]

    def changeable(self, name: str) -> bool:
        variable = self.find(name) if name != "this" else None
        return variable is not None and variable.storage not in NO_COPY

    def closure_call(self, node: tree.Call, closure: Closure) -> Operand:
        if (id(closure.node), str(closure.env.bindings)) in self.open_functions:
            raise self.refuse("a lambda that calls itself is not supported", node)
        return self.inlined(closure.node, closure.node.body, node, closure.env, closure.scopes)
