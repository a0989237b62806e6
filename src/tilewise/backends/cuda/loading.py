"""Loading kernels onto a card: one at a time when launched, or a whole built set in a background thread.

Loading a kernel takes an H200's host 0.2 to 0.3 ms, and four of five new shapes need a kernel that no earlier shape
needed. A built set is small (16 MiB of the card for 500 kernels): a thread loads it after several shapes.
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
from tilewise.backends.cuda.compile import compile_source, load_kernel, note_built
from tilewise.backends.cuda.device import arch_of
from tilewise.backends.cuda.native import driver_library
from tilewise.errors import EngineError

RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED
KERNEL = re.compile(r"__global__\s+void\s+(?:__\w+__\s*\((?:[^()]|\([^()]*\))*\)\s*|[A-Z]+\s+)*((?!__)\w+)\s*\(")


class LoadedFunction(NamedTuple):
    """A function handle of the driver, and the `Kernel` that keeps it loaded."""

    handle: int
    kernel: Any


REST = 3  # pause after loading a kernel, relative to the time that took
KEPT = 4096  # cached kernels that no launcher references; the oldest are evicted first
_loading = Lock()
_functions: dict[tuple[str, str, str, int], LoadedFunction] = {}  # by text, name, device, shared memory
_kernels: dict[tuple[str, str, str], LoadedFunction] = {}
_shared_limits: dict[int, int] = {}  # dynamic shared memory allowed for a function, by handle


def kernel_function(source: str, name: str, device: str, shared_bytes: int = 0) -> LoadedFunction:
    """The kernel's function with the dynamic shared memory that it needs; loaded once, also with several threads. A
    loaded one is returned without a lock."""
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
    """Raise the limit of dynamic shared memory; never lower it, because other launchers may need it."""
    code = 0
    if shared_bytes > _shared_limits.get(function.handle, 0):
        attribute = driver().CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        code = driver().cuFuncSetAttribute(function.handle, attribute, shared_bytes)[0]
    if int(code):
        raise EngineError(f"{name} cannot be loaded on {device} with {shared_bytes:,} bytes of shared memory: {code}")
    _shared_limits[function.handle] = max(shared_bytes, _shared_limits.get(function.handle, 0))


def _kernel(code: bytes, source: str, name: str, device: str) -> LoadedFunction:
    """With `_loading` held."""
    kernel = load_kernel(code, name, device)
    status, handle = driver().cuKernelGetFunction(kernel.handle)
    if int(status):
        raise EngineError(f"{name} cannot be loaded on {device}: {status}")
    found = LoadedFunction(int(handle), kernel)
    _shared_limits.pop(found.handle, None)  # of an unloaded kernel with the same handle
    _keep(_kernels, (source, name, device), found)
    return found


def kernel_names(source: str) -> list[str]:
    """The kernels that a text defines."""
    return KERNEL.findall(source)


_stopping = Event()
_threads: dict[tuple[str, str], Thread] = {}


def load_in_background(kind: str, device: str, again: bool = False) -> Thread:
    """Load the kernels of a kind from bundles, in a thread, once for each kind and card; `again`: once more, without
    pauses, for a caller that joins the thread."""
    held = _threads.get((kind, device))
    if held is not None and not again:
        return held
    thread = _threads[kind, device] = Thread(target=_load_all, args=(kind, device, not again), daemon=True)
    thread.start()
    return thread


def is_loading(kind: str, device: str) -> bool:
    """Whether `load_in_background` was called for these."""
    return (kind, device) in _threads


def _load_all(kind: str, device: str, rests: bool) -> None:
    """One at a time, so that a call waits for one kernel at most, with pauses of three times the last load, because
    calls need the GIL. A call that needs a kernel which fails here loads it again."""
    try:
        make_current(device)
        mode = ctypes.c_int(RELAXED)  # otherwise another thread's graph capture would be invalidated
        driver_library().cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
        arch, since = arch_of(device), perf_counter()
        for source, names in set_of(kind, arch):
            for name in names:
                with _loading:
                    if (source, name, device) not in _kernels and (code := machine_code(source, arch)) is not None:
                        _kernel(code, source, name, device)
                        note_built(source, arch)
            if _stopping.wait(REST * (perf_counter() - since) if rests else 0.0):
                return
            since = perf_counter()
    except Exception:  # the call that needs the kernel raises it again
        return


if hasattr(os, "register_at_fork"):  # a forked child has no such thread: its lock must be free
    os.register_at_fork(after_in_child=_loading._at_fork_reinit)  # type: ignore[attr-defined]


@atexit.register
def _stop() -> None:
    """The driver must not be used during process exit."""
    _stopping.set()
    for thread in _threads.values():
        thread.join()
