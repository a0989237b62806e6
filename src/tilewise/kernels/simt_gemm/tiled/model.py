"""Cost model of the plain kernels: packing of operands, tiles, split-K.

A `Choice` is what `recipe.py` lays out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from tilewise.algebra.builtin import is_plus_times
from tilewise.core.machine import Machine, shared_limit
from tilewise.core.plan import Geometry
from tilewise.core.problem import Layout, Problem
from tilewise.errors import DtypeError
from tilewise.kernels.by_configs import fastest, tables_for
from tilewise.kernels.family import Searched
from tilewise.kernels.shared.layouts import along_columns, has_lines, line_alignment
from tilewise.kernels.shared.triangle import tiles_of as computed_tiles
from tilewise.kernels.simt_gemm.tiled.configs import Config, config_if_found, config_of
from tilewise.kernels.simt_gemm.tiled.seconds import (
    EACH_PACKING,
    PACKINGS,
    PACKINGS_FROM,
    START_SECONDS,
    Cuts,
    covered,
    cuts,
    expected,
    pieces_of,
)
from tilewise.kernels.simt_gemm.tiled.tiles import GUARD_TILE, THREE_TILES, PlainTile, tiles_of
from tilewise.system.machine_code import INFINITE, Formula, Row

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
    best: Choice = fastest(tables_for(searched(problem, machine), problem), problem.largest)[1]
    return best


@lru_cache(maxsize=64)
def fitting(config: Config, arch: str, whole_k: bool = False) -> Cuts:
    limit = shared_limit(arch)
    return cuts(tuple(t for t in tiles_of(config) if t.shared_bytes(config.word_bytes) <= limit), whole_k)


@lru_cache(maxsize=4096)
def whole_tiles(problem: Problem, machine: Machine) -> Choice:
    """The choice of a fallback: tiles for all of P, operands unpacked, no edges. Split-K only for a small P, because
    the blocks of `combine` must exit quickly when the fallback is not needed; none for stacks, which use GUARD_TILE."""
    config = _config(problem, machine)
    every = [_searched_by(problem, machine, fitting(config, machine.arch), config)]
    best: Choice = fastest(tables_for(every, problem), problem.largest)[1]
    if problem.members > 1:
        best = replace(best, tile=GUARD_TILE, pieces=1)
    few = problem.m * problem.n <= CELLS_IN_PIECES
    pieces = best.pieces if few else 1
    return replace(best, rows=problem.m, cols=problem.n, packs=(), pieces=pieces, tail=None, symmetric=False)


def _config(problem: Problem, machine: Machine) -> Config:
    return config_of(problem.algebra, machine, problem.nonnegative, problem.return_arg, problem.ordered)


class Figures(NamedTuple):
    """What times depend on besides sizes: a kind of product on a card, by one algorithm."""

    units: int  # multiprocessors
    bandwidth: float  # bytes a second
    rate: float  # steps a second of a multiprocessor
    slots: float  # of a step, in multiply-adds
    per_word: int  # elements of k in a word,
    word: int  # and its bytes
    size: int  # bytes of an element,
    sum_size: int  # of a partial sum,
    result_size: int  # and of P's
    packed_m: bool  # the operand must be packed
    packed_n: bool
    plus_times: bool
    tails: bool  # the last tiles may be split: their planes have P's dtype
    thin: bool  # the GEMV kernels may compute thin edges
    mirrored: bool  # the upper tiles of a symmetric P may be all that is computed
    found: bool  # operands are searched for negative elements first


def figures_of(p: Problem, machine: Machine, config: Config, found: bool) -> Figures:
    own, converted = p.algebra, (p.dtype_m != p.dtype, p.dtype_n != p.dtype)
    tails = not p.accumulate and not p.return_arg and own.partial == own.result
    # not in stacks, where each member would have a launch; of bits the GEMV kernels read bytes
    thin = p.members <= 1 and not p.ordered and config.name != "bits" and not any(converted)
    return Figures(
        machine.units, machine.bandwidth, machine.step_rate("float32") / machine.units, config.slots, config.per_word,
        config.word_bytes, p.dtype.itemsize, own.partial.itemsize, own.result.itemsize,
        config.packs or converted[0], config.packs or converted[1], is_plus_times(p.semiring), tails, thin,
        not p.return_arg and p.reproducible is None, found,
    )  # fmt: skip


def takes_any(p: Problem, f: Figures) -> bool:
    return p.k > 0 if f.found else True


def given_of(p: Problem, f: Figures) -> Row:
    """The numbers that all rows share."""
    stored = p.members * p.m * p.n * f.result_size
    memory = max(p.least_bytes / READING, (stored if stored > BEYOND_L2 else 0) / STORING) / f.bandwidth
    planes, symmetric = 2 * p.m * p.n * f.sum_size * p.members / f.bandwidth, f.mirrored and p.symmetric
    may_be_thin = f.thin and not symmetric
    thin_m = may_be_thin and p.m >= THIN_FROM and has_lines(p.layout_n, p.k, p.n)
    thin_n = may_be_thin and p.n >= THIN_FROM and has_lines(p.layout_m, p.m, p.k)
    edge_m = START_SECONDS + p.k * p.n * f.size / (0.8 * f.bandwidth)
    edge_n = START_SECONDS + p.m * p.k * f.size / (0.8 * f.bandwidth)
    rate = f.rate
    if p.members > 1 and min(p.m, p.k, p.n) >= STACKED_SIDE and f.plus_times == 0:
        rate = rate / STACKED_SLOW
    tail = f.tails and p.members == 1 and p.k > 0 and not symmetric
    lies_m = not f.packed_m and lies(p.layout_m, p.m, p.k, f.word)
    lies_n = not f.packed_n and lies(p.layout_n, p.k, p.n, f.word)
    along_m, along_n = not along_columns(p.layout_m, p.m, p.k), along_columns(p.layout_n, p.k, p.n)
    small_m = line_alignment(p.layout_m, p.m, p.k, f.word) < 16
    small_n = line_alignment(p.layout_n, p.k, p.n, f.word) < 16
    slow_m = TRANSPOSED if along_m else SMALL if small_m else 1.0
    slow_n = TRANSPOSED if along_n else SMALL if small_n else 1.0
    bytes_m = p.members * (p.m * p.k * p.dtype_m.itemsize + p.m * p.k * f.word // f.per_word)
    bytes_n = p.members * (p.k * p.n * p.dtype_n.itemsize + p.k * p.n * f.word // f.per_word)
    pack_m = PACK_SECONDS + bytes_m / (PACKING * f.bandwidth)
    pack_n = PACK_SECONDS + bytes_n / (PACKING * f.bandwidth)
    both_m = lies_m and (along_m or small_m) and bytes_m <= PACK_LIMIT
    both_n = lies_n and (along_n or small_n) and bytes_n <= PACK_LIMIT
    packings = (2 if both_m else 1) * (2 if both_n else 1)
    own_m = p.m * p.k * (p.members if p.layout_m.step else 1)
    own_n = p.k * p.n * (p.members if p.layout_n.step else 1)
    return (
        p.m, p.n, -(-p.k // f.per_word), p.members, f.units, rate, f.slots, f.per_word, f.bandwidth, memory, planes,
        edge_m if thin_m else 0.0, edge_n if thin_n else 0.0, tail, f.result_size, symmetric, packings,
        *packing(not lies_m, not lies_n, pack_m, pack_n, slow_m, slow_n),
        *packing(both_m if not both_n else not lies_m, both_n or not lies_n, pack_m, pack_n, slow_m, slow_n),
        *packing(True, not lies_n, pack_m, pack_n, slow_m, slow_n),
        *packing(True, True, pack_m, pack_n, slow_m, slow_n),
        PACK_SECONDS + 4 * own_m / (READING * f.bandwidth), PACK_SECONDS + 4 * own_n / (READING * f.bandwidth),
        lies_m, lies_n, f.found,
    )  # fmt: skip


LOOKING_FROM = PACKINGS_FROM + PACKINGS * EACH_PACKING  # where a search for negative elements begins


def packing(m: bool, n: bool, pack_m: float, pack_n: float, slow_m: float, slow_n: float) -> Row:
    """Of operands that are packed or not: seconds of packing, factor of the kernel's time, and which are packed."""
    seconds = (pack_m if m else 0.0) + (pack_n if n else 0.0)
    return seconds, (1.0 if m else slow_m) * (1.0 if n else slow_n), m, n


def lies(layout: Layout, rows: int, cols: int, word: int) -> bool:
    """Whether an operand whose words are its elements can be copied unpacked: packing is mandatory for others, optional
    for those that copies transpose or take in small pieces."""
    return layout.alignment >= min(word, 16) and has_lines(layout, rows, cols)


def passes(row: Row, given: Row) -> int:
    """Operands packed, parts of k added up, the last tiles' parts, thin edges."""
    at = PACKINGS_FROM + EACH_PACKING * int(row[5])
    edges = (1 if given_rows(row, given) < given[0] else 0) + (1 if given_cols(row, given) < given[1] else 0)
    pieces = 1 if given_pieces(row, given) > 1 else 0
    return int(given[at + 2]) + int(given[at + 3]) + pieces + (1 if row[7] > 0.0 else 0) + edges


def given_rows(row: Row, given: Row) -> int:
    """Rows of P that tiles cover."""
    return covered(int(given[0]), int(row[0]), given[11])


def given_cols(row: Row, given: Row) -> int:
    return covered(int(given[1]), int(row[1]), given[12])


def given_pieces(row: Row, given: Row) -> int:
    """Pieces of k."""
    rows, cols = given_rows(row, given), given_cols(row, given)
    tiles = computed_tiles(rows, cols, int(row[0]), int(row[1]), int(given[15])) * int(given[3])
    return pieces_of(int(row[6]), tiles, int(given[4]) * int(row[3]), -(-int(given[2]) // int(row[2])))


def found_too(row: Row, given: Row, seconds: float) -> float:
    """With the search for negative elements, by packing where operands are packed; a launch that exits follows. Not
    where k is in pieces, or an operand neither packed nor copied as it is."""
    if given[LOOKING_FROM + 4] == 0.0:
        return seconds
    at = PACKINGS_FROM + EACH_PACKING * int(row[5])
    lies_m, lies_n = given[LOOKING_FROM + 2] + given[at + 2], given[LOOKING_FROM + 3] + given[at + 3]
    if given_pieces(row, given) > 1 or lies_m == 0.0 or lies_n == 0.0:
        return INFINITE
    looking = (0.0 if given[at + 2] > 0.0 else given[LOOKING_FROM]) + (
        0.0 if given[at + 3] > 0.0 else given[LOOKING_FROM + 1]
    )
    down, across = -(-given_rows(row, given) // int(row[0])), -(-given_cols(row, given) // int(row[1]))
    leaving = down * across * int(given[3]) // (int(given[4]) * int(row[3])) * LEAVE_SECONDS
    return seconds + (SEEK_SECONDS + looking + leaving)


EXPECTED = Formula(expected, given_of, takes_any, passes, found_too)


def searched(problem: Problem, machine: Machine) -> list[Searched]:
    """By the algorithm for all operands; and by a faster one for those without negative elements, which is checked on
    the card, where there is one. Both have the same tiles."""
    p, config = problem, _config(problem, machine)
    made = [_searched_by(p, machine, fitting(config, machine.arch, p.ordered), config)]
    found = None if p.ordered else config_if_found(p.algebra, machine)
    if found is None or p.nonnegative or p.return_arg or p.accumulate:
        return made
    tile = THREE_TILES[0]
    same = [t for t in tiles_of(config) if replace(t, share=tile.share, registers=tile.registers) == tile]
    if same and tile.shared_bytes(config.word_bytes) <= shared_limit(machine.arch):
        made.append(_searched_by(p, machine, cuts((tile,)), found[0], (config, same[0]), found[1]))
    return made


def _searched_by(
    problem: Problem,
    machine: Machine,
    among: Cuts,
    config: Config,
    otherwise: tuple[Config, PlainTile] | None = None,
    limit: int = 0,
) -> Searched:
    figures, (tiles, configs, rows) = figures_of(problem, machine, config, otherwise is not None), among

    def choice(number: int, p: Problem) -> Choice:
        given, row, (at, packed, _, others) = given_of(p, figures), rows.rows[number], configs[number]
        tile, packing_at = tiles[at], PACKINGS_FROM + EACH_PACKING * packed
        seconds = found_too(row, given, expected(row, given))
        names = tuple(name for name, one in zip("MN", given[packing_at + 2 : packing_at + 4], strict=True) if one)
        tall, wide, symmetric = given_rows(row, given), given_cols(row, given), bool(given[15])
        count = computed_tiles(tall, wide, tile.rows, tile.cols, symmetric) * p.members
        tail = _tail(-(-p.k // config.per_word), tile, machine.units, count % machine.units, others) if others else None
        pieces = given_pieces(row, given)
        return Choice(config, tile, pieces, tall, wide, seconds, names, tail, otherwise, limit, symmetric)

    return Searched(EXPECTED, rows, figures, choice)


def _tail(words: int, tile: PlainTile, units: int, tiles: int, others: int) -> Tail:
    """The cut of the last `tiles` into a first piece and so many others."""
    phases = math.ceil(words / tile.depth)
    rounds = math.ceil(tiles * others / (units - tiles))
    first = math.ceil(phases * rounds / (rounds + others))
    each = max(1, math.ceil((phases - first) / others))
    return Tail(tiles, 1 + math.ceil((phases - first) / each), first * tile.depth, each * tile.depth)
