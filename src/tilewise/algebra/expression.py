"""Expression trees: `add` and `mul` of a semiring, traced once, so that every backend can render them.

A function of two values is called with two symbols, whose operators record a tree. Branches cannot be recorded, so
`bool(symbol)` and functions of `math` raise an error that says what to write instead. Trees are frozen values (they
compare and hash); symbols are temporary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from tilewise.algebra.dtypes import DType
from tilewise.errors import AlgebraError, DtypeError

Number = bool | int | float | complex

COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
LOGIC = ("or", "and", "not")
TRUTHS = (*COMPARISONS, *LOGIC)
ORDERED = ("lt", "le", "gt", "ge", "min", "max")
BITWISE = {"bit_or": "|", "bit_and": "&", "bit_xor": "^", "invert": "~"}
INTEGER_ONLY = {"mod": "%", "floordiv": "//", "shl": "<<", "shr": ">>"}
FLOATING = ("div", "exp", "log", "log1p", "sqrt", "logaddexp")

# NumPy's ufuncs that mean what an operation here means; min and max skip NaN, so only fmin and fmax qualify.
UFUNCS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "negative": "neg", "absolute": "abs",
    "fmin": "min", "fmax": "max", "logaddexp": "logaddexp", "exp": "exp", "log": "log", "log1p": "log1p",
    "sqrt": "sqrt", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "equal": "eq",
    "bitwise_or": "bit_or", "bitwise_and": "bit_and", "bitwise_xor": "bit_xor", "invert": "invert",
    "remainder": "mod", "floor_divide": "floordiv", "left_shift": "shl", "right_shift": "shr",
    "not_equal": "ne", "logical_or": "or", "logical_and": "and", "logical_not": "not",
}  # fmt: skip
UNARY = ("neg", "abs", "invert", "exp", "log", "log1p", "sqrt", "not")
ARITY = {op: 1 if op in UNARY else 2 for op in UFUNCS.values()} | {"where": 3}


class Expression:
    """A node of a tree."""

    __slots__ = ()


@dataclass(frozen=True, repr=False)
class Variable(Expression):
    """x, the value on the left, or y, the value on the right."""

    name: str

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, repr=False)
class Constant(Expression):
    """A number in the function."""

    value: Number

    def __repr__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, repr=False)
class Extreme(Expression):
    """`tw.largest` or `tw.smallest`: ∞, MAX or True, depending on the dtype."""

    which: str

    def __repr__(self) -> str:
        return self.which


@dataclass(frozen=True, repr=False)
class Apply(Expression):
    """An operation on smaller trees."""

    op: str
    args: tuple[Expression, ...]

    def __repr__(self) -> str:
        return f"{self.op}({', '.join(map(repr, self.args))})"


def _operator(op: str) -> tuple[Callable[[Symbol, Any], Symbol], Callable[[Symbol, Any], Symbol]]:
    """The methods for `self op other` and `other op self`."""
    return lambda self, other: apply(op, self, other), lambda self, other: apply(op, other, self)


class Symbol:
    """A value while a function is being traced. Its operators build a larger tree."""

    __slots__ = ("tree",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, tree: Expression) -> None:
        self.tree = tree

    __add__, __radd__ = _operator("add")
    __sub__, __rsub__ = _operator("sub")
    __mul__, __rmul__ = _operator("mul")
    __truediv__, __rtruediv__ = _operator("div")
    __floordiv__, __rfloordiv__ = _operator("floordiv")
    __mod__, __rmod__ = _operator("mod")
    __lshift__, __rlshift__ = _operator("shl")
    __rshift__, __rrshift__ = _operator("shr")
    __xor__, __rxor__ = _operator("bit_xor")
    __lt__, __gt__ = _operator("lt")[0], _operator("gt")[0]
    __le__, __ge__ = _operator("le")[0], _operator("ge")[0]
    __eq__, __ne__ = _operator("eq")[0], _operator("ne")[0]  # type: ignore[assignment]

    def __neg__(self) -> Symbol:
        if isinstance(self.tree, Extreme):
            raise AlgebraError(f"-tw.{self.tree.which} is not exact for integers: write tw.{_OTHER[self.tree.which]}")
        return apply("neg", self)

    def __abs__(self) -> Symbol:
        return apply("abs", self)

    def __invert__(self) -> Symbol:
        return apply("not" if is_truth(self.tree) else "invert", self)

    def __or__(self, other: Any) -> Symbol:
        return _bits("or", self, other)

    def __ror__(self, other: Any) -> Symbol:
        return _bits("or", other, self)

    def __and__(self, other: Any) -> Symbol:
        return _bits("and", self, other)

    def __rand__(self, other: Any) -> Symbol:
        return _bits("and", other, self)

    def __bool__(self) -> NoReturn:
        raise AlgebraError(
            "a semiring's function cannot branch on a value (if, and, or, min(), max()): "
            "write tw.where(condition, a, b), tw.minimum(a, b), tw.maximum(a, b), tw.logical_and or tw.logical_or"
        )

    def _not_a_number(self) -> NoReturn:
        raise AlgebraError(
            "a semiring's function cannot convert its values to Python numbers (math.exp, int(), float()): "
            "write tw.exp, tw.log, tw.log1p, tw.sqrt, tw.absolute, or + − * / and comparisons"
        )

    __float__ = __int__ = __index__ = __complex__ = _not_a_number

    def __pow__(self, _other: Any) -> NoReturn:
        raise AlgebraError("** cannot be traced: write x * x, or tw.exp(tw.log(x) * p)")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **_: Any) -> Symbol:
        op = UFUNCS.get(ufunc.__name__)
        if method != "__call__" or op is None:
            instead = {"minimum": "tw.minimum (it skips NaN)", "maximum": "tw.maximum (it skips NaN)"}
            raise AlgebraError(
                f"np.{ufunc.__name__} cannot be traced: write "
                + instead.get(ufunc.__name__, "it with + − * /, comparisons, tw.where, tw.exp, tw.log, tw.sqrt, …")
            )
        return apply(op, *inputs)


largest, smallest = Symbol(Extreme("largest")), Symbol(Extreme("smallest"))
_OTHER = {"largest": "smallest", "smallest": "largest"}


def lift(value: Any) -> Expression:
    """The tree of a symbol, or a number as a tree."""
    if isinstance(value, Symbol):
        return value.tree
    if isinstance(value, (bool, int, float, complex)):
        return Constant(value)
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return Constant(value.item())
    raise AlgebraError(f"a semiring's function may use its two values and numbers, not {type(value).__name__}")


def apply(op: str, *args: Any) -> Symbol:
    if len(args) != ARITY[op]:
        raise AlgebraError(f"{op} takes {ARITY[op]} values, got {len(args)}")
    return Symbol(Apply(op, tuple(lift(a) for a in args)))


def _bits(name: str, *args: Any) -> Symbol:
    """| and & of truths are or and and; of anything else they work on bits, as in NumPy."""
    truths = all(is_truth(tree) or (isinstance(tree, Constant) and tree.value in (0, 1)) for tree in map(lift, args))
    return apply(name if truths else f"bit_{name}", *args)


def trace(function: Callable[[Any, Any], Any], what: str) -> Expression:
    """Call `function` once with two symbols; the tree it records."""
    try:
        return lift(function(Symbol(Variable("x")), Symbol(Variable("y"))))
    except AlgebraError as error:
        raise AlgebraError(f"{what}: {error}") from None
    except Exception as error:
        raise AlgebraError(f"{what} must be a function of two values; it raised: {error}") from error


def constant_over(node: Expression, dtype: DType) -> Number:
    """The number that a Constant or an Extreme stands for over `dtype`; refused where the dtype cannot hold it."""
    if isinstance(node, Extreme):
        if dtype.kind == "c":
            raise DtypeError(f"{dtype} has no order, so it has no {node.which} value")
        return dtype.largest() if node.which == "largest" else dtype.smallest()
    assert isinstance(node, Constant)
    value = node.value
    if dtype.kind == "c":
        return complex(value)
    if isinstance(value, complex):
        raise DtypeError(f"the constant {value} is complex, and {dtype} is not")
    if dtype.kind == "f":
        return float(value)
    if dtype.kind == "b":
        if value not in (0, 1):
            raise DtypeError(f"the constant {value} is neither 0 nor 1, and the dtype is bool")
        return bool(value)
    if value != value or value in (float("inf"), float("-inf")):
        raise DtypeError(f"{dtype} has no {value}: write tw.largest or tw.smallest, which every dtype has")
    if int(value) != value or not dtype.smallest() <= value <= dtype.largest():
        raise DtypeError(f"the constant {value} does not fit {dtype}")
    return int(value)


def is_truth(node: Expression) -> bool:
    """Whether a node yields true or false rather than a value."""
    return isinstance(node, Apply) and node.op in TRUTHS


HEAVY = ("exp", "log", "log1p", "logaddexp")  # a call of the C library, or a long chain of instructions
BOTH = ((Variable("x"), Variable("y")), (Variable("y"), Variable("x")))


def is_plain(tree: Expression, op: str) -> bool:
    """Whether a tree is one operation of x and y, in either order."""
    return isinstance(tree, Apply) and tree.op == op and tree.args in BOTH


def uses(tree: Expression, ops: tuple[str, ...]) -> bool:
    """Whether any of the operations occurs in the tree."""
    return isinstance(tree, Apply) and (tree.op in ops or any(uses(arg, ops) for arg in tree.args))


def check_types(node: Expression, dtype: DType) -> None:
    """Raise DtypeError where an operation of the tree has no meaning over `dtype`."""
    if isinstance(node, (Constant, Extreme)):
        constant_over(node, dtype)
    if not isinstance(node, Apply):
        return
    if node.op in ORDERED and dtype.kind == "c":
        raise DtypeError(f"{dtype} numbers have no order, so {node.op} has no meaning for them")
    if node.op in FLOATING and dtype.kind != "f":
        raise DtypeError(f"{node.op} needs floating-point numbers, and {dtype} is not one of them")
    if node.op in BITWISE and dtype.kind not in "biu":
        instead = {"bit_or": "tw.logical_or", "bit_and": "tw.logical_and", "invert": "tw.logical_not"}.get(node.op)
        hint = f": for truths write {instead}" if instead else ""
        raise DtypeError(f"{BITWISE[node.op]} works on the bits of integers, and {dtype} has none{hint}")
    if node.op in INTEGER_ONLY and not dtype.is_integer:
        raise DtypeError(f"{INTEGER_ONLY[node.op]} needs integers, and {dtype} is not one of them")
    if node.op in ("sub", "neg") and dtype.kind == "b":
        raise DtypeError("booleans cannot be subtracted (NumPy refuses it too): convert them to an integer dtype")
    for arg in node.args:
        check_types(arg, dtype)


def minimum(a: Any, b: Any) -> Symbol:
    """The smaller of two values; NaN is ignored, as in C's fmin.

    >>> tw.Semiring("nearest", add=tw.minimum, mul=lambda x, y: x + y, zero=tw.largest).add
    min(x, y)
    """
    return apply("min", a, b)


def maximum(a: Any, b: Any) -> Symbol:
    """The larger of two values; NaN is ignored, as in C's fmax.

    >>> tw.Semiring("best", add=tw.maximum, mul=lambda x, y: x * y, zero=0).add
    max(x, y)
    """
    return apply("max", a, b)


def where(condition: Any, a: Any, b: Any) -> Symbol:
    """`a` where the condition holds, `b` elsewhere.

    >>> step = tw.Semiring("step", add=tw.maximum, mul=lambda x, y: tw.where(x > y, x, y), zero=tw.smallest)
    >>> tw.matmul([[1, 5]], [[3], [2]], semiring=step)
    array([[5]])
    """
    return apply("where", condition, a, b)


def logaddexp(a: Any, b: Any) -> Symbol:
    """log(exp(a) + exp(b)) without overflow; −∞ is its neutral element.

    >>> tw.Semiring("soft", add=tw.logaddexp, mul=lambda x, y: x + y, zero=-np.inf).add
    logaddexp(x, y)
    """
    return apply("logaddexp", a, b)


def exp(a: Any) -> Symbol:
    """eᵃ.

    >>> tw.Semiring("odds", tw.maximum, lambda x, y: tw.exp(x + y), 0, pad_m=tw.smallest, pad_n=tw.smallest).mul
    exp(add(x, y))
    """
    return apply("exp", a)


def log(a: Any) -> Symbol:
    """The natural logarithm.

    >>> tw.Semiring("evidence", tw.maximum, lambda x, y: tw.log(x * y), tw.smallest, pad_m=0, pad_n=0).mul
    log(mul(x, y))
    """
    return apply("log", a)


def log1p(a: Any) -> Symbol:
    """log(1 + a), exact near 0.

    >>> tw.Semiring("gain", add=tw.maximum, mul=lambda x, y: tw.log1p(x * y), zero=0).mul
    log1p(mul(x, y))
    """
    return apply("log1p", a)


def sqrt(a: Any) -> Symbol:
    """The square root.

    >>> tw.Semiring("mean", add=tw.maximum, mul=lambda x, y: tw.sqrt(x * y), zero=0).mul
    sqrt(mul(x, y))
    """
    return apply("sqrt", a)


def absolute(a: Any) -> Symbol:
    """|a|.

    >>> tw.Semiring("farthest", tw.maximum, lambda x, y: tw.absolute(x - y), 0, pad_m=0, pad_n=0).mul
    abs(sub(x, y))
    """
    return apply("abs", a)


def logical_and(a: Any, b: Any) -> Symbol:
    """True where both are not 0.

    >>> tw.Semiring("meets", add=tw.logical_or, mul=tw.logical_and, zero=False, boolean=True).mul
    and(x, y)
    """
    return apply("and", a, b)


def logical_or(a: Any, b: Any) -> Symbol:
    """True where at least one is not 0.

    >>> tw.Semiring("meets", add=tw.logical_or, mul=tw.logical_and, zero=False, boolean=True).add
    or(x, y)
    """
    return apply("or", a, b)


def logical_not(a: Any) -> Symbol:
    """True where it is 0.

    >>> lacks = lambda x, y: tw.logical_and(x, tw.logical_not(y))
    >>> tw.Semiring("lacks", tw.logical_or, lacks, False, boolean=True, pad_m=False, pad_n=True).mul
    and(x, not(y))
    """
    return apply("not", a)
