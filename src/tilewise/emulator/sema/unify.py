"""Matching of a type node that contains template parameters with the type of an argument."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from tilewise.emulator.parse import tree
from tilewise.emulator.parse.types import (
    ULONG,
    Array,
    Bindings,
    FunctionType,
    Pointer,
    Record,
    Reference,
    TemplateName,
    Type,
)
from tilewise.emulator.sema.symbol_table import Environment, SymbolTable

Parameters: TypeAlias = Mapping[str, tree.TemplateParameter]  # of a template, by name


def unify(
    p: SymbolTable, written: tree.Node, type_: Type, names: Parameters, bound: Bindings, env: Environment
) -> bool:
    """Match a parameter's type node with an argument's type, adding to `bound`; False if they do not match."""
    if isinstance(written, tree.TypeConst):
        return unify(p, written.of, type_, names, bound, env)
    if isinstance(written, tree.TypeAuto):
        return True
    if isinstance(written, tree.TypeName) and written.name in names and not written.inner and not written.arguments:
        if bound.get(written.name) is None:
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
    p: SymbolTable, written: tree.TypeName, type_: Type, names: Parameters, bound: Bindings, env: Environment
) -> bool:
    if not _mentions(written, names):
        return True
    alias = next((p.entities.aliases[c] for c in p.names.candidates(written.name, env.scope)
                  if c in p.entities.aliases and p.entities.aliases[c].template), None)  # fmt: skip
    if alias is not None:
        return _unify_alias(p, alias, written, type_, names, bound, env)
    if not isinstance(type_, Record):
        return False
    for record in p.layout(type_).lineage:
        node = record.node
        if node is None:
            continue
        values = record.arguments or [record.bindings[t.name] for t in node.template if t.name in record.bindings]
        if values and written.name in names:  # template <template <class> class C> f(C<int>)
            bound.setdefault(written.name, TemplateName(node.name))
        if values and written.name.rpartition("::")[2] in (node.name.rpartition("::")[2], *names):
            for value, inner in zip(values, written.arguments or [], strict=False):
                if isinstance(inner, tree.Name) and inner.name in names:
                    bound.setdefault(inner.name, value)
                elif isinstance(value, Type) and not unify(p, inner, value, names, bound, env):
                    return False
            return True
    return False


def _unify_alias(
    p: SymbolTable, alias: tree.Alias, written: tree.TypeName, type_: Type, names: Parameters,
    bound: Bindings, env: Environment,
) -> bool:  # fmt: skip
    """Deduce the alias's parameters from the type, then match them with the arguments written."""
    found: Bindings = {}
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
    p: SymbolTable, written: tree.Node, type_: Type, names: Parameters, bound: Bindings, env: Environment
) -> bool:
    """Whether an argument pattern of a partial specialisation, `T*`, `T[]` or `R(A)`, matches the type."""
    if isinstance(written, tree.TypeConst):
        return specialises(p, written.of, type_, names, bound, env)
    if not _mentions(written, names):
        return p.resolve(written, env) == type_
    if isinstance(written, (tree.TypePointer, tree.TypeReference)):
        form = Pointer if isinstance(written, tree.TypePointer) else Reference
        return isinstance(type_, form) and specialises(p, written.to, type_.to, names, bound, env)
    if isinstance(written, tree.TypeArray):
        return isinstance(type_, Array) and specialises(p, written.of, type_.of, names, bound, env)
    if isinstance(written, tree.TypeFunction) and not isinstance(type_, FunctionType):
        return False
    if isinstance(written, tree.TypeName) and written.name in bound and not written.arguments:
        return bool(bound[written.name] == type_)  # its second occurrence: is_same<A, A>
    return unify(p, written, type_, names, bound, env) and (
        not isinstance(written, tree.TypeFunction) or len(written.parameters) == len(type_.parameters)  # type: ignore[attr-defined]
    )


def _mentions(written: tree.Node | Type, names: Parameters) -> bool:
    if isinstance(written, (tree.TypeConst, tree.TypeArray)):
        return _mentions(written.of, names)
    if isinstance(written, (tree.TypePointer, tree.TypeReference)):
        return _mentions(written.to, names)
    if isinstance(written, tree.TypeFunction):
        return _mentions(written.result, names) or any(_mentions(w, names) for w in written.parameters)
    if isinstance(written, tree.TypeName):
        return written.name in names or any(_mentions(a, names) for a in written.arguments or [])
    return isinstance(written, tree.Name) and written.name in names
