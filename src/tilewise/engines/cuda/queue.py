"""One launch with its arguments laid out: calling it queues it, as often as one likes.

Launches go straight to the driver: arguments are packed once, and what travels by value (the copy engine's
descriptors) can.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from threading import Lock
from typing import Any, NamedTuple

from tilewise.engines.cuda.compile import load_kernel
from tilewise.errors import EngineError
from tilewise.plain_ways import arch_number


class Function(NamedTuple):
    """A kernel as the driver launches it. Holding it keeps the kernel on the card."""

    handle: Any
    kernel: Any


_loading = Lock()


def kernel_function(source: str, name: str, device: str, shared_bytes: int = 0) -> Function:
    """The kernel's function, allowed the dynamic shared memory it needs; loaded once, whoever asks at the same time."""
    with _loading:
        return _function(source, name, device, shared_bytes)


@lru_cache(maxsize=1024)
def _function(source: str, name: str, device: str, shared_bytes: int) -> Function:
    driver = _driver()
    kernel = load_kernel(source, name, device)
    code, handle = driver.cuKernelGetFunction(kernel.handle)
    if not int(code) and shared_bytes:
        attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        code = driver.cuFuncSetAttribute(handle, attribute, shared_bytes)[0]
    if int(code):
        raise EngineError(f"{name} cannot be loaded on {device} with {shared_bytes:,} bytes of shared memory: {code}")
    return Function(handle, kernel)


def starts_early(arch: str) -> bool:
    """Whether a card can start a kernel while the one queued before it ends."""
    return arch_number(arch) >= 90


class Launch:
    """A kernel function, its grid and block, and its arguments: ctypes values, structures, or the driver's own."""

    def __init__(
        self,
        function: Function,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        arguments: tuple[Any, ...],
        stream: Any,
        shared_bytes: int = 0,
        overlap: bool = False,
    ) -> None:
        """`overlap`: the kernel may start while the one queued before it ends, and waits for its results by itself."""
        self._held = function, arguments  # the driver has only addresses of them
        addresses = [a.getPtr() if hasattr(a, "getPtr") else ctypes.addressof(a) for a in arguments]
        self._pointers = (ctypes.c_void_p * len(addresses))(*addresses)
        sizes = ((*grid, 1, 1)[:3], (*block, 1, 1)[:3])
        self._words = f"{sizes[0]} blocks of {sizes[1]} threads"
        pointers = ctypes.addressof(self._pointers)
        if overlap:
            self._launch, self._call = _overlapping(function.handle, *sizes, shared_bytes, stream, pointers)
        else:
            self._launch = _driver().cuLaunchKernel
            self._call = (function.handle, *sizes[0], *sizes[1], shared_bytes, stream.handle, pointers, 0)

    def __call__(self) -> None:
        code = self._launch(*self._call)[0]
        if code:
            raise EngineError(f"the launch of {self._words} failed: {code}")


class Fill:
    """A word on the card is set to 0."""

    def __init__(self, pointer: int, stream: Any) -> None:
        self._call = (pointer, 0, 1, stream.handle)

    def __call__(self) -> None:
        code = _driver().cuMemsetD32Async(*self._call)[0]
        if code:
            raise EngineError(f"a word on the card could not be set to 0: {code}")


def _overlapping(
    function: Any, grid: tuple[int, ...], block: tuple[int, ...], shared_bytes: int, stream: Any, pointers: int
) -> tuple[Any, tuple[Any, ...]]:
    driver = _driver()
    attribute = driver.CUlaunchAttribute()
    attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    attribute.value.programmaticStreamSerializationAllowed = 1
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = grid
    config.blockDimX, config.blockDimY, config.blockDimZ = block
    config.sharedMemBytes, config.hStream = shared_bytes, stream.handle
    config.attrs, config.numAttrs = [attribute], 1
    return driver.cuLaunchKernelEx, (config, function, pointers, 0)


def _driver() -> Any:
    from cuda.bindings import driver

    return driver
