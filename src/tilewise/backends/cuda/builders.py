"""Many texts compiled by many processes, which share the cache on disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from tilewise.errors import EngineError
from tilewise.kernels.keys import words

Done = Callable[[dict[str, Any]], None]
WORKER = "tilewise.backends.cuda.build_worker"


def environment() -> dict[str, str]:
    """The environment of a process that must import this same package."""
    home = str(Path(__file__).parents[3])
    before = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([home, before] if before else [home])}


def workers_for(texts: int, requested: int | None = None) -> int:
    """No more processes than cores that this one may use, or texts."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(texts, cores if requested is None else requested))


def build(sources: Sequence[str], arch: str, workers: int, done: Done, background: bool = False) -> None:
    """Compile every text; `done` is called for each as it is ready, from several threads. The first error ends it."""
    waiting: SimpleQueue[str] = SimpleQueue()
    for source in sources:
        waiting.put(source)
    failed: list[str] = []
    threads = [
        Thread(target=_feed, args=(waiting, arch, done, failed, background), daemon=True) for _ in range(workers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise EngineError(failed[0])


def _feed(waiting: SimpleQueue[str], arch: str, done: Done, failed: list[str], background: bool) -> None:
    """Feed one process until no text is left or one failed."""
    command = [sys.executable, "-m", WORKER, str(os.getpid()), *(("--background",) if background else ())]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment(), text=True, encoding="utf-8") as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            while not failed:
                with suppress(Empty):
                    source = waiting.get_nowait()
                    worker.stdin.write(json.dumps({"arch": arch, "source": words(source)}) + "\n")
                    worker.stdin.flush()
                    answer = json.loads(worker.stdout.readline() or '{"error": "a process that compiles ended early"}')
                    if answer["error"]:
                        failed.append(answer["error"])
                    else:
                        done({"source": source, **answer})
                    continue
                break
        except OSError as error:
            failed.append(f"a process that compiles ended early: {error}")
        finally:
            with suppress(OSError):
                worker.stdin.close()
