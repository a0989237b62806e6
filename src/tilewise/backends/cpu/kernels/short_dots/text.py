"""`short_dots`: M times a few columns of integers of one or two bytes, several k per 32-bit lane.

N's columns are copied to be contiguous along k. M is read in place by whole vectors: the last one ends with its row and
overlaps the one before, and the copied column is 0 where they overlap.
"""

from __future__ import annotations

from tilewise.algebra.dtypes import DType
from tilewise.algebra.to_llvm import scalar_kind, vector
from tilewise.backends.cpu.kernels.dots.lanes import horizontal_sums, store_cell
from tilewise.backends.cpu.kernels.dots.text import COPIED, ROWS, rows_function, widest
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.dot import dot
from tilewise.backends.cpu.kernels.shared.job import TASK_PARAMS, JobReader
from tilewise.backends.cpu.kernels.shared.task import task_of
from tilewise.system.llvm_text import FunctionTable, IRFunction, Operand, module

HIGH_BITS = "splat (i8 -128)"
PARAMS = "i64 k, ptr M, i64 row_m, ptr N, i64 column, ptr less, ptr P, i64 row_p, i64 col_p, i64 onto"

COPY, ROWS_OF = "ptr N, i64 row_n, i64 k, ptr to", f"{PARAMS}, i64 rows, i64 columns"


def short_dots_module(a: Arithmetic) -> str:
    dots = [_dot(a, rows, cols) for rows in range(1, ROWS + 1) for cols in range(1, widest(a) + 1)]
    return module(
        [
            *dots,
            FunctionTable("dots", [x.name for x in dots]),
            _copied(a),
            _less(a),
            rows_function(a, PARAMS, "i32"),
            _run(a),
        ]
    )


def cells(f: IRFunction, a: Arithmetic, source: DType, place: str, count: int) -> str:
    """Elements as they are packed into 32-bit words: bytes, or widened to 16 bits."""
    kind, cell = vector(scalar_kind(source), count), vector(f"i{32 // a.k_pack}", count)
    raw = f.load(kind, place, source.itemsize)
    return raw if kind == cell else f.op(f"{'sext' if source.kind == 'i' else 'zext'} {kind} {raw} to {cell}")


def sign_flipped(f: IRFunction, a: Arithmetic, found: str, count: int) -> str:
    """Bytes with flipped sign bits (+128) where the instruction needs an unsigned operand."""
    return f.op(f"xor {vector('i8', count)} {found}, {HIGH_BITS}") if a.compensates else found


def as_words(f: IRFunction, a: Arithmetic, found: str) -> str:
    return f.op(f"bitcast {vector(f'i{32 // a.k_pack}', a.k_pack * a.lanes)} {found} to {a.vector}")


def _dot(a: Arithmetic, rows: int, columns: int) -> IRFunction:
    """rows × columns dot products of length k; copied columns are `column` words apart."""
    f = IRFunction(f"dot{rows}x{columns}", PARAMS)
    places = [(row, col) for row in range(rows) for col in range(columns)]
    unroll, each = 2 if len(places) < 8 else 1, a.k_pack * a.lanes
    ms = [f.at(a.element_m, "%M", f.mul("%row_m", row)) for row in range(rows)]
    ns = [f.at("i32", "%N", f.mul("%column", col)) for col in range(columns)]

    def step(sums: list[str], k: str, number: Operand) -> list[str]:
        """Add one vector of each row and column: M's from k on, N's by its number."""
        found = [cells(f, a, a.source_m, f.at(a.element_m, m, k), each) for m in ms]
        x = [as_words(f, a, sign_flipped(f, a, one, each)) for one in found]
        y = [f.load(a.vector, f.at(a.vector, n, number), 4) for n in ns]
        return [dot(f, a, total, x[row], y[col]) for total, (row, col) in zip(sums, places, strict=True)]

    whole = f.div("%k", each)
    bulk = f.mul(f.div(whole, unroll), unroll)
    with f.loop(0, bulk, unroll, [(a.vector, "zeroinitializer")] * (len(places) * unroll)) as loop:
        sums = list(loop.values)
        for u in range(unroll):
            number = f.add(loop.index, u)
            sums[u::unroll] = step(sums[u::unroll], f.mul(number, each), number)
        loop.next = sums
    totals = list(loop.values)
    if unroll > 1:
        totals = [f.op(f"add {a.vector} {x}, {y}") for x, y in zip(totals[::2], totals[1::2], strict=True)]
    with f.loop(bulk, whole, 1, [(a.vector, total) for total in totals]) as odd:
        odd.next = step(list(odd.values), f.mul(odd.index, each), odd.index)
    with f.loop(f.mul(whole, each), "%k", each, [(a.vector, total) for total in odd.values]) as last:
        last.next = step(list(last.values), f.sub("%k", each), whole)
    for total, (row, col) in zip(horizontal_sums(f, a, last.values), places, strict=True):
        if a.compensates:
            less = f.load("i32", f.at("i32", "%less", col))
            total = f.op(f"sub i32 {total}, {less}")
        store_cell(f, a, (total,), f.at(a.element_p, "%P", f.mul("%row_p", row), f.mul("%col_p", col)))
    return f


def _copied(a: Arithmetic) -> IRFunction:
    """Copy a column of N into contiguous words; a partial last vector begins with zeros."""
    f = IRFunction("copied", COPY)
    each, cell = a.k_pack * a.lanes, f"i{32 // a.k_pack}"
    whole = f.mul(f.div("%k", each), each)
    shift = f.sub(each, f.sub("%k", whole))  # offset of the elements of the last vector

    def one_by_one(start: str, stop: str, later: str, count: int) -> None:
        with f.loop(start, stop, count) as i:
            rows = [i.index, *(f.add(i.index, more) for more in range(1, count))]
            found = [cells(f, a, a.source_n, f.at(a.element_n, "%N", f.mul(row, "%row_n")), 1) for row in rows]
            for row, element in zip(rows, found, strict=True):
                f.store(cell, element, f.at(cell, "%to", row, later))

    def side_by_side() -> None:
        with f.loop(0, whole, each) as i:
            found = as_words(f, a, cells(f, a, a.source_n, f.at(a.element_n, "%N", i.index), each))
            f.store(a.vector, found, f.at(cell, "%to", i.index), 4)

    f.either(f.test("eq", "%row_n", 1), side_by_side, lambda: one_by_one("0", whole, "0", COPIED))
    with f.when(f.test("slt", whole, "%k")):
        f.store(a.vector, "zeroinitializer", f.at(cell, "%to", whole), 4)
        one_by_one(whole, "%k", shift, 1)
    return f


def _less(a: Arithmetic) -> IRFunction:
    """The compensation: 128 times the sum of a copied column, the excess of an M with +128."""
    f = IRFunction("less", "ptr column, i64 words", result="i32")
    if not a.compensates:
        f.do("ret i32 0")
        return f
    high = f.op(f"bitcast {vector('i8', 4 * a.lanes)} {HIGH_BITS} to {a.vector}")
    with f.loop(0, "%words", a.lanes, [(a.vector, "zeroinitializer")]) as i:
        found = f.load(a.vector, f.at("i32", "%column", i.index), 4)
        i.next = [dot(f, a, i.values[0], high, found)]
    f.do(f"ret i32 {horizontal_sums(f, a, i.values)[0]}")
    return f


def _run(a: Arithmetic) -> IRFunction:
    """One task: a range of rows."""
    f = IRFunction("run", TASK_PARAMS, public=True)
    job, t = JobReader(f), task_of(f, a, "m")
    row_m, row_n, col_n, row_p, col_p, onto = job.fields("row_m", "row_n", "col_n", "row_p", "col_p", "onto")
    k, n, space = t.depth, t.cols, t.workspace
    each = a.k_pack * a.lanes
    column = f.mul(f.div(f.add(k, each - 1), each), a.lanes)
    less = f.at("i32", space, f.mul(column, n))
    with f.loop(0, n) as j:
        to = f.at("i32", space, f.mul(j.index, column))
        source = f.at(a.element_n, t.N, f.mul(j.index, col_n))
        f.invoke("copied", COPY, N=source, row_n=row_n, k=k, to=to)
        more = f.op(f"call i32 @less(ptr {to}, i64 {column})")
        f.store("i32", more, f.at("i32", less, j.index))
    f.invoke("rows", ROWS_OF, k=k, M=t.M, row_m=row_m, N=space, column=column, less=less, P=t.P, row_p=row_p,
        col_p=col_p, onto=onto, rows=t.rows, columns=n)  # fmt: skip
    return f
