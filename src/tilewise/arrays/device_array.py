"""An array on a card, for users with neither CuPy nor PyTorch.

    with tw.to_device(M) as Md, tw.to_device(N) as Nd:
        P = tw.matmul(Md, Nd).numpy()

It supports DLPack and the CUDA array interface, is copied to the host by `.numpy()`, and frees its memory with
`.free()`, at the end of a `with` block, or with its last reference.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import DType, dtype_of
from tilewise.arrays.card import allocate, card_number, default_stream
from tilewise.arrays.numpy_library import NUMPY
from tilewise.arrays.operand import Library, Operand, dense_strides
from tilewise.errors import DeviceError


class DeviceArray:
    """A row-major array in a card's memory.

    >>> tw.to_device(np.ones((2, 3))).shape  # with a card
    (2, 3)
    """

    def __init__(self, shape: tuple[int, ...], dtype: DType, device: str = "cuda:0") -> None:
        self.shape = shape
        self.device = device
        self._dtype = dtype
        self.nbytes = math.prod(shape) * dtype.itemsize
        self._stream = default_stream(device)
        self._buffer = allocate(max(self.nbytes, 1), device, self._stream)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._dtype.numpy

    @property
    def pointer(self) -> int:
        if self._buffer is None:
            raise DeviceError("this DeviceArray has been freed")
        return int(self._buffer.handle)

    def numpy(self) -> np.ndarray[Any, np.dtype[Any]]:
        """A copy in the host's memory."""
        from cuda.core import Buffer

        host = np.empty(self.shape, self.dtype)
        if self.nbytes:
            self.pointer  # noqa: B018  refuses a freed array
            self._buffer.copy_to(Buffer.from_handle(host.ctypes.data, host.nbytes, owner=host), stream=self._stream)
        self._stream.sync()
        return host

    def copy_from(self, host: np.ndarray[Any, np.dtype[Any]]) -> None:
        """Fill it from the host's memory."""
        from cuda.core import Buffer

        host = np.ascontiguousarray(host, self.dtype)
        if self.nbytes:
            self.pointer  # noqa: B018
            self._buffer.copy_from(Buffer.from_handle(host.ctypes.data, host.nbytes, owner=host), stream=self._stream)
            self._stream.sync()  # the host array may be freed when this returns

    def free(self) -> None:
        """Free the memory now. A second call does nothing."""
        if self._buffer is not None:
            buffer, self._buffer = self._buffer, None
            buffer.close(self._stream)

    def __enter__(self) -> DeviceArray:
        return self

    def __exit__(self, *_: object) -> None:
        self.free()

    def __repr__(self) -> str:
        state = "freed" if self._buffer is None else self.device
        return f"DeviceArray({'x'.join(map(str, self.shape))} {self._dtype}, {state})"

    def _view(self) -> Any:
        from cuda.core.utils import StridedMemoryView

        self.pointer  # noqa: B018
        return StridedMemoryView.from_buffer(self._buffer, self.shape, dtype=self.dtype)

    def __dlpack__(self, **how: Any) -> Any:
        self._stream.sync()  # the consumer may use any stream
        return self._view().__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, int(self.device.partition(":")[2] or 0))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer if self.nbytes else 0, False),
            "version": 3,
            "stream": 1,
        }


class DeviceArrayLibrary(Library):
    name = "tilewise"

    def operand(self, array: DeviceArray, role: str) -> Operand:
        strides = dense_strides(array.shape)
        return Operand(array, self, array.device, dtype_of(array.dtype), array.shape, strides, array.pointer)

    def empty(self, shape: tuple[int, ...], dtype: DType, device: str) -> Operand:
        return self.operand(DeviceArray(shape, dtype, device), "out")

    def deliver(self, product: Operand) -> Any:
        return product.array


DEVICE_ARRAYS = DeviceArrayLibrary()


class HostOrDevice(Library):
    """A library whose products are computed into NumPy arrays or DeviceArrays and then converted."""

    def empty(self, shape: tuple[int, ...], dtype: DType, device: str) -> Operand:
        return NUMPY.empty(shape, dtype, device) if device == "cpu" else DEVICE_ARRAYS.empty(shape, dtype, device)


def to_device(array: Any, device: str = "cuda:0") -> DeviceArray:
    """A copy of a host array on a card.

    >>> M = tw.to_device(np.ones((2, 3)))  # with a card
    >>> tw.matmul(M, tw.to_device(np.ones((3, 1)))).numpy()
    array([[3.],
           [3.]])
    """
    operand = NUMPY.operand(array, "array")
    made = DeviceArray(operand.shape, operand.dtype, f"cuda:{card_number(device)}")
    made.copy_from(operand.memory)
    return made
