"""Cost model of the GEMV kernels, for few rows or columns of P.

The floor is one read of the long operand, so it is read in its own layout, with enough pieces of k to use the whole
card's bandwidth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from operator import itemgetter
from typing import NamedTuple

from tilewise.algebra.builtin import is_plus_times
from tilewise.algebra.semiring import Algebra
from tilewise.core.machine import Machine, arch_number
from tilewise.core.plan import Geometry
from tilewise.core.problem import Problem
from tilewise.kernels.family import Searched
from tilewise.kernels.shared.layouts import along_columns, has_lines, line_alignment, lines_of_long
from tilewise.kernels.shared.steps import binary, step_slots
from tilewise.kernels.simt_gemm.tiled.configs import Config
from tilewise.system.machine_code import INFINITE, Formula, Row, Rows

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
READING_ROWS, READING_DOTS = 0.88, 0.95
STEPPING_ROWS, STEPPING_DOTS = 0.37, 0.5
DEEP = 512  # k of a stack's members from which the model holds, where it is not corrected by measurement


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
    f, length, held = figures_of(p, machine), p.m if swapped else p.n, held_of(few)
    config = skinny_config(p.algebra, machine, p.return_arg)
    vector = max(1, gcd(16, alignment) // f.size)
    if lines[0] != swapped:
        return dots_tile(config, held, vector, f.size, swapped, dots_lines(f.sum_words, held, length, f.units))
    return rows_tile(config, held, rows_vector(vector, f.sum_words, held, length), f.size, swapped)


def held_of(few: int) -> int:
    """Rows in registers."""
    return few if few <= 2 else 4 if few <= 4 else 8 if few <= 8 else 16


def room_for(sum_words: int, held: int) -> int:
    """Sums of a row that fit the registers."""
    return max(1, SUM_WORDS // (held * sum_words))


def rows_vector(vector: int, sum_words: int, held: int, length: int) -> int:
    """Elements a load of lines across k, which are read in whole vectors."""
    return gcd(min(vector, room_for(sum_words, held), 8), length)


def dots_lines(sum_words: int, held: int, length: int, units: int) -> int:
    """Lines of a warp: several share what they read of the few rows. One or two rows have little to share, and a warp
    for each line spares a k in pieces where several would leave multiprocessors idle."""
    several = min(4, room_for(sum_words, held))
    return several if held > 2 or -(-length // (WARPS * several)) >= 2 * units else 1


def dots_unroll(vector: int, size: int, lines: int) -> int:
    unroll = 2 if vector * size >= 8 else 4
    return unroll if lines > 1 else 2 * unroll


def dots_tile(config: Config, held: int, vector: int, size: int, swapped: bool, lines: int) -> SkinnyTile:
    """For lines along k: `vector` elements of `size` bytes a load."""
    return SkinnyTile(FEW_DOTS, config, held, vector, lines, dots_unroll(vector, size, lines), swapped)


def rows_unroll(vector: int, size: int, held: int, slots: float, online: bool) -> int:
    """Loads in flight: fewer where there is much else in the registers; long steps take registers too."""
    if online or (held * vector > 32 and (size < 4 or slots > 1)):
        return 2
    most = 32 if slots <= 1 else 16 if slots <= 8 else 8  # sums beside 8 loads
    return 8 if vector <= 4 and held * vector <= most else 4


def rows_tile(config: Config, held: int, vector: int, size: int, swapped: bool) -> SkinnyTile:
    """For lines across k."""
    loads = rows_unroll(vector, size, held, config.slots, config.name == "online")
    return SkinnyTile(FEW_ROWS, config, held, vector, 1, loads, swapped)


def skinny_pieces(tile: SkinnyTile, length: int, k: int, machine: Machine, members: int = 1) -> int:
    """Pieces of k of a tile."""
    dots = tile.kernel == FEW_DOTS
    blocks = pieces_blocks(dots, tile.few, tile.lines, tile.resident)
    return pieces_of(blocks, tile.across, tile.chunk, length, k, machine.units, members, not dots and tile.few > 4)


def pieces_blocks(dots: bool, held: int, lines: int, resident: int) -> int:
    """Blocks of a multiprocessor to read with; no more than it holds at once where a block has many sums to bring
    together at its end."""
    if not dots and held > 4:
        return resident
    return 2 if dots and lines == 1 else 6  # a warp for each line: pieces come last


def pieces_of(blocks: int, across: int, chunk: int, length: int, k: int, units: int, members: int, many: bool) -> int:
    """Pieces of k, so that every multiprocessor has a few blocks to read with."""
    tiles = max(1, -(-length // across) * members)
    wanted = units * blocks // tiles if many else rounded(units * blocks, tiles)
    return max(1, min(max(1, wanted), -(-k // (2 * chunk))))


def rounded(x: int, to: int) -> int:
    """The nearest whole quotient, of two equally near ones the even one, as Python's `round` has it."""
    whole, rest = x // to, 2 * (x % to)
    return whole + (1 if rest > to or (rest == to and whole % 2) else 0)


class Figures(NamedTuple):
    """What times depend on besides sizes: a kind of elements on a card, and an orientation."""

    units: int  # multiprocessors
    bandwidth: float  # bytes a second
    rate: float  # steps a second
    slots: float  # of a step
    size: int  # bytes of an element
    sum_words: int  # registers of a sum
    resident: int  # blocks of a multiprocessor where few rows' sums fit,
    most_held: int  # which are so many
    online: bool  # each step adds onto the largest so far
    tensor: bool  # wgmma takes such products, whatever their layout
    least_k: int  # of stacks
    swapped: bool = False  # few columns: M is the long operand
    dots: bool = False  # its lines lie along k


def figures_of(p: Problem, machine: Machine) -> Figures:
    config, fits = skinny_config(p.algebra, machine, p.return_arg), machine.tuned is not None and machine.tuned.fits
    resident = 2 if config.name == "each" and config.word_bytes in (4, 8) else 1
    most_held, least_k = 16 if config.word_bytes == 8 else 2**30, 0 if fits or p.return_arg else DEEP
    return Figures(
        machine.units, machine.bandwidth, machine.step_rate("float32"), config.slots, p.dtype.itemsize,
        config.sum_words, resident, most_held, config.name == "online", halves_on_hopper(p, machine), least_k,
    )  # fmt: skip


def takes(p: Problem, f: Figures) -> bool:
    """None compete where the fastest does not: the others read operands with strided loads, which the model does not
    include. Halves go to Hopper's tensor cores, but for dot products of stacks (`dots_held`). In stacks, members with
    little k leave most of a block's threads idle: up to 40 times what the model expects."""
    if not may_read(p, f.swapped, f.dots) or (p.members > 1 and p.k < f.least_k):
        return False
    if f.tensor == 0 or not fastest_by_dots(p, f):
        return True
    held = held_of(p.n if f.swapped else p.m)
    return p.members > 1 and f.dots and (held == 2 or held == 4)


def may_read(p: Problem, swapped: bool, dots: bool) -> bool:
    """Whether an operand beside few lines of the other has lines along k, or across it."""
    if not 1 <= (p.n if swapped else p.m) <= FEW:
        return False
    if swapped:
        return has_lines(p.layout_m, p.m, p.k) and along_columns(p.layout_m, p.m, p.k) != dots
    return has_lines(p.layout_n, p.k, p.n) and along_columns(p.layout_n, p.k, p.n) == dots


def fastest_by_dots(p: Problem, f: Figures) -> bool:
    """Whether the fastest of both orientations is one by dot products."""
    of_n, of_m = INFINITE, INFINITE
    by_dots, m_by_dots = may_read(p, False, True), may_read(p, True, True)
    if by_dots or may_read(p, False, False):
        of_n = seconds_of(p, f, False, by_dots)
    if m_by_dots or may_read(p, True, False):
        of_m = seconds_of(p, f, True, m_by_dots)
    return m_by_dots if of_m < of_n else by_dots


def pieces_for(p: Problem, f: Figures, swapped: bool, dots: bool) -> int:
    few, length = p.n if swapped else p.m, p.m if swapped else p.n
    alignment = line_alignment(p.layout_n, p.k, p.n, f.size)
    if swapped:
        alignment = line_alignment(p.layout_m, p.m, p.k, f.size)
    held, vector = held_of(few), max(1, gcd(16, alignment) // f.size)
    if dots:
        lines = dots_lines(f.sum_words, held, length, f.units)
        chunk, blocks = 32 * vector * dots_unroll(vector, f.size, lines), pieces_blocks(True, held, lines, 1)
        return pieces_of(blocks, WARPS * lines, chunk, length, p.k, f.units, p.members, False)
    vector = rows_vector(vector, f.sum_words, held, length)
    chunk = WARPS * rows_unroll(vector, f.size, held, f.slots, f.online)
    blocks = pieces_blocks(False, held, 1, f.resident if held * vector <= f.most_held else 1)
    return pieces_of(blocks, 32 * vector, chunk, length, p.k, f.units, p.members, held > 4)


def seconds_of(p: Problem, f: Figures, swapped: bool, dots: bool) -> float:
    few = p.n if swapped else p.m
    steps = p.steps * (held_of(few) / max(1, few)) * f.slots / (f.rate * (STEPPING_DOTS if dots else STEPPING_ROWS))
    memory = p.least_bytes / (f.bandwidth * (READING_DOTS if dots else READING_ROWS))
    reading = steps + memory if dots else max(steps, memory)
    whole = pieces_for(p, f, swapped, dots) == 1
    return reading + (START_SECONDS if whole else (START_SECONDS + COMBINE_SECONDS) * p.members)


def given_of(p: Problem, f: Figures) -> Row:
    return seconds_of(p, f, f.swapped, f.dots), pieces_for(p, f, f.swapped, f.dots)


def expected(row: Row, given: Row) -> float:
    return given[0]


def passes(row: Row, given: Row) -> int:
    return 1 if given[1] > 1.0 else 0


EXPECTED, ONE_ROW = Formula(expected, given_of, takes, passes), Rows([(0.0,)])


def searched(problem: Problem, machine: Machine) -> list[Searched]:
    """Each kernel, for either long operand."""

    def config(swapped: bool) -> Callable[[int, Problem], SkinnyTile | None]:
        return lambda _, p: tile_of(p, machine, swapped)

    figures = figures_of(problem, machine)
    return [
        Searched(EXPECTED, ONE_ROW, figures._replace(swapped=swapped, dots=dots), config(swapped), kernel)
        for swapped in (False, True)
        for kernel, dots in ((FEW_ROWS, False), (FEW_DOTS, True))
    ]


def tile_of(p: Problem, machine: Machine, swapped: bool) -> SkinnyTile | None:
    """The tile of an orientation."""
    few, layout, rows, cols = (p.n, p.layout_m, p.m, p.k) if swapped else (p.m, p.layout_n, p.k, p.n)
    return skinny_tile(p, machine, swapped, few, line_alignment(layout, rows, cols, p.dtype.itemsize))


IDEAS = {
    FEW_ROWS: "GEMV and few rows (or columns): the long operand is read once, lanes along its lines",
    FEW_DOTS: "GEMV and few rows (or columns): the long operand is read once, lanes along k",
}


def skinny_choices(problem: Problem, machine: Machine, kernel: str | None = None) -> list[tuple[float, SkinnyTile]]:
    """(expected seconds, tile) of each kernel and orientation; `kernel`: only that one."""
    found, figures = list[tuple[float, SkinnyTile]](), figures_of(problem, machine)
    for swapped in (False, True) if min(problem.m, problem.n) <= FEW else ():
        tile = tile_of(problem, machine, swapped)
        if tile is not None and kernel in (None, tile.kernel):
            found.append((seconds_of(problem, figures, swapped, tile.kernel == FEW_DOTS), tile))
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
    """The choices that compete where no kernel was requested."""
    f = figures_of(problem, machine)
    return [
        (seconds, tile)
        for seconds, tile in skinny_choices(problem, machine)
        if takes(problem, f._replace(swapped=tile.swapped, dots=tile.kernel == FEW_DOTS))
    ]


SECONDS = itemgetter(0)
