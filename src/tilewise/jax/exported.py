"""Products, groups and closures in XLA's own operations: the lowering in programs that `jax.export` writes.

Such a program runs on any platform and without tilewise, at the speed of XLA. It cannot raise errors: in a graph with
an improving cycle every distance is NaN, and integer weights outside their range wrap.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
from jax import numpy as jnp

from tilewise.algebra.builtin import is_plus_times
from tilewise.algebra.no_edge import no_edge_of
from tilewise.algebra.semiring import Algebra
from tilewise.algebra.to_operators import Operators
from tilewise.compose.graph.closure import HOPS
from tilewise.compose.graph.laws import is_idempotent, one_of
from tilewise.errors import UsageError

OPERATORS = Operators(jnp)


def product(algebra: Algebra, M: Any, N: Any, return_arg: bool = False, member: Any = None) -> tuple[Any, ...]:
    """The product of stacks of matrices, and the winning k. `member`: mask of each k; stacks broadcast to it."""
    ring, wide = algebra.semiring, algebra.partial.numpy
    if is_plus_times(ring):
        if member is not None:
            M, N = jnp.where(member[..., None, :], M, 0), jnp.where(member[..., None], N, 0)
        P = jnp.matmul(M.astype(wide), N.astype(wide), precision=jax.lax.Precision.HIGHEST)
        return (P.astype(algebra.result.numpy),)
    edges, zero = no_edge_of(algebra), jnp.asarray(algebra.zero, wide)
    M, N = (x != 0 if ring.boolean else x.astype(wide) for x in (M, N))
    if edges is not None:
        M, N = (jnp.where(x == edges.stored, jnp.asarray(edges.internal, wide), x) for x in (M, N))
    left, right = M[..., :, :, None], N[..., None, :, :]
    shape = jnp.broadcast_shapes(left.shape, right.shape)
    terms = jnp.broadcast_to(OPERATORS.value(ring.mul, left, right).astype(wide), shape)
    if member is not None:
        terms = jnp.where(member[..., None, :, None], terms, zero)
    P = jax.lax.reduce(terms, zero, lambda x, y: OPERATORS.value(ring.add, x, y).astype(wide), (len(shape) - 2,))
    empty = zero == P
    if edges is not None:
        empty = empty | (edges.farthest < P if edges.stored > 0 else edges.farthest > P)
    made = jnp.where(empty, zero, P).astype(algebra.result.numpy)
    if not return_arg:
        return (made,)
    first = (terms == P[..., None, :]).argmax(-2) if shape[-2] else jnp.zeros(P.shape, int)
    return made, jnp.where(empty, -1, first).astype(jnp.int32)


def grouped_product(algebra: Algebra, by_k: bool, x: Any, w: Any, ends: Any) -> tuple[Any, ...]:
    """`tw.grouped_matmul`: the product of all rows with every group, from which each row selects its own."""
    group = jnp.searchsorted(ends, jnp.arange(x.shape[0]), side="right")
    if by_k:
        return product(algebra, x.T[None], w[None], member=group == jnp.arange(len(ends))[:, None])
    (every,) = product(algebra, x[None], w)
    if not len(ends):
        return (jnp.full((x.shape[0], w.shape[-1]), algebra.zero, every.dtype),)
    selected = jnp.take_along_axis(every, jnp.minimum(group, len(ends) - 1)[None, :, None], 0)[0]
    return (jnp.where((group < len(ends))[:, None], selected, jnp.asarray(algebra.zero, selected.dtype)),)


def closure(algebra: Algebra, chosen: Any, kinds: Sequence[Any], W: Any) -> tuple[Any, ...]:
    """`tw.closure` of stacks of graphs over an idempotent semiring, by Floyd–Warshall without blocks. `kinds`: the
    result's dtype, and that of the predecessors if they are requested."""
    if not is_idempotent(algebra):
        raise UsageError(f"a closure over {algebra.semiring} cannot be exported, only those of min, max and or")
    tracks, work = len(kinds) > 1, algebra
    if algebra.semiring.boolean:
        W = W != 0
        if tracks:
            work, W = HOPS, jnp.where(W, jnp.float32(1), jnp.float32(jnp.inf))
    wide, nodes = work.partial.numpy, jnp.arange(W.shape[-1])
    zero, one = jnp.asarray(work.zero, wide), jnp.asarray(one_of(work), wide)
    add, mul = (partial(OPERATORS.value, tree) for tree in (work.semiring.add, work.semiring.mul))
    D = add(W.astype(wide), zero)  # NaN is no edge
    diagonal = nodes[:, None] == nodes
    predecessors = jnp.where((zero == D) | diagonal, -1, nodes[:, None])
    D = jnp.where(diagonal, add(D, one), D)

    def relaxed(k: Any, held: Any) -> Any:
        D, predecessors = held
        left, right = (jax.lax.dynamic_slice_in_dim(D, k, 1, axis) for axis in (D.ndim - 1, D.ndim - 2))
        through = jnp.where((left == zero) | (right == zero), zero, mul(left, right).astype(wide))
        total = add(D, through).astype(wide)
        predecessors_of_k = jax.lax.dynamic_slice_in_dim(predecessors, k, 1, D.ndim - 2)
        return total, jnp.where(total != D, predecessors_of_k, predecessors)

    D, predecessors = jax.lax.fori_loop(0, W.shape[-1], relaxed, (D, predecessors))
    if algebra.partial.kind == "f":
        improved = (jnp.diagonal(D, axis1=-2, axis2=-1) != one).any(-1)
        D = jnp.where(improved[..., None, None], jnp.nan, D)
    made = (jnp.inf > D if work is HOPS and algebra.semiring.boolean else D, predecessors)
    rows = made if chosen is None else tuple(x[..., chosen, :] for x in made)
    return tuple(x.astype(kind) for x, kind in zip(rows, kinds, strict=False))
