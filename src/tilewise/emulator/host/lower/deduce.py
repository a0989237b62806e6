"""Template arguments worked out from the arguments of a call."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.host.language import tree
from tilewise.emulator.host.language.types import (
    VOID,
    Array,
    FunctionType,
    Pointer,
    Record,
    Reference,
    Scalar,
    Type,
)
from tilewise.emulator.host.lower import constants
from tilewise.emulator.host.lower.late import provide
from tilewise.emulator.host.lower.program import Environment, Program
from tilewise.emulator.host.lower.type_resolution import argument, resolve
from tilewise.emulator.host.lower.values import Overloads, Place, Unknown
from tilewise.errors import KernelError

UNKNOWN = Pointer(FunctionType(VOID, ()))  # a kernel's template whose arguments nobody gave


def deduce(
    p: Program, node: tree.Function, given: list[Any] | None, values: list[Any], env: Environment, where: Environment
) -> dict[str, Any] | None:
    """Bindings for the function's template parameters; None where the arguments do not fit.

    `env` is the function's own surroundings, `where` the caller's, in which given arguments are resolved."""
    names = {t.name: t for t in node.template}
    bound: dict[str, Any] = {}
    for template, written in zip(node.template, given or [], strict=False):
        try:
            bound[template.name] = argument(p, written, where)
        except KernelError:
            return None
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
            if forwards and isinstance(value, Place) and not value.moved:
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


def _met(concept: str, type_: Any) -> bool:
    """Whether a type is what a concept of the library asks for; those of the program are taken as met."""
    scalar = type_ if isinstance(type_, Scalar) else None
    kinds = {
        "integral": scalar is not None and scalar.integral,
        "floating_point": scalar is not None and scalar.floating,
        "signed_integral": scalar is not None and scalar.integral and scalar.signed,
        "unsigned_integral": scalar is not None and scalar.integral and not scalar.signed,
    }
    return kinds.get(concept.removeprefix("std::"), True)


def _function_type(p: Program, overloads: Overloads, where: Environment) -> Type | None:
    """The type of a function's name where there is only one of it."""
    found = [c[0] if isinstance(c, tuple) else c for c in overloads.candidates]
    defined = [c for c in found if c.tokens is not None] or found
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


def unify(
    p: Program, written: Any, type_: Type, names: dict[str, Any], bound: dict[str, Any], env: Environment
) -> bool:
    """Match a parameter as written against an argument's type; False where that cannot be."""
    if isinstance(written, tree.TypeConst):
        return unify(p, written.of, type_, names, bound, env)
    if isinstance(written, tree.TypeAuto):
        return True
    if isinstance(written, tree.TypeName) and written.name in names and not written.inner:
        known = bound.get(written.name)
        if known is None:
            bound[written.name] = type_
        return True
    if isinstance(written, tree.TypePointer):
        if isinstance(type_, Pointer):
            return unify(p, written.to, type_.to, names, bound, env)
        return not _mentions(written, names)
    if isinstance(written, tree.TypeReference):
        return unify(p, written.to, type_, names, bound, env)
    if isinstance(written, tree.TypeArray) and isinstance(type_, Array):
        length = written.length
        if isinstance(length, tree.Name) and length.name in names and length.name not in bound:
            from tilewise.emulator.host.language.types import ULONG

            bound[length.name] = (type_.length, ULONG)
        return unify(p, written.of, type_.of, names, bound, env)
    if isinstance(written, tree.TypeFunction):
        target = type_.to if isinstance(type_, Pointer) else type_
        if not isinstance(target, FunctionType) or len(target.parameters) != len(written.parameters):
            return not _mentions(written, names)
        parts = [unify(p, written.result, target.result, names, bound, env)]
        parts += [unify(p, w, t, names, bound, env) for w, t in zip(written.parameters, target.parameters, strict=True)]
        return all(parts)
    if isinstance(written, tree.TypeName) and written.arguments is not None and not written.inner:
        return _unify_class(p, written, type_, names, bound, env)
    return True


def _unify_class(
    p: Program, written: tree.TypeName, type_: Type, names: dict[str, Any], bound: dict[str, Any], env: Environment
) -> bool:
    if not _mentions(written, names):
        return True
    alias = next((p.entities.aliases[c] for c in p.names.candidates(written.name, env.scope)
                  if c in p.entities.aliases and p.entities.aliases[c].template), None)  # fmt: skip
    if alias is not None:
        return _unify_alias(p, alias, written, type_, names, bound, env)
    if not isinstance(type_, Record):
        return False
    record: Record | None = p.layout(type_)
    while record is not None:
        node = record.node
        if node is not None and node.template and node.name.rpartition("::")[2] == written.name.rpartition("::")[2]:
            for parameter, inner in zip(node.template, written.arguments or [], strict=False):
                value = record.bindings.get(parameter.name)
                if isinstance(inner, tree.Name) and inner.name in names:
                    bound.setdefault(inner.name, value)
                elif isinstance(value, Type) and not unify(p, inner, value, names, bound, env):
                    return False
            return True
        record = record.bases[0][0] if record.bases else None
    return False


def _unify_alias(
    p: Program, alias: tree.Alias, written: tree.TypeName, type_: Type, names: dict[str, Any], bound: dict[str, Any],
    env: Environment,
) -> bool:  # fmt: skip
    """What the alias's own parameters must be for the type, then what stands for them here."""
    found: dict[str, Any] = {}
    if not unify(p, alias.type, type_, {t.name: t for t in alias.template}, found, Environment(scope=alias.scope)):
        return False
    for parameter, inner in zip(alias.template, written.arguments or [], strict=False):
        value = found.get(parameter.name)
        if isinstance(inner, tree.Name) and inner.name in names and value is not None:
            bound.setdefault(inner.name, value)
        elif isinstance(value, Type) and not unify(p, inner, value, names, bound, env):
            return False
    return True


def specialises(
    p: Program, written: Any, type_: Type, names: dict[str, Any], bound: dict[str, Any], env: Environment
) -> bool:
    """Whether an argument of a partial specialisation, `T*`, `T[]`, `R(A)`, is of the same form as the type given."""
    if isinstance(written, tree.TypeConst):
        return specialises(p, written.of, type_, names, bound, env)
    if not _mentions(written, names):
        return resolve(p, written, env) == type_
    if isinstance(written, (tree.TypePointer, tree.TypeReference)):
        form = Pointer if isinstance(written, tree.TypePointer) else Reference
        return isinstance(type_, form) and specialises(p, written.to, type_.to, names, bound, env)
    if isinstance(written, tree.TypeArray):
        return isinstance(type_, Array) and specialises(p, written.of, type_.of, names, bound, env)
    if isinstance(written, tree.TypeFunction) and not isinstance(type_, FunctionType):
        return False
    if isinstance(written, tree.TypeName) and written.name in bound and not written.arguments:
        return bool(bound[written.name] == type_)  # named a second time: is_same<A, A>
    return unify(p, written, type_, names, bound, env) and (
        not isinstance(written, tree.TypeFunction) or len(written.parameters) == len(type_.parameters)  # type: ignore[attr-defined]
    )


def _mentions(written: Any, names: dict[str, Any]) -> bool:
    if isinstance(written, (tree.TypeConst, tree.TypeArray)):
        return _mentions(written.of, names)
    if isinstance(written, (tree.TypePointer, tree.TypeReference)):
        return _mentions(written.to, names)
    if isinstance(written, tree.TypeFunction):
        return _mentions(written.result, names) or any(_mentions(w, names) for w in written.parameters)
    if isinstance(written, tree.TypeName):
        return written.name in names or any(_mentions(a, names) for a in written.arguments or [])
    return isinstance(written, tree.Name) and written.name in names


def value_argument(p: Program, node: Any, env: Environment) -> Any:
    try:
        return constants.evaluate(p, node, env)
    except Unknown:
        return resolve(p, node, env)


provide(specialises)
