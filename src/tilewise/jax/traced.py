"""Closures, values with fields and products of groups that JAX traces: kernels in a callback on the host.

Their derivatives are in JAX's own operations (`algebra/tangents.py`), so they have any order, forward and reverse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import dtype_of
from tilewise.algebra.semiring import Semiring
from tilewise.algebra.structured import Structured
from tilewise.algebra.tangents import Paths, is_plain, why_no_tangent
from tilewise.compose.graph import closure as graph
from tilewise.compose.graph.laws import nodes_of
from tilewise.compose.groups import product as groups
from tilewise.compose.groups.product import GroupOptions
from tilewise.core.options import Options
from tilewise.core.shapes import product_shape
from tilewise.dispatch.route import check_fields, is_structured
from tilewise.dispatch.structured.product import structured_matmul, structured_ring
from tilewise.errors import ShapeError, UsageError
from tilewise.jax.operator import OPERATORS, alike, check_device, check_place, jitted_matmul

OUTSIDE = "keep it outside of jax.grad and jax.jvp, or jax.lax.stop_gradient its operands"


def traced_matmul(M: Any, N: Any, o: Options) -> Any:
    """`tw.matmul` inside jit, grad and vmap."""
    if not is_structured(o.semiring):
        return jitted_matmul(M, N, o)
    check_fields(o)
    check_device(o.device)
    return _product_of_fields(M, N, structured_ring(o.semiring))  # type: ignore[arg-type]


def closure(W: Any, semiring: str | Semiring, return_predecessors: bool, sources: Any) -> Any:
    """`tw.closure` inside jit, grad and vmap; the predecessors have no derivative."""
    check_place()
    if W.ndim < 2 or W.shape[-1] != W.shape[-2]:
        raise ShapeError(f"closure takes a square matrix, rows and columns being the nodes; W is {W.shape}")
    if isinstance(sources, jax.core.Tracer):
        raise UsageError("sources= of a closure are traced, and its shape depends on them: pass them as constants")
    ring, chosen = find_semiring(semiring), nodes_of(sources, W.shape[-1])
    made = _closed(ring, chosen, return_predecessors)(W)
    return made if return_predecessors else made[0]


def _closed(ring: Semiring, chosen: Any, tracks: bool) -> Callable[[Any], Any]:
    def host(W: Any) -> Any:
        how: Any = {"semiring": ring, "sources": chosen}
        if not tracks:
            return (np.asarray(graph.closure(np.asarray(W), **how)),)
        D, before = graph.closure(np.asarray(W), return_predecessors=True, **how)
        return np.asarray(D), np.asarray(before).astype(_whole())

    @jax.custom_jvp
    def closed(W: Any) -> Any:
        shape = (*W.shape[:-2], W.shape[-1] if chosen is None else len(chosen), W.shape[-1])
        made = [jax.ShapeDtypeStruct(shape, ring.over(dtype_of(W.dtype)).result.numpy)]
        made += [jax.ShapeDtypeStruct(shape, _whole())] if tracks else []
        return jax.pure_callback(host, tuple(made), W, vmap_method="expand_dims")

    @closed.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        refused = why_no_tangent(OPERATORS, ring)
        if refused or not ring.selective:
            raise UsageError(f"{refused or f'closures over {ring} have no gradient'}: {OUTSIDE}")
        (W,), (tW,) = primals, tangents
        D, before = _closed(ring, chosen, True)(W)
        moved = Paths(OPERATORS, ring.mul, W, D, before).tangent(tW).astype(D.dtype)
        none = np.zeros(before.shape, jax.dtypes.float0)
        return ((D, before), (moved, none)) if tracks else ((D,), (moved,))

    return closed


def _whole() -> Any:
    return jax.dtypes.canonicalize_dtype(np.int64)


def _product_of_fields(M: Sequence[Any], N: Sequence[Any], ring: Structured) -> Any:
    """`tw.matmul` of values with fields inside jit, grad and vmap."""
    check_place()
    pairs = [alike(x, y) for x, y in zip(M, N, strict=True)]
    first, second = pairs[0]
    shape = product_shape(first.shape, second.shape).product
    axes = max(x.ndim for pair in pairs for x in pair)
    left = [_matrix(x[None] if x.ndim == 1 else x, axes) for x, _ in pairs]
    right = [_matrix(y[:, None] if y.ndim == 1 else y, axes) for _, y in pairs]
    algebra = ring.over([dtype_of(x.dtype) for x, _ in pairs])

    def host(*fields: Any) -> Any:
        x, y = (tuple(np.broadcast_arrays(*side)) for side in (fields[: len(M)], fields[len(M) :]))
        return tuple(structured_matmul(x, y, ring))

    @jax.custom_jvp
    def product(*fields: Any) -> Any:
        x, y = fields[0], fields[len(M)]
        whole = (*np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-1])
        made = tuple(jax.ShapeDtypeStruct(whole, dtype.numpy) for dtype in algebra.dtypes)
        return jax.pure_callback(host, made, *fields, vmap_method="expand_dims")

    @product.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        def terms(*fields: Any) -> Any:
            return tuple(OPERATORS.product_of_fields(algebra, fields[: len(M)], fields[len(M) :]))

        return product(*primals), jax.jvp(terms, primals, tangents)[1]

    return tuple(x.reshape(shape) for x in product(*left, *right))


def _matrix(x: Any, axes: int) -> Any:
    """With as many axes as all others, so that a batch of them is one more."""
    return x.reshape(*[1] * (max(axes, 2) - x.ndim), *x.shape)


def grouped_matmul(x: Any, w: Any, offsets: Any, o: GroupOptions) -> Any:
    """`tw.grouped_matmul` inside jit, grad and vmap: gradients over plus_times."""
    check_place()
    if o.out is not None or o.kernel is not None:
        raise UsageError("out= and kernel= have no meaning inside jax.jit and kin: leave them out")
    x = x if o.rows is None else jnp.asarray(x)[jnp.asarray(o.rows)]
    (x, w), ends = alike(x, w), jnp.asarray(offsets)
    ring, by_k = find_semiring(o.semiring), o.along == "k"
    how = {"along": o.along, "semiring": ring, "precision": o.precision}
    shape = (len(ends), x.shape[1], w.shape[1]) if by_k else (x.shape[0], w.shape[-1])
    result = jax.ShapeDtypeStruct(shape, ring.over(dtype_of(x.dtype)).result.numpy)

    def host(x: Any, w: Any, ends: Any) -> Any:
        return np.asarray(groups.grouped_matmul(*map(np.asarray, (x, w, ends)), **how))

    @jax.custom_jvp
    def product(x: Any, w: Any, ends: Any) -> Any:
        return jax.pure_callback(host, result, x, w, ends, vmap_method="sequential")

    @product.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        if not is_plain(ring):
            raise UsageError(f"groups over {ring} have no gradient: {OUTSIDE}")
        (x, w, ends), (tx, tw, _) = primals, tangents
        multiply = partial(_in_jax, ends=ends, by_k=by_k)
        return product(*primals), (multiply(tx, w) + multiply(x, tw)).astype(result.dtype)

    return product(x, w, ends)


def _in_jax(x: Any, w: Any, ends: Any, by_k: bool) -> Any:
    """The product of groups in JAX's operations: of all rows with every group, those of others being 0."""
    group = jnp.searchsorted(ends, jnp.arange(x.shape[0]), side="right")
    member = (group == jnp.arange(len(ends))[:, None]).astype(x.dtype)[:, :, None] * x
    multiply = partial(jnp.matmul, precision=jax.lax.Precision.HIGHEST)
    return multiply(member.swapaxes(-1, -2), w) if by_k else multiply(member, w).sum(0)


def scatter_rows(y: Any, rows: Any, count: int, weights: Any) -> Any:
    """`tw.scatter_rows` inside jit, grad and vmap, in JAX's own operations."""
    y, rows = jnp.asarray(y), jnp.asarray(rows)
    wide = jnp.promote_types(y.dtype, jnp.float32) if jnp.issubdtype(y.dtype, jnp.floating) else y.dtype
    terms = y.astype(wide) if weights is None else y.astype(wide) * jnp.asarray(weights)[:, None].astype(wide)
    place = jnp.where(rows < 0, count, rows)
    return jnp.zeros((count, y.shape[1]), wide).at[place].add(terms, mode="drop").astype(y.dtype)
