"""What our first product needs, prepared in threads while the program does something else.

The first step of a model loads torch's libraries, our modules, the machine code that computes signatures and launches,
and makes plans. `patch` and `accelerate` start it ahead.
"""

from __future__ import annotations

import contextlib
from threading import Thread

import torch

_threads: list[Thread] = []


def prepare() -> None:
    """Once, and only if the program uses a card already: initialising CUDA here would break processes forked later."""
    if _threads or not torch.cuda.is_initialized():
        return
    for work in (fetch_modules, fetch_machine_code):
        _threads.append(Thread(target=work, name="tilewise preparation"))
        with contextlib.suppress(RuntimeError):  # no thread can be started: the first product does it all
            _threads[-1].start()


def fetch_machine_code() -> None:
    """LLVM releases the GIL."""
    with contextlib.suppress(Exception):  # the product that needs it raises the same error
        from tilewise.backends.cuda.native import launchers
        from tilewise.dispatch.prepared import signature_for

        signature_for(torch.empty(0, device="cpu"))
        launchers()


def fetch_modules() -> None:
    """Half of their time is reading files."""
    with contextlib.suppress(Exception):
        import tilewise.backends.cuda.launcher
        import tilewise.kernels.choosing
        import tilewise.kernels.detours
        import tilewise.planning.precompile  # noqa: F401
