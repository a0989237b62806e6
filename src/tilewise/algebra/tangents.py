"""Tangents of products and of closures in the operations of a framework, by the semiring's add.

    +          tP = tM · N + M · tN
    min, max   the tangent of the winning term
    logaddexp  the mean of the tangents of all terms, weighted by exp(mul(M, N) − P)

All are linear in the tangents: JAX transposes them into gradients; they consist of operations with derivatives.
Operands are matrices or stacks of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewise.algebra.builtin import SEMIRINGS, is_plus_times
from tilewise.algebra.expression import Expression
from tilewise.algebra.semiring import Semiring
from tilewise.algebra.to_operators import Operators


def is_soft(ring: Semiring) -> bool:
    """Whether add is logaddexp: the derivative of each term is its share of the sum."""
    return ring.add == SEMIRINGS["logaddexp_plus"].add


def why_no_tangent(to: Operators, ring: Semiring) -> str | None:
    """Why a product over it cannot be differentiated; None where it can."""
    sums = is_soft(ring) or ring.add == SEMIRINGS["plus_times"].add
    if ring.boolean or not (sums or ring.selective):
        return f"{ring} has no gradient: its add is neither +, min, max nor logaddexp of numbers"
    return None if to.differentiates(ring.mul) else f"{ring} has no gradient: its mul has an operation without one"


def tangent(
    to: Operators,
    ring: Semiring,
    multiply: Callable[[Any, Any], Any],
    M: Any,
    N: Any,
    P: Any,
    arg: Any,
    tM: Any,
    tN: Any,
) -> Any:
    """The tangent of P for those of M and N (None for 0); `arg`: the winning k, for min and max."""
    if is_plus_times(ring):
        parts = [multiply(*pair) for pair in ((tM, N), (M, tN)) if pair[0] is not None and pair[1] is not None]
        return parts[0] + parts[1] if len(parts) == 2 else parts[0]
    held = P if arg is None else arg
    if M.shape[-1] == 0:
        return to.xp.zeros_like(held, dtype=M.dtype)
    if arg is None:
        term = to.partials(ring.mul, M[..., :, :, None], N[..., None, :, :])
        tx, ty = None if tM is None else tM[..., :, :, None], None if tN is None else tN[..., None, :, :]
        tangents = _term_tangent(term, tx, ty)
        tangents = tangents * soft_weight(to, term.value, P) if is_soft(ring) else tangents
        return to.xp.broadcast_to(tangents, (*P.shape[:-1], M.shape[-1], P.shape[-1])).sum(-2)
    won, stack = to.xp.where(arg >= 0, arg, 0), arg.shape[:-2]

    def at(x: Any, axis: int) -> Any:
        return None if x is None else to.take(to.xp.broadcast_to(x, (*stack, *x.shape[-2:])), won, axis)

    tangents = _term_tangent(to.partials(ring.mul, at(M, -1), at(N, -2)), at(tM, -1), at(tN, -2))
    return to.xp.where(arg >= 0, tangents, to.xp.zeros_like(tangents))


def _term_tangent(term: Any, tx: Any, ty: Any) -> Any:
    """The tangent of mul(x, y)."""
    if tx is None or ty is None:
        return term.dy * ty if tx is None else term.dx * tx
    return term.dx * tx + term.dy * ty


def soft_weight(to: Operators, term: Any, P: Any) -> Any:
    """The share of each term in P."""
    P = P[..., :, None, :]
    nothing = float("-inf") == P
    return to.xp.where(nothing, 0.0, to.xp.exp(term - to.xp.where(nothing, 0.0, P)))


class Paths:
    """Every path of a closure: D[i, j] = mul(D[i, p], W[p, j]), p being the predecessor of j on the path from i.

    The tangents along a path satisfy x[j] = edge[j] + factor[j] · x[p[j]], which pointer doubling solves: substituted
    into itself it spans two edges, then four. `steps`: the factors and the nodes they refer to, log₂ n of them.
    """

    def __init__(self, to: Operators, mul: Expression, W: Any, D: Any, predecessors: Any) -> None:
        nodes = W.shape[-1]
        self.to, self.shape = to, (*D.shape[:-2], nodes, nodes)
        self.reached = predecessors >= 0
        self.p = to.xp.where(self.reached, predecessors, 0)
        part = to.partials(mul, to.take(D, self.p, -1), to.take(to.xp.broadcast_to(W, self.shape), self.p, -2))
        nothing = to.xp.zeros_like(D)
        self.edge = to.xp.where(self.reached, part.dy, nothing)
        factor, jump, self.steps = to.xp.where(self.reached, part.dx, nothing), self.p, []
        for _ in range(max(1, nodes - 1).bit_length()):
            self.steps.append((factor, jump))
            factor, jump = factor * to.take(factor, jump, -1), to.take(jump, jump, -1)

    def tangent(self, tW: Any) -> Any:
        """tD of tW."""
        made = self.edge * self.to.take(self.to.xp.broadcast_to(tW, self.shape), self.p, -2)
        for factor, jump in self.steps:
            made = made + factor * self.to.take(made, jump, -1)
        return made
