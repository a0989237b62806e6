"""`short_rows`: integers of one and two bytes, contiguous rows of N and of P, at least a vector wide; for few rows."""

from __future__ import annotations

from tilewise.backends.cpu.family import View
from tilewise.backends.cpu.kernels.interleaved.model import AMX_FEW, SOME, k_pack, uses_amx
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.tasks import Extents, Tasks, pages, share
from tilewise.core.blocking import SKINNY, Blocking, RegisterTile
from tilewise.core.problem import Problem

IDEA = "a few rows of short integers; N is read in place, and interleaved in registers"
MOST = 2 * SKINNY  # rows
NEAR = 2**18  # bytes of N that are read from a cache


def takes(problem: Problem, view: View, tile: RegisterTile) -> bool:
    depth = k_pack(problem, tile)
    wide = depth > 1 and view.n >= depth * tile.vector_bytes // 4
    return wide and view.m <= MOST and view.n_along_n and view.p_along_n


def suits(problem: Problem, view: View, tile: RegisterTile) -> str:
    pays = view.m <= (AMX_FEW if uses_amx(problem, tile) else SOME) and view.k >= SKINNY
    return f"{view.m} rows of short integers: N is read once in place" if pays else ""


def KC(problem: Problem) -> int:
    """Rows of N per strip: thin strips read N from memory in few, long streams."""
    return 256 if problem.k * max(problem.m, problem.n) <= NEAR else 64


def tile_rows(a: Arithmetic) -> int:
    """Rows of a tile: their sums, and k_pack vectors of N, are in registers."""
    return min(6 if a.target.registers >= 32 else 4, a.target.registers * 3 // (4 * a.k_pack))


def tasks(a: Arithmetic, cut: Blocking, x: Extents) -> Tasks:
    block, high = a.k_pack * a.lanes, -(-x.m // tile_rows(a)) * tile_rows(a)
    task_n = share(x.n, x.workers_a_member, block, 1 if x.m <= 2 else 2)
    tasks_n = -(-x.n // task_n)
    groups = a.groups(min(cut.KC, x.k))
    packed = high * (groups + 1) * 4 + groups * block * 4  # and the interleaved rows of N
    return Tasks(x.members * tasks_n, tasks_n=tasks_n, task_n=task_n, each=pages(packed + x.m * (task_n + block) * 4))
