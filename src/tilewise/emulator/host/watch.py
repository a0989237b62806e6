"""One budget for a whole program, from the start of its process: reading, lowering, compiling, running, the report.

A thread looks at the clock, the processor time and the process's memory, and ends the run when one is used up: what
was found by then is told, with the part that was at work. Seconds in which the machine had no core for the program do
not count, nor do those in which it waits for a person to type. The parent process ends what cannot even be asked.
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

LOOK = 0.02  # seconds between two looks
GROWN = 64  # by one part in so many: states are looked at again
SPARE = 16  # one part in so many is left for what is taken between two looks
LEAST = 512 << 20  # bytes that reading and compiling may take, however little the program is given
SHOWN_AFTER, SHOWN_EVERY = 2.0, 0.5  # seconds: what the program is doing, where a person looks on
INTERRUPTED = 130  # the status that a shell has for Ctrl-C


class Watch:
    def __init__(self, options: Options, began: float, stop: Callable[[int, str], None]) -> None:
        self.options, self.began = options, began
        self.part = "reading it"
        self.session: Any = None  # as soon as there is one: it knows the line, and what was found
        self._stop, self._typed = stop, _is_typed()
        self._interrupted = False
        self._shown = began + SHOWN_AFTER if options.progress else math.inf
        self.tasks = "/proc/self/task"
        self._files: dict[str, int] = {}  # open descriptors under /proc/self: no path can be opened in the sandbox
        self._sealed = False
        self._taken = 0  # bytes, when states were put together last
        self._waits: dict[str, int] = {}  # nanoseconds that each thread was ready and had no core
        self._ran = 0.0  # seconds that one thread had a core: no wait makes them undone
        self._thread = threading.Thread(target=self._watch, name="tilewise watch", daemon=True)
        self._thread.start()

    def seal(self) -> None:
        """No thread starts and no file is opened from now on: what is open already is read again and again."""
        self._open_tasks()
        self._sealed = True

    def interrupt(self) -> None:
        """Ctrl-C."""
        self._interrupted = True

    def _watch(self) -> None:
        while not (reason := self._look()):
            self._show()
            time.sleep(LOOK)
        status = INTERRUPTED if self._interrupted else 4
        if self.session is not None and self.session.cuda is not None:
            line = self.session.source.place(self.session.line, 1).line if self.session.line else 0
            where = f"; it was near line {line} then" if line else f"; it was {self.part} then"
            self.session.finish(status, "limit", reason + where)
        else:
            self._stop(status, f"{reason}; it was {self.part} then")

    def _show(self) -> None:
        """For whom a terminal has: how long it has taken, where it is, and how much of a launch is done."""
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

    def _look(self) -> str:
        if self._interrupted:
            return "by Ctrl-C"
        passed = time.monotonic() - self.began
        own = time.process_time() if self._typed else max(passed - self.without_a_core(), self._ran)
        if own > self.options.seconds:
            return self.options.too_long
        if passed > self.options.clock:
            return f"the program took longer than {self.options.clock:g} s by the clock: --limit-time raises it"
        most = max(self.options.memory, LEAST)
        if self._memory(most) > most - most // SPARE:
            return f"{size(most)} of memory were used up, shadow and all: --limit-memory raises it"
        return ""

    def _memory(self, most: int) -> int:
        """Bytes it takes; where those have grown to much, after states that are all alike were put together."""
        taken = resident()
        if self.session is None or taken < max(most // 4, self._taken + most // GROWN):
            return taken
        self.session.memory.collapse(again=taken > most // 2)
        self._taken = resident()
        return self._taken

    def without_a_core(self) -> float:
        """Seconds in which the program's threads could have run but others did; 0 where the system has no such file.

        /proc/self/schedstat is the first thread's alone, and the program runs in another. Only one of them is at work
        at a time, so their waits add up; the watch's own do not belong to them, those of a thread that ended do."""
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
