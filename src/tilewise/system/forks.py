"""A fork waits for other threads: for those that use LLVM, and for those that import, whose locks a child would inherit
held for ever, and modules half made. Nobody begins either until the fork is done.

Python calls what is registered last first, and a thread that imports may want what such a call has taken: logging's
lock by `getLogger`, LLVM's at the first kernel. So what has hooks of its own is imported here, before; and no lock is
held while others are waited for.
"""

from __future__ import annotations

import _imp
import logging  # noqa: F401  whose hook takes its lock
import os
import sys
import threading
import time

from tilewise.system.llvm_lock import LLVM

OURS = {"tilewise", "llvmlite", "ml_dtypes", "numpy", *sys.stdlib_module_names}  # what is imported on first use
PATIENCE = 10.0  # seconds; then the fork goes on, for the thread that is waited for may wait for this one


def importing() -> bool:
    """Whether another thread is importing one of ours, or is about to: there is a lock for each such module."""
    locks = getattr(sys.modules.get("_frozen_importlib"), "_module_locks", {})
    for name, reference in list(locks.items()):
        lock = reference()
        if lock is not None and lock.owner != threading.get_ident() and name.partition(".")[0] in OURS:
            return True
    return False


def hold_others() -> None:
    """Wait until nobody imports and nobody uses LLVM, and let nobody begin."""
    end = time.monotonic() + PATIENCE
    _hold()
    while importing() and time.monotonic() < end:
        let_go()
        time.sleep(0.001)
        _hold()


def _hold() -> None:
    LLVM.acquire()  # first: who holds it may import
    _imp.acquire_lock()  # no module's lock is taken without this one


def let_go() -> None:
    _imp.release_lock()
    LLVM.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=hold_others, after_in_parent=let_go, after_in_child=let_go)
