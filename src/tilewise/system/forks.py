"""A fork waits for imports in other threads: a child inherits their locks, held for ever, and would hang at its own
first import of the same module."""

from __future__ import annotations

import os
import sys
import threading
import time

OURS = ("tilewise", "llvmlite", "ml_dtypes", "numpy")  # what is imported on first use
PATIENCE = 10.0  # seconds; then the fork goes on, for the thread that is waited for may wait for this one


def importing() -> bool:
    """Whether another thread is importing one of ours."""
    locks = getattr(sys.modules.get("_frozen_importlib"), "_module_locks", {})
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in OURS and getattr(getattr(module, "__spec__", None), "_initializing", False):
            reference = locks.get(name)
            lock = reference() if reference is not None else None
            if getattr(lock, "owner", None) not in (None, threading.get_ident()):
                return True
    return False


def wait_for_imports() -> None:
    end = time.monotonic() + PATIENCE
    while importing() and time.monotonic() < end:
        time.sleep(0.001)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=wait_for_imports)
