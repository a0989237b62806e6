"""Escape analysis: variables that must be in memory, since their address is taken or a reference may change them."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.program import Program
from tilewise.emulator.parse import tree


def direct(node: Any) -> set[str]:
    """The variables that `node` may denote as an lvalue, directly or through ?:, = and casts."""
    if isinstance(node, tree.Name):
        return {node.name}
    if isinstance(node, tree.Ternary):
        return direct(node.yes) | direct(node.no)
    if isinstance(node, tree.Assign):
        return direct(node.target)
    if isinstance(node, tree.Step) and node.prefix:
        return direct(node.operand)
    if isinstance(node, tree.Cast):
        return direct(node.operand)
    return set()


def changing_methods(p: Program) -> dict[str, set[int]]:
    """By name of a method, in any class: positions of parameters that are references to non-const."""
    known: dict[str, set[int]] | None = getattr(p, "_changing", None)
    if known is None:
        known = {}
        for classes in p.entities.classes.values():
            for made in classes:
                for method in made.methods:
                    for i, parameter in enumerate(method.parameters):
                        if tree.is_changeable(parameter.type):
                            known.setdefault(method.name, set()).add(i)
        p._changing = known  # type: ignore[attr-defined]
    return known


def escaping(b: Builder, body: Any, reference_result: bool) -> set[str]:
    out: set[str] = set()
    for node in tree.walk(body):
        if isinstance(node, tree.Unary) and node.op == "&":
            out |= direct(node.operand)
        elif isinstance(node, tree.Call):
            out |= _call(b, node)
        elif isinstance(node, tree.Construct):
            if not isinstance(node.type, tree.TypeFixed) and not _library_class(b, node.type):
                for item in node.arguments:
                    out |= direct(item)
        elif isinstance(node, tree.Variable):
            out |= _variable(b, node)
        elif isinstance(node, tree.Bindings):
            out |= direct(node.value)
        elif isinstance(node, tree.Lambda):
            out |= {name for name, reference, _ in node.captures if reference}
            if node.default:
                out |= {n.name for n in tree.walk(node.body) if isinstance(n, tree.Name)}
        elif isinstance(node, tree.Binary) and node.op == ">>" and not b.program.device:  # in kernels it only shifts
            out |= direct(node.right)
        elif isinstance(node, tree.ForEach):
            out |= direct(node.range)
        elif isinstance(node, tree.Return) and reference_result:
            out |= direct(node.value)
        elif isinstance(node, tree.Cast) and isinstance(node.type, tree.TypeReference):
            out |= direct(node.operand)
    return out


def _library_class(b: Builder, written: Any) -> bool:
    if isinstance(written, tree.TypeConst):
        return _library_class(b, written.of)
    if not isinstance(written, tree.TypeName):
        return False
    for name in b.program.names.candidates(written.name, b.env.scope):
        if name in b.program.entities.classes:
            return b.program.entities.classes[name][0].library
    return False


def _variable(b: Builder, node: tree.Variable) -> set[str]:
    if isinstance(node.type, tree.TypeReference):
        return direct(node.init) | {n for a in node.arguments or [] for n in direct(a)}
    if node.arguments and not isinstance(node.type, tree.TypeFixed) and not _library_class(b, node.type):
        return {n for a in node.arguments for n in direct(a)}
    return set()


def _call(b: Builder, node: tree.Call) -> set[str]:
    out: set[str] = set()
    function = node.function
    if isinstance(function, tree.Member):
        positions = changing_methods(b.program).get(function.name, set())
        for i in positions:
            if i < len(node.arguments):
                out |= direct(node.arguments[i])
        return out
    candidates: list[Any] = []
    if isinstance(function, tree.Name) and function.owner is None:
        _, candidates = b.program.functions_named(function.name, b.env.scope)
        if not candidates and b.env.record is not None:
            candidates = [m for m, _, _ in b.env.record.methods_named(function.name)]
    if not candidates:
        return {n for a in node.arguments for n in direct(a)}
    for i, argument in enumerate(node.arguments):
        if any(i < len(c.parameters) and tree.is_changeable(c.parameters[i].type) for c in candidates):
            out |= direct(argument)
    return out
