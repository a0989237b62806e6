"""Products as operations of JAX: with derivatives of any order, batched by vmap, and compiled on the CPU to a call of
our kernel (`native.py`), or to a callback if a product takes more than one kernel.

An operation has two lowerings: `local` calls our code, in programs that run in this process; `portable` is XLA's own
operations (`exported.py`), for programs that `jax.export` writes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.extend.core
import numpy as np
from jax.interpreters import batching, mlir

from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import dtype_of, promote
from tilewise.algebra.semiring import Semiring
from tilewise.algebra.tangents import tangent, why_no_tangent
from tilewise.core.shapes import product_shape
from tilewise.dispatch import product as dispatch
from tilewise.errors import UsageError
from tilewise.jax import exported
from tilewise.jax.exported import OPERATORS
from tilewise.jax.native import product as native_product
from tilewise.jax.native import record_of

OUTSIDE = "keep it outside of jax.grad and jax.jvp, or jax.lax.stop_gradient its operands"
Results = tuple[jax.ShapeDtypeStruct, ...]

_operation = jax.extend.core.Primitive("tilewise")
_operation.multiple_results = True


def operation(local: Callable[..., Any], portable: Callable[..., Any], results: Results, *operands: Any) -> list[Any]:
    """Arrays of `results`' shapes: by `local(results, *operands)` in this process, by `portable(*operands)` in an
    exported program. A batch adds a first axis to all of them, of size 1 for operands without a batch."""
    return _operation.bind(*operands, local=local, portable=portable, results=results)


@_operation.def_impl
def _(*operands: Any, local: Callable[..., Any], portable: Any, results: Results) -> Any:
    return list(local(results, *operands))


@_operation.def_abstract_eval
def _(*operands: Any, local: Any, portable: Any, results: Results) -> Any:
    return [jax.core.ShapedArray(x.shape, x.dtype) for x in results]


def _lowered(context: Any, *operands: Any, local: Any, portable: Any, results: Results) -> Any:
    for_export = getattr(context.module_context.lowering_parameters, "for_export", False)
    return mlir.lower_fun(portable if for_export else partial(local, results), multiple_results=True)(
        context, *operands
    )


def _batch(operands: Any, axes: Any, *, local: Any, portable: Any, results: Results) -> Any:
    size = next(x.shape[axis] for x, axis in zip(operands, axes, strict=True) if axis is not None)
    wide = [x[None] if axis is None else jax.numpy.moveaxis(x, axis, 0) for x, axis in zip(operands, axes, strict=True)]
    whole = tuple(jax.ShapeDtypeStruct((size, *x.shape), x.dtype) for x in results)
    return operation(local, portable, whole, *wide), [0] * len(whole)


mlir.register_lowering(_operation, _lowered)
batching.primitive_batchers[_operation] = _batch


def on_host(function: Callable[..., Any], results: Results, *operands: Any) -> Any:
    """A function of NumPy arrays, called with values that JAX traces."""
    return jax.pure_callback(lambda *x: tuple(map(np.asarray, function(*map(np.asarray, x)))), results, *operands)


def matmul(
    M: Any,
    N: Any,
    *,
    semiring: str | Semiring = "plus_times",
    precision: str = "high",
    return_arg: bool = False,
    nonnegative: bool = False,
) -> Any:
    """`tw.matmul` of values that JAX traces; on the CPU `nonnegative` changes nothing."""
    check_place()
    return _differentiable(find_semiring(semiring), precision, return_arg)(M, N)


def check_place() -> None:
    """Raise UsageError in a trace for another platform than the CPU."""
    platform = _platform()
    if platform != "cpu":
        raise UsageError(
            f"M is being traced by jax.jit or kin for {platform}, where a callback would carry it through the host: "
            "call tilewise outside of jit, or jit with jax.default_device(jax.devices('cpu')[0])"
        )


def _platform() -> str:
    """The platform on which a traced program will run, as far as it is known while tracing."""
    device = jax.config.jax_default_device  # set by `with jax.default_device(…)`, which `default_backend` ignores
    if device is None:
        return str(jax.default_backend())
    return device if isinstance(device, str) else str(device.platform)


@lru_cache(maxsize=256)
def _differentiable(ring: Semiring, precision: str, return_arg: bool) -> Any:
    """The product over a semiring as a function of M and N with derivatives of any order; the winning k has none."""

    @jax.custom_jvp
    def product(M: Any, N: Any) -> Any:
        return _call(M, N, ring, precision, return_arg)

    @product.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        if return_arg:
            P, arg = product(*primals)
            return (P, arg), (_tangent(ring, primals, P, arg, tangents), np.zeros(arg.shape, jax.dtypes.float0))
        if ring.selective and why_no_tangent(OPERATORS, ring) is None:
            values, moved = jax.jvp(_differentiable(ring, precision, True), primals, tangents)
            return values[0], moved[0]
        P = product(*primals)
        return P, _tangent(ring, primals, P, None, tangents)

    return product


def _tangent(ring: Semiring, primals: Any, P: Any, arg: Any, tangents: Any) -> Any:
    """The tangent of P; vectors are treated as matrices."""
    M, N = primals

    def sides(x: Any, y: Any) -> tuple[Any, Any]:
        return (x[None] if M.ndim == 1 else x), (y[:, None] if N.ndim == 1 else y)

    def whole(x: Any) -> Any:
        x = x[..., None] if N.ndim == 1 else x
        return x[..., None, :] if M.ndim == 1 else x

    refused = why_no_tangent(OPERATORS, ring)
    if refused:
        raise UsageError(f"{refused}: {OUTSIDE}")
    held = None if arg is None else whole(arg)
    multiply = partial(jax.numpy.matmul, precision=jax.lax.Precision.HIGHEST)
    moved = tangent(OPERATORS, ring, multiply, *sides(M, N), whole(P), held, *sides(*tangents))
    return moved.astype(P.dtype).reshape(P.shape)


def _call(M: Any, N: Any, ring: Semiring, precision: str, return_arg: bool) -> Any:
    """The product as an operation on matrices with equal numbers of axes, so that a batch adds one axis to both."""
    shape = product_shape(M.shape, N.shape).product
    left, right = M[None] if M.ndim == 1 else M, N[:, None] if N.ndim == 1 else N
    axes = max(left.ndim, right.ndim)
    left, right = (x.reshape(*[1] * (axes - x.ndim), *x.shape) for x in (left, right))
    algebra = ring.over(promote(dtype_of(M.dtype), dtype_of(N.dtype)))
    kinds = (algebra.result.numpy, np.dtype("int32"))[: 1 + return_arg]
    whole = product_shape(left.shape, right.shape).product

    def local(results: Results, M: Any, N: Any) -> Any:
        record = record_of((M.shape, M.dtype), (N.shape, N.dtype), ring, precision, return_arg)
        if record is not None:
            return native_product(record, M, N, results[0].shape, results[0].dtype)
        return on_host(partial(_by_dispatch, ring, precision, return_arg), results, M, N)

    results = tuple(jax.ShapeDtypeStruct(whole, kind) for kind in kinds)
    made = operation(local, partial(exported.product, algebra, return_arg=return_arg), results, left, right)
    return tuple(x.reshape(shape) for x in made) if return_arg else made[0].reshape(shape)


def _by_dispatch(ring: Semiring, precision: str, return_arg: bool, M: Any, N: Any) -> Any:
    done = dispatch.matmul(M, N, semiring=ring, precision=precision, return_arg=return_arg)
    return (done[0], done[1].astype(np.int32)) if return_arg else (done,)
