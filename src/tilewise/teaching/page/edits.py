"""Every edit of the live page runs in its own child process: its limits count from its own start, and one that
cannot be stopped is killed while the server goes on.

The children are forked by a process that has one thread and everything imported, and that is forked itself before the
server has threads. So no lock of another thread is inherited held, an edit takes no time to start, and each child's
starting thread lives as long as the child does (`system.parent`).
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
from tilewise.teaching.page import explore
from tilewise.teaching.page.payload import scene_json
from tilewise.teaching.page.recording import COURSE

Answer = Callable[[str, bool], dict[str, Any]]
BARRIER = "__syncthreads();"
GONE = "the process that runs edits has ended: end this command and start it again"


class Edits:
    """Runs texts one after the other, each by `answer` in a child. Made before the process has other threads."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._lock = threading.Lock()  # two at once would only slow each other down
        self._line: Connection | None = None
        if hasattr(os, "fork"):
            self._line, theirs = Pipe()
            self._child = forked()
            if self._child == 0:
                try:
                    self._line.close()
                    _serve(theirs, answer)
                finally:
                    os._exit(0)
            theirs.close()

    def run(self, text: str, order: bool = False) -> dict[str, Any]:
        """Its scenes, or what is wrong with it and where; `order`: also the order of threads in which a race shows."""
        with self._lock:
            if self._line is None:  # a system that cannot fork: only the limits inside the process apply
                return self._answer(text, order)
            try:
                self._line.send_bytes(bytes([order]) + text.encode("utf-8", "replace"))
                answer: dict[str, Any] = json.loads(self._line.recv_bytes())
            except (EOFError, OSError):
                return _error(GONE)
            return answer

    def close(self) -> None:
        if self._line is not None:
            self._line.close()
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(self._child, signal.SIGKILL)
                os.waitpid(self._child, 0)


def answered(settings: Mapping[str, Any], text: str, order: bool = False) -> dict[str, Any]:
    """The text run within its limits: one scene, and with `order` the order that fails where there is one (it takes
    several times as long); or what is wrong."""
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
    """A text without `__global__` is still a text, not a file name."""
    return text if "__global__" in text else f"{text}\n// __global__"


def _error(message: str) -> dict[str, Any]:
    return {"error": message, "line": None}


def _serve(line: Connection, answer: Answer) -> None:
    """The process that forks the children: until the server is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server handles Ctrl-C
    # A run with findings imports, compiles and caches what edits need; frozen, its pages stay shared with the children.
    answered({"limits": DEFAULT}, COURSE.read_text(encoding="utf-8").replace(BARRIER, ""))
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
