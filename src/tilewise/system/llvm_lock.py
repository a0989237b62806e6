"""Who uses LLVM holds this lock, and a fork waits for it (`forks`): a child must not inherit a compiler, and locks
inside it, in the middle of its work. A kernel takes milliseconds to a second, so that is how long a fork may wait."""

from __future__ import annotations

import threading

LLVM = threading.RLock()
