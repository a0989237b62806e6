"""Cost model of the plain kernels: packing of operands, tiles, split-K.

A `Choice` is what `recipe.py` lays out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter

from tilewise.algebra.builtin import is_plus_times
from tilewise.algebra.dtypes import DType
from tilewise.core.machine import Machine, shared_limit
from tilewise.core.plan import Geometry
from tilewise.core.problem import Layout, Problem
from tilewise.errors import DtypeError
from tilewise.kernels.shared.layouts import line_alignment, lines_of_long, long_lines
from tilewise.kernels.shared.triangle import tiles_of as computed_tiles
from tilewise.kernels.simt_gemm.skinny import FEW
from tilewise.kernels.simt_gemm.tiled.configs import Config, config_if_found, config_of
from tilewise.kernels.simt_gemm.tiled.seconds import START_SECONDS, Cuts, cuts, expected, pieces_of
from tilewise.kernels.simt_gemm.tiled.tiles import GUARD_TILE, THREE_TILES, PlainTile, tiles_of
from tilewise.system.machine_code import Row

KERNEL = "plain"
THIN_FROM = 1024  # rows or columns of P; below, one launch with partly empty tiles is faster than two
IDEA = "warps of register tiles over any semiring, fed by asynchronous copies"
CELLS_IN_PIECES = 2**18  # of P: limit of split-K of a fallback, which hardly ever runs
PACK_SECONDS = 3e-6  # a launch
PACK_LIMIT = 2**33  # bytes moved by optional packing
PACKING = 0.65  # share of the memory's bandwidth that packing reaches,
STORING = 0.38  # and storing a P that L2 does not hold: 80 to 440 MB of seven products, 0.33 to 0.40
BEYOND_L2 = 6e7  # bytes of such a P
READING = 0.8  # share of it that a kernel with little to compute reaches
TRANSPOSED, SMALL = 1.085, 1.11  # factors of the time where copies transpose an operand, or are below 16 bytes
SEEK_SECONDS = 8e-6  # a predicated launch that exits at once
STACKED_SIDE, STACKED_SLOW = 200, 1.1  # from these sides on, stacks of other semirings than plus_times are slower
LEAVE_SECONDS = 1e-6  # and each further wave of its blocks


@dataclass(frozen=True)
class Tail:
    """Split-K of the last tiles of P, too few for all multiprocessors: multiprocessors without a tile compute the
    pieces of k after the first."""

    tiles: int
    pieces: int
    first: int  # words of k of the first piece
    each: int  # and of the others

    def cut(self, tiles: int) -> tuple[int, int, int]:
        """The kernel's arguments, with so many tiles in all."""
        return tiles - self.tiles, self.first, self.each


@dataclass(frozen=True)
class Choice:
    """What runs: the tile, the pieces of k, and the part of P that whole tiles cover."""

    config: Config
    tile: PlainTile
    pieces: int
    rows: int  # of P that the tiles cover; the GEMV kernels compute the thin rest
    cols: int
    predicted: float
    packs: tuple[str, ...] = ()  # operands that are packed into words of k first
    tail: Tail | None = None
    otherwise: tuple[Config, PlainTile] | None = None  # where a word exceeds `limit`, which is checked first
    limit: int = 0
    symmetric: bool = False  # tiles on and above the diagonal, stored twice

    @property
    def geometry(self) -> Geometry:
        return self.tile.geometry(self.config)


def k_each(k_words: int, tile: PlainTile, pieces: int) -> int:
    """Words of k of one piece: a multiple of a phase."""
    phases = math.ceil(k_words / tile.depth)
    return max(1, math.ceil(phases / pieces)) * tile.depth


@lru_cache(maxsize=4096)
def choose(problem: Problem, machine: Machine) -> Choice:
    """The tile and the pieces of k with the least expected time."""
    if problem.return_arg and problem.k >= 2**31:
        raise DtypeError(f"return_arg=True knows k below 2³¹, and k is {problem.k}")
    config = _config(problem, machine)
    tiled = [_tiled_choice(problem, machine, fitting(config, machine.arch, problem.ordered), config)]
    if not problem.ordered and (found := config_if_found(problem.algebra, machine)) is not None:
        tiled += _choice_if_found(problem, machine, config, found)
    return min(tiled, key=attrgetter("predicted"))


@lru_cache(maxsize=64)
def fitting(config: Config, arch: str, whole_k: bool = False) -> Cuts:
    limit = shared_limit(arch)
    return cuts(tuple(t for t in tiles_of(config) if t.shared_bytes(config.word_bytes) <= limit), whole_k)


@lru_cache(maxsize=4096)
def whole_tiles(problem: Problem, machine: Machine) -> Choice:
    """The choice of a fallback: tiles for all of P, operands unpacked, no edges. Split-K only for a small P, because
    the blocks of `combine` must exit quickly when the fallback is not needed; none for stacks, which use GUARD_TILE."""
    config = _config(problem, machine)
    best = _tiled_choice(problem, machine, fitting(config, machine.arch), config)
    if problem.members > 1:
        best = replace(best, tile=GUARD_TILE, pieces=1)
    few = problem.m * problem.n <= CELLS_IN_PIECES
    pieces = best.pieces if few else 1
    return replace(best, rows=problem.m, cols=problem.n, packs=(), pieces=pieces, tail=None, symmetric=False)


def _config(problem: Problem, machine: Machine) -> Config:
    return config_of(problem.algebra, machine, problem.nonnegative, problem.return_arg, problem.ordered)


def _choice_if_found(p: Problem, machine: Machine, config: Config, found: tuple[Config, int]) -> list[Choice]:
    """A faster algorithm for operands without negative elements, which is checked on the card, by packing where
    operands are packed. `config` runs where there are any. Both have the same tiles."""
    if p.nonnegative or p.return_arg or p.accumulate or not p.k:
        return []
    tile = THREE_TILES[0]
    same = [t for t in tiles_of(config) if replace(t, share=tile.share, registers=tile.registers) == tile]
    if not same or tile.shared_bytes(config.word_bytes) > shared_limit(machine.arch):
        return []
    best = _tiled_choice(p, machine, cuts((tile,)), found[0])
    sought = [
        elements * (p.members if any(layout.stack) else 1)
        for side, layout, elements in (("M", p.layout_m, p.m * p.k), ("N", p.layout_n, p.k * p.n))
        if side not in best.packs
    ]
    looking = SEEK_SECONDS + sum(PACK_SECONDS + 4 * n / (READING * machine.bandwidth) for n in sought)
    tiles = -(-best.rows // tile.rows) * -(-best.cols // tile.cols) * p.members
    looking += (tiles // (machine.units * tile.resident)) * LEAVE_SECONDS  # of the launch that exits
    lying = all(
        source_of_words(layout, *shape, p.dtype, p.dtype, config) is not None or side in best.packs
        for side, layout, shape in (("M", p.layout_m, (p.m, p.k)), ("N", p.layout_n, (p.k, p.n)))
    )
    if not lying or best.pieces > 1:
        return []
    return [replace(best, predicted=best.predicted + looking, otherwise=(config, same[0]), limit=found[1])]


def _shared(
    p: Problem,
    machine: Machine,
    config: Config,
    packings: Sequence[tuple[tuple[str, ...], float, float]],
    thin: tuple[bool, bool],
) -> Row:
    """The numbers that all rows share."""
    memory, words = max(p.least_bytes / READING, _stored(p) / STORING) / machine.bandwidth, -(-p.k // config.per_word)
    planes = 2 * p.m * p.n * p.algebra.partial.itemsize * p.members / machine.bandwidth
    edges = [
        START_SECONDS + cells * p.dtype.itemsize / (0.8 * machine.bandwidth) if may else 0.0
        for may, cells in zip(thin, (p.k * p.n, p.m * p.k), strict=True)
    ]
    rate = machine.step_rate("float32") / machine.units
    if p.members > 1 and min(p.m, p.k, p.n) >= STACKED_SIDE and not is_plus_times(p.semiring):
        rate /= STACKED_SLOW
    return (
        p.m, p.n, words, p.members, machine.units, rate, config.slots, config.per_word,
        machine.bandwidth, memory, planes, *edges, _may_have_a_tail(p), p.result.itemsize, takes_symmetric(p),
        len(packings),
        *(number for _, seconds, slower in packings for number in (seconds, slower)),
    )  # fmt: skip


def _tiled_choice(p: Problem, machine: Machine, among: Cuts, config: Config) -> Choice:
    """The tile, the packing and the cut of k with the least expected seconds."""
    packings, thin, (tiles, configs, rows) = _packings(p, machine, config), _may_be_thin(p, config), among
    number, least = expected.least(rows, _shared(p, machine, config, packings, thin), p.largest)
    at, packing, doublings, others = configs[number]
    tile = tiles[at]
    tall, across = _but_thin(p, tile, thin)
    symmetric, words = takes_symmetric(p), -(-p.k // config.per_word)
    count = computed_tiles(tall, across, tile.rows, tile.cols, symmetric) * p.members
    pieces = pieces_of(doublings, count, machine.units * tile.resident, -(-words // tile.depth))
    tail = _tail(words, tile, machine.units, count % machine.units, others) if others else None
    return Choice(config, tile, pieces, tall, across, least, packings[packing][0], tail, symmetric=symmetric)


def takes_symmetric(p: Problem) -> bool:
    """Whether the upper tiles are all that is computed; k that won have no text, nor have sums in a specified order."""
    return p.symmetric and not p.return_arg and p.reproducible is None


def _stored(p: Problem) -> int:
    """Bytes of a P that exceeds L2, else 0."""
    stored = p.members * p.m * p.n * p.result.itemsize
    return stored if stored > BEYOND_L2 else 0


def _may_have_a_tail(p: Problem) -> bool:
    """Whether the last tiles may be split: their planes have P's dtype."""
    return (
        p.members == 1
        and p.k > 0
        and not takes_symmetric(p)
        and not p.accumulate
        and not p.return_arg
        and p.algebra.partial == p.result
    )


def _tail(words: int, tile: PlainTile, units: int, tiles: int, others: int) -> Tail:
    """The cut of the last `tiles` into a first piece and so many others."""
    phases = math.ceil(words / tile.depth)
    rounds = math.ceil(tiles * others / (units - tiles))
    first = math.ceil(phases * rounds / (rounds + others))
    each = max(1, math.ceil((phases - first) / others))
    return Tail(tiles, 1 + math.ceil((phases - first) / each), first * tile.depth, each * tile.depth)


@lru_cache(maxsize=64)
def _packings(p: Problem, machine: Machine, config: Config) -> list[tuple[tuple[str, ...], float, float]]:
    """(operands packed, seconds of packing, factor of the kernel's time): packing is mandatory for some operands,
    optional for those that copies transpose or take in small pieces."""
    made: list[tuple[tuple[str, ...], float, float]] = [((), 0.0, 1.0)]
    for side, layout, rows, cols, dtype in (
        ("M", p.layout_m, p.m, p.k, p.dtype_m),
        ("N", p.layout_n, p.k, p.n, p.dtype_n),
    ):
        nbytes = p.members * (rows * cols * dtype.itemsize + rows * cols * config.word_bytes // config.per_word)
        packed = (side, PACK_SECONDS + nbytes / (PACKING * machine.bandwidth), 1.0)
        configs = [packed]
        lies = source_of_words(layout, rows, cols, dtype, p.dtype, config)
        if lies is not None:
            along_k = lies[0] == (side == "N")
            small = line_alignment(layout, rows, cols, config.word_bytes) < 16
            configs = [("", 0.0, TRANSPOSED if along_k else SMALL if small else 1.0)]
            if (along_k or small) and nbytes <= PACK_LIMIT:
                configs.append(packed)
        made = [
            ((*names, name) if name else names, seconds + more, slower * times)
            for names, seconds, slower in made
            for name, more, times in configs
        ]
    return made


def _but_thin(p: Problem, tile: PlainTile, may: tuple[bool, bool]) -> tuple[int, int]:
    """The rows and columns of P that tiles cover: without a rest so thin that its tiles would be nearly empty."""
    rest_m, rest_n = p.m % tile.rows, p.n % tile.cols
    return p.m - rest_m if may[0] and rest_m <= FEW else p.m, p.n - rest_n if may[1] and rest_n <= FEW else p.n


def _may_be_thin(p: Problem, config: Config) -> tuple[bool, bool]:
    """Whether the GEMV kernels can compute the last rows, and columns; not in stacks, with a launch for each member."""
    if (
        p.members > 1 or p.ordered or takes_symmetric(p) or config.name == "bits"
    ):  # of bits: the GEMV kernels read bytes
        return False, False
    rows = p.m >= THIN_FROM and lines_of_long(p, False) is not None
    return rows, p.n >= THIN_FROM and lines_of_long(p, True) is not None


def source_of_words(
    layout: Layout, rows: int, cols: int, dtype: DType, wanted: DType, config: Config
) -> tuple[bool, int] | None:
    """`long_lines` of an operand that can be copied unpacked, else None."""
    if config.packs or dtype != wanted or layout.alignment < min(config.word_bytes, 16):
        return None
    return long_lines(layout, rows, cols)
