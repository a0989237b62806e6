"""One budget of time and memory for a whole call: reading, preprocessing, parsing, compiling, every launch, the page.

A watching thread looks at the time (`system.timing.Elapsed`) and at this process's memory and, when either is used up,
stops the thread that works, wherever it is inside that call; a thread that has left it, or is about to, is let be. The
sentence says which part used it. Inside a call that has a budget, others share it.
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

LOOK = 0.02  # seconds between two looks
AGAIN = 0.25  # and until a stop that was swallowed is sent again
PATIENCE = 25  # looks at a thread in code that is not ours
OURS = str(Path(__file__).parents[1])

publish: Publish | None = None  # set where another process watches too,
clock: Elapsed | None = None  # and the time since it began to

_own = threading.local()


def watched(by: Publish) -> None:
    """All calls of this process share one budget, from now on, which another process watches too."""
    global publish, clock
    publish, clock = by, Elapsed()


def unwatched(part: str) -> None:
    """From here on each call has a budget of its own, and the process none."""
    global publish, clock
    if publish is not None:
        publish(math.inf, MEMORY, part)
    publish = clock = None


class Exhausted(LimitError):
    """Raised in the thread that works, from outside; `within` gives it its words."""

    def __init__(self, message: str = "stopped: the budget of this call was used up") -> None:
        super().__init__(message)


class Budget:
    """What one call may take, and what its parts have taken."""

    def __init__(self, limits: Limits, call: FrameType) -> None:
        self.limits = limits
        self._call = call  # whoever entered: while it is on the thread's stack, the call goes on
        self.clock = clock or Elapsed()
        self.base = resident() if publish is None else 0  # a process of its own counts whole
        self.spent: dict[str, float] = {}
        self.part, self._since = "starting", 0.0  # of the process, where that counts
        self.reason = ""
        self._thread = threading.get_ident()
        self._over = self._sending = False
        self._strange = 0
        self._watcher = threading.Thread(target=self._watch, name="tilewise budget", daemon=True)
        self.enter("reading")
        self._watcher.start()

    def enter(self, part: str) -> None:
        """What follows counts as this part."""
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
        """No stop comes after this; one that comes meanwhile is dropped. No lock is taken: a stop could leave it so.

        It is dropped by letting it come: taking it back (a NULL to the same function) leaves CPython 3.11 looking for
        one at every step, and under a profiler or coverage, where it looks again before it goes on, for ever.
        """
        while True:
            try:
                self._end()
                return
            except Exhausted:
                continue

    def _end(self) -> None:
        """In a frame of its own: what CPython 3.13 raises at the turn of a loop passes by its frame's own `try`."""
        self._over = True
        while self._sending:
            time.sleep(0.0001)
        time.sleep(0)  # one that was sent is raised after this call at the latest

    @property
    def goes_on(self) -> bool:
        """Whether this thread is still inside the call: a stop may have left it past its `with` (see `_end`)."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame is not self._call:
            frame = frame.f_back
        return frame is not None and not self._over

    def _watch(self) -> None:
        wait = LOOK
        while not self._over:
            time.sleep(wait)
            reason = self._look()
            if not reason:
                continue
            inside = self._inside()
            if inside is None:  # it was left by a stop that came before `close`
                self._over = True
                return
            wait = AGAIN if inside else LOOK
            if not inside:
                continue
            self._sending = True  # who closes says so first and looks at this afterwards; here it is the other way
            if not self._over:
                self.reason = reason
                _stop(self._thread)
            self._sending = False

    def _inside(self) -> bool | None:
        """Whether the thread is at the call's work; False while it enters or leaves (here, in this file), where a stop
        would be lost or would leave this watcher behind, and for a while in another's code, which may be a callback of
        the garbage collector that swallows it; None where the call is on its stack no more."""
        frame, here = sys._current_frames().get(self._thread), False
        strange = frame is not None and frame is not self._call and not frame.f_code.co_filename.startswith(OURS)
        while frame is not None and frame is not self._call:
            here |= frame.f_code.co_filename == __file__
            frame = frame.f_back
        self._strange = self._strange + 1 if strange else 0
        return None if frame is None else not here and self._strange % PATIENCE == 0

    def _look(self) -> str:
        if self.clock.seconds() > self.limits.seconds:
            return f"{self.limits.seconds:g} s were used up (--limit seconds=… gives more)"
        if resident() - self.base > self.limits.memory:
            return f"{size(self.limits.memory)} of memory were used up (--limit memory=… gives more)"
        return ""


def _stop(thread: int) -> None:
    """The interpreter raises `Exhausted` in the thread at its next step."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Exhausted))


class within:
    """A budget for what is done inside; where there is one already, that one goes on."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._budget: Budget | None = None

    def __enter__(self) -> None:
        shared: Budget | None = getattr(_own, "budget", None)
        if shared is None or not shared.goes_on:
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
    """Name the part that begins, if there is a budget."""
    budget: Budget | None = getattr(_own, "budget", None)
    if budget is not None:
        budget.enter(part)
