"""One budget of time and memory for a program's process: reading, lowering, compiling, running, the report.

A watchdog thread polls the clock, the processor time and the process's memory. When one is used up it ends the run with
the findings so far and the current activity. Time in which the program was ready and had no core does not count, nor
time waiting for input from a terminal. The parent process kills what does not respond.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from tilewise.emulator.host.options import Options
from tilewise.system.memory import resident
from tilewise.system.quantities import size

POLL = 0.02  # seconds between two polls
GROWTH = 64  # states are collapsed again when memory has grown by limit / GROWTH
SPARE = 16  # limit / SPARE is kept free for allocations between two polls
LEAST = 512 << 20  # the smallest limit, for parsing and compiling
SHOWN_AFTER, SHOWN_EVERY = 2.0, 0.5  # seconds until progress is shown, and between updates
INTERRUPTED = 130  # a shell's exit status for Ctrl-C


class Watch:
    def __init__(self, options: Options, began: float, stop: Callable[[int, str], None]) -> None:
        self.options, self.began = options, began
        self.part = "reading it"
        self.session: Any = None  # set when it exists: has the current line and the findings
        self._stop, self._typed = stop, _is_typed()
        self._interrupted = False
        self._shown = began + SHOWN_AFTER if options.progress else math.inf
        self.tasks = "/proc/self/task"
        self._files: dict[str, int] = {}  # descriptors of schedstat files, opened before the sandbox forbids it
        self._sealed = False
        self._taken = 0  # bytes, after states were last collapsed
        self._waits: dict[str, int] = {}  # nanoseconds that each thread was ready without a core
        self._ran = 0.0  # the most seconds that one thread had a core: a lower bound of the time used
        self._thread = threading.Thread(target=self._watch, name="tilewise watch", daemon=True)
        self._thread.start()

    def seal(self) -> None:
        """Call this before the sandbox: no thread starts and no file can be opened afterwards."""
        self._open_tasks()
        self._sealed = True

    def interrupt(self) -> None:
        """Ctrl-C."""
        self._interrupted = True

    def _watch(self) -> None:
        while not (reason := self._used_up()):
            self._show()
            time.sleep(POLL)
        status = INTERRUPTED if self._interrupted else 4
        if self.session is not None and self.session.cuda is not None:
            line = self.session.source.place(self.session.line, 1).line if self.session.line else 0
            where = f"; it was near line {line} then" if line else f"; it was {self.part} then"
            self.session.finish(status, "limit", reason + where)
        else:
            self._stop(status, f"{reason}; it was {self.part} then")

    def _show(self) -> None:
        """Show on a terminal the time, the current line and the progress of a launch."""
        now = time.monotonic()
        if now < self._shown:
            return
        self._shown = now + SHOWN_EVERY
        session = self.session
        if session is None:
            return
        parts = [f"{now - self.began:.0f} s"]
        if session.line:
            place = session.source.place(session.line, 1)
            parts.append(f"{PurePath(place.file).name}:{place.line}")
        if session.cuda is not None and session.cuda.progress:
            parts.append(session.cuda.progress)
        elif not session.line:
            parts.append(self.part)
        session.console.status(" · ".join(parts))

    def _used_up(self) -> str:
        if self._interrupted:
            return "by Ctrl-C"
        passed = time.monotonic() - self.began
        own = time.process_time() if self._typed else max(passed - self.waited(), self._ran)
        if own > self.options.seconds:
            return self.options.too_long
        if passed > self.options.clock:
            return f"the program took longer than {self.options.clock:g} s by the clock: --limit-time raises it"
        limit = max(self.options.memory, LEAST)
        return self.memory_used_up if self._memory(limit) > limit - limit // SPARE else ""

    @property
    def memory_used_up(self) -> str:
        limit = max(self.options.memory, LEAST)
        return f"{size(limit)} of memory were used up, shadow and all: --limit-memory raises it"

    def _memory(self, limit: int) -> int:
        """Bytes in use; if they have grown, after collapsing uniform states."""
        taken = resident()
        if self.session is None or taken < max(limit // 4, self._taken + limit // GROWTH):
            return taken
        self.session.memory.collapse(again=taken > limit // 2)
        self._taken = resident()
        return self._taken

    def waited(self) -> float:
        """Seconds in which the program's threads were ready and had no core; 0 if the system does not report them.

        Per thread, because /proc/self/schedstat covers the main thread only. One thread runs at a time, so the waits
        add up, without the watchdog's own, with those of threads that have ended."""
        if not self._sealed:
            self._open_tasks()
        for thread, file in list(self._files.items()):
            if thread != str(threading.get_native_id()):
                with contextlib.suppress(OSError, ValueError):
                    ran, waited = map(int, os.pread(file, 256, 0).split()[:2])
                    self._waits[thread], self._ran = waited, max(self._ran, ran * 1e-9)
        return sum(self._waits.values()) * 1e-9

    def _open_tasks(self) -> None:
        with contextlib.suppress(OSError):
            for thread in os.listdir(self.tasks):
                if thread not in self._files:
                    self._files[thread] = os.open(f"{self.tasks}/{thread}/schedstat", os.O_RDONLY | os.O_CLOEXEC)


def _is_typed() -> bool:
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
