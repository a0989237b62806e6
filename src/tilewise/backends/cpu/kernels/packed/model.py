"""`packed`: takes every product for which `has_kernel` holds: any strides, dtypes and extents, and args."""

from __future__ import annotations

from tilewise.backends.cpu.family import View, is_x86_sum
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.tasks import Extents, Tasks, pages, pieces, shared_strips, split_k
from tilewise.core.blocking import Blocking, RegisterTile, even_strips
from tilewise.core.problem import Problem

IDEA = "panels of M and N packed first: for any strides and dtypes"


# most columns, of real and of complex numbers, and least k, of a P that is better computed transposed
NARROW, NARROW_PAIRED, DEEP = 32, 24, 128
# KC of complex numbers, by their bytes: a panel of M stays in an L1 of 32 KB (512^3 complex128 took 1.4 times as long
# in one strip of 512)
COMPLEX_KC = {8: 256, 16: 192}
MIRRORED = 64  # rows of P per mirroring task
SYMMETRIC = 64  # rows of a symmetric P from which half the tiles cost less than all of them with another family


def takes(problem: Problem, view: View, tile: RegisterTile) -> bool:
    return True


def suits(problem: Problem, view: View, tile: RegisterTile) -> str:
    return "large enough for packed panels to pay" if view.preferred != _narrow(problem, view, tile) else ""


def _narrow(problem: Problem, view: View, tile: RegisterTile) -> bool:
    """AVX-512: whether the transposed product is better: of a few columns, beside a column-major M that is packed as N
    is, along its rows (3354x287x23 float32 took 2.4 times as long), or as those few rows the better one."""
    row = problem.layout_n.col if view.swapped == view.preferred else problem.layout_m.row
    paired = problem.as_pairs and tile.vector_bytes == 64
    if row != 1 or not (paired or is_x86_sum(problem, tile)):
        return False
    few, many = (view.n, view.m) if view.preferred else (view.m, view.n)
    return few <= (NARROW_PAIRED if paired else NARROW) < many and view.k >= DEEP


def KC(problem: Problem) -> int:
    partial = problem.algebra.partial
    return even_strips(problem.k, COMPLEX_KC[partial.itemsize]) if partial.kind == "c" else even_strips(problem.k)


def needs_block(a: Arithmetic) -> bool:
    """Whether tiles cannot store into P, so that every task computes its piece in a block in the workspace."""
    return (a.result != a.partial and not a.rounds) or a.tracks_arg or a.bits


def _packs_own_columns(a: Arithmetic, cut: Blocking, x: Extents) -> bool:
    """With AMX, where threads would wait for a shared strip, each task packs its columns of N itself: two threads, or
    less than two panels of M for each. (Two threads: bfloat16 128x1000x1000 takes 0.62 of the time, 1000^3 0.95; int8
    0.5, 0.85; float32, which packs more, gains nothing.)"""
    return cut.amx and (x.m < 2 * x.workers * cut.MR or (x.workers == 2 and not a.splits))


def tasks(a: Arithmetic, cut: Blocking, x: Extents) -> Tasks:
    m, k, n = x.m, x.k, x.n
    own = needs_block(a) or not x.rows_of_P or (cut.symmetric and x.onto)
    whole = a.tracks_arg or a.bits or (a.ordered and x.onto)
    tasks_k, task_k = (1, k) if whole else split_k(m, k, n, cut.KC, a.ordered)
    if x.workers > 1 and x.members == 1 and tasks_k == 1 and not (own or _packs_own_columns(a, cut, x)):
        return shared_strips(a, cut, x)
    own = own and tasks_k == 1
    task_m, task_n = pieces(m, n, max(1, x.workers // (x.members * tasks_k)), cut, own)
    tasks_m, tasks_n = -(-m // task_m), -(-n // task_n)
    depth = min(cut.KC, task_k)
    packed_n = -(-min(cut.NC, task_n) // a.NR) * a.width * a.rows_n(depth) * a.parts * a.bytes
    packed_m = -(-min(cut.MC, task_m) // a.MR) * a.MR * a.rows_m(depth) * a.parts * a.packed_m_bytes
    block = task_m * (task_n // a.columns) * (a.parts * a.bytes + (8 if a.tracks_arg else 0)) + 128 if own else 0
    sums = x.members * tasks_k * m * n * a.parts * a.bytes if tasks_k > 1 else 0
    count, each = x.members * tasks_m * tasks_n * tasks_k, pages(packed_n + packed_m + block)
    return Tasks(count, tasks_m, tasks_n, tasks_k, task_m, task_n, task_k, each, sums)
