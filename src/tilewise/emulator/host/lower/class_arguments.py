"""Class template argument deduction: `std::pair p(1, 2.5)`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.parse import tree
from tilewise.emulator.parse.types import ULONG, Array, Pointer, Record, Type
from tilewise.emulator.sema.symbol_table import Environment
from tilewise.emulator.sema.type_resolution import resolve
from tilewise.emulator.sema.unify import unify


def deduced_class(b: Builder, written: Any, init: Any) -> Type | None:
    """The class; None if the declaration has template arguments, or they cannot be deduced."""
    named = written.of if isinstance(written, tree.TypeConst) else written
    if init is None or not isinstance(named, tree.TypeName) or named.arguments is not None or named.inner:
        return None
    p = b.program
    name = next((c for c in p.names.candidates(named.name, b.env.scope) if c in p.entities.classes), "")
    class_ = p.entities.classes[name][0] if name else None
    if class_ is None or not class_.template or (b.env.record is not None and b.env.record.node is class_):
        return None
    items = init if isinstance(init, list) else init.items if isinstance(init, tree.Braces) else [init]
    if any(isinstance(item, tree.Braces) for item in items) or not items:
        return None
    env = replace(b.env, local=b.find)
    values = [_decayed(p.type_of(item, env)) for item in items]
    if len(values) == 1 and isinstance(values[0], Record) and values[0].node is class_:
        return values[0]
    bound = _bound(b, class_, values, isinstance(init, tree.Braces))
    if bound is None:
        return None
    arguments: list[Any] = [tree.Name(t.name) for t in class_.template if t.name in bound]
    whole = tree.TypeName(named.name, arguments, line=named.line, column=named.column)
    return resolve(p, whole, Environment(bound, b.env.scope))


def _decayed(type_: Type) -> Type:
    return Pointer(type_.of) if isinstance(type_, Array) else type_


def _bound(b: Builder, class_: tree.Class, values: list[Type], braces: bool) -> dict[str, Any] | None:
    """The template's arguments, from the first constructor that accepts the values, or else from the members."""
    makers = [[p.type for p in m.parameters] for m in class_.methods if m.name == "<new>" and not m.template]
    lists = [types[0] for types in makers if len(types) == 1 and _is_list(types[0])]
    if braces and lists:
        makers = [[lists[0].arguments[0]]]
        values = values[:1]
    fields = [f.type for f in class_.fields]
    if len(fields) == 1 and isinstance(fields[0], tree.TypeArray) and isinstance(fields[0].length, tree.Name):
        found = _fitting(b, class_, [fields[0].of], values[:1])  # std::array: as many elements as values
        return None if found is None else {**found, fields[0].length.name: (len(values), ULONG)}
    for written in (*makers, fields):
        if len(written) == len(values) and (found := _fitting(b, class_, written, values)) is not None:
            return found
    return None


def _is_list(written: Any) -> bool:
    return isinstance(written, tree.TypeName) and written.name.rpartition("::")[2] == "initializer_list"


def _fitting(b: Builder, class_: tree.Class, written: list[Any], values: list[Type]) -> dict[str, Any] | None:
    names, bound = {t.name: t for t in class_.template}, dict[str, Any]()
    env = Environment(scope=class_.scope)
    fits = all(unify(b.program, w, v, names, bound, env) for w, v in zip(written, values, strict=True))
    missing = [t for t in class_.template if t.name not in bound and t.default is None and t.is_type]
    return bound if fits and not missing else None
