"""Arrays of any other library, by the common protocols: DLPack and the CUDA array interface.

The result is made by the array's namespace if it has one (the array API standard's `from_dlpack`); otherwise it is a
NumPy array on the CPU and a DeviceArray on a card.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.algebra.dtypes import dtype_of
from tilewise.arrays.card import INSTALL, check_on_card
from tilewise.arrays.device_array import HostOrDevice
from tilewise.arrays.extent import check_extent
from tilewise.arrays.labelled import check_plain
from tilewise.arrays.numpy_library import NUMPY
from tilewise.arrays.operand import Operand, dense_strides
from tilewise.errors import DeviceError, DtypeError

DLPACK_CPU, DLPACK_CUDA = 1, 2


class ExchangeLibrary(HostOrDevice):
    def __init__(self, name: str, namespace: Any) -> None:
        self.name = name
        self.namespace = namespace

    def operand(self, array: Any, role: str) -> Operand:
        check_plain(array, role)
        if hasattr(array, "__cuda_array_interface__"):
            return card_operand(array, self, role)
        kind = int(array.__dlpack_device__()[0])
        if kind == DLPACK_CUDA:
            return card_operand(array, self, role)
        if kind != DLPACK_CPU:
            raise DeviceError(
                f"{role} is on a DLPack device of type {kind}: tilewise works on the CPU and on CUDA cards"
            )
        try:
            host = np.from_dlpack(array)
        except (BufferError, RuntimeError, TypeError, ValueError, OverflowError) as error:
            raise DtypeError(f"{role} cannot be read through DLPack: {error}") from None
        check_extent(host, role)
        return NUMPY.wrap(host, self)

    def deliver(self, product: Operand) -> Any:
        made = product.array if product.host is None else product.host
        make = getattr(self.namespace, "from_dlpack", None)
        return make(made) if make else made


def exchange_library(array: Any) -> ExchangeLibrary:
    namespace = getattr(array, "__array_namespace__", None)
    return ExchangeLibrary(type(array).__module__.partition(".")[0], namespace() if namespace else None)


def card_operand(array: Any, library: Any, role: str) -> Operand:
    """An array on a card, through cuda.core's view of both protocols."""
    try:
        from cuda.core.utils import StridedMemoryView
    except ImportError:
        raise DeviceError(f"{role} is on a card, which needs the CUDA packages: {INSTALL}") from None
    try:
        view = StridedMemoryView.from_any_interface(array, stream_ptr=-1)
        dtype, shape, strides = dtype_of(view.dtype), tuple(view.shape), view.strides
    except (BufferError, RuntimeError, TypeError, ValueError, OverflowError, NotImplementedError) as error:
        raise DtypeError(f"{role} cannot be read on the card: {error}") from None
    if strides is None:
        strides = dense_strides(shape)
    made = Operand(
        array, library, f"cuda:{view.device_id}", dtype, shape, tuple(strides), int(view.ptr), None, not view.readonly
    )
    check_on_card(*made.extent, role)
    return made
