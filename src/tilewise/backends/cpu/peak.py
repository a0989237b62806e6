"""The port limit: steps a second when nothing is loaded or stored and no step waits for another.

As many accumulators as the tile has, each accumulating its neighbour in turn: every step is a mul and an add on
registers, LLVM can remove none, and enough of them are independent to keep every port busy. Steps are compiled as in
the packed tile: where packing quiets signalling NaN, a min is one instruction, and NaN tests are hoisted.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache

from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import DTYPES
from tilewise.algebra.expression import is_plain
from tilewise.algebra.semiring import Algebra
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic, arithmetic
from tilewise.backends.cpu.kernels.shared.job import TASK_PARAMS, JobReader, job_of
from tilewise.backends.cpu.runtime import compile
from tilewise.backends.cpu.runtime.pool import run_tasks
from tilewise.backends.cpu.runtime.target import host_target
from tilewise.system.llvm_text import IRFunction, module
from tilewise.system.timing import least_seconds

SUMS = 24
# NEON with separate mul and add: how evenly Neoverse-N1's two ports are used depends on the number of sums. Of 7 to 24
# these came nearest to the limit by the clock (9.99 G steps/s of float32): 9.82, and 9.60 with a product
NEON_SUMS, NEON_PRODUCTS = 14, 24
ROUNDS = 300_000  # about 2 ms to 5 ms


def sums_of(a: Arithmetic) -> int:
    if a.target.by_lane and a.parts == 1 and not (a.fused or is_plain(a.add, "add")):
        return NEON_PRODUCTS if is_plain(a.mul, "mul") else NEON_SUMS
    return min(SUMS, a.MR * a.tile[1])


def peak_module(a: Arithmetic, stores: bool = False) -> str:
    """`stores`: every other sum is also stored in each round."""
    f = IRFunction("run", TASK_PARAMS, public=True)
    job = JobReader(f)
    place = job.pointer("M")
    render = a.renderer(f, a.lanes, quiet=a.quiets)
    x = tuple(f.load(a.vector, place, a.bytes) for _ in range(a.parts))
    sums = sums_of(a)
    carry = [(a.vector, register) for _ in range(sums) for register in x]

    def store(number: int, value: str) -> None:
        f.do(f"store volatile {a.vector} {value}, ptr {f.at(a.vector, place, number)}, align {a.bytes}")

    with f.loop(0, job.field("k"), 1, carry) as loop:
        values = list(loop.values)
        for i in range(sums):
            own, neighbour = (slice(j * a.parts, (j + 1) * a.parts) for j in (i, (i + 1) % sums))
            values[own] = render.accumulate(a.add, a.mul, tuple(values[own]), tuple(values[neighbour]), x)
            if stores and i % 2:
                for number in range(i * a.parts, (i + 1) * a.parts):
                    store(number, values[number])
        loop.next = values
    for number, value in enumerate(loop.values):
        store(number, value)
    return module([f])


@lru_cache(maxsize=64)
def _compiled(a: Arithmetic, stores: bool) -> int:
    return compile.load(peak_module(a, stores), a.target)["run"]


def peak_work(algebra: Algebra, threads: int, stores: bool = False) -> tuple[Callable[[], None], int]:
    """A function to time, a few milliseconds long on each of `threads` cores, and its number of steps. With `stores` it
    stores a vector for every two vector steps: the cost of stores that compete with arithmetic for a port."""
    a = arithmetic(algebra, algebra.partial, algebra.partial, host_target())
    task, memory = _compiled(a, stores), (ctypes.c_char * (64 * SUMS * a.parts))()
    job = job_of(M=ctypes.addressof(memory), k=ROUNDS)

    def work(keep: object = memory) -> None:
        run_tasks(task, ctypes.addressof(job), threads, threads)

    return work, threads * ROUNDS * sums_of(a) * a.lanes


@lru_cache(maxsize=1)
def measured_rate() -> float:
    """Multiply-adds of float32 a second on one core at its present clock, the best of a few runs."""
    work, steps = peak_work(find_semiring("plus_times").over(DTYPES["float32"]), 1)
    return steps / least_seconds(work)
