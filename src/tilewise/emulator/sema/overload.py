"""Overload resolution: candidates ranked by the conversions they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import (
    VOID,
    Argument,
    Array,
    Bindings,
    Enum,
    FunctionType,
    Number,
    Pointer,
    Record,
    Reference,
    Scalar,
    Type,
)
from tilewise.emulator.sema.deduce import deduce
from tilewise.emulator.sema.given import Method, Operand, Overloads, Value, free
from tilewise.emulator.sema.symbol_table import Environment, SymbolTable
from tilewise.emulator.sema.type_resolution import argument
from tilewise.errors import KernelError

AUTO_NAMES = "auto:"
EXACT, PROMOTION, CONVERSION, USER = 0, 1, 3, 10


@dataclass
class Choice:
    node: tree.Function
    bindings: Bindings
    record: Record | None
    offset: int = 0  # in the object, of the base that has the method


class NoMatch(Exception):
    """None of the candidates takes these arguments."""


def surroundings(p: SymbolTable, node: tree.Function, record: Record | None) -> Environment:
    if record is not None:
        return p.record_environment(record)
    return Environment(scope=node.scope)


def choose(
    p: SymbolTable, where: Environment, name: str, candidates: list[Method],
    given: Sequence[tree.Node] | None, values: Sequence[Value], receiver: Operand | None = None,
) -> Choice:  # fmt: skip
    """The best of the candidates for these values; raises NoMatch."""
    best: Choice | None = None
    best_cost: tuple[int, ...] = ()
    constant = receiver is not None and receiver.const
    for node, record, offset in candidates:
        if node.deleted or node.special is not None or not fits(node, len(values)):
            continue
        if constant and not node.specifiers & {"const method", "static"} and node.name != "<new>":
            continue
        env = surroundings(p, node, record)
        template = with_auto(node)
        bindings: Bindings = {}
        if template.template:
            found = deduce(p, template, given, values, env, where)
            if found is None:
                continue
            bindings = found
        elif given:
            continue
        costs = _costs(p, template, bindings, env, values)
        if costs is None:
            continue
        general = bool(template.template) and not tree.specialises(node.template)
        cost = (max(costs, default=0), sum(costs), general, node.of_pack, node.variadic,
                "const method" in node.specifiers and not constant)  # fmt: skip
        if best is None or cost < best_cost:
            best, best_cost = Choice(template, bindings, record, offset), cost
    if best is None:
        raise NoMatch(name)
    return _specialised(p, best, candidates)


def _specialised(p: SymbolTable, chosen: Choice, candidates: list[Method]) -> Choice:
    """The explicit specialisation of the chosen template for these arguments, if there is one."""
    for node, record, offset in candidates:
        if node.special is None or len(node.parameters) != len(chosen.node.parameters):
            continue
        env = surroundings(p, node, record)
        found = [chosen.bindings.get(t.name) for t in chosen.node.template][: len(node.special)]
        if list(map(_plain, found)) == [_plain(argument(p, written, env)) for written in node.special]:
            return Choice(node, {}, record, offset)
    return chosen


def _plain(value: Argument | None) -> Number | Type | None:
    """A template argument without the type of a value."""
    return value[0] if isinstance(value, tuple) else value


def no_match(name: str, candidates: Sequence[Method], values: Sequence[Value]) -> str:
    given = ", ".join(str(getattr(v, "type", "…")) for v in values)
    name = name.removeprefix("std::")
    counts = sorted({len(c[0].parameters) for c in candidates})
    taken = any(fits(c[0], len(values)) or len(c[0].parameters) == len(values) for c in candidates)
    if candidates and not taken and not any(c[0].variadic for c in candidates):
        if len(counts) > 2 and counts == list(range(counts[0], counts[-1] + 1)):
            return f"{name} takes {counts[0]} to {counts[-1]} arguments, {len(values)} are given"
        return f"{name} takes {' or '.join(map(str, counts))} arguments, {len(values)} are given"
    return f"no {name} takes ({given})"


def fits(node: tree.Function, count: int) -> bool:
    least = sum(p.default is None for p in node.parameters)
    if any(t.pack for t in node.template):
        return False
    return least <= count and (count <= len(node.parameters) or node.variadic)


_WITH_AUTO: dict[int, tuple[tree.Function, tree.Function]] = {}  # by id: the node, kept alive, and its template


def with_auto(node: tree.Function) -> tree.Function:
    """A function with auto parameters as a template over their types."""
    if not any(tree.is_auto(p.type) for p in node.parameters):
        return node
    known = _WITH_AUTO.get(id(node))
    if known is not None:
        return known[1]
    parameters, template = [], list(node.template)
    for i, parameter in enumerate(node.parameters):
        if tree.is_auto(parameter.type):
            named = tree.TypeName(f"{AUTO_NAMES}{i}")
            template.append(tree.TemplateParameter(named.name, True))
            parameters.append(_with_type(parameter, named))
        else:
            parameters.append(parameter)
    made = node.updated(parameters=parameters, template=template)
    _WITH_AUTO[id(node)] = node, made
    return made


def _with_type(parameter: tree.Parameter, named: tree.TypeName) -> tree.Parameter:
    return parameter.updated(type=tree.innermost_replaced(parameter.type, lambda _: named))


def _costs(
    p: SymbolTable, node: tree.Function, bindings: Bindings, env: Environment, values: Sequence[Value]
) -> list[int] | None:
    inner = Environment({**env.bindings, **bindings}, env.scope, env.record)
    costs: list[int] = []
    for i, value in enumerate(values):
        if i >= len(node.parameters):
            costs.append(20)
            continue
        try:
            type_ = p.resolve(node.parameters[i].type, inner)
        except KernelError:
            return None
        if isinstance(value, tree.Braces):
            costs.append(EXACT if isinstance(type_, (Record, Reference)) else 3)
            continue
        cost = rank(p, value, type_)
        if cost is None:
            return None
        costs.append(cost)
    return costs


def methods(p: SymbolTable, record: Record, name: str) -> list[Method]:
    p.layout(record)
    return list(record.methods_named(name))


def constructors(record: Record) -> list[Method]:
    return [(m, record, 0) for m in record.methods.get("<new>", [])]


def operator_choice(p: SymbolTable, where: Environment, name: str, values: Sequence[Value]) -> Choice | None:
    """The operator method of the first operand's class, else a free operator; None if no candidate fits."""
    operands = [v for v in values if not isinstance(v, (Overloads, tree.Braces))]
    records = [v for v in operands if isinstance(v.type, (Record, Enum))]
    if not any(isinstance(v.type, Record) for v in records) and not (records and _on_enums(p, name)):
        return None
    first = values[0]
    tried: list[tuple[list[Method], Sequence[Value], Operand | None]] = []
    if not isinstance(first, (Overloads, tree.Braces)) and isinstance(first.type, Record):
        tried.append((methods(p, first.type, name), values[1:], first))
    functions = _free_operators(p, where, name, records)
    if not any(isinstance(v.type, Record) for v in records):  # conversions of numbers are better than those to classes
        functions = [f for f in functions if f.template or any(_is_enum(p, f, q) for q in f.parameters)]
    tried.append((free(functions), values, None))
    for candidates, given, receiver in tried:
        try:
            return choose(p, where, name, candidates, None, given, receiver)
        except NoMatch:
            continue
    return None


def _is_enum(p: SymbolTable, function: tree.Function, parameter: tree.Parameter) -> bool:
    type_ = p.resolve(parameter.type, surroundings(p, function, None))
    return isinstance(type_.to if isinstance(type_, Reference) else type_, Enum)


def _on_enums(p: SymbolTable, name: str) -> bool:
    return any(n.endswith(name) and not n.startswith("std::") for n in p.entities.functions)


def _free_operators(p: SymbolTable, where: Environment, name: str, records: Sequence[Operand]) -> list[tree.Function]:
    scopes = [where.scope, *(getattr(r.type, "scope", "") for r in records), "std"]
    names = dict.fromkeys(n for scope in scopes for n in p.names.candidates(name, scope))
    return list(dict.fromkeys(f for n in names for f in p.entities.functions.get(n, [])))


def same(a: Type, c: Type) -> bool:
    return a == c or (isinstance(a, Array) and isinstance(c, Array) and a.of == c.of and c.length == 0)


def rank(p: SymbolTable, value: Operand | Overloads, type_: Type) -> int | None:
    """The rank of the conversion of a value to a parameter's type; None if there is none."""
    if isinstance(type_, Reference):
        return _rank_reference(p, value, type_)
    if isinstance(value, Overloads):
        return _rank_function(value, type_)
    source: Type = value.type
    if isinstance(source, Array):
        source = Pointer(source.of)
    if isinstance(source, FunctionType):
        source = Pointer(source)
    if source == type_:
        return EXACT
    if isinstance(type_, Record) or isinstance(source, Record):
        return _rank_class(p, value, source, type_)
    if isinstance(type_, Pointer):
        return _rank_pointer(value, source, type_)
    if isinstance(type_, Scalar) and isinstance(source, Scalar):
        if source.kind == "null" or type_.kind == "null":
            return CONVERSION if type_.kind == "bool" else None
        if isinstance(type_, Enum):
            return None
        if isinstance(source, Enum) and source.scoped:
            return None
        if source.integral and type_ == types.promote(source):
            return PROMOTION
        if source.floating and type_ is types.DOUBLE and source.size < 8:
            return PROMOTION
        return CONVERSION
    if isinstance(source, Pointer) and type_ is types.BOOL:
        return CONVERSION + 1
    return None


def _rank_function(value: Overloads, type_: Type) -> int | None:
    """The rank of a function's name for a pointer parameter."""
    if isinstance(type_, Pointer) and isinstance(type_.to, FunctionType):
        count = len(type_.to.parameters)
        return EXACT if any(c.on_device or len(c.parameters) == count for c in value.functions) else None
    if isinstance(type_, Pointer) and type_.to is types.VOID:
        return CONVERSION
    return None


def _rank_reference(p: SymbolTable, value: Operand | Overloads, type_: Reference) -> int | None:
    if isinstance(value, Overloads):
        return CONVERSION
    lvalue = value.lvalue
    if type_.rvalue and lvalue and not isinstance(type_.to, FunctionType):
        return None
    if same(value.type, type_.to):
        if lvalue and not type_.rvalue:
            if value.const and not type_.const:
                return None
            return EXACT if not type_.const else EXACT + (0 if value.const else 1)
        if not lvalue and not type_.const and not type_.rvalue:
            return None
        return EXACT if type_.rvalue else EXACT + 1
    if isinstance(value.type, Record) and isinstance(type_.to, Record):
        p.layout(value.type)
        if value.type.derives(type_.to) is not None:
            return CONVERSION
    if isinstance(value.type, Record) and reference_operator(p, value.type, type_.to) is not None:
        return USER
    if not type_.const and not type_.rvalue:
        return None
    made = rank(p, value, type_.to)
    return made if made is None or made < USER or type_.rvalue else made + 1  # prefer T&& for a temporary


def _rank_pointer(value: Operand, source: Type, type_: Pointer) -> int | None:
    if source is types.NULLPTR:
        return PROMOTION
    if isinstance(source, Scalar):
        return CONVERSION if value.zero and source.integral else None
    if isinstance(source, Pointer):
        if isinstance(type_.to, Scalar) and type_.to.kind == "void":
            return CONVERSION
        if isinstance(source.to, Record) and isinstance(type_.to, Record) and source.to.derives(type_.to) is not None:
            return CONVERSION
    return None


def _rank_class(p: SymbolTable, value: Operand, source: Type, type_: Type) -> int | None:
    if isinstance(source, Record) and isinstance(type_, Record):
        p.layout(source)
        if source.derives(type_) is not None:
            return CONVERSION
    if isinstance(source, Record) and not isinstance(type_, Record):
        if is_plain_function(source, type_):
            return CONVERSION
        return USER if conversion_operator(p, source, type_) is not None else None
    if isinstance(type_, Record):
        return USER if constructible(p, type_, value) else None
    return None


def is_plain_function(record: Record, type_: Type) -> bool:
    """Whether the class is that of a lambda without captures, and the type a pointer to functions of as many
    parameters."""
    if record.captured is None or record.fields or not isinstance(type_, Pointer):
        return False
    parameters = record.methods["operator()"][0].parameters
    return isinstance(type_.to, FunctionType) and len(parameters) == len(type_.to.parameters)


def conversion_operator(p: SymbolTable, record: Record, type_: Type) -> str | None:
    """The name of the class's conversion to the type, or to one that becomes it; None if it has none."""
    made: dict[str, Type] = {}
    for owner in p.layout(record).lineage:
        for name in owner.methods:
            if name.startswith("operator type "):
                to = p.conversion_type(owner.methods[name][0], p.record_environment(owner))
                made.setdefault(name, to.to if isinstance(to, Reference) else to)
    exact = [n for n, to in made.items() if to == type_]
    form = Pointer if isinstance(type_, Pointer) else Scalar
    near = [n for n, to in made.items() if isinstance(to, form)] if type_ is not VOID else []
    return next(iter((*exact, *near)), None)


def reference_operator(p: SymbolTable, record: Record, type_: Type) -> str | None:
    """The conversion operator of the class that returns a reference to this type."""
    p.layout(record)
    env = p.record_environment(record)
    for name, (node, *_) in record.methods.items():
        if name.startswith("operator type ") and name.endswith("&") and node.result is None:
            found = p.conversion_type(node, env)
            if isinstance(found, Reference) and same(found.to, type_):
                return name
    return None


_TRYING: set[tuple[int, int]] = set()


def constructible(p: SymbolTable, record: Record, value: Operand) -> bool:
    """Whether a value converts to the class implicitly, by a constructor that is not explicit."""
    p.layout(record)
    key = (id(record), id(value))
    if key in _TRYING:
        return False
    _TRYING.add(key)
    try:
        usable = [c for c in constructors(record) if "explicit" not in c[0].specifiers]
        choose(p, p.record_environment(record), record.name, usable, None, [value])
        return True
    except NoMatch:
        return False
    finally:
        _TRYING.discard(key)
