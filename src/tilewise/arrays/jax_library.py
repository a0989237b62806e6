"""JAX arrays, outside of jit. Reached only when jax is already imported. They are immutable, so they take no `out`."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import DType, dtype_of
from tilewise.arrays.device_array import DEVICE_ARRAYS
from tilewise.arrays.numpy_library import NUMPY
from tilewise.arrays.operand import Operand
from tilewise.errors import UsageError


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


JAX = JaxLibrary()
