"""`tw.matmul`, `tw.closure`, `tw.grouped_matmul` and `tw.scatter_rows` of values that JAX traces: keywords are applied
or refused, then an operation of `operator.py` is recorded.

Derivatives consist of JAX's own operations (`algebra/tangents.py`), so they exist in any order, forward and reverse.
Outside of jit, grad and vmap JAX arrays are multiplied directly (`arrays/jax_library.py`). On a card a callback would
copy every operand to the host and back, so there these functions raise an error: call them outside of jit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import jax
import jax.custom_batching
import numpy as np
from jax import numpy as jnp

from tilewise.algebra.builtin import find_semiring, is_plus_times
from tilewise.algebra.dtypes import FLOAT8, dtype_given, dtype_of
from tilewise.algebra.semiring import Semiring
from tilewise.algebra.structured import Structured
from tilewise.algebra.tangents import Paths, why_no_tangent
from tilewise.arrays.jax_library import JAX
from tilewise.compose.graph import closure as graph
from tilewise.compose.graph.laws import nodes_of
from tilewise.compose.groups import product as groups
from tilewise.compose.groups.product import GroupOptions
from tilewise.core.epilogue import check_fits, epilogue_of
from tilewise.core.options import Options
from tilewise.core.shapes import product_shape
from tilewise.dispatch.bind import checked_dtype
from tilewise.dispatch.route import check_fields, is_structured
from tilewise.dispatch.structured.product import structured_matmul, structured_ring
from tilewise.errors import ShapeError, UsageError
from tilewise.jax import exported
from tilewise.jax.exported import OPERATORS
from tilewise.jax.operator import OUTSIDE, check_place, matmul, on_host, operation

ACTIVATIONS = {
    "relu": jax.nn.relu,
    "gelu": partial(jax.nn.gelu, approximate=False),
    "gelu_tanh": jax.nn.gelu,
    "silu": jax.nn.silu,
}


def promoted(*arrays: Any) -> list[Any]:
    """JAX arrays in the dtype that JAX promotes them to; 8-bit floats stay: kernels widen them."""
    held = [jnp.asarray(x) for x in arrays]
    common = reduce(JAX.promote, (dtype_of(x.dtype) for x in held)).numpy
    return [x if x.dtype.name in FLOAT8 else x.astype(common) for x in held]


def traced_matmul(M: Any, N: Any, o: Options) -> Any:
    """`tw.matmul` inside jit, grad and vmap."""
    if o.device not in ("auto", "cpu"):
        raise UsageError(f"device={o.device!r} was requested inside jax.jit, where a product stays where JAX puts it")
    if is_structured(o.semiring):
        check_fields(o)
        return _product_of_fields(M, N, structured_ring(o.semiring))  # type: ignore[arg-type]
    why = "have no meaning inside jax.jit and kin: leave them out"
    o.refuse(why, "out", "accumulate", "kernel", "tile", "scales", "memory", "reproducible")
    M, N = promoted(M, N)
    if o.dtype is not None:
        wanted = checked_dtype(dtype_given(o.dtype), JAX.promote(dtype_of(M.dtype), dtype_of(N.dtype)), JAX).numpy
        M, N = M.astype(wanted), N.astype(wanted)
    if o.has_epilogue and o.return_arg:
        raise UsageError("return_arg=True goes with min and max; alpha=, bias= and activation= exclude it")
    P = matmul(M, N, semiring=o.semiring, precision=o.precision, return_arg=o.return_arg, nonnegative=o.nonnegative)
    return _with_epilogue(P, o) if o.has_epilogue else P


def _with_epilogue(P: Any, o: Options) -> Any:
    """activation(alpha · P + bias), in the dtype of P."""
    ring, bias = find_semiring(o.semiring), None if o.bias is None else jnp.asarray(o.bias)
    epilogue = epilogue_of(o.alpha, None if bias is None else dtype_of(bias.dtype), o.activation)
    check_fits(epilogue, ring, is_plus_times(ring), dtype_of(P.dtype))
    if bias is not None and bias.shape != P.shape[-1:]:
        raise ShapeError(f"bias is {bias.shape}, and P has {P.shape[-1]} columns: pass one number for each of them")
    made = P * jnp.asarray(o.alpha, P.dtype)
    made = made if bias is None else made + bias.astype(P.dtype)
    return ACTIVATIONS[o.activation](made) if o.activation else made


def _product_of_fields(M: Sequence[Any], N: Sequence[Any], ring: Structured) -> Any:
    """The product of values with fields."""
    check_place()
    pairs = [promoted(x, y) for x, y in zip(M, N, strict=True)]
    first, second = pairs[0]
    shape = product_shape(first.shape, second.shape).product
    axes = max(x.ndim for pair in pairs for x in pair)
    left = [_matrix(x[None] if x.ndim == 1 else x, axes) for x, _ in pairs]
    right = [_matrix(y[:, None] if y.ndim == 1 else y, axes) for _, y in pairs]
    algebra = ring.over([dtype_of(x.dtype) for x, _ in pairs])

    def host(*fields: Any) -> Any:
        x, y = (tuple(np.broadcast_arrays(*side)) for side in (fields[: len(M)], fields[len(M) :]))
        return tuple(structured_matmul(x, y, ring))

    def terms(*fields: Any) -> Any:
        return tuple(OPERATORS.product_of_fields(algebra, fields[: len(M)], fields[len(M) :]))

    @jax.custom_jvp
    def product(*fields: Any) -> Any:
        results = tuple(jax.eval_shape(terms, *fields))
        return tuple(operation(partial(on_host, host), terms, results, *fields))

    @product.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        return product(*primals), jax.jvp(terms, primals, tangents)[1]

    return tuple(x.reshape(shape) for x in product(*left, *right))


def _matrix(x: Any, axes: int) -> Any:
    """x with leading axes of size 1 up to `axes`, so that a batch adds one axis to all operands."""
    return x.reshape(*[1] * (max(axes, 2) - x.ndim), *x.shape)


def closure(W: Any, semiring: Any, return_predecessors: bool, sources: Any) -> Any:
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
    whole = jax.dtypes.canonicalize_dtype(np.int64)

    def host(W: Any) -> Any:
        made = graph.closure(W, semiring=ring, sources=chosen, return_predecessors=tracks)
        return (made[0], made[1].astype(whole)) if tracks else (made,)

    @jax.custom_jvp
    def closed(W: Any) -> Any:
        algebra = ring.over(dtype_of(W.dtype))
        shape = (*W.shape[:-2], W.shape[-1] if chosen is None else len(chosen), W.shape[-1])
        kinds = (algebra.result.numpy, whole) if tracks else (algebra.result.numpy,)
        results = tuple(jax.ShapeDtypeStruct(shape, kind) for kind in kinds)
        return tuple(operation(partial(on_host, host), partial(exported.closure, algebra, chosen, kinds), results, W))

    @closed.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        refused = why_no_tangent(OPERATORS, ring)
        if refused or not ring.selective:
            raise UsageError(f"{refused or f'closures over {ring} have no gradient'}: {OUTSIDE}")
        (W,), (tW,) = primals, tangents
        D, predecessors = _closed(ring, chosen, True)(W)
        moved = Paths(OPERATORS, ring.mul, W, D, predecessors).tangent(tW).astype(D.dtype)
        none = np.zeros(predecessors.shape, jax.dtypes.float0)
        return ((D, predecessors), (moved, none)) if tracks else ((D,), (moved,))

    return closed


def grouped_matmul(x: Any, w: Any, offsets: Any, o: GroupOptions) -> Any:
    """`tw.grouped_matmul` inside jit, grad and vmap: gradients over plus_times."""
    check_place()
    if o.out is not None or o.kernel is not None:
        raise UsageError("out= and kernel= have no meaning inside jax.jit and kin: leave them out")
    x = x if o.rows is None else jnp.asarray(x)[jnp.asarray(o.rows)]
    (x, w), ends = promoted(x, w), jnp.asarray(offsets)
    ring, by_k = find_semiring(o.semiring), o.along == "k"
    algebra = ring.over(dtype_of(x.dtype))
    shape = (len(ends), x.shape[1], w.shape[1]) if by_k else (x.shape[0], w.shape[-1])
    results = (jax.ShapeDtypeStruct(shape, algebra.result.numpy),)
    definition = partial(exported.grouped_product, algebra, by_k)

    def host(*operands: Any) -> Any:
        return (groups.grouped_matmul(*operands, along=o.along, semiring=ring, precision=o.precision),)

    @jax.custom_jvp
    @jax.custom_batching.sequential_vmap
    def product(*operands: Any) -> Any:
        return operation(partial(on_host, host), definition, results, *operands)[0]

    @product.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        if not is_plus_times(ring):
            raise UsageError(f"groups over {ring} have no gradient: {OUTSIDE}")
        (x, w, ends), (tx, tw, _) = primals, tangents
        return product(*primals), definition(tx, w, ends)[0] + definition(x, tw, ends)[0]

    return product(x, w, ends)


def scatter_rows(y: Any, rows: Any, count: int, weights: Any) -> Any:
    """`tw.scatter_rows` inside jit, grad and vmap, in JAX's own operations."""
    y, rows = jnp.asarray(y), jnp.asarray(rows)
    wide = jnp.promote_types(y.dtype, jnp.float32) if jnp.issubdtype(y.dtype, jnp.floating) else y.dtype
    terms = y.astype(wide) if weights is None else y.astype(wide) * jnp.asarray(weights)[:, None].astype(wide)
    place = jnp.where(rows < 0, count, rows)
    return jnp.zeros((count, y.shape[1]), wide).at[place].add(terms, mode="drop").astype(y.dtype)
