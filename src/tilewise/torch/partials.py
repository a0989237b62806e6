"""A semiring's mul in torch operations: its value and its partial derivatives in x and y.

One walk over the expression tree computes all three. torch can differentiate its own operations again, so gradients of
gradients need zero more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tilewise.algebra.expression import Apply, Constant, Expression, Extreme, Variable
from tilewise.errors import UsageError


class Dual(NamedTuple):
    """A value with its partial derivatives in x and in y."""

    value: Tensor
    dx: Tensor
    dy: Tensor


def partials(tree: Expression, x: Tensor, y: Tensor) -> Dual:
    """`tree` at x and y, which broadcast."""
    if isinstance(tree, Variable):
        one, zero = torch.ones((), dtype=x.dtype, device=x.device), torch.zeros((), dtype=x.dtype, device=x.device)
        return Dual(x, one, zero) if tree.name == "x" else Dual(y, zero, one)
    zero = torch.zeros((), dtype=x.dtype, device=x.device)
    if isinstance(tree, Constant):
        assert not isinstance(tree.value, complex)
        return Dual(torch.full((), tree.value, dtype=x.dtype, device=x.device), zero, zero)
    if isinstance(tree, Extreme):
        end = float("inf") if tree.which == "largest" else float("-inf")
        return Dual(torch.full((), end, dtype=x.dtype, device=x.device), zero, zero)
    assert isinstance(tree, Apply)
    parts = [partials(arg, x, y) for arg in tree.args]
    if tree.op == "where":
        condition, yes, no = parts
        return Dual(*(torch.where(condition.value.bool(), a, b) for a, b in zip(yes, no, strict=True)))
    if tree.op in COMPARISONS:
        return Dual(COMPARISONS[tree.op](*(p.value for p in parts)).to(x.dtype), zero, zero)
    if tree.op not in RULES:
        raise UsageError(f"the semiring's {tree.op} has no gradient: pass tensors that require none")
    value, *weights = RULES[tree.op](*(p.value for p in parts))
    dx = sum((w * p.dx for w, p in zip(weights, parts, strict=True)), zero)
    dy = sum((w * p.dy for w, p in zip(weights, parts, strict=True)), zero)
    return Dual(value, dx, dy)


def _pick(better: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]:
    """min and max: the derivative belongs to the operand picked, half to each where they are equal, as in torch."""

    def rule(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        value = better(a, b)
        half = torch.where(a == b, 0.5, 1.0).to(value.dtype)
        return value, (value == a) * half, (value == b) * half

    return rule


def _logaddexp(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    value = torch.logaddexp(a, b)
    return value, torch.exp(a - value), torch.exp(b - value)


ONE = 1.0
RULES: dict[str, Callable[..., tuple[Any, ...]]] = {
    "add": lambda a, b: (a + b, ONE, ONE),
    "sub": lambda a, b: (a - b, ONE, -ONE),
    "mul": lambda a, b: (a * b, b, a),
    "div": lambda a, b: (a / b, 1 / b, -a / (b * b)),
    "neg": lambda a: (-a, -ONE),
    "abs": lambda a: (a.abs(), a.sign()),
    "exp": lambda a: (a.exp(), a.exp()),
    "log": lambda a: (a.log(), 1 / a),
    "log1p": lambda a: (a.log1p(), 1 / (1 + a)),
    "sqrt": lambda a: (a.sqrt(), 0.5 / a.sqrt()),
    "min": _pick(torch.fmin),
    "max": _pick(torch.fmax),
    "logaddexp": _logaddexp,
}
COMPARISONS: dict[str, Callable[..., Tensor]] = {
    "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge, "eq": torch.eq, "ne": torch.ne,
    "or": torch.logical_or, "and": torch.logical_and, "not": torch.logical_not,
}  # fmt: skip
