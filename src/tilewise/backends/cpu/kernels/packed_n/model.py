"""`packed_n`: M's rows along k, N's and P's side by side; for products too large to lie in the caches."""

from __future__ import annotations

from tilewise.backends.cpu.family import View, light_or_halves
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.tasks import Extents, Tasks, pages, pieces, rows_apart, shared_strips
from tilewise.core.blocking import SMALL_P, TALL_K, Blocking, RegisterTile, broadcast_costs, even_strips
from tilewise.core.problem import Problem

IDEA = "M is read where it lies, panels of N are packed, a register tile over all of KC"
NARROW = 2**25  # steps from which integers of one or two bytes are better spread over 32 bits, by packing M
COLUMNS = 64  # from which an M that was made quiet is read often enough
REPEATED, QUIETED = 32, 24  # the same on NEON, of an M that is repeated, and one that is made quiet as well
CHUNK = 16  # rows of a half-precision M that are widened at a time, and stay in the first cache
NEAR_N = 2**20  # bytes of packed half precision that the second cache holds
ENOUGH = 192  # columns for which widening M costs little
HIGH = 768  # rows of P from which sharing packed strips of N is faster than packing N in each thread
MANY = 8  # threads from which pieces are two for each, for some are lent less of a machine (16 took 0.8 to 0.9 as long)
APART = 256  # rows for each thread, on NEON, beside which packing N is little
SHALLOW = 32  # k up to which P is the cost: it is written along its rows, and M is read where it lies
NEON_HIGH, NEON_WIDE = 400, 256  # rows and columns of P from which a packed M is faster there


def takes(problem: Problem, view: View, tile: RegisterTile) -> bool:
    return light_or_halves(problem) and view.m_along_k and view.n_along_n and view.p_along_n


def suits(problem: Problem, view: View, tile: RegisterTile) -> str:
    # a narrow element of M takes a port to broadcast, which its arithmetic needs
    spread = problem.dtype.itemsize < 4 and not problem.halves and view.m * view.k * view.n >= NARROW
    shared_k = view.k >= TALL_K and view.m * view.n <= SMALL_P
    packs_m = spread or shared_k or (tile.neon and _better_packed(problem, view, tile))
    if tile.registers >= 32 and problem.signals:
        packs_m |= view.n >= COLUMNS  # a min that skips NaN is one instruction, once signalling NaN are made quiet
    return "" if packs_m else "M's rows lie along k, and are read where they are"


def _better_packed(problem: Problem, view: View, tile: RegisterTile) -> bool:
    """On NEON: a packed M comes by whole vectors, or repeated where an element in every lane takes a vector port. M's
    rows come by whole vectors where they lie, too: of floats, packing them pays where both sides are long. Halves are
    widened a few rows at a time here, and P is written by the tiles; `packed` makes a block of sums and rounds it."""
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
        return _apart(a, cut, x)
    # NEON has a narrow N here, soon packed: 2554x192x104 by two threads 0.90 of OpenBLAS's speed shared, 1.09 apart
    apart = a.target.by_lane and a.fused and x.m >= APART * x.workers
    if x.workers > 1 and x.members == 1 and x.m > HIGH and not apart:
        return shared_strips(a, cut, x)._replace(each=0)
    if a.target.by_lane and x.k <= SHALLOW and x.m >= x.workers * a.MR:
        packed = min(cut.group, -(-x.n // a.NR) * a.NR) * x.k * a.bytes
        return rows_apart(a, x, packed)
    each_member = max(1, x.workers // x.members)
    task_m, task_n = pieces(x.m, x.n, each_member * (2 if each_member >= MANY else 1), cut, False)
    tasks_m, tasks_n = -(-x.m // task_m), -(-x.n // task_n)
    each = pages(min(cut.group, -(-task_n // a.NR) * a.NR) * min(cut.KC, x.k) * a.bytes)
    count = x.members * tasks_m * tasks_n
    return Tasks(count, tasks_m, tasks_n, task_m=task_m, task_n=task_n, each=each)


def _apart(a: Arithmetic, cut: Blocking, x: Extents) -> Tasks:
    """Pieces that are made apart. All of k is packed where the second cache holds it for columns enough: M is read
    along its rows then, and no sum leaves the first cache. Else as deep as it holds."""
    workers, strip = max(1, x.workers // x.members), min(cut.KC, x.k)
    task_m, task_n = pieces(x.m, x.n, workers, cut, False)
    widest = NEAR_N // (x.k * a.bytes) // a.NR * a.NR
    if min(task_n, ENOUGH) <= widest:
        parts = -(-task_n // widest)
        task_n, deep, high = -(-task_n // (parts * a.NR)) * a.NR, x.k, CHUNK
    else:
        task_m, task_n = pieces(x.m, x.n, workers, cut, True)
        deep, high = max(1, NEAR_N // (task_n * a.bytes) // strip) * strip, task_m
    tasks_m, tasks_n = -(-x.m // task_m), -(-x.n // task_n)
    each = pages((high * task_n + (CHUNK + task_n) * deep) * a.bytes)
    return Tasks(x.members * tasks_m * tasks_n, tasks_m, tasks_n, task_m=task_m, task_n=task_n, task_k=deep, each=each)
