"""Tiles and configurations of `wgmma_half`: geometry only."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

from tilewise.core.plan import Geometry
from tilewise.core.problem import Layout, Problem, row_lead
from tilewise.kernels.shared.layouts import BY_CLASSES, DEINTERLEAVED, PACKED, REALIGNED
from tilewise.kernels.shared.residency import UNIT_SHARED, rooms
from tilewise.kernels.shared.triangle import tiles_in_classes, upper_tiles
from tilewise.system.once import once

DEPTH = 64  # k of a phase: 128 bytes of 2-byte elements, one row of the swizzled tile
SPARE_BYTES = 16 + 3 * 32 * 4  # two more barriers, and the thin edges' shares
CLASSES = 8  # every so many rows of 2-byte elements one starts equally far from a 16-byte boundary, if not sooner
NARROWED = 128  # columns, from which on a tile of groups of rows may be multiplied by half
SHIFTED_COLUMNS = 8  # columns at the end of a tile that have no use where lines of N come by classes
FEW = (64, 512)  # more rows than this and no more than that: worth to be a tile's columns,
TRANSPOSED_ROWS = 128  # of such a tile
CUTS = ("cut", "cut transposed")  # stores of parts of k that are added up inside the launch
LEAVES = ("boxes", "transposed", "rows", "carried", "partial")  # how sums leave,
BOXES, TRANSPOSED_OUT, ROWS, CARRIED, PARTIAL = range(5)  # by numbers
CARRIED_WAVES, CARRIED_PHASES = 2, 12  # from so many of both on, other warps carry sums out: they are slower, and fewer


@dataclass(frozen=True)
class TensorTile:
    """A tile of P: `rows` in steps of a warpgroup's 64, `cols` in steps of the copy engine's 64.

    `cluster` blocks with tiles above one another bring their common tile of N together, `beside` blocks with tiles side
    by side that of M.
    """

    rows: int
    cols: int
    cluster: int = 1
    beside: int = 1

    @property
    def together(self) -> int:
        """Blocks of a cluster."""
        return self.cluster * self.beside

    def at_once(self, units: int) -> int:
        """Clusters that a card holds with a block on each multiprocessor: one more would wait for all others."""
        return rooms(units, self.together, 1)[0]

    @property
    def groups(self) -> int:
        """Warpgroups that multiply; one more copies."""
        return self.rows // 64

    @property
    def wide(self) -> bool:
        """Whether it is one of the tiles for large products."""
        return self.rows > 64 and self.cols >= 192

    @property
    def takes_edges(self) -> bool:
        """Whether thin edges can be made beside it; other tiles leave their warps too few registers, or win nowhere."""
        return (self.rows, self.cols, self.cluster, self.beside) == (128, 256, 2, 1)

    @property
    def takes_parts(self) -> bool:
        """Whether k may be cut: large clusters are for products with many tiles, which leave no reason to."""
        return "partial" in STORES[self][0]

    @property
    def takes_serial(self) -> bool:
        """Whether parts of k may come in turn: that takes registers for the sums of earlier ones."""
        return self.cols <= 128 and self.rows <= 128 and self.together == 1

    @property
    def takes_accumulate(self) -> bool:
        """Whether P can be read before it is rounded and written; the largest sums leave no registers for that."""
        return self.rows * self.cols < 192 * 192

    def box_lines_n(self, n_along_k: bool) -> int:
        """Lines of N that one copy brings: a block of a cluster brings its share of them, of the columns if it can."""
        if n_along_k:
            return self.cols // self.cluster
        return DEPTH if self._parts % self.cluster == 0 else DEPTH // self.cluster

    def box_lines_m(self, m_along_k: bool) -> int:
        """Lines of M that one copy brings: some of the rows, or of k."""
        return (self.rows if m_along_k else DEPTH) // self.beside

    def resident(self, store: str) -> int:
        """Blocks that share a multiprocessor: three of 64 rows, where each has one tile, for one's start and end beside
        the others' phases, or two where columns are as many; one of 128 rows."""
        if store not in CUTS or self.rows > 64:
            return 1
        return 3 if self.cols < 64 else 2

    def stages(self, store: str) -> int:
        """As many pairs of tiles as shared memory holds beside the staging of P, and no more than help."""
        blocks = self.resident(store)
        held = UNIT_SHARED if blocks == 1 else UNIT_SHARED // blocks - 1088
        most = 12 if store in CUTS else 8
        return min(most, (held - 1024 - self._staging_bytes(store)) // (self._stage_bytes + 16))

    @property
    def _parts(self) -> int:
        return self.cols // 64

    @property
    def _stage_bytes(self) -> int:
        return (self.rows + self.cols) * 2 * DEPTH

    def _staging_bytes(self, store: str) -> int:
        """As the kernel's STAGING_BYTES has it."""
        if store == "transposed":
            return self.groups * self.cols * 2 * DEPTH + SPARE_BYTES
        boxes = {"partial": 0, "cut": 0, "cut transposed": 0, "carried": self._parts}.get(store, min(2, self._parts))
        return self.groups * boxes * 64 * 2 * DEPTH + SPARE_BYTES

    @lru_cache(maxsize=256)  # noqa: B019 - tiles are few, and live as long as the program
    def shared_bytes(self, store: str) -> int:
        return 1024 + self.stages(store) * (self._stage_bytes + 16) + self._staging_bytes(store)

    @once
    def geometry(self) -> Geometry:
        return Geometry((128 * (self.groups + 1), 1), self.rows, self.cols, DEPTH, self.shared_bytes("rows"))


# What is compiled: tiles of P, how their sums may leave, and how where rows of M come by classes. 192 rows take three
# warpgroups, whose registers then hold no more than 192 columns. Of 15 tiles with every store that they could have (and
# thin edges, classes and clusters) these: 447 random shapes, each timed in every way on an H200, take 0.1 %
# longer, 8 of them over 3 %. Clusters of four are for a P of few tiles, whose blocks would all want the same lines of M
# or N: of 26 such tiles on 56 aligned products these four bring all but 0.7 % of what all do (5 % of the time).
STORES: dict[TensorTile, tuple[frozenset[str], frozenset[str]]] = {
    TensorTile(rows, cols, *cluster): (frozenset(stores.split()), frozenset(by_classes.split()))
    for rows, cols, cluster, stores, by_classes in (
        (128, 256, (1,), "boxes rows carried", "rows carried"),
        (128, 256, (2,), "boxes carried", "carried"),
        (128, 192, (1,), "boxes carried", ""),
        (128, 192, (2,), "boxes rows", "rows"),
        (128, 128, (1,), "boxes rows partial", ""),
        (128, 64, (1,), "boxes rows partial", ""),
        (192, 192, (1,), "boxes carried partial", ""),
        (192, 192, (2,), "boxes rows carried", ""),
        (192, 128, (1,), "boxes rows partial", ""),
        (64, 256, (1,), "boxes partial", ""),
        (64, 192, (1,), "boxes rows partial", ""),
        (64, 128, (1,), "boxes rows partial", ""),
        (64, 64, (1,), "boxes rows partial", ""),
        (64, 128, (2,), "boxes partial", ""),
        (64, 64, (2,), "boxes partial", ""),
        (64, 64, (4, 1), "boxes", ""),
        (64, 64, (1, 4), "boxes", ""),
        (64, 128, (1, 4), "boxes", ""),
        (128, 128, (2, 2), "boxes", ""),
    )
}
TILES = tuple(STORES)
# Tiles of few columns, of which each has blocks of its own, k cut over a cluster; few rows of P are columns of Pᵀ.
# Wider ones lost to parts of k that are added up afterwards: so many sums take longer through other blocks' memory.
FEW_INSIDE = tuple(TensorTile(rows, cols) for rows in (64, 128) for cols in (8, 16, 32))
# But where tiles of 64 x 64 leave most of a card idle, and k is long, their parts are added up so too.
SQUARE_INSIDE = TensorTile(64, 64)
INSIDE = (*FEW_INSIDE, SQUARE_INSIDE)


@dataclass(frozen=True)
class TensorConfig:
    """A configuration of wgmma_half."""

    tile: TensorTile
    routes: tuple[str, str]  # how M and N reach it
    splits: int = 1  # parts that k is cut into
    classes: int = 1  # of the rows of M, where they are taken by classes
    edge_rows: int = 0  # thin edges of P, made on the way
    edge_cols: int = 0
    inside: bool = False  # these parts are a cluster's blocks, which add up inside the launch
    serial: bool = False  # they are the same block's, one after the other
    transposed: bool = False  # M and N change places: the tile's columns are rows of P
    symmetric: bool = False  # tiles on and above the diagonal, stored twice
    tuned: bool = field(default=False, compare=False)  # chosen by measurement, not by the model alone

    def spec(self) -> str:
        """Its name in tuned tables."""
        edges = " edges" if self.edge_rows or self.edge_cols else ""
        cut = f" k/{self.splits}" if self.splits > 1 or self.inside else ""
        cut += " inside" if self.inside else " serial" if self.serial else ""
        transposed = " transposed" if self.transposed else " symmetric" if self.symmetric else ""
        tile, across = self.tile, f"x{self.tile.beside}" if self.tile.beside > 1 else ""
        return f"{tile.rows}x{tile.cols}c{tile.cluster}{across} {', '.join(self.routes)}{edges}{cut}{transposed}"

    def notes(self) -> list[str]:
        """Notes of the plan."""
        reasons = {
            REALIGNED: "is realigned first, onto 128-byte lines that the copy engine takes at full speed",
            BY_CLASSES: f"is taken by {self.classes} classes of rows: its rows do not start on 16 bytes",
            PACKED: "is packed first: elements apart, or another dtype",
            DEINTERLEAVED: "is realigned first, its k sorted as N's lines come",
        }
        if self.n_by_classes:
            reasons[BY_CLASSES] = "is taken by classes of lines, between which the sums move: they start on no 16 bytes"
        words = [f"{name} {reasons[how]}" for name, how in zip("MN", self.routes, strict=True) if how in reasons]
        if self.transposed:
            words.append(f"Pᵀ = NᵀMᵀ: {self.tile.cols} rows of P fill a tile's columns, which come in steps of 16")
        if self.tile.cluster > 1:
            words.append(f"{self.tile.cluster} blocks, one above the other, share their tiles of N")
        if self.tile.beside > 1:
            words.append(f"{self.tile.beside} blocks, side by side, share their tiles of M")
        if self.edge_rows or self.edge_cols:
            words.append(
                f"thin edges ({self.edge_rows} rows, {self.edge_cols} columns of P) are made while data passes by"
            )
        if self.inside and self.splits > 1:
            words.append(f"k is cut over the {self.splits} blocks of a cluster, which add up in order")
        elif self.serial:
            words.append(f"k is cut into {self.splits} parts, one after the other, whose sums are added up in order")
        elif self.splits > 1:
            words.append(f"k is cut into {self.splits} parts, whose sums are added up in a fixed order")
        return words

    @property
    def in_order(self) -> bool:
        """Whether each part of k is one chain of instructions, from its first element on."""
        by_classes = self.classes > 1 or bool({BY_CLASSES, DEINTERLEAVED}.intersection(self.routes))
        return not (by_classes or self.edge_rows or self.edge_cols)

    @property
    def n_by_classes(self) -> bool:
        """Whether lines of N come by classes (alignment_classes.cuh)."""
        return self.routes[1] == BY_CLASSES

    @property
    def cols(self) -> int:
        """Columns of P that a tile makes."""
        return self.tile.cols - SHIFTED_COLUMNS if self.n_by_classes else self.tile.cols

    def narrowed(self, n: int) -> bool:
        """Whether the last tile of groups of rows with n columns has them all in its left half: the rest is not
        multiplied."""
        rest = n % self.cols
        return self.tile.cols >= NARROWED and 0 < rest <= self.tile.cols // 2 - (self.tile.cols - self.cols)

    def may_be_narrow(self, n: int, store: str) -> bool:
        """Whether its text of groups of rows tells narrow tiles from others: where sums are carried it always does, for
        both kinds take as long there; by boxes it costs tiles that are not narrow 5 %."""
        return self.narrowed(n) or store == "carried"

    @property
    def passes(self) -> int:
        """Parts that another launch adds up."""
        return 1 if self.inside or self.serial else self.splits

    @property
    def own_blocks(self) -> int:
        """Parts that have blocks of their own."""
        return 1 if self.serial else self.splits

    def edge_forms(self, m_along_k: bool, n_along_k: bool) -> tuple[str, str] | None:
        """How P's last columns and rows are made, if they are thin edges: of M and N by `dots` of lines with k along
        them or `sums` over lines with k across, in the background; or already while both were realigned, as `planes` of
        sums. (Along k every block of lines needs the whole edge: not if its elements lie far apart.)"""
        if not self.edge_rows and not self.edge_cols:
            return None
        both = self.routes == (REALIGNED, REALIGNED)
        of_cols = edge_form(self.edge_cols, m_along_k, n_along_k, both)
        return EDGE_FORMS[of_cols], EDGE_FORMS[edge_form(self.edge_rows, n_along_k, m_along_k, both)]

    def tiles(self, m: int, n: int) -> int:
        """Cluster tiles of P that are computed, thin edges apart."""
        if self.symmetric:
            return upper_tiles(m, self.tile.rows * self.tile.cluster, self.tile.cols * self.tile.beside)
        if self.transposed:
            m, n = n, m
        tall, wide = self.tile.rows * self.tile.cluster, self.cols * self.tile.beside
        return tiles_in_classes(m - self.edge_rows, n - self.edge_cols, tall, wide, self.classes)

    def blocks(self, m: int, n: int, units: int, members: int = 1) -> int:
        """A persistent grid: no more blocks than the card holds at once; but one for each part that is added up inside
        the launch."""
        together = self.tile.together
        if self.inside:
            return self.tiles(m, n) * self.splits * members
        return min(self.tile.at_once(units), self.tiles(m, n) * self.own_blocks * members) * together

    def waves(self, m: int, n: int, units: int, members: int = 1) -> int:
        return math.ceil(self.tiles(m, n) * self.own_blocks * members / self.tile.at_once(units))

    def store(self, layout: Layout, m: int, n: int, alignment: int, waves: int, phases: int) -> str:
        """How sums leave for P: as `boxes` by the copy engine where its rows start and end on 16 bytes, else by rows:
        `carried` by other warps if that is worth it. Those of parts of k are added up first."""
        if self.inside:
            return "cut transposed" if self.transposed else "cut"
        if self.passes > 1:
            return "partial"
        if self.transposed:
            return "transposed"
        boxed, wide = takes_boxes(layout, m, n, self.edge_cols, alignment), self.tile.wide and not self.symmetric
        return LEAVES[store_of(BY_CLASSES in self.routes, boxed, wide, waves, phases)]


EDGE_FORMS = "nothing", "planes", "dots", "sums"  # how thin edges are made,
NOTHING, PLANES, DOTS, SUMS = range(4)  # by numbers


def edge_form(count: int, along: bool, other: bool, both: bool) -> int:
    """Of an edge of so many rows or columns; whether this operand lies along k, and the other one, and whether both are
    realigned: on the way there are registers for one edge."""
    if count == 0:
        return NOTHING
    if both and count == 1 and (other or not along):
        return PLANES
    return DOTS if along else SUMS


def store_of(by_classes: int, boxed: float, wide: int, waves: int, phases: int) -> int:
    """How the sums of a product whose k is whole leave."""
    if boxed > 0.0 and not by_classes:
        return BOXES
    return CARRIED if wide and waves >= CARRIED_WAVES and phases >= CARRIED_PHASES else ROWS


LEAST_PHASES = 4  # of a part of k
LONG = 64  # phases of a k that is cut for any m


def fixed_parts(p: Problem, units: int) -> int:
    """Of k, where sums have an order that m must not change; else 0. As many as let tiles of a few rows fill half the
    card. Two would win less there than thousands of rows lose, whose tiles are narrower to have sums of parts; so would
    a shorter k: GPT-2's 3072x768 took 94 us of 8,192 rows in parts, 53 whole."""
    if not p.ordered:
        return 0
    most = units // (2 * max(1, -(-p.n // 64))) if -(-p.k // DEPTH) >= LONG else 1
    return 8 if most >= 8 else 4 if most >= 4 else 3 if most >= 3 else 1  # as many as a cluster may have


def takes_boxes(layout: Layout, m: int, n: int, edge_cols: int = 0, alignment: int | None = None) -> bool:
    """Whether the copy engine can store P; `alignment`: of its address, if not the layout's."""
    return boxes(layout, m, n, edge_cols, layout.alignment if alignment is None else alignment)


def boxes(layout: Layout, m: int, n: int, edge_cols: int, alignment: int) -> bool:
    """Whether rows of P start and end on 16 bytes, so that the copy engine can store them. It writes 16 bytes at once:
    a row that ends between needs spare room behind it."""
    lead = row_lead(layout, m, n)
    width = 0 if layout.spare and m > 1 else n - edge_cols
    if lead < 0 or width % 8 or (m > 1 and lead % 8):
        return False
    return alignment >= 16 and layout.step % 8 == 0 and not layout.backward
