"""Cost model of `read_once`: few rows or columns of float32, by tf32 or planes; the long operand is read once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import sqrt
from typing import NamedTuple

from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry
from tilewise.core.problem import Problem
from tilewise.kernels.capabilities import Condition
from tilewise.kernels.coefficients import coefficients
from tilewise.kernels.family import Searched
from tilewise.kernels.shared.layouts import along_columns, has_lines, lead_of
from tilewise.kernels.shared.residency import UNIT_SHARED, crowded, in_waves, padded, rooms
from tilewise.kernels.wgmma_gemm.k_major.seconds import is_whole
from tilewise.system.machine_code import INFINITE, Formula, Row, Rows

KERNEL = "read_once"
IDEA = "few rows or columns of float32: the long operand streams once, in its own layout, to wgmma's registers"
ALONG, APART, ALIKE = "along k", "across k, apart", "across k, alike"  # layout of the long operand
FAR = 2**24  # elements: limit of strides, which the kernel has in 32 bits
CLASSES = 4  # alignment classes of 4-byte elements in 16 bytes
LONG_BYTES = {ALONG: 128 * 144, APART: 32 * 528, ALIKE: 32 * 544}  # of a stage
BYTES_ALONG, BYTES_APART, BYTES_ALIKE = LONG_BYTES.values()
MOST_ACROSS = 4  # tiles for the few lines
MOST_FEW = 512  # rows or columns
BLOCKS = (1, 2, 4)  # of a cluster
PRODUCTS = 6  # of planes
SEGMENT = 256  # stages whose sums of planes are added up in registers
LONG, DEPTH = 128, 32  # lines of the long operand in a tile; k of a stage
MOST_PARTS, FEWEST_STAGES = 64, 4  # of k, and of a part
HALVES = (0, 1, 2, 4)  # half waves of blocks that parts of k make; 0: k is whole
NARROWER, ROOMS = 9, 10  # where a row has the next narrower tile, and rooms


@dataclass(frozen=True)
class OnceTile:
    """LONG lines by `width` few ones; `planes` of the few: one of tf32, or three of bfloat16."""

    width: int
    planes: int
    resident: int
    gathered: bool = False  # the few lines are rounded or split inside the launch

    @property
    def stages(self) -> int:
        held = UNIT_SHARED if self.resident == 1 else (UNIT_SHARED + 1024) // self.resident - 1024
        return min(8, (held - 1024) // (self._stage_bytes + 16))

    @property
    def _stage_bytes(self) -> int:
        return -(-(self.few_bytes + max(LONG_BYTES.values())) // 1024) * 1024

    @property
    def few_bytes(self) -> int:
        """Of a stage."""
        return self.width * (128 if self.planes == 1 else 64 * self.planes)

    @property
    def shared_bytes(self) -> int:
        return 1024 + self.stages * (self._stage_bytes + 16)

    @property
    def threads(self) -> int:
        return 256 + (128 if self.gathered else 32)


# The few lines are gathered inside the launch where they are few; 470 products timed in every way on an H200 take 0.5 %
# longer without the tiles that are not here.
TILES = {
    "tf32": (
        *(OnceTile(width, 1, 1 if width > 64 else 2) for width in (16, 32, 64, 96, 128, 192)),
        *(OnceTile(width, 1, 1 if width > 32 else 2, True) for width in (16, 32, 64)),
    ),
    "high": (
        *(OnceTile(width, 3, 1) for width in (96, 128)),
        *(OnceTile(width, 3, 1 if width > 32 else 2, True) for width in (16, 32, 64)),
    ),
}


@dataclass(frozen=True)
class OnceConfig:
    """`transposed`: P has few rows. k is cut over `blocks` of a cluster, and over `clusters` of a tile."""

    tile: OnceTile
    transposed: bool
    blocks: int = 1
    clusters: int = 1

    def spec(self) -> str:
        side = "few rows" if self.transposed else "few columns"
        gathered = " gathered" if self.tile.gathered else ""
        return f"{LONG}x{self.tile.width}{gathered} {side} k/{self.blocks}x{self.clusters}"

    @property
    def geometry(self) -> Geometry:
        sides = (self.tile.width, LONG) if self.transposed else (LONG, self.tile.width)
        return Geometry((self.tile.threads, 1), *sides, DEPTH, self.tile.shared_bytes)

    @property
    def parts(self) -> int:
        return self.blocks * self.clusters

    def notes(self) -> list[str]:
        """Notes of the plan."""
        words = [f"{'N' if self.transposed else 'M'} is read once, in its own layout"]
        if self.tile.planes > 1:
            words.append(
                "operands of Inf, NaN or extreme magnitudes are found on the card, and multiplied on plain cores"
            )
        if self.blocks > 1:
            words.append(f"k is cut over the {self.blocks} blocks of a cluster, which add up in order")
        if self.clusters > 1:
            words.append(f"k is cut over {self.clusters} clusters, whose sums are added up in a fixed order")
        return words


class Side(NamedTuple):
    """The few lines and the long operand of a product taken so."""

    transposed: bool
    few: int
    length: int
    lies: str  # the lines of the long operand
    lead: int  # elements from one to the next
    in_place: bool  # the few lines go as they are


def is_long(transposed: bool, p: Problem) -> bool:
    """Whether an operand, N if P is transposed, is long, and the other one has few lines."""
    few, length = p.m if transposed else p.n, p.n if transposed else p.m
    lined_m, lined_n = has_lines(p.layout_m, p.m, p.k), has_lines(p.layout_n, p.k, p.n)
    if not 0 < few <= MOST_FEW or length < max(CLASSES, few) or p.k < CLASSES:
        return False
    if not (lined_n if transposed else lined_m):
        return False
    far = max(abs(p.layout_n.row), abs(p.layout_n.col))
    if transposed:
        far = max(abs(p.layout_m.row), abs(p.layout_m.col))
    return far < FAR


def falls_back(transposed: bool, p: Problem) -> bool:
    """Whether the fallback behind planes can read the other operand, too."""
    return has_lines(p.layout_m, p.m, p.k) if transposed else has_lines(p.layout_n, p.k, p.n)


def takes_sides(p: Problem) -> bool:
    tf32 = p.precision == "tf32"
    return any(is_long(x, p) and (tf32 or falls_back(x, p)) for x in (True, False))


LONG_SIDE = Condition(takes_sides, "reads a longer operand whose rows or columns are contiguous")
ONTO_P = Condition(  # the fallback overwrites P for extreme magnitudes
    lambda p: not p.accumulate or p.precision == "tf32", "adds onto P with precision='tf32' alone"
)


def along_of(transposed: bool, p: Problem) -> bool:
    """Whether the long operand's lines lie along k."""
    return along_columns(p.layout_n, p.k, p.n) if transposed else not along_columns(p.layout_m, p.m, p.k)


def long_lead(transposed: bool, p: Problem) -> int:
    """Elements from one of its lines to the next."""
    return lead_of(p.layout_n, p.k, p.n) if transposed else lead_of(p.layout_m, p.m, p.k)


def few_in_place(transposed: bool, tf32: bool, p: Problem) -> bool:
    """Whether the few lines go as they are."""
    if transposed:
        return tf32 and is_whole(p.layout_m.row, p.layout_m.col, p.m, p.k, p.layout_m.alignment, 4)
    return tf32 and is_whole(p.layout_n.col, p.layout_n.row, p.n, p.k, p.layout_n.alignment, 4)


def sides(p: Problem) -> list[Side]:
    """The choices of the long operand."""
    made, tf32 = [], p.precision == "tf32"
    for transposed in (True, False):
        if is_long(transposed, p) and (tf32 or falls_back(transposed, p)):
            few, length, lead = p.m if transposed else p.n, p.n if transposed else p.m, long_lead(transposed, p)
            lies = ALONG if along_of(transposed, p) else ALIKE if lead % 4 == 0 else APART
            made.append(Side(transposed, few, length, lies, lead, few_in_place(transposed, tf32, p)))
    return made


def side_of(p: Problem, config: OnceConfig) -> Side:
    return next(side for side in sides(p) if side.transposed == config.transposed)


# fitted to 3,386 configurations of 386 mostly random products on an H200 (rms 12 and 9 %; the choice takes 4 and 3 %
# longer than the fastest in the mean); stages are bound by L2, never by the tensor cores


def parts_of(tiles: int, at_once: int, stages: int, least: int, halves: int, blocks: int) -> int:
    """Parts of k: as many as make so many half waves, in whole clusters; 0 where that cannot be had."""
    if halves == 0:
        return 1 if least == 1 and blocks == 1 else 0
    most = min(halves * at_once // (2 * max(1, tiles)), min(stages // FEWEST_STAGES, MOST_PARTS))
    parts = max(most, least) // blocks * blocks
    return parts if parts >= max(2, least) and parts <= stages else 0


def tiles_of(few: int, length: int, width: int) -> int:
    return -(-length // LONG) * -(-few // width)


def seconds_of(row: Row, given: Row, parts: int) -> float:
    """Waves of blocks, whose stages take as long as one alone needs or all of a multiprocessor's together, at the rate
    of the tensor cores or of L2; beside the bytes; then what comes before and after."""
    stages, units, blocks = int(given[2]), int(given[3]), int(row[2])
    each, clusters = -(-stages // parts), tiles_of(int(given[0]), int(given[1]), int(row[0])) * parts // blocks
    crowd = crowded(clusters * blocks, units, given[8])
    busy = row[5] ** 4 + ((row[4] + given[5]) / given[7] * crowd) ** 4
    work = in_waves(clusters, row, ROOMS, each * 1.0, row[6] ** 4, busy, given[9], row[7])
    work = sqrt(sqrt(work**4 + given[6])) + given[10]
    if row[8] == 0.0:
        work += given[15]
    if blocks > 1:
        work += given[11] + given[12] * blocks
    if parts > blocks:
        work += given[13] + parts // blocks * given[14]
    return work


def expected(row: Row, given: Row) -> float:
    """Of a way, where its k can be cut so."""
    few, width, blocks = int(given[0]), int(row[0]), int(row[2])
    if -(-few // width) > MOST_ACROSS or (row[8] > 0.0 and given[16] > 0.0):  # lines in place need no gathering
        return INFINITE
    if row[NARROWER] > 0.0 and -(-few // int(row[NARROWER])) == -(-few // width):  # of those the narrowest
        return INFINITE
    at_once = int(row[ROOMS + int(row[ROOMS])]) * blocks
    tiles = tiles_of(few, int(given[1]), width)
    parts = parts_of(tiles, at_once, int(given[2]), int(given[4]), int(row[3]), blocks)
    if parts == 0:
        return INFINITE
    return seconds_of(row, given, parts)


@lru_cache(maxsize=64)
def _table(precision: str, machine: Machine) -> tuple[tuple[tuple[OnceTile, int, int], ...], Rows]:
    """(tile, blocks of a cluster, half waves), and of each: its width, blocks of a multiprocessor, of a cluster, half
    waves; bytes of the few lines in a stage; seconds of a stage by the tensor cores and of one alone, and of the cells
    that a block stores; whether the few lines are gathered; the width of the next narrower tile like it; clusters that
    the card holds, and with one block of each multiprocessor."""
    f, places, rows = coefficients(f"read_once {precision}"), [], []
    kind, products = ("tf32", 1) if precision == "tf32" else ("bfloat16", PRODUCTS)
    rate = machine.tensor_rate(kind) / machine.units * f.share
    for tile, blocks, halves in product(TILES[precision], BLOCKS, HALVES):
        if blocks > 1 and not halves:
            continue
        cores = products * tile.width * LONG * DEPTH / rate
        alone, cells = f.stage + f.column * tile.width, f.cell * LONG * tile.width / blocks
        if tile.gathered:
            alone += f.gathered + f.gathered_column * tile.width
        room = rooms(machine.units, blocks, tile.resident)
        places.append((tile, blocks, halves))
        row = tile.width, tile.resident, blocks, halves, tile.few_bytes, cores, alone, cells, tile.gathered
        like = [x.width for x in TILES[precision] if x.gathered == tile.gathered and x.width < tile.width]
        rows.append((*row, max(like, default=0), *padded(room)))
    return tuple(places), Rows(rows)


class Figures(NamedTuple):
    """What times depend on besides sizes: a precision on a card."""

    units: int  # multiprocessors
    bandwidth: float  # bytes a second
    transposed: bool  # P has few rows, and N is the long operand
    tf32: bool
    across_apart: float  # factors of bytes of a stage of lines across k
    across_alike: float
    memory: float  # share of the bandwidth
    before: float  # seconds: of the few lines' launch,
    behind: float  # of the fallback's,
    block: float  # of a block,
    start: float  # of a launch,
    meet: float  # of a cluster's, and for each block of it,
    met: float
    gather: float  # of adding up
    turning: float  # bytes a second: of the few lines,
    gathering: float  # of partial sums,
    unit: float  # of L2, to a multiprocessor
    crowd: float  # exponent: how L2's time grows with the blocks that load


def takes(p: Problem, f: Figures) -> bool:
    if p.accumulate and not f.tf32:
        return False
    return is_long(f.transposed, p) and (f.tf32 or falls_back(f.transposed, p))


def given_of(p: Problem, f: Figures) -> Row:
    """The numbers that all rows share."""
    few, length, stages = p.m if f.transposed else p.n, p.n if f.transposed else p.m, -(-p.k // DEPTH)
    nbytes = 1.0 * BYTES_ALONG
    if not along_of(f.transposed, p):
        alike = long_lead(f.transposed, p) % 4 == 0
        nbytes = f.across_alike * BYTES_ALIKE if alike else f.across_apart * BYTES_APART
    passing, in_place = (p.least_bytes / (f.bandwidth * f.memory)) ** 4, few_in_place(f.transposed, f.tf32, p)
    before = 0.0 if in_place else f.before + 8 * few * p.k / f.turning
    return (
        few, length, stages, f.units, 1 if f.tf32 else -(-stages // SEGMENT), nbytes, passing, f.unit, f.crowd, f.block,
        f.start, f.meet, f.met, f.gather, 4 * p.m * p.n / f.gathering, before + f.behind, in_place, f.tf32,
    )  # fmt: skip


def passes_of(row: Row, given: Row) -> int:
    """Launches beside the product: few rows split or transposed, parts added up, the plain kernel behind splits."""
    blocks, planes = int(row[2]), given[17] == 0.0
    at_once = int(row[ROOMS + int(row[ROOMS])]) * blocks
    tiles = tiles_of(int(given[0]), int(given[1]), int(row[0]))
    parts = parts_of(tiles, at_once, int(given[2]), int(given[4]), int(row[3]), blocks)
    made = 1 if parts > blocks else 0
    if row[8] == 0.0:
        made = made + (2 if planes else 0 if given[16] > 0.0 else 1)
    return made


EXPECTED = Formula(expected, given_of, takes, passes_of)


def products_of(p: Problem) -> tuple[str, int]:
    """Whose rate the tensor cores have for it, and how many of their products one of its own is."""
    return ("tf32", 1) if p.precision == "tf32" else ("bfloat16", PRODUCTS)


def _precision(p: Problem) -> str:
    return "tf32" if p.precision == "tf32" else "high"


def searched(p: Problem, machine: Machine) -> list[Searched]:
    f, (places, rows) = coefficients(f"read_once {_precision(p)}"), _table(_precision(p), machine)
    numbers = (
        f.memory, f.before, f.behind, f.block, f.start, f.meet, f.met, f.gather, f.turning, f.gathering, f.unit,
        f.crowd,
    )  # fmt: skip
    made = []
    for transposed in (True, False):
        figures = Figures(
            machine.units, machine.bandwidth, transposed, p.precision == "tf32", f.across[0], f.across[1], *numbers
        )

        def config(number: int, problem: Problem, figures: Figures = figures) -> OnceConfig:
            tile, blocks, halves = places[number]
            few, length, stages, _, least, *_ = map(int, given_of(problem, figures)[:5])
            at_once = rooms(machine.units, blocks, tile.resident)[-1] * blocks
            parts = parts_of(tiles_of(few, length, tile.width), at_once, stages, least, halves, blocks)
            return OnceConfig(tile, figures.transposed, blocks, parts // blocks)

        made.append(Searched(EXPECTED, rows, figures, config))
    return made


def passes(problem: Problem, config: OnceConfig) -> int:
    """Launches beside the product: few rows split or transposed, parts added up, the plain kernel behind splits."""
    before = not config.tile.gathered and (config.tile.planes > 1 or not side_of(problem, config).in_place)
    return before + (config.clusters > 1) + (not config.tile.gathered and config.tile.planes > 1)
