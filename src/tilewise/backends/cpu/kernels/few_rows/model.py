"""`few_rows`: up to SKINNY rows, which one packed panel of M holds; contiguous rows of N and of P."""

from __future__ import annotations

from tilewise.algebra.to_llvm import part
from tilewise.backends.cpu.family import View, light_or_halves, rows_collide
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.tasks import Extents, Tasks, pages, split_columns, split_k_far_n
from tilewise.core.blocking import SKINNY, TALL_K, Blocking, RegisterTile
from tilewise.core.problem import Problem

IDEA = "a handful of rows; N is read once, in place"
PACKED, PACKED_RING = (3, 5)  # rows from which packing N pays where its rows collide: plus_times, others


def takes(problem: Problem, view: View, tile: RegisterTile) -> bool:
    return light_or_halves(problem) and view.m <= SKINNY and view.n_along_n and view.p_along_n


def suits(problem: Problem, view: View, tile: RegisterTile) -> str:
    if view.m >= (PACKED if problem.semiring.multiplies else PACKED_RING) and rows_collide(problem, view, tile):
        return ""
    wide = view.n >= 4 * tile.NR or view.k < TALL_K
    # N would be widened again for every tile of rows; `packed` widens it once
    if problem.halves and tile.vector_bytes == 16:
        wide &= view.m <= tile.registers // 8
    return f"{view.m} rows: N is read once in place, packing it would cost more" if wide else ""


def KC(problem: Problem) -> int:
    """Rows of N per strip: thin strips read N from memory in few, long streams."""
    if problem.k * max(problem.m, problem.n) * part(problem.algebra.partial).itemsize <= 2**18:
        return 256
    m = min(problem.m, problem.n)
    return 8 if m <= 2 else 48 if m <= 8 else 64


def tasks(a: Arithmetic, cut: Blocking, x: Extents) -> Tasks:
    packed = SKINNY * min(cut.KC, x.k) * a.packed_m_bytes
    if not a.same_storage:
        made = split_columns(a, x, packed, 1)
        return made._replace(each=pages(packed + x.m * made.task_n * a.bytes))
    count, each = split_k_far_n(x, a.bytes, cut.KC)
    return split_columns(a, x, packed, 1, count, each, pages(count * x.m * x.n * a.bytes) if count > 1 else 0)
