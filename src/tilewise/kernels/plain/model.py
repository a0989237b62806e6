"""The plain kernels as the planner sees them: their tiles, how operands reach them, and the model that chooses.

A `Choice` is what `recipe.py` lays out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter

from tilewise.algebra.dtypes import DType
from tilewise.errors import DtypeError
from tilewise.kernels.gemv.model import FEW, few_tile
from tilewise.kernels.plain.ways import Way, way_if_found, way_of
from tilewise.kernels.shared.layouts import line_alignment, long_lines
from tilewise.machine import Machine, shared_limit
from tilewise.plans import Geometry
from tilewise.problem import Layout, Problem

KERNEL = "plain"
IDEA = "warps of register tiles over any semiring, fed by asynchronous copies"
START_SECONDS = 4e-6
CELLS_IN_PIECES = 2**18  # of P, for a plain product that may turn out not to be needed
COMBINE_SECONDS = 3e-6  # a second launch
MAX_PIECES = 256  # of k
PACK_SECONDS = 3e-6  # a launch
PACK_LIMIT = 2**33  # bytes read and written to pack what could also be copied as it lies
PACKING = 0.65  # share of the memory's bandwidth that packing reaches
READING = 0.8  # share of it that a kernel with little to compute reaches
TURNED, SMALL = 1.085, 1.11  # how much slower a kernel is that turns an operand, or copies it in pieces below 16 bytes
ALONE = 0.45  # of a full multiprocessor's time for all its blocks, that one of them alone takes at least
TAIL_PIECES = 16  # of k, of one of the last tiles, at most
SEEK_SECONDS = 8e-6  # for a kernel that finds out that it is not its turn
FULL_POWER = 0.4  # part of what a tail saves that is left of it where multiply-adds bring a card to its limit of power
PIECE_SECONDS = 3e-6  # until a block steps, and to store its sums
IDLE_READING = 2.0  # how much of the memory's bandwidth multiprocessors without a tile get, by their share of the card
THIN_FROM = 1024  # rows or columns of P; below that one launch with emptier tiles is sooner done than two


@dataclass(frozen=True)
class PlainTile:
    """Warps of 32 lanes, 4 × 8 over a warp's tile; a thread keeps `tm` × `tn` sums. `share` is the part of the step
    limit that it reaches inside a large product (measured on an H200, `tilewise bench semirings`)."""

    warps_m: int
    warps_n: int
    tm: int
    tn: int
    depth: int
    stages: int
    resident: int  # blocks a multiprocessor holds at once
    share: float
    lanes_m: int = 4
    lanes_n: int = 8
    unroll: int = 4
    zigzag: bool = False  # every second row of sums is stepped backwards
    registers: int = 0  # of a thread, at most, where fewer than there are make a better loop

    @property
    def rows(self) -> int:
        return self.warps_m * self.lanes_m * self.tm

    @property
    def cols(self) -> int:
        return self.warps_n * self.lanes_n * self.tn

    @property
    def threads(self) -> int:
        return 32 * self.warps_m * self.warps_n

    def shared_bytes(self, word_bytes: int) -> int:
        """As the kernel's STAGE has it, both operands turned."""
        return self.stages * self.depth * ((self.rows + self.cols) * word_bytes + 32)

    def geometry(self, way: Way) -> Geometry:
        shared = self.shared_bytes(way.word_bytes)
        return Geometry((self.threads, 1), self.rows, self.cols, self.depth * way.per_word, shared)


# by 4-byte registers of one sum (1, 2 or 4), the widest first; none of them spills
TILES: dict[int, tuple[PlainTile, ...]] = {
    1: (
        PlainTile(4, 2, 8, 16, 16, 3, 1, 0.80),
        PlainTile(2, 2, 8, 8, 16, 3, 3, 0.78),
        PlainTile(2, 2, 8, 4, 16, 3, 4, 0.60),
        PlainTile(2, 1, 8, 4, 16, 3, 8, 0.50),
    ),
    2: (
        PlainTile(2, 2, 8, 4, 8, 3, 3, 0.80),
        PlainTile(2, 2, 4, 4, 8, 3, 5, 0.75),
    ),
    4: (
        PlainTile(2, 2, 4, 4, 8, 2, 3, 0.80),
        PlainTile(2, 2, 4, 2, 8, 2, 4, 0.70),
    ),
}
# up to 16 rows, the long operand's lines in few wide tiles: copies run far ahead, so that reading sets the time
FEW_ROWS_TILE = PlainTile(1, 4, 16, 4, 16, 3, 2, 0.55, lanes_m=1, lanes_n=32, unroll=2)
SMALL_TILES = (*TILES[1][2:], FEW_ROWS_TILE)
# one multiply-add a step: issue slots are the limit, and the loop must keep sums in their registers (unrolled by 2)
FMA_TILES = (
    PlainTile(4, 2, 8, 16, 32, 3, 1, 0.78, unroll=2, zigzag=True),
    PlainTile(2, 2, 8, 8, 16, 3, 3, 0.73, unroll=2, zigzag=True),
    *SMALL_TILES,
)
# an addition and a minimum a step: issue slots again
TWO_SLOT_TILES = (
    PlainTile(4, 2, 16, 8, 32, 3, 1, 0.84, unroll=2, registers=216),
    PlainTile(4, 2, 8, 8, 16, 3, 2, 0.80, unroll=2),
    PlainTile(2, 2, 8, 8, 16, 3, 3, 0.75),
    *SMALL_TILES,
)
THREE_TILES = (PlainTile(4, 2, 16, 8, 32, 3, 1, 0.74, unroll=2), PlainTile(2, 2, 8, 8, 32, 2, 3, 0.72), *SMALL_TILES)
# two shorts a step keep twice the registers busy
SHORT_TILES = (
    PlainTile(4, 2, 8, 4, 16, 3, 2, 0.88),
    PlainTile(2, 2, 8, 4, 16, 3, 4, 0.85),
    PlainTile(2, 1, 8, 4, 16, 3, 8, 0.65),
)


def tiles_of(way: Way) -> tuple[PlainTile, ...]:
    """The tiles for a way; which are the fastest inside a large product was measured on an H200."""
    special = {"shorts": SHORT_TILES, "three": THREE_TILES}.get(way.name)
    if special:
        return special
    if way.name == "online" and way.sum_words == 4:
        return TILES[4][1:]  # exp in float64 wants registers of its own
    if way.name == "each" and way.converts:
        return TILES[1][1:]  # small integers wrap at every step, which takes registers too
    if way.name == "each" and way.sum_words == way.word_bytes // 4 == 1 and way.slots <= 2:
        return FMA_TILES if way.slots <= 1 else TWO_SLOT_TILES
    return TILES[1 << (max(way.sum_words, way.word_bytes // 4) - 1).bit_length()]


@dataclass(frozen=True)
class Tail:
    """The last tiles of P, too few for all multiprocessors: their k is cut, and what is left beside the first piece of
    each goes to those without a tile."""

    tiles: int
    pieces: int
    first: int  # words of k of the first piece
    each: int  # and of the others

    def cut(self, tiles: int) -> tuple[int, int, int]:
        """As the kernel is told, for so many tiles in all."""
        return tiles - self.tiles, self.first, self.each


@dataclass(frozen=True)
class Choice:
    """What runs: the tile, how many pieces k is cut into, and what whole tiles make of P."""

    way: Way
    tile: PlainTile
    pieces: int
    rows: int  # of P that the tiles make; what is left is thin and made by a kernel for few
    cols: int
    predicted: float
    packs: tuple[str, ...] = ()  # operands that are packed into words of k first
    tail: Tail | None = None
    otherwise: tuple[Way, PlainTile] | None = None  # for operands with words above `limit`, which are looked for first
    limit: int = 0

    @property
    def geometry(self) -> Geometry:
        return self.tile.geometry(self.way)


def k_each(k_words: int, tile: PlainTile, pieces: int) -> int:
    """Words of k of one piece: whole phases."""
    phases = math.ceil(k_words / tile.depth)
    return max(1, math.ceil(phases / pieces)) * tile.depth


@lru_cache(maxsize=4096)
def choose(problem: Problem, machine: Machine) -> Choice:
    """The tile and the pieces of k with the least expected time."""
    if problem.return_arg and problem.k >= 2**31:
        raise DtypeError(f"return_arg=True knows k below 2³¹, and k is {problem.k}")
    way = _way(problem, machine)
    fitting = _fitting(way, machine.arch)
    tiled = [_tiled_choice(problem, machine, tile, way) for tile in fitting]
    if (found := way_if_found(problem.algebra, machine)) is not None:
        tiled += _choice_if_found(problem, machine, way, found)
    return min(tiled, key=attrgetter("predicted"))


def least_seconds(problem: Problem, machine: Machine) -> float:
    """A launch, and every step at the best share that a tile of its way reaches, or the bytes; a tail may save some."""
    way = _way(problem, machine)
    steps = problem.steps * _least_step(way, machine)
    if (found := way_if_found(problem.algebra, machine)) is not None:
        steps = min(steps, problem.steps * _least_step(found[0], machine))
    return START_SECONDS + max(steps, 0.99 * problem.least_bytes / (READING * machine.bandwidth))


def _fitting(way: Way, arch: str) -> list[PlainTile]:
    limit = shared_limit(arch)
    return [t for t in tiles_of(way) if t.shared_bytes(way.word_bytes) <= limit]


@lru_cache(maxsize=64)
def _least_step(way: Way, machine: Machine) -> float:
    return way.slots / (machine.step_rate("float32") * max(tile.share for tile in tiles_of(way)))


@lru_cache(maxsize=4096)
def whole_tiles(problem: Problem, machine: Machine) -> Choice:
    """Tiles for all of P and operands as they lie: nothing runs before them, and nothing beside. k comes in pieces only
    where P is small: adding planes up has a block for every 32 cells, and these are to cost nothing when they leave."""
    way = _way(problem, machine)
    every = (_tiled_choice(problem, machine, tile, way) for tile in _fitting(way, machine.arch))
    best = min(every, key=attrgetter("predicted"))
    few = problem.m * problem.n <= CELLS_IN_PIECES
    return replace(best, rows=problem.m, cols=problem.n, packs=(), pieces=best.pieces if few else 1, tail=None)


def _way(problem: Problem, machine: Machine) -> Way:
    return way_of(problem.algebra, machine, problem.nonnegative, problem.return_arg)


def _choice_if_found(p: Problem, machine: Machine, way: Way, found: tuple[Way, int]) -> list[Choice]:
    """The same by a faster way, which operands allow that have no element below 0: they are looked through on the card,
    while they are packed where they are. `way` stays for those that have. Both have the same tiles."""
    if p.nonnegative or p.return_arg or p.accumulate or p.members > 1 or not p.k:
        return []
    tile = THREE_TILES[0]
    same = [t for t in tiles_of(way) if replace(t, share=tile.share, registers=tile.registers) == tile]
    if not same or tile.shared_bytes(way.word_bytes) > shared_limit(machine.arch):
        return []
    best = _tiled_choice(p, machine, tile, found[0])
    sought = [nbytes for side, nbytes in (("M", p.m * p.k), ("N", p.k * p.n)) if side not in best.packs]
    looking = SEEK_SECONDS + sum(PACK_SECONDS + 4 * n / (READING * machine.bandwidth) for n in sought)
    lying = all(
        source_of_words(layout, *shape, p.dtype, p.dtype, way) is not None or side in best.packs
        for side, layout, shape in (("M", p.layout_m, (p.m, p.k)), ("N", p.layout_n, (p.k, p.n)))
    )
    if not lying or best.pieces > 1:
        return []
    return [replace(best, predicted=best.predicted + looking, otherwise=(way, same[0]), limit=found[1])]


def _tiled_choice(p: Problem, machine: Machine, tile: PlainTile, way: Way) -> Choice:
    """A tile with its best pieces of k: the packing before, the multiprocessors' blocks one after the other, the planes
    and the thin edges after."""
    units, resident, area = machine.units, tile.resident, tile.rows * tile.cols * way.per_word
    words = -(-p.k // way.per_word)
    rate = machine.step_rate("float32") / units / way.slots * tile.share  # steps a second of a multiprocessor
    rows, cols = tiled_part(p, machine, tile, way)
    edges = START_SECONDS
    if rows < p.m:
        edges += START_SECONDS + p.k * p.n * p.dtype.itemsize / (0.8 * machine.bandwidth)
    if cols < p.n:
        edges += START_SECONDS + p.m * p.k * p.dtype.itemsize / (0.8 * machine.bandwidth)
    tiles = -(-rows // tile.rows) * -(-cols // tile.cols) * p.members
    idle = -tiles % units if resident == 1 and tiles > units else 0  # beside the last tiles
    in_pieces = _in_pieces(p, machine, tile, words, tiles, area / rate)
    best: tuple[int, tuple[str, ...], Tail | None] | None = None
    least = math.inf
    for packs, packing, slower in _packings(p, machine, way):
        for pieces, whole_wave, turns, reading, after in in_pieces:
            wave = whole_wave * slower
            hidden = min(edges - START_SECONDS, IDLE_READING * idle / units * wave)
            expected = packing + max(turns * wave, reading) + after + edges - hidden
            if expected < least:
                least, best = expected, (pieces, packs, None)
            if idle and pieces == 1 and _may_have_a_tail(p):
                tail, saved = _tail(words, tile, machine, tiles % units, wave, p.result.itemsize)
                saved *= FULL_POWER if way.slots <= 1 else 1.0
                if saved > max(hidden, 0.01 * expected) and expected + hidden - saved < least:
                    least, best = expected + hidden - saved, (1, packs, tail)
    assert best is not None
    pieces, packs, tail_of_best = best
    return Choice(way, tile, pieces, rows, cols, least, packs, tail_of_best)


def _in_pieces(
    p: Problem, machine: Machine, tile: PlainTile, words: int, tiles: int, step: float
) -> list[tuple[int, float, float, float, float]]:
    """(pieces of k, seconds of a wave, turns of a multiprocessor, seconds of reading, of what comes after)."""
    units, resident, depth = machine.units, tile.resident, tile.depth
    slots, phases = units * resident, -(-words // depth)
    memory = p.least_bytes / (READING * machine.bandwidth)
    plane_seconds = 2 * p.m * p.n * p.algebra.partial.itemsize * p.members / machine.bandwidth
    made = []
    for pieces in _pieces(words, tile, slots, tiles):
        each = max(1, -(-phases // pieces)) * depth  # words of k, whole phases
        full, rest = divmod(tiles * pieces, slots)
        # a multiprocessor with one block of two is not half as fast, and no block runs at the whole rate alone
        turns = full * resident + (max(-(-rest // units), ALONE * resident) if rest else 0)
        reading = memory * (1.1 - 0.1 * min(1.0, tiles * pieces / slots))  # few blocks read slower
        apart = p.members * COMBINE_SECONDS + (p.members - 1) * START_SECONDS  # every member has planes of its own
        after = apart + pieces * plane_seconds if pieces > 1 else 0.0
        made.append((pieces, step * (words if words < each else each), turns, reading, after))
    return made


def _may_have_a_tail(p: Problem) -> bool:
    """Planes of the last tiles hold what P holds."""
    return p.members == 1 and p.k > 0 and not p.accumulate and not p.return_arg and p.algebra.partial == p.result


def _tail(words: int, tile: PlainTile, machine: Machine, tiles: int, wave: float, itemsize: int) -> tuple[Tail, float]:
    """The best cut of the last `tiles`, which take `wave` seconds whole, and the seconds it saves."""
    phases, idle = math.ceil(words / tile.depth), machine.units - tiles
    made: list[tuple[float, Tail]] = []
    for others in range(1, TAIL_PIECES):
        rounds = math.ceil(tiles * others / idle)  # of pieces on a multiprocessor without a first one
        first = math.ceil(phases * rounds / (rounds + others))
        each = max(1, math.ceil((phases - first) / others))
        pieces = 1 + math.ceil((phases - first) / each)
        planes = (2 * pieces + 1) * tiles * tile.rows * tile.cols * itemsize / machine.bandwidth
        longest = max(first, rounds * each) / phases * wave + rounds * PIECE_SECONDS
        made.append(
            (wave - longest - planes - COMBINE_SECONDS, Tail(tiles, pieces, first * tile.depth, each * tile.depth))
        )
    saved, tail = max(made, key=lambda one: one[0])
    return tail, saved


@lru_cache(maxsize=64)
def _packings(p: Problem, machine: Machine, way: Way) -> list[tuple[tuple[str, ...], float, float]]:
    """(operands packed, seconds that takes, by how much the rest slows the kernel down): what must be packed always is,
    and what is turned or copied in small pieces may be."""
    made: list[tuple[tuple[str, ...], float, float]] = [((), 0.0, 1.0)]
    for side, layout, rows, cols, dtype in (
        ("M", p.layout_m, p.m, p.k, p.dtype_m),
        ("N", p.layout_n, p.k, p.n, p.dtype_n),
    ):
        nbytes = p.members * (rows * cols * dtype.itemsize + rows * cols * way.word_bytes // way.per_word)
        packed = (side, PACK_SECONDS + nbytes / (PACKING * machine.bandwidth), 1.0)
        ways = [packed]
        lies = source_of_words(layout, rows, cols, dtype, p.dtype, way)
        if lies is not None:
            along_k = lies[0] == (side == "N")
            small = line_alignment(layout, rows, cols, way.word_bytes) < 16
            ways = [("", 0.0, TURNED if along_k else SMALL if small else 1.0)]
            if (along_k or small) and nbytes <= PACK_LIMIT:
                ways.append(packed)
        made = [
            ((*names, name) if name else names, seconds + more, slower * times)
            for names, seconds, slower in made
            for name, more, times in ways
        ]
    return made


def tiled_part(p: Problem, machine: Machine, tile: PlainTile, way: Way) -> tuple[int, int]:
    """The rows and columns of P that tiles make: without a rest so thin that tiles for it would be nearly empty, where
    a kernel for few can make it; not in stacks, where that would be a launch for each member."""
    if p.members > 1 or way.name == "bits":  # where a word holds 32 of k, and the kernels for few read byte by byte
        return p.m, p.n
    rows, cols = _without_thin(p.m, tile.rows), _without_thin(p.n, tile.cols)
    if rows < p.m and few_tile(p, machine, False, p.m - rows, p.dtype.itemsize) is None:
        rows = p.m
    if cols < p.n and few_tile(p, machine, True, p.n - cols, p.dtype.itemsize) is None:
        cols = p.n
    return rows, cols


def _without_thin(extent: int, side: int) -> int:
    rest = extent % side
    return extent - rest if extent >= THIN_FROM and 0 < rest <= FEW else extent


def _pieces(words: int, tile: PlainTile, slots: int, tiles: int) -> list[int]:
    """In how many pieces k may come: more than one only where tiles do not fill the card, and then few waves of them,
    so that planes of sums stay small."""
    phases = max(1, math.ceil(words / tile.depth))
    made = [1]
    if not tiles:
        return made  # an empty P
    while tiles < slots and tiles * made[-1] * 2 <= 2 * slots and made[-1] * 2 <= min(MAX_PIECES, phases // 4):
        made.append(made[-1] * 2)
    if made[-1] > 1 and slots // tiles <= made[-1]:
        made.append(slots // tiles)  # one wave
    return made


def source_of_words(
    layout: Layout, rows: int, cols: int, dtype: DType, wanted: DType, way: Way
) -> tuple[bool, int] | None:
    """(lines run along columns of the matrix, lead) where the operand can be copied as it lies, else None."""
    if way.packs or dtype != wanted or layout.alignment < min(way.word_bytes, 16):
        return None
    return long_lines(layout, rows, cols)
