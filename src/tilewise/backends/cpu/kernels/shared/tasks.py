"""How a product is cut into tasks, and how much scratch memory each worker needs: what families share of it.

k is cut by shape alone, never by the number of threads, so threads never change a bit of the result.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.strips import count_tasks
from tilewise.core.blocking import SMALL_P, TALL_K, Blocking

BITS_ROWS = 4096  # rows of a task whose N is packed into bits: packing it costs more than such a block
EACH = 2**15  # steps, a vector at a time, that are worth a thread: some five microseconds
TOUCH = 8  # such steps that a vector of M, N or P takes to come or go, where there is little to do with it
OWN_BLOCK = 384  # rows and columns of the piece a task makes in a block of its own
STRETCH, STRETCHES = 4096, 16  # k is cut into stretches of STRETCH where P is small
# bytes of M and N that a stretch has at least where they are read once, and how many stretches there are at most: some
# microseconds each, and a few for each of many threads
SHORT_STRETCH, SHORT_STRETCHES = 2**16, 64
FAR = 2**20  # bytes of N that no core's own cache keeps for the next product
FAR_STRETCHES = 8  # of k, at most, where N comes from there
LESS = 40  # times as many rows of N as sums of each column: one thread loses nothing then by leaving them apart


class Extents(NamedTuple):
    """The product as its kernel computes it, and how many threads work on it."""

    m: int
    k: int
    n: int
    members: int  # of the stack
    rows_of_P: bool  # P's columns lie side by side
    column_of_N: bool  # its first column's elements do
    workers: int
    onto: bool = False  # P is added onto

    @property
    def workers_a_member(self) -> int:
        """Threads that share one member's product; where there are members enough, each has its own."""
        return self.workers if self.members < self.workers else 1


def workers_for(m: int, k: int, n: int, members: int, threads: int, lanes: int) -> int:
    """As many threads as have enough to do each; `lanes`: steps that one instruction makes."""
    if threads == 1:
        return 1
    work = members * (m * k * n + TOUCH * (m * k + k * n + m * n)) // lanes
    return max(1, min(threads, work // EACH))


class Tasks(NamedTuple):
    count: int  # type: ignore[assignment]  # not how often a tuple has a value
    tasks_m: int = 1
    tasks_n: int = 1
    tasks_k: int = 1
    task_m: int = 1
    task_n: int = 1
    task_k: int = 1
    each: int = 0  # bytes of scratch memory for each worker
    sums: int = 0  # bytes for the sums that stretches of k leave apart
    strip: int = 0  # elements of a packed strip of N, where all workers share them


def share(extent: int, workers: int, unit: int, each: int = 2) -> int:
    """So many pieces for each worker, in whole units: with two, the faster one takes the last."""
    pieces = each * workers if workers > 1 else 1
    return max(1, -(-extent // (pieces * unit))) * unit


def no_row_alone(m: int, task_m: int, unit: int) -> int:
    """Rows of a task, by units more until the last one has not a single row: tiles of one row add up in another order
    (`grid.sum_sets`), and no bit of P may depend on how many threads there are."""
    while task_m < m and m % task_m == 1:
        task_m += unit
    return task_m


def pages(size: int) -> int:
    return -(-size // 4096) * 4096 + 4096 if size else 0


def columns_apart(
    a: Arithmetic, x: Extents, packed: int, each: int, stretches: int = 1, task_k: int = 1, sums: int = 0
) -> Tasks:
    """Every task a range of P's columns, whole cache lines wide, `each` to a worker: one where memory counts most, for
    long rows of N; `packed` bytes for each worker. `stretches` of k, `task_k` long, have their own workers."""
    task_n = share(x.n, -(-x.workers_a_member // stretches), 64 // a.bytes, each)
    tasks_n = -(-x.n // task_n)
    return Tasks(stretches * x.members * tasks_n, 1, tasks_n, stretches, x.m, task_n, task_k, pages(packed), sums)


def rows_apart(
    a: Arithmetic, x: Extents, packed: int, unit: int = 0, stretches: int = 1, task_k: int = 1, sums: int = 0
) -> Tasks:
    """Every task a range of P's rows, two to a worker, in units of a tile's rows or of `unit`; `packed` bytes for each
    worker. Each of them for every one of `stretches` of k, `task_k` long."""
    unit = unit or a.MR
    task_m = no_row_alone(x.m, share(x.m, x.workers_a_member, unit), unit)
    tasks_m = -(-x.m // task_m)
    return Tasks(stretches * x.members * tasks_m, tasks_m, 1, stretches, task_m, x.n, task_k, pages(packed), sums)


def shared_strips(a: Arithmetic, cut: Blocking, x: Extents) -> Tasks:
    """Rows of P are dealt out, several pieces to a worker; the columns of a strip are packed together."""
    m, k, n, workers = x.m, x.k, x.n, x.workers
    width, depth = min(cut.NC, n), min(cut.KC, k)
    task_m = no_row_alone(m, min(share(m, workers, a.MR), cut.MC), a.MR)
    task_n = share(width, workers, a.NR)
    tasks_m, tasks_n, strips = -(-m // task_m), -(-width // task_n), -(-n // cut.NC) * -(-k // cut.KC)
    strip = -(-width // a.NR) * a.NR * a.rows_n(depth)
    each = pages(-(-task_m // a.MR) * a.MR * a.groups(depth) * a.packed_m_bytes)
    return Tasks(
        count_tasks(tasks_n, tasks_m, strips), tasks_m=tasks_m, tasks_n=tasks_n, task_m=task_m, task_n=task_n, task_k=k,
        each=each, sums=pages(min(strips, 2) * strip * a.bytes), strip=strip,
    )  # fmt: skip


def stretches(m: int, k: int, n: int, KC: int) -> tuple[int, int]:
    """How many tasks share k, and how long each one's stretch is."""
    if m * n > SMALL_P or k < TALL_K:
        return 1, k
    count = min(STRETCHES, k // STRETCH)
    each = math.ceil(math.ceil(k / count) / KC) * KC
    return -(-k // each), each


def short_stretches(x: Extents, row: int) -> tuple[int, int]:
    """The same where M and N are read once, `row` bytes of them for each k: stretches are cut where P is so small that
    nothing else can be shared, into a power of two, for as many threads have as much to do each; and end where lines of
    the first cache do."""
    count = 1
    while 2 * count <= min(SHORT_STRETCHES, x.k * row // SHORT_STRETCH):
        count *= 2
    if count == 1:
        return 1, x.k
    each = -(-x.k // (64 * count)) * 64
    return -(-x.k // each), each


def far_stretches(x: Extents, size: int, KC: int) -> tuple[int, int]:
    """The same where a few rows read an N that comes from memory, elements of `size` bytes: a range of its rows comes
    in one go, a range of columns in pieces, with what lies between them fetched for nothing (two threads 1.2 to 1.9
    times as long). By shape alone, and no more than adding up is worth."""
    count = 1
    while 2 * count <= min(FAR_STRETCHES, x.k // (LESS * x.m)):
        count *= 2
    if count == 1 or x.members > 1 or x.k * x.n * size < FAR:
        return 1, x.k
    each = -(-x.k // (count * KC)) * KC
    return -(-x.k // each), each


def pieces(m: int, n: int, workers: int, cut: Blocking, own: bool) -> tuple[int, int]:
    """Rows and columns of P that a task makes: near-square cuts pack the least twice."""
    grids = ((rows, -(-workers // rows)) for rows in range(1, workers + 1))
    best = min(grids, key=lambda grid: (grid[0] * n + 2 * grid[1] * m, grid))
    task_m, task_n = -(-m // best[0]), -(-n // best[1])
    if own and cut.columns > 1:  # a block of bits is small, and packing N for each costs more than its cells
        task_m, task_n = min(task_m, BITS_ROWS), min(task_n, 8 * cut.NR)
    elif own:
        task_m, task_n = min(task_m, OWN_BLOCK), min(task_n, OWN_BLOCK)
    return no_row_alone(m, -(-task_m // cut.MR) * cut.MR, cut.MR), -(-task_n // cut.NR) * cut.NR
