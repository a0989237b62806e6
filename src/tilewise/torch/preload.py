"""Modules and machine code that the first product needs, loaded by threads that `patch` and `accelerate` start."""

from __future__ import annotations

import contextlib
from threading import Thread

import torch

_threads: list[Thread] = []


def preload() -> None:
    """Start the threads, once, if CUDA is initialised: initialising it here would break processes forked later."""
    if _threads or not torch.cuda.is_initialized():
        return
    for work in (fetch_modules, fetch_machine_code):
        _threads.append(Thread(target=work, name="tilewise preparation"))
        with contextlib.suppress(RuntimeError):  # if no thread can be started, the first product loads everything
            _threads[-1].start()


def fetch_machine_code() -> None:
    """Compile the signature and launch functions; LLVM releases the GIL."""
    with contextlib.suppress(Exception):  # the product that needs it raises the same error
        from tilewise.backends.cuda.native import launchers
        from tilewise.dispatch.prepared import signature_for

        signature_for(torch.empty(0, device="cpu"))
        launchers()


def fetch_modules() -> None:
    """Import modules; half of the time is reading files, without the GIL."""
    with contextlib.suppress(Exception):
        import tilewise.backends.cuda.launcher
        import tilewise.kernels.choosing
        import tilewise.kernels.recipes
        import tilewise.planning.precompile  # noqa: F401
