"""Kernels onto a card: one by one as they are launched, or a whole set that is built, behind the first calls.

Loading a kernel takes an H200's host 0.2 to 0.3 ms, and four of five new shapes need one that no shape before needed. A
set that has been built is small (16 MiB of the card for 500 kernels): a thread loads it once a process has met several
shapes.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import re
from threading import Event, Lock, Thread
from time import perf_counter
from typing import Any, NamedTuple

from tilewise.arrays.card import driver, make_current
from tilewise.backends.cuda.bundles import machine_code, set_of
from tilewise.backends.cuda.compile import compile_source, known, load_kernel
from tilewise.backends.cuda.device import arch_of
from tilewise.backends.cuda.native import driver_library
from tilewise.errors import EngineError

RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED
KERNEL = re.compile(r"__global__\s+void\s+(?:__\w+__\s*\((?:[^()]|\([^()]*\))*\)\s*|[A-Z]+\s+)*((?!__)\w+)\s*\(")


class LoadedFunction(NamedTuple):
    """A kernel as the driver launches it. Holding it keeps the kernel on the card."""

    handle: int
    kernel: Any


REST = 3  # times what a kernel took
KEPT = 4096  # kernels that stay on a card though no launcher holds them; those loaded first go first
_loading = Lock()
_functions: dict[tuple[str, str, str, int], LoadedFunction] = {}  # with the shared memory they are allowed
_kernels: dict[tuple[str, str, str], LoadedFunction] = {}
_room: dict[int, int] = {}  # dynamic shared memory that a function is allowed, by its handle


def kernel_function(source: str, name: str, device: str, shared_bytes: int = 0) -> LoadedFunction:
    """The kernel's function, allowed the dynamic shared memory that it needs; loaded once, also by several threads. One
    that is loaded is returned without a lock."""
    key = source, name, device, shared_bytes
    found = _functions.get(key)
    if found is not None:
        return found
    with _loading:
        found = _functions.get(key)
        if found is None:
            found = _kernels.get((source, name, device)) or _kernel(
                compile_source(source, arch_of(device)), source, name, device
            )
            _allow(found, name, device, shared_bytes)
            _keep(_functions, key, found)
    return found


def _keep(held: dict[Any, LoadedFunction], key: Any, function: LoadedFunction) -> None:
    if len(held) >= KEPT:
        for old in [*held][: KEPT // 4]:
            del held[old]
    held[key] = function


def _allow(function: LoadedFunction, name: str, device: str, shared_bytes: int) -> None:
    """Never less than before: launchers that are kept may need what another one does not."""
    code = 0
    if shared_bytes > _room.get(function.handle, 0):
        attribute = driver().CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        code = driver().cuFuncSetAttribute(function.handle, attribute, shared_bytes)[0]
    if int(code):
        raise EngineError(f"{name} cannot be loaded on {device} with {shared_bytes:,} bytes of shared memory: {code}")
    _room[function.handle] = max(shared_bytes, _room.get(function.handle, 0))


def _kernel(code: bytes, source: str, name: str, device: str) -> LoadedFunction:
    """With `_loading` held."""
    kernel = load_kernel(code, name, device)
    status, handle = driver().cuKernelGetFunction(kernel.handle)
    if int(status):
        raise EngineError(f"{name} cannot be loaded on {device}: {status}")
    found = LoadedFunction(int(handle), kernel)
    _room.pop(found.handle, None)  # of a kernel that was there before
    _keep(_kernels, (source, name, device), found)
    return found


def kernel_names(source: str) -> list[str]:
    """The kernels that a text defines."""
    return KERNEL.findall(source)


_stopping = Event()
_threads: dict[tuple[str, str], Thread] = {}


def load_behind(kind: str, device: str, again: bool = False) -> Thread:
    """Load what bundles have of a kind, in a thread of its own: once for each kind and card; or `again`, and without
    pauses, for a caller that waits for it."""
    held = _threads.get((kind, device))
    if held is not None and not again:
        return held
    thread = _threads[kind, device] = Thread(target=_load_all, args=(kind, device, not again), daemon=True)
    thread.start()
    return thread


def is_loading(kind: str, device: str) -> bool:
    """Whether `load_behind` was called for these, now or before."""
    return (kind, device) in _threads


def _load_all(kind: str, device: str, rests: bool) -> None:
    """One by one, so that no call waits for more than one of them, and with pauses three times as long as the last one
    took: calls need the GIL meanwhile. A kernel that fails here is loaded again by the call that needs it."""
    try:
        make_current(device)
        mode = ctypes.c_int(RELAXED)  # else another thread's capture of a graph would be broken off
        driver_library().cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
        arch, since = arch_of(device), perf_counter()
        for source, names in set_of(kind, arch):
            for name in names:
                with _loading:
                    if (source, name, device) not in _kernels and (code := machine_code(source, arch)) is not None:
                        _kernel(code, source, name, device)
                        known(source, arch)
            if _stopping.wait(REST * (perf_counter() - since) if rests else 0.0):
                return
            since = perf_counter()
    except Exception:  # the call that needs the kernel raises it too
        return


if hasattr(os, "register_at_fork"):  # the thread does not exist in a child, which needs a free lock
    os.register_at_fork(after_in_child=_loading._at_fork_reinit)  # type: ignore[attr-defined]


@atexit.register
def _stop() -> None:
    """The driver must not be used while the process ends."""
    _stopping.set()
    for thread in _threads.values():
        thread.join()
