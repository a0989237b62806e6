"""Who uses LLVM holds this lock, and a fork waits for it: a child must not inherit a compiler, and locks inside it, in
the middle of its work. A kernel takes milliseconds to a second, so that is how long a fork may wait."""

from __future__ import annotations

import os
import threading

LLVM = threading.RLock()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=LLVM.acquire, after_in_parent=LLVM.release, after_in_child=LLVM.release)
