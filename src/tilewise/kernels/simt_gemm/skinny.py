"""Cost model of the GEMV kernels, for few rows or columns of P.

The floor is one read of the long operand, so it is read in its own layout, with enough pieces of k to use the whole
card's bandwidth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter

from tilewise.algebra.builtin import is_plus_times
from tilewise.algebra.semiring import Algebra
from tilewise.core.machine import Machine, arch_number
from tilewise.core.plan import Geometry
from tilewise.core.problem import Problem
from tilewise.kernels.shared.layouts import line_alignment, lines_of_long
from tilewise.kernels.shared.steps import binary, step_slots
from tilewise.kernels.simt_gemm.tiled.configs import Config

FEW_ROWS, FEW_DOTS = "few_rows", "few_dots"
FEW = 16  # most rows or columns
HELD = (1, 2, 4, 8, 16)  # of them in registers
HALVES_HELD = (2, 4)  # of halves on Hopper, by dot products
WARPS = 8  # of a block
SUM_WORDS = 64  # registers for sums
STAGES = {FEW_ROWS: (256, 16 * 1024), FEW_DOTS: (512, 32 * 1024)}  # of the few rows in shared memory: k, bytes
START_SECONDS = 5e-6
COMBINE_SECONDS = 3e-6
# shares of the bandwidth and of the step rate that are reached; steps of few_dots hardly overlap its reads
READING = {FEW_ROWS: 0.88, FEW_DOTS: 0.95}
STEPPING = {FEW_ROWS: 0.37, FEW_DOTS: 0.5}


@dataclass(frozen=True)
class SkinnyTile:
    """`few` rows in registers; `vector` elements a load; `lines` of the long operand a warp (few_dots)."""

    kernel: str
    config: Config
    few: int
    vector: int
    lines: int
    unroll: int
    swapped: bool  # few columns: M is the long operand

    @property
    def across(self) -> int:
        """Of the long side of P, by one block."""
        return 32 * self.vector if self.kernel == FEW_ROWS else WARPS * self.lines

    @property
    def chunk(self) -> int:
        """Of k, stepped at a time."""
        return WARPS * self.unroll if self.kernel == FEW_ROWS else 32 * self.vector * self.unroll

    @property
    def stage(self) -> int:
        """Of k, held in shared memory at a time: whole chunks."""
        of_k, nbytes = STAGES[self.kernel]
        room = min(of_k, nbytes // (self.few * self.config.word_bytes))
        return max(1, room // self.chunk) * self.chunk

    @property
    def resident(self) -> int:
        """Resident blocks of a multiprocessor: two where the registers suffice."""
        small = self.config.word_bytes == 4 or (self.config.word_bytes == 8 and self.few * self.vector <= 16)
        return 2 if self.kernel == FEW_ROWS and self.config.name == "each" and small else 1

    @property
    def geometry(self) -> Geometry:
        rows, cols = (self.across, self.few) if self.swapped else (self.few, self.across)
        return Geometry((32 * WARPS, 1), rows, cols, self.stage, self.stage * self.few * self.config.word_bytes)


@lru_cache(maxsize=256)
def skinny_config(algebra: Algebra, machine: Machine, return_arg: bool) -> Config:
    """One element a step: memory bounds the time, not the steps."""
    name = "where" if return_arg else "online" if _is_logaddexp(algebra) else "each"
    words = max(1, algebra.partial.itemsize // 4) * (2 if name == "online" else 1) + (name == "where")
    return Config(name, algebra.element.itemsize, 1, words, step_slots(algebra, machine) + 3 * return_arg)


def _is_logaddexp(algebra: Algebra) -> bool:
    return binary(algebra.semiring.add) == "logaddexp" and algebra.partial.kind == "f"


def skinny_tile(problem: Problem, machine: Machine, swapped: bool, few: int, alignment: int) -> SkinnyTile | None:
    """The tile for `few` rows (columns, when swapped), the long operand being aligned to `alignment` bytes; None where
    the operands must be converted first."""
    p, lines = problem, lines_of_long(problem, swapped)
    if lines is None or not 1 <= few <= FEW:
        return None
    along_k = lines[0] != swapped
    config = skinny_config(p.algebra, machine, p.return_arg)
    size = p.dtype.itemsize
    held = 1 << (few - 1).bit_length()
    vector = max(1, math.gcd(16, alignment) // size)
    if along_k:
        return dots_tile(
            config, held, vector, size, swapped, dots_lines(config, held, p.m if swapped else p.n, machine)
        )
    vector = math.gcd(
        min(vector, room_for(config, held), 8), p.m if swapped else p.n
    )  # lines are read in whole vectors
    return rows_tile(config, held, vector, size, swapped)


def room_for(config: Config, held: int) -> int:
    """Sums of a row that fit the registers."""
    return max(1, SUM_WORDS // (held * config.sum_words))


def dots_lines(config: Config, held: int, length: int, machine: Machine) -> int:
    """Lines of a warp: several share what they read of the few rows. One or two rows have little to share, and a warp
    for each line spares a k in pieces where several would leave multiprocessors idle."""
    several = min(4, room_for(config, held))
    return several if held > 2 or math.ceil(length / (WARPS * several)) >= 2 * machine.units else 1


def dots_tile(config: Config, held: int, vector: int, size: int, swapped: bool, lines: int) -> SkinnyTile:
    """For lines along k: `vector` elements of `size` bytes a load."""
    unroll = 2 if vector * size >= 8 else 4
    return SkinnyTile(FEW_DOTS, config, held, vector, lines, unroll if lines > 1 else 2 * unroll, swapped)


def rows_tile(config: Config, held: int, vector: int, size: int, swapped: bool) -> SkinnyTile:
    """For lines across k."""
    crowded = config.name == "online" or (
        held * vector > 32 and (size < 4 or config.slots > 1)
    )  # much else in the registers
    most = (
        32 if config.slots <= 1 else 16 if config.slots <= 8 else 8
    )  # sums beside 8 loads: long steps take registers too
    loads = 2 if crowded else 8 if vector <= 4 and held * vector <= most else 4
    return SkinnyTile(FEW_ROWS, config, held, vector, 1, loads, swapped)


def skinny_pieces(tile: SkinnyTile, length: int, k: int, machine: Machine, members: int = 1) -> int:
    """Pieces of k, so that every multiprocessor has a few blocks to read with; no more than it holds at once where a
    block has many sums to bring together at its end."""
    across = max(1, math.ceil(length / tile.across) * members)
    many = tile.kernel == FEW_ROWS and tile.few > 4
    blocks = 2 if tile.kernel == FEW_DOTS and tile.lines == 1 else 6  # a warp for each line: pieces come last
    wanted = max(1, machine.units * tile.resident // across if many else round(machine.units * blocks / across))
    return max(1, min(wanted, math.ceil(k / (2 * tile.chunk))))


def skinny_seconds(problem: Problem, machine: Machine, tile: SkinnyTile) -> float:
    p = problem
    length = p.m if tile.swapped else p.n
    pieces = skinny_pieces(tile, length, p.k, machine, p.members)
    held = tile.few / max(1, p.n if tile.swapped else p.m)
    steps = p.steps * held * tile.config.slots / (machine.step_rate("float32") * STEPPING[tile.kernel])
    memory = p.least_bytes / (machine.bandwidth * READING[tile.kernel])
    reading = max(steps, memory) if tile.kernel == FEW_ROWS else steps + memory
    return reading + (START_SECONDS if pieces == 1 else (START_SECONDS + COMBINE_SECONDS) * p.members)


IDEAS = {
    FEW_ROWS: "GEMV and few rows (or columns): the long operand is read once, lanes along its lines",
    FEW_DOTS: "GEMV and few rows (or columns): the long operand is read once, lanes along k",
}


@lru_cache(maxsize=64)
def skinny_choices(problem: Problem, machine: Machine, kernel: str | None = None) -> list[tuple[float, SkinnyTile]]:
    """(expected seconds, tile) of each kernel and orientation; `kernel`: only that one."""
    p = problem
    found: list[tuple[float, SkinnyTile]] = []
    if min(p.m, p.n) > FEW:
        return found
    for swapped, few, layout, rows, cols in ((False, p.m, p.layout_n, p.k, p.n), (True, p.n, p.layout_m, p.m, p.k)):
        tile = skinny_tile(p, machine, swapped, few, line_alignment(layout, rows, cols, p.dtype.itemsize))
        if tile is not None and kernel in (None, tile.kernel):
            found.append((skinny_seconds(p, machine, tile), tile))
    return found


def halves_on_hopper(p: Problem, machine: Machine) -> bool:
    """Whether wgmma takes the product, whatever its layout: then the GEMV kernels have fewer texts."""
    halves = p.dtype.itemsize == 2 and p.dtype.kind == "f" and is_plus_times(p.semiring)
    return halves and arch_number(machine.arch) == 90 and not p.unrounded


def dots_held(problem: Problem, machine: Machine) -> tuple[int, ...]:
    """Rows in registers that dot products compete with. Halves go to Hopper's tensor cores, but for stacks of two to
    four rows or columns: of 200,000 random products and stacks one was fastest with more, and texts with many rows
    take long to compile."""
    return HALVES_HELD if halves_on_hopper(problem, machine) else HELD


def competing(problem: Problem, machine: Machine) -> list[tuple[float, SkinnyTile]]:
    """The choices that compete where no kernel was requested; none where the fastest does not: the others read operands
    with strided loads, which the model does not include."""
    found = skinny_choices(problem, machine)
    if not found or min(found, key=SECONDS)[1].kernel != FEW_DOTS or not halves_on_hopper(problem, machine):
        return found
    stacked = problem.members > 1
    return [one for one in found if stacked and one[1].kernel == FEW_DOTS and one[1].few in HALVES_HELD]


SECONDS = itemgetter(0)
