"""Work that signals cannot interrupt, such as a compilation: another thread does it while the main thread waits, so
that Ctrl-C raises at once. The work then completes in the background; its result (a cache entry) serves the next call.

The thread takes the work's lock itself, so that a fork still waits for abandoned work. It is no daemon thread: a
compiler may crash if the interpreter exits while it runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

T = TypeVar("T")
LOOK = 0.05  # seconds between two checks for signals, where a waiting thread is not woken by them (Windows)


def interruptible(work: Callable[[], T], lock: AbstractContextManager[Any]) -> T:
    """work() under the lock, which this thread must not hold. Only the main thread gets signals; others do the work
    themselves."""
    if threading.current_thread() is not threading.main_thread():
        with lock:
            return work()
    made: list[T] = []
    failed: list[BaseException] = []
    abandoned, ended = threading.Event(), threading.Event()

    def do() -> None:
        try:
            with lock:
                if not abandoned.is_set():  # it may have waited long for the lock
                    made.append(work())
        except BaseException as error:
            failed.append(error)
        ended.set()

    try:
        threading.Thread(target=do, name="tilewise compiles").start()
    except RuntimeError:  # no thread could be started: a limit, or the interpreter is exiting
        with lock:
            return work()
    try:
        while not ended.wait(LOOK):
            pass
    except BaseException:
        abandoned.set()
        raise
    if failed:
        raise failed[0]
    return made[0]
