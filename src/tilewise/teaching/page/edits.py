"""Runs every edit of the live page in its own child process with its own limits, which can be killed.

The children are forked by a single-threaded process with everything imported, which is forked before the server starts
threads. So a child inherits no held lock, starts at once, and its parent thread outlives it (`system.parent`).
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from multiprocessing.connection import Connection, Pipe
from typing import Any

from tilewise.emulator import budget
from tilewise.emulator.limits import DEFAULT
from tilewise.errors import KernelError, TilewiseError
from tilewise.system.guarded import in_child
from tilewise.system.parent import forked
from tilewise.teaching.page.exploring import explore
from tilewise.teaching.page.payload import scene_json
from tilewise.teaching.page.recording import COURSE

Answer = Callable[[str, bool], dict[str, Any]]
BARRIER = "__syncthreads();"
GONE = "the process that runs edits has ended: end this command and start it again"


class Edits:
    """Runs texts one after the other, each by `answer` in a child. Must be made before the process starts threads."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._lock = threading.Lock()  # one edit at a time
        self._pipe: Connection | None = None
        if hasattr(os, "fork"):
            self._pipe, theirs = Pipe()
            self._child = forked()
            if self._child == 0:
                try:
                    self._pipe.close()
                    _serve(theirs, answer)
                finally:
                    os._exit(0)
            theirs.close()

    def run(self, text: str, order: bool = False) -> dict[str, Any]:
        """The scenes of a text, or its error and line; `order`: also an order of threads in which a race shows."""
        with self._lock:
            if self._pipe is None:  # no fork: only the limits inside the process apply
                return self._answer(text, order)
            try:
                self._pipe.send_bytes(bytes([order]) + text.encode("utf-8", "replace"))
                answer: dict[str, Any] = json.loads(self._pipe.recv_bytes())
            except (EOFError, OSError):
                return _error(GONE)
            return answer

    def close(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(self._child, signal.SIGKILL)
                os.waitpid(self._child, 0)


def run_edit(settings: Mapping[str, Any], text: str, order: bool = False) -> dict[str, Any]:
    """Run a text within its limits: its scene, with `order` also that of a failing order of threads (which takes
    several times as long), or its error."""
    started = time.perf_counter()
    try:
        with budget.within(settings["limits"]):
            page = explore(as_kernel(text), what_if=False, adversarial=order, **settings)
            scenes = [scene_json(scene) for scene in page.scenes]
    except KernelError as error:
        return {**_error(str(error)), "line": error.line, "column": error.column}
    except TilewiseError as error:
        return _error(str(error))
    return {
        "scenes": scenes,
        "settings": [{"drops": [], "tile": None, "schedule": s.schedule, "walk": False} for s in page.scenes],
        "milliseconds": round(1000 * (time.perf_counter() - started)),
    }


def as_kernel(text: str) -> str:
    """The text with `__global__` in it, so that it is not taken for a file name."""
    return text if "__global__" in text else f"{text}\n// __global__"


def _error(message: str) -> dict[str, Any]:
    return {"error": message, "line": None}


def _serve(line: Connection, answer: Answer) -> None:
    """The process that forks the children, until the server ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server handles Ctrl-C
    # A run with findings imports and compiles what edits need; gc.freeze keeps its pages shared with the children.
    run_edit({"limits": DEFAULT}, COURSE.read_text(encoding="utf-8").replace(BARRIER, ""))
    gc.freeze()
    while True:
        try:
            request = line.recv_bytes()
        except EOFError:
            return
        line.send_bytes(_in_child(partial(answer, request[1:].decode(), bool(request[0]))))


def _in_child(answer: Callable[[], dict[str, Any]]) -> bytes:
    with tempfile.TemporaryFile() as file:

        def work() -> int:
            try:
                made = answer()
            except Exception as error:
                made = _error(f"{type(error).__name__}: {error} (please report it)")
            file.write(json.dumps(made, ensure_ascii=False).encode("utf-8", "replace"))
            file.flush()
            return 0

        ended = in_child(work, budget.watched)
        if ended.code == 0:
            file.seek(0)
            return file.read()
    return json.dumps(_error(ended.message or f"its process ended with status {ended.code}")).encode()
