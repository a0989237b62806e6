"""The tensor-core kernel as the planner sees it: its tiles, what it takes, how operands reach it, and its model.

The copy engine wants rows that start on 16-byte boundaries. An operand whose rows do not is realigned into a workspace
first (`kernels/shared/realign.cu`); M can often be taken by classes of rows instead (`wgmma_half.cu`). One with holes
between its elements, or of another dtype, is packed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

from tilewise.algebra.builtin import SEMIRINGS
from tilewise.algebra.dtypes import DType
from tilewise.kernels.shared.layouts import (
    AS_IT_IS,
    BY_CLASSES,
    LONGEST_LINE,
    PACKED,
    REALIGNED,
    along_columns,
    contiguous_lines,
)
from tilewise.machine import Machine
from tilewise.plans import Geometry
from tilewise.problem import Layout, Problem
from tilewise.tuning import class_of

KERNEL = "wgmma_half"
IDEA = "tiles stream in by the copy engine, warpgroups multiply them on tensor cores"
DEPTH = 64  # k of a phase: 128 bytes of 2-byte elements, one row of the swizzled tile
SHARED_BYTES = 227 * 1024  # a Hopper block's
SPARE_BYTES = 16 + 3 * 32 * 4  # two more barriers, and the thin edges' shares
THIN = 1  # rows or columns beyond whole tiles that `thin_edges.cuh` makes in the background

FEW = (64, 512)  # more rows than this and no more than that: worth to be a tile's columns

CARRIED_WAVES = 2  # from so many on, other warps carry sums out

# The model's figures, measured on an H200 (docs/tensor-cores.md says how).
TENSOR_SHARE = 0.76  # of the peak at the highest clock, which the card cannot hold under this load
UNIT_BANDWIDTH = 76e9  # bytes a second that L2 gives each multiprocessor when all of them ask
SHARPNESS = 4  # how little two limits that are equally near hinder each other
LINE_SECONDS = 1.5e-9  # the copy engine's time for each 128-byte line it touches
CLASSES_SLOW = 1.04  # a phase with rows of M by classes: they lie far apart, and straddle lines;
CLASSES_SECONDS = 0.5e-6  # and their descriptors' way in
TILE_SECONDS = {
    "boxes": 0.4e-6,
    "turned": 0.6e-6,
    "rows": 1.2e-6,
    "carried": 0.6e-6,
    "partial": 0.4e-6,
}  # a tile's start and its stores, as far as nothing hides them
START_SECONDS = 3.5e-6  # the launch, the first tiles' way in, the last one's way out,
GROUP_SECONDS = 0.5e-6  # and each warpgroup's share in that, where it is all there is
HOT_SECONDS = 1e-3  # from here on the card lowers its clock: so much slower with each doubling, by the tile's area
HOT_SLOW = ((192 * 192, 0.005), (128 * 256, 0.03), (0, 0.045))
CLUSTER_SECONDS = 2.5e-6  # blocks of a cluster wait for one another
MEMORY_SHARE = 0.87  # of the memory's bandwidth on paper
MEMBER_SECONDS = 3e-6  # each launch more, for each member of a stack
COPY_SECONDS = 4e-6  # realigning: its launch and its tail, most of it overlapped
DOTS_TRIP_SECONDS, SUMS_TRIP_SECONDS = 1.2e-6, 4e-6  # to L2 and back, while everybody asks
EDGE_SECONDS = 5e-6  # what thin edges cost in the background, or while operands are realigned
GATHER_SECONDS = 4e-6  # adding up the parts of k: its launch,
GATHER_BANDWIDTH = 4e12  # and the bytes, which lie in L2


@dataclass(frozen=True)
class TensorTile:
    """A tile of P: `rows` in steps of a warpgroup's 64, `cols` in steps of the copy engine's 64.

    `cluster` blocks with tiles above one another bring their common tile of N together.
    """

    rows: int
    cols: int
    cluster: int = 1

    @property
    def groups(self) -> int:
        """Warpgroups that multiply; one more copies."""
        return self.rows // 64

    @property
    def takes_edges(self) -> bool:
        """Whether thin edges can be made beside it; other tiles leave their warps too few registers."""
        return self.rows > 64 and self.cols >= 192

    @property
    def takes_edges_with_bias(self) -> bool:
        """The same where a bias is added on the way, which takes some more of them."""
        return self.takes_edges and self.cluster > 1 and self.rows * self.cols > 128 * 192

    @property
    def takes_accumulate(self) -> bool:
        """Whether P can be read before it is rounded and written; the largest sums leave no registers for that."""
        return self.rows * self.cols < 192 * 192

    def box_lines_n(self, n_along_k: bool) -> int:
        """Lines of N that one copy brings: a block of a cluster brings its share of them, of the columns if it can."""
        if n_along_k:
            return self.cols // self.cluster
        return DEPTH if self._parts % self.cluster == 0 else DEPTH // self.cluster

    def stages(self, store: str) -> int:
        """As many pairs of tiles as shared memory holds beside the staging of P, and no more than help."""
        return min(8, (SHARED_BYTES - 1024 - self._staging_bytes(store)) // (self._stage_bytes + 16))

    @property
    def _parts(self) -> int:
        return self.cols // 64

    @property
    def _stage_bytes(self) -> int:
        return (self.rows + self.cols) * 2 * DEPTH

    def _staging_bytes(self, store: str) -> int:
        """As the kernel's STAGING_BYTES has it."""
        if store == "turned":
            return self.groups * self.cols * 2 * DEPTH + SPARE_BYTES
        boxes = {"partial": 0, "carried": self._parts}.get(store, min(2, self._parts))
        return self.groups * boxes * 64 * 2 * DEPTH + SPARE_BYTES

    def shared_bytes(self, store: str) -> int:
        return 1024 + self.stages(store) * (self._stage_bytes + 16) + self._staging_bytes(store)

    @property
    def geometry(self) -> Geometry:
        return Geometry((128 * (self.groups + 1), 1), self.rows, self.cols, DEPTH, self.shared_bytes("rows"))


TILES = tuple(
    TensorTile(rows, cols, cluster)
    for rows, cols, cluster in product((128, 192, 64), (256, 192, 128, 64), (1, 2))
    if rows * cols <= 192 * 192  # 192 rows take three warpgroups, whose registers then hold no more than 192 columns
)


@dataclass(frozen=True)
class TensorWay:
    """How the tensor-core kernel takes a product."""

    tile: TensorTile
    routes: tuple[str, str]  # how M and N reach it
    splits: int = 1  # parts that k is cut into
    classes: int = 1  # of the rows of M, where they are taken by classes
    edge_rows: int = 0  # thin edges of P, made on the way
    edge_cols: int = 0
    turned: bool = False  # M and N change places: the tile's columns are rows of P
    tuned: bool = field(default=False, compare=False)  # chosen by measurement, not by the model alone

    def spec(self) -> str:
        """As tables of measured ways name it."""
        edges = " edges" if self.edge_rows or self.edge_cols else ""
        cut = f" k/{self.splits}" if self.splits > 1 else ""
        turned = " turned" if self.turned else ""
        return f"{self.tile.rows}x{self.tile.cols}c{self.tile.cluster} {', '.join(self.routes)}{edges}{cut}{turned}"

    def words(self) -> list[str]:
        """What is special about it, a sentence each."""
        reasons = {
            REALIGNED: "is realigned first, onto 128-byte lines that the copy engine takes at full speed",
            BY_CLASSES: f"is taken by {self.classes} classes of rows: its rows do not start on 16 bytes",
            PACKED: "is packed first: elements apart, or another dtype",
        }
        words = [f"{name} {reasons[how]}" for name, how in zip("MN", self.routes, strict=True) if how in reasons]
        if self.turned:
            words.append(f"Pᵀ = NᵀMᵀ: {self.tile.cols} rows of P fill a tile's columns, which come in steps of 16")
        if self.tile.cluster > 1:
            words.append(f"{self.tile.cluster} blocks, one above the other, share their tiles of {'NM'[self.turned]}")
        if self.edge_rows or self.edge_cols:
            words.append(
                f"thin edges ({self.edge_rows} rows, {self.edge_cols} columns of P) are made while data passes by"
            )
        if self.splits > 1:
            words.append(f"k is cut into {self.splits} parts, whose sums are added up in a fixed order")
        return words

    def edge_forms(self, m_along_k: bool, n_along_k: bool) -> tuple[str, str] | None:
        """How P's last columns and rows are made, if they are thin edges: of M and N by `dots` of lines with k along
        them or `sums` over lines with k across, in the background; or already while both were realigned, as `planes` of
        sums. (Along k every block of lines needs the whole edge: not if its elements lie far apart.)"""
        if not self.edge_rows and not self.edge_cols:
            return None
        both = self.routes == (REALIGNED, REALIGNED)

        def form(count: int, along: bool, other: bool) -> str:
            if not count:
                return "nothing"
            summed = both and count == 1 and (other or not along)  # on the way there are registers for one edge
            return "planes" if summed else "dots" if along else "sums"

        return form(self.edge_cols, m_along_k, n_along_k), form(self.edge_rows, n_along_k, m_along_k)

    def tiles(self, m: int, n: int) -> int:
        """Cluster tiles of P, thin edges apart."""
        if self.turned:
            m, n = n, m
        tall = self.tile.rows * self.tile.cluster
        few, longer = divmod(m - self.edge_rows, self.classes)
        down = longer * math.ceil((few + 1) / tall) + (self.classes - longer) * math.ceil(few / tall)
        return down * math.ceil((n - self.edge_cols) / self.tile.cols)

    def blocks(self, m: int, n: int, units: int) -> int:
        """A persistent grid: no more blocks than the card holds at once."""
        cluster = self.tile.cluster
        return min(units // cluster, self.tiles(m, n) * self.splits) * cluster

    def waves(self, m: int, n: int, units: int) -> int:
        return math.ceil(self.tiles(m, n) * self.splits / (units // self.tile.cluster))

    def store(self, layout: Layout, m: int, n: int, alignment: int, units: int) -> str:
        """How sums leave for P: as `boxes` by the copy engine where its rows start and end on 16 bytes, else by rows:
        `carried` by other warps if that is worth it."""
        if self.splits > 1:
            return "partial"
        if self.turned:
            return "turned"
        if takes_boxes(layout, m, n, self.edge_cols, alignment) and self.routes[0] != BY_CLASSES:
            return "boxes"
        return "rows" if self.waves(m, n, units) < CARRIED_WAVES else "carried"


def takes_boxes(layout: Layout, m: int, n: int, edge_cols: int = 0, alignment: int | None = None) -> bool:
    """Whether rows of P start and end on 16 bytes, so that the copy engine can store them."""
    lead = layout.leading_dimension(m, n)
    strides = (*(() if m <= 1 else (lead or 1,)), *layout.stack)
    aligned = (layout.alignment if alignment is None else alignment) >= 16
    return lead is not None and aligned and all(stride % 8 == 0 for stride in (*strides, n - edge_cols))


def refusal(problem: Problem, machine: Machine) -> str | None:
    """Why the tensor-core kernel does not take this problem, or None when it does."""
    if not machine.arch.startswith("sm_90"):
        return f"kernel={KERNEL!r} is made for Hopper (sm_90), and this is {machine.arch or 'no card'}"
    if problem.dtype.name not in ("bfloat16", "float16"):
        return f"kernel={KERNEL!r} multiplies bfloat16 and float16, not {problem.dtype}"
    lead = problem.layout_p.leading_dimension(problem.m, problem.n)
    if problem.unrounded and (lead is None or lead % 2 or any(stride % 2 for stride in problem.layout_p.stack)):
        return f"kernel={KERNEL!r} keeps unrounded sums in rows that start on 8 bytes"
    ring, plain = problem.semiring, SEMIRINGS["plus_times"]
    if (ring.add, ring.mul, ring.zero) != (plain.add, plain.mul, plain.zero):
        return f"kernel={KERNEL!r} knows plus_times alone, not {ring}"
    return None


def route(layout: Layout, rows: int, cols: int, dtype: DType, wanted: DType) -> str:
    """How an operand reaches the kernel if nothing better is known: `as it is`, `realigned` or `packed`."""
    lines = contiguous_lines(layout, rows, cols)
    if lines is None or dtype != wanted or lines[1] > LONGEST_LINE:
        return PACKED
    count, _, lead = lines
    strides = (*(() if count <= 1 else (lead,)), *layout.stack)
    whole = all(stride % 8 == 0 for stride in strides) and layout.alignment >= 16
    return AS_IT_IS if whole else REALIGNED


def row_classes(layout: Layout, rows: int, cols: int) -> int:
    """Every how many rows one starts equally far from a 16-byte boundary."""
    return 8 // math.gcd(layout.row, 8) if rows > 1 else 1


def tuning_class(problem: Problem) -> str:
    """What kind of product this is, for tables of measured ways."""
    p = problem
    columns = along_columns(p.layout_m, p.m, p.k), along_columns(p.layout_n, p.k, p.n)
    routes = route(p.layout_m, p.m, p.k, p.dtype, p.dtype), route(p.layout_n, p.k, p.n, p.dtype, p.dtype)
    layouts = "".join("NT"[turned] for turned in columns)
    return class_of(KERNEL, p.dtype.name, (p.m, p.k, p.n), layouts, routes == (AS_IT_IS, AS_IT_IS))


def ways(problem: Problem, machine: Machine, among: Sequence[TensorTile] | None = None) -> list[TensorWay]:
    """Every way, or those with tiles `among` these; ways that turn P have tiles of their own."""
    m, k, n = problem.m, problem.k, problem.n
    for_m = [route(problem.layout_m, m, k, problem.dtype_m, problem.dtype)]
    for_n = [route(problem.layout_n, k, n, problem.dtype_n, problem.dtype)]
    lines_m, lines_n = contiguous_lines(problem.layout_m, m, k), contiguous_lines(problem.layout_n, k, n)
    for options, lines in ((for_m, lines_m), (for_n, lines_n)):
        if options == [AS_IT_IS] and lines and lines[0] > 1 and lines[2] % DEPTH:
            options.append(REALIGNED)  # lines that straddle 128 bytes cost the copy engine twice
    skewed = not along_columns(problem.layout_m, m, k) and not along_columns(problem.layout_n, k, n)
    if for_m == [REALIGNED] and skewed and not problem.stack and m > 1 and not problem.unrounded:
        for_m.append(BY_CLASSES)
    ways = []
    rounded = problem.accumulate and not problem.unrounded
    tiles = [tile for tile in (TILES if among is None else among) if tile.takes_accumulate or not rounded]
    for tile, *routes in product(tiles, for_m, for_n):
        if routes[0] == BY_CLASSES:
            ways.append(TensorWay(tile, (routes[0], routes[1]), 1, row_classes(problem.layout_m, m, k)))
        else:
            splits = _splits(problem, tile, machine)
            ways += [TensorWay(tile, (routes[0], routes[1]), parts) for parts in splits]
        thin_can_be = tile.takes_edges and not (problem.stack or problem.unrounded or problem.accumulate)
        thin_can_be &= tile.takes_edges_with_bias or problem.epilogue.bias is None
        if PACKED not in routes and thin_can_be and ways[-1].splits == 1:
            thin = [extent % size for extent, size in ((m, tile.rows), (n, tile.cols))]
            rows, cols = (
                edge if edge <= THIN and extent > edge else 0 for edge, extent in zip(thin, (m, n), strict=True)
            )
            if rows or cols:
                ways.append(TensorWay(tile, ways[-1].routes, 1, ways[-1].classes, rows, cols))
    return ways if among else ways + _turned_ways(problem, for_m, for_n)


def _turned_ways(problem: Problem, for_m: list[str], for_n: list[str]) -> list[TensorWay]:
    """A few hundred rows fill whole tiles badly; as a tile's columns they come in finer steps."""
    m, k, n = problem.m, problem.k, problem.n
    odd = problem.accumulate or problem.unrounded or problem.epilogue or along_columns(problem.layout_m, m, k)
    if odd or not FEW[0] < m <= FEW[1] or not takes_boxes(problem.layout_p, m, n):
        return []
    cols = math.ceil(m / math.ceil(m / 256) / 16) * 16
    routes = product([how for how in for_m if how != BY_CLASSES], for_n)
    return [TensorWay(TensorTile(128, cols, c), pair, turned=True) for pair in routes for c in (1, 2)]


def _splits(problem: Problem, tile: TensorTile, machine: Machine) -> tuple[int, ...]:
    """k is cut only where its tiles leave most of the card idle."""
    tiles = TensorWay(tile, ("", "")).tiles(problem.m, problem.n) * tile.cluster
    phases = math.ceil(problem.k / DEPTH)
    most = min(machine.units // max(1, tiles), phases // 4)
    return (1, most) if most > 1 and not problem.unrounded else (1,)


def expected(way: TensorWay, problem: Problem, machine: Machine) -> float:
    """Seconds: whole waves of tiles, or the bytes; then what comes before and after.

    A phase takes as long as the tensor cores need for it, or L2 for its bytes, or the copy engine for its lines, and a
    little longer where two of them are equally busy.
    """
    tile, (m, k, n) = way.tile, (problem.m, problem.k, problem.n)
    cores = tile.rows * tile.cols * DEPTH / (machine.tensor_rate(problem.dtype.name) / machine.units * TENSOR_SHARE)
    rows, cols = tile.rows, tile.cols / tile.cluster
    of_m, of_n = (cols, rows) if way.turned else (rows, cols)
    lines = of_m * lines_touched(way.routes[0], problem.layout_m, m, k) + of_n * lines_touched(
        way.routes[1], problem.layout_n, k, n
    )
    limits = (cores, (rows + cols) * 2 * DEPTH / UNIT_BANDWIDTH, lines * LINE_SECONDS)
    slow = CLASSES_SLOW if way.routes[0] == BY_CLASSES else 1.0
    phase: float = slow * math.hypot(*(limit**SHARPNESS for limit in limits)) ** (1 / SHARPNESS)
    phases = max(1, math.ceil(math.ceil(k / DEPTH) / way.splits))
    store = way.store(problem.layout_p, m, n, problem.layout_p.alignment, machine.units)
    waves = way.waves(m, n, machine.units)
    memory = machine.bandwidth * MEMORY_SHARE
    each = max(waves * (phases * phase + TILE_SECONDS[store]), problem.member_bytes / memory)
    work = (problem.members - 1) * MEMBER_SECONDS + problem.members * each
    if work > HOT_SECONDS:
        hot = next(share for area, share in HOT_SLOW if tile.rows * tile.cols >= area)
        work *= 1 + hot * math.log2(work / HOT_SECONDS)
    work += START_SECONDS + (tile.groups if waves == 1 else 2) * GROUP_SECONDS
    work += CLUSTER_SECONDS if tile.cluster > 1 else 0.0
    moved = sum(4 * size for how, size in zip(way.routes, (m * k, k * n), strict=True) if how in (REALIGNED, PACKED))
    if way.edge_rows or way.edge_cols:
        work = max(work, _edge_seconds(way, problem, machine)) + EDGE_SECONDS
    if way.routes[0] == BY_CLASSES:
        work += CLASSES_SECONDS
    if moved:
        work += COPY_SECONDS + problem.members * moved / memory
    if way.splits > 1:
        work += problem.members * (GATHER_SECONDS + 8 * way.splits * m * n / GATHER_BANDWIDTH)
    return work


def _edge_seconds(way: TensorWay, problem: Problem, machine: Machine) -> float:
    """Thin edges in the background: trips to L2, one after the other. Dot products take 32 lines and 256 of k a trip,
    sums over lines 32 columns and 144 of k, and wait longer for so many short pieces. Of planes little is left."""
    m, k, n = problem.m, problem.k, problem.n
    m_along_k, n_along_k = not along_columns(problem.layout_m, m, k), along_columns(problem.layout_n, k, n)
    seconds = 0.0
    for form, extent in zip(way.edge_forms(m_along_k, n_along_k) or (), (m, n), strict=False):
        if form == "dots":
            seconds += math.ceil(extent / 32 * 8 / 3 / machine.units) * math.ceil(k / 256) * DOTS_TRIP_SECONDS
        elif form == "sums":
            seconds += math.ceil(extent / 32 / machine.units) * math.ceil(k / 144) * SUMS_TRIP_SECONDS
    return seconds


def lines_touched(how: str, layout: Layout, rows: int, cols: int) -> int:
    """128-byte lines of memory that a tile's row of 128 bytes lies in."""
    lines = contiguous_lines(layout, rows, cols)
    straddles = how == AS_IT_IS and lines is not None and lines[2] % DEPTH
    return 2 if straddles else 1
