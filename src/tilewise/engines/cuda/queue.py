"""One launch with its arguments laid out: calling it queues it, as often as one likes.

Launches go straight to the driver: arguments are packed once, and what travels by value (the copy engine's
descriptors) can.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

from tilewise.engines.cuda.compile import load_kernel
from tilewise.errors import EngineError


@lru_cache(maxsize=1024)
def kernel_function(source: str, name: str, device: str, shared_bytes: int = 0) -> Any:
    """The kernel as the driver's function, allowed the dynamic shared memory it needs."""
    from cuda.bindings import driver

    code, function = driver.cuKernelGetFunction(load_kernel(source, name, device).handle)
    if not int(code) and shared_bytes:
        attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        code = driver.cuFuncSetAttribute(function, attribute, shared_bytes)[0]
    if int(code):
        raise EngineError(f"{name} cannot be loaded on {device} with {shared_bytes:,} bytes of shared memory: {code}")
    return function


class Launch:
    """A kernel function, its grid and block, and its arguments: ctypes values, structures, or the driver's own."""

    def __init__(
        self,
        function: Any,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        arguments: tuple[Any, ...],
        stream: Any,
        shared_bytes: int = 0,
    ) -> None:
        self._arguments = arguments  # kept alive: the driver reads them through the pointers below
        addresses = [a.getPtr() if hasattr(a, "getPtr") else ctypes.addressof(a) for a in arguments]
        self._pointers = (ctypes.c_void_p * len(addresses))(*addresses)
        sizes = ((*grid, 1, 1)[:3], (*block, 1, 1)[:3])
        self._call = (function, *sizes[0], *sizes[1], shared_bytes, stream.handle, ctypes.addressof(self._pointers), 0)
        self._words = f"{sizes[0]} blocks of {sizes[1]} threads"

    def __call__(self) -> None:
        from cuda.bindings import driver

        code = driver.cuLaunchKernel(*self._call)[0]
        if int(code):
            raise EngineError(f"the launch of {self._words} failed: {code}")
