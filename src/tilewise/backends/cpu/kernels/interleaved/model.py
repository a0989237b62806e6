"""`interleaved`: plus_times of integers of one and two bytes, and with AMX of bfloat16 and float32, any strides, where
one instruction multiplies and adds several k."""

from __future__ import annotations

from tilewise.backends.cpu.family import View, is_dot
from tilewise.backends.cpu.kernels.packed.model import tasks
from tilewise.core.blocking import AMX_TILE, RegisterTile
from tilewise.core.problem import Problem

IDEA = "consecutive k of short numbers packed into 32-bit words, multiplied and added by VNNI, pmaddwd, sdot or AMX"
DEPTH = 1024  # k of a packed strip
SOME = 24  # up to this many rows or columns the larger operand is better read in place, by `short_rows` or `short_dots`
STEPS = 2**14  # from this many steps on packing pays
AMX_ROW, AMX_DEPTH = 64, 2048  # bytes of k: of a tile, and of a strip
ROUNDED_DEPTH = 4096  # bytes of k up to which all of k is one strip, so that the microkernel rounds its sums
AMX_NEAR, AMX_FAR = 2**20, 2**24  # bytes of packed N: of a group, which stays in L2, and of all groups
SPLIT_K, SPLIT_ROWS, SPLIT_NEAR = 512, 256, 3 * 2**18  # of float32: k of a strip, rows of a packed block, and a group
AMX_FEW = 12  # least rows and columns: fewer leave most of a tile of 16 empty
# least rows and columns, k, and steps for which packing pays, by bytes of an element; of float32 with 16 threads, where
# 2048^3 takes 0.94 of the time of vectors and 2159x1348x1701 1.18 times (with one thread it pays from 256^3 on)
AMX_LEAST = {1: (AMX_FEW, 32, 2**17), 2: (AMX_FEW, 8, 2**15), 4: (512, 256, 2**33)}

__all__ = ["IDEA", "KC", "k_of_word", "k_pack", "suits", "takes", "tasks"]


def is_for_amx(problem: Problem, tile: RegisterTile) -> bool:
    """Whether AMX multiplies such numbers: bfloat16 into float32, bytes into integers of up to 32 bits, and float32, as
    the sum of three bfloat16 each, unless `precision="ieee"`."""
    if not tile.matrix_tiles or problem.return_arg or problem.ordered or not problem.semiring.multiplies:
        return False
    partial, sources = problem.algebra.partial, (problem.dtype_m, problem.dtype_n)
    if partial.kind in "iu":
        return partial.itemsize <= 4 and all(x.kind in "iu" and x.itemsize == 1 for x in sources)
    names = {x.name for x in sources}
    return partial.name == "float32" and (names == {"bfloat16"} or (names == {"float32"} and is_split(problem)))


def is_split(problem: Problem) -> bool:
    """Whether float32 is multiplied as three bfloat16 each where AMX takes it."""
    return problem.precision == "high" and problem.result.name == "float32"


def uses_amx(problem: Problem, tile: RegisterTile) -> bool:
    """Whether AMX multiplies them, and faster than the kernels that read thin operands in place."""
    if not is_for_amx(problem, tile):
        return False
    m, k, n, (least, least_k, least_steps) = problem.m, problem.k, problem.n, AMX_LEAST[problem.dtype_m.itemsize]
    steps = max(m * k * n, problem.whole) if problem.dtype_m.itemsize == 4 else m * k * n
    return min(m, n) >= least and k >= least_k and steps >= least_steps


def k_of_word(problem: Problem, tile: RegisterTile) -> int:
    """Consecutive k per packed 32-bit word, with AMX or vector instructions."""
    return (4 if problem.dtype_m.itemsize == 1 else 2) if uses_amx(problem, tile) else k_pack(problem, tile)


def k_pack(problem: Problem, tile: RegisterTile) -> int:
    """Consecutive k per 32-bit lane: 4, 2, or 1 where no vector instruction multiplies and adds several."""
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


def packs_words(problem: Problem, tile: RegisterTile) -> bool:
    """Whether some sizes of the problem are packed as words."""
    return packs_k(problem, tile) or is_for_amx(problem, tile)


def takes(problem: Problem, view: View, tile: RegisterTile) -> bool:
    return k_of_word(problem, tile) > 1


def suits(problem: Problem, view: View, tile: RegisterTile) -> str:
    if uses_amx(problem, tile):
        how = ", float32 as three bfloat16 each: precision='ieee' does without" if problem.dtype_m.itemsize == 4 else ""
        return f"AMX multiplies tiles of 16 x 16{how}" if view.preferred and not is_dot(view) else ""
    depth = k_pack(problem, tile)
    thin = problem.light and min(view.m, view.n) <= 16 // depth  # packing costs more than the product
    pays = view.preferred and not thin and not is_dot(view) and view.m * view.k * view.n >= STEPS
    return f"{depth} k at a time, multiplied and added by one instruction" if pays else ""


def KC(problem: Problem) -> int:
    """Equal strips of k, near DEPTH."""
    return -(-problem.k // (8 * max(1, round(problem.k / DEPTH)))) * 8


def rounds_sums(problem: Problem, view: View) -> bool:
    """Whether AMX's microkernel has all k of its sums, rounds them and stores them to P: no strip follows to add to
    them."""
    one_strip = problem.k * problem.dtype_m.itemsize <= ROUNDED_DEPTH and not (problem.symmetric or problem.accumulate)
    return one_strip and view.p_along_n and problem.result.name == "bfloat16"


def amx_blocks(problem: Problem, rounds: bool) -> tuple[int, int, int]:
    """KC, NC and the columns of a group: the packed N of a group stays in L2, and panels of M come from L3."""
    if problem.dtype_m.itemsize == 4:
        return _split_blocks(problem.k)
    itemsize = problem.dtype_m.itemsize
    strips = 1 if rounds else max(1, round(problem.k * itemsize / AMX_DEPTH))
    unit = AMX_ROW // itemsize
    KC = -(-problem.k // (unit * strips)) * unit
    panel = KC * itemsize * AMX_TILE[1]
    return KC, max(1, AMX_FAR // panel) * AMX_TILE[1], max(1, AMX_NEAR // panel) * AMX_TILE[1]


def _split_blocks(k: int) -> tuple[int, int, int]:
    """The same for float32, whose planes take 6 bytes for each element."""
    KC = -(-k // (AMX_ROW // 2 * max(1, round(k / SPLIT_K)))) * (AMX_ROW // 2)
    panel = 6 * KC * AMX_TILE[1]
    return KC, max(1, AMX_FAR // panel) * AMX_TILE[1], max(1, SPLIT_NEAR // panel) * AMX_TILE[1]
