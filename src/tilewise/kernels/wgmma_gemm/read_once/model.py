"""Few rows or columns of float32, as tf32 or as bfloat16 planes, as the planner sees them.

The long operand is read once, whatever its lines start on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry
from tilewise.core.problem import Layout, Problem
from tilewise.kernels.bounds import Bound
from tilewise.kernels.capabilities import Condition
from tilewise.kernels.shared.layouts import along_k, contiguous_lines
from tilewise.kernels.shared.residency import padded, rooms
from tilewise.kernels.wgmma_gemm.k_major.model import route
from tilewise.kernels.wgmma_gemm.read_once.seconds import (
    DEPTH,
    FEWEST_STAGES,
    FIGURES,
    HALVES,
    LONG,
    expected,
    parts_of,
    seconds_of,
    tiles_of,
)
from tilewise.system.machine_code import INFINITE, Row, Rows

KERNEL = "read_once"
IDEA = "few rows or columns of float32: the long operand streams to the tensor cores' registers once, as it lies"
ALONG, APART, ALIKE = "along k", "across k, apart", "across k, alike"  # how lines of the long operand come
FAR = 2**24  # elements from line to line, or from k to k, that the kernel does not reckon with
CLASSES = 4  # of lines that start equally far from a 16-byte boundary
LONG_BYTES = {ALONG: 128 * 144, APART: 32 * 528, ALIKE: 32 * 544}  # of a stage
SHARED_BYTES = 227 * 1024
MOST_ACROSS = 4  # tiles for the few lines
MOST_FEW = 512  # rows or columns
BLOCKS = (1, 2, 4)  # of a cluster
PRODUCTS = 6  # of planes
SEGMENT = 256  # stages whose sums of planes are added up in registers


@dataclass(frozen=True)
class OnceTile:
    """LONG lines by `width` few ones; `planes` of the few: one of tf32, or three of bfloat16."""

    width: int
    planes: int
    resident: int
    gathered: bool = False  # the few lines are rounded or split inside the launch

    @property
    def stages(self) -> int:
        held = SHARED_BYTES if self.resident == 1 else (SHARED_BYTES + 1024) // self.resident - 1024
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
    """`turned`: P has few rows. k is cut over `blocks` of a cluster, and over `clusters` of a tile."""

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

    def words(self) -> list[str]:
        """What is special about it, a sentence each."""
        words = [f"{'N' if self.transposed else 'M'} is read once, as it lies"]
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


def sides(p: Problem) -> list[Side]:
    """The ways round that it can be taken."""
    return list(_sides(p.m, p.k, p.n, p.layout_m, p.layout_n, p.precision == "tf32"))


LONG_SIDE = Condition(lambda p: bool(sides(p)), "reads a longer operand whose rows or columns are contiguous")
ONTO_P = Condition(  # what it makes of extreme magnitudes is made again
    lambda p: not p.accumulate or p.precision == "tf32", "adds onto P with precision='tf32' alone"
)


@lru_cache(maxsize=64)
def _sides(m: int, k: int, n: int, layout_m: Layout, layout_n: Layout, tf32: bool) -> tuple[Side, ...]:
    of_m = m, k, layout_m, "M", layout_m.row, layout_m.col
    of_n = k, n, layout_n, "N", layout_n.col, layout_n.row
    made = []
    for transposed, few, length, (rows, cols, layout, name, *_), other in (
        (True, m, n, of_n, of_m),
        (False, n, m, of_m, of_n),
    ):
        lines = contiguous_lines(layout, rows, cols)
        if not 0 < few <= MOST_FEW or length < max(CLASSES, few) or k < CLASSES or lines is None:
            continue
        lead = lines[2]
        lies = ALONG if along_k(layout, rows, cols, name) else ALIKE if lead % 4 == 0 else APART
        line_stride, k_stride = other[4:]
        if max(abs(line_stride), abs(k_stride)) >= FAR:
            continue
        if not tf32 and contiguous_lines(other[2], other[0], other[1]) is None:  # the plain kernel behind reads it, too
            continue
        in_place = tf32 and route(line_stride, k_stride, few, k, other[2].alignment, 4) == "as it is"
        made.append(Side(transposed, few, length, lies, lead, in_place))
    return tuple(made)


def side_of(p: Problem, config: OnceConfig) -> Side:
    return next(side for side in sides(p) if side.transposed == config.transposed)


@lru_cache(maxsize=4096)
def worthwhile(few: int, precision: str, in_place: bool) -> tuple[OnceTile, ...]:
    """Tiles for so many few lines: of those that need as many, up to MOST_ACROSS, the narrowest. Lines that go as they
    are need no gathering."""
    found: dict[tuple[bool, int], OnceTile] = {}
    for tile in TILES[precision]:
        if -(-few // tile.width) <= MOST_ACROSS and not (in_place and tile.gathered):
            found.setdefault((tile.gathered, -(-few // tile.width)), tile)
    return tuple(found.values())


@lru_cache(maxsize=256)
def _table(
    tiles: tuple[OnceTile, ...], precision: str, machine: Machine
) -> tuple[tuple[tuple[OnceTile, int, int], ...], Rows]:
    """(tile, blocks of a cluster, half waves), and of each: its width, blocks of a multiprocessor, of a cluster, half
    waves; bytes of the few lines in a stage; seconds of a stage by the tensor cores and of one alone, and of the cells
    that a block stores; whether the few lines are gathered; clusters that the card holds, and with one block of each
    multiprocessor."""
    f, places, rows = FIGURES[precision], [], []
    kind, products = ("tf32", 1) if precision == "tf32" else ("bfloat16", PRODUCTS)
    rate = machine.tensor_rate(kind) / machine.units * f.share
    for tile, blocks, halves in product(tiles, BLOCKS, HALVES):
        if blocks > 1 and not halves:
            continue
        cores = products * tile.width * LONG * DEPTH / rate
        alone, cells = f.alone + f.column * tile.width, f.cell * LONG * tile.width / blocks
        if tile.gathered:
            alone += f.gathered + f.gathered_column * tile.width
        room = rooms(machine.units, blocks, tile.resident)
        places.append((tile, blocks, halves))
        row = tile.width, tile.resident, blocks, halves, tile.few_bytes, cores, alone, cells, tile.gathered
        rows.append((*row, *padded(room)))
    return tuple(places), Rows(rows)


def _given(p: Problem, side: Side, machine: Machine) -> Row:
    """What all rows share."""
    f, stages = FIGURES[_precision(p)], -(-p.k // DEPTH)
    least = 1 if p.precision == "tf32" else -(-stages // SEGMENT)
    weight = {ALONG: 1.0, APART: f.across[0], ALIKE: f.across[1]}[side.lies]
    passing = (p.least_bytes / (machine.bandwidth * f.memory)) ** 4
    before = 0.0 if side.in_place else f.before + 8 * side.few * p.k / f.turning
    return (
        side.few, side.length, stages, machine.units, least, weight * LONG_BYTES[side.lies], passing, f.unit, f.crowd,
        f.tile, f.start, f.cluster, f.part, f.gather, 4 * p.m * p.n / f.gathering, before + f.behind,
    )  # fmt: skip


def products_of(p: Problem) -> tuple[str, int]:
    """Whose rate the tensor cores have for it, and how many of their products one of its own is."""
    return ("tf32", 1) if p.precision == "tf32" else ("bfloat16", PRODUCTS)


def _precision(p: Problem) -> str:
    return "tf32" if p.precision == "tf32" else "high"


def _configs(p: Problem, side: Side, machine: Machine) -> tuple[tuple[tuple[OnceTile, int, int], ...], Rows]:
    return _table(worthwhile(side.few, _precision(p), side.in_place), _precision(p), machine)


def _config(number: int, p: Problem, side: Side, machine: Machine) -> OnceConfig:
    """What a row stands for."""
    tile, blocks, halves = _configs(p, side, machine)[0][number]
    given = _given(p, side, machine)
    tiles = tiles_of(side.few, side.length, tile.width)
    at_once = rooms(machine.units, blocks, tile.resident)[-1] * blocks
    parts = parts_of(tiles, at_once, int(given[2]), int(given[4]), halves, blocks)
    return OnceConfig(tile, side.transposed, blocks, parts // blocks)


def timed(p: Problem, machine: Machine) -> list[tuple[float, OnceConfig]]:
    """Every way with its expected seconds; the same one may come more than once."""
    made = []
    for side in sides(p):
        given, rows = _given(p, side, machine), _configs(p, side, machine)[1].rows
        every = ((expected(row, given), number) for number, row in enumerate(rows))
        made += [(seconds, _config(number, p, side, machine)) for seconds, number in every if seconds < INFINITE]
    return made


def configs(p: Problem, machine: Machine) -> list[OnceConfig]:
    return list(dict.fromkeys(config for _, config in timed(p, machine)))


def seconds(config: OnceConfig, problem: Problem, machine: Machine) -> float:
    places, rows = _table((config.tile,), _precision(problem), machine)
    row = rows.rows[next(at for at, place in enumerate(places) if place[1] == config.blocks)]
    return seconds_of(row, _given(problem, side_of(problem, config), machine), config.parts)


def bounds(some: Problem, machine: Machine) -> tuple[Bound, ...]:
    """The bytes, the tensor cores at their best share, a part of k of a tile alone."""
    f, (kind, products) = FIGURES[_precision(some)], products_of(some)
    stage = f.alone + f.column * TILES["tf32"][0].width
    step, byte = products / (machine.tensor_rate(kind) * f.share), 1 / (machine.bandwidth * f.memory)
    lines = (stage / DEPTH, f.tile), (0.0, f.tile + FEWEST_STAGES * stage)
    return (Bound(f.start, step=step, byte=byte, lines=lines),)


def passes(problem: Problem, config: OnceConfig) -> int:
    """Launches beside the product's own: few lines split or turned, parts added up, the plain kernel behind splits."""
    before = not config.tile.gathered and (config.tile.planes > 1 or not side_of(problem, config).in_place)
    return before + (config.clusters > 1) + (not config.tile.gathered and config.tile.planes > 1)


@lru_cache(maxsize=64)
def best_config(problem: Problem, machine: Machine) -> tuple[float, OnceConfig]:
    """The way with the least expected seconds."""
    best = []
    for number, side in enumerate(sides(problem)):
        rows = _configs(problem, side, machine)[1]
        row, seconds = expected.least(rows, _given(problem, side, machine), problem.largest)
        best.append((seconds, number, row, side))
    seconds, _, row, side = min(best)
    return seconds, _config(row, problem, side, machine)
