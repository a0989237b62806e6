"""Kernels compiled by a child process: LLVM takes 60 MB to compile, which a small budget needs for tiles.

The child is forked before any thread is started (opening a Zarr array starts one, and forking beside threads is not
safe), and waits for the schedule. If that is impossible, this process compiles the kernels when it needs them.
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


class CompilerChild:
    """A context manager that forks the child; `compile(schedule)` lets it fill the disk cache."""

    def __init__(self, wanted: bool) -> None:
        self.child, self.pipe = 0, -1
        if not wanted or not hasattr(os, "fork") or threading.active_count() > 1:
            return
        read_end, self.pipe = os.pipe()
        self.child = forked()
        if self.child:
            os.close(read_end)
            return
        try:
            os.close(self.pipe)  # the child's copy, so that it reads EOF when the parent ends
            with open(read_end, "rb") as pipe, contextlib.suppress(EOFError):
                load_kernels(pickle.load(pipe))
        finally:
            os._exit(0)

    def compile(self, schedule: Schedule) -> None:
        """Fill the disk cache with the kernels of a schedule, unless its semiring cannot be pickled."""
        with contextlib.suppress(pickle.PicklingError, AttributeError, TypeError):
            self._end(pickle.dumps(schedule))

    def _end(self, message: bytes) -> None:
        if self.child:
            child, self.child = self.child, 0
            with contextlib.suppress(BrokenPipeError), open(self.pipe, "wb") as pipe:
                pipe.write(message)
            os.waitpid(child, 0)

    def __enter__(self) -> CompilerChild:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(b"")
