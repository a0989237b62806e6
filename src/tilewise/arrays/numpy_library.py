"""NumPy arrays, and everything that NumPy converts to one: lists, memory views, nested sequences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import DTYPES, FLOAT8, DType, dtype_of
from tilewise.arrays.extent import check_extent
from tilewise.arrays.labelled import as_host, check_plain, check_whole
from tilewise.arrays.operand import Library, Operand
from tilewise.errors import DtypeError, OutOfMemoryError, UsageError
from tilewise.system.imported import imported
from tilewise.system.memory import check_room

SMALL = 64 * 1024 * 1024  # bytes of a product that are allocated without a check of free memory, which takes 0.1 ms


class NumpyLibrary(Library):
    name = "numpy"

    def operand(self, array: Any, role: str) -> Operand:
        if array.__class__ is not np.ndarray:
            self._check_class(array, role)
        host = as_host(array, role)
        # bfloat16 and float8 are void to NumPy
        if host.dtype.kind in "OSUVMm" and not (host.dtype.name == "bfloat16" or host.dtype.name in FLOAT8):
            raise DtypeError(f"{role} has dtype {host.dtype}, which holds no numbers: convert it, say to float64")
        check_extent(host, role)
        return self.wrap(host, self)

    def _check_class(self, array: Any, role: str) -> None:
        """A UsageError for arrays whose mask, labels or sparsity a product would lose, and lazy ones."""
        masked = imported("numpy.ma")  # imported if such an array exists
        if masked is not None and isinstance(array, masked.MaskedArray):
            raise UsageError(f"{role} is a masked array, and a product would lose its mask: pass {role}.filled(value)")
        check_whole(array, role)
        check_plain(array, role)

    def wrap(self, host: np.ndarray[Any, np.dtype[Any]], library: Any) -> Operand:
        """A NumPy array as an Operand of the library it came from."""
        given, dtype, writable = host, dtype_of(host.dtype), bool(host.flags.writeable)
        if dtype.name in FLOAT8:
            with np.errstate(all="ignore"):
                host, dtype = host.astype(np.float32), DTYPES["float32"]
        elif any(stride % host.dtype.itemsize for stride in host.strides) or not host.dtype.isnative:
            host = host.astype(host.dtype.newbyteorder("="), order="C")  # a field of packed records, or foreign bytes
        strides = tuple(stride // host.dtype.itemsize for stride in host.strides)
        address, converted = given.ctypes.data, host is not given
        return Operand(given, library, "cpu", dtype, host.shape, strides, address, host, writable, converted)

    def empty(self, shape: tuple[int, ...], dtype: DType, device: str) -> Operand:
        check_product_room(shape, dtype)
        try:
            return self.wrap(np.empty(shape, dtype.numpy), self)
        except (ValueError, MemoryError):
            needs = math.prod(shape) * dtype.itemsize
            raise OutOfMemoryError(f"a product of {needs:,} bytes cannot be allocated: multiply in pieces") from None

    def deliver(self, product: Operand) -> Any:
        return product.memory if product.shape else product.memory[()]  # two vectors make a number, as in NumPy


def check_product_room(shape: tuple[int, ...], dtype: DType) -> None:
    """Refuse a product larger than the host's memory: a system that overcommits would kill the process later."""
    needs = math.prod(shape) * dtype.itemsize
    if needs > SMALL:
        what = f"a product of {'×'.join(map(str, shape))} {dtype}"
        check_room(needs, what, hint=": multiply in pieces, or stream it with memory=")


NUMPY = NumpyLibrary()
