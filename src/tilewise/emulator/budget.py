"""One budget of time and memory for a whole call: reading, preprocessing, parsing, compiling, every launch, the page.

A watchdog thread polls the elapsed time (`system.timing.Elapsed`) and this process's memory. When either is used up, it
raises `Exhausted` in the working thread, unless that thread has left the call or is about to. The error names the part
that took most. Calls inside a call that has a budget share it.
"""

from __future__ import annotations

import ctypes
import math
import sys
import threading
import time
from pathlib import Path
from types import FrameType

from tilewise.emulator.limits import Limits
from tilewise.errors import LimitError, TilewiseError
from tilewise.system.guarded import MEMORY, Publish
from tilewise.system.memory import resident
from tilewise.system.quantities import size
from tilewise.system.timing import Elapsed

POLL = 0.02  # seconds between two polls
RETRY = 0.25  # seconds until `Exhausted` is raised again, if other code caught it
FOREIGN_POLLS = 25  # polls that find the thread in code of other packages, until it is stopped there
PACKAGE = str(Path(__file__).parents[1])

publish: Publish | None = None  # set where a parent process enforces the limits too,
clock: Elapsed | None = None  # with the time since that began

_own = threading.local()


def watched(by: Publish) -> None:
    """From now on all calls of this process share one budget, which a parent process enforces too."""
    global publish, clock
    publish, clock = by, Elapsed()


def unwatched(part: str) -> None:
    """From now on each call has its own budget, and the parent process enforces none."""
    global publish, clock
    if publish is not None:
        publish(math.inf, MEMORY, part)
    publish = clock = None


class Exhausted(LimitError):
    """Raised by the watchdog in the working thread; `within` replaces it by an error that gives the reason."""

    def __init__(self, message: str = "stopped: the budget of this call was used up") -> None:
        super().__init__(message)


class Budget:
    """The limits of one call, and the seconds that each of its parts took."""

    def __init__(self, limits: Limits, call: FrameType) -> None:
        self.limits = limits
        self._call = call  # the frame that entered `within`: the call lasts while it is on the thread's stack
        self.clock = clock or Elapsed()
        self.base = resident() if publish is None else 0  # of a child process all memory counts
        self.spent: dict[str, float] = {}
        self.part, self._since = "starting", 0.0
        self.reason = ""
        self._thread = threading.get_ident()
        self._over = self._sending = False
        self._foreign_polls = 0
        self._watcher = threading.Thread(target=self._watch, name="tilewise budget", daemon=True)
        self.enter("reading")
        self._watcher.start()

    def enter(self, part: str) -> None:
        """Charge the time from now on to `part`."""
        now = self.clock.seconds()
        self.spent[self.part] = self.spent.get(self.part, 0.0) + now - self._since
        self.part, self._since = part, now
        if publish is not None:
            publish(self.limits.seconds, self.limits.memory, part)

    def error(self, reason: str = "") -> LimitError:
        self.enter(self.part)
        most = max(self.spent, key=lambda part: self.spent[part])
        used = f"{most} took {self.spent[most]:.1f} s of it"
        where = used if most == self.part else f"{used}, and it was {self.part} then"
        return LimitError(f"stopped: {reason or self.reason}; {where}")

    def close(self) -> None:
        """No `Exhausted` is raised after this; one that is pending is caught here. No lock is taken, because
        `Exhausted` could leave it locked. The exception is not withdrawn (PyThreadState_SetAsyncExc with NULL):
        CPython 3.11 then checks for one at every step, and loops forever under a profiler or coverage."""
        while True:
            try:
                self._end()
                return
            except Exhausted:
                continue

    def _end(self) -> None:
        """In its own frame: what CPython 3.13 raises at a backward jump skips the `try` of the same frame."""
        self._over = True
        while self._sending:
            time.sleep(0.0001)
        time.sleep(0)  # a pending exception is raised after this call at the latest

    @property
    def active(self) -> bool:
        """Whether this thread is still inside the call: `Exhausted` may have skipped `__exit__` (see `_end`)."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame is not self._call:
            frame = frame.f_back
        return frame is not None and not self._over

    def _watch(self) -> None:
        wait = POLL
        while not self._over:
            time.sleep(wait)
            reason = self._used_up()
            if not reason:
                continue
            inside = self._inside()
            if inside is None:  # `Exhausted` left the call before `close`
                self._over = True
                return
            wait = RETRY if inside else POLL
            if not inside:
                continue
            self._sending = True  # `_end` sets _over, then reads _sending; here the order is reversed
            if not self._over:
                self.reason = reason
                _stop(self._thread)
            self._sending = False

    def _inside(self) -> bool | None:
        """Whether the thread may be stopped now. False while it runs this file (entering or leaving the call), where
        the exception would be lost or would leave this watchdog running, and during `FOREIGN_POLLS` in other packages:
        a callback of the garbage collector would discard it. None if the call is no longer on its stack."""
        frame, here = sys._current_frames().get(self._thread), False
        foreign = frame is not None and frame is not self._call and not frame.f_code.co_filename.startswith(PACKAGE)
        while frame is not None and frame is not self._call:
            here |= frame.f_code.co_filename == __file__
            frame = frame.f_back
        self._foreign_polls = self._foreign_polls + 1 if foreign else 0
        return None if frame is None else not here and self._foreign_polls % FOREIGN_POLLS == 0

    def _used_up(self) -> str:
        if self.clock.seconds() > self.limits.seconds:
            return f"{self.limits.seconds:g} s were used up (--limit seconds=… gives more)"
        if resident() - self.base > self.limits.memory:
            return f"{size(self.limits.memory)} of memory were used up (--limit memory=… gives more)"
        return ""


def _stop(thread: int) -> None:
    """Make the interpreter raise `Exhausted` in the thread at its next bytecode."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Exhausted))


class within:
    """Run the block under a budget; inside another `within`, that one's budget applies."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._budget: Budget | None = None

    def __enter__(self) -> None:
        shared: Budget | None = getattr(_own, "budget", None)
        if shared is None or not shared.active:
            self._budget = _own.budget = Budget(self._limits, sys._getframe(1))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        budget = self._budget
        if budget is None:
            return
        budget.close()
        _own.budget = None
        if isinstance(error, Exhausted):
            raise budget.error() from None
        if isinstance(error, MemoryError) and not isinstance(error, TilewiseError):
            memory = size(self._limits.memory)
            raise budget.error(f"{memory} of memory were used up (--limit memory=… gives more)") from None
        if isinstance(error, RecursionError):
            raise budget.error("the source is nested too deeply") from None


def enter(part: str) -> None:
    """Charge the time from now on to `part`, if there is a budget."""
    budget: Budget | None = getattr(_own, "budget", None)
    if budget is not None:
        budget.enter(part)
