"""Compile a numeric Python function from its syntax tree to LLVM text: the same bits, with nothing reordered.

A small subset, on purpose: assignments, if, for … in range, return, arithmetic, comparisons, min, max, sqrt, log2, erf,
and calls of annotated functions of the same module. Integers have 64 bits, floats are doubles.
"""

from __future__ import annotations

import ast
import inspect
import math
import struct
import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

DECLARED = "declare double @llvm.sqrt.f64(double)\ndeclare double @pow(double, double)\n"
DECLARED += "declare double @log2(double)\ndeclare double @erf(double)\n"
INTEGER, FLOAT, TRUTH, TABLE = "i64", "double", "i1", "ptr"
ARITHMETIC = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}
COMPARED = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}


class Register(NamedTuple):
    name: str
    kind: str


class Translation:
    """The text of one function and of the functions it calls; arguments and results are integers and floats."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        assert isinstance(tree, ast.FunctionDef)
        self._body, self._name, self._globals = tree.body, name, function.__globals__
        self._result = _kind(tree.returns)
        self._parameters = [(argument.arg, _kind(argument.annotation)) for argument in tree.args.args]
        self._emitted: list[str] = []
        self._variables: dict[str, str] = {}  # variable → type
        self._called: dict[str, Translation] = {}
        self._count = 0

    def text(self) -> str:
        for name, kind in self._parameters:
            if kind != TABLE:
                self._store(ast.Name(name, ast.Store()), Register(f"%{name}", kind))
        self._block(self._body)
        body = "\n".join(self._emitted)
        held = "\n".join(f"  %v.{name} = alloca {kind}" for name, kind in self._variables.items())
        given = ", ".join(f"{kind} %{name}" for name, kind in self._parameters)
        nothing = "0" if self._result == INTEGER else "0x7FF0000000000000"
        called = "".join(other.text() for other in self._called.values())
        head = f"define private {self._result} @{self._name}({given}) {{"
        return f"{called}{head}\n{held}\n{body}\n  ret {self._result} {nothing}\n}}\n"

    def _block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            getattr(self, f"_{type(statement).__name__}")(statement)

    # statements

    def _Expr(self, node: ast.Expr) -> None:
        assert isinstance(node.value, ast.Constant), "the only expression statement of a formula is its docstring"

    def _Assign(self, node: ast.Assign) -> None:
        (target,) = node.targets
        if isinstance(target, ast.Tuple):
            assert isinstance(node.value, ast.Tuple)
            values = [self._value(one) for one in node.value.elts]
            for name, value in zip(target.elts, values, strict=True):
                self._store(name, value)
        else:
            self._store(target, self._value(node.value))

    def _AugAssign(self, node: ast.AugAssign) -> None:
        assert isinstance(node.target, ast.Name)
        at = ast.Name(node.target.id, ast.Load())
        self._store(node.target, self._value(ast.BinOp(at, node.op, node.value)))

    def _Return(self, node: ast.Return) -> None:
        assert node.value is not None
        value = self._value(node.value)
        value = self._as_float(value) if self._result == FLOAT else value
        assert value.kind == self._result
        self._emit(f"ret {self._result} {value.name}")
        self._label(self._fresh("behind"))

    def _If(self, node: ast.If) -> None:
        yes, no, after = (self._fresh(name) for name in ("yes", "no", "after"))
        self._emit(f"br i1 {self._truth(node.test).name}, label %{yes}, label %{no}")
        self._label(yes)
        self._block(node.body)
        self._emit(f"br label %{after}")
        self._label(no)
        self._block(node.orelse)
        self._emit(f"br label %{after}")
        self._label(after)

    def _For(self, node: ast.For) -> None:
        assert isinstance(node.iter, ast.Call)
        assert isinstance(node.target, ast.Name)
        bounds = [self._value(one) for one in node.iter.args]
        first, end = bounds if len(bounds) == 2 else (Register("0", INTEGER), bounds[0])
        test, body, after = (self._fresh(name) for name in ("test", "body", "after"))
        counter = ast.Name(self._fresh("counter"), ast.Store())
        self._store(counter, first)
        self._emit(f"br label %{test}")
        self._label(test)
        now = self._value(ast.Name(counter.id, ast.Load()))
        more = self._instruction(TRUTH, f"icmp slt i64 {now.name}, {end.name}")
        self._emit(f"br i1 {more.name}, label %{body}, label %{after}")
        self._label(body)
        self._store(node.target, now)
        self._store(counter, self._instruction(INTEGER, f"add i64 {now.name}, 1"))
        self._block(node.body)
        self._emit(f"br label %{test}")
        self._label(after)

    # expressions

    def _value(self, node: ast.expr) -> Register:
        made: Register = getattr(self, f"_of_{type(node).__name__}")(node)
        return made

    def _of_Constant(self, node: ast.Constant) -> Register:
        return _constant(node.value)

    def _of_Name(self, node: ast.Name) -> Register:
        if (node.id, TABLE) in self._parameters:
            return Register(f"%{node.id}", TABLE)
        kind = self._variables.get(node.id)
        if kind is None:
            return _constant(self._globals[node.id])
        return self._instruction(kind, f"load {kind}, ptr %v.{node.id}")

    def _of_Attribute(self, node: ast.Attribute) -> Register:
        assert isinstance(node.value, ast.Name)
        return _constant(getattr(self._globals[node.value.id], node.attr))

    def _of_Subscript(self, node: ast.Subscript) -> Register:
        assert isinstance(node.value, ast.Name)
        at = self._value(node.slice)
        place = self._instruction("ptr", f"getelementptr double, ptr %{node.value.id}, i64 {at.name}")
        return self._instruction(FLOAT, f"load double, ptr {place.name}")

    def _of_UnaryOp(self, node: ast.UnaryOp) -> Register:
        if isinstance(node.op, ast.Not):
            return self._instruction(TRUTH, f"xor i1 {self._truth(node.operand).name}, true")
        assert isinstance(node.op, ast.USub)
        of = self._value(node.operand)
        return self._instruction(of.kind, f"fneg double {of.name}" if of.kind == FLOAT else f"sub i64 0, {of.name}")

    def _of_BinOp(self, node: ast.BinOp) -> Register:
        left, right = self._value(node.left), self._value(node.right)
        if isinstance(node.op, ast.FloorDiv | ast.Mod):
            assert left.kind == right.kind == INTEGER, "// and % take integers only"
            return self._integer_division(left, right, isinstance(node.op, ast.Mod))
        if isinstance(node.op, ast.Pow):  # C's own, which Python calls too
            left, right = self._as_float(left), self._as_float(right)
            return self._instruction(FLOAT, f"call double @pow(double {left.name}, double {right.name})")
        if isinstance(node.op, ast.Div):
            left, right = self._as_float(left), self._as_float(right)
            return self._instruction(FLOAT, f"fdiv double {left.name}, {right.name}")
        code = ARITHMETIC[type(node.op)]
        if left.kind == right.kind == INTEGER:
            return self._instruction(INTEGER, f"{code} i64 {left.name}, {right.name}")
        left, right = self._as_float(left), self._as_float(right)
        return self._instruction(FLOAT, f"f{code} double {left.name}, {right.name}")

    def _integer_division(self, left: Register, right: Register, rest: bool) -> Register:
        """Floor division, as in Python: the truncated quotient is one too large where signs differ. A divisor of 0
        (an exception in Python, a signal on x86, 0 on ARM) counts as 1: a formula must not end the process."""
        nothing = self._instruction(TRUTH, f"icmp eq i64 {right.name}, 0")
        right = self._instruction(INTEGER, f"select i1 {nothing.name}, i64 1, i64 {right.name}")
        whole = self._instruction(INTEGER, f"sdiv i64 {left.name}, {right.name}")
        left_over = self._instruction(INTEGER, f"srem i64 {left.name}, {right.name}")
        some = self._instruction(TRUTH, f"icmp ne i64 {left_over.name}, 0")
        mixed = self._instruction(INTEGER, f"xor i64 {left_over.name}, {right.name}")
        apart = self._instruction(TRUTH, f"icmp slt i64 {mixed.name}, 0")
        both = self._instruction(TRUTH, f"and i1 {some.name}, {apart.name}")
        if rest:
            more = self._instruction(INTEGER, f"select i1 {both.name}, i64 {right.name}, i64 0")
            return self._instruction(INTEGER, f"add i64 {left_over.name}, {more.name}")
        one = self._instruction(INTEGER, f"zext i1 {both.name} to i64")
        return self._instruction(INTEGER, f"sub i64 {whole.name}, {one.name}")

    def _of_Compare(self, node: ast.Compare) -> Register:
        sides = [node.left, *node.comparators]
        tests = [ast.Compare(a, [op], [b]) for a, op, b in zip(sides, node.ops, sides[1:], strict=False)]
        if len(tests) > 1:
            return self._of_BoolOp(ast.BoolOp(ast.And(), list[ast.expr](tests)))
        left, right = self._value(node.left), self._value(node.comparators[0])
        code = COMPARED[type(node.ops[0])]
        if left.kind == right.kind == INTEGER:
            signed = code if code in ("eq", "ne") else f"s{code}"
            return self._instruction(TRUTH, f"icmp {signed} i64 {left.name}, {right.name}")
        left, right = self._as_float(left), self._as_float(right)
        ordered = "une" if code == "ne" else f"o{code}"
        return self._instruction(TRUTH, f"fcmp {ordered} double {left.name}, {right.name}")

    def _of_BoolOp(self, node: ast.BoolOp) -> Register:
        """Short-circuit evaluation."""
        held = ast.Name(self._fresh("truth"), ast.Store())
        after = self._fresh("known")
        for number, one in enumerate(node.values):
            value = self._truth(one)
            self._store(held, value)
            if number < len(node.values) - 1:
                on = self._fresh("on")
                both = (on, after) if isinstance(node.op, ast.And) else (after, on)
                self._emit(f"br i1 {value.name}, label %{both[0]}, label %{both[1]}")
                self._label(on)
        self._emit(f"br label %{after}")
        self._label(after)
        return self._value(ast.Name(held.id, ast.Load()))

    def _of_IfExp(self, node: ast.IfExp) -> Register:
        """Both sides are of one kind, or the first is a float."""
        yes, no, after = (self._fresh(name) for name in ("yes", "no", "after"))
        held = ast.Name(self._fresh("chosen"), ast.Store())
        self._emit(f"br i1 {self._truth(node.test).name}, label %{yes}, label %{no}")
        for label, side in ((yes, node.body), (no, node.orelse)):
            self._label(label)
            self._store(held, self._value(side))
            self._emit(f"br label %{after}")
        self._label(after)
        return self._value(ast.Name(held.id, ast.Load()))

    def _of_Call(self, node: ast.Call) -> Register:
        assert isinstance(node.func, ast.Name)
        values = [self._value(one) for one in node.args]
        if node.func.id == "int":
            (one,) = values
            return one if one.kind == INTEGER else self._instruction(INTEGER, f"fptosi double {one.name} to i64")
        if node.func.id == "float":
            return self._as_float(values[0])
        if node.func.id in ("log2", "erf"):  # C's own, which Python calls too
            return self._instruction(FLOAT, f"call double @{node.func.id}(double {self._as_float(values[0]).name})")
        if node.func.id == "sqrt":
            return self._instruction(FLOAT, f"call double @llvm.sqrt.f64(double {self._as_float(values[0]).name})")
        if node.func.id not in ("min", "max"):
            return self._of_function(node.func.id, values)
        best = values[0]
        for other in values[1:]:
            best = self._extreme(node.func.id, best, other)
        return best

    def _of_function(self, name: str, values: list[Register]) -> Register:
        """Of the same module, with annotations."""
        if name not in self._called:
            self._called[name] = Translation(self._globals[name], f"{self._name}.{name}")
        other = self._called[name]
        values = [
            self._as_float(value) if kind == FLOAT else value
            for value, (_, kind) in zip(values, other._parameters, strict=True)
        ]
        given = ", ".join(f"{value.kind} {value.name}" for value in values)
        return self._instruction(other._result, f"call {other._result} @{other._name}({given})")

    def _extreme(self, name: str, left: Register, right: Register) -> Register:
        """min or max as in Python: the first operand where neither compares beyond the other."""
        kind = left.kind if left.kind == right.kind else FLOAT
        if kind == FLOAT:
            left, right = self._as_float(left), self._as_float(right)
        beyond = {"min": "lt", "max": "gt"}[name]
        test = f"icmp s{beyond} i64" if kind == INTEGER else f"fcmp o{beyond} double"
        other = self._instruction(TRUTH, f"{test} {right.name}, {left.name}")
        return self._instruction(kind, f"select i1 {other.name}, {kind} {right.name}, {kind} {left.name}")

    # helpers

    def _truth(self, node: ast.expr) -> Register:
        value = self._value(node)
        if value.kind == TRUTH:
            return value
        if value.kind == INTEGER:
            return self._instruction(TRUTH, f"icmp ne i64 {value.name}, 0")
        return self._instruction(TRUTH, f"fcmp une double {value.name}, 0x0000000000000000")

    def _as_float(self, value: Register) -> Register:
        if value.kind == INTEGER:
            return self._instruction(FLOAT, f"sitofp i64 {value.name} to double")
        return self._instruction(FLOAT, f"uitofp i1 {value.name} to double") if value.kind == TRUTH else value

    def _store(self, target: ast.expr, value: Register) -> None:
        assert isinstance(target, ast.Name)
        kind = self._variables.setdefault(target.id, value.kind)
        if kind == FLOAT:
            value = self._as_float(value)
        assert kind == value.kind, f"{target.id} has two types"
        self._emit(f"store {kind} {value.name}, ptr %v.{target.id}")

    def _instruction(self, kind: str, text: str) -> Register:
        name = f"%{self._fresh('t')}"
        self._emit(f"{name} = {text}")
        return Register(name, kind)

    def _fresh(self, name: str) -> str:
        self._count += 1
        return f"{name}.{self._count}"

    def _emit(self, line: str) -> None:
        self._emitted.append(f"  {line}")

    def _label(self, name: str) -> None:
        self._emitted.append(f"{name}:")


def _kind(annotation: ast.expr | None) -> str:
    assert isinstance(annotation, ast.Name), "a translated function annotates its parameters and its result"
    return {"int": INTEGER, "float": FLOAT, "Row": TABLE}[annotation.id]


def _constant(value: Any) -> Register:
    if isinstance(value, bool):
        return Register("true" if value else "false", TRUTH)
    if isinstance(value, int):
        return Register(str(value), INTEGER)
    assert isinstance(value, float), f"{value!r} is no number"
    assert not math.isnan(value)
    return Register(f"0x{struct.unpack('>Q', struct.pack('>d', value))[0]:016X}", FLOAT)
