"""JAX under `jit`, `vmap` and `grad`, on the CPU: the traced program calls our kernel itself (`native.py`), or a
host callback, where a product takes more than a kernel (operands that are converted first).

Outside of them a JAX array needs none of this (`arrays/jax_library.py`). On a card a callback would copy every operand
to the host and back, so there `tw.matmul` raises an error: call it outside of jit.
"""

from __future__ import annotations

from functools import lru_cache, partial, reduce
from typing import Any

import jax
import jax.custom_batching
import numpy as np

from tilewise.algebra.builtin import find_semiring, is_plus_times
from tilewise.algebra.dtypes import FLOAT8, dtype_given, dtype_of, promote
from tilewise.algebra.semiring import Semiring
from tilewise.algebra.tangents import tangent, why_no_tangent
from tilewise.algebra.to_operators import Operators
from tilewise.arrays.jax_library import JAX
from tilewise.core.epilogue import check_fits, epilogue_of
from tilewise.core.options import Options
from tilewise.core.shapes import product_shape
from tilewise.dispatch import product as dispatch
from tilewise.dispatch.bind import reachable
from tilewise.errors import ShapeError, UsageError
from tilewise.jax.native import product as native_product
from tilewise.jax.native import record_of

OPERATORS = Operators(jax.numpy)
ACTIVATIONS = {
    "relu": jax.nn.relu,
    "gelu": partial(jax.nn.gelu, approximate=False),
    "gelu_tanh": jax.nn.gelu,
    "silu": jax.nn.silu,
}


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
    ring = find_semiring(semiring)
    return _differentiable(ring, precision, return_arg)(M, N)


def check_place() -> None:
    """Refuse a trace for another platform than the CPU."""
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
    """The product over one semiring as a function of M and N that JAX can differentiate any number of times; the
    winning k has no derivative."""

    @jax.custom_jvp
    def product(M: Any, N: Any) -> Any:
        return _call(M, N, ring, precision, return_arg)

    @product.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        if return_arg:
            P, arg = product(*primals)
            return (P, arg), (_moved(ring, primals, P, arg, tangents), np.zeros(arg.shape, jax.dtypes.float0))
        if ring.selective and why_no_tangent(OPERATORS, ring) is None:
            values, moved = jax.jvp(_differentiable(ring, precision, True), primals, tangents)
            return values[0], moved[0]
        P = product(*primals)
        return P, _moved(ring, primals, P, None, tangents)

    return product


def _moved(ring: Semiring, primals: Any, P: Any, arg: Any, tangents: Any) -> Any:
    """The tangent of P; vectors are given an axis."""
    M, N = primals

    def sides(x: Any, y: Any) -> tuple[Any, Any]:
        return (x[None] if M.ndim == 1 else x), (y[:, None] if N.ndim == 1 else y)

    def whole(x: Any) -> Any:
        x = x[..., None] if N.ndim == 1 else x
        return x[..., None, :] if M.ndim == 1 else x

    refused = why_no_tangent(OPERATORS, ring)
    if refused:
        raise UsageError(f"{refused}: keep it outside of jax.grad and jax.jvp, or jax.lax.stop_gradient its operands")
    held = None if arg is None else whole(arg)
    multiply = partial(jax.numpy.matmul, precision=jax.lax.Precision.HIGHEST)
    moved = tangent(OPERATORS, ring, multiply, *sides(M, N), whole(P), held, *sides(*tangents))
    return moved.astype(P.dtype).reshape(P.shape)


def _call(M: Any, N: Any, ring: Semiring, precision: str, return_arg: bool) -> Any:
    """Vectors become matrices, so that a batch of them is a stack."""
    shape = product_shape(M.shape, N.shape).product
    left, right = M[None] if M.ndim == 1 else M, N[:, None] if N.ndim == 1 else N
    made = _batched(ring, precision, return_arg)(left, right)
    return tuple(x.reshape(shape) for x in made) if return_arg else made.reshape(shape)


@lru_cache(maxsize=256)
def _batched(ring: Semiring, precision: str, return_arg: bool) -> Any:
    """The product of stacks of matrices; `vmap` adds one axis to the stack."""

    @jax.custom_batching.custom_vmap
    def product(M: Any, N: Any) -> Any:
        shape = product_shape(M.shape, N.shape).product
        result = ring.over(promote(dtype_of(M.dtype), dtype_of(N.dtype))).result.numpy
        record = record_of((M.shape, M.dtype), (N.shape, N.dtype), ring, precision, return_arg)
        if record is not None:
            return native_product(record, M, N, shape, result)
        made: Any = jax.ShapeDtypeStruct(shape, result)
        if return_arg:
            made = (made, jax.ShapeDtypeStruct(shape, np.dtype("int32")))
        host = partial(_on_the_host, ring=ring, precision=precision, return_arg=return_arg)
        return jax.pure_callback(host, made, M, N)

    @product.def_vmap
    def _(size: int, batched: Any, M: Any, N: Any) -> Any:
        axes = max(M.ndim - batched[0], N.ndim - batched[1])
        wide = (_stacked(x, axes) if yes else x for x, yes in zip((M, N), batched, strict=True))
        return product(*wide), (True, True) if return_arg else True

    return product


def _stacked(x: Any, axes: int) -> Any:
    """A batch of stacks as one stack of `axes` axes and that of the batch before them."""
    return x.reshape(x.shape[0], *[1] * (axes + 1 - x.ndim), *x.shape[1:])


def _on_the_host(M: Any, N: Any, ring: Semiring, precision: str, return_arg: bool) -> Any:
    done = dispatch.matmul(np.asarray(M), np.asarray(N), semiring=ring, precision=precision, return_arg=return_arg)
    if not return_arg:
        return np.asarray(done)
    return np.asarray(done[0]), np.asarray(done[1]).astype(np.int32)


def alike(*arrays: Any) -> list[Any]:
    """Arrays as JAX's, in the dtype that JAX promotes them to; 8-bit floats stay, kernels widen them."""
    held = [jax.numpy.asarray(x) for x in arrays]
    common = reduce(JAX.promote, (dtype_of(x.dtype) for x in held)).numpy
    return [x if x.dtype.name in FLOAT8 else x.astype(common) for x in held]


def check_device(device: str) -> None:
    if device not in ("auto", "cpu"):
        raise UsageError(f"device={device!r} was requested inside jax.jit, where a product stays where JAX puts it")


def jitted_matmul(M: Any, N: Any, o: Options) -> Any:
    """`tw.matmul` inside jit, grad and vmap: every keyword is applied or refused."""
    why = "have no meaning inside jax.jit and kin: leave them out"
    o.refuse(why, "out", "accumulate", "kernel", "tile", "scales", "memory")
    check_device(o.device)
    M, N = alike(M, N)
    if o.dtype is not None:
        wanted = reachable(dtype_given(o.dtype), JAX.promote(dtype_of(M.dtype), dtype_of(N.dtype)), JAX).numpy
        M, N = M.astype(wanted), N.astype(wanted)
    if o.has_epilogue and o.return_arg:
        raise UsageError("return_arg=True goes with min and max; alpha=, bias= and activation= exclude it")
    P = matmul(M, N, semiring=o.semiring, precision=o.precision, return_arg=o.return_arg, nonnegative=o.nonnegative)
    return _with_epilogue(P, o) if o.has_epilogue else P


def _with_epilogue(P: Any, o: Options) -> Any:
    """activation(alpha · P + bias), in the dtype of P."""
    ring, bias = find_semiring(o.semiring), None if o.bias is None else jax.numpy.asarray(o.bias)
    epilogue = epilogue_of(o.alpha, None if bias is None else dtype_of(bias.dtype), o.activation)
    check_fits(epilogue, ring, is_plus_times(ring), dtype_of(P.dtype))
    if bias is not None and bias.shape != P.shape[-1:]:
        raise ShapeError(f"bias is {bias.shape}, and P has {P.shape[-1]} columns: pass one number for each of them")
    made = P * jax.numpy.asarray(o.alpha, P.dtype)
    made = made if bias is None else made + bias.astype(P.dtype)
    return ACTIVATIONS[o.activation](made) if o.activation else made
