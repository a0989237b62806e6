"""What the first product of ours asks of a process, in threads of its own, while the program does something else.

The first step of a model is torch's own first step, most of which is libraries that torch loads, and beside it our
modules, the machine code that signs and launches calls, and plans. `patch` and `accelerate` know that it will come.
"""

from __future__ import annotations

import contextlib
from threading import Thread

import torch

_threads: list[Thread] = []


def get_ready() -> None:
    """Once, and only where the program uses a card already: to look for one may take it from processes forked later."""
    if _threads or not torch.cuda.is_initialized():
        return
    for work in (fetch_modules, fetch_machine_code):
        _threads.append(Thread(target=work, name="tilewise gets ready"))
        with contextlib.suppress(RuntimeError):  # no thread to be had: the first product fetches it all
            _threads[-1].start()


def fetch_machine_code() -> None:
    """LLVM lets other threads run."""
    with contextlib.suppress(Exception):  # whatever it is, the product that needs it meets it too, and says so
        from tilewise.backends.cuda.native import launchers
        from tilewise.dispatch.prepared import signature_for

        signature_for(torch.empty(0, device="cpu"))
        launchers()


def fetch_modules() -> None:
    """Half of their time is files that are read."""
    with contextlib.suppress(Exception):
        import tilewise.backends.cuda.launcher
        import tilewise.kernels.choosing
        import tilewise.kernels.detours
        import tilewise.planning.precompile  # noqa: F401
