"""How a product is cut into tasks, and how much workspace each worker needs: the parts that families share.

k is cut by shape alone, never by the number of threads, so threads never change a bit of the result.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.strips import count_tasks
from tilewise.core.blocking import SMALL_P, TALL_K, Blocking

BITS_ROWS = 4096  # rows of a task of bits: packing N costs more than such a block
STEPS_PER_THREAD = 2**15  # vector steps that justify a thread: about five microseconds
# vector steps that loading or storing a vector of M, N or P costs in products with little arithmetic
STEPS_PER_ACCESS = 8
AMX_BLOCK = 512  # with AMX, which multiplies so fast that packing the operands of smaller blocks costs a fifth
OWN_BLOCK = 384  # most rows and columns of a piece that a task computes in its own block
CHAINS = 64  # most splits of ordered sums
SPLIT, SPLITS = 4096, 16  # where P is small, k is split into at most SPLITS parts of at least SPLIT
# least bytes of M and N per k split where they are read once, and most splits: each takes some microseconds, and many
# threads have a few each
SPLIT_BYTES, MOST_SPLITS = 2**16, 64
FAR = 2**20  # bytes of N that stay in no core's own cache until the next product
FAR_N_SPLITS = 8  # most k splits where N comes from memory
ROWS_PER_SUM = 40  # least rows of N per sum and column: one thread then loses nothing by storing sums separately


class Extents(NamedTuple):
    """The product as its kernel computes it, and how many threads work on it."""

    m: int
    k: int
    n: int
    members: int  # of the stack
    rows_of_P: bool  # P's columns are contiguous
    column_of_N: bool  # N's first column is contiguous
    workers: int
    onto: bool = False  # the product is added to P

    @property
    def workers_a_member(self) -> int:
        """Threads per member of the stack; with at least as many members as threads each member has one."""
        return self.workers if self.members < self.workers else 1


def workers_for(m: int, k: int, n: int, members: int, threads: int, lanes: int) -> int:
    """The number of threads for which each has enough work; `lanes`: steps per instruction."""
    if threads == 1:
        return 1
    work = members * (m * k * n + STEPS_PER_ACCESS * (m * k + k * n + m * n)) // lanes
    return max(1, min(threads, work // STEPS_PER_THREAD))


class Tasks(NamedTuple):
    count: int  # type: ignore[assignment]  # hides tuple.count
    tasks_m: int = 1
    tasks_n: int = 1
    tasks_k: int = 1
    task_m: int = 1
    task_n: int = 1
    task_k: int = 1
    each: int = 0  # bytes of workspace per worker
    sums: int = 0  # bytes of split-K sums
    strip: int = 0  # elements of a packed strip of N that all workers share


def share(extent: int, workers: int, unit: int, per_worker: int = 2) -> int:
    """The size of a piece, in whole units, of `per_worker` pieces per worker: with two, the faster worker takes the
    last one."""
    pieces = per_worker * workers if workers > 1 else 1
    return max(1, -(-extent // (pieces * unit))) * unit


def no_single_last_row(m: int, task_m: int, unit: int) -> int:
    """Rows of a task, increased by units until the last task has more than one row: tiles of one row sum in another
    order (`grid.sum_sets`), and no bit of P may depend on the number of threads."""
    while task_m < m and m % task_m == 1:
        task_m += unit
    return task_m


def pages(size: int) -> int:
    return -(-size // 4096) * 4096 + 4096 if size else 0


def split_columns(
    a: Arithmetic, x: Extents, packed: int, per_worker: int, splits: int = 1, task_k: int = 1, sums: int = 0
) -> Tasks:
    """Tasks are ranges of P's columns, whole cache lines wide, `per_worker` to a worker: one where bandwidth counts
    most, for long rows of N. `packed`: bytes per worker. Each of `splits` of k, `task_k` long, has its own workers."""
    task_n = share(x.n, -(-x.workers_a_member // splits), 64 // a.bytes, per_worker)
    tasks_n = -(-x.n // task_n)
    return Tasks(splits * x.members * tasks_n, 1, tasks_n, splits, x.m, task_n, task_k, pages(packed), sums)


def split_rows(
    a: Arithmetic, x: Extents, packed: int, unit: int = 0, splits: int = 1, task_k: int = 1, sums: int = 0
) -> Tasks:
    """Tasks are ranges of P's rows, two to a worker, in units of a tile's rows or of `unit`; `packed`: bytes per
    worker. Each range for every one of `splits` of k, `task_k` long."""
    unit = unit or a.MR
    task_m = no_single_last_row(x.m, share(x.m, x.workers_a_member, unit), unit)
    tasks_m = -(-x.m // task_m)
    return Tasks(splits * x.members * tasks_m, tasks_m, 1, splits, task_m, x.n, task_k, pages(packed), sums)


def shared_strips(a: Arithmetic, cut: Blocking, x: Extents) -> Tasks:
    """Rows of P are distributed, several pieces to a worker; the columns of a strip are packed by all workers."""
    m, k, n, workers = x.m, x.k, x.n, x.workers
    width, depth = min(cut.NC, n), min(cut.KC, k)
    task_m = no_single_last_row(m, min(share(m, workers, a.MR), cut.MC), a.MR)
    task_n = share(width, workers, a.NR)
    tasks_m, tasks_n, strips = -(-m // task_m), -(-width // task_n), -(-n // cut.NC) * -(-k // cut.KC)
    strip = -(-width // a.NR) * a.NR * a.rows_n(depth) * a.parts
    each = pages(-(-task_m // a.MR) * a.MR * a.rows_m(depth) * a.parts * a.packed_m_bytes)
    return Tasks(
        count_tasks(tasks_n, tasks_m, strips), tasks_m=tasks_m, tasks_n=tasks_n, task_m=task_m, task_n=task_n, task_k=k,
        each=each, sums=pages(min(strips, 2) * strip * a.bytes), strip=strip,
    )  # fmt: skip


def split_k(m: int, k: int, n: int, KC: int, ordered: bool = False) -> tuple[int, int]:
    """The number of k splits, and their length; of ordered sums each chain is one."""
    if m * n > SMALL_P or k < TALL_K or (ordered and k > CHAINS * KC):
        return 1, k
    if ordered:
        return -(-k // KC), KC
    count = min(SPLITS, k // SPLIT)
    each = math.ceil(math.ceil(k / count) / KC) * KC
    return -(-k // each), each


def split_k_contiguous(x: Extents, row: int) -> tuple[int, int]:
    """`split_k` where M and N are read once, `row` bytes of them per k, for a P too small to be cut otherwise: a power
    of two of splits, so that threads have equal work, which end on cache lines."""
    count = 1
    while 2 * count <= min(MOST_SPLITS, x.k * row // SPLIT_BYTES):
        count *= 2
    if count == 1:
        return 1, x.k
    each = -(-x.k // (64 * count)) * 64
    return -(-x.k // each), each


def split_k_far_n(x: Extents, size: int, KC: int) -> tuple[int, int]:
    """`split_k` where a few rows read an N from memory, with elements of `size` bytes: a range of its rows is one
    contiguous read, a range of columns many short ones (two threads took 1.2 to 1.9 times as long). By shape alone, and
    no more splits than adding their sums is worth."""
    count = 1
    while 2 * count <= min(FAR_N_SPLITS, x.k // (ROWS_PER_SUM * x.m)):
        count *= 2
    if count == 1 or x.members > 1 or x.k * x.n * size < FAR:
        return 1, x.k
    each = -(-x.k // (count * KC)) * KC
    return -(-x.k // each), each


def pieces(m: int, n: int, workers: int, cut: Blocking, own: bool) -> tuple[int, int]:
    """Rows and columns of P per task: near-square pieces pack the least twice."""
    grids = ((rows, -(-workers // rows)) for rows in range(1, workers + 1))
    best = min(grids, key=lambda grid: (grid[0] * n + 2 * grid[1] * m, grid))
    task_m, task_n = -(-m // best[0]), -(-n // best[1])
    if own and cut.columns > 1:  # a block of bits is small, and packing N for each costs more than its cells
        task_m, task_n = min(task_m, BITS_ROWS), min(task_n, 8 * cut.NR)
    elif own:
        most = AMX_BLOCK if cut.amx else OWN_BLOCK
        task_m, task_n = min(task_m, most), min(task_n, most)
    return no_single_last_row(m, -(-task_m // cut.MR) * cut.MR, cut.MR), -(-task_n // cut.NR) * cut.NR
