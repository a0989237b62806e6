"""The byte limit: how long the cores take to read M and N once and to write P once, sequentially and in place.

No product can be faster, however few steps it has: at k = 2 it takes as long as writing P. In a burst of products
operands may be in any cache level, so this is timed in the same burst, on the same arrays.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from tilewise.backends.cpu.kernels.shared.job import TASK_PARAMS, JobReader, job_of
from tilewise.backends.cpu.runtime import compile
from tilewise.backends.cpu.runtime.pool import run_tasks
from tilewise.backends.cpu.runtime.target import Target, host_target
from tilewise.system.llvm_text import IRFunction, module

AT_ONCE = 8  # vectors


def touch_module(target: Target) -> str:
    """Task i of `tasks`: its share of each array's bytes, whole groups of vectors."""
    f = IRFunction("run", TASK_PARAMS, public=True)
    job = JobReader(f)
    kind, size = f"<{target.vector_bytes} x i8>", AT_ONCE * target.vector_bytes
    for name, length in (("M", "m"), ("N", "n"), ("P", "k")):
        start, groups = job.pointer(name), f.div(job.field(length), size)
        first, end = (f.div(f.mul(groups, task), job.field("tasks")) for task in ("%task", f.add("%task", 1)))
        read = [(kind, "zeroinitializer")] * (AT_ONCE if name != "P" else 0)
        with f.loop(first, end, 1, read) as group:
            places = [f.at("i8", start, f.mul(group.index, size), v * target.vector_bytes) for v in range(AT_ONCE)]
            if name == "P":
                for place in places:
                    f.store(kind, "zeroinitializer", place, 1)
            group.next = [
                f.op(f"or {kind} {x}, {f.load(kind, place, 1)}") for x, place in zip(group.values, places, strict=False)
            ]
        for value in group.values:
            f.do(f"store volatile {kind} {value}, ptr {f.at(kind, job.pointer('workspace'), '%task')}, align 1")
    return module([f])


@lru_cache(maxsize=1)
def _compiled() -> int:
    return compile.load(touch_module(host_target()), host_target())["run"]


def touch_work(M: Any, N: Any, P: Any, threads: int) -> Callable[[], None]:
    """A function to time, for contiguous arrays of NumPy; P is overwritten."""
    memory = (ctypes.c_char * (64 * threads))()
    places = {name: x.ctypes.data for name, x in (("M", M), ("N", N), ("P", P))}
    job = job_of(**places, m=M.nbytes, n=N.nbytes, k=P.nbytes, workspace=ctypes.addressof(memory), tasks=threads)

    def work(keep: object = (memory, M, N, P)) -> None:
        run_tasks(_compiled(), ctypes.addressof(job), threads, threads)

    return work
