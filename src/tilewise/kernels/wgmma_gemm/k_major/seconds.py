"""What tf32 and 8-bit elements are expected to take on Hopper's tensor cores: one formula for every way."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from tilewise.core.machine import Machine
from tilewise.core.problem import Layout, Problem, row_lead
from tilewise.kernels.coefficients import coefficients
from tilewise.kernels.shared.residency import crowded, parts_of
from tilewise.kernels.shared.triangle import tiles_in_classes, upper_tiles
from tilewise.system.machine_code import INFINITE, Formula, Row

AS_IT_IS, TRANSPOSED = "as it is", "transposed"
ACROSS, BY_CLASSES = "from registers", "by classes of rows"  # of N, and of an M that goes with it
LINE_BYTES = 128  # of k in a stage
SHARPNESS = 4  # how little two limits that are equally near hinder each other
EVEN_SHARE = (
    1.15  # a stage where rows of M that no block shares lie an even number of memory lines apart: why is not known
)
BOXED_SHARE = 0.3  # of what a tile takes longer whose N came from registers, where the copy engine stores it


# by bytes of an element: of 4 fitted to 447 random products on an H200 (rms 11 %), of 1 as docs/dtypes.md says

# forms of a way: k whole, in parts; N from registers; and M by classes of rows; tiles on and above the diagonal
WHOLE, CUT, OVER, IN_CLASSES, SYMMETRIC = range(5)
SECOND_STORE = (
    5e-6  # of the last wave, more than a store by rows: one wave of 2048² took 58.9 µs, and 52.3 with all tiles
)
FEWEST_STAGES = 4  # of a part of k
MANY_PARTS = 16  # of k, beyond which eight warps add up those of a cell
CLASSES = 4  # of lines of 4-byte elements that start equally far from a 16-byte boundary


def beside(busy: float, passing: float, size: float) -> float:
    """Waves of tiles beside the bytes, which hinder each other a little where both take as long."""
    return sqrt(sqrt(busy**4 + passing**4)) if size == 4 else max(busy, passing)


def stage_of(cores: float, l2: float, blocks: int, units: int, power: float) -> float:
    """Seconds of a stage, of the fourth powers of its limits: the tensor cores, and L2 when everybody asks."""
    crowd = crowded(blocks, units, power)
    return sqrt(sqrt(cores + l2 * crowd))


def expected(row: Row, given: Row) -> float:
    """Members of a stack one after the other."""
    return given[21] * member_seconds(row, given)


def member_seconds(row: Row, given: Row) -> float:
    """Of a member: whole waves of tiles, or the bytes; then what comes before and after. k is cut only where sums are
    float32 (else planes of them are not of P's dtype), and both operands lie along k."""
    m, n, stages, units = int(given[0]), int(given[1]), int(given[2]), int(given[3])
    passing, turning, size, power = given[4], given[5], given[14], given[15]
    down, across, at_once, cluster, form = int(row[0]), int(row[1]), int(row[7]), int(row[8]), int(row[10])
    if row[11] == 0.0:
        return INFINITE
    end = row[5] if given[6] > 0.0 else row[4]
    tiles = -(-m // down) * -(-n // across)
    if form == SYMMETRIC:
        tiles = upper_tiles(m, down, across)
        end, turning, form = end + row[4], turning + SECOND_STORE, WHOLE  # the second store is one by rows
    if form == WHOLE:
        each = max(stages, 1) * stage_of(row[2], row[3], tiles * cluster, units, power) + end
        return beside(-(-tiles // at_once) * each, passing, size) + row[6] + turning
    if form == CUT:
        most = parts_of(tiles * cluster, units, stages // FEWEST_STAGES)
        if given[7] == 0.0 or most <= 1:
            return INFINITE
        each = -(-stages // most) * stage_of(row[2], row[3], tiles * most * cluster, units, power) + end
        work = beside(-(-tiles * most // at_once) * each, passing, size)
        cells = given[20] if most > MANY_PARTS else given[20] / 8  # one warp to a cell's parts, or eight
        return work + row[6] + turning + given[8] + cells + most * given[9]
    if form == OVER and given[10] > 0.0:
        stage = stage_of(row[2], row[3], tiles * cluster, units, power) * given[13]
        stage = stage * (EVEN_SHARE if given[11] > 0.0 and row[9] == 0.0 else 1.0)
        work = beside(-(-tiles // at_once) * (max(stages, 1) * stage + end), passing, size)
        return work + given[16] + given[17] + given[12]
    if form == IN_CLASSES and given[10] > 1.0:
        tiles = tiles_in_classes(m, n, down, across, CLASSES)
        stage = stage_of(row[2], row[3], tiles * cluster, units, power) * given[19]
        work = beside(-(-tiles // at_once) * (max(stages, 1) * stage + row[4]), passing, size)
        return work + given[16] + given[17] + given[18]
    return INFINITE


def is_whole(line_stride: int, k_stride: int, lines: int, k: int, alignment: int, size: int) -> bool:
    """Whether an operand may go as it is."""
    side_by_side = (k_stride == 1 or k <= 1) and (line_stride >= k or lines <= 1)
    return side_by_side and alignment >= 16 and (lines <= 1 or line_stride * size % 16 == 0)


def whole_m(p: Problem, size: int) -> bool:
    whole = is_whole(p.layout_m.row, p.layout_m.col, p.m, p.k, p.layout_m.alignment, size)
    return whole and p.layout_m.step * size % 16 == 0


def whole_n(p: Problem, size: int) -> bool:
    whole = is_whole(p.layout_n.col, p.layout_n.row, p.n, p.k, p.layout_n.alignment, size)
    return whole and p.layout_n.step * size % 16 == 0


def from_registers(p: Problem) -> bool:
    """Whether k_across takes N: 4-byte elements, contiguous across k."""
    return p.dtype_n.itemsize == 4 and p.k >= CLASSES and p.layout_n.col == 1 and p.layout_n.row >= p.n > 1


def by_classes(p: Problem) -> bool:
    """Whether k_across can take unaligned rows of M by alignment classes."""
    return p.m >= CLASSES and p.layout_m.col == 1 and p.layout_m.row >= p.k


def boxed(layout: Layout, m: int, n: int, alignment: int, size: int) -> bool:
    """Whether the TMA can store P: its rows begin and end at multiples of 16 bytes."""
    lead = row_lead(layout, m, n)
    if size <= 1 or lead < 0 or alignment < 16:
        return False
    return n * size % 16 == 0 and (m <= 1 or max(lead, 1) * size % 16 == 0) and layout.step * size % 16 == 0


class Figures(NamedTuple):
    """What times depend on besides sizes: a kind of product on a card."""

    units: int  # multiprocessors
    bandwidth: float  # bytes a second
    size: int  # bytes of an element,
    result_size: int  # and of P's
    cuts: bool  # k may be cut: sums are float32
    memory: float  # share of the bandwidth
    gather: float  # seconds: of adding up,
    gathered_cell: float  # of a cell of that,
    turn: float  # of transposing an operand,
    start: float  # of a launch,
    meet: float  # of a cluster's,
    classes: float  # of one by classes
    gathering: float  # bytes a second: of partial sums,
    turning: float  # of operands that are transposed
    crowd: float  # exponent: how L2's time grows with the blocks that load
    across: float  # factors of a stage with N from registers: M as it is,
    across_transposed: float  # transposed before,
    across_classes: float  # or by classes


def figures_of(p: Problem, machine: Machine) -> Figures:
    f, cuts = coefficients(f"k_major {p.dtype_m.itemsize}"), p.dtype.name == "float32" and not p.scaled
    return Figures(
        machine.units, machine.bandwidth, p.dtype_m.itemsize, p.result.itemsize, cuts,
        f.memory, f.gather, f.gathered_cell, f.turn, f.start, f.meet, f.classes, f.gathering, f.turning, f.crowd,
        f.across[AS_IT_IS], f.across[TRANSPOSED], f.across[BY_CLASSES],
    )  # fmt: skip


def given_of(p: Problem, f: Figures) -> Row:
    """The numbers that all rows share."""
    as_it_is, n_as_it_is, size = whole_m(p, f.size), whole_n(p, f.size), f.size
    over = not n_as_it_is and from_registers(p)
    in_classes = over and not as_it_is and by_classes(p)
    lines = -(-(p.layout_m.row if as_it_is else p.k) * size // LINE_BYTES)
    member_bytes, cells = p.least_bytes // max(1, p.members), p.m * p.n
    cells_m, cells_n = 0 if as_it_is else p.m * p.k, 0 if n_as_it_is else p.k * p.n
    return (
        p.m, p.n, -(-p.k * size // LINE_BYTES), f.units, member_bytes / (f.bandwidth * f.memory),
        transposing(cells_m + cells_n, f), boxed(p.layout_p, p.m, p.n, p.layout_p.alignment, f.result_size), f.cuts,
        f.gather, 8 * p.m * p.n / f.gathering, (1 if over else 0) + (1 if in_classes else 0), lines % 2 == 0,
        transposing(cells_m, f), f.across if as_it_is else f.across_transposed, size, 4 * f.crowd, f.start, f.meet,
        f.classes, f.across_classes, cells * f.gathered_cell, p.members, not as_it_is, not n_as_it_is,
    )  # fmt: skip


def transposing(cells: int, f: Figures) -> float:
    """Seconds of transposing operands first."""
    return f.turn + 2 * f.size * cells / f.turning if cells else 0.0


def passes(row: Row, given: Row) -> int:
    """One to transpose operands, one to add up the parts of k."""
    form, moves_m = int(row[10]), int(given[22])
    if form == OVER:
        return moves_m
    if form == IN_CLASSES:
        return 1
    return (1 if moves_m or given[23] > 0.0 else 0) + (1 if form == CUT else 0)


EXPECTED = Formula(expected, given_of, passes=passes)
