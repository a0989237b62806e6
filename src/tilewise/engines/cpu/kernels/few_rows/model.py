"""`few_rows`: up to FEW rows, which one packed panel of M holds; rows of N and of P side by side."""

from __future__ import annotations

from dataclasses import replace

from tilewise.algebra.to_llvm import part
from tilewise.blocking import FEW, TALL_K, Blocking, RegisterTile
from tilewise.engines.cpu.family import View, halves, light_or_halves
from tilewise.engines.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.engines.cpu.kernels.shared.tasks import Extents, Tasks, columns_apart, pages
from tilewise.problem import Problem

IDEA = "a handful of rows; N is read once, where it lies"


def takes(problem: Problem, view: View, tile: RegisterTile) -> bool:
    return light_or_halves(problem) and view.m <= FEW and view.n_along_n and view.p_along_n


def suits(problem: Problem, view: View, tile: RegisterTile) -> str:
    wide = view.n >= 4 * tile.NR or view.k < TALL_K
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
    made = columns_apart(a, x, packed)
    return made if a.same_storage else replace(made, each=pages(packed + x.m * made.task_n * a.bytes))
