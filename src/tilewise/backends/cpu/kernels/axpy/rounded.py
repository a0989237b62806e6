"""`axpy` of half precision with a k so short that registers hold all of it: P is written once, rounded.

N is widened first, row by row. A tile keeps a few rows of M in registers, four k of a row per vector, and multiplies by
one lane; it steps along the columns two vectors at a time and stores their rounded sums as one vector.
"""

from __future__ import annotations

from tilewise.algebra.to_llvm import Value, vector
from tilewise.backends.cpu.kernels.axpy.model import HALF_DEPTH
from tilewise.backends.cpu.kernels.packed_n.text import WIDEN, widen_function
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.convert import load, narrow
from tilewise.system.llvm_text import FunctionTable, IRFunction

HEIGHT = 4  # rows of a tile
PARAMS = "ptr M, i64 row_m, i64 col_m, ptr N, i64 row_n, ptr P, i64 row_p, i64 cols"
ROUNDED = f"{PARAMS}, i64 rows, i64 k, ptr wide"


def rounding_functions(a: Arithmetic) -> list[IRFunction | FunctionTable]:
    """Tiles over all of k: of HEIGHT rows, and of one row for the remainder."""
    parts: list[IRFunction | FunctionTable] = [widen_function(a)]
    for rows in (HEIGHT, 1):
        tiles = [_RoundingTile(a, rows, depth).function() for depth in range(1, HALF_DEPTH + 1)]
        parts += [*tiles, FunctionTable(f"rounded{rows}", [tile.name for tile in tiles])]
    return [*parts, _rounded(a)]


class _RoundingTile:
    """`rows` rows of P, all columns, all of k; N is widened already, with contiguous rows."""

    def __init__(self, a: Arithmetic, rows: int, depth: int) -> None:
        self.a, self.rows, self.depth = a, rows, depth
        self.f = f = IRFunction(f"rounded{rows}x{depth}", PARAMS)
        self.render = a.renderer(f, a.lanes)
        self.elements = [self.row_of_M(row) for row in range(rows)]
        self.rows_n = [f.op(f"freeze ptr {f.at(a.kind, '%N', f.mul('%row_n', k))}") for k in range(depth)]
        self.rows_p = [f.op(f"freeze ptr {f.at(a.element_p, '%P', f.mul('%row_p', row))}") for row in range(rows)]

    def row_of_M(self, row: int) -> list[str]:
        """Its elements, broadcast from the lanes of as few vectors as hold them."""
        a, f, elements = self.a, self.f, list[str]()
        for first in range(0, self.depth, a.lanes):
            held, count = "poison", min(a.lanes, self.depth - first)
            for lane in range(count):
                place = f.at(a.element_m, "%M", f.mul("%row_m", row), f.mul("%col_m", first + lane))
                (one,) = load(f, a.target, a.source_m, a.partial, place, 1)
                held = f.op(f"insertelement {a.vector} {held}, {a.kind} {one}, i32 {lane}")
            for lane in range(count):
                elements.append(f.shuffle(a.vector, held, "poison", [lane] * a.lanes))
        return elements

    def function(self) -> IRFunction:
        a, f, start = self.a, self.f, "0"
        for vectors in (2, 1):
            stop = f.op(f"and i64 %cols, {-vectors * a.lanes}")
            with f.loop(start, stop, vectors * a.lanes) as j:
                self.cells(j.index, vectors)
            start = stop
        with f.when(f.test("slt", start, "%cols")):
            self.cells(f.sub("%cols", a.lanes), 1)
        return f

    def cells(self, j: str, vectors: int) -> None:
        a, f, lanes = self.a, self.f, vectors * self.a.lanes
        sums = [self.sums(f.add(j, v * a.lanes)) for v in range(vectors)]
        for row in range(self.rows):
            total = sums[0][row]
            if vectors == 2:
                total = f.shuffle(a.vector, total, sums[1][row], range(lanes))
            value = narrow(f, a.target, a.partial, a.result, total, lanes, clear=a.fused)
            place = f.at(a.element_p, self.rows_p[row], j)
            f.store(vector(a.element_p, lanes), value, place, a.result.itemsize)

    def sums(self, j: str) -> list[str]:
        """A vector of each row. Sums start from the first product, not from zeros."""
        a, f, totals = self.a, self.f, list[Value]()
        for k, line in enumerate(self.rows_n):
            found = (f.load(a.vector, f.at(a.kind, line, j), a.bytes),)
            if k == 0:
                totals = [self.render.value(a.mul, (row[0],), found) for row in self.elements]
                continue
            totals = [
                self.render.accumulate(a.add, a.mul, total, (row[k],), found)
                for row, total in zip(self.elements, totals, strict=True)
            ]
        return [total for (total,) in totals]


def _rounded(a: Arithmetic) -> IRFunction:
    """A task's rows, all columns, k ≤ HALF_DEPTH, and at least a vector of columns. N is widened first, to `wide`."""
    f = IRFunction("rounded", ROUNDED)
    f.invoke("widen", WIDEN, M="%N", row_m="%row_n", rows="%k", kc="%cols", to="%wide", row="%cols")
    whole = f.op(f"and i64 %rows, {-HEIGHT}")
    for rows, start, stop in ((HEIGHT, "0", whole), (1, whole, "%rows")):
        tile = f.load("ptr", f.at("ptr", f"@rounded{rows}", f.sub("%k", 1)))
        with f.loop(start, stop, rows) as i:
            M, P = f.at(a.element_m, "%M", f.mul(i.index, "%row_m")), f.at(a.element_p, "%P", f.mul(i.index, "%row_p"))
            operands = f"ptr {M}, i64 %row_m, i64 %col_m, ptr %wide, i64 %cols"
            f.do(f"call void {tile}({operands}, ptr {P}, i64 %row_p, i64 %cols)")
    return f
