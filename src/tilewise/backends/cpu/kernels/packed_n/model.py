"""`packed_n`: M's rows contiguous along k, N's and P's rows contiguous; for products larger than the caches. M and N of
complex numbers may have any strides."""

from __future__ import annotations

from tilewise.backends.cpu.family import View, light_or_halves, views
from tilewise.backends.cpu.kernels.dots import model as dots
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.tasks import Extents, Tasks, pages, pieces, shared_strips, split_rows
from tilewise.core.blocking import SMALL_P, TALL_K, Blocking, RegisterTile, broadcast_costs, even_strips
from tilewise.core.problem import Problem

IDEA = "M is read in place, panels of N are packed, a register tile over all of KC"
NARROW = 2**25  # steps from which one- and two-byte integers are better replicated over 32 bits, by packing M
COLUMNS = 64  # columns from which quieting M while packing it pays
REPEATED, QUIETED = 32, 24  # the same on NEON: where packing replicates M over lanes, and where it also quiets it
CHUNK = 16  # rows of a half-precision M that are widened at a time, and stay in L1
NEAR_N = 2**20  # bytes of packed half precision that stay in L2
ENOUGH = 192  # columns from which widening M costs little
HIGH = 768  # rows of P from which sharing packed strips of N is faster than packing N in each thread
# threads from which each gets two pieces, because some may be preempted (16 threads took 0.8 to 0.9 of the time)
MANY = 8
ROWS_PER_THREAD = 256  # NEON: rows per thread from which packing N in each costs little
# most columns beside a column-major N, or rows, of a column-major complex M that is read in place (446x197x88
# complex128 took 1.4 times as long, 21x708x2394 complex64 takes 0.68 of the time)
COLUMNS_OF_M, ROWS_OF_M = 64, 40
SHALLOW = 32  # k up to which P is the cost: it is written along its rows, and M is read in place
NEON_HIGH, NEON_WIDE = 400, 256  # rows and columns of P from which a packed M is faster there


def takes(problem: Problem, view: View, tile: RegisterTile) -> bool:
    if problem.as_pairs:
        return not tile.neon and view.p_along_n
    return light_or_halves(problem) and view.m_along_k and view.n_along_n and view.p_along_n


def suits(problem: Problem, view: View, tile: RegisterTile) -> str:
    if problem.as_pairs and not (view.m_along_k and view.n_along_n):
        return _of_pairs(problem, view, tile)
    # broadcasting a narrow element of M takes a port that the arithmetic needs
    spread = problem.dtype.itemsize < 4 and not problem.halves and view.m * view.k * view.n >= NARROW
    shared_k = view.k >= TALL_K and view.m * view.n <= SMALL_P
    packs_m = spread or shared_k or (tile.neon and _better_packed(problem, view, tile))
    if tile.registers >= 32 and problem.signals:
        packs_m |= view.n >= COLUMNS  # with signalling NaN quieted, a min that skips NaN is one instruction
    return "" if packs_m else "M's rows are contiguous along k, and are read in place"


def _of_pairs(problem: Problem, view: View, tile: RegisterTile) -> str:
    """Complex numbers, of which M is column-major, or N, which is then packed by pairs; unless dot products of few
    columns do with neither (2x3512x1495 complex64, both column-major, takes 0.67 of the time)."""
    near = view.m_along_k or view.m <= ROWS_OF_M or (view.k <= COLUMNS_OF_M and not view.n_along_n)
    if min(view.m, view.n) == 1 or not near:
        return ""
    other = next(x for x in views(problem) if x.swapped != view.swapped)
    if dots.takes(problem, other, tile) and dots.suits(problem, other, tile):
        return ""
    return "M is read in place, and N is packed by pairs"


def _better_packed(problem: Problem, view: View, tile: RegisterTile) -> bool:
    """NEON: packing lets M be loaded by whole vectors, or replicated where a broadcast takes a vector port. In place
    M's rows are loaded by whole vectors too, so for floats packing pays only if both sides are long. Half precision:
    this family widens M a few rows at a time and its tiles store to P; `packed` sums in a block and rounds that."""
    if problem.semiring.multiplies and problem.halves:
        return False
    if problem.semiring.multiplies and problem.dtype.kind == "f":
        return view.m >= NEON_HIGH and view.n >= NEON_WIDE and view.k > SHALLOW
    if problem.semiring.multiplies or problem.dtype.itemsize < 4:
        return problem.semiring.multiplies or view.n >= COLUMNS
    return broadcast_costs(problem, tile) and view.n >= (QUIETED if problem.signals else REPEATED)


def KC(problem: Problem) -> int:
    return even_strips(problem.k)


def tasks(a: Arithmetic, cut: Blocking, x: Extents) -> Tasks:
    if not a.same_storage:
        return _half_pieces(a, cut, x)
    # NEON: N is narrow here and packing it cheap (2554x192x104 on two threads 0.90 of OpenBLAS's speed with shared
    # strips, 1.09 without)
    packs_alone = a.target.by_lane and a.fused and x.m >= ROWS_PER_THREAD * x.workers
    if x.workers > 1 and x.members == 1 and x.m > HIGH and not packs_alone:
        return shared_strips(a, cut, x)._replace(each=0)
    if a.target.by_lane and x.k <= SHALLOW and x.m >= x.workers * a.MR:
        packed = min(cut.group, -(-x.n // a.NR) * a.NR) * x.k * a.bytes
        return split_rows(a, x, packed)
    each_member = max(1, x.workers // x.members)
    task_m, task_n = pieces(x.m, x.n, each_member * (2 if each_member >= MANY else 1), cut, False)
    tasks_m, tasks_n = -(-x.m // task_m), -(-x.n // task_n)
    each = pages(min(cut.group, -(-task_n // a.NR) * a.NR) * min(cut.KC, x.k) * a.bytes)
    count = x.members * tasks_m * tasks_n
    return Tasks(count, tasks_m, tasks_n, task_m=task_m, task_n=task_n, each=each)


def _half_pieces(a: Arithmetic, cut: Blocking, x: Extents) -> Tasks:
    """Independent pieces for half precision. All of k is packed where L2 holds enough columns of it: M is then read
    along its rows, and sums stay in L1. Else as much of k as L2 holds."""
    workers, strip = max(1, x.workers // x.members), min(cut.KC, x.k)
    task_m, task_n = pieces(x.m, x.n, workers, cut, False)
    widest = NEAR_N // (x.k * a.bytes) // a.NR * a.NR
    if min(task_n, ENOUGH) <= widest:
        parts = -(-task_n // widest)
        task_n, task_k, high = -(-task_n // (parts * a.NR)) * a.NR, x.k, CHUNK
    else:
        task_m, task_n = pieces(x.m, x.n, workers, cut, True)
        task_k, high = max(1, NEAR_N // (task_n * a.bytes) // strip) * strip, task_m
    tasks_m, tasks_n = -(-x.m // task_m), -(-x.n // task_n)
    each = pages((high * task_n + (CHUNK + task_n) * task_k) * a.bytes)
    return Tasks(
        x.members * tasks_m * tasks_n, tasks_m, tasks_n, task_m=task_m, task_n=task_n, task_k=task_k, each=each
    )
