"""CuPy arrays. Reached only when cupy is already imported."""

from __future__ import annotations

import sys
from typing import Any

from tilewise.algebra.dtypes import DType, dtype_of
from tilewise.arrays.operand import Operand
from tilewise.errors import DtypeError


class CupyLibrary:
    name = "cupy"

    def operand(self, array: Any, role: str) -> Operand:
        if array.dtype.kind not in "biufc" and array.dtype.name != "bfloat16":
            raise DtypeError(f"{role} has dtype {array.dtype}, which holds no numbers")
        dtype = dtype_of(array.dtype)
        size = array.dtype.itemsize
        if any(stride % size for stride in array.strides):
            array = sys.modules["cupy"].ascontiguousarray(array)
        return Operand(
            array,
            self,
            f"cuda:{array.device.id}",
            dtype,
            tuple(array.shape),
            tuple(stride // size for stride in array.strides),
            int(array.data.ptr),
        )

    def empty(self, shape: tuple[int, ...], dtype: DType, device: str) -> Operand:
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(int(device.partition(":")[2] or 0)):
            return self.operand(cupy.empty(shape, dtype.numpy), "out")

    def deliver(self, product: Operand) -> Any:
        return product.array

    def stream(self, device: str) -> int:
        return int(sys.modules["cupy"].cuda.get_current_stream(int(device.partition(":")[2] or 0)).ptr)


CUPY = CupyLibrary()
