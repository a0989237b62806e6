"""Type nodes to types: names looked up, templates instantiated."""

from __future__ import annotations

from collections.abc import Callable

from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import (
    Argument,
    Array,
    Bindings,
    FunctionType,
    Pointer,
    Record,
    Reference,
    Scalar,
    TemplateName,
    Type,
)  # fmt: skip
from tilewise.emulator.sema import constants
from tilewise.emulator.sema.symbol_table import Environment, SymbolTable, Unknown
from tilewise.emulator.sema.unify import specialises


def resolve(p: SymbolTable, node: tree.Node | Type, env: Environment) -> Type:
    if isinstance(node, Type):
        return node
    return TABLE[type(node)](p, node, env)


def _fixed(p: SymbolTable, node: tree.TypeFixed, env: Environment) -> Type:
    made: Type = node.type
    return made


def _const(p: SymbolTable, node: tree.TypeConst, env: Environment) -> Type:
    return resolve(p, node.of, env)


def _pointer(p: SymbolTable, node: tree.TypePointer, env: Environment) -> Type:
    to = resolve(p, node.to, env)
    if isinstance(to, Reference):
        to = to.to
    return Pointer(to, isinstance(node.to, tree.TypeConst))


def _reference(p: SymbolTable, node: tree.TypeReference, env: Environment) -> Type:
    to = resolve(p, node.to, env)
    if isinstance(to, Reference):  # && of a reference is that reference
        return to if not to.rvalue or node.rvalue else Reference(to.to, to.const)
    element = node.to
    while isinstance(element, tree.TypeArray):  # const T (&a)[4]
        element = element.of
    return Reference(to, isinstance(element, tree.TypeConst), node.rvalue)


def _array(p: SymbolTable, node: tree.TypeArray, env: Environment) -> Type:
    of = resolve(p, node.of, env)
    if isinstance(of, Reference) or of is types.VOID:
        raise p.refusal(f"an array cannot hold {of}", node.line, max(1, node.column))
    if node.length is None:
        return Array(of, 0)
    try:
        length = int(constants.evaluate(p, node.length, env)[0])
    except Unknown:
        at = node.length
        raise p.refusal("the length of this array is not known before running", at.line, at.column) from None
    if length < 0:
        raise p.refusal(f"an array of {length} elements", node.line, node.column)
    return Array(of, length)


def _function(p: SymbolTable, node: tree.TypeFunction, env: Environment) -> Type:
    return FunctionType(resolve(p, node.result, env), tuple(resolve(p, t, env) for t in node.parameters))


def _auto(p: SymbolTable, node: tree.TypeAuto, env: Environment) -> Type:
    raise p.refusal("auto cannot be worked out here", node.line, max(1, node.column))


def _decltype(p: SymbolTable, node: tree.TypeOf, env: Environment) -> Type:
    return env.type_of(node.value) if env.type_of is not None else p.type_of(node.value, env)


def _named(p: SymbolTable, node: tree.TypeName, env: Environment) -> Type:
    found = _head(p, node, env)
    for inner in node.inner:
        found = member_type(p, found, inner, node)
    return found


def _head(p: SymbolTable, node: tree.TypeName, env: Environment) -> Type:
    name = node.name
    bound = env.bindings.get(name)
    if isinstance(bound, TemplateName) and node.arguments is not None:
        return instantiate(p, bound.name, node, env)
    if isinstance(bound, Type):
        return bound
    for record in env.record.lineage if env.record is not None else ():
        if record.node is not None:
            if name in record.node.types:
                return resolve(p, record.node.types[name], p.record_environment(record))
            if name in (record.node.name, record.node.name.rpartition("::")[2]) and node.arguments is None:
                return record
    for candidate in p.names.candidates(name, env.scope):
        if candidate in p.entities.classes:
            return instantiate(p, candidate, node, env)
        alias = p.entities.aliases.get(candidate)
        if alias is not None:
            if alias.template:
                arguments = [argument(p, a, env) for a in node.arguments or []]
                bindings = {t.name: v for t, v in zip(alias.template, arguments, strict=False)}
                return resolve(p, alias.type, type(env)(bindings, alias.scope))
            inner = type(env)(env.bindings, alias.scope, env.record, env.local if alias.local else None)
            return resolve(p, alias.type, inner)
        known = types.NAMED.get(candidate.removeprefix("std::"))
        if known is not None:
            return known
    raise p.refusal(f"{name} is not a type that is known here", node.line, max(1, node.column))


def argument(p: SymbolTable, node: tree.Node, env: Environment) -> Argument:
    """A template argument: a type, a class template, or (value, its type)."""
    if isinstance(node, tree.TypeName) and node.arguments is None and not node.inner:
        template = _template_named(p, node.name, env)
        if template is not None:
            return template
    if isinstance(node, tree.Name) and isinstance(env.bindings.get(node.name), Type):
        return env.bindings[node.name]
    if isinstance(node, tree.TypeName) and node.inner:  # is_integral<T>::value is parsed as a type
        owner = tree.TypeName(node.name, node.arguments, node.inner[:-1], line=node.line, column=node.column)
        try:
            return constants.evaluate(
                p, tree.Name(node.inner[-1], None, owner, line=node.line, column=node.column), env
            )
        except Unknown:
            return resolve(p, node, env)
    if type(node) in TABLE:
        found = resolve(p, node, env)
        variable = isinstance(found, Record) and found.node is not None and tree.VALUE in found.node.constants
        return constants.evaluate(p, tree.Name(tree.VALUE, None, node), env) if variable else found
    try:
        return constants.evaluate(p, node, env)
    except Unknown:
        raise p.refusal("a template argument must be known before running", node.line, max(1, node.column)) from None


def _template_named(p: SymbolTable, name: str, env: Environment) -> TemplateName | None:
    """The class template that a name alone stands for; None for a type, the class itself inside a template included."""
    if name in env.bindings:
        return None
    for record in env.record.lineage if env.record is not None else ():
        if record.node is not None and (name in record.node.types or name == record.node.name.rpartition("::")[2]):
            return None
    found = next((c for c in p.names.candidates(name, env.scope) if c in p.entities.classes), "")
    needed = found and any(t.default is None and not t.pack for t in p.entities.classes[found][0].template)
    return TemplateName(found) if needed else None


def instantiate(p: SymbolTable, name: str, node: tree.TypeName, env: Environment) -> Record:
    """The class of that name with these template arguments."""
    classes = p.entities.classes[name]
    primary = classes[0]
    if not primary.template:
        return record_of(p, primary, {}, primary.name)
    given = [argument(p, a, env) for a in node.arguments or []]
    if node.arguments is None and env.record is not None and env.record.node is primary:
        return env.record
    if node.arguments is None and all(t.name in env.bindings for t in primary.template):  # in a friend of the class
        given = [env.bindings[t.name] for t in primary.template]
    whole = _with_defaults(p, primary, given, env) if len(classes) > 1 else given
    for special in sorted((c for c in classes if c.special is not None), key=lambda c: len(c.template)):
        written = given if len(special.special or []) == len(given) else whole
        found = _specialised(p, special, written, env)
        if found is not None:  # sorted: fewer parameters of its own are taken as more specialised
            made = record_of(p, special, found, f"{name}<{', '.join(map(spell, given))}>")
            made.arguments = whole
            return made
    bindings: Bindings = {}
    for i, parameter in enumerate(primary.template):
        if i < len(given):
            value = given[i]
            if not parameter.is_type and isinstance(value, tuple) and parameter.type is not None:
                type_ = resolve(p, parameter.type, type(env)(bindings, primary.scope))
                if isinstance(type_, Scalar):
                    value = (types.wrap(type_, value[0]), type_)
            bindings[parameter.name] = value
        elif parameter.default is not None:
            bindings[parameter.name] = argument(p, parameter.default, type(env)(bindings, primary.scope))
        elif not parameter.pack:
            raise p.refusal(f"{name} needs a template argument for {parameter.name}", node.line, max(1, node.column))
    spelled = ", ".join(map(spell, list(bindings.values())[: max(1, len(given))]))  # without what was left out
    return record_of(p, primary, bindings, f"{name}<{spelled}>")


def _with_defaults(p: SymbolTable, primary: tree.Class, given: list[Argument], env: Environment) -> list[Argument]:
    """The arguments given, then the default ones."""
    bound = dict(zip((t.name for t in primary.template), given, strict=False))
    out = list(given)
    for t in primary.template[len(given) :]:
        if t.default is not None:
            bound[t.name] = argument(p, t.default, type(env)(dict(bound), primary.scope))
            out.append(bound[t.name])
    return out


def _specialised(p: SymbolTable, special: tree.Class, given: list[Argument], env: Environment) -> Bindings | None:
    """Bindings of a specialisation (full or partial) that matches these arguments; None if it does not."""
    written = special.special or []
    names = {t.name: t for t in special.template if t.name != "<none>"}
    if len(written) != len(given):
        return None
    bound: Bindings = {}
    for node, value in zip(written, given, strict=True):
        if isinstance(value, Type) and names:
            if not specialises(p, node, value, names, bound, env):
                return None
        elif isinstance(node, tree.Name) and node.name in names:
            bound[node.name] = value
        elif argument(p, node, env) != value:
            return None
    return bound if len(bound) == len(names) else None


def spell(value: Argument) -> str:
    return str(value[0]) if isinstance(value, tuple) else str(value)


def record_of(p: SymbolTable, node: tree.Class, bindings: Bindings, name: str) -> Record:
    key = (id(node), tuple((k, str(v), id(v) if isinstance(v, Record) else 0) for k, v in bindings.items()))
    found = p.records.get(key)
    if found is None:
        if len(p.records) > 2000:
            raise p.refusal("more than 2000 instances of class templates", node.line)
        found = p.records[key] = Record(name, node, bindings, scope=node.scope)
        for method in node.methods:
            found.methods.setdefault(method.name, []).append(method)
    return found


def member_type(p: SymbolTable, owner: Type, name: str, node: tree.Node) -> Type:
    """Owner::name."""
    if isinstance(owner, Record):
        for record in p.layout(owner).lineage:
            if record.node is not None and name in record.node.types:
                return resolve(p, record.node.types[name], p.record_environment(record))
    raise p.refusal(f"{owner} has no type {name}", node.line, max(1, node.column))


TABLE: dict[type, Callable[..., Type]] = {
    tree.TypeFixed: _fixed, tree.TypeConst: _const, tree.TypePointer: _pointer, tree.TypeReference: _reference,
    tree.TypeArray: _array, tree.TypeFunction: _function, tree.TypeAuto: _auto, tree.TypeOf: _decltype,
    tree.TypeName: _named,
}  # fmt: skip
