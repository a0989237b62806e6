"""Compile a numeric Python function from its syntax tree to LLVM text: the same bits, with nothing reordered.

A small subset, on purpose: assignments, if, for … in range, return, arithmetic, comparisons, min, max, abs, gcd, sqrt,
log2, exp, expm1, erf, tuples of numbers as results, whole numbers of objects (a problem's extents), and calls of
annotated functions of the same module. Integers have 64 bits, floats are doubles.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from tilewise.system.llvm_instructions import Instructions, Register, constant
from tilewise.system.python_source import FLOAT, INTEGER, OBJECT, TABLE, TRUTH, chain, definition, fields_of, kind_of

ARITHMETIC = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}
COMPARED = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}


class Attributes:
    """The numbers of objects that functions read, by the path of attributes: each has a place in a vector."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}
        self.numbers: Callable[[Any], Sequence[float]] = tuple  # of an object

    def close(self) -> None:
        """What was translated so far is compiled."""
        if len(self.places) > 1:
            self.numbers = attrgetter(*self.places)

    def place(self, path: tuple[str, ...]) -> int:
        return self.places.setdefault(".".join(path), len(self.places))


class Module:
    """Functions translated together: each once, and once more for each other path of the objects it is called with."""

    def __init__(self, attributes: Attributes) -> None:
        self.attributes = attributes
        self._made: dict[tuple[Any, ...], Translation] = {}

    def function(self, function: Callable[..., Any], paths: tuple[tuple[str, ...], ...] = ()) -> Translation:
        """`paths`: of its objects, in order."""
        made = self._made.get((function, paths))
        if made is None:
            name = f"{function.__module__}.{function.__qualname__}.{len(self._made)}"
            made = self._made[function, paths] = Translation(self, function, name, paths)
        return made

    def text(self) -> str:
        return "\n".join(made.text for made in self._made.values())


class Translation(Instructions):
    """The text of one function; arguments and results are integers and floats. A `Row` or a tuple of numbers is in
    memory, and so is a function's that is a result; any other object's numbers are in the vector of `Attributes`."""

    def __init__(
        self, module: Module, function: Callable[..., Any], name: str, paths: tuple[tuple[str, ...], ...]
    ) -> None:
        super().__init__()
        tree = definition(function)
        self._module, self.name, self._globals = module, f'@"{name}"', function.__globals__
        self.result = kind_of(tree.returns, self._globals)
        self.parameters = [(one.arg, kind_of(one.annotation, self._globals)) for one in tree.args.args]
        objects = [name for name, kind in self.parameters if kind == OBJECT]
        self._paths = dict(zip(objects, paths or [()] * len(objects), strict=True))
        self._fields = {
            one.arg: fields for one in tree.args.args if (fields := fields_of(one.annotation, self._globals))
        }
        self._variables: dict[str, str] = {}  # variable → type
        self.length = 0  # of a result in memory
        self.text = self._text(tree.body)

    def _text(self, body: list[ast.stmt]) -> str:
        for name, kind in self.parameters:
            if kind not in (TABLE, OBJECT):
                self._store(ast.Name(name, ast.Store()), Register(f"%{name}", kind))
        self._block(body)
        emitted = "\n".join(self._emitted)
        held = "\n".join(f"  %v.{name} = alloca {kind}" for name, kind in self._variables.items())
        given = ", ".join(f"{'ptr' if kind == OBJECT else kind} %{name}" for name, kind in self.parameters)
        if self.result == TABLE:
            head, last = f"define private void {self.name}({given}, ptr %result) {{", "ret void"
        else:
            nothing = {INTEGER: "0", TRUTH: "false", FLOAT: "0x7FF0000000000000"}[self.result]
            head, last = f"define private {self.result} {self.name}({given}) {{", f"ret {self.result} {nothing}"
        return f"{head}\n{held}\n{emitted}\n  {last}\n}}\n"

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
        if self.result == TABLE:
            length = self._into_memory(node.value, 0)
            assert self.length in (0, length), f"{self.name} has two lengths"
            self.length = length
            self._emit("ret void")
        else:
            value = self._value(node.value)
            value = self._as_float(value) if self.result == FLOAT else value
            value = Register(self._truth_of(value).name, TRUTH) if self.result == TRUTH else value
            assert value.kind == self.result
            self._emit(f"ret {self.result} {value.name}")
        self._label(self._fresh("behind"))

    def _into_memory(self, node: ast.expr, at: int) -> int:
        """Store a tuple of numbers as the result, from a place on; the place behind it."""
        if isinstance(node, ast.Starred):
            return self._into_memory(node.value, at)
        if isinstance(node, ast.Tuple):
            for one in node.elts:
                at = self._into_memory(one, at)
            return at
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called = self._globals.get(node.func.id)
            if hasattr(called, "_fields"):
                assert not node.keywords, "numbers of a named tuple are given in order"
                return self._into_memory(ast.Tuple(node.args), at)
            if inspect.isfunction(called) and definition(called).returns is not None:
                other, given = self._called(node)
                if other.result == TABLE:
                    self._emit(f"call void {other.name}({given}, ptr {self._place('result', at)})")
                    return at + other.length
        value = self._as_float(self._value(node))
        self._emit(f"store double {value.name}, ptr {self._place('result', at)}")
        return at + 1

    def _place(self, vector: str, at: int | str) -> str:
        return self._instruction("ptr", f"getelementptr double, ptr %{vector}, i64 {at}").name

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
        return constant(node.value)

    def _of_Name(self, node: ast.Name) -> Register:
        if (node.id, TABLE) in self.parameters:
            return Register(f"%{node.id}", TABLE)
        kind = self._variables.get(node.id)
        if kind is None:
            return constant(self._globals[node.id])
        return self._instruction(kind, f"load {kind}, ptr %v.{node.id}")

    def _of_Attribute(self, node: ast.Attribute) -> Register:
        """A number of a named tuple, of an object, or of a constant."""
        name, path = chain(node)
        if name in self._fields:
            at, kind = self._fields[name][path[0]]
            return self._loaded(name, at, kind)
        if name in self._paths:
            return self._loaded(name, self._module.attributes.place((*self._paths[name], *path)), INTEGER)
        return constant(attrgetter(".".join(path))(self._globals[name]))

    def _object(self, node: ast.expr) -> Register:
        """An object, or one that is an attribute of it."""
        name, path = chain(node)
        return Register(f"%{name}", OBJECT, (*self._paths[name], *path))

    def _of_Subscript(self, node: ast.Subscript) -> Register:
        assert isinstance(node.value, ast.Name)
        assert (node.value.id, TABLE) in self.parameters, f"{node.value.id} has no numbers in memory"
        return self._loaded(node.value.id, self._value(node.slice).name, FLOAT)

    def _loaded(self, vector: str, at: int | str, kind: str) -> Register:
        value = self._instruction(FLOAT, f"load double, ptr {self._place(vector, at)}")
        return self._instruction(INTEGER, f"fptosi double {value.name} to i64") if kind == INTEGER else value

    def _of_UnaryOp(self, node: ast.UnaryOp) -> Register:
        if isinstance(node.op, ast.Not):
            return self._instruction(TRUTH, f"xor i1 {self._truth(node.operand).name}, true")
        assert isinstance(node.op, ast.USub)
        of = self._number(self._value(node.operand))
        return self._instruction(of.kind, f"fneg double {of.name}" if of.kind == FLOAT else f"sub i64 0, {of.name}")

    def _of_BinOp(self, node: ast.BinOp) -> Register:
        left, right = self._number(self._value(node.left)), self._number(self._value(node.right))
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

    def _of_Compare(self, node: ast.Compare) -> Register:
        sides = [node.left, *node.comparators]
        tests = [ast.Compare(a, [op], [b]) for a, op, b in zip(sides, node.ops, sides[1:], strict=False)]
        if len(tests) > 1:
            return self._of_BoolOp(ast.BoolOp(ast.And(), list[ast.expr](tests)))
        left, right = self._number(self._value(node.left)), self._number(self._value(node.comparators[0]))
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
        if node.func.id not in BUILTIN:
            other, given = self._called(node)
            assert other.result != TABLE, "a tuple of numbers is a result alone"
            return self._instruction(other.result, f"call {other.result} {other.name}({given})")
        values = [self._number(self._value(one)) for one in node.args]
        if node.func.id == "int":
            (one,) = values
            return one if one.kind == INTEGER else self._instruction(INTEGER, f"fptosi double {one.name} to i64")
        if node.func.id == "float":
            return self._as_float(values[0])
        if node.func.id == "abs":
            minus = f"fneg double {values[0].name}" if values[0].kind == FLOAT else f"sub i64 0, {values[0].name}"
            return self._extreme("max", values[0], self._instruction(values[0].kind, minus))
        if node.func.id == "gcd":
            best = values[0]
            for one in values[1:]:
                best = self._instruction(INTEGER, f"call i64 @gcd(i64 {best.name}, i64 {one.name})")
            return best
        if node.func.id in ("log2", "exp", "expm1", "erf"):  # C's own, which Python calls too
            return self._instruction(FLOAT, f"call double @{node.func.id}(double {self._as_float(values[0]).name})")
        if node.func.id == "sqrt":
            return self._instruction(FLOAT, f"call double @llvm.sqrt.f64(double {self._as_float(values[0]).name})")
        best = values[0]
        for one in values[1:]:
            best = self._extreme(node.func.id, best, one)
        return best

    def _called(self, node: ast.Call) -> tuple[Translation, str]:
        """A function of this module or imported to it, with annotations, and the text of its arguments."""
        assert isinstance(node.func, ast.Name)
        function = inspect.unwrap(self._globals[node.func.id])
        annotated = zip(node.args, definition(function).args.args, strict=True)
        values = [
            self._object(one) if kind_of(to.annotation, function.__globals__) == OBJECT else self._value(one)
            for one, to in annotated
        ]
        other = self._module.function(function, tuple(value.path for value in values if value.kind == OBJECT))
        given = list[str]()
        for value, (_, kind) in zip(values, other.parameters, strict=True):
            if kind == FLOAT:
                value = self._as_float(value)
            elif kind == TRUTH:
                value = self._truth_of(value)
            elif kind == INTEGER:
                value = self._number(value)
            assert value.kind == kind
            given.append(f"{'ptr' if kind == OBJECT else kind} {value.name}")
        return other, ", ".join(given)

    def _truth(self, node: ast.expr) -> Register:
        return self._truth_of(self._value(node))

    def _store(self, target: ast.expr, value: Register) -> None:
        assert isinstance(target, ast.Name)
        kind = self._variables.setdefault(target.id, value.kind)
        if kind == FLOAT:
            value = self._as_float(value)
        assert kind == value.kind, f"{target.id} has two types"
        self._emit(f"store {kind} {value.name}, ptr %v.{target.id}")


BUILTIN = {"int", "float", "abs", "gcd", "log2", "exp", "expm1", "erf", "sqrt", "min", "max"}
