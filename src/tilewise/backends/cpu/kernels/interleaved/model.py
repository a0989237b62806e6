"""`interleaved`: plus_times of integers of one and two bytes, any strides, where one instruction multiplies and adds
several k."""

from __future__ import annotations

from tilewise.backends.cpu.family import View, is_dot
from tilewise.backends.cpu.kernels.packed.model import tasks
from tilewise.core.blocking import RegisterTile
from tilewise.core.problem import Problem

IDEA = "integers of one and two bytes: several k side by side, multiplied and added at once"
DEPTH = 1024  # k of a packed strip
SOME = 24  # up to so many rows or columns the larger operand is better read in place, by `short_rows` or `short_dots`
STEPS = 2**14  # from so many steps on packing pays

__all__ = ["IDEA", "KC", "k_pack", "suits", "takes", "tasks"]


def k_pack(problem: Problem, tile: RegisterTile) -> int:
    """Consecutive k per 32-bit lane: 4, 2, or 1 where no instruction multiplies and adds several."""
    partial, sources = problem.algebra.partial, (problem.dtype_m, problem.dtype_n)
    if partial.kind not in "iu" or partial.itemsize > 4 or problem.return_arg or not problem.semiring.multiplies:
        return 1
    if any(x.kind not in "iu" or x.itemsize > min(2, partial.itemsize) for x in sources):
        return 1
    kinds, wide = {x.kind for x in sources}, max(x.itemsize for x in sources)
    if tile.neon:
        alike = partial.itemsize == 1 or len(kinds) == 1
        return 4 if tile.byte_dots and wide == 1 and alike else 1
    if wide == 2:  # the instruction is signed; the low 16 bits of a sum are the same for unsigned operands
        return 1 if partial.itemsize == 4 and any(x.name == "uint16" for x in sources) else 2
    return 4 if tile.byte_dots and (partial.itemsize == 1 or kinds != {"u"}) else 2


def packs_k(problem: Problem, tile: RegisterTile) -> bool:
    return k_pack(problem, tile) > 1


def takes(problem: Problem, view: View, tile: RegisterTile) -> bool:
    return packs_k(problem, tile)


def suits(problem: Problem, view: View, tile: RegisterTile) -> str:
    depth = k_pack(problem, tile)
    thin = problem.light and min(view.m, view.n) <= 16 // depth  # packing costs more than the product
    pays = view.preferred and not thin and not is_dot(view) and view.m * view.k * view.n >= STEPS
    return f"{depth} k at a time, multiplied and added by one instruction" if pays else ""


def KC(problem: Problem) -> int:
    """Equal strips of k, near DEPTH."""
    return -(-problem.k // (8 * max(1, round(problem.k / DEPTH)))) * 8
