"""Compiling many texts in parallel: NVRTC runs in several threads at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from tilewise.backends.cuda.compile import compile_source

Done = Callable[[str, int], None]  # called with a text and the size of its machine code


def workers_for(texts: int, requested: int | None = None) -> int:
    """The number of threads: at most the cores that this process may use, and the texts."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(texts, cores if requested is None else requested))


def build(sources: Sequence[str], arch: str, workers: int, done: Done, allowed: bool = True) -> None:
    """Compile every text, and call `done` for each; stop at the first error or Ctrl-C. `allowed`: also where
    TILEWISE_COMPILE forbids it."""
    pool = ThreadPoolExecutor(workers, "tilewise compiles")
    try:
        running = {pool.submit(compile_source, source, arch, allowed=allowed): source for source in sources}
        for made in as_completed(running):
            done(running[made], len(made.result()))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # without waiting for running compilations
