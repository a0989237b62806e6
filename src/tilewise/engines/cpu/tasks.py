"""How a product is cut into tasks, and how much scratch memory each worker needs.

k is cut by shape alone, never by the number of threads, so threads never change a bit of the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tilewise.blocking import FEW, SMALL_P, TALL_K, Blocking
from tilewise.engines.cpu.arithmetic import Arithmetic
from tilewise.engines.cpu.packed import writes_apart
from tilewise.engines.cpu.strips import count_tasks

BITS_ROWS = 4096  # rows of a task whose N is packed into bits: packing it costs more than such a block
SMALL = 150_000  # steps below which a second thread costs more than it brings
HIGH = 768  # rows of P from which threads had better share what they have packed of N than each pack it on the way
OWN_BLOCK = 384  # rows and columns of the piece a task makes in a block of its own
STRETCH, STRETCHES = 4096, 16  # k is cut into stretches of STRETCH where P is small


@dataclass(frozen=True)
class Tasks:
    count: int
    tasks_m: int = 1
    tasks_n: int = 1
    tasks_k: int = 1
    task_m: int = 1
    task_n: int = 1
    task_k: int = 1
    each: int = 0  # bytes of scratch memory for each worker
    sums: int = 0  # bytes for the sums that stretches of k leave apart
    worth_threads: bool = True
    strip: int = 0  # elements of a packed strip of N, where all workers share them


def cut_tasks(
    a: Arithmetic, cut: Blocking, m: int, k: int, n: int, members: int, rows_of_P: bool, column_of_N: bool, threads: int
) -> Tasks:
    """`rows_of_P`: P's columns lie side by side. `column_of_N`: its first column's elements do."""
    worth = m * k * n * members > SMALL
    workers = threads if worth else 1
    if cut.kernel == "tiny":
        each = max(1, -(-members // (4 * workers)))
        return Tasks(-(-members // each), task_m=each, worth_threads=worth)
    if cut.kernel in ("few_rows", "little"):
        each = 1 if m <= 2 else 2  # nothing but memory counts: long lines of N
        task_n = _share(n, workers if members < workers else 1, 64 // a.bytes, each)
        packed = FEW * min(cut.KC, k) * max(a.bytes, 4) if cut.kernel == "few_rows" else 0
        count = members * -(-n // task_n)
        return Tasks(count, tasks_n=-(-n // task_n), task_n=task_n, each=_pages(packed), worth_threads=worth)
    if cut.kernel in ("few_columns", "dots"):
        task_m = _share(m, workers if members < workers else 1, a.MR)
        packed = min(cut.KC, k) * a.NR * a.bytes if cut.kernel == "few_columns" else k * a.bytes * (not column_of_N)
        count = members * -(-m // task_m)
        return Tasks(count, tasks_m=-(-m // task_m), task_m=task_m, each=_pages(packed), worth_threads=worth)
    if cut.kernel == "packed_n":
        if workers > 1 and members == 1 and m > HIGH:
            return replace(_strips(a, cut, m, k, n, workers), each=0)
        task_m, task_n = pieces(m, n, max(1, workers // members), cut, False)
        tasks_m, tasks_n = -(-m // task_m), -(-n // task_n)
        each = _pages(min(cut.group, -(-task_n // a.NR) * a.NR) * min(cut.KC, k) * a.bytes)
        return Tasks(
            members * tasks_m * tasks_n, tasks_m, tasks_n, task_m=task_m, task_n=task_n, each=each, worth_threads=worth
        )
    return _packed(a, cut, (m, k, n), members, rows_of_P, workers, worth)


def _share(extent: int, workers: int, unit: int, each: int = 2) -> int:
    """So many pieces for each worker, in whole units: with two, the faster one takes the last."""
    pieces = each * workers if workers > 1 else 1
    return max(1, -(-extent // (pieces * unit))) * unit


def _pages(size: int) -> int:
    return -(-size // 4096) * 4096 + 4096 if size else 0


def _packed(
    a: Arithmetic, cut: Blocking, shape: tuple[int, int, int], members: int, rows_of_P: bool, workers: int, worth: bool
) -> Tasks:
    m, k, n = shape
    own = writes_apart(a) or not rows_of_P
    tasks_k, task_k = (1, k) if a.tracks_arg or a.bits else stretches(m, k, n, cut.KC)
    if workers > 1 and members == 1 and tasks_k == 1 and not own:
        return _strips(a, cut, m, k, n, workers)
    own = own and tasks_k == 1
    task_m, task_n = pieces(m, n, max(1, workers // (members * tasks_k)), cut, own)
    tasks_m, tasks_n = -(-m // task_m), -(-n // task_n)
    depth = min(cut.KC, task_k)
    packed_n = -(-min(cut.NC, task_n) // a.NR) * a.width * depth * a.parts * a.bytes
    packed_m = -(-min(cut.MC, task_m) // a.MR) * a.MR * depth * a.parts * max(a.bytes, 4)
    block = task_m * (task_n // a.columns) * (a.parts * a.bytes + (8 if a.tracks_arg else 0)) + 128 if own else 0
    sums = members * tasks_k * m * n * a.parts * a.bytes if tasks_k > 1 else 0
    count = members * tasks_m * tasks_n * tasks_k
    each = _pages(packed_n + packed_m + block)
    return Tasks(count, tasks_m, tasks_n, tasks_k, task_m, task_n, task_k, each, sums, worth)


def _strips(a: Arithmetic, cut: Blocking, m: int, k: int, n: int, workers: int) -> Tasks:
    """Rows of P are dealt out, several pieces to a worker; the columns of a strip are packed together."""
    width, depth = min(cut.NC, n), min(cut.KC, k)
    task_m = min(_share(m, workers, a.MR), cut.MC)
    task_n = _share(width, workers, a.NR)
    tasks_m, tasks_n, strips = -(-m // task_m), -(-width // task_n), -(-n // cut.NC) * -(-k // cut.KC)
    strip = -(-width // a.NR) * a.NR * depth
    each = _pages(-(-task_m // a.MR) * a.MR * depth * max(a.bytes, 4))
    return Tasks(
        count_tasks(tasks_n, tasks_m, strips), tasks_m=tasks_m, tasks_n=tasks_n, task_m=task_m, task_n=task_n, task_k=k,
        each=each, sums=_pages(min(strips, 2) * strip * a.bytes), strip=strip,
    )  # fmt: skip


def stretches(m: int, k: int, n: int, KC: int) -> tuple[int, int]:
    """How many tasks share k, and how long each one's stretch is."""
    if m * n > SMALL_P or k < TALL_K:
        return 1, k
    count = min(STRETCHES, k // STRETCH)
    each = math.ceil(math.ceil(k / count) / KC) * KC
    return -(-k // each), each


def pieces(m: int, n: int, workers: int, cut: Blocking, own: bool) -> tuple[int, int]:
    """Rows and columns of P that a task makes: near-square cuts pack the least twice."""
    grids = ((rows, -(-workers // rows)) for rows in range(1, workers + 1))
    best = min(grids, key=lambda grid: (grid[0] * n + 2 * grid[1] * m, grid))
    task_m, task_n = -(-m // best[0]), -(-n // best[1])
    if own and cut.columns > 1:  # a block of bits is small, and packing N for each costs more than its cells
        task_m, task_n = min(task_m, BITS_ROWS), min(task_n, 8 * cut.NR)
    elif own:
        task_m, task_n = min(task_m, OWN_BLOCK), min(task_n, OWN_BLOCK)
    return -(-task_m // cut.MR) * cut.MR, -(-task_n // cut.NR) * cut.NR
