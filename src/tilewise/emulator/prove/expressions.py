"""Expressions of one generic thread, node by node."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Scalar, Type
from tilewise.emulator.prove.arithmetic import Arithmetic, fits
from tilewise.emulator.prove.symbols import AXES, BLOCK, THREAD
from tilewise.emulator.prove.terms import FALSE, ONE, TRUE, ZERO, Poly, both, either, negate
from tilewise.emulator.prove.values import (
    Fields,
    Int,
    Nothing,
    NotModelled,
    Pointer,
    Real,
    Ref,
    Region,
    Truth,
    Value,
)
from tilewise.emulator.sema.constants import evaluate
from tilewise.emulator.sema.symbol_table import Unknown
from tilewise.errors import KernelError

ATOMIC = ("atomicAdd", "atomicSub", "atomicMin", "atomicMax", "atomicExch", "atomicCAS", "atomicAnd", "atomicOr",
          "atomicXor", "atomicInc", "atomicDec")  # fmt: skip
REALS = frozenset({
    "sqrt", "rsqrt", "exp", "exp2", "exp10", "log", "log2", "log10", "pow", "sin", "cos", "tan", "tanh", "sinh",
    "cosh", "atan", "atan2", "asin", "acos", "fabs", "floor", "ceil", "round", "rint", "trunc", "fmod", "fmin",
    "fmax", "fma", "erf", "hypot", "cbrt", "__fdividef", "__expf", "__logf", "__powf", "__sinf", "__cosf",
    "__fmul_rn", "__fadd_rn", "__fmaf_rn", "__frcp_rn", "__fsqrt_rn", "__saturatef", "__int2float_rn", "__half2float",
    "__float2half", "nearbyint", "copysign",
})  # fmt: skip
PURE = REALS | {"min", "max", "umin", "umax", "abs", "__ldg"}
QUIET = ("__syncwarp", "__threadfence", "__threadfence_block", "__threadfence_system", "printf", "__nanosleep", "clock")


class Expressions(Arithmetic):
    """`value` by the kind of node."""

    def value(self, node: tree.Node) -> Value:
        known = RULES.get(type(node))
        if known is None:
            raise NotModelled(f"{type(node).__name__.lower()} is not modelled", node.line)
        return known(self, node)

    @abstractmethod
    def call(self, function: tree.Function, node: tree.Call) -> Value:
        """A function of the file, executed in place."""

    # -- names

    def name(self, node: tree.Name) -> Value:
        slot = self.slot(node.name)
        if slot is not None:
            return self.state.variables[slot]
        if node.name == "warpSize":
            return Int(Poly.of(32), types.INT)
        try:
            known, type_ = evaluate(self.table, node, self.env)
        except (Unknown, KernelError):
            return self._of_the_file(node)
        return Int(Poly.of(int(known)), type_) if type_.integral else Real()

    def _of_the_file(self, node: tree.Name) -> Value:
        item = next((v for name in self.table.names.candidates(node.name, self.env.scope)
                     if (v := self.table.entities.variables.get(name)) is not None), None)  # fmt: skip
        if item is None or "__shared__" in item.specifiers:
            raise NotModelled(f"{node.name} is not known here", node.line)
        type_ = self.resolve(item.type)
        unit, length = self.laid(type_, node.line)
        key = f"::{node.name}"
        slot = self.scopes[0].get(key)
        if slot is None:
            self.scopes[0][key] = slot = self.slots = self.slots + 1
            self.files[slot] = Ref(Region(node.name, "global", unit, Poly.of(length)), ZERO, type_)
        return self.files[slot]

    def laid(self, type_: Type, line: int) -> tuple[int, int]:
        """The bytes of a scalar of it, and how many it has."""
        inner = type_
        while isinstance(inner, types.Array):
            inner = inner.of
        self.table.size_of(type_)
        if isinstance(inner, types.Record):
            self.plain(inner, line)
            parts = {self.laid(f.type, line)[0] for f in inner.fields}
            if len(parts) != 1 or inner.bases:
                raise NotModelled(f"{inner} mixes types", line)
            return parts.pop(), type_.size // min(parts, default=self.laid(inner.fields[0].type, line)[0])
        if not isinstance(inner, Scalar) or not inner.size:
            raise NotModelled(f"an array of {inner}", line)
        return inner.size, type_.size // inner.size

    def plain(self, type_: Type, line: int) -> None:
        """What is made and destroyed by functions of its own is not followed."""
        while isinstance(type_, types.Array):
            type_ = type_.of
        if isinstance(type_, types.Record) and type_.node is not None and not type_.node.library and (
            type_.methods or type_.bases or any(f.init is not None for f in type_.node.fields)
        ):  # fmt: skip
            raise NotModelled(f"{type_} has functions of its own", line)

    def member(self, node: tree.Member) -> Value:
        builtin = node.base.name if isinstance(node.base, tree.Name) and self.slot(node.base.name) is None else ""
        if builtin and self.geometry is not None and node.name in AXES:
            axis = AXES.index(node.name)
            found = {
                "threadIdx": Poly.of(THREAD[axis]), "blockIdx": Poly.of(BLOCK[axis]),
                "blockDim": self.geometry.block[axis], "gridDim": self.geometry.grid[axis],
            }.get(builtin)  # fmt: skip
            if found is not None:
                return Int(found, types.UINT)
        base = self.rvalue(node.base) if node.arrow else self.value(node.base)
        if isinstance(base, Fields):
            part = base.get(node.name)
            if part is not None:
                return part
        if isinstance(base, Pointer):
            base = base.place
        if isinstance(base, Ref) and isinstance(base.type, types.Record):
            found_field = self.table.layout(base.type).field(node.name)
            if found_field is not None:
                member, offset = found_field
                self.size(member.type, base.region.unit, node.line)
                if offset % base.region.unit == 0:
                    return Ref(base.region, base.offset + offset // base.region.unit, member.type)
        raise NotModelled(f"the member {node.name} is not modelled", node.line)

    # -- assignments

    def assign(self, node: tree.Assign) -> Value:
        value = self.rvalue(node.value)
        if node.op:
            self._once(node.target)
            value = self.binary(node.op, self.rvalue(node.target), value, node)
        return self.store(node.target, value, node)

    def _once(self, target: tree.Node) -> None:
        """What is read and written must be the same place when it is evaluated twice."""
        if changes(target):
            raise NotModelled("an index that changes a variable", target.line)

    def store(self, target: tree.Node, value: Value, node: tree.Node) -> Value:
        if isinstance(target, tree.Name):
            slot = self.slot(target.name)
            if slot is not None and not isinstance(self.state.variables[slot], Ref):
                if isinstance(self.state.variables[slot], Fields):
                    raise NotModelled(f"{target.name} is assigned as a whole", node.line)
                value = self.converted(value, self.typed[slot], node)
                self.state.variables[slot] = value
                return value
        place = self.value(target)
        if not isinstance(place, Ref) or isinstance(place.type, types.Array):
            raise NotModelled("an assignment to what is no variable", node.line)
        if isinstance(place.type, types.Pointer):
            raise NotModelled("a pointer that lies in memory", node.line)
        self.access(place, "store", node)
        return self.anything(place.type, "a value that was stored decides", node.line)

    def step(self, node: tree.Step) -> Value:
        self._once(node.operand)
        before = self.rvalue(node.operand)
        after = self.store(node.operand, self.binary(node.op, before, Int(ONE, types.INT), node), node)
        return after if node.prefix else before

    # -- operators

    def unary(self, node: tree.Unary) -> Value:
        if node.op == "&":
            place = self.value(node.operand)
            if isinstance(place, Ref):
                return Pointer(place)
            raise NotModelled("the address of a variable", node.line)
        if node.op == "*":
            value = self.rvalue(node.operand)
            if isinstance(value, Pointer):
                return value.place
            raise NotModelled("a value that is no known pointer", node.line)
        value = self.rvalue(node.operand)
        if node.op == "!":
            return Truth(negate(self.truth(value, node)))
        if isinstance(value, Nothing):
            self._overloaded(node.op, node)
        if isinstance(value, Real | Nothing):
            return Real()
        number = self.whole(value, node)
        type_ = types.promote(number.type)
        if node.op == "-":
            return self.kept(-number.poly, type_, node)
        if node.op == "~":
            return self.kept(-number.poly - 1, type_, node)
        return Int(number.poly, type_)

    def operation(self, node: tree.Binary) -> Value:
        if node.op == ",":
            self.rvalue(node.left)
            return self.rvalue(node.right)
        if node.op in ("&&", "||"):
            left = self.condition(node.left)
            taken = left if node.op == "&&" else negate(left)
            right = self.branch(
                taken,
                lambda: Truth(self.condition(node.right)),
                lambda: Truth(FALSE if node.op == "&&" else TRUE),
                node,
            )
            assert isinstance(right, Truth)
            return Truth(both(left, right.cond) if node.op == "&&" else either(left, right.cond))
        return self.binary(node.op, self._factor(node.left, node.op), self._factor(node.right, node.op), node)

    def _factor(self, node: tree.Node, op: str) -> Value:
        """A constant that an index is multiplied by keeps its name: its multiples are rows."""
        value = self.rvalue(node)
        name = node.origin if isinstance(node, tree.Number) else node.name if isinstance(node, tree.Name) else ""
        known = self.symbols.fixed.get(name) if op == "*" and self.slot(name) is None else None
        named = known is not None and isinstance(value, Int) and value.poly.constant == known
        return Int(Poly.of(name), value.type) if named and isinstance(value, Int) else value

    def ternary(self, node: tree.Ternary) -> Value:
        condition = self.condition(node.condition)
        values: list[Value] = []

        def side(part: tree.Node) -> Value:
            values.append(self.rvalue(part))
            return values[-1]

        found = self.branch(condition, lambda: side(node.yes), lambda: side(node.no), node)
        numbers = [v.type for v in values if isinstance(v, Int)]
        if isinstance(found, Int) and len(numbers) == len(values) == 2:  # -1 and 0u are unsigned together
            type_ = types.common(types.promote(numbers[0]), types.promote(numbers[1]))
            if any(not fits(n, type_) for n in numbers):
                return self.kept(found.poly, type_, node)
        return found

    def cast(self, node: tree.Cast) -> Value:
        return self.converted(self.rvalue(node.operand), self.resolve(node.type), node)

    def construct(self, node: tree.Construct) -> Value:
        type_ = self.resolve(node.type)
        self.plain(type_, node.line)
        given = [self.rvalue(a) for a in node.arguments if not isinstance(a, tree.Braces)]
        if isinstance(type_, Scalar) and len(given) == 1:
            return self.converted(given[0], type_, node)
        if len(given) == len(node.arguments):
            return Nothing()
        raise NotModelled(f"a {type_} made of braces", node.line)

    def index(self, node: tree.Index) -> Value:
        base = self.value(node.base)
        return self.element(base, self.number(node.index), node)

    # -- calls

    def calling(self, node: tree.Call) -> Value:
        if not isinstance(node.function, tree.Name) or node.function.owner is not None:
            raise NotModelled("a call of a member", node.line)
        name = node.function.name.rpartition("::")[2]
        if self.slot(name) is not None:
            raise NotModelled(f"{name} is a variable that is called", node.line)
        _, functions = self.table.functions_named(node.function.name, self.env.scope)
        own = [f for f in functions if not f.library]
        if own:
            if len({id(self.table.definition(f)) for f in own}) > 1 or len(own[0].parameters) != len(node.arguments):
                raise NotModelled(f"{name} is overloaded", node.line)
            return self.call(self.table.definition(own[0]), node)
        if name == "__syncthreads":
            return self.barrier(node)
        if name == "__assert_failed":
            self.assumes = True
            self.state.path = FALSE
            return Nothing()
        return self._builtin(name, node)

    def barrier(self, node: tree.Call) -> Value:
        """A barrier, which the generic thread of a kernel overrides."""
        raise NotModelled("a barrier in host code", node.line)

    def _builtin(self, name: str, node: tree.Call) -> Value:
        if name == "__builtin_assume":
            self.assumes = True
            self.state.path = both(self.state.path, self.condition(node.arguments[0]))
            return Nothing()
        given = [Nothing() if isinstance(a, tree.Text) else self.rvalue(a) for a in node.arguments]
        if name in QUIET:
            return Nothing()
        if name.removesuffix("_system") in ATOMIC and isinstance(given[0], Pointer):
            self.access(given[0].place, "atomic", node)
            return self.anything(given[0].place.type, "an atomic's result decides", node.line)
        if name in ("__ldg", "__ldcg", "__ldca", "__ldcs") and isinstance(given[0], Pointer):
            return self.loaded(given[0].place, node)
        if name in ("min", "max", "umin", "umax") and len(given) == 2 and all(isinstance(g, Int) for g in given):
            a, b = (self.whole(g, node) for g in given)
            type_ = types.UINT if name[0] == "u" else types.common(types.promote(a.type), types.promote(b.type))
            a, b = self._fitting(a, type_, node), self._fitting(b, type_, node)
            less = self.binary("<" if name.endswith("min") else ">", a, b, node)
            return self.joined(self.truth(less, node), a, b, node)
        if name.startswith(("__builtin_inf", "__builtin_nan", "__builtin_huge")):
            return Real()
        if name.startswith(("__shfl", "__ballot", "__any", "__all", "__reduce_", "__activemask", "__popc", "__clz")):
            integral = all(isinstance(g, Int | Truth) for g in given)
            return (
                Int(self.symbols.unknown(types.INT, f"{name} decides, line {node.line}"), types.INT)
                if integral
                else Real()
            )
        if name in ("min", "max") or name in REALS or name.removesuffix("f") in REALS:
            return Real()
        raise NotModelled(f"{name} is not modelled", node.line)


def _number(of: Expressions, node: tree.Number) -> Value:
    if isinstance(node.type, Scalar) and node.type.integral:
        return Int(Poly.of(int(node.value)), node.type)
    whole = isinstance(node.value, float) and node.value.is_integer() and abs(node.value) < 1 << 31
    return Real(Poly.of(int(node.value))) if whole else Real()


def _size(of: Expressions, node: tree.SizeOf) -> Value:
    if node.type is None:
        raise NotModelled("sizeof of an expression", node.line)
    type_ = of.resolve(node.type)
    return Int(Poly.of(of.table.size_of(type_)), types.ULONG)


def changes(node: tree.Node | None) -> bool:
    """Whether evaluating it may change a variable."""
    calls = [p for p in tree.walk(node) if isinstance(p, tree.Call)]
    known = all(isinstance(c.function, tree.Name) and c.function.name.removesuffix("f") in PURE for c in calls)
    return not known or any(isinstance(part, tree.Assign | tree.Step) for part in tree.walk(node))


Rule = Callable[..., Value]
RULES: dict[type, Rule] = {
    tree.Number: _number, tree.Name: Expressions.name, tree.Member: Expressions.member, tree.Assign: Expressions.assign,
    tree.Step: Expressions.step, tree.Unary: Expressions.unary, tree.Binary: Expressions.operation,
    tree.Ternary: Expressions.ternary, tree.Cast: Expressions.cast, tree.Construct: Expressions.construct,
    tree.Index: Expressions.index, tree.Call: Expressions.calling, tree.SizeOf: _size,
}  # fmt: skip
