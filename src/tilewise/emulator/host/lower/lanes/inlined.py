"""Inlines functions of one expression on the tree, so that they are computed for all lanes at once.

`getElement(A, row, i)`, `index(x, y)`, `square(d)`: the parameters are replaced by the arguments, each cast to its
parameter's type. Any other function remains a call, which is made for one lane after another."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Pointer, Record, Reference, Scalar
from tilewise.emulator.sema.bodies import body_of
from tilewise.emulator.sema.pure_functions import PURE
from tilewise.emulator.sema.symbol_table import Environment
from tilewise.errors import KernelError

DEPTH = 8  # of nested inlining
LARGEST = 400  # nodes of an inlined body
EFFECTS = (tree.Assign, tree.Step, tree.Call, tree.Lambda, tree.New, tree.Delete, tree.Throw, tree.Launch)


def with_functions_inlined(b: Builder, node: tree.Function, body: Any) -> Any:
    """A copy of the kernel's body; the original tree is not changed."""
    own = {p.name for p in node.parameters} | {n.name for n in tree.walk(body) if isinstance(n, tree.Variable)}
    return _rewritten(b, body, own, 0)


def _mapped(node: Any, change: Any) -> Any:
    """A copy with `change` applied to each child; the node itself if no child changes."""
    if isinstance(node, (list, tuple)):
        made = [change(item) for item in node]
        same = all(x is y for x, y in zip(made, node, strict=True))
        return node if same else type(node)(made) if isinstance(node, tuple) else made
    if not isinstance(node, tree.Node):
        return node
    out = node
    for name in node.__slots__:
        before = getattr(node, name)
        after = change(before) if isinstance(before, (tree.Node, list, tuple)) else before
        if after is not before:
            if out is node:
                out = copy.copy(node)
            setattr(out, name, after)
    return out


def _rewritten(b: Builder, node: Any, own: set[str], depth: int) -> Any:
    made = _mapped(node, lambda part: _rewritten(b, part, own, depth))
    if isinstance(made, tree.Call) and isinstance(made.function, tree.Name) and depth < DEPTH:
        inner = _inlined(b, made, made.function, own, depth)
        return made if inner is None else inner
    return made


def _inlined(b: Builder, node: tree.Call, name: tree.Name, own: set[str], depth: int) -> Any:
    if name.name in own or name.arguments is not None or name.owner is not None:
        return None
    _, candidates = b.program.functions_named(name.name, b.env.scope)
    if len(candidates) != 1:
        return None
    function = candidates[0]
    plain = not (function.library or function.template or function.variadic or function.specifiers & {"__global__"})
    if not plain or function.tokens is None or len(function.parameters) != len(node.arguments):
        return None
    try:
        value = _expression(body_of(b.program, function, Environment(scope=function.scope)))
        if value is None:
            return None
        given = _argument_values(b, function, node.arguments, value)
        result = b.program.resolve(function.result, Environment(scope=function.scope))
    except KernelError:
        return None
    free = {n.name for n in tree.walk(value) if isinstance(n, tree.Name)} - {p.name for p in function.parameters}
    if given is None or free & own or name.name in free:
        return None
    if not (result is types.VOID or isinstance(result, (Scalar, Pointer))):
        return None
    inner = _rewritten(b, _substituted(value, given), own, depth + 1)
    if sum(1 for _ in tree.walk(inner)) > LARGEST or not all(_supported_in_lanes(n) for n in tree.walk(inner)):
        return None
    return inner if result is types.VOID else tree.Cast(tree.TypeFixed(result), inner, line=value.line)


def _supported_in_lanes(node: Any) -> bool:
    """Whether this node can be lowered in lanes: inlining it must not make the whole kernel fall back to one thread."""
    if isinstance(node, tree.Call):
        return isinstance(node.function, tree.Name) and node.function.name.rpartition("::")[2] in PURE
    unusual = (tree.Lambda, tree.New, tree.Delete, tree.Throw, tree.Launch, tree.This, tree.Construct, tree.Braces)
    return not isinstance(node, unusual) and not (isinstance(node, tree.SizeOf) and node.operand is not None)


def _expression(body: tree.Block) -> Any:
    """The e of `{ return e; }` or `{ e; }`."""
    if len(body.body) != 1 or not isinstance(body.body[0], (tree.Return, tree.Expression)):
        return None
    return body.body[0].value


def _argument_values(b: Builder, function: tree.Function, arguments: list[Any], value: Any) -> dict[str, Any] | None:
    """The expression for each parameter; None if inlining would visibly change the order or number of evaluations."""
    out: dict[str, Any] = {}
    changed = {_root(n) for n in tree.walk(value) if isinstance(n, (tree.Assign, tree.Step))}
    changed |= {_root(n) for n in tree.walk(value) if isinstance(n, tree.Unary) and n.op == "&"}
    sometimes = {n.name for part in _conditional_parts(value) for n in tree.walk(part) if isinstance(n, tree.Name)}
    for parameter, argument in zip(function.parameters, arguments, strict=True):
        uses = sum(isinstance(n, tree.Name) and n.name == parameter.name for n in tree.walk(value))
        inside = list(tree.walk(argument))
        touches = any(
            isinstance(n, tree.Index) or (isinstance(n, tree.Unary) and n.op == "*")
            or (isinstance(n, tree.Member) and n.arrow) for n in inside
        )  # fmt: skip
        if parameter.name in changed or isinstance(argument, tree.Braces) or parameter.default is not None:
            return None
        if any(isinstance(n, EFFECTS) for n in inside) or (touches and (uses != 1 or parameter.name in sometimes)):
            return None
        type_ = b.program.resolve(parameter.type, Environment(scope=function.scope))
        if isinstance(type_, Reference):
            type_ = type_.to
        if isinstance(type_, Record):
            if not isinstance(argument, tree.Name):
                return None
            out[parameter.name] = argument
        elif isinstance(type_, Scalar):
            out[parameter.name] = tree.Cast(tree.TypeFixed(type_), argument, line=argument.line)
        elif isinstance(type_, Pointer):
            out[parameter.name] = argument
        else:
            return None
    return out


def _conditional_parts(value: Any) -> Iterator[Any]:
    """Operands that are not always evaluated."""
    for node in tree.walk(value):
        if isinstance(node, tree.Ternary):
            yield from (node.yes, node.no)
        elif isinstance(node, tree.Binary) and node.op in ("&&", "||"):
            yield node.right


def _root(node: Any) -> str:
    target = node.target if isinstance(node, tree.Assign) else node.operand
    while isinstance(target, tree.Member) and not target.arrow:
        target = target.base
    return target.name if isinstance(target, tree.Name) else ""


def _substituted(node: Any, given: dict[str, Any]) -> Any:
    if isinstance(node, tree.Name) and node.name in given and node.owner is None:
        return given[node.name]
    return _mapped(node, lambda part: _substituted(part, given))
