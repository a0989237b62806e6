"""Kernels compiled by a child process: LLVM takes 60 MB while it compiles, which a small budget needs for tiles.

The child is forked before any thread is started (opening a Zarr array starts one, and forking beside threads is not
safe), and waits for the schedule. Where that is impossible, this process compiles the kernels when it needs them.
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
    """`with CompilerChild(wanted) as compiler:` forks it; `compiler.compile(schedule)` lets it fill the disk cache."""

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
            os.close(self.pipe)  # so that the child reads EOF when the parent ends
            with open(taken, "rb") as pipe, contextlib.suppress(EOFError):
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
