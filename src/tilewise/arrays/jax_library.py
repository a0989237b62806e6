"""JAX arrays, outside of jit. Reached only when jax is already imported. They are immutable, so they take no `out`."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import DTYPES, FLOAT8, DType, dtype_of
from tilewise.arrays.device_array import HostOrDevice
from tilewise.arrays.numpy_library import NUMPY
from tilewise.arrays.operand import Operand, dense_strides
from tilewise.errors import UsageError


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

    def promote(self, m: DType, n: DType) -> DType:
        """JAX's rules: 64 bits only where those are enabled. 8-bit floats count as float32, as in every product."""
        wide = (DTYPES["float32"] if x.name in FLOAT8 else x for x in (m, n))
        return dtype_of(sys.modules["jax"].numpy.result_type(*(x.numpy for x in wide)))


JAX = JaxLibrary()
