"""JAX arrays, outside of jit. Reached only when jax is already imported. They are immutable, so they take no `out`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import FLOAT8, dtype_of
from tilewise.arrays.device_array import HostOrDevice
from tilewise.arrays.numpy_library import NUMPY
from tilewise.arrays.operand import Operand, dense_strides
from tilewise.errors import UsageError
from tilewise.system.imported import imported


class JaxLibrary(HostOrDevice):
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
        array.block_until_ready()  # JAX has its own streams
        shape = tuple(array.shape)
        pointer = int(array.unsafe_buffer_pointer())
        card, dtype = f"cuda:{device.id}", dtype_of(array.dtype)
        return Operand(array, self, card, dtype, shape, dense_strides(shape), pointer, None, False)

    def deliver(self, product: Operand) -> Any:
        jax = sys.modules["jax"]
        if product.host is not None:
            return jax.numpy.asarray(product.host)
        return jax.dlpack.from_dlpack(product.array)


def alike(arrays: Sequence[Any]) -> list[Any]:
    """JAX arrays converted to the dtype that JAX promotes them to, of 64 bits only where those are enabled. 8-bit
    floats stay and count as float32, as in every product. Other arrays stay too."""
    jax = imported("jax")
    held = [] if jax is None else [x for x in arrays if isinstance(x, jax.Array)]
    if jax is None or len(held) < len(arrays) or all(x.dtype == held[0].dtype for x in held):
        return list(arrays)
    jnp = jax.numpy
    common = jnp.result_type(*(jnp.float32 if x.dtype.name in FLOAT8 else x for x in held))
    return [x if x.dtype == common or x.dtype.name in FLOAT8 else x.astype(common) for x in held]


JAX = JaxLibrary()
