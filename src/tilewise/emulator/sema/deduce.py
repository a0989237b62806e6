"""Template argument deduction."""

from __future__ import annotations

from collections.abc import Sequence

from tilewise.emulator.parse import tree
from tilewise.emulator.parse.types import (
    VOID,
    Argument,
    Array,
    Bindings,
    FunctionType,
    Pointer,
    Reference,
    Scalar,
    Type,
)
from tilewise.emulator.sema.given import Overloads, Value
from tilewise.emulator.sema.symbol_table import Environment, SymbolTable
from tilewise.emulator.sema.type_resolution import argument, resolve
from tilewise.emulator.sema.unify import unify
from tilewise.errors import KernelError

UNKNOWN = Pointer(FunctionType(VOID, ()))  # of a kernel template whose arguments cannot be deduced


def deduce(
    p: SymbolTable,
    node: tree.Function,
    given: Sequence[tree.Node] | None,
    values: Sequence[Value],
    env: Environment,
    where: Environment,
) -> Bindings | None:
    """Bindings of the function's template parameters; None if the arguments do not fit.

    `env` is the function's environment, `where` the caller's, in which explicit arguments are resolved."""
    names = {t.name: t for t in node.template}
    if len(given or []) > len(names):
        return None
    bound: Bindings = {}
    for template, named in zip(node.template, given or [], strict=False):
        try:
            made = argument(p, named, where)
        except KernelError:
            return None
        if not template.pack and template.is_type != isinstance(made, Type):  # get<1> and get<T>
            return None
        bound[template.name] = made
    for parameter, value in zip(node.parameters, values, strict=False):
        if isinstance(value, Overloads):
            found = _function_type(p, value, where)
            if found is None or (found is UNKNOWN and isinstance(parameter.type, tree.TypePointer)):
                continue
            type_: Type = found
        elif isinstance(value, tree.Braces):
            continue
        else:
            type_ = value.type
        written = parameter.type
        if isinstance(written, tree.TypeReference):
            forwards = written.rvalue and isinstance(written.to, tree.TypeName) and written.to.name in names
            if forwards and not isinstance(value, Overloads) and value.lvalue:
                bound.setdefault(written.to.name, Reference(type_, value.const))
                continue
            written = written.to
        elif isinstance(type_, Array):
            type_ = Pointer(type_.of)
        if not unify(p, written, type_, names, bound, env):
            return None
    for template in node.template:
        if template.name in bound or template.pack or template.name == "<none>":
            continue
        if template.default is None:
            return None
        inner = type(env)({**env.bindings, **bound}, env.scope, env.record)
        try:
            bound[template.name] = argument(p, template.default, inner)
        except KernelError:
            return None
    return bound if all(_met(t.constraint, bound.get(t.name)) for t in node.template if t.constraint) else None


def _met(concept: str, type_: Argument | None) -> bool:
    """Whether a type meets a standard concept; those of the program are taken to hold."""
    scalar = type_ if isinstance(type_, Scalar) else None
    kinds = {
        "integral": scalar is not None and scalar.integral,
        "floating_point": scalar is not None and scalar.floating,
        "signed_integral": scalar is not None and scalar.integral and scalar.signed,
        "unsigned_integral": scalar is not None and scalar.integral and not scalar.signed,
    }
    return kinds.get(concept.removeprefix("std::"), True)


def _function_type(p: SymbolTable, overloads: Overloads, where: Environment) -> Type | None:
    """The type of a function's name; None if it is overloaded."""
    defined = [c for c in overloads.functions if c.tokens is not None] or overloads.functions
    if len(defined) != 1 or (defined[0].template and not defined[0].on_device):
        return None
    env = Environment(scope=defined[0].scope)
    if defined[0].template:
        bound = deduce(p, defined[0], overloads.arguments, [], env, where)
        if bound is None:
            return UNKNOWN
        env = Environment(bound, defined[0].scope)
    result = VOID if defined[0].result is None else resolve(p, defined[0].result, env)
    return Pointer(FunctionType(result, tuple(resolve(p, q.type, env) for q in defined[0].parameters)))
