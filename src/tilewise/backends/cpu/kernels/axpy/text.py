"""`axpy`: rows of P are sums of rows of N, each times an element of M: BLAS's axpy, several at once.

A few rows and k of M are broadcast into registers; each vector of those rows of N is loaded once and accumulated onto
the rows of P, which stay in L1. N is read in a few long streams, nothing is packed, and no step depends on the one
before. A cell is summed in the order of k, however P is cut. A long k of few rows is split, and `reduce` adds the sums.

Complex numbers (`pairs`): N is read as a real matrix of twice the columns; the real and the imaginary part of an
element of M each have a sum, and the second is added to the first with neighbouring lanes exchanged.

Half precision: sums are float32 in a workspace and rounded once; where registers hold all of k, by the tiles
(`rounded`).
"""

from __future__ import annotations

from functools import partial
from itertools import product

from tilewise.algebra.to_llvm import vector
from tilewise.backends.cpu.kernels.axpy.model import HALF_DEPTH
from tilewise.backends.cpu.kernels.axpy.rounded import ROUNDED, rounding_functions
from tilewise.backends.cpu.kernels.packed.text import reduce_function, write_function, write_rows
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.convert import load
from tilewise.backends.cpu.kernels.shared.grid import split_evenly
from tilewise.backends.cpu.kernels.shared.job import ENTER, TASK_PARAMS, JobReader
from tilewise.backends.cpu.kernels.shared.masks import mask_below, masked_load, masked_store
from tilewise.backends.cpu.kernels.shared.pairs import folded
from tilewise.backends.cpu.kernels.shared.task import task_of
from tilewise.system.llvm_text import FunctionTable, IRFunction, module

# k per tile of one, two, three, four rows: what fits registers beside the sums and a row of N; by (registers, pairs)
DEPTHS = {(32, False): (8, 8, 7, 5), (32, True): (8, 6, 4, 2), (16, False): (8, 5, 3, 2), (16, True): (5, 2, 1, 1)}
HEIGHT, DEPTH = 4, 8
NARROW_ROWS = {(True, 1): 8, (True, 2): 6, (False, 1): 4, (False, 2): 2}  # by 32 registers, and vectors of columns
ONE_ROW = 4  # k per tile with multiply by lane (NEON): few, long streams, prefetched AHEAD bytes ahead
AHEAD = 512
CHUNK = 4 * HEIGHT  # rows of P that are completed before the next ones
NEAR = 2**15  # bytes of P that stay in L1 beside the rows of N
UNIT = 16  # the number of columns of a block is a multiple of it
TWICE = 8  # with at most this many elements of M the loop is unrolled to two vectors, to hide its overhead
LINE = 64  # bytes
PARAMS = "ptr M, i64 row_m, i64 col_m, ptr N, i64 row_n, ptr P, i64 row_p, i64 cols"
BLOCK = f"{PARAMS}, i64 rows, i64 k, i1 first"


def most_k(a: Arithmetic) -> tuple[int, ...]:
    """k per tile, by its rows."""
    most = DEPTHS[min(a.target.registers, 32), a.pairs]
    return (ONE_ROW, *most[1:]) if streams(a) else most


def streams(a: Arithmetic) -> bool:
    """Whether rows of N are prefetched, whole lines of each at a time."""
    return a.target.by_lane and a.fused


def axpy_module(a: Arithmetic) -> str:
    tiles = [
        _AxpyTile(a, rows, depth).function() for rows, most in enumerate(most_k(a), 1) for depth in range(1, most + 1)
    ]
    names = [
        f"axpy{rows}x{min(depth, most)}" for rows, most in enumerate(most_k(a), 1) for depth in range(1, DEPTH + 1)
    ]
    parts: list[IRFunction | FunctionTable] = [*tiles, FunctionTable("tiles", names)]
    parts += [_narrow(a, vectors) for vectors in (1, 2) if _has_narrow(a)]
    parts += [_edge(a), _block(a), write_function(a)]
    parts += [reduce_function(a), _enter(a)] if a.same_storage else rounding_functions(a)
    return module([*parts, _piece(a), _run(a)])


class _AxpyTile:
    """`rows` rows of P by `depth` k, all columns: at least a vector of them."""

    def __init__(self, a: Arithmetic, rows: int, depth: int) -> None:
        self.a, self.rows, self.depth = a, rows, depth
        self.f = f = IRFunction(f"axpy{rows}x{depth}", f"{PARAMS}, i1 first")
        self.quiets = a.quiets and a.target.has_fminnm
        self.render = a.renderer(f, a.lanes, quiet=self.quiets)
        self.elements = {(row, k): self.element(row, k) for row in range(rows) for k in range(depth)}
        # freeze keeps each address in a register: LLVM would derive one row from another by additions in the loop
        self.rows_n = [f.op(f"freeze ptr {f.at(a.element_n, '%N', f.mul('%row_n', k))}") for k in range(depth)]
        self.rows_p = [f.op(f"freeze ptr {f.at(a.kind, '%P', f.mul('%row_p', row))}") for row in range(rows)]

    def element(self, row: int, k: int) -> list[str]:
        """M[row, k] broadcast; of a pair its real and its imaginary part."""
        a, f = self.a, self.f
        place = f.at(a.element_m, "%M", f.mul("%row_m", row), f.mul("%col_m", k))
        found = []
        for number in range(2 if a.pairs else 1):
            (one,) = load(f, a.target, a.source_m, a.partial, f.at(a.element_m, place, number), 1)
            found.append(f.splat(a.kind, a.quiet(f, one, 1) if self.quiets else one, a.lanes))
        return found

    def function(self) -> IRFunction:
        self.f.either("%first", lambda: self.along(True), lambda: self.along(False))
        return self.f

    def along(self, fresh: bool) -> None:
        a, f, start = self.a, self.f, "0"
        several = LINE // a.target.vector_bytes if streams(a) and self.rows == 1 else 2
        for vectors in (several, 1) if self.rows * self.depth <= TWICE else (1,):
            stop = f.op(f"and i64 %cols, {-vectors * a.lanes}")
            with f.loop(start, stop, vectors * a.lanes) as j:
                if vectors > 2:
                    for line in self.rows_n:
                        f.prefetch(f.at("i8", f.at(a.element_n, line, j.index), AHEAD))
                for v in range(vectors):
                    self.cells(f.add(j.index, v * a.lanes), fresh)
            start = stop
        with f.when(f.test("slt", start, "%cols")):
            self.cells(f.sub("%cols", a.lanes), fresh, done=f.sub(a.lanes, f.sub("%cols", start)))

    def cells(self, j: str, fresh: bool, done: str = "") -> None:
        """A vector of each row of P; its first `done` lanes were stored before and stay."""
        a, f = self.a, self.f
        places = [f.at(a.kind, line, j) for line in self.rows_p]
        found = [load(f, a.target, a.source_n, a.partial, f.at(a.element_n, x, j), a.lanes)[0] for x in self.rows_n]
        ns = [a.quiet(f, x, a.lanes) if self.quiets else x for x in found]
        old_values = [f.load(a.vector, x, a.bytes) if done or not fresh else "" for x in places]
        # sums that round start at zero and are added to P once per tile: k / depth roundings of P's cell, not k
        apart = fresh or a.fused
        sums = [[a.zeros(a.lanes)[0] if apart else old] * len(self.elements[0, 0]) for old in old_values]
        for k in range(self.depth):
            for row in range(self.rows):
                for number, element in enumerate(self.elements[row, k]):
                    before = (sums[row][number],)
                    sums[row][number] = self.render.accumulate(a.add, a.mul, before, (element,), (ns[k],))[0]
        made = mask_below(f, done, a.lanes) if done else ""
        for parts, place, old in zip(sums, places, old_values, strict=True):
            total = folded(f, a, parts, a.lanes) if a.pairs else parts[0]
            if apart and not fresh:
                total = self.render.value(a.add, (old,), (total,))[0]
            if made:
                total = f.op(f"select <{a.lanes} x i1> {made}, {a.vector} {old}, {a.vector} {total}")
            f.store(a.vector, total, place, a.bytes)


def _narrow(a: Arithmetic, vectors: int) -> IRFunction:
    """Up to so many vectors of columns, of pairs: all sums of a few rows in registers, where they hide the latency of
    each other's steps; the last vector is masked."""
    f = IRFunction(f"narrow{vectors}", BLOCK)
    render, zero, before = a.renderer(f, a.lanes), a.zeros(a.lanes)[0], (vectors - 1) * a.lanes
    last, high = mask_below(f, f.sub("%cols", before), a.lanes), NARROW_ROWS[a.target.registers >= 32, vectors]
    bulk = f.sub("%rows", f.rem("%rows", high))

    def lanes_of(place: str) -> list[str]:
        whole = [f.load(a.vector, f.at(a.kind, place, v * a.lanes), a.bytes) for v in range(vectors - 1)]
        return [*whole, masked_load(f, a, f.at(a.kind, place, before), last)]

    def rows_from(i: str, rows: int) -> None:
        left = [f.at(a.element_m, "%M", f.mul(f.add(i, row), "%row_m")) for row in range(rows)]
        with f.loop(0, "%k", 1, [(a.vector, zero)] * (2 * rows * vectors)) as p:
            ns = lanes_of(f.at(a.element_n, "%N", f.mul(p.index, "%row_n")))
            for row, part in product(range(rows), range(2)):
                place = f.at(a.element_m, left[row], f.mul(p.index, "%col_m"), part)
                m = f.splat(a.kind, f.load(a.element_m, place, a.bytes), a.lanes)
                for v, n in enumerate(ns):
                    at = 2 * (row * vectors + v) + part
                    p.next[at] = render.accumulate(a.add, a.mul, (p.values[at],), (m,), (n,))[0]
        for row in range(rows):
            place = f.at(a.kind, "%P", f.mul(f.add(i, row), "%row_p"))
            sums = p.values[2 * row * vectors : 2 * (row + 1) * vectors]
            totals = [folded(f, a, sums[at : at + 2], a.lanes) for at in range(0, 2 * vectors, 2)]
            f.either("%first", partial(stored, place, totals), partial(added, place, totals))

    def added(place: str, totals: list[str]) -> None:
        sums = zip(lanes_of(place), totals, strict=True)
        stored(place, [render.value(a.add, (old,), (new,))[0] for old, new in sums])

    def stored(place: str, totals: list[str]) -> None:
        for v, total in enumerate(totals[:-1]):
            f.store(a.vector, total, f.at(a.kind, place, v * a.lanes), a.bytes)
        masked_store(f, a, totals[-1], f.at(a.kind, place, before), last)

    for start, stop, rows in (("0", bulk, high), (bulk, "%rows", 1)):
        with f.loop(start, stop, rows) as i:
            rows_from(i.index, rows)
    return f


def _few(f: IRFunction, a: Arithmetic, n: str, cols: str) -> str:
    """The function for some columns of a P that has n: a cell has one order of sums, however P is cut."""
    few = f.select(f.test("slt", cols, a.lanes), "ptr", "@edge", "@piece")
    if not _has_narrow(a):
        return few
    narrow = f.select(f.test("sle", cols, a.lanes), "ptr", "@narrow1", "@narrow2")
    return f.select(f.test("sle", n, 2 * a.lanes), "ptr", narrow, few)


def _has_narrow(a: Arithmetic) -> bool:
    return a.pairs and a.target.masks


def _edge(a: Arithmetic) -> IRFunction:
    """Fewer columns than a vector has lanes: element by element, or pair by pair."""
    f = IRFunction("edge", BLOCK)
    lanes = 2 if a.pairs else 1
    render, kind = a.renderer(f, lanes), vector(a.kind, lanes)
    with f.loop(0, "%rows") as i, f.loop(0, "%cols", lanes) as j:
        place = f.at(a.kind, "%P", f.mul(i.index, "%row_p"), j.index)
        old = f.load(kind, place, a.bytes)
        start = f.select("%first", kind, a.zeros(lanes)[0], old)
        rest = [(kind, a.zeros(lanes)[0])] if a.pairs else []
        with f.loop(0, "%k", 1, [(kind, start), *rest]) as p:
            x = f.at(a.element_m, "%M", f.mul(i.index, "%row_m"), f.mul(p.index, "%col_m"))
            y = f.at(a.element_n, "%N", f.mul(p.index, "%row_n"), j.index)
            n = load(f, a.target, a.source_n, a.partial, y, lanes)
            for number, total in enumerate(p.values):
                (m,) = load(f, a.target, a.source_m, a.partial, f.at(a.element_m, x, number), 1)
                m = f.splat(a.kind, m, lanes)
                p.next[number] = render.accumulate(a.add, a.mul, (total,), (m,), n)[0]
        f.store(kind, folded(f, a, p.values, lanes) if a.pairs else p.values[0], place, a.bytes)
    return f


def _block(a: Arithmetic) -> IRFunction:
    """A block of P that stays in L1: k in steps of a tile's depth, and for each all rows."""
    f = IRFunction("block", BLOCK)
    heights = split_evenly(f, "%rows", HEIGHT)
    most = str(most_k(a)[0])
    for high in range(2, HEIGHT + 1):
        most = f.select(f.test("sge", heights.larger, high), "i64", most_k(a)[high - 1], most)
    depths = split_evenly(f, "%k", most)
    with f.loop(0, depths.count, 1, [("i64", "0")]) as p:
        (k0,) = p.values
        depth = f.sub(depths.larger, f.op(f"zext i1 {f.test('sge', p.index, depths.larger_ones)} to i64"))
        first = f.both("%first", f.test("eq", k0, 0))
        N = f.at(a.element_n, "%N", f.mul(k0, "%row_n"))
        with f.loop(0, heights.count, 1, [("i64", "0")]) as i:
            (row,) = i.values
            rows = f.sub(heights.larger, f.op(f"zext i1 {f.test('sge', i.index, heights.larger_ones)} to i64"))
            M = f.at(a.element_m, "%M", f.mul(row, "%row_m"), f.mul(k0, "%col_m"))
            P = f.at(a.kind, "%P", f.mul(row, "%row_p"))
            number = f.add(f.mul(f.sub(rows, 1), DEPTH), f.sub(depth, 1))
            tile = f.load("ptr", f.at("ptr", "@tiles", number))
            f.do(
                f"call void {tile}(ptr {M}, i64 %row_m, i64 %col_m, ptr {N}, i64 %row_n, ptr {P}, i64 %row_p, "
                f"i64 %cols, i1 {first})"
            )
            i.next = [f.add(row, rows)]
        p.next = [f.add(k0, depth)]
    return f


def _piece(a: Arithmetic) -> IRFunction:
    """A task's rows and columns, block by block: columns outermost, so that N is read from cache. Where k fits one
    tile, P is written once, along its rows."""
    f = IRFunction("piece", BLOCK)
    once = f.test("sle", "%k", most_k(a)[-1])
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


def _enter(a: Arithmetic) -> IRFunction:
    """The entry for a product that is one task; its operands come as array objects."""
    f = IRFunction("enter", ENTER, public=True)
    M, N, P = f.data_of("M", "N", "P")
    m, k, n, row_m, col_m, row_n, row_p, onto = JobReader(f).fields(
        "m", "k", "n", "row_m", "col_m", "row_n", "row_p", "onto"
    )
    few = _few(f, a, n, n)
    f.invoke(f.op(f"freeze ptr {few}"), BLOCK, M=M, row_m=row_m, col_m=col_m, N=N, row_n=row_n, P=P, row_p=row_p,
        cols=n, rows=m, k=k, first=f.test("eq", onto, 0))  # fmt: skip
    return f


def _run(a: Arithmetic) -> IRFunction:
    """One task: a piece of one member's P, or all of its rows and a split of k, whose sums are stored separately. Half
    precision is summed in the workspace and rounded once."""
    f = IRFunction("run", TASK_PARAMS, public=True)
    job, t = JobReader(f), task_of(f, a, "mnk")
    n, task_n, onto, row_m, col_m, row_n, row_p = job.fields("n", "task_n", "onto", "row_m", "col_m", "row_n", "row_p")
    given = {
        "M": t.M,
        "row_m": row_m,
        "col_m": col_m,
        "N": t.N,
        "row_n": row_n,
        "cols": t.cols,
        "rows": t.rows,
        "k": t.depth,
    }
    few = _few(f, a, n, t.cols)
    if a.same_storage:
        shared = f.test("ne", job.field("reduce"), 0)
        P, row_p = f.select(shared, "ptr", t.sums, t.P), f.select(shared, "i64", n, row_p)
        first = f.op(f"or i1 {shared}, {f.test('eq', onto, 0)}")
        f.invoke(few, BLOCK, **given, P=P, row_p=row_p, first=first)
        return f

    def apart() -> None:
        f.invoke(few, BLOCK, **given, P=t.workspace, row_p=task_n, first="true")
        write_rows(f, t.workspace, task_n, t.P, row_p, t.rows, t.cols, onto)

    def straight() -> None:
        f.invoke("rounded", ROUNDED, **given, P=t.P, row_p=row_p, wide=t.workspace)

    wide, shallow = f.test("sge", t.cols, a.lanes), f.test("sle", t.depth, HALF_DEPTH)
    whole = f.both(f.test("eq", onto, 0), f.both(wide, shallow))
    f.either(whole, straight, apart)
    return f
