"""Many rows with a k of at most two vectors, where a horizontal sum for each would cost more than its products.

As many rows as a vector has lanes are loaded under masks (several rows by one vector where they are contiguous) and
summed together. Without masks, and where elements are converted, a few rows are summed element by element.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tilewise.backends.cpu.kernels.dots.lanes import extract_lanes, reduce_vectors, size_of, store_cell
from tilewise.backends.cpu.kernels.dots.model import SHORT_VECTORS, by_vectors
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.convert import load
from tilewise.backends.cpu.kernels.shared.masks import mask_below, masked_load
from tilewise.system.llvm_text import IRFunction

ROWS = 8  # summed element by element at a time
CELLS = (
    "ptr M, ptr N, ptr P, i64 k, i64 row_m, i64 col_m, i64 row_n, i64 column, i64 row_p, i64 col_p, i64 unrounded, "
    "i64 onto, i64 rows, i64 columns"
)


def short_function(a: Arithmetic) -> IRFunction:
    """`cells` for a k of at most two vectors: as many rows at once as a vector has lanes, summed together; or a few
    rows element by element, so that additions do not wait for each other."""
    f = IRFunction("short", CELLS)
    several = a.lanes if by_vectors(a) else 1 if a.heavy else ROWS // a.parts
    bulk = f.op(f"and i64 %rows, {-several}")
    column = f.op(f"alloca [{SHORT_VECTORS} x {a.vector}], align {a.target.vector_bytes}") if by_vectors(a) else ""
    with f.loop(0, "%columns") as j:
        N = f.at(size_of(a.source_n), "%N", f.mul(j.index, "%column"))
        P = f.at(size_of(a.result), "%P", f.mul(j.index, "%col_p"))
        if by_vectors(a):
            _by_vectors(f, a, N, P, bulk, column)
        else:
            _element_by_element(f, a, N, P, ("0", bulk), several)
        _element_by_element(f, a, N, P, (bulk, "%rows"), 1)
    return f


def _element_by_element(f: IRFunction, a: Arithmetic, N: str, P: str, rows: tuple[str, str], count: int) -> None:
    """Some rows of a column, `count` at a time."""
    render = a.renderer(f, 1)
    with f.loop(*rows, count) as i:
        numbers = [f.add(i.index, row) for row in range(count)]
        ms = [f.op(f"freeze ptr {f.at(size_of(a.source_m), '%M', f.mul(row, '%row_m'))}") for row in numbers]
        with f.loop(0, "%k", 1, [(a.kind, zero) for zero in a.zeros(1)] * count) as p:
            y = load(f, a.target, a.source_n, a.partial, f.at(size_of(a.source_n), N, f.mul(p.index, "%row_n")), 1)
            for row, m in enumerate(ms):
                x = load(f, a.target, a.source_m, a.partial, f.at(size_of(a.source_m), m, f.mul(p.index, "%col_m")), 1)
                own = slice(row * a.parts, (row + 1) * a.parts)
                p.next[own] = render.accumulate(a.add, a.mul, tuple(p.values[own]), x, y)
        for row, number in enumerate(numbers):
            place = f.at(size_of(a.result), P, f.mul(number, "%row_p"))
            store_cell(f, a, tuple(p.values[row * a.parts : (row + 1) * a.parts]), place)


def _by_vectors(f: IRFunction, a: Arithmetic, N: str, P: str, rows: str, column: str) -> None:
    """Rows of a column of P, a vector of them at a time. The column of N is copied first, repeated to fill a vector."""
    dense = f.both(f.test("eq", "%row_m", "%k"), f.test("sle", "%k", a.lanes // 2))
    with f.loop(0, f.select(dense, "i64", a.lanes, "%k"), 1, [("i64", "0")]) as p:
        (row,) = p.values
        f.store(a.kind, f.load(a.kind, f.at(a.kind, N, f.mul(row, "%row_n"))), f.at(a.kind, column, p.index))
        after = f.add(row, 1)
        p.next = [f.select(f.test("eq", after, "%k"), "i64", 0, after)]
    render = a.renderer(f, a.lanes)

    def piece(vectors: int) -> None:
        """A row is this many vectors, the last of them under a mask."""
        masks = [mask_below(f, f.sub("%k", v * a.lanes), a.lanes) for v in range(vectors)]
        ns = [masked_load(f, a, f.at(a.vector, column, v), masks[v]) for v in range(vectors)]
        with f.loop(0, rows, a.lanes) as i:
            totals, m = [], f.at(a.kind, "%M", f.mul(i.index, "%row_m"))
            for _ in range(a.lanes):
                total = a.zeros(a.lanes)[0]
                for v, n in enumerate(ns):
                    x = masked_load(f, a, f.at(a.vector, m, v), masks[v])
                    new = render.accumulate(a.add, a.mul, (total,), (x,), (n,))[0]
                    total = f.op(f"select <{a.lanes} x i1> {masks[v]}, {a.vector} {new}, {a.vector} {total}")
                totals.append(total)
                m = f.at(a.kind, m, "%row_m")
            _keep_column(f, a, reduce_vectors(f, a, totals)[0][0], f.at(a.kind, P, f.mul(i.index, "%row_p")))

    def several(k: int) -> None:
        """Contiguous rows, several in a vector."""
        n, zeros = f.load(a.vector, column, a.bytes), a.zeros(a.lanes)
        with f.loop(0, rows, a.lanes) as i:
            places = [f.at(a.kind, "%M", f.mul(i.index, k), v * a.lanes) for v in range(k)]
            found = [f.load(a.vector, place, a.bytes) for place in places]
            totals = [render.accumulate(a.add, a.mul, zeros, (x,), (n,))[0] for x in found]
            sums = reduce_vectors(f, a, totals, a.lanes // k)[0][0]
            _keep_column(f, a, sums, f.at(a.kind, P, f.mul(i.index, "%row_p")))

    def masked() -> None:
        f.either(f.test("sle", "%k", a.lanes), lambda: piece(1), lambda: piece(SHORT_VECTORS))

    choose: Callable[[], None] = masked
    for k in (2, 4):
        if k < a.lanes:
            choose = partial(f.either, f.both(dense, f.test("eq", "%k", k)), partial(several, k), choose)
    choose()


def _keep_column(f: IRFunction, a: Arithmetic, sums: str, place: str) -> None:
    """A column of cells: one vector store where they are contiguous."""

    def together() -> None:
        f.store(a.vector, sums, place, a.bytes)

    def one_by_one() -> None:
        for row, total in enumerate(extract_lanes(f, a.kind, [sums], a.lanes, a.lanes)):
            store_cell(f, a, (total,), f.at(a.kind, place, f.mul("%row_p", row)))

    f.either(f.both(f.test("eq", "%row_p", 1), f.test("eq", "%onto", 0)), together, one_by_one)
