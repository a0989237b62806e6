"""Stacks whose lines start anywhere, brought by bulk copies, as the planner sees them: tiles, stages, their time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import ceil
from typing import NamedTuple

from tilewise.algebra.builtin import is_plus_times
from tilewise.kernels.bulk_lines.seconds import HALVES, TF32, Figures, Work, expected, rounds
from tilewise.kernels.shared.layouts import along_k, contiguous_lines, line_alignment
from tilewise.machine import Machine
from tilewise.plans import Geometry
from tilewise.problem import Problem

KERNEL = "bulk_lines"
IDEA = "bulk copies bring lines that start anywhere, as they lie, tensor cores' fragments are read from them: stacks"
MOST_STAGES = 16
SHARED_BYTES = 227 * 1024  # of a multiprocessor, and 1,024 less for every block
PIECE = 4096  # bytes of a copy, at most
ROUNDING = 30  # bytes that a copy brings beside its line
SLACK = 80  # bytes behind lines that fragments are read from: of a line's start and of the last words
DEPTHS = (512, 256, 128, 64, 32)
WHOLE = 1.25  # bytes between two lines, of those of a line, up to which lines are brought with what lies between them
MOST_CONFLICTS = 4
MOST_WHOLE = 2048  # of k in one stage
ODD = 2.0  # times as long sums take that leave row by row, element by element


class BulkTile(NamedTuple):
    """A block makes rows × cols of P by warps_m × warps_n warps, and others bring lines; up to `resident` blocks share
    a multiprocessor."""

    rows: int
    cols: int
    warps_m: int
    warps_n: int
    producers: int  # warps that bring lines
    resident: int

    @property
    def threads(self) -> int:
        return 32 * (self.warps_m * self.warps_n + self.producers)


TILES = (
    BulkTile(128, 64, 4, 2, 2, 2),
    BulkTile(64, 128, 2, 4, 2, 2),
    BulkTile(64, 64, 2, 2, 1, 3),
    BulkTile(128, 32, 4, 1, 1, 3),
    BulkTile(32, 128, 1, 4, 4, 2),
    BulkTile(64, 32, 2, 1, 2, 4),
    BulkTile(32, 32, 1, 1, 1, 8),
)


class BulkWay(NamedTuple):
    """`depth` of k a stage, as many stages as fit beside those of `resident` blocks."""

    tile: BulkTile
    depth: int
    resident: int

    def spec(self) -> str:
        t = self.tile
        return f"{t.rows}x{t.cols}w{t.warps_m}x{t.warps_n}p{t.producers} k{self.depth} r{self.resident}"


class Memory(NamedTuple):
    """What a block's shared memory holds, in bytes."""

    pitch_m: int
    pitch_n: int
    region_m: int
    stage: int
    staged: int  # of a warp's sums
    stages: int
    total: int


class Cores(NamedTuple):
    """What multiplies: its bytes of an element, k of one of its products, and how its warps read lines."""

    size: int
    step: int
    words: bool  # lines start on 4 bytes


def cores_of(p: Problem) -> Cores:
    size = p.dtype.itemsize
    return Cores(2, 16, even(p)) if size == 2 else Cores(4, 8, True)


def even(p: Problem) -> bool:
    """Whether every line of both operands starts on 4 bytes."""
    sides = (p.layout_m, p.m, p.k), (p.layout_n, p.k, p.n)
    return all(line_alignment(*side, p.dtype.itemsize) >= 4 for side in sides)


@lru_cache(maxsize=4096)
def pitch_of(lead: int, length: int, along: bool, cores: Cores) -> int:
    """Bytes from line to line in a stage, for lines of `length` bytes that lie `lead` apart: as in memory where that
    is not much more and its banks are not all the same ones, else as far as their copies need."""
    if length <= lead <= WHOLE * length + 16 and _conflicts(lead, along, cores) <= MOST_CONFLICTS:
        return lead
    least = length + ROUNDING
    first = least + (lead - least) % 16
    return min((_conflicts(first + more, along, cores), first + more) for more in range(0, 128, 16))[1]


def _conflicts(pitch: int, along: bool, cores: Cores) -> int:
    return _of_one_bank(128 + pitch % 128, along, cores)  # banks repeat


@lru_cache(maxsize=1024)
def _of_one_bank(pitch: int, along: bool, cores: Cores) -> int:
    """How many words of one bank a warp reads at a time."""
    found: dict[int, set[int]] = {}
    for lane in range(32):
        g, t = lane // 4, lane % 4
        k = 2 * t if cores.words else 4 * t
        word = (g * pitch + k * cores.size if along else k * pitch + 4 * g) // 4
        found.setdefault(word % 32, set()).add(word)
    return max(map(len, found.values()))


class Given(NamedTuple):
    """What all ways of a problem share: extents, how lines of M and of N lie, and how many bytes they are apart."""

    members: int
    m: int
    k: int
    n: int
    cores: Cores
    m_along: bool
    n_along: bool
    lead_m: int
    lead_n: int
    odd_p: bool  # rows of P start on no 4 bytes
    least: int  # bytes of the operands and P


def given_of(p: Problem) -> Given:
    of_m, of_n = contiguous_lines(p.layout_m, p.m, p.k), contiguous_lines(p.layout_n, p.k, p.n)
    assert of_m
    assert of_n
    odd = line_alignment(p.layout_p, p.m, p.n, p.dtype.itemsize) < 4
    cores, along = cores_of(p), (along_k(p.layout_m, p.m, p.k, "M"), along_k(p.layout_n, p.k, p.n, "N"))
    return Given(
        p.members, p.m, p.k, p.n, cores, *along, of_m[2] * cores.size, of_n[2] * cores.size, odd, p.least_bytes
    )


class Stage(NamedTuple):
    """How lines of both operands lie in a stage, in bytes."""

    pitch_m: int
    pitch_n: int
    region_m: int
    bytes: int


def stage_of(g: Given, tile: BulkTile, depth: int) -> Stage:
    depth, size = min(depth, g.k), g.cores.size
    held = _rounded(depth, g.cores.step)
    pitch_m = pitch_of(g.lead_m, (depth if g.m_along else min(g.m, tile.rows)) * size, g.m_along, g.cores)
    pitch_n = pitch_of(g.lead_n, (depth if g.n_along else min(g.n, tile.cols)) * size, g.n_along, g.cores)
    of_m = tile.rows * pitch_m if g.m_along else held * pitch_m + tile.rows * size
    of_n = tile.cols * pitch_n if g.n_along else held * pitch_n + tile.cols * size
    region_m = _rounded(of_m + SLACK, 16)
    return Stage(pitch_m, pitch_n, region_m, region_m + _rounded(of_n + SLACK, 16))


def memory_of(g: Given, way: BulkWay, stage: Stage | None = None) -> Memory | None:
    """None where not even two stages fit."""
    tile, resident, size = way.tile, way.resident, g.cores.size
    stage = stage or stage_of(g, tile, way.depth)
    rows, cols = tile.rows // tile.warps_m, tile.cols // tile.warps_n
    staged = _rounded(rows * (cols * size + 32) + 32, 16)
    fixed = 128 + 16 * MOST_STAGES + staged * tile.warps_m * tile.warps_n
    room = SHARED_BYTES // resident - 1024 * (resident > 1) - fixed
    needed = max(2, -(-g.k // way.depth) * 4)  # of few tiles a block has no more
    stages = min(MOST_STAGES, needed, room // stage.bytes)
    return Memory(*stage, staged, stages, fixed + stages * stage.bytes) if stages > 1 else None


def rows_of_p(g: Given, tile: BulkTile, lead: int) -> tuple[int, int]:
    """Bytes between rows of P that lie `lead` elements apart, and of a warp's sums in its memory: the same where it
    has whole rows, or those beside it have the rest, and rows follow one another."""
    size, cols = g.cores.size, tile.cols // tile.warps_n
    lead = g.n if g.m == 1 else lead
    if lead == g.n <= tile.cols:
        return lead * size, lead * size
    pitch = cols * size + 16  # other banks for other rows
    return lead * size, pitch + 16 * (pitch == lead * size)


def _rounded(x: int, to: int) -> int:
    return -(-x // to) * to


def geometry(p: Problem, way: BulkWay) -> Geometry:
    memory = memory_of(given_of(p), way)
    assert memory is not None
    return Geometry((way.tile.threads, 1), way.tile.rows, way.tile.cols, min(way.depth, p.k), memory.total)


def refusal(problem: Problem, machine: Machine) -> str | None:
    """Why it does not take this problem, or None when it does."""
    p = problem
    if not machine.arch.startswith("sm_90"):
        return f"kernel={KERNEL!r} is made for Hopper (sm_90), and this is {machine.arch or 'no card'}"
    halves = p.dtype.name in ("bfloat16", "float16")
    if not (halves or p.dtype.name == "float32") or not p.dtype_m == p.dtype_n == p.dtype == p.result:
        return f"kernel={KERNEL!r} multiplies bfloat16, float16 and tf32, not {p.dtype_m} by {p.dtype_n}"
    if not halves and p.precision != "tf32":
        return f"kernel={KERNEL!r} multiplies float32 as precision='tf32' alone"
    if not is_plus_times(p.semiring):
        return f"kernel={KERNEL!r} knows plus_times alone, not {p.semiring}"
    if p.accumulate or p.epilogue or p.unrounded or p.scaled or p.groups:
        return f"kernel={KERNEL!r} stores rounded sums of stacks as they are: no accumulate, no epilogue, no groups"
    sides = ("M", p.layout_m, p.m, p.k), ("N", p.layout_n, p.k, p.n)
    for name, layout, rows, cols in sides:
        if contiguous_lines(layout, rows, cols) is None:
            return f"kernel={KERNEL!r} takes operands whose rows or columns lie side by side, and {name}'s do not"
    if min(p.m, p.k, p.n) < 1:
        return f"kernel={KERNEL!r} adds products up, and there are none in {p.shape}"
    return None


def tiles_of(g: Given, tile: BulkTile) -> tuple[int, int]:
    return max(1, -(-g.m // tile.rows)), max(1, -(-g.n // tile.cols))


def ways(p: Problem) -> list[BulkWay]:
    return [way for way, _ in _fitting(given_of(p))]


def _fitting(g: Given) -> Iterator[tuple[BulkWay, Memory]]:
    """Every way that is worth a thought: of a tile and its blocks on a multiprocessor, the deepest stages of which two
    fit. (The soonest way of any depth took 0.1 % less in the mean of 252 stacks.)"""
    whole = _rounded(g.k, g.cores.step)
    depths = [whole] * (whole <= MOST_WHOLE) + [depth for depth in DEPTHS if depth < whole]
    for tile in TILES:
        if (tile.rows > 32 and g.m <= tile.rows // 4) or (tile.cols > 32 and g.n <= tile.cols // 4):
            continue
        fewer = dict.fromkeys((1, -(-tile.resident // 2), tile.resident))
        at, stage = 0, stage_of(g, tile, depths[0])
        for resident in fewer:  # more blocks leave each less memory
            memory = memory_of(g, BulkWay(tile, depths[at], resident), stage)
            while memory is None and at + 1 < len(depths):
                at += 1
                stage = stage_of(g, tile, depths[at])
                memory = memory_of(g, BulkWay(tile, depths[at], resident), stage)
            if memory is not None:
                yield BulkWay(tile, depths[at], resident), memory


def work_of(g: Given, way: BulkWay, memory: Memory, units: int) -> Work:
    tile, cores, (down, across), k = way.tile, g.cores, tiles_of(g, way.tile), g.k
    items, size, chunks = g.members * down * across, cores.size, -(-k // way.depth)
    rows, cols = tile.rows // tile.warps_m, tile.cols // tile.warps_n
    height, width = g.m / down, g.n / across
    warps = min(tile.warps_m, ceil(height / rows)) * min(tile.warps_n, ceil(width / cols))
    pieces = 0.0
    if memory.pitch_m != g.lead_m:
        pieces += height * k * size / 16 + (height * chunks if g.m_along else k)
    if memory.pitch_n != g.lead_n:
        pieces += width * k * size / 16 + (width * chunks if g.n_along else k)
    of_m, of_n = (1.0, 1.0) if cores.words else (1.5 if g.m_along else 2.0, 1.5 if g.n_along else 2.0)
    words, products = rows / 4 * of_m + cols / 4 * of_n, rows * cols / 128
    cells = rows * cols / 32 * (ODD if g.odd_p and g.n > tile.cols else 1.0)
    return Work(
        rounds(items, units * way.resident), rounds(items, units), chunks, -(-k // cores.step), words, products,
        cells, warps, ((height + width) * k + height * width) * size, pieces, tile.producers, g.least,
    )  # fmt: skip


def seconds(way: BulkWay, p: Problem, machine: Machine) -> float:
    given = given_of(p)
    memory = memory_of(given, way)
    assert memory is not None
    return expected(work_of(given, way, memory, machine.units), _figures(p))


def best_way(p: Problem, machine: Machine) -> tuple[float, BulkWay]:
    given, figures, best = given_of(p), _figures(p), list[tuple[float, int, BulkWay]]()
    for number, (way, memory) in enumerate(_fitting(given)):
        best.append((expected(work_of(given, way, memory, machine.units), figures), number, way))
    return min(best)[::2]


def _figures(p: Problem) -> Figures:
    return HALVES if p.dtype.itemsize == 2 else TF32


def least_seconds(p: Problem, machine: Machine) -> float:
    """What no way goes below."""
    f = _figures(p)
    return f.start + max(f.item + f.chunk, f.memory * p.least_bytes)
