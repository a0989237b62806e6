"""What a statement of the host may change: by assignment, by reference or address, by the functions that it calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tilewise.emulator.host.launch_site import host_body, host_functions
from tilewise.emulator.parse import tree
from tilewise.emulator.parse.packed_body import tokens_of
from tilewise.emulator.prove.host_values import called
from tilewise.emulator.sema.symbol_table import SymbolTable

FREEING = ("cudaFree", "cudaFreeAsync")


@dataclass
class Effects:
    table: SymbolTable
    of_the_file: set[str] = field(default_factory=set)  # variables that a function may change by their names
    by_function: dict[str, list[tree.Node]] = field(default_factory=dict)

    def changed(self, node: tree.Node | None, scope: str = "") -> Iterator[tuple[tree.Node, tree.Node]]:
        """What it may change, and where."""
        for part in tree.walk(node):
            targets: list[tree.Node] = []
            if isinstance(part, tree.Assign):
                targets = [part.target]
            elif isinstance(part, tree.Step) or (isinstance(part, tree.Unary) and part.op == "&"):
                targets = [part.operand]
            elif isinstance(part, tree.Binary) and (part.op == ">>" or self._own_operator(part.op)):  # std::cin >> n
                targets = [part.left, part.right]
            elif isinstance(part, tree.Call):
                targets = [*self._by_reference(part, scope), *self._by_name(part, scope)]
            yield from ((target, part) for target in targets)
            for name in part.changed if isinstance(part, tree.Unread) else ():
                yield tree.Name(name, line=part.line), part

    def _by_reference(self, node: tree.Call, scope: str) -> list[tree.Node]:
        """Arguments that the function may change: what is not the file's own takes values or addresses."""
        name = called(node)
        _, functions = self.table.functions_named(name, scope) if name else ("", [])
        if not functions:
            return list(node.arguments)
        found: list[tree.Node] = []
        for f in functions:
            given = [p.type for p in f.parameters] or [tree.TypeAuto()]
            given += given[-1:] * (len(node.arguments) - len(given))  # a pack
            found += [a for type_, a in zip(given, node.arguments, strict=False) if tree.is_changeable(type_)]
        return found

    def _own_operator(self, op: str) -> bool:
        entities = self.table.entities
        methods = (m for classes in entities.classes.values() for c in classes if not c.library for m in c.methods)
        free = (f for functions in entities.functions.values() for f in functions if not f.library)
        return any(f.name.rpartition("::")[2] == f"operator{op}" for f in (*methods, *free))

    def _by_name(self, node: tree.Call, scope: str) -> list[tree.Node]:
        """Variables of the file that a function of the file, or one that it calls, may change."""
        name = called(node).rpartition("::")[2]
        if name not in self.by_function:
            self.by_function[name] = []
            _, functions = self.table.functions_named(called(node), scope) if name else ("", [])
            own = [self.table.definition(f) for f in functions if not f.library]
            found = [t for f in own if f.tokens for t, _ in self.changed(host_body(self.table, f), f.scope)]
            if name and (not functions or any(not f.tokens for f in own)):  # of another file
                found = [tree.Name(n, line=node.line) for n in self.of_the_file]
            self.by_function[name] = [t for t in found if base_of(t) in self.of_the_file]
        return self.by_function[name]

    def frees(self, node: tree.Node, scope: str) -> bool:
        """Whether a function of the file that is called frees an array."""
        _, functions = self.table.functions_named(called(node), scope) if called(node) else ("", [])
        words = [t.text for f in functions if not f.library for t in tokens_of(self.table.definition(f).tokens or [])]
        return any(name in words for name in FREEING)

    def _keeps(self, written: tree.Node) -> bool:
        """Whether an object of the file's own class may keep or change what its constructor gets."""
        plain = written.of if isinstance(written, tree.TypeConst) else written
        classes = self.table.entities.classes.get(plain.name, []) if isinstance(plain, tree.TypeName) else []
        own = [c for c in classes if not c.library]
        taken = [p.type for c in own for m in c.methods if m.short == "<new>" for p in m.parameters]
        return any(tree.is_changeable(t) for t in (*taken, *(f.type for c in own for f in c.fields)))

    def _keeps_address(self, call: tree.Call, number: int, scope: str) -> bool:
        """Whether the function may keep the address that it gets: it stores, returns or passes on the parameter."""
        _, functions = self.table.functions_named(called(call), scope) if called(call) else ("", [])
        for f in [self.table.definition(f) for f in functions if not f.library]:
            name = f.parameters[number].name if number < len(f.parameters) else ""
            for part in tree.walk(host_body(self.table, f)) if f.tokens and name else ():
                given = part.arguments if isinstance(part, tree.Call) and not self._library(part, f.scope) else [
                    getattr(part, "value", None)] if isinstance(part, tree.Assign | tree.Return) else []  # fmt: skip
                if any(isinstance(uncast(g), tree.Name) and uncast(g).name == name for g in given if g is not None):
                    return True
            if not f.tokens:
                return True
        return not functions

    def _library(self, call: tree.Call, scope: str) -> bool:
        _, functions = self.table.functions_named(called(call), scope) if called(call) else ("", [])
        return bool(functions) and all(f.library for f in functions)

    def loose(self) -> set[str]:
        """Variables with another name, a pointer kept or a reference, and those that lambdas and methods change."""
        found: set[str] = set()
        for function in host_functions(self.table):
            body = host_body(self.table, function)
            calls = [call for call in tree.walk(body) if isinstance(call, tree.Call)]
            passed = {id(uncast(a)) for call in calls for i, a in enumerate(call.arguments)
                      if not self._keeps_address(call, i, function.scope)}  # fmt: skip
            parts: list[tree.Node] = [body]
            if function.owner is None:
                parts = [p.body for p in tree.walk(body) if isinstance(p, tree.Lambda)]
            changed = [getattr(p, "target", None) or getattr(p, "operand", None) for b in parts for p in tree.walk(b)]
            for part in tree.walk(body):
                if isinstance(part, tree.Unary) and part.op == "&" and id(part) not in passed:
                    changed.append(part.operand)
                elif isinstance(part, tree.Variable) and isinstance(part.type, tree.TypeReference):
                    changed += [part, part.init, *(part.arguments or [])]
                elif isinstance(part, tree.Variable | tree.Construct) and self._keeps(part.type):
                    changed += [*tree.walk([part.arguments, getattr(part, "init", None)])]
            found |= {path_of(place).partition(".")[0] for place in changed if place is not None}
        return found - {""}


def base_of(target: tree.Node) -> str:
    while isinstance(target, tree.Member):
        target = target.base
    return target.name if isinstance(target, tree.Name) else ""


def certain(node: tree.Node | None) -> list[tree.Node]:
    """The parts of an expression that are evaluated whatever its other parts are."""
    perhaps: list[tree.Node] = []
    for part in tree.walk(node):
        if isinstance(part, tree.Binary) and part.op in ("&&", "||"):
            perhaps.append(part.right)
        elif isinstance(part, tree.Ternary):
            perhaps += [part.yes, part.no]
        elif isinstance(part, tree.Lambda):
            perhaps.append(part.body)
    beside = {id(part) for part in tree.walk(perhaps)}
    return [part for part in tree.walk(node) if id(part) not in beside]


def uncast(node: Any) -> Any:
    while isinstance(node, tree.Cast):
        node = node.operand
    return node


def path_of(node: tree.Node) -> str:
    """The name that a place of the host has, d_M.elements; "" for any other."""
    while isinstance(node, tree.Cast):
        node = node.operand
    if isinstance(node, tree.Member):
        base = path_of(node.base)
        return f"{base}.{node.name}" if base else ""
    return node.name if isinstance(node, tree.Name | tree.Variable) else ""
