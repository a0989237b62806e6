"""Constant expressions: array lengths, template arguments, case labels, enumerators."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Constant, Number, Scalar, Type, wrap
from tilewise.emulator.sema.bodies import body_of
from tilewise.emulator.sema.symbol_table import Environment, KnownLocal, Locals, SymbolTable, Unknown


def evaluate(p: SymbolTable, node: tree.Node | None, env: Environment, local: Locals | None = None) -> Constant:
    """The value and type of a constant expression; raises Unknown."""
    known = TABLE.get(type(node))
    if known is None:
        raise Unknown
    return known(p, node, env, local)


def _number(p: SymbolTable, node: tree.Number, env: Environment, local: Locals | None) -> Constant:
    if node.type is types.NULLPTR:
        raise Unknown
    return node.value, node.type


def _name(p: SymbolTable, node: tree.Name, env: Environment, local: Locals | None) -> Constant:
    if node.owner is not None:
        owner = p.resolve(node.owner, env)
        return _member_constant(p, owner, node.name)
    local = local or env.local
    if local is not None:
        found = local(node.name)
        if found is not None:
            return _known(found)
    bound = env.bindings.get(node.name)
    if isinstance(bound, tuple):
        return bound
    if env.record is not None:
        try:
            return _member_constant(p, env.record, node.name)
        except Unknown:
            pass
    for name in p.names.candidates(node.name, env.scope):
        if name in p.entities.enumerators:
            return p.enumerator(name)
        if name in p.entities.variables:
            return p.constant_variable(name)
    raise Unknown


def _member_constant(p: SymbolTable, owner: Type, name: str) -> Constant:
    if isinstance(owner, types.Record):
        found = owner.node.constants.get(name) if owner.node is not None else None
        if found is None:
            for base, _ in owner.bases:
                try:
                    return _member_constant(p, base, name)
                except Unknown:
                    continue
            raise Unknown
        if (owner, name) not in p.member_constants:  # without this, Fib<40>::v takes as many steps as its value
            p.member_constants[owner, name] = _computed(p, p.record_environment(owner), *found)
        return p.member_constants[owner, name]
    if isinstance(owner, types.Enum):
        return p.enumerator(f"{owner.name}::{name}")
    raise Unknown


def _computed(p: SymbolTable, env: Environment, type_: Scalar, value: tree.Node) -> Constant:
    if isinstance(value, tree.Variable):
        if value.init is None:
            raise Unknown
        made = p.resolve(value.type, env)
        if not isinstance(made, Scalar):
            raise Unknown
        return wrap(made, evaluate(p, value.init, env)[0]), made
    return evaluate(p, value, env)[0], type_


def _unary(p: SymbolTable, node: tree.Unary, env: Environment, local: Locals | None) -> Constant:
    value, type_ = evaluate(p, node.operand, env, local)
    if node.op == "!":
        return int(not value), types.BOOL
    type_ = types.promote(type_)
    if node.op == "-":
        return wrap(type_, -value), type_
    if node.op == "+":
        return value, type_
    if node.op == "~" and type_.integral:
        return wrap(type_, ~int(value)), type_
    raise Unknown


def _binary(p: SymbolTable, node: tree.Binary, env: Environment, local: Locals | None) -> Constant:
    op = node.op
    left, first = evaluate(p, node.left, env, local)
    if op == "&&" and not left:
        return 0, types.BOOL
    if op == "||" and left:
        return 1, types.BOOL
    right, second = evaluate(p, node.right, env, local)
    if op in ("&&", "||"):
        return int(bool(right)), types.BOOL
    if op in ("<<", ">>"):
        type_ = types.promote(first)
        if type_.floating or second.floating or not 0 <= right < type_.bits:
            raise Unknown
        left, right = int(left), int(right)
        return wrap(type_, left << right if op == "<<" else left >> right), type_
    type_ = types.common(first, second)
    left, right = wrap(type_, left), wrap(type_, right)
    if op in COMPARE:
        return int(COMPARE[op](left, right)), types.BOOL
    if op in ("/", "%"):
        if not right:
            raise Unknown
        if type_.floating:
            return (left / right, type_) if op == "/" else (math.fmod(left, right), type_)
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return wrap(type_, quotient if op == "/" else left - quotient * right), type_
    if op in BITWISE and not type_.floating:
        return wrap(type_, BITWISE[op](int(left), int(right))), type_
    if op in ARITHMETIC:
        return wrap(type_, ARITHMETIC[op](left, right)), type_
    raise Unknown


COMPARE: dict[str, Callable[[Number, Number], bool]] = {
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b, ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b,
}  # fmt: skip
ARITHMETIC: dict[str, Callable[[Number, Number], Number]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
}  # fmt: skip
BITWISE: dict[str, Callable[[int, int], int]] = {"&": operator.and_, "|": operator.or_, "^": operator.xor}


def _ternary(p: SymbolTable, node: tree.Ternary, env: Environment, local: Locals | None) -> Constant:
    condition, _ = evaluate(p, node.condition, env, local)
    return evaluate(p, node.yes if condition else node.no, env, local)


def _cast(p: SymbolTable, node: tree.Cast | tree.Construct, env: Environment, local: Locals | None) -> Constant:
    operand = node.operand if isinstance(node, tree.Cast) else None
    if isinstance(node, tree.Construct):
        if len(node.arguments) != 1:
            raise Unknown
        operand = node.arguments[0]
    type_ = p.resolve(node.type, env)
    if not isinstance(type_, Scalar):
        raise Unknown
    value, _ = evaluate(p, operand, env, local)
    return wrap(type_, value), type_


def _sizeof(p: SymbolTable, node: tree.SizeOf, env: Environment, local: Locals | None) -> Constant:
    if node.type is None and env.type_of is None:
        raise Unknown
    type_ = types.bare(p.resolve(node.type if node.type is not None else tree.TypeOf(node.operand), env))
    size = p.size_of(type_)
    return type_.align if node.alignment else size, types.ULONG


def _member(p: SymbolTable, node: tree.Member, env: Environment, local: Locals | None) -> Constant:
    """A member of a local variable, stored under its path, `grid.x`."""
    local = local or env.local
    found = local(f"{node.base.name}.{node.name}") if local is not None and isinstance(node.base, tree.Name) else None
    return _known(found)


def _known(local: KnownLocal | None) -> Constant:
    if local is None or local.constant is None or not isinstance(local.type, Scalar):
        raise Unknown
    return local.constant, local.type


def _call(p: SymbolTable, node: tree.Call, env: Environment, local: Locals | None) -> Constant:
    """Functions of the program that consist of one return, min, max and the functions of <cmath>."""
    if not isinstance(node.function, tree.Name) or node.function.owner is not None:
        raise Unknown
    given = [evaluate(p, argument, env, local) for argument in node.arguments]
    name, functions = p.functions_named(node.function.name, env.scope)
    for function in functions:
        if function.tokens and not function.library and len(function.parameters) == len(given):
            return _returned(p, function, given, env)
    name = name.rpartition("::")[2]
    if name in ("min", "max") and len(given) == 2:
        type_ = types.common(given[0][1], given[1][1])
        return (min if name == "min" else max)(wrap(type_, value) for value, _ in given), type_
    real = REAL.get(name) or REAL.get(name.removesuffix("f"))
    if real is None:
        raise Unknown
    single = name not in REAL or all(type_ is types.FLOAT for _, type_ in given)
    try:
        return float(real(*[float(value) for value, _ in given])), types.FLOAT if single else types.DOUBLE
    except (TypeError, ValueError, OverflowError):
        raise Unknown from None


def _returned(p: SymbolTable, function: tree.Function, given: list[Constant], env: Environment) -> Constant:
    if function.template or env.depth > MAX_CALL_DEPTH:
        raise Unknown
    inner = Environment(scope=function.scope, depth=env.depth + 1)
    body = body_of(p, function, inner, lenient=True).body
    if len(body) != 1 or not isinstance(body[0], tree.Return) or body[0].value is None:
        raise Unknown
    for parameter, (value, _) in zip(function.parameters, given, strict=True):
        inner.bindings[parameter.name] = _converted(p, parameter.type, value, inner)
    return _converted(p, function.result, evaluate(p, body[0].value, inner)[0], inner)


def _converted(p: SymbolTable, written: tree.Node | Type, value: Number, env: Environment) -> Constant:
    type_ = types.bare(p.resolve(written, env))
    if not isinstance(type_, Scalar):
        raise Unknown
    return wrap(type_, value), type_


TABLE: dict[type, Callable[..., Constant]] = {
    tree.Number: _number, tree.Name: _name, tree.Unary: _unary, tree.Binary: _binary, tree.Ternary: _ternary,
    tree.Cast: _cast, tree.Construct: _cast, tree.SizeOf: _sizeof, tree.Member: _member, tree.Call: _call,
}  # fmt: skip
REAL: dict[str, Callable[..., float]] = {
    name: getattr(math, name) for name in ("ceil", "floor", "trunc", "sqrt", "log2", "log", "exp", "pow", "fmod")
} | {"fabs": abs, "fmin": min, "fmax": max, "round": lambda x: math.floor(abs(x) + 0.5) * math.copysign(1, x)}
MAX_CALL_DEPTH = 40
