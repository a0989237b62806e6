"""Host expressions, as far as they can be known without running the host: C's arithmetic on scalars and dim3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewise.emulator.compile.intrinsics import CONSTANTS, REAL
from tilewise.emulator.compile.resolver import TypeResolver
from tilewise.emulator.machine import ctype
from tilewise.emulator.machine.arithmetic import COMPARISONS, converter, operation
from tilewise.emulator.machine.ctype import BOOL, Scalar, Struct
from tilewise.emulator.parse import tree
from tilewise.emulator.sema.bodies import body_of
from tilewise.emulator.sema.symbol_table import Environment
from tilewise.errors import KernelError

Typed = tuple[Scalar, Any]


class Unknown(Exception):
    """Something only the running host would know; says what."""


def convert(value: Typed, target: Scalar) -> Typed:
    function = converter(value[0], target)
    return target, value[1] if function is None else function(value[1])


class HostValues:
    """An environment of names; every value is (type, NumPy scalar), a dim3 is a list of three."""

    def __init__(self, types: TypeResolver) -> None:
        self.types = types
        self.table = types.table
        self.names: dict[str, Any] = {}
        self.outer: Callable[[str], Typed | None] = lambda name: None
        self.depth = 0

    def scalar(self, node: Any) -> Typed:
        value = self.value(node)
        if isinstance(value, (list, dict)):
            raise Unknown("a struct where a number is expected")
        return value  # type: ignore[no-any-return]

    def value(self, node: Any) -> Any:
        self.depth += 1
        try:
            if self.depth > 100:
                raise Unknown("an expression nested too deep")
            with np.errstate(all="ignore"):
                return self._value(node)
        finally:
            self.depth -= 1

    def _value(self, node: Any) -> Any:
        if isinstance(node, tree.Number):
            type_ = self._machine(node)
            return type_, type_.dtype.type(node.value)
        if isinstance(node, tree.Name):
            return self._name(node)
        if isinstance(node, tree.Member):
            return self._member(node)
        if isinstance(node, tree.Binary):
            return self._binary(node)
        if isinstance(node, tree.Unary):
            return self._unary(node)
        if isinstance(node, tree.Ternary):
            chosen = convert(self.scalar(node.condition), BOOL)[1]
            return self.value(node.yes if chosen else node.no)
        if isinstance(node, tree.Cast):
            target = self._resolve(node)
            return (
                convert(self.scalar(node.operand), target) if isinstance(target, Scalar) else self.value(node.operand)
            )
        if isinstance(node, tree.Construct):
            target = self._resolve(node)
            if isinstance(target, Scalar) and len(node.arguments) == 1:
                return convert(self.scalar(node.arguments[0]), target)
            return self.dim3(node.arguments[0].items if node.braces else node.arguments)
        if isinstance(node, tree.Braces):
            return self.dim3(node.items)
        if isinstance(node, tree.SizeOf) and node.type is not None:
            return ctype.ULONG, np.uint64(self._type(node.type).size)
        if isinstance(node, tree.Call):
            return self._call(node)
        raise Unknown("host code")

    def _machine(self, node: tree.Number) -> Scalar:
        type_ = self.types.machine_type(node.type, node)
        if not isinstance(type_, Scalar):
            raise Unknown("a pointer where a number is expected")
        return type_

    def _resolve(self, node: tree.Cast | tree.Construct) -> Any:
        return self._type(node.type)

    def _type(self, node: Any) -> Any:
        try:
            return self.types.resolve(node)
        except KernelError as error:
            raise Unknown(error.message) from None

    def dim3(self, arguments: list[Any]) -> list[Typed]:
        if len(arguments) == 1:
            only = self.value(arguments[0])
            if isinstance(only, list):
                return only
            if only is None:
                raise Unknown("a value that is not known")
        parts = [convert(self.scalar(a), ctype.UINT) for a in arguments[:3]]
        return parts + [(ctype.UINT, np.uint32(1))] * (3 - len(parts))

    def _name(self, node: tree.Name) -> Any:
        name = node.name
        if name in self.names:
            value = self.names[name]
            if value is None:
                raise Unknown(f"{name} is not known before the host runs")
            return value
        given = self.outer(name)
        if given is not None:
            return given
        if name in CONSTANTS:
            type_, number = CONSTANTS[name]
            return type_, type_.dtype.type(number)
        raise Unknown(f"{name} is not known before the host runs")

    def _member(self, node: tree.Member) -> Any:
        if isinstance(node.base, tree.Name) and f"{node.base.name}.{node.name}" in self.names:
            return self.names[f"{node.base.name}.{node.name}"]
        base = self.value(node.base)
        if isinstance(base, list) and node.name in ("x", "y", "z"):
            part = base["xyz".index(node.name)]
            if part is None:
                raise Unknown(f"the member {node.name} is not known")
            return part
        if isinstance(base, dict) and node.name in base:
            return base[node.name]
        raise Unknown(f"the member {node.name} is not known")

    def _unary(self, node: tree.Unary) -> Any:
        if node.op in ("*", "&"):
            return self.value(node.operand)
        type_, value = self.scalar(node.operand)
        if node.op == "!":
            return BOOL, np.bool_(not value)
        target = ctype.promote(type_)
        value = convert((type_, value), target)[1]
        return target, {"-": lambda: -value, "+": lambda: value, "~": lambda: ~value}[node.op]()

    def _binary(self, node: tree.Binary) -> Typed:
        if node.op == ",":
            return self.scalar(node.right)
        left, right = self.scalar(node.left), self.scalar(node.right)
        if node.op in ("&&", "||"):
            a, b = bool(left[1]), bool(right[1])
            return BOOL, np.bool_((a and b) if node.op == "&&" else (a or b))
        return self.operate(node.op, left, right)

    @staticmethod
    def operate(op: str, left: Typed, right: Typed) -> Typed:
        type_ = ctype.promote(left[0]) if op in ("<<", ">>") else ctype.common(left[0], right[0])
        function = operation(op, type_)
        if function is None:
            raise Unknown(f"{op} on {type_}")
        if op in ("/", "%") and not type_.floating and right[1] == 0:
            raise Unknown("a division by zero")
        with np.errstate(all="ignore"):
            value = function(convert(left, type_)[1], convert(right, type_)[1])
        return (BOOL if op in COMPARISONS else type_), value

    def _call(self, node: tree.Call) -> Any:
        name = called(node)
        if name in ("dim3", "make_uint3"):
            return self.dim3(node.arguments)
        if name in ("min", "max") and len(node.arguments) == 2:
            left, right = self.scalar(node.arguments[0]), self.scalar(node.arguments[1])
            less = bool(self.operate("<", left, right)[1])
            return left if less == (name == "min") else right
        single = name.endswith("f") and name[:-1] in REAL
        entry = REAL.get(name[:-1] if single else name)
        if entry is not None and len(node.arguments) == entry[0]:
            values = [self.scalar(a) for a in node.arguments]
            narrow = single or all(v[0].floating and v[0].rank <= ctype.FLOAT.rank for v in values)
            target = ctype.FLOAT if narrow else ctype.DOUBLE
            return target, target.dtype.type(entry[1](*[convert(v, target)[1] for v in values]))
        for function in self.table.functions_named(name, "")[1]:
            if function.tokens and not function.library and len(function.parameters) == len(node.arguments):
                return self._inline(function, node)
        raise Unknown(f"{name}() is host code")

    def _inline(self, function: tree.Function, node: tree.Call) -> Any:
        """A helper of one line, `return (a + b - 1) / b;`, is worth following."""
        body = body_of(self.table, function, Environment(scope=function.scope), lenient=True).body
        if len(body) != 1 or not isinstance(body[0], tree.Return) or body[0].value is None:
            raise Unknown(f"{function.name}() is host code")
        inner: dict[str, Any] = {}
        for parameter, argument in zip(function.parameters, node.arguments, strict=True):
            value = self.value(argument)
            target = self._type(parameter.type)
            target = target.to if isinstance(target, ctype.Reference) else target
            inner[parameter.name] = convert(value, target) if isinstance(target, Scalar) else value
        kept, self.names = self.names, inner
        try:
            value = self.value(body[0].value)
            result = self._type(function.result)
            return convert(value, result) if isinstance(result, Scalar) else value
        finally:
            self.names = kept


def called(node: tree.Call) -> str:
    """The name of the function that a call is of, without its namespaces."""
    return node.function.name.rpartition("::")[2] if isinstance(node.function, tree.Name) else ""


def struct_value(struct: Struct, members: dict[str, int]) -> dict[str, Typed]:
    """A matrix struct on the host whose sizes are known."""
    out: dict[str, Typed] = {}
    for f in struct.fields:
        if f.name in members and isinstance(f.type, Scalar):
            out[f.name] = (f.type, f.type.dtype.type(members[f.name]))
    return out
