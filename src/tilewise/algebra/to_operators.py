"""Trees and programs in the operations of a framework, torch or jax.numpy, which can then trace and differentiate them.

`partials` gives a tree's partial derivatives in x and y beside its value, in one walk. They consist of the framework's
operations, so higher derivatives need nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tilewise.algebra.dtypes import DType
from tilewise.algebra.expression import TRUTHS, UFUNCS, Apply, Constant, Expression, Extreme, Number, Variable
from tilewise.algebra.program import run
from tilewise.algebra.structured import StructuredAlgebra
from tilewise.errors import UsageError

TORCH_NAMES = {
    "equal": "eq", "invert": "bitwise_not", "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift",
    "take_along_axis": "take_along_dim", "concatenate": "cat",
}  # fmt: skip


class Dual(NamedTuple):
    """A value with its partial derivatives in x and in y."""

    value: Any
    dx: Any
    dy: Any


class Operators:
    """The operations of one framework; a target of programs of values with fields."""

    def __init__(self, xp: Any) -> None:
        """`xp`: torch or jax.numpy."""
        self.xp = xp
        self.operations = {op: self._named(name) for name, op in UFUNCS.items()}
        self.take, self.concatenate = self._named("take_along_axis"), self._named("concatenate")
        self._rules = self._derivative_rules()

    def _named(self, name: str) -> Any:
        return getattr(self.xp, TORCH_NAMES.get(name, name), None) or getattr(self.xp, name)

    def cast(self, x: Any, dtype: Any) -> Any:
        return x.to(dtype) if hasattr(x, "to") else x.astype(dtype)

    def constant(self, value: Number, dtype: DType) -> Any:
        return self.xp.full((), value, dtype=getattr(self.xp, dtype.name))

    def operate(self, op: str, dtype: DType, args: list[Any]) -> Any:
        return self.cast(self.operations[op](*args), getattr(self.xp, dtype.name))

    def compare(self, op: str, dtype: DType, a: Any, b: Any) -> Any:
        return self.operations[op](a, b)

    def logic(self, op: str, args: list[Any]) -> Any:
        return self.operations[op](*args)

    def select(self, dtype: DType, truth: Any, a: Any, b: Any) -> Any:
        return self.xp.where(truth, a, b)

    def number(self, truth: Any, dtype: DType) -> Any:
        return self.cast(truth, getattr(self.xp, dtype.name))

    def truth(self, value: Any, dtype: DType) -> Any:
        return value != 0

    def _leaf(self, tree: Expression, x: Any, y: Any) -> Any:
        if isinstance(tree, Variable):
            return x if tree.name == "x" else y
        if isinstance(tree, Extreme):
            value: Number = float("inf") if tree.which == "largest" else float("-inf")
        else:
            assert isinstance(tree, Constant)
            value = tree.value
        return self.xp.full((), value, dtype=x.dtype)

    def value(self, tree: Expression, x: Any, y: Any) -> Any:
        """`tree` at x and y, which broadcast."""
        if not isinstance(tree, Apply):
            return self._leaf(tree, x, y)
        parts = [self.value(arg, x, y) for arg in tree.args]
        if tree.op == "where":
            return self.xp.where(parts[0] != 0, *parts[1:])
        made = self.operations[tree.op](*parts)
        return self.cast(made, x.dtype) if tree.op in TRUTHS else made

    def partials(self, tree: Expression, x: Any, y: Any) -> Dual:
        """`tree` and its partial derivatives at x and y, which broadcast."""
        zero = self.xp.full((), 0, dtype=x.dtype)
        if not isinstance(tree, Apply):
            value, one = self._leaf(tree, x, y), self.xp.full((), 1, dtype=x.dtype)
            name = tree.name if isinstance(tree, Variable) else ""
            return Dual(value, one if name == "x" else zero, one if name == "y" else zero)
        if tree.op in TRUTHS:
            return Dual(self.value(tree, x, y), zero, zero)
        parts = [self.partials(arg, x, y) for arg in tree.args]
        if tree.op == "where":
            holds, yes, no = parts
            return Dual(*(self.xp.where(holds.value != 0, a, b) for a, b in zip(yes, no, strict=True)))
        if tree.op not in self._rules:
            raise UsageError(f"the semiring's {tree.op} has no gradient: pass arrays that require none")
        value, *weights = self._rules[tree.op](*(p.value for p in parts))
        dx = sum((w * p.dx for w, p in zip(weights, parts, strict=True)), zero)
        dy = sum((w * p.dy for w, p in zip(weights, parts, strict=True)), zero)
        return Dual(value, dx, dy)

    def differentiates(self, tree: Expression) -> bool:
        """Whether `partials` takes every operation of a tree."""
        known = not isinstance(tree, Apply) or tree.op == "where" or tree.op in TRUTHS or tree.op in self._rules
        return known and all(map(self.differentiates, tree.args if isinstance(tree, Apply) else ()))

    def _derivative_rules(self) -> dict[str, Callable[..., tuple[Any, ...]]]:
        """The value of each operation and the derivative in each of its operands."""
        xp = self.xp

        def logaddexp(a: Any, b: Any) -> tuple[Any, Any, Any]:
            value = xp.logaddexp(a, b)
            return value, xp.exp(a - value), xp.exp(b - value)

        return {
            "add": lambda a, b: (a + b, 1.0, 1.0),
            "sub": lambda a, b: (a - b, 1.0, -1.0),
            "mul": lambda a, b: (a * b, b, a),
            "div": lambda a, b: (a / b, 1 / b, -a / (b * b)),
            "neg": lambda a: (-a, -1.0),
            "abs": lambda a: (abs(a), xp.sign(a)),
            "exp": lambda a: (xp.exp(a), xp.exp(a)),
            "log": lambda a: (xp.log(a), 1 / a),
            "log1p": lambda a: (xp.log1p(a), 1 / (1 + a)),
            "sqrt": lambda a: (xp.sqrt(a), 0.5 / xp.sqrt(a)),
            "min": lambda a, b: self._min_or_max(xp.fmin(a, b), a, b),
            "max": lambda a, b: self._min_or_max(xp.fmax(a, b), a, b),
            "logaddexp": logaddexp,
        }

    def _min_or_max(self, value: Any, a: Any, b: Any) -> tuple[Any, Any, Any]:
        """min and max: the derivative is 1 for the operand picked, ½ for each where they are equal."""
        half = self.cast(self.xp.where(a == b, 0.5, 1.0), value.dtype)
        return value, (value == a) * half, (value == b) * half

    def product_of_fields(self, algebra: StructuredAlgebra, M: Sequence[Any], N: Sequence[Any]) -> list[Any]:
        """The product of stacks of matrices of structured values: all m×k×n terms, summed pairwise along k."""
        kinds, ring = [getattr(self.xp, dtype.name) for dtype in algebra.dtypes], algebra.semiring
        x, y = ([self.cast(part, kind) for part, kind in zip(side, kinds, strict=True)] for side in (M, N))
        left, right = [part[..., :, :, None] for part in x], [part[..., None, :, :] for part in y]
        shape = (left[0] == right[0]).shape
        if not shape[-2]:
            shape = (*shape[:-2], 1, shape[-1])
            held = [self.xp.full((), zero, dtype=kind) for zero, kind in zip(algebra.zero, kinds, strict=True)]
        else:
            held = run(ring.mul, algebra.dtypes, {"x": left, "y": right}, self)
        terms = [self.xp.broadcast_to(term, shape) for term in held]
        while (k := terms[0].shape[-2]) > 1:
            half = k // 2
            first, second = [t[..., :half, :] for t in terms], [t[..., half : 2 * half, :] for t in terms]
            sums = run(ring.add, algebra.dtypes, {"x": first, "y": second}, self)
            terms = [self.concatenate([s, t[..., 2 * half :, :]], -2) for s, t in zip(sums, terms, strict=True)]
        return [term[..., 0, :] for term in terms]
