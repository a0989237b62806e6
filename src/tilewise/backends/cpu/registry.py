"""Every family of kernels on the CPU, and the choice among them: the first that takes the product and suits it.

Tiers are tried in order; within one, the product as it is before its transpose. A new kernel is a folder
in `kernels/` and a name here.
"""

from __future__ import annotations

from functools import lru_cache

from tilewise.algebra.dtypes import DTYPES, DType
from tilewise.algebra.semiring import Semiring
from tilewise.algebra.to_llvm import part
from tilewise.backends.cpu.family import CpuFamily, View, is_x86_sum, views
from tilewise.backends.cpu.kernels.axpy import AXPY
from tilewise.backends.cpu.kernels.bits import BITS
from tilewise.backends.cpu.kernels.bits.model import is_or_and
from tilewise.backends.cpu.kernels.dots import DOTS
from tilewise.backends.cpu.kernels.few_columns import FEW_COLUMNS
from tilewise.backends.cpu.kernels.few_columns.model import SHALLOW
from tilewise.backends.cpu.kernels.few_rows import FEW_ROWS
from tilewise.backends.cpu.kernels.interleaved import INTERLEAVED
from tilewise.backends.cpu.kernels.interleaved.model import SPLIT_ROWS, amx_blocks, k_of_word, rounds_sums, uses_amx
from tilewise.backends.cpu.kernels.packed import PACKED
from tilewise.backends.cpu.kernels.packed.model import SYMMETRIC
from tilewise.backends.cpu.kernels.packed_n import PACKED_N
from tilewise.backends.cpu.kernels.short_dots import SHORT_DOTS
from tilewise.backends.cpu.kernels.short_rows import SHORT_ROWS
from tilewise.backends.cpu.kernels.tiny import TINY
from tilewise.backends.cpu.kernels.unpacked import UNPACKED
from tilewise.backends.cpu.kernels.unpacked.model import FEWEST, P_APART, sums_apart
from tilewise.core.blocking import AMX_TILE, Blocking, RegisterTile, even_strips, register_tile
from tilewise.core.machine import Machine
from tilewise.core.problem import Problem
from tilewise.core.reproducible import CHAIN
from tilewise.errors import UsageError

INT32 = DTYPES["int32"]
ROWS_OF_M = {1: 1024, 2: 1024, 4: 512, 8: 512, 16: 192}  # of a packed block, by the bytes of an element
NEAR = 2**18  # bytes of packed N that stay in L2
# Floats on NEON (L1 64 KB, second 1 MB): deeper strips read and write P less often, and a packed block of M leaves room
# for a group of N's panels (1000^3 of float32: 0.905 of the port limit with 384, 512 and 8; 0.947)
NEON_KC, NEON_MC, NEON_GROUP = 448, 128, 12
# rows of `packed_n` up to which a group is FEW_PANELS of N on AVX-512 (26 products of 16 to 256 rows take 0.96 of their
# time with 8 panels)
FEW_ROWS_OF_M, FEW_PANELS = 256, 3
MANY_ROWS = 500  # of a column-major M, from which a few columns of a short k are not better transposed
TIERS: tuple[tuple[CpuFamily, ...], ...] = (
    (BITS,),
    (TINY,),
    (SHORT_DOTS, SHORT_ROWS),
    (INTERLEAVED,),
    (AXPY, DOTS, UNPACKED, FEW_ROWS, FEW_COLUMNS, PACKED_N),
    (PACKED,),
)
FAMILIES = {family.name: family for tier in TIERS for family in tier}


def choose(problem: Problem, machine: Machine, kernel: str | None = None) -> Blocking:
    """The cut for a problem on a machine; `kernel` pins a family that takes it."""
    return cut_for(problem, tile_of(problem, machine), kernel)


def cut_for(problem: Problem, tile: RegisterTile, kernel: str | None = None) -> Blocking:
    """`choose` for a known register tile."""
    family, view, why = _pinned(problem, tile, kernel) if kernel is not None else _best(problem, tile)
    return _blocking(problem, family, view, tile, why)


def tile_of(problem: Problem, machine: Machine) -> RegisterTile:
    """The register tile of problems like this one, of any size."""
    has = machine.vector_bytes, machine.registers, machine.byte_dots, machine.matrix_tiles
    return _tile(problem.semiring, problem.algebra.partial, problem.return_arg, *has)


@lru_cache(maxsize=1024)
def _tile(ring: Semiring, partial: DType, tracks_arg: bool, width: int, registers: int, *has: bool) -> RegisterTile:
    rows, vectors = register_tile(width, registers, partial, ring.add, ring.mul, tracks_arg=tracks_arg)
    return RegisterTile(rows, vectors * (width // part(partial).itemsize), width, registers, *has)


def _best(problem: Problem, tile: RegisterTile) -> tuple[CpuFamily, View, str]:
    both = views(problem)
    if problem.ordered and problem.algebra.partial.kind == "c":  # x·y and y·x differ in the order of their parts
        straight = both[1] if both[0].swapped else both[0]
        return PACKED, straight, "complex sums have a specified order"
    if not tile.neon and _few_columns_of_a_column_major_m(problem, tile, *both):
        both = both[::-1]
    if problem.symmetric and problem.m >= SYMMETRIC and not problem.return_arg and not is_or_and(problem, tile):
        family = INTERLEAVED if k_of_word(problem, tile) > 1 else PACKED
        return (family, both[0] if both[0].preferred else both[1], "N is M transposed: half of P is mirrored")
    for tier in _tiers(problem, tile):
        for view in both:
            for family in tier:
                why = family.takes(problem, view, tile) and family.suits(problem, view, tile)
                if why:
                    return family, view, why
    raise AssertionError(f"no kernel takes {problem}")  # `packed` takes every problem for which has_kernel holds


def _few_columns_of_a_column_major_m(problem: Problem, tile: RegisterTile, first: View, second: View) -> bool:
    """Whether Pᵀ = Nᵀ ⊗ Mᵀ is tried first: its few rows read M by whole vectors, along its columns (2923x43x2
    of float32 took 2.9 times as long otherwise, 2000x300x4 4.7 times; 431x1688x6 3.3 times, with `packed`)."""
    if first.swapped or first.m_along_k or not second.n_along_n or first.n >= first.m:
        return False
    if first.n > FEWEST:
        return sums_apart(problem, second, tile)
    if first.n > 2 and first.m >= MANY_ROWS and not first.n_along_n and is_x86_sum(problem, tile):
        return first.k > SHALLOW  # else `few_columns`: 35958x8x4 of float32 takes 0.47 of the time
    return first.m > FEWEST and (first.k >= P_APART or (first.m < MANY_ROWS and not first.n_along_n))


def _tiers(problem: Problem, tile: RegisterTile) -> list[list[CpuFamily]]:
    """The families that take the problem's dtypes and semiring; cached for all of its sizes."""
    found: list[list[CpuFamily]] | None = problem.shared.get(tile)
    if found is None:
        kept = [[family for family in tier if _may_take(family, problem, tile)] for tier in TIERS]
        found = problem.shared[tile] = [tier for tier in kept if tier]
    return found


def _may_take(family: CpuFamily, problem: Problem, tile: RegisterTile) -> bool:
    """Whether a family takes a problem's dtypes and semiring, and has the order of sums that the problem specifies.
    Ordered sums onto P start from what it holds, complex ones keep the order of their parts: `packed` alone does."""
    onto_or_complex = problem.accumulate or problem.algebra.partial.kind == "c"
    if problem.ordered and not (family.k_order and (family is PACKED or not onto_or_complex)):
        return False
    return family.takes_algebra(problem, tile)


def _pinned(problem: Problem, tile: RegisterTile, kernel: str) -> tuple[CpuFamily, View, str]:
    best, family = _best(problem, tile), FAMILIES[kernel]
    if best[0] is family:
        return best
    for view in sorted(views(problem), key=lambda view: not view.preferred):
        if _may_take(family, problem, tile) and family.takes(problem, view, tile):
            return family, view, "the kernel was requested"
    raise UsageError(f"kernel={kernel!r} does not fit {problem.shape} {problem.dtype}: {best[0].name!r} would run")


def _blocking(problem: Problem, family: CpuFamily, view: View, tile: RegisterTile, why: str) -> Blocking:
    MR, NR, itemsize = tile.MR, tile.NR * family.columns, problem.algebra.partial.itemsize
    k_pack = family.k_pack(problem, tile) if family.k_pack else 1
    amx = family is INTERLEAVED and uses_amx(problem, tile)
    pairs = family.pairs and problem.as_pairs
    if amx:
        MR, NR = AMX_TILE
    elif k_pack > 1 or pairs:  # a lane has another dtype than P
        ring, lane = problem.semiring, part(problem.algebra.partial) if pairs else INT32
        itemsize = lane.itemsize
        MR, vectors = register_tile(tile.vector_bytes, tile.registers, lane, ring.add, ring.mul)
        NR = vectors * tile.vector_bytes // itemsize
    rounds = amx and rounds_sums(problem, view)
    KC = 127 if problem.return_arg and itemsize == 1 else family.KC(problem)  # k counters are as wide as a lane
    MC = family.MC or ROWS_OF_M[itemsize]
    if tile.neon and itemsize >= 4 and not problem.semiring.multiplies:
        MC //= 4  # packed M is replicated per lane; the block should fit in L2
    group = family.group * NR
    if tile.neon and family is PACKED and problem.dtype.kind == "f" and problem.semiring.multiplies:
        KC, MC, group = even_strips(problem.k, NEON_KC), NEON_MC, NEON_GROUP * NR
    if problem.ordered:
        KC = CHAIN
    if tile.vector_bytes == 64 and family is PACKED_N and view.m <= FEW_ROWS_OF_M:
        group = FEW_PANELS * NR
    if pairs and family is PACKED_N:  # a short k: P is the cost, and is written along longer rows
        group = max(group, NEAR // (itemsize * min(KC, problem.k)) // NR * NR)
    NC = max(1, 16384 // itemsize // NR) * NR
    if amx:
        KC, NC, group = amx_blocks(problem, rounds)
        MC = SPLIT_ROWS if problem.dtype_m.itemsize == 4 else MC
    elif k_pack > 1:  # N is in cache anyway, and longer rows of P are written
        group = max(group, NEAR // (INT32.itemsize * -(-min(KC, problem.k) // k_pack)) // NR * NR)
    symmetric = problem.symmetric and family in (PACKED, INTERLEAVED) and not problem.return_arg
    if problem.ordered:  # sums that start from P, or whose terms are not exchangeable, are not symmetric
        symmetric &= not problem.accumulate and problem.algebra.partial.kind != "c"
    form = family.columns, k_pack, pairs, symmetric, amx, rounds
    return Blocking(family.name, view.swapped, MR, NR, KC, MC // MR * MR, NC, group, why, *form)
