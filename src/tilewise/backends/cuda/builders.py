"""Many texts compiled side by side: NVRTC compiles in as many threads as there are."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from tilewise.backends.cuda.compile import compile_source

Done = Callable[[str, int], None]  # a text, and the bytes of its machine code


def workers_for(texts: int, requested: int | None = None) -> int:
    """No more threads than cores that this process may use, or texts."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(texts, cores if requested is None else requested))


def build(sources: Sequence[str], arch: str, workers: int, done: Done, allowed: bool = True) -> None:
    """Compile every text; `done` is called for each as it is ready. The first error ends it, as Ctrl-C does.
    `allowed`: whatever TILEWISE_COMPILE says."""
    pool = ThreadPoolExecutor(workers, "tilewise compiles")
    try:
        running = {pool.submit(compile_source, source, arch, allowed=allowed): source for source in sources}
        for made in as_completed(running):
            done(running[made], len(made.result()))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # compilers that run are not waited for
