"""Work in a child process, which can be killed when its own limits fail.

The child runs under the system's memory limit and writes its time limit and its current activity into a page shared
with the parent. It ends with its parent. On a system without such a limit, or without fork, only the child's own checks
apply (`emulator/budget.py`).
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
from dataclasses import dataclass

from tilewise.system.parent import forked
from tilewise.system.timing import Elapsed

SECONDS, MEMORY = 20.0, 2 << 30  # until the child reports other limits
UNREPORTED = 113  # exit code of a child that could not report an error, for example with no memory left
GRACE = 3.0  # seconds that the child has to stop by itself and to report what was found
HEAD = struct.Struct("dq")

Publish = Callable[[float, int, str], None]  # seconds, bytes, the current activity
Publishing = Callable[[Publish], None]  # receives the function to publish with


@dataclass(frozen=True)
class Ended:
    """How a child ended; `message` where it could not report it itself."""

    code: int
    message: str = ""


def in_child(work: Callable[[], int], publishing: Publishing) -> Ended:
    """Run `work` in a child and wait for it; its exit code. `publishing` receives the function by which the child
    reports its limits. The child ends whatever `work` raises."""
    page = mmap.mmap(-1, 4096)
    _write(page, SECONDS, MEMORY, "starting")
    child = forked()
    if child == 0:
        code = UNREPORTED
        try:
            _limit(page, publishing)
            code = work()
            sys.stdout.flush()
            sys.stderr.flush()
        except BrokenPipeError:
            code = 0
        finally:
            os._exit(code)
    return _wait(child, page)


def _write(page: mmap.mmap, seconds: float, memory: int, part: str) -> None:
    text = part.encode()[:200]
    page[: HEAD.size + 1 + len(text)] = HEAD.pack(seconds, memory) + bytes([len(text)]) + text


def _read(page: mmap.mmap) -> tuple[float, int, str]:
    seconds, memory = HEAD.unpack(page[: HEAD.size])
    length = page[HEAD.size]
    return seconds, memory, page[HEAD.size + 1 : HEAD.size + 1 + length].decode(errors="replace")


def _limit(page: mmap.mmap, publishing: Publishing) -> None:
    """In the child: set the memory limit, which the system enforces even within one long step."""
    current = 0

    def publish(seconds: float, memory: int, part: str) -> None:
        nonlocal current
        _write(page, seconds, memory, part)
        if memory != current:
            current = memory
            _limit_memory(memory)

    publishing(publish)
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


def _wait(child: int, page: mmap.mmap) -> Ended:
    """Wait for the child; past its time limit it is killed."""
    interrupted = False
    elapsed = Elapsed(child)
    watched = _watched(child)
    try:
        while True:
            try:
                done, status = os.waitpid(child, os.WNOHANG)
                if done:
                    return _ended(status, page, interrupted)
                seconds, _, part = _read(page)
                if elapsed.seconds() > seconds + GRACE:
                    os.kill(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                    if interrupted:  # the signal was sent to this process alone
                        return Ended(130)
                    used = f"{seconds:.3g} s were used up (--limit seconds=… gives more)"
                    return Ended(4, f"stopped: {used}; it was {part} then")
                if watched >= 0:
                    select.select([watched], [], [], 0.2)
                else:
                    time.sleep(0.01)
            except KeyboardInterrupt:  # the terminal sends it to the child as well
                interrupted = True
                seconds, memory, part = _read(page)
                _write(page, min(seconds, elapsed.seconds()), memory, part)
    finally:
        if watched >= 0:
            os.close(watched)


def _watched(child: int) -> int:
    """A descriptor that becomes readable when the child ends; −1 where the system has none."""
    try:
        return os.pidfd_open(child)
    except (AttributeError, OSError):
        return -1


def _ended(status: int, page: mmap.mmap, interrupted: bool) -> Ended:
    code = os.waitstatus_to_exitcode(status)
    if code >= 0 and code != UNREPORTED:
        return Ended(code)
    if interrupted or code == -signal.SIGINT:
        return Ended(130)
    if code in (-signal.SIGTERM, -signal.SIGHUP):  # sent on purpose
        return Ended(128 - code)
    how = f"the system ended it by signal {-code}" if code < 0 else "it ended without a message"
    _, memory, part = _read(page)
    used = f"as it does when memory is used up ({memory >> 20} MiB were allowed)"
    return Ended(4, f"stopped: {how}, {used}; it was {part} then")
