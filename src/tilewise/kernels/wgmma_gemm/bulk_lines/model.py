"""`bulk_lines` for the planner: tiles, and the layout of stages in shared memory."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from tilewise.core.plan import Geometry
from tilewise.core.problem import Problem
from tilewise.kernels.shared.layouts import along_k, contiguous_lines, line_alignment
from tilewise.kernels.shared.residency import UNIT_SHARED
from tilewise.system.machine_code import Row

KERNEL = "bulk_lines"
IDEA = (
    "unaligned operands are copied in bulk, unchanged, to shared memory, and fragments for tensor cores read from them"
)
MOST_STAGES = 16
PIECE = 4096  # bytes of a copy, at most
ROUNDING = 30  # bytes that a copy adds to its line
SLACK = 80  # bytes behind lines that fragments are read from: of a line's start and of the last words
WHOLE = 1.25  # stride of lines relative to their length up to which the gaps between them are copied, too
MOST_CONFLICTS = 4
WARP = 32  # rows and columns of a warp's part of a tile
CUT_STEP = 16  # of k, of which a part has a multiple


class BulkTile(NamedTuple):
    """A block makes rows × cols of P, WARP × WARP a warp, and other warps bring lines; up to `resident` blocks share a
    multiprocessor."""

    rows: int
    cols: int
    producers: int  # warps that bring lines
    resident: int

    @property
    def warps(self) -> int:
        """Those that multiply."""
        return self.rows // WARP * (self.cols // WARP)

    @property
    def threads(self) -> int:
        return 32 * (self.warps + self.producers)


TILES = (
    BulkTile(128, 64, 2, 2),
    BulkTile(64, 128, 2, 2),
    BulkTile(64, 64, 1, 3),
    BulkTile(128, 32, 1, 3),
    BulkTile(32, 128, 4, 2),
    BulkTile(64, 32, 2, 4),
    BulkTile(32, 32, 1, 8),
)


class BulkConfig(NamedTuple):
    """`depth` of k a stage, as many stages as fit beside those of `resident` blocks; k over the blocks of a cluster."""

    tile: BulkTile
    depth: int
    resident: int
    cluster: int = 1

    def spec(self) -> str:
        t, cut = self.tile, f" k/{self.cluster}" if self.cluster > 1 else ""
        return f"{t.rows}x{t.cols}w{t.rows // WARP}x{t.cols // WARP}p{t.producers} k{self.depth} r{self.resident}{cut}"


class Memory(NamedTuple):
    """A block's shared memory, in bytes."""

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
    return Cores(2, 16, is_even(p)) if size == 2 else Cores(4, 8, True)


def is_even(p: Problem) -> bool:
    """Whether every line of both operands is aligned to 4 bytes."""
    sides = (p.layout_m, p.m, p.k), (p.layout_n, p.k, p.n)
    return all(line_alignment(*side, p.dtype.itemsize) >= 4 for side in sides)


def pitch_of(lead: int, length: int, near: float, more: Row, at: int) -> int:
    """Bytes from row to row in a stage, of rows of `length` bytes that lie `lead` apart: as in memory where that is not
    much more and `near` (its banks are not all the same ones), else as far as their copies need and `more` from `at` on
    says (`further`)."""
    if near > 0.0 and length <= lead and lead <= WHOLE * length + 16:
        return lead
    least = length + ROUNDING
    first = least + (lead - least) % 16
    return first + int(more[at + first % 128 // 16])


def region_of(rows: int, size: int, along: int, pitch: int, held: int) -> int:
    """Bytes of a stage's rows of one operand; `held`: k of a stage."""
    nbytes = rows * pitch if along else held * pitch + rows * size
    return -(-(nbytes + SLACK) // 16) * 16


@lru_cache(maxsize=1024)
def growth(pitch: int, along: bool, cores: Cores) -> int:
    """What a pitch of so many bytes over 128 grows by, in steps of 16, until a warp reads from the most banks."""
    found = of_one_bank(along, cores)
    return min((found[(pitch + more) % 128 // cores.size], more) for more in range(0, 128, 16))[1]


@lru_cache(maxsize=8)
def of_one_bank(along: bool, cores: Cores) -> tuple[int, ...]:
    """How many words of one bank a warp reads at a time, by the elements of a pitch over 128 bytes."""
    made, step = list[int](), 2 if cores.words else 4
    for pitch in range(0, 128, cores.size):
        apart, counts = 128 + pitch, [0] * 32
        of_row, of_k = (apart, step * cores.size) if along else (4, step * apart)
        for word in {(row * of_row + k * of_k) // 4 for row in range(8) for k in range(4)}:
            counts[word % 32] += 1
        made.append(max(counts))
    return tuple(made)


class Given(NamedTuple):
    """What all configurations of a problem share: extents, contiguity, and strides in bytes."""

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


def share_of(k: int, parts: int) -> int:
    """Of k that each of so many blocks has: lines of all of them start as far behind a boundary."""
    part = -(-k // parts)
    return k if parts == 1 else -(-part // CUT_STEP) * CUT_STEP


def cut_over(g: Given, parts: int) -> Given:
    """The same of a block of a cluster."""
    return g if parts == 1 else g._replace(k=share_of(g.k, parts))


class Stage(NamedTuple):
    """The layout of a stage, in bytes."""

    pitch_m: int
    pitch_n: int
    region_m: int
    bytes: int


def stage_of(g: Given, tile: BulkTile, depth: int) -> Stage:
    depth, size, made = min(depth, g.k), g.cores.size, list[tuple[int, int]]()
    held = _rounded(depth, g.cores.step)
    for lead, along, rows, extent in ((g.lead_m, g.m_along, tile.rows, g.m), (g.lead_n, g.n_along, tile.cols, g.n)):
        length = (depth if along else min(extent, rows)) * size
        pitch = pitch_of(lead, length, near(lead, along, g.cores), further(lead % 16, along, g.cores), 0)
        made.append((pitch, region_of(rows, size, along, pitch, held)))
    (pitch_m, region_m), (pitch_n, region_n) = made
    return Stage(pitch_m, pitch_n, region_m, region_m + region_n)


def near(lead: int, along: bool, cores: Cores) -> bool:
    return of_one_bank(along, cores)[lead % 128 // cores.size] <= MOST_CONFLICTS


@lru_cache(maxsize=256)
def room_of(tile: BulkTile, resident: int, size: int) -> tuple[int, int, int]:
    """Bytes of a block's shared memory that are no stage's, that stages may have, and of a warp's sums."""
    staged = _rounded(WARP * (WARP * size + 32) + 32, 16)
    fixed = 128 + 16 * MOST_STAGES + staged * tile.warps
    return fixed, UNIT_SHARED // resident - 1024 * (resident > 1) - fixed, staged


def memory_of(g: Given, config: BulkConfig) -> Memory | None:
    """None where not even two stages fit."""
    tile = config.tile
    stage = stage_of(g, tile, config.depth)
    fixed, room, staged = room_of(tile, config.resident, g.cores.size)
    needed = max(2, -(-g.k // config.depth) * 4)  # of few tiles a block has no more
    stages = min(MOST_STAGES, needed, room // stage.bytes)
    held = tile.rows * (tile.cols + 4) * 4 if config.cluster > 1 else 0  # sums, where the stages were
    if stages < 2 or held > room:
        return None
    return Memory(*stage, staged, stages, fixed + max(held, stages * stage.bytes))


def rows_of_p(g: Given, tile: BulkTile, lead: int) -> tuple[int, int]:
    """Bytes between rows of P that lie `lead` elements apart, and of a warp's sums in its memory: the same where it
    has whole rows, or those beside it have the rest, and rows follow one another."""
    size = g.cores.size
    lead = g.n if g.m == 1 else lead
    if lead == g.n <= tile.cols:
        return lead * size, lead * size
    pitch = WARP * size + 16  # other banks for other rows
    return lead * size, pitch + 16 * (pitch == lead * size)


def _rounded(x: int, to: int) -> int:
    return -(-x // to) * to


def geometry(p: Problem, config: BulkConfig) -> Geometry:
    memory = memory_of(cut_over(given_of(p), config.cluster), config)
    assert memory is not None
    return Geometry((config.tile.threads, 1), config.tile.rows, config.tile.cols, min(config.depth, p.k), memory.total)


def tiles_of(g: Given, tile: BulkTile) -> tuple[int, int]:
    return max(1, -(-g.m // tile.rows)), max(1, -(-g.n // tile.cols))


@lru_cache(maxsize=512)
def further(lead: int, along: bool, cores: Cores) -> tuple[int, ...]:
    """What pitches of `lead` and 0, 16, … 112 bytes more, over 128, grow by."""
    return tuple(growth((lead + 16 * more) % 128, along, cores) for more in range(8))
