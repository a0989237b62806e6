"""JAX under `jit`, `vmap` and `grad`, on the CPU: the traced program calls back to the host for the product.

Outside of them a JAX array needs none of this (`arrays/jax_library.py`). On a card a callback would carry every operand
through the host, which is no speed at all, so there `tw.matmul` asks to be called outside of jit.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import jax
import numpy as np

from tilewise import api
from tilewise.algebra.builtin import SEMIRINGS, find_semiring
from tilewise.algebra.dtypes import dtype_of, promote
from tilewise.algebra.semiring import Semiring
from tilewise.errors import UsageError
from tilewise.options import Options
from tilewise.shapes import product_shape


def matmul(
    M: Any,
    N: Any,
    *,
    semiring: str | Semiring = "plus_times",
    precision: str = "high",
    return_arg: bool = False,
    nonnegative: bool = False,
) -> Any:
    """`tw.matmul` of values that JAX is tracing; on the CPU the promise of `nonnegative` changes nothing."""
    if jax.default_backend() != "cpu":
        raise UsageError(
            f"M is being traced by jax.jit or kin for {jax.default_backend()}, where a callback would carry it through "
            "the host: call tilewise outside of jit, or jit with jax.default_device(jax.devices('cpu')[0])"
        )
    ring = find_semiring(semiring)
    if return_arg:
        return _call(M, N, ring, precision, True)
    return _differentiable(ring, precision)(M, N)


@lru_cache(maxsize=256)
def _differentiable(ring: Semiring, precision: str) -> Any:
    """The product over one semiring as a function of M and N that JAX can differentiate."""
    plain = (ring.add, ring.mul) == (SEMIRINGS["plus_times"].add, SEMIRINGS["plus_times"].mul)

    @jax.custom_vjp
    def product(M: Any, N: Any) -> Any:
        return _call(M, N, ring, precision, False)

    def forward(M: Any, N: Any) -> Any:
        if not plain:
            raise UsageError(
                f"in JAX tilewise has gradients for plus_times, not for {ring}: in PyTorch it has them all"
            )
        return product(M, N), (M, N)

    def backward(saved: Any, dP: Any) -> Any:
        M, N = saved
        rows, cols = M[None] if M.ndim == 1 else M, N[:, None] if N.ndim == 1 else N
        dP = dP[..., None] if N.ndim == 1 else dP
        dP = dP[..., None, :] if M.ndim == 1 else dP
        dM, dN = product(dP, _turned(cols)), product(_turned(rows), dP)
        return _summed_to(dM, rows.shape).reshape(M.shape).astype(M.dtype), _summed_to(dN, cols.shape).reshape(
            N.shape
        ).astype(N.dtype)

    product.defvjp(forward, backward)
    return product


def _turned(x: Any) -> Any:
    return x.swapaxes(-1, -2)


def _summed_to(x: Any, shape: tuple[int, ...]) -> Any:
    """Summed over the axes that broadcasting had stretched."""
    x = x.sum(tuple(range(x.ndim - len(shape))))
    folded = tuple(axis for axis, size in enumerate(shape) if size == 1 != x.shape[axis])
    return x.sum(folded, keepdims=True)


def _call(M: Any, N: Any, ring: Semiring, precision: str, return_arg: bool) -> Any:
    shape = product_shape(M.shape, N.shape).product
    result = ring.over(promote(dtype_of(M.dtype), dtype_of(N.dtype))).result.numpy
    made: Any = jax.ShapeDtypeStruct(shape, result)
    if return_arg:
        made = (made, jax.ShapeDtypeStruct(shape, np.dtype("int32")))
    host = partial(_on_the_host, ring=ring, precision=precision, return_arg=return_arg)
    vectors = M.ndim == 1 or N.ndim == 1  # a batch of vectors would look like a matrix
    how = "sequential" if vectors else "expand_dims"
    return jax.pure_callback(host, made, M, N, vmap_method=how)


def _on_the_host(M: Any, N: Any, ring: Semiring, precision: str, return_arg: bool) -> Any:
    done = api.matmul(np.asarray(M), np.asarray(N), semiring=ring, precision=precision, return_arg=return_arg)
    if not return_arg:
        return np.asarray(done)
    return np.asarray(done[0]), np.asarray(done[1]).astype(np.int32)


def traced_matmul(M: Any, N: Any, o: Options) -> Any:
    """`tw.matmul` inside jit and kin: every keyword is honoured or refused."""
    o.refuse("are not known inside jax.jit: apply them to the product", "alpha", "bias", "activation")
    why = "have no meaning inside jax.jit and kin: leave them out"
    o.refuse(why, "out", "accumulate", "kernel", "tile", "dtype", "scales")
    if o.device not in ("auto", "cpu"):
        raise UsageError(f"device={o.device!r} was asked for inside jax.jit, where a product stays where JAX puts it")
    return matmul(M, N, semiring=o.semiring, precision=o.precision, return_arg=o.return_arg, nonnegative=o.nonnegative)
