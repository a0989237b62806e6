"""Cost model of `k_major` and `k_across`: tf32 and 8-bit elements on Hopper's tensor cores.

wgmma takes them only contiguous along k. Operands in that layout, aligned to 16 bytes, are used as they are; others are
transposed first (`transforms/transpose.cu`). `k_major.cu` is the product. A tf32 N that is contiguous across k may also
be loaded to registers (`k_across.cu`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry
from tilewise.core.problem import Layout, Problem
from tilewise.kernels.capabilities import Condition
from tilewise.kernels.coefficients import coefficients
from tilewise.kernels.family import Searched
from tilewise.kernels.shared.residency import UNIT_SHARED, parts_of
from tilewise.kernels.shared.triangle import tiles_in_classes, upper_tiles
from tilewise.kernels.wgmma_gemm.k_major.seconds import (
    ACROSS,
    AS_IT_IS,
    BOXED_SHARE,
    BY_CLASSES,
    CLASSES,
    CUT,
    EXPECTED,
    FEWEST_STAGES,
    IN_CLASSES,
    LINE_BYTES,
    OVER,
    SHARPNESS,
    SYMMETRIC,
    TRANSPOSED,
    WHOLE,
    figures_of,
    is_whole,
    whole_m,
    whole_n,
)
from tilewise.system.machine_code import Rows

KERNEL = "k_major"
IDEA = "tiles with k side by side stream in by the copy engine, warpgroups multiply them on tensor cores"
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
    return AS_IT_IS if is_whole(line_stride, k_stride, lines, k, alignment, size) else TRANSPOSED


def routes(problem: Problem) -> tuple[str, str]:
    p, size = problem, problem.dtype_m.itemsize
    return AS_IT_IS if whole_m(p, size) else TRANSPOSED, AS_IT_IS if whole_n(p, size) else TRANSPOSED


def lines_apart(layout_n: Layout) -> bool:
    """Whether rows of N have different misalignments from 16 bytes."""
    return layout_n.row % CLASSES != 0


def paired(layout: Layout, m: int, n: int, alignment: int, size: int) -> bool:
    """Whether two 2-byte elements of P can be stored as a word."""
    lead = layout.leading_dimension(m, n)
    return size == 2 and alignment >= 4 and lead is not None and (lead % 2 == 0 or m == 1)


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


def searched(problem: Problem, machine: Machine) -> list[Searched]:
    figures = figures_of(problem, machine)

    def config(forms: tuple[tuple[KMajorTile, int], ...]) -> Callable[[int, Problem], KMajorConfig]:
        return lambda number, p: config_of(*forms[number], p, machine.units)

    mirrored = problem.symmetric and problem.reproducible is None and figures.cuts
    every = (FORMS, UPPER) if mirrored else (FORMS,)
    return [Searched(EXPECTED, _table(_kind(problem), machine, forms), figures, config(forms)) for forms in every]


def config_of(tile: KMajorTile, form: int, p: Problem, units: int) -> KMajorConfig:
    """The configuration of a row."""
    how = routes(p)
    if form == SYMMETRIC:
        return KMajorConfig(tile, how, symmetric=True)
    if form == CUT:
        stages, tiles = -(-p.k * p.dtype_m.itemsize // LINE_BYTES), KMajorConfig(tile, how).tiles(p.m, p.n)
        return KMajorConfig(tile, how, parts_of(tiles * tile.cluster, units, stages // FEWEST_STAGES))
    return KMajorConfig(tile, (how, (how[0], ACROSS), (BY_CLASSES, ACROSS))[max(0, form - CUT)])


Both = tuple[float, float]


@lru_cache(maxsize=512)
def _limits(tile: KMajorTile, kind: Kind, machine: Machine) -> Both:
    """Fourth powers of what the tensor cores need for a stage, and L2 for its bytes when all multiprocessors ask."""
    f = coefficients(f"k_major {kind.size}")
    rate = machine.tensor_rate("bfloat16") * kind.rate / machine.units * f.share
    cores = tile.rows * tile.cols * (LINE_BYTES // kind.size) / rate
    return cores**SHARPNESS, (sum(tile.fetched) * LINE_BYTES / f.unit) ** SHARPNESS
