"""CuPy arrays. Reached only when cupy is already imported."""

from __future__ import annotations

import sys
from typing import Any

from tilewise.algebra.dtypes import DType, dtype_of
from tilewise.arrays.card import check_on_card
from tilewise.arrays.operand import Library, Operand
from tilewise.core.shapes import reach, written
from tilewise.errors import DtypeError, ShapeError


class CupyLibrary(Library):
    name = "cupy"

    def operand(self, array: Any, role: str) -> Operand:
        if array.dtype.kind not in "biufc" and array.dtype.name != "bfloat16":
            raise DtypeError(f"{role} has dtype {array.dtype}, which holds no numbers")
        dtype = dtype_of(array.dtype)
        _check_memory(array, role)
        size = array.dtype.itemsize
        if any(stride % size for stride in array.strides):
            array = sys.modules["cupy"].ascontiguousarray(array)
        strides, card = tuple(stride // size for stride in array.strides), f"cuda:{array.device.id}"
        return Operand(array, self, card, dtype, tuple(array.shape), strides, int(array.data.ptr))

    def empty(self, shape: tuple[int, ...], dtype: DType, device: str) -> Operand:
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(int(device.partition(":")[2] or 0)):
            return self.operand(cupy.empty(shape, dtype.numpy), "out")

    def deliver(self, product: Operand) -> Any:
        return product.array

    def stream(self, device: str) -> int:
        return int(sys.modules["cupy"].cuda.get_current_stream(int(device.partition(":")[2] or 0)).ptr)


def reach_of(array: Any) -> tuple[int, int]:
    """Bytes from an array's first element to its lowest and past its highest one."""
    if 0 in array.shape:
        return (0, 0)
    low, high = reach(array.shape, array.strides)
    return (low, high + array.dtype.itemsize)


def _check_memory(array: Any, role: str) -> None:
    """With `as_strided` or a bare pointer an array of CuPy may claim memory that is not its own."""
    low, high = reach_of(array)
    memory, start = array.data.mem, int(array.data.ptr)
    if memory.__class__ is sys.modules["cupy"].cuda.UnownedMemory:
        check_on_card(start + low, start + high, role)
    elif start + low < memory.ptr or start + high > memory.ptr + memory.size:
        raise ShapeError(
            f"{role} is {written(array.shape)} and reaches from byte {start + low - memory.ptr:,} to "
            f"{start + high - memory.ptr:,} of memory on the card that has {memory.size:,}: its strides are wrong"
        )


CUPY = CupyLibrary()
