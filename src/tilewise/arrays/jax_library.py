"""JAX arrays, outside of jit. Reached only when jax is already imported. They are immutable, so they take no `out`."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import FLOAT8, DType, dtype_of
from tilewise.arrays.device_array import DEVICE_ARRAYS
from tilewise.arrays.numpy_library import NUMPY
from tilewise.arrays.operand import Operand
from tilewise.errors import UsageError
from tilewise.system.imported import imported


class JaxLibrary:
    name = "jax"

    def operand(self, array: Any, role: str) -> Operand:
        jax = sys.modules["jax"]
        if isinstance(array, jax.core.Tracer):
            raise UsageError(f"{role} is being traced by jax.jit or jax.grad: call this outside of them")
        if len(array.devices()) != 1:
            raise UsageError(f"{role} is spread over {len(array.devices())} devices: gather it first")
        (device,) = array.devices()
        if device.platform == "cpu":
            return NUMPY.wrap(np.asarray(array), self)
        array.block_until_ready()  # JAX works on streams of its own
        shape = tuple(array.shape)
        strides = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
        pointer = int(array.unsafe_buffer_pointer())
        return Operand(array, self, f"cuda:{device.id}", dtype_of(array.dtype), shape, strides, pointer, None, False)

    def empty(self, shape: tuple[int, ...], dtype: DType, device: str) -> Operand:
        return NUMPY.empty(shape, dtype, device) if device == "cpu" else DEVICE_ARRAYS.empty(shape, dtype, device)

    def deliver(self, product: Operand) -> Any:
        jax = sys.modules["jax"]
        if product.host is not None:
            return jax.numpy.asarray(product.host)
        return jax.dlpack.from_dlpack(product.array)

    def stream(self, device: str) -> int:
        return 0


def alike(arrays: Sequence[Any]) -> list[Any]:
    """JAX's arrays of several dtypes in the one that JAX promotes them to, which is of 64 bits only where those are
    enabled. 8-bit floats stay and count as float32, as in every product. Other arrays stay too."""
    jax = imported("jax")
    held = [] if jax is None else [x for x in arrays if isinstance(x, jax.Array)]
    if jax is None or len(held) < len(arrays) or all(x.dtype == held[0].dtype for x in held):
        return list(arrays)
    jnp = jax.numpy
    common = jnp.result_type(*(jnp.float32 if x.dtype.name in FLOAT8 else x for x in held))
    return [x if x.dtype == common or x.dtype.name in FLOAT8 else x.astype(common) for x in held]


JAX = JaxLibrary()
