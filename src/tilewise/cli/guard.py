"""Commands that run other people's kernels run in a child process: one that cannot be stopped from within is ended.

The child has the budget's memory as a limit of its own, and tells its parent, through a page they share, until when it
may run and what it is doing. Where a system cannot fork, or keeps no such limit, the watch from within stands alone.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import select
import signal
import struct
import sys
import time
from collections.abc import Callable

COMMANDS = ("check", "trace", "explore")  # `run` starts a process of its own for the program
SECONDS, MEMORY = 20.0, 2 << 30  # until the child says otherwise
UNSAID = 113  # how a child ends that came to no word of its own: where memory is used up, saying so may fail as well
GRACE = 1.0  # seconds that the child has to stop by itself
HEAD = struct.Struct("dq")


def guarded(arguments: list[str], run: Callable[[list[str]], int]) -> int:
    """Run a command, in a child where it may be hostile; its exit code."""
    name = next((word for word in arguments if not word.startswith("-")), "")
    if name not in COMMANDS or not hasattr(os, "fork") or os.environ.get("TILEWISE_DEBUG"):
        return run(arguments)
    page = mmap.mmap(-1, 4096)
    began = time.monotonic()
    _write(page, began + SECONDS, MEMORY, "starting")
    child = os.fork()
    if child == 0:
        code = UNSAID
        try:
            _limit(page, began)
            code = run(arguments)
            sys.stdout.flush()
            sys.stderr.flush()
        except BrokenPipeError:
            code = 0
        finally:
            os._exit(code)
    return _wait(child, page, began)


def _write(page: mmap.mmap, deadline: float, memory: int, part: str) -> None:
    text = part.encode()[:200]
    page[: HEAD.size + 1 + len(text)] = HEAD.pack(deadline, memory) + bytes([len(text)]) + text


def _read(page: mmap.mmap) -> tuple[float, int, str]:
    deadline, memory = HEAD.unpack(page[: HEAD.size])
    length = page[HEAD.size]
    return deadline, memory, page[HEAD.size + 1 : HEAD.size + 1 + length].decode(errors="replace")


def _limit(page: mmap.mmap, began: float) -> None:
    """In the child: the budget's memory, kept by the system, whatever is done in one step."""
    from tilewise.engines.simt import budget

    set_to = 0

    def publish(seconds: float, memory: int, part: str) -> None:
        nonlocal set_to
        _write(page, began + seconds, memory, part)
        if memory != set_to:
            set_to = memory
            _limit_memory(memory)

    budget.publish, budget.began = publish, began
    _limit_memory(MEMORY)


def _limit_memory(memory: int) -> None:
    try:
        import resource
    except ImportError:
        return
    if sys.platform != "linux":
        return  # elsewhere RLIMIT_DATA counts other things, or is not kept
    with contextlib.suppress(ValueError, OSError):
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        soft = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _wait(child: int, page: mmap.mmap, began: float) -> int:
    """The child's exit code; past its time it is ended, and the sentence is ours."""
    interrupted = False
    watched = _watched(child)
    while True:
        try:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return _code(status, page, interrupted)
            deadline, _, part = _read(page)
            if time.monotonic() > deadline + GRACE:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                print(
                    f"error: stopped: {deadline - began:.3g} s were used up (--limit seconds=… gives more); "
                    f"it was {part} then",
                    file=sys.stderr,
                )
                return 4
            if watched >= 0:
                select.select([watched], [], [], 0.2)
            else:
                time.sleep(0.01)
        except KeyboardInterrupt:  # the terminal sends it to the child as well
            interrupted = True
            deadline, memory, part = _read(page)
            _write(page, min(deadline, time.monotonic()), memory, part)


def _watched(child: int) -> int:
    """What becomes readable when the child ends; −1 where the system has no such thing."""
    try:
        return os.pidfd_open(child)
    except (AttributeError, OSError):
        return -1


def _code(status: int, page: mmap.mmap, interrupted: bool) -> int:
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != UNSAID:
        return os.WEXITSTATUS(status)
    if interrupted or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGINT):
        return 130
    how = (
        f"the system ended it by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "it ended without a word"
    )
    _, memory, part = _read(page)
    print(
        f"error: stopped: {how}, as it does when memory is used up ({memory >> 20} MiB were allowed); "
        f"it was {part} then",
        file=sys.stderr,
    )
    return 4
