"""The tangent of P for those of M and N, in JAX's own operations, by the semiring's add.

    +          tP = tM · N + M · tN
    min, max   the tangent of the winning term
    logaddexp  the mean of the tangents of all terms, by their soft weights exp(mul(M, N) − P)

JAX transposes what is linear in the tangents, so gradients of any order, forward and reverse, and their vmap follow
from this one rule. Operands are matrices or stacks of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax import numpy as jnp

from tilewise.algebra.builtin import SEMIRINGS
from tilewise.algebra.expression import Apply, Constant, Expression, Extreme, Variable
from tilewise.algebra.semiring import Semiring
from tilewise.errors import UsageError

OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": jnp.add, "sub": jnp.subtract, "mul": jnp.multiply, "div": jnp.divide, "neg": jnp.negative, "abs": jnp.abs,
    "min": jnp.fmin, "max": jnp.fmax, "exp": jnp.exp, "log": jnp.log, "log1p": jnp.log1p, "sqrt": jnp.sqrt,
    "logaddexp": jnp.logaddexp, "lt": jnp.less, "le": jnp.less_equal, "gt": jnp.greater, "ge": jnp.greater_equal,
    "eq": jnp.equal, "ne": jnp.not_equal, "or": jnp.logical_or, "and": jnp.logical_and, "not": jnp.logical_not,
    "where": lambda c, a, b: jnp.where(c.astype(bool), a, b),
}  # fmt: skip
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne", "or", "and", "not")


def has_gradient(ring: Semiring) -> str | None:
    """None, or why a product over it cannot be differentiated."""
    sums = ring.add in (SEMIRINGS["plus_times"].add, SEMIRINGS["logaddexp_plus"].add)
    if ring.boolean or not (sums or ring.selective):
        return f"{ring} has no gradient: its add is neither +, min, max nor logaddexp of numbers"
    unknown = _unknown_operation(ring.mul)
    return f"the {unknown} of {ring} has no gradient" if unknown else None


def _unknown_operation(tree: Expression) -> str | None:
    if not isinstance(tree, Apply):
        return None
    if tree.op not in OPERATIONS:
        return tree.op
    return next((found for found in map(_unknown_operation, tree.args) if found), None)


def tangent(ring: Semiring, M: Any, N: Any, P: Any, arg: Any, tM: Any, tN: Any) -> Any:
    """The tangent of P for those of M and N; `arg` is the winning k where add picks one."""
    refused = has_gradient(ring)
    if refused:
        raise UsageError(f"{refused}: keep it outside of jax.grad and jax.jvp, or jax.lax.stop_gradient its operands")
    plain = SEMIRINGS["plus_times"]
    if (ring.add, ring.mul) == (plain.add, plain.mul):
        exact = jax.lax.Precision.HIGHEST
        moved = jnp.matmul(tM, N, precision=exact) + jnp.matmul(M, tN, precision=exact)
    elif M.shape[-1] == 0:
        return jnp.zeros_like(P)
    elif ring.selective:
        moved = _of_winners(ring, M, N, arg, tM, tN)
    else:
        moved = _of_terms(ring, M, N, P, tM, tN)
    return moved.astype(P.dtype)


def _of_winners(ring: Semiring, M: Any, N: Any, arg: Any, tM: Any, tN: Any) -> Any:
    won = jnp.maximum(arg, 0)

    def at(x: Any, axis: int) -> Any:
        return jnp.take_along_axis(jnp.broadcast_to(x, (*arg.shape[:-2], *x.shape[-2:])), won, axis)

    _, moved = jax.jvp(_function(ring.mul), (at(M, -1), at(N, -2)), (at(tM, -1), at(tN, -2)))
    return jnp.where(arg >= 0, moved, 0)


def _of_terms(ring: Semiring, M: Any, N: Any, P: Any, tM: Any, tN: Any) -> Any:
    """Any mul under + or logaddexp: XLA fuses the m×k×n terms into their sum."""
    sides = [(x[..., :, :, None], y[..., None, :, :]) for x, y in ((M, N), (tM, tN))]
    term, moved = jax.jvp(_function(ring.mul), *sides)
    if ring.add == SEMIRINGS["logaddexp_plus"].add:
        held = P[..., :, None, :]
        nothing = held == -jnp.inf
        moved = moved * jnp.where(nothing, 0.0, jnp.exp(term - jnp.where(nothing, 0.0, held)))
    shape = (*P.shape[:-1], M.shape[-1], P.shape[-1])
    return jnp.broadcast_to(moved, shape).sum(-2)


def _function(tree: Expression) -> Callable[[Any, Any], Any]:
    """A tree as a function of two JAX values."""

    def value(x: Any, y: Any) -> Any:
        def node(part: Expression) -> Any:
            if isinstance(part, Variable):
                return x if part.name == "x" else y
            if isinstance(part, Constant):
                return jnp.asarray(part.value, x.dtype)
            if isinstance(part, Extreme):
                return jnp.asarray(jnp.inf if part.which == "largest" else -jnp.inf, x.dtype)
            assert isinstance(part, Apply)
            made = OPERATIONS[part.op](*(node(arg) for arg in part.args))
            return made.astype(x.dtype) if part.op in COMPARISONS else made

        return node(tree)

    return value
