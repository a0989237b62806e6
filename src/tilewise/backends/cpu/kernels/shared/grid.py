"""Rows and columns of P as a grid of exact tiles of even sizes.

9 rows are 5 and 4, not 8 and 1. Columns are cut by whole vectors; a tile is as wide as its height leaves registers for
sums, and where widths differ the narrower come first, so that the last vector, which may overlap, has another before it
in its tile.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.exact_tile import PARAMS as TILE
from tilewise.backends.cpu.kernels.shared.exact_tile import ExactForm, by_lane, exact_tile_function
from tilewise.system.llvm_text import FunctionTable, IRFunction

WIDEST = 6  # vectors of a tile: wider ones gain nothing

GRID = (
    "i64 kc, ptr M, i64 row_m, i64 step_m, ptr N, i64 step_n, ptr P, i64 row_p, i64 rows, i64 cols, i1 first, i1 down"
)


def widest(a: Arithmetic, form: ExactForm, rows: int) -> int:
    """Most vectors of a tile with this many rows: its sums, a row of N and an element of M (a vector of each row) are
    in registers."""
    free = a.target.registers - (rows if by_lane(a, form) else 1)
    # sums; an unpacked M needs registers for addresses
    most = a.target.registers // 2 if a.starts_from_p else a.MR * a.tile[1]
    sums = rows * a.sums_each
    return max(1, min(WIDEST, most // sums, free // (sums + 1)))


def tallest(a: Arithmetic, form: ExactForm) -> int:
    """Most rows of a tile that is as wide as a panel."""
    return max(rows for rows in range(1, a.MR + 1) if widest(a, form, rows) >= min(WIDEST, a.tile[1]))


def sum_sets(a: Arithmetic, form: ExactForm, rows: int) -> int:
    """Sets of sums of a tile with this many rows: several for one row, to hide the latency of its few sums. Never by
    its width, nor for more rows: the sizes of tiles depend on the number of threads, and a cell's bits must not. No
    grid mixes tiles of one row with others, and no task has a single last row (`tasks.no_single_last_row`)."""
    sets = 1
    while (
        rows == 1
        and not a.ordered
        and tallest(a, form) > 2
        and 2 * sets * widest(a, form, 1) * a.sums_each <= a.target.registers * 3 // 4
    ):
        sets *= 2
    return sets


def grid_functions(a: Arithmetic, form: ExactForm) -> list[IRFunction | FunctionTable]:
    """The grid of a form, and its tiles: the form with every height and width."""
    return [*tile_functions(a, form, grid_name(form), WIDEST), _grid(a, form)]


def tile_functions(a: Arithmetic, form: ExactForm, name: str, most: int) -> list[IRFunction | FunctionTable]:
    """The form with every height, and widths to `most`, and a table of them; without cheap masks narrow ones too."""
    heights = range(1, tallest(a, form) + 1)
    forms = [
        replace(form, rows=r, vectors=min(v, widest(a, form, r)), sets=sum_sets(a, form, r))
        for r in heights
        for v in range(1, most + 1)
    ]
    parts: list[IRFunction | FunctionTable] = [FunctionTable(f"{name}_tiles", [x.name for x in forms])]
    if not a.target.cheap_masks:
        slim = [replace(form, rows=r, vectors=1, narrow=True, sets=sum_sets(a, form, r)) for r in heights]
        parts.append(FunctionTable(f"{name}_slim", [x.name for x in slim]))
        forms += slim
    return [*parts, *(exact_tile_function(a, x) for x in dict.fromkeys(forms))]


def tile_of(f: IRFunction, a: Arithmetic, name: str, most: int, rows: str, vectors: str, cols: str) -> str:
    """The tile of this size, from the tables."""
    place = f.at("ptr", f"@{name}_tiles", f.add(f.mul(f.sub(rows, 1), most), f.sub(vectors, 1)))
    if not a.target.cheap_masks:
        slim = f.at("ptr", f"@{name}_slim", f.sub(rows, 1))
        place = f.select(f.test("slt", cols, a.lanes), "ptr", slim, place)
    return f.load("ptr", place)


def grid_name(form: ExactForm) -> str:
    return "grid_k" if form.along_k else "grid"


def _grid(a: Arithmetic, form: ExactForm) -> IRFunction:
    f = IRFunction(grid_name(form), GRID)
    tiles = Tiles(f, a, form, grid_name(form), WIDEST)
    rows, most = split_evenly(f, "%rows", tallest(a, form)), str(widest(a, form, 1))
    for height in range(2, tallest(a, form) + 1):
        most = f.select(f.test("sge", rows.larger, height), "i64", widest(a, form, height), most)
    vectors = split_evenly(f, f.div(f.add("%cols", a.lanes - 1), a.lanes), most)

    def down() -> None:
        """Column by column of tiles: the part of N that they share stays in L1."""
        with f.loop(0, vectors.count) as block:
            column, width, cols = _columns(f, a, vectors, block.index)
            for height, start, count in _heights(f, rows):
                tiles.down(height, width, (start, column), cols, count)

    def along() -> None:
        """Row by row of tiles: P, which comes from memory, is written along its rows."""
        less = f.sub(vectors.count, vectors.larger_ones)
        for height, start, count in _heights(f, rows):
            with f.loop(0, count) as i:
                row = f.add(start, f.mul(i.index, height))
                smaller = f.mul(f.sub(vectors.larger, 1), a.lanes)
                tiles.along(height, f.sub(vectors.larger, 1), (row, "0"), smaller, less)
                rest, width = f.mul(less, smaller), f.mul(vectors.larger, a.lanes)
                whole = f.sub(vectors.larger_ones, 1)
                tiles.along(height, vectors.larger, (row, rest), width, whole)
                last = f.add(rest, f.mul(whole, width))
                tiles.down(height, vectors.larger, (row, last), f.sub("%cols", last), "1")

    f.either("%down", down, along)
    return f


def _columns(f: IRFunction, a: Arithmetic, vectors: Parts, block: str) -> tuple[str, str, str]:
    """A block's first column, its vectors and its columns; the narrower blocks come first."""
    less = f.sub(vectors.count, vectors.larger_ones)
    before = f.mul(f.sub(vectors.larger, 1), f.lower(block, less))
    inside = f.test("slt", block, less)
    width = f.sub(vectors.larger, f.op(f"zext i1 {inside} to i64"))
    over = f.select(inside, "i64", 0, f.sub(block, less))
    column = f.mul(f.add(before, f.mul(over, vectors.larger)), a.lanes)
    return column, width, f.lower(f.sub("%cols", column), f.mul(width, a.lanes))


def _heights(f: IRFunction, rows: Parts) -> list[tuple[str, str, str]]:
    """Height, first row and number of the tiles with more rows, and of those with one less."""
    lower = f.sub(rows.larger, 1)
    after = f.mul(rows.larger, rows.larger_ones)
    return [(rows.larger, "0", rows.larger_ones), (lower, after, f.sub(rows.count, rows.larger_ones))]


class Tiles:
    """Calls of tiles, in a function with the parameters of a grid."""

    def __init__(self, f: IRFunction, a: Arithmetic, form: ExactForm, name: str, most: int) -> None:
        self.f, self.a, self.form, self.name, self.most = f, a, form, name, most

    def down(self, rows: str, vectors: str, place: tuple[str, str], cols: str, count: str) -> None:
        """`count` tiles below each other."""
        f = self.f
        next_m = rows if self.form.panel_m else f.mul(rows, "%row_m")
        self._call(rows, vectors, place, cols, (count, next_m, "0", f.mul(rows, "%row_p")))

    def along(self, rows: str, vectors: str, place: tuple[str, str], cols: str, count: str) -> None:
        """`count` tiles beside each other, all of them whole."""
        self._call(rows, vectors, place, cols, (count, "0", cols, cols))

    def _call(
        self, rows: str, vectors: str, place: tuple[str, str], cols: str, steps: tuple[str, str, str, str]
    ) -> None:
        f, a, (row, column), (count, next_m, next_n, next_p) = self.f, self.a, place, steps
        M = f.at(a.packed_m_kind, "%M", row) if self.form.panel_m else f.at(a.kind, "%M", f.mul(row, "%row_m"))
        N = f.at(a.kind if self.form.panel else a.element_n, "%N", column)
        P = f.at(a.kind, "%P", f.mul(row, "%row_p"), column)
        with f.when(f.test("sgt", count, 0)):
            tile = tile_of(f, a, self.name, self.most, rows, vectors, cols)
            f.invoke(tile, TILE, M=M, N=N, P=P, cols=cols, count=count, next_m=next_m, next_n=next_n, next_p=next_p)


@dataclass(frozen=True)
class Parts:
    """An extent in `count` parts: `larger_ones` of size `larger`, the others of one less."""

    count: str
    larger: str
    larger_ones: str


def split_evenly(f: IRFunction, extent: str, most: int | str) -> Parts:
    """As few even parts of at most `most` as possible."""
    count = f.div(f.add(extent, f.sub(most, 1)), most)
    larger = f.div(f.add(extent, f.sub(count, 1)), count)
    return Parts(count, larger, f.sub(extent, f.mul(f.sub(larger, 1), count)))
