"""Which function a call means: candidates ranked by the conversions they need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.conversion import EXACT, rank
from tilewise.emulator.host.lower.deduce import deduce
from tilewise.emulator.host.lower.program import Instance
from tilewise.emulator.host.lower.values import Overloads, Place
from tilewise.emulator.parse import tree
from tilewise.emulator.parse.late import provide
from tilewise.emulator.parse.types import FunctionType, Pointer, Record, Reference, Type
from tilewise.emulator.sema.symbol_table import Environment
from tilewise.errors import KernelError

AUTO_NAMES = "auto:"


@dataclass
class Choice:
    node: tree.Function
    bindings: dict[str, Any]
    record: Record | None
    offset: int = 0  # of the class that has the method in the object


class NoMatch(Exception):
    """None of the candidates takes these arguments."""


def surroundings(b: Builder, node: tree.Function, record: Record | None) -> Environment:
    if record is not None:
        return b.program.record_environment(record)
    return Environment(scope=node.scope)


def choose(
    b: Builder, name: str, candidates: list[tuple[tree.Function, Record | None, int]], given: list[Any] | None,
    values: list[Any], receiver: Any = None,
) -> Choice:  # fmt: skip
    """The best of the candidates for these values; raises NoMatch."""
    best: Choice | None = None
    best_cost: tuple[int, ...] = ()
    constant = isinstance(receiver, Place) and receiver.const
    for node, record, offset in candidates:
        if node.deleted or not fits(node, len(values)):
            continue
        if "const method" not in node.words and constant and "static" not in node.words and node.name != "<new>":
            continue
        env = surroundings(b, node, record)
        template = with_auto(node)
        bindings: dict[str, Any] = {}
        if template.template:
            found = deduce(b.program, template, given, values, env, b.env)
            if found is None:
                continue
            bindings = found
        elif given:
            continue
        costs = _costs(b, template, bindings, env, values)
        if costs is None:
            continue
        cost = (max(costs, default=0), sum(costs), bool(template.template), node.variadic,
                "const method" in node.words and not constant)  # fmt: skip
        if best is None or cost < best_cost:
            best, best_cost = Choice(template, bindings, record, offset), cost
    if best is None:
        raise NoMatch(name)
    return best


def fits(node: tree.Function, count: int) -> bool:
    least = sum(p.default is None for p in node.parameters)
    if any(t.pack for t in node.template):
        return False
    return least <= count and (count <= len(node.parameters) or node.variadic)


_WITH_AUTO: dict[int, tree.Function] = {}


def with_auto(node: tree.Function) -> tree.Function:
    """A function with auto parameters is a template of their types."""
    if not any(tree.is_auto(p.type) for p in node.parameters):
        return node
    known = _WITH_AUTO.get(id(node))
    if known is not None:
        return known
    parameters, template = [], list(node.template)
    for i, parameter in enumerate(node.parameters):
        if tree.is_auto(parameter.type):
            name = f"{AUTO_NAMES}{i}"
            template.append(tree.TemplateParameter(name, True))
            parameters.append(tree.Parameter(parameter.name, _replace(parameter.type, name), parameter.default,
                                             line=parameter.line))  # fmt: skip
        else:
            parameters.append(parameter)
    made = tree.Function(
        node.name, node.result, parameters, node.words, template, node.variadic, node.tokens, node.initialisers,
        node.owner, node.scope, node.library, line=node.line, column=node.column, body=node.body,
    )  # fmt: skip
    _WITH_AUTO[id(node)] = made
    return made


def _replace(written: Any, name: str) -> Any:
    if isinstance(written, tree.TypeAuto):
        return tree.TypeName(name)
    if isinstance(written, tree.TypeConst):
        return tree.TypeConst(_replace(written.of, name))
    if isinstance(written, tree.TypePointer):
        return tree.TypePointer(_replace(written.to, name))
    return tree.TypeReference(_replace(written.to, name), written.rvalue)


def _costs(
    b: Builder, node: tree.Function, bindings: dict[str, Any], env: Environment, values: list[Any]
) -> list[int] | None:
    inner = Environment({**env.bindings, **bindings}, env.scope, env.record)
    costs: list[int] = []
    for i, value in enumerate(values):
        if i >= len(node.parameters):
            costs.append(20)
            continue
        try:
            type_ = b.program.resolve(node.parameters[i].type, inner)
        except KernelError:
            return None
        if isinstance(value, tree.Braces):
            costs.append(EXACT if isinstance(type_, (Record, Reference)) else 3)
            continue
        cost = rank(b, value, type_)
        if cost is None:
            return None
        costs.append(cost)
    return costs


def methods(b: Builder, record: Record, name: str) -> list[tuple[tree.Function, Record | None, int]]:
    b.program.layout(record)
    return list(record.methods_named(name))


def constructors(record: Record) -> list[tuple[tree.Function, Record | None, int]]:
    return [(m, record, 0) for m in record.methods.get("<new>", [])]


_TRYING: set[tuple[int, int]] = set()


def constructible(b: Builder, record: Record, value: Any) -> bool:
    """Whether one value makes an object of the class, without being asked to (no explicit constructors)."""
    b.program.layout(record)
    key = (id(record), id(value))
    if key in _TRYING:
        return False
    _TRYING.add(key)
    try:
        usable = [c for c in constructors(record) if "explicit" not in c[0].words]
        choose(b, record.name, usable, None, [value])
        return True
    except NoMatch:
        return False
    finally:
        _TRYING.discard(key)


def explicit_instance(b: Builder, overloads: Overloads, wanted: Type | None) -> Instance:
    node, bindings, record, _ = explicit_choice(b, overloads, wanted)
    return b.program.instance(node, bindings, record)


def explicit_choice(
    b: Builder, overloads: Overloads, wanted: Type | None
) -> tuple[tree.Function, dict[str, Any], Record | None, tuple[Type, ...]]:
    """The function whose address is taken, and its parameters: the one with the wanted type, or the only one."""
    target = wanted.to if isinstance(wanted, (Pointer, Reference)) else wanted
    program = b.program
    for candidate in overloads.candidates:
        node, record = candidate[:2] if isinstance(candidate, tuple) else (candidate, overloads.record)
        if record is not None and "static" not in node.words:
            raise b.refuse(f"{node.name} is a function of {record.name} and is not called: {node.name}()")
        env = surroundings(b, node, record)
        bindings: dict[str, Any] = {}
        if node.template:
            made = deduce(program, node, overloads.arguments, [], env, b.env)
            if made is None:
                continue
            bindings = made
        inner = Environment({**env.bindings, **bindings}, env.scope, env.record)
        parameters = tuple(program.resolve(p.type, inner) for p in node.parameters)
        if isinstance(target, FunctionType) and parameters != target.parameters:
            continue
        return program.definition(node), bindings, record, parameters
    raise b.refuse(f"no function {overloads.name} fits here")


provide(constructible, explicit_instance)
