"""Kernels compiled by a child process: LLVM takes 60 MB for a moment, which a small budget has for tiles.

The child is forked before anything starts a thread (to open a Zarr array starts one, and a fork beside threads is not
safe), and waits for the schedule. Where it cannot be, kernels are compiled here when they are needed.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import threading
from types import TracebackType

from tilewise.scale.host import load_kernels
from tilewise.scale.schedule import Schedule
from tilewise.system.parent import forked


class CompilerApart:
    """`with CompilerApart(wanted) as compiler:` forks it; `compiler.compile(schedule)` fills the disk cache by it."""

    def __init__(self, wanted: bool) -> None:
        self.child, self.pipe = 0, -1
        if not wanted or not hasattr(os, "fork") or threading.active_count() > 1:
            return
        taken, self.pipe = os.pipe()
        self.child = forked()
        if self.child:
            os.close(taken)
            return
        try:
            os.close(self.pipe)  # the end of what this process writes is the end of the child, whatever ends it
            with open(taken, "rb") as said, contextlib.suppress(EOFError):
                load_kernels(pickle.load(said))
        finally:
            os._exit(0)

    def compile(self, schedule: Schedule) -> None:
        """The kernels of a schedule into the disk cache, if it can be; a semiring made of lambdas cannot be sent."""
        with contextlib.suppress(pickle.PicklingError, AttributeError, TypeError):
            self._end(pickle.dumps(schedule))

    def _end(self, words: bytes) -> None:
        if self.child:
            child, self.child = self.child, 0
            with contextlib.suppress(BrokenPipeError), open(self.pipe, "wb") as said:
                said.write(words)
            os.waitpid(child, 0)

    def __enter__(self) -> CompilerApart:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(b"")
