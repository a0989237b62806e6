"""Cost model of `k_major` and `k_across`: tf32 and 8-bit elements on Hopper's tensor cores.

wgmma takes them only contiguous along k. Operands in that layout, aligned to 16 bytes, are used as they are; others are
transposed first (`transforms/transpose.cu`). `k_major.cu` is the product. A tf32 N that is contiguous across k may also
be loaded to registers (`k_across.cu`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry
from tilewise.core.problem import Layout, Problem
from tilewise.kernels.by_configs import Table
from tilewise.kernels.capabilities import Condition
from tilewise.kernels.coefficients import coefficients
from tilewise.kernels.shared.residency import UNIT_SHARED, parts_of
from tilewise.kernels.shared.triangle import tiles_in_classes, upper_tiles
from tilewise.kernels.wgmma_gemm.k_major.seconds import (
    ACROSS,
    AS_IT_IS,
    BOXED_SHARE,
    BY_CLASSES,
    CLASSES,
    CUT,
    FEWEST_STAGES,
    IN_CLASSES,
    OVER,
    SHARPNESS,
    SYMMETRIC,
    TRANSPOSED,
    WHOLE,
    expected,
)
from tilewise.system.machine_code import Row, Rows

KERNEL = "k_major"
IDEA = "tiles with k side by side stream in by the copy engine, warpgroups multiply them on tensor cores"
LINE_BYTES = 128  # of k in a stage
BOX_BYTES = 64 * LINE_BYTES  # of P: 64 rows


@dataclass(frozen=True)
class Kind:
    """An element as wgmma has it: bytes, its name in PTX, the C type of its sums, the rate by the halves', and whether
    sums leave the tensor cores every stage or two."""

    size: int
    ptx: str
    sum: str
    rate: float
    promoted: bool = False


KINDS = {
    "float32": Kind(4, "tf32", "float", 0.5),
    "int8": Kind(1, "s8", "int", 2.0),
    "uint8": Kind(1, "u8", "int", 2.0),
    "float8_e4m3fn": Kind(1, "e4m3", "float", 2.0, True),
    "float8_e5m2": Kind(1, "e5m2", "float", 2.0, True),
}
RESULTS = {"tf32": ("float32",), "int": ("int8", "uint8", "int32"), "float": ("float32", "bfloat16", "float16")}


def _multiplies(p: Problem) -> bool:
    kind = kind_of(p)
    if kind is None or (kind.size == 4 and p.precision != "tf32"):
        return False
    return p.result.name in RESULTS["tf32" if kind.size == 4 else kind.sum]


KIND = Condition(_multiplies, "multiplies float32 with precision='tf32', and 8-bit integers and floats")


@dataclass(frozen=True)
class KMajorTile:
    """A tile of P; `cluster` blocks with tiles above one another bring their common tile of N together, or `beside` one
    another that of M."""

    cols: int
    cluster: int = 1
    beside: bool = False
    rows: int = 128

    @property
    def fetched(self) -> tuple[int, int]:
        """Lines of M and of N that each block brings."""
        shares = (self.cluster, 1) if self.beside else (1, self.cluster)
        return self.rows // shares[0], self.cols // shares[1]

    @property
    def together(self) -> tuple[int, int]:
        """Rows and columns of a cluster's tiles."""
        return (self.rows, self.cols * self.cluster) if self.beside else (self.rows * self.cluster, self.cols)

    @property
    def boxes(self) -> int:
        """Of P that a warpgroup stages at a time: all of a narrow tile's where they are of 2-byte elements."""
        return 3 if self.cols <= 192 else 2

    @property
    def _staging_bytes(self) -> int:
        return self.rows // 64 * self.boxes * BOX_BYTES  # storing rows needs less

    @property
    def stages(self) -> int:
        return min(6, (UNIT_SHARED - 1024 - self._staging_bytes) // (self._stage_bytes + 16))

    @property
    def _stage_bytes(self) -> int:
        return LINE_BYTES * (self.rows + self.cols)

    @property
    def shared_bytes(self) -> int:
        return 1024 + self.stages * (self._stage_bytes + 16) + self._staging_bytes

    def takes(self, kind: Kind) -> bool:
        """Whether wgmma has this width for such sums, and registers have room for them."""
        return (kind.sum != "int" or self.cols % 16 == 0) and (not kind.promoted or self.cols <= ROOM)

    def geometry(self, size: int) -> Geometry:
        depth = LINE_BYTES // size
        return Geometry((128 * (self.rows // 64 + 1), 1), self.rows, self.cols, depth, self.shared_bytes)


@dataclass(frozen=True)
class AcrossTile(KMajorTile):
    """A tile of P for an N that goes to the tensor cores from registers: sums are transposed, so it may be tall."""

    cols: int = 128

    @property
    def _staging_bytes(self) -> int:
        return 2 * 16 * self.cols * 4  # twice 16 rows

    @property
    def _stage_bytes(self) -> int:
        return LINE_BYTES * self.rows + 17 * 1024  # lines of N have a little to spare

    def takes(self, kind: Kind) -> bool:
        return kind.size == 4

    def geometry(self, size: int) -> Geometry:
        return Geometry((128 * (self.cols // 64 + 1), 1), self.rows, self.cols, LINE_BYTES // size, self.shared_bytes)


ROOM = 192  # columns of a tile whose sums are kept twice
TILES = (
    *(KMajorTile(cols) for cols in (256, 192, 160, 128, 64)),
    *(KMajorTile(cols, 2) for cols in (256, 224, 192, 176, 160, 128, 64)),
    *(KMajorTile(cols, 2, beside=True) for cols in (256, 208, 176)),
)


ACROSS_TILES = (
    *(AcrossTile(rows=rows, cluster=2, beside=True) for rows in (256, 240, 224)),
    AcrossTile(rows=208, cluster=2),
    AcrossTile(rows=64),
)


@dataclass(frozen=True)
class KMajorConfig:
    """A configuration of k_major or k_across."""

    tile: KMajorTile
    routes: tuple[str, str]  # how M and N reach the kernel
    splits: int = 1  # parts that k is cut into
    symmetric: bool = False  # tiles on and above the diagonal, stored twice

    def notes(self) -> list[str]:
        """Notes of the plan."""
        transposed = [name for name, how in zip("MN", self.routes, strict=True) if how == TRANSPOSED]
        words = [f"{name} is transposed first, into rows contiguous along k" for name in transposed]
        if BY_CLASSES in self.routes:
            words.append("a tile takes rows of M of one alignment class (16 bytes)")
        if ACROSS in self.routes:
            words.append("N goes to the tensor cores from registers, contiguous across k")
        if self.tile.cluster > 1:
            lie, side = ("side by side", "M") if self.tile.beside else ("one above the other", "N")
            words.append(f"{self.tile.cluster} blocks, {lie}, share their tiles of {side}")
        if self.splits > 1:
            words.append(f"k is cut into {self.splits} parts, whose sums are added up in a fixed order")
        return words

    @property
    def in_order(self) -> bool:
        """Whether k is one chain of instructions, from its first element on."""
        return self.splits == 1 and BY_CLASSES not in self.routes

    def tiles(self, m: int, n: int) -> int:
        """Cluster tiles of P that are computed."""
        if self.symmetric:
            return upper_tiles(m, *self.tile.together)
        return tiles_in_classes(m, n, *self.tile.together, self.classes)

    @property
    def classes(self) -> int:
        """Of rows of M."""
        return CLASSES if self.routes[0] == BY_CLASSES else 1

    def blocks(self, m: int, n: int, units: int) -> int:
        """A persistent grid: no more blocks than the card holds at once."""
        return min(units // self.tile.cluster, self.tiles(m, n) * self.splits) * self.tile.cluster

    def waves(self, m: int, n: int, units: int) -> int:
        return math.ceil(self.tiles(m, n) * self.splits / (units // self.tile.cluster))


def kind_of(problem: Problem) -> Kind | None:
    """The kind of M's elements, if the kernel supports M's and N's dtypes."""
    m, n = KINDS.get(problem.dtype_m.name), KINDS.get(problem.dtype_n.name)
    return m if m and n and (m.size, m.sum) == (n.size, n.sum) else None


def route(line_stride: int, k_stride: int, lines: int, k: int, alignment: int, size: int) -> str:
    """The route of an operand: its lines are the rows of M, or the columns of N."""
    side_by_side = (k_stride == 1 or k <= 1) and (line_stride >= k or lines <= 1)
    whole = alignment >= 16 and (lines <= 1 or line_stride * size % 16 == 0)
    return AS_IT_IS if side_by_side and whole else TRANSPOSED


def routes(problem: Problem) -> tuple[str, str]:
    p, size = problem, problem.dtype_m.itemsize
    m, n = p.layout_m, p.layout_n
    made = route(m.row, m.col, p.m, p.k, m.alignment, size), route(n.col, n.row, p.n, p.k, n.alignment, size)
    odd = [math.gcd(*layout.stack) * size % 16 for layout in (m, n)]  # of the steps from member to member
    return TRANSPOSED if odd[0] else made[0], TRANSPOSED if odd[1] else made[1]


def from_registers(problem: Problem) -> bool:
    """Whether k_across takes N: 4-byte elements, contiguous across k."""
    p, n = problem, problem.layout_n
    return p.dtype_n.itemsize == 4 and p.k >= CLASSES and n.col == 1 and n.row >= p.n > 1


def by_classes(problem: Problem) -> bool:
    """Whether k_across can take unaligned rows of M by alignment classes."""
    p, m = problem, problem.layout_m
    return p.m >= CLASSES and m.col == 1 and m.row >= p.k


def lines_apart(layout_n: Layout) -> bool:
    """Whether rows of N have different misalignments from 16 bytes."""
    return layout_n.row % CLASSES != 0


def boxed(layout: Layout, m: int, n: int, alignment: int, size: int) -> bool:
    """Whether the TMA can store P: its rows begin and end at multiples of 16 bytes."""
    lead = layout.leading_dimension(m, n)
    extents = (n, *(() if m <= 1 else (lead or 1,)), *layout.stack)
    return size > 1 and lead is not None and alignment >= 16 and all(extent * size % 16 == 0 for extent in extents)


def paired(layout: Layout, m: int, n: int, alignment: int, size: int) -> bool:
    """Whether two 2-byte elements of P can be stored as a word."""
    lead = layout.leading_dimension(m, n)
    return size == 2 and alignment >= 4 and lead is not None and (lead % 2 == 0 or m == 1)


def tables(problem: Problem, machine: Machine) -> list[Table]:
    how = routes(problem)
    given = _given(problem, machine, how)
    made = [Table(expected, _table(_kind(problem), machine), given, lambda number: _config(FORMS[number], how, given))]
    if problem.symmetric and problem.reproducible is None and problem.dtype.name == "float32" and not problem.scaled:
        rows = _table(_kind(problem), machine, UPPER)
        made.append(Table(expected, rows, given, lambda number: _config(UPPER[number], how, given)))
    return made


def _kind(problem: Problem) -> Kind:
    kind = kind_of(problem)
    assert kind is not None
    return kind


FORMS: tuple[tuple[KMajorTile, int], ...] = (
    *((tile, form) for tile in TILES for form in (WHOLE, CUT)),
    *((tile, OVER) for tile in ACROSS_TILES),
    *((tile, IN_CLASSES) for tile in ACROSS_TILES if tile.beside),
)


UPPER = tuple((tile, SYMMETRIC) for tile in TILES if tile.cols % 64 == 0 and tile.cols != 224)  # in small squares


@lru_cache(maxsize=64)
def _table(kind: Kind, machine: Machine, forms: tuple[tuple[KMajorTile, int], ...] = FORMS) -> Rows:
    """Of each form: its cluster's rows and columns, limits of a stage, seconds of a tile by rows and by boxes, of a
    launch; clusters that the card holds, blocks of one, whether they lie side by side, the form, and whether it takes
    such elements."""
    f, rows = coefficients(f"k_major {kind.size}"), []
    for tile, form in forms:
        over = OVER <= form < SYMMETRIC
        ends = [x + y * (tile.rows if over else tile.cols) for x, y in (f.tile["rows"], f.tile["boxes"])]
        if over:
            more = f.across_tile[0] + f.across_tile[1] * tile.rows
            ends = [ends[0] + more * 1.0, ends[1] + more * BOXED_SHARE]
        start = f.start + (f.meet if tile.cluster > 1 else 0.0)
        counts = machine.units // tile.cluster, tile.cluster, tile.beside
        rows.append((*tile.together, *_limits(tile, kind, machine), *ends, start, *counts, form, tile.takes(kind)))
    return Rows(rows)


def _given(p: Problem, machine: Machine, how: tuple[str, str]) -> Row:
    """The numbers that all rows share."""
    m, k, n, size = p.m, p.k, p.n, p.dtype_m.itemsize
    f, over = coefficients(f"k_major {size}"), how[1] == TRANSPOSED and from_registers(p)
    in_classes = over and how[0] == TRANSPOSED and by_classes(p)
    lines = -(-(k if how[0] == TRANSPOSED else p.layout_m.row) * size // LINE_BYTES)
    return (
        m, n, -(-k * size // LINE_BYTES), machine.units, p.member_bytes / (machine.bandwidth * f.memory),
        _transposing(how, m, k, n, size), boxed(p.layout_p, m, n, p.layout_p.alignment, p.result.itemsize),
        p.dtype.name == "float32" and not p.scaled, f.gather, 8 * m * n / f.gathering,
        over + in_classes, lines % 2 == 0, _transposing((how[0], ACROSS), m, k, n, size), f.across[how[0]], size,
        4 * f.crowd, f.start, f.meet, f.classes, f.across[BY_CLASSES], m * n * f.gathered_cell, p.members,
    )  # fmt: skip


def _config(row: tuple[KMajorTile, int], how: tuple[str, str], given: Row) -> KMajorConfig:
    """The configuration of a row."""
    tile, form = row
    if form == SYMMETRIC:
        return KMajorConfig(tile, how, symmetric=True)
    if form == CUT:
        m, n, stages, units = map(int, given[:4])
        tiles = KMajorConfig(tile, how).tiles(m, n)
        return KMajorConfig(tile, how, parts_of(tiles * tile.cluster, units, stages // FEWEST_STAGES))
    return KMajorConfig(tile, (how, (how[0], ACROSS), (BY_CLASSES, ACROSS))[max(0, form - CUT)])


def _transposing(how: tuple[str, str], m: int, k: int, n: int, size: int) -> float:
    """Seconds of transposing operands first."""
    cells = (m * k if how[0] == TRANSPOSED else 0) + (k * n if how[1] == TRANSPOSED else 0)
    f = coefficients(f"k_major {size}")
    return f.turn + 2 * size * cells / f.turning if cells else 0.0


Both = tuple[float, float]


@lru_cache(maxsize=512)
def _limits(tile: KMajorTile, kind: Kind, machine: Machine) -> Both:
    """Fourth powers of what the tensor cores need for a stage, and L2 for its bytes when all multiprocessors ask."""
    f = coefficients(f"k_major {kind.size}")
    rate = machine.tensor_rate("bfloat16") * kind.rate / machine.units * f.share
    cores = tile.rows * tile.cols * (LINE_BYTES // kind.size) / rate
    return cores**SHARPNESS, (sum(tile.fetched) * LINE_BYTES / f.unit) ** SHARPNESS
