"""`axpy`: rows of P are sums of rows of N, each times an element of M: BLAS's axpy, several at once.

A few rows of M by a few k stay in registers, an element in every lane; a vector of each of those rows of N comes, and
what it makes is added onto rows of P, which lie in the first cache meanwhile. N is read in a few long streams, nothing
is packed, and no step waits for another. A cell is added up in the order of k, whatever the cut.

Sums of half precision are made apart and rounded once, or where registers hold all of k by their tiles (`rounded`).
"""

from __future__ import annotations

from tilewise.backends.cpu.kernels.axpy.model import HALF_DEPTH
from tilewise.backends.cpu.kernels.axpy.rounded import rounding_functions
from tilewise.backends.cpu.kernels.packed.text import write_function, write_rows
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.convert import load
from tilewise.backends.cpu.kernels.shared.grid import split_evenly
from tilewise.backends.cpu.kernels.shared.job import TASK_PARAMS, JobReader
from tilewise.backends.cpu.kernels.shared.masks import mask_below
from tilewise.system.llvm_text import FunctionTable, IRFunction, module

DEPTHS = (8, 8, 7, 5)  # k at a time, of one row, two, three, four: what registers hold beside sums and a row of N
HEIGHT, DEPTH = len(DEPTHS), max(DEPTHS)
CHUNK = 4 * HEIGHT  # rows that are finished before the next ones
NEAR = 2**15  # bytes of P that lie in the first cache beside what comes of N
UNIT = 16  # columns that a block is a multiple of
TWICE = 8  # elements of M up to which a round makes two vectors: else the loop's own instructions count
PARAMS = "ptr M, i64 row_m, i64 col_m, ptr N, i64 row_n, ptr P, i64 row_p, i64 cols"
BLOCK = f"{PARAMS}, i64 rows, i64 k, i1 first"


def axpy_module(a: Arithmetic) -> str:
    tiles = [
        _AxpyTile(a, rows, deep).function() for rows in range(1, HEIGHT + 1) for deep in range(1, DEPTHS[rows - 1] + 1)
    ]
    names = [f"axpy{rows}x{min(deep, most)}" for rows, most in enumerate(DEPTHS, 1) for deep in range(1, DEPTH + 1)]
    apart = [] if a.same_storage else [write_function(a), *rounding_functions(a)]
    return module([*tiles, FunctionTable("tiles", names), _edge(a), _block(a), *apart, _piece(a), _run(a)])


class _AxpyTile:
    """So many rows of P and k, all columns: at least a vector of them."""

    def __init__(self, a: Arithmetic, rows: int, deep: int) -> None:
        self.a, self.rows, self.deep = a, rows, deep
        self.f = f = IRFunction(f"axpy{rows}x{deep}", f"{PARAMS}, i1 first")
        self.quiets = a.quiets and a.target.min_number
        self.render = a.renderer(f, a.lanes, quiet=self.quiets)
        self.elements = {(row, k): self.element(row, k) for row in range(rows) for k in range(deep)}
        # a register each: left to itself, LLVM would go from row to row by additions in the loop
        self.rows_n = [f.op(f"freeze ptr {f.at(a.element_n, '%N', f.mul('%row_n', k))}") for k in range(deep)]
        self.rows_p = [f.op(f"freeze ptr {f.at(a.kind, '%P', f.mul('%row_p', row))}") for row in range(rows)]

    def element(self, row: int, k: int) -> str:
        a, f = self.a, self.f
        place = f.at(a.element_m, "%M", f.mul("%row_m", row), f.mul("%col_m", k))
        (one,) = load(f, a.target, a.source_m, a.partial, place, 1)
        return f.splat(a.kind, a.quiet(f, one, 1) if self.quiets else one, a.lanes)

    def function(self) -> IRFunction:
        self.f.either("%first", lambda: self.along(True), lambda: self.along(False))
        return self.f

    def along(self, fresh: bool) -> None:
        a, f, start = self.a, self.f, "0"
        for vectors in (2, 1) if self.rows * self.deep <= TWICE else (1,):
            stop = f.op(f"and i64 %cols, {-vectors * a.lanes}")
            with f.loop(start, stop, vectors * a.lanes) as j:
                for v in range(vectors):
                    self.cells(f.add(j.index, v * a.lanes), fresh)
            start = stop
        with f.when(f.test("slt", start, "%cols")):
            self.cells(f.sub("%cols", a.lanes), fresh, done=f.sub(a.lanes, f.sub("%cols", start)))

    def cells(self, j: str, fresh: bool, done: str = "") -> None:
        """A vector of each row of P; its first `done` lanes are made already, and stay."""
        a, f = self.a, self.f
        places = [f.at(a.kind, line, j) for line in self.rows_p]
        found = [load(f, a.target, a.source_n, a.partial, f.at(a.element_n, x, j), a.lanes)[0] for x in self.rows_n]
        ns = [a.quiet(f, x, a.lanes) if self.quiets else x for x in found]
        olds = [f.load(a.vector, x, a.bytes) if done or not fresh else "" for x in places]
        sums = [a.zeros(a.lanes) if fresh else (old,) for old in olds]
        for k in range(self.deep):
            sums = [
                self.render.accumulate(a.add, a.mul, total, (self.elements[row, k],), (ns[k],))
                for row, total in enumerate(sums)
            ]
        made = mask_below(f, done, a.lanes) if done else ""
        for (total,), place, old in zip(sums, places, olds, strict=True):
            if made:
                total = f.op(f"select <{a.lanes} x i1> {made}, {a.vector} {old}, {a.vector} {total}")
            f.store(a.vector, total, place, a.bytes)


def _edge(a: Arithmetic) -> IRFunction:
    """Fewer columns than a vector has lanes: one by one."""
    f = IRFunction("edge", BLOCK)
    render = a.renderer(f, 1)
    with f.loop(0, "%rows") as i, f.loop(0, "%cols") as j:
        place = f.at(a.kind, "%P", f.mul(i.index, "%row_p"), j.index)
        old = f.load(a.kind, place, a.bytes)
        start = f.select("%first", a.kind, a.zeros(1)[0], old)
        with f.loop(0, "%k", 1, [(a.kind, start)]) as p:
            x = f.at(a.element_m, "%M", f.mul(i.index, "%row_m"), f.mul(p.index, "%col_m"))
            y = f.at(a.element_n, "%N", f.mul(p.index, "%row_n"), j.index)
            both = load(f, a.target, a.source_m, a.partial, x, 1), load(f, a.target, a.source_n, a.partial, y, 1)
            p.next = list(render.accumulate(a.add, a.mul, (p.values[0],), *both))
        f.store(a.kind, p.values[0], place, a.bytes)
    return f


def _block(a: Arithmetic) -> IRFunction:
    """Some cells of P, which the first cache holds: all of k, a few at a time, and for each all rows."""
    f = IRFunction("block", BLOCK)
    heights = split_evenly(f, "%rows", HEIGHT)
    most = str(DEPTHS[0])
    for high in range(2, HEIGHT + 1):
        most = f.select(f.test("sge", heights.larger, high), "i64", DEPTHS[high - 1], most)
    depths = split_evenly(f, "%k", most)
    with f.loop(0, depths.count, 1, [("i64", "0")]) as p:
        (k0,) = p.values
        deep = f.sub(depths.larger, f.op(f"zext i1 {f.test('sge', p.index, depths.larger_ones)} to i64"))
        first = f.both("%first", f.test("eq", k0, 0))
        N = f.at(a.element_n, "%N", f.mul(k0, "%row_n"))
        with f.loop(0, heights.count, 1, [("i64", "0")]) as i:
            (row,) = i.values
            rows = f.sub(heights.larger, f.op(f"zext i1 {f.test('sge', i.index, heights.larger_ones)} to i64"))
            M = f.at(a.element_m, "%M", f.mul(row, "%row_m"), f.mul(k0, "%col_m"))
            P = f.at(a.kind, "%P", f.mul(row, "%row_p"))
            number = f.add(f.mul(f.sub(rows, 1), DEPTH), f.sub(deep, 1))
            tile = f.load("ptr", f.at("ptr", "@tiles", number))
            f.do(
                f"call void {tile}(ptr {M}, i64 %row_m, i64 %col_m, ptr {N}, i64 %row_n, ptr {P}, i64 %row_p, "
                f"i64 %cols, i1 {first})"
            )
            i.next = [f.add(row, rows)]
        p.next = [f.add(k0, deep)]
    return f


def _piece(a: Arithmetic) -> IRFunction:
    """A task's rows and columns, block by block: columns before rows, so that N is read from near. Where k is so
    shallow that P is written once, along its rows."""
    f = IRFunction("piece", BLOCK)
    once = f.test("sle", "%k", DEPTHS[-1])
    chunk = f.select(once, "i64", "%rows", CHUNK)
    near = f.div(NEAR // (a.bytes * UNIT), f.lower(chunk, "%rows"))
    units = f.div(f.add("%cols", UNIT - 1), UNIT)
    parts = split_evenly(f, units, f.select(once, "i64", units, near))
    with f.loop(0, parts.count, 1, [("i64", "0")]) as b:
        (j,) = b.values
        units = f.sub(parts.larger, f.op(f"zext i1 {f.test('sge', b.index, parts.larger_ones)} to i64"))
        wide = f.lower(f.mul(units, UNIT), f.sub("%cols", j))
        with f.loop(0, "%rows", chunk) as i:
            M, N = f.at(a.element_m, "%M", f.mul(i.index, "%row_m")), f.at(a.element_n, "%N", j)
            P = f.at(a.kind, "%P", f.mul(i.index, "%row_p"), j)
            rows = f.lower(f.sub("%rows", i.index), chunk)
            rest = f"i64 %row_p, i64 {wide}, i64 {rows}, i64 %k, i1 %first)"
            f.do(f"call void @block(ptr {M}, i64 %row_m, i64 %col_m, ptr {N}, i64 %row_n, ptr {P}, {rest}")
        b.next = [f.add(j, wide)]
    return f


def _run(a: Arithmetic) -> IRFunction:
    """One task: a piece of one member's P. Sums of half precision are made apart, and rounded once."""
    f = IRFunction("run", TASK_PARAMS, public=True)
    job = JobReader(f)
    m, k, n, task_m, task_n = job.fields("m", "k", "n", "task_m", "task_n")
    tasks_m, tasks_n, onto = job.fields("tasks_m", "tasks_n", "onto")
    row_m, col_m, row_n, row_p = job.fields("row_m", "col_m", "row_n", "row_p")
    rest = f.div("%task", tasks_m)
    member, i0, j0 = f.div(rest, tasks_n), f.mul(f.rem("%task", tasks_m), task_m), f.mul(f.rem(rest, tasks_n), task_n)
    rows, cols = f.lower(f.sub(m, i0), task_m), f.lower(f.sub(n, j0), task_n)
    M = f.at(a.element_m, job.member_of_stack("M", "at_m", member, a.source_m.itemsize), f.mul(i0, row_m))
    N = f.at(a.element_n, job.member_of_stack("N", "at_n", member, a.source_n.itemsize), j0)
    P = f.at(a.element_p, job.member_of_stack("P", "at_p", member, a.result.itemsize), f.mul(i0, row_p), j0)
    operands = f"ptr {M}, i64 {row_m}, i64 {col_m}, ptr {N}, i64 {row_n}"
    few = f.select(f.test("slt", cols, a.lanes), "ptr", "@edge", "@piece")
    if a.same_storage:
        first = f.test("eq", onto, 0)
        f.do(f"call void {few}({operands}, ptr {P}, i64 {row_p}, i64 {cols}, i64 {rows}, i64 {k}, i1 {first})")
        return f

    sums = f.at("i8", job.pointer("workspace"), f.mul("%worker", job.field("workspace_bytes")))

    def apart() -> None:
        f.do(f"call void {few}({operands}, ptr {sums}, i64 {task_n}, i64 {cols}, i64 {rows}, i64 {k}, i1 true)")
        write_rows(f, sums, task_n, P, row_p, rows, cols, onto)

    def straight() -> None:
        f.do(f"call void @rounded({operands}, ptr {P}, i64 {row_p}, i64 {cols}, i64 {rows}, i64 {k}, ptr {sums})")

    wide, shallow = f.test("sge", cols, a.lanes), f.test("sle", k, HALF_DEPTH)
    whole = f.both(f.test("eq", onto, 0), f.both(wide, shallow))
    f.either(whole, straight, apart)
    return f
