"""A child process ends with its parent, however that ends: SIGTERM, SIGKILL, a closed terminal.

On Linux the kernel sends the child SIGKILL (PR_SET_PDEATHSIG). It does so when the *thread* that started the child
ends, so that thread must live as long as the child: the main thread, or one that waits for the child. Elsewhere a
thread of the child polls getppid. A child whose starting thread may end earlier reads a pipe instead, whose other end
only the parent holds (`end_with_input`); EOF works on every system, but does not stop code that holds the GIL.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

PR_SET_PDEATHSIG = 1  # of <sys/prctl.h>
POLL = 0.2  # seconds, where the kernel sends nothing


def forked() -> int:
    """os.fork() by a thread that lives as long as the child, which ends with this process."""
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        end_with(parent)
    return child


def end_with(parent: int) -> None:
    """In a child of the process `parent`: be killed when that ends. Any of its threads may call this."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    elif hasattr(os, "fork"):  # Windows has no getppid that changes; its children end at EOF on their pipe
        threading.Thread(target=_poll, args=(parent,), name="tilewise parent", daemon=True).start()
    if hasattr(os, "fork") and os.getppid() != parent:  # it ended before the prctl call
        os._exit(128 + signal.SIGTERM)


def _poll(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(POLL)
    os._exit(128 + signal.SIGTERM)


def end_with_input() -> None:
    """In a child whose standard input is a pipe that nothing is written to: exit at its EOF."""

    def read() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=read, name="tilewise parent", daemon=True).start()
