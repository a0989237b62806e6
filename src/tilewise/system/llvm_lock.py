"""Every use of LLVM holds this lock, and a fork waits for it (`forks`): a child must not inherit a compiler with its
locks held. A kernel compiles in milliseconds to a second; a fork waits as long."""

from __future__ import annotations

import threading

LLVM = threading.RLock()
