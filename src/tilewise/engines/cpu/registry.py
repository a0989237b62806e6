"""Every family of kernels on the CPU, and the choice among them: the first that takes the product and suits it.

Tiers are asked in order; within one, the product as it stands is asked before its transpose. A new kernel is a folder
in `kernels/` and a name here.
"""

from __future__ import annotations

from tilewise.blocking import Blocking, is_heavy, register_tile
from tilewise.engines.cpu.family import Family, View, views
from tilewise.engines.cpu.kernels.bits import BITS
from tilewise.engines.cpu.kernels.dots import DOTS
from tilewise.engines.cpu.kernels.few_columns import FEW_COLUMNS
from tilewise.engines.cpu.kernels.few_rows import FEW_ROWS
from tilewise.engines.cpu.kernels.little import LITTLE
from tilewise.engines.cpu.kernels.packed import PACKED
from tilewise.engines.cpu.kernels.packed_n import PACKED_N
from tilewise.engines.cpu.kernels.tiny import TINY
from tilewise.errors import UsageError
from tilewise.problem import Problem

TIERS: tuple[tuple[Family, ...], ...] = (
    (BITS,),
    (TINY,),
    (DOTS, LITTLE, FEW_ROWS, FEW_COLUMNS, PACKED_N),
    (PACKED,),
)
FAMILIES = {family.name: family for tier in TIERS for family in tier}


def choose(problem: Problem, vector_bytes: int, registers: int, kernel: str | None = None) -> Blocking:
    """The cut for a problem on a machine with such vectors; `kernel` pins a family that takes it."""
    ring, partial = problem.semiring, problem.algebra.partial
    part = partial.itemsize // (2 if partial.kind == "c" else 1)
    rows, vectors = register_tile(registers, partial, tracks_arg=problem.return_arg, heavy=is_heavy(ring.add, ring.mul))
    NR = vectors * (vector_bytes // part)
    family, view, why = _pinned(problem, NR, kernel) if kernel is not None else _best(problem, NR)
    return _blocking(problem, family, view, (rows, NR, part), why)


def _best(problem: Problem, NR: int) -> tuple[Family, View, str]:
    for tier in TIERS:
        for view in views(problem):
            for family in tier:
                why = family.takes(problem, view, NR) and family.suits(problem, view, NR)
                if why:
                    return family, view, why
    raise AssertionError(f"no kernel takes {problem}")  # `packed` takes everything that has_kernel lets through


def _pinned(problem: Problem, NR: int, kernel: str) -> tuple[Family, View, str]:
    best, family = _best(problem, NR), FAMILIES[kernel]
    if best[0] is family:
        return best
    for view in sorted(views(problem), key=lambda view: not view.preferred):
        if family.takes(problem, view, NR):
            return family, view, "the kernel was asked for"
    raise UsageError(f"kernel={kernel!r} does not fit {problem.shape} {problem.dtype}: {best[0].name!r} would run")


def _blocking(problem: Problem, family: Family, view: View, tile: tuple[int, int, int], why: str) -> Blocking:
    (MR, NR, part), itemsize = tile, problem.algebra.partial.itemsize
    NR *= family.columns
    KC = 127 if problem.return_arg and part == 1 else family.KC(problem)  # a tile counts its k as wide as a lane
    MC = family.MC or {1: 1024, 2: 1024, 4: 512, 8: 512, 16: 256}[itemsize]
    NC = max(1, 16384 // itemsize // NR) * NR
    return Blocking(family.name, view.swapped, MR, NR, KC, MC // MR * MR, NC, family.group * NR, why, family.columns)
