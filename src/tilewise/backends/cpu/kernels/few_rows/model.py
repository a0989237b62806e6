"""`few_rows`: up to FEW rows, which one packed panel of M holds; rows of N and of P side by side."""

from __future__ import annotations

from dataclasses import replace

from tilewise.algebra.to_llvm import part
from tilewise.backends.cpu.family import View, halves, light_or_halves, rows_collide
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.tasks import Extents, Tasks, columns_apart, pages
from tilewise.core.blocking import FEW, TALL_K, Blocking, RegisterTile, multiplies
from tilewise.core.problem import Problem

IDEA = "a handful of rows; N is read once, where it lies"
FAR = 2**20  # bytes of N that no core's own cache keeps for the next product
PACKED, PACKED_RING = (
    3,
    5,
)  # rows from which packing N pays where its rows collide, by whether a step multiplies and adds
STRETCHES = 8  # of k, at most
LESS = 40  # times as many rows of N as sums of each column: one thread loses nothing then by leaving them apart


def takes(problem: Problem, view: View, tile: RegisterTile) -> bool:
    return light_or_halves(problem) and view.m <= FEW and view.n_along_n and view.p_along_n


def suits(problem: Problem, view: View, tile: RegisterTile) -> str:
    if view.m >= (PACKED if multiplies(problem) else PACKED_RING) and rows_collide(problem, view, tile):
        return ""
    alone = tile.neon and view.m == 1 and problem.dtype.kind == "f" and multiplies(problem)  # `one_row`
    wide = view.n >= 4 * tile.NR or view.k < TALL_K or alone
    if halves(problem) and tile.vector_bytes == 16:  # N is widened for every tile of rows; packed, once
        wide &= view.m <= tile.registers // 8
    return f"{view.m} rows: N is read once where it lies, packing it would cost more" if wide else ""


def KC(problem: Problem) -> int:
    """Rows of N at a time: thin strips are few, long streams, where N comes from memory."""
    if problem.k * max(problem.m, problem.n) * part(problem.algebra.partial).itemsize <= 2**18:
        return 256
    m = min(problem.m, problem.n)
    return 8 if m <= 2 else 48 if m <= 8 else 64


def tasks(a: Arithmetic, cut: Blocking, x: Extents) -> Tasks:
    packed = FEW * min(cut.KC, x.k) * a.packed_m_bytes
    if not a.same_storage:
        made = columns_apart(a, x, packed, 1)
        return replace(made, each=pages(packed + x.m * made.task_n * a.bytes))
    count, each = _stretches(a, cut, x)
    made = columns_apart(a, x, packed, 1, count)
    sums = pages(count * x.m * x.n * a.bytes) if count > 1 else 0
    return replace(made, count=count * made.count, tasks_k=count, task_k=each, sums=sums)


def _stretches(a: Arithmetic, cut: Blocking, x: Extents) -> tuple[int, int]:
    """How many tasks share k, and how long each one's stretch is: a range of N's rows comes from memory in one go, a
    range of columns in pieces, with what lies between them fetched for nothing (two threads 1.2 to 1.9 times as long).
    By shape alone, for no bit of P may depend on how many threads there are; and no more than adding up is worth."""
    count = 1
    while 2 * count <= min(STRETCHES, x.k // (LESS * x.m)):
        count *= 2
    if count == 1 or x.members > 1 or x.k * x.n * a.bytes < FAR:
        return 1, x.k
    each = -(-x.k // (count * cut.KC)) * cut.KC
    return -(-x.k // each), each
