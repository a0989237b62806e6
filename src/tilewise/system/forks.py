"""Before a fork, wait for threads that use LLVM or import modules: the child would inherit held locks and half-imported
modules. New uses and imports are blocked until the fork is done.

Python runs the hooks registered last first, and an importing thread may need a lock that such a hook holds: logging's
for `getLogger`, LLVM's for the first kernel. So modules with hooks are imported here first, and no lock is held while
waiting.
"""

from __future__ import annotations

import _imp
import logging  # noqa: F401  whose hook takes its lock
import os
import sys
import threading
import time

from tilewise.system.llvm_lock import LLVM

# packages that are imported on first use
OURS = {"tilewise", "llvmlite", "ml_dtypes", "numpy", *sys.stdlib_module_names}
PATIENCE = 10.0  # seconds; then the fork proceeds, because the other thread may be waiting for this one


def importing() -> bool:
    """Whether another thread is importing one of ours, or is about to: there is a lock for each such module."""
    locks = getattr(sys.modules.get("_frozen_importlib"), "_module_locks", {})
    for name, reference in list(locks.items()):
        lock = reference()
        if lock is not None and lock.owner != threading.get_ident() and name.partition(".")[0] in OURS:
            return True
    return False


def lock_imports() -> None:
    """Wait until no other thread imports or uses LLVM, then hold both locks."""
    end = time.monotonic() + PATIENCE
    _acquire_locks()
    while importing() and time.monotonic() < end:
        unlock_imports()
        time.sleep(0.001)
        _acquire_locks()


def _acquire_locks() -> None:
    LLVM.acquire()  # first: the thread that holds it may import
    _imp.acquire_lock()  # no module's lock is taken without this one


def unlock_imports() -> None:
    _imp.release_lock()
    LLVM.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=lock_imports, after_in_parent=unlock_imports, after_in_child=unlock_imports)
