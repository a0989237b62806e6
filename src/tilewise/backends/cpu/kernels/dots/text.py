"""`dots`: M times a few columns, both contiguous along k: tiles of a few rows and columns of dot products.

Lanes of a sum hold different k and are summed horizontally at the end; lanes past the end of k are masked. Where a tile
of P has fewer columns than half a vector, this costs less than broadcasting M's elements. A single cell of P, and cells
that no tile takes (two dtypes, steps that call the C library), are computed one by one (`one`). A long k is split, and
`reduce` adds the sums. With a k of a vector or two, many rows are summed together (`short`).

Complex numbers are multiplied in place, and every column of N counts twice: as it is, and with the parts of its
elements exchanged. The first gives real parts, with its odd lanes negated, the second imaginary ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tilewise.algebra.dtypes import DType
from tilewise.algebra.to_llvm import Renderer, part, vector
from tilewise.backends.cpu.kernels.dots.lanes import extract_lanes, horizontal_sums, reduce_vectors, size_of, store_cell
from tilewise.backends.cpu.kernels.dots.model import in_pairs, shortest, tiled, widens
from tilewise.backends.cpu.kernels.dots.one import members_function, one_function
from tilewise.backends.cpu.kernels.dots.short import CELLS, short_function
from tilewise.backends.cpu.kernels.packed.text import reduce_function, write_function
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.convert import load, narrow, store, widen
from tilewise.backends.cpu.kernels.shared.job import ENTER, TASK_PARAMS, JobReader
from tilewise.backends.cpu.kernels.shared.masks import mask_below, masked_source
from tilewise.backends.cpu.kernels.shared.task import task_of
from tilewise.system.llvm_text import FunctionTable, IRFunction, module

More = Callable[[str, str | None, str, list[str]], list[str]]

ROWS = 4  # at most per tile
# NEON, one column: bytes of M from which one row at a time, by STREAM vectors, is faster than four: from memory 1387
# rows of 185 float64 took 0.22 ms by fours and 0.13, 2515 of 1283 float32 1.04 and 0.76; from L2 four are up to a tenth
# faster. NEAR, NEARER: bytes of the column, which every row reads again, for an M beyond FARTHER and below
FAR, STREAM = 3 * 2**18, 4
FARTHER, NEAR, NEARER = 2**23, 2**15, 2**14
COPIED = 4  # elements of a column of N copied per round
PARAMS = "i64 k, ptr M, i64 row_m, ptr N, i64 column, ptr P, i64 row_p, i64 col_p, i64 unrounded, i64 onto"

PIECE = "ptr job, i64 rows, i64 k, ptr M, ptr N, ptr P, i64 row_p, i64 col_p, i64 unrounded, i64 onto, ptr space"
COPY_COLUMNS = "ptr N, i64 row_n, i64 col_n, i64 k, i64 n, ptr to"


def widest(a: Arithmetic) -> int:
    """Columns per tile: their sums and their vectors of N stay in registers."""
    return (4 if a.target.registers >= 32 else 2) // (2 if in_pairs(a) else 1)


def size_in_P(f: IRFunction, a: Arithmetic) -> str:
    """Bytes between cells of P, or of a buffer of unrounded sums."""
    return f.select(f.test("eq", "%unrounded", 0), "i64", a.result.itemsize, a.parts * a.bytes)


def columns_of(a: Arithmetic) -> tuple[str, DType]:
    """LLVM type and dtype of N's columns as tiles read them: half precision widened, others as stored."""
    if a.same_storage:
        return a.element_n, a.source_n
    return (f"i{8 * a.source_n.itemsize}", a.source_n) if in_pairs(a) or not tiled(a) else (a.kind, a.partial)


def dots_module(a: Arithmetic) -> str:
    parts: list[IRFunction | FunctionTable] = [
        one_function(a, "one", a.lanes),
        one_function(a, "one_apart", 1),
        _cells(a),
        short_function(a),
    ]
    if tiled(a):
        columns = range(1, widest(a) + 1)
        dots = [_dot(a, rows, cols) for rows in range(1, ROWS + 1) for cols in columns]
        parts += [
            *dots,
            FunctionTable("dots", [dot.name for dot in dots]),
            rows_function(a, PARAMS, size_of(columns_of(a)[1])),
        ]
        parts += [_dot(a, 1, 1, STREAM), _stream(a)] if a.target.by_lane else []
    entries = [
        _piece(a),
        members_function(a),
        _rows_or_k_split(a),
        _run(a),
        _enter(),
        write_function(a),
        reduce_function(a),
    ]
    return module([*parts, _copy_columns(a), *entries])


def _dot(a: Arithmetic, rows: int, columns: int, vectors_at_once: int = 0) -> IRFunction:
    """rows × columns dot products of length k; N's columns are `column` elements apart."""
    f = IRFunction(f"dot{rows}x{columns}" + "_far" * bool(vectors_at_once), PARAMS)
    wide = Renderer(f, part(a.partial), a.lanes) if in_pairs(a) else a.renderer(f, a.lanes, quiet=quiets(a))
    times = 2 if in_pairs(a) else 1  # vectors per column of N
    cells = [(row, col) for row in range(rows) for col in range(columns * times)]
    # hides the latency of an addition
    unroll = vectors_at_once or (2 if len(cells) < 8 else 1)
    ms = [f.at(size_of(a.source_m), "%M", f.mul("%row_m", row)) for row in range(rows)]
    ns = [f.at(size_of(columns_of(a)[1]), "%N", f.mul("%column", col)) for col in range(columns)]
    k, step = f.mul("%k", times), unroll * a.lanes
    bulk = f.mul(f.div(k, step), step)
    with f.loop(0, bulk, step, [(a.vector, a.zeros(a.lanes)[0])] * (len(cells) * unroll)) as loop:
        sums = list(loop.values)
        for u in range(unroll):
            x, y = _vectors(f, a, ms, ns, f.add(loop.index, u * a.lanes), None)
            for i, (row, col) in enumerate(cells):
                at = i * unroll + u
                sums[at] = wide.accumulate(a.add, a.mul, (sums[at],), (x[row],), (y[col],))[0]
        loop.next = sums
    totals = list(loop.values)
    while len(totals) > len(cells):
        both = zip(totals[::2], totals[1::2], strict=True)
        totals = [wide.value(a.add, (one,), (other,))[0] for one, other in both]

    def more(at: str, loaded: str | None, counted: str, totals: list[str]) -> list[str]:
        """Add the vectors at k = `at`, in the lanes that are `counted`."""
        x, y = _vectors(f, a, ms, ns, at, loaded)
        following = []
        for total, (row, col) in zip(totals, cells, strict=True):
            new = wide.accumulate(a.add, a.mul, (total,), (x[row],), (y[col],))[0]
            following.append(f.op(f"select <{a.lanes} x i1> {counted}, {a.vector} {new}, {a.vector} {total}"))
        return following

    totals = _to_the_end(f, a, k, bulk, totals, more)
    places = [
        f.at("i8", "%P", f.mul(size_in_P(f, a), f.add(f.mul("%row_p", row), f.mul("%col_p", col))))
        for row in range(rows)
        for col in range(columns)
    ]
    if in_pairs(a):
        _keep_pairs(f, a, totals, places)
    elif a.same_storage and not a.target.masks and columns % a.lanes == 0:
        _keep_rows(f, a, totals, places)
    elif a.same_storage:
        for total, place in zip(horizontal_sums(f, a, totals), places, strict=True):
            store_cell(f, a, (total,), place)
    else:
        _keep_rounded(f, a, totals, places)
    return f


def quiets(a: Arithmetic) -> bool:
    """Whether signalling NaN is quieted once per vector, not once per step."""
    return a.quiets and a.target.has_fminnm


def _vectors(
    f: IRFunction, a: Arithmetic, ms: list[str], ns: list[str], at: str, mask: str | None
) -> tuple[list[str], list[str]]:
    """A vector of each row of M and each column of N; columns of pairs also with their parts exchanged."""

    def fetch(source: DType, start: str) -> str:
        place = f.at(size_of(part(source)), start, at)
        if mask:
            found = masked_source(f, a, a.partial if in_pairs(a) else source, place, mask)
        elif in_pairs(a):
            found = f.load(a.vector, place, a.bytes)
        else:
            found = load(f, a.target, source, a.partial, place, a.lanes)[0]
        return a.quiet(f, found, a.lanes) if quiets(a) else found

    columns = [fetch(columns_of(a)[1], n) for n in ns]
    if in_pairs(a):
        exchange = [lane ^ 1 for lane in range(a.lanes)]
        columns = [x for n in columns for x in (n, f.shuffle(a.vector, n, "poison", exchange))]
    return [fetch(a.source_m, m) for m in ms], columns


def _keep_pairs(f: IRFunction, a: Arithmetic, totals: list[str], places: list[str]) -> None:
    """Complex cells from two sums each: real parts, whose odd lanes are negated, and imaginary parts."""
    odd = [lane + a.lanes * (lane % 2) for lane in range(a.lanes)]
    for number, total in enumerate(totals[::2]):
        totals[2 * number] = f.shuffle(a.vector, total, f.op(f"fneg {a.vector} {total}"), odd)
    sums = horizontal_sums(f, replace(a, partial=part(a.partial)), totals)
    for real, imaginary, place in zip(sums[::2], sums[1::2], places, strict=True):
        store_cell(f, a, (real, imaginary), place, unrounded=True)


def _to_the_end(f: IRFunction, a: Arithmetic, k: str, bulk: str, totals: list[str], more: More) -> list[str]:
    """The sums plus the remainder of k from `bulk` on, in lanes that are counted."""
    start = bulk
    if not a.target.masks:  # the last vector overlaps the one before, unless k is shorter than one
        start = f.select(f.test("sge", k, a.lanes), "i64", k, bulk)
        with f.loop(bulk, start, a.lanes, [(a.vector, total) for total in totals]) as last:
            back = f.lower(last.index, f.sub(k, a.lanes))
            before = mask_below(f, f.sub(last.index, back), a.lanes)
            counted = f.op(f"xor <{a.lanes} x i1> {before}, splat (i1 true)")
            last.next = more(back, None, counted, list(last.values))
        totals = list(last.values)
    with f.loop(start, k, a.lanes, [(a.vector, total) for total in totals]) as tail:
        mask = mask_below(f, f.sub(k, tail.index), a.lanes)
        tail.next = more(tail.index, mask, mask, list(tail.values))
    return list(tail.values)


def _keep_rows(f: IRFunction, a: Arithmetic, totals: list[str], places: list[str]) -> None:
    """Cells of whole vectors: one store per vector where they are contiguous."""
    left, lanes = reduce_vectors(f, a, totals)

    def one_by_one() -> None:
        for total, place in zip(extract_lanes(f, a.kind, left, lanes, len(places)), places, strict=True):
            store_cell(f, a, (total,), place)

    def rows() -> None:
        for total, place in zip(left, places[::lanes], strict=True):
            f.store(vector(a.kind, lanes), total, place, a.bytes)

    fresh = f.both(f.test("eq", "%onto", 0), f.test("eq", "%col_p", 1))
    f.either(fresh, rows, one_by_one)


def _keep_rounded(f: IRFunction, a: Arithmetic, totals: list[str], places: list[str]) -> None:
    """The same for half precision: whole vectors are rounded before their lanes are extracted."""
    left, lanes = reduce_vectors(f, a, totals)

    def onto() -> None:
        for total, place in zip(extract_lanes(f, a.kind, left, lanes, len(places)), places, strict=True):
            old = load(f, a.target, a.result, a.partial, place, 1)
            store(f, a.target, a.partial, a.result, a.renderer(f, 1).value(a.add, old, (total,)), place, 1)

    def fresh() -> None:
        rounded = [narrow(f, a.target, a.partial, a.result, x, lanes, clear=a.fused) for x in left]
        for cell, place in zip(extract_lanes(f, a.element_p, rounded, lanes, len(places)), places, strict=True):
            f.store(a.element_p, cell, place, a.result.itemsize)

    f.either(f.test("ne", "%onto", 0), onto, fresh)


def rows_function(a: Arithmetic, tile: str, size_n: str) -> IRFunction:
    """Some rows of P, all columns, by tiles of up to ROWS rows and as many columns as registers allow. `tile`: the
    signature of the tiles in the module's table; `less`, if it is a parameter, has an i32 per column."""
    f = IRFunction("rows", f"{tile}, i64 rows, i64 columns")
    most, size_p = widest(a), size_in_P(f, a) if "unrounded" in tile else str(a.result.itemsize)
    with f.loop(0, "%rows", ROWS) as i, f.loop(0, "%columns", most) as j:
        height, width = f.lower(f.sub("%rows", i.index), ROWS), f.lower(f.sub("%columns", j.index), most)
        M = f.at(size_of(a.source_m), "%M", f.mul(i.index, "%row_m"))
        N = f.at(size_n, "%N", f.mul(j.index, "%column"))
        less = {"less": f.at("i32", "%less", j.index)} if "ptr less" in tile else {}
        P = f.at("i8", "%P", f.mul(size_p, f.add(f.mul(i.index, "%row_p"), f.mul(j.index, "%col_p"))))
        place = f.at("ptr", "@dots", f.add(f.mul(f.sub(height, 1), most), f.sub(width, 1)))
        f.invoke(f.load("ptr", place), tile, M=M, N=N, P=P, **less)
    return f


def _stream(a: Arithmetic) -> IRFunction:
    """Some rows of one column of P, one after the other: M is read from memory as one stream."""
    f = IRFunction("stream", f"{PARAMS}, i64 rows")
    with f.loop(0, "%rows") as i:
        M, P = f.at(a.element_m, "%M", f.mul(i.index, "%row_m")), f.at(a.element_p, "%P", f.mul(i.index, "%row_p"))
        f.invoke("dot1x1_far", PARAMS, M=M, P=P)
    return f


def _cells(a: Arithmetic) -> IRFunction:
    """Some rows of P, all columns, a cell at a time; N's elements are `row_n` and its columns `column` apart."""
    f = IRFunction("cells", CELLS)
    side_by_side = f.both(f.test("eq", "%col_m", 1), f.test("eq", "%row_n", 1))
    size_m, size_n, size_p = size_of(a.source_m), size_of(a.source_n), size_in_P(f, a)
    with f.loop(0, "%rows") as i, f.loop(0, "%columns") as j:
        M, N = f.at(size_m, "%M", f.mul(i.index, "%row_m")), f.at(size_n, "%N", f.mul(j.index, "%column"))
        P = f.at("i8", "%P", f.mul(size_p, f.add(f.mul(i.index, "%row_p"), f.mul(j.index, "%col_p"))))
        operands = f"i64 %k, ptr {M}, i64 %col_m, ptr {N}, i64 %row_n, ptr {P}, i64 %unrounded, i64 %onto"
        name = f.select(side_by_side, "ptr", "@one", "@one_apart")
        f.do(f"call void {name}({operands})")
    return f


def _copy_columns(a: Arithmetic) -> IRFunction:
    """Copy N's columns to be contiguous along k; half precision is widened."""
    f = IRFunction("copy_columns", COPY_COLUMNS)
    bulk, (kind, dtype) = f.op(f"and i64 %k, {-COPIED}"), columns_of(a)
    widens = tiled(a) and not in_pairs(a)
    element = a.element_n if widens else kind
    align = part(a.source_n).itemsize
    with f.loop(0, "%n") as j:
        source, place = f.at(element, "%N", f.mul(j.index, "%col_n")), f.at(kind, "%to", f.mul(j.index, "%k"))
        for start, stop, count in (("0", bulk, COPIED), (bulk, "%k", 1)):
            with f.loop(start, stop, count) as i:
                rows = [i.index, *(f.add(i.index, more) for more in range(1, count))]
                places = [f.at(element, source, f.mul(row, "%row_n")) for row in rows]
                found = [f.load(element, x, align) for x in places]
                if widens:
                    found = [widen(f, a.target, a.source_n, dtype, x, 1)[0] for x in found]
                for row, x in zip(rows, found, strict=True):
                    f.store(kind, x, f.at(kind, place, row), align)
    return f


def _run(a: Arithmetic) -> IRFunction:
    """One task: some members of a stack of single cells; else some rows of a member, or a stretch of its k."""
    f = IRFunction("run", TASK_PARAMS, public=True)
    m, n, tasks_k = JobReader(f).fields("m", "n", "tasks_k")
    single = f.both(f.test("eq", f.mul(m, n), 1), f.test("eq", tasks_k, 1))
    f.either(single, lambda: f.invoke("members", TASK_PARAMS), lambda: f.invoke("rows_or_stretch", TASK_PARAMS))
    return f


def _rows_or_k_split(a: Arithmetic) -> IRFunction:
    """A range of rows, and all of k; or all rows of one member, and a split of k."""
    f = IRFunction("rows_or_stretch", TASK_PARAMS)
    job, t = JobReader(f), task_of(f, a, "km")
    row_p, col_p, onto, n = job.fields("row_p", "col_p", "onto", "n")
    shared = f.test("sgt", job.field("tasks_k"), 1)

    def chosen(kind: str, one: str, other: str) -> str:
        return f.select(shared, kind, one, other)

    P, row_p, col_p = chosen("ptr", t.sums, t.P), chosen("i64", n, row_p), chosen("i64", "1", col_p)
    unrounded, onto = chosen("i64", "1", "0"), chosen("i64", "0", onto)
    f.invoke("piece", PIECE, rows=t.rows, k=t.depth, M=t.M, N=t.N, P=P, row_p=row_p, col_p=col_p, unrounded=unrounded,
        onto=onto, space=t.workspace)  # fmt: skip
    return f


def _enter() -> IRFunction:
    """The entry for a product that is one task and needs no workspace; its operands come as array objects."""
    f = IRFunction("enter", ENTER, public=True)
    M, N, P = f.data_of("M", "N", "P")
    m, k, row_p, col_p, onto = JobReader(f).fields("m", "k", "row_p", "col_p", "onto")
    f.invoke("piece", PIECE, rows=m, k=k, M=M, N=N, P=P, row_p=row_p, col_p=col_p, unrounded=0, onto=onto, space="null")
    return f


def _piece(a: Arithmetic) -> IRFunction:
    """Some rows of P and k elements of each. N's columns are copied first, once for all tiles, where they are not
    contiguous (unless only one row or cell reads them) or must be widened."""
    f = IRFunction("piece", PIECE)
    job = JobReader(f)
    m, n, row_m, col_m, row_n, col_n = job.fields("m", "n", "row_m", "col_m", "row_n", "col_n")

    def cells(N: str, row_n: str, column: str) -> None:
        f.invoke("cells", CELLS, N=N, row_m=row_m, col_m=col_m, row_n=row_n, column=column, columns=n)

    def several() -> None:
        copies = "true" if widens(a) else f.test("ne", row_n, 1)
        with f.when(copies):
            f.invoke("copy_columns", COPY_COLUMNS, row_n=row_n, col_n=col_n, n=n, to="%space")
        columns = f.select(copies, "ptr", "%space", "%N")
        column = f.select(copies, "i64", "%k", col_n)
        if tiled(a):
            _tiles(f, a, (m, n, row_m), columns, column)
        else:
            cells(columns, "1", column)

    def short() -> None:
        f.invoke("short", CELLS, row_m=row_m, col_m=col_m, row_n=row_n, column=col_n, columns=n)

    def some() -> None:
        f.either(f.both(f.test("sle", "%k", shortest(a)), f.test("eq", "%unrounded", 0)), short, several)

    single = f.test("eq", f.mul(m, n) if tiled(a) else m, 1)
    f.either(single, lambda: cells("%N", row_n, col_n), some)
    return f


def _tiles(f: IRFunction, a: Arithmetic, extents: tuple[str, str, str], columns: str, column: str) -> None:
    """A piece by tiles of a few rows and columns; row by row where M comes from memory (NEON)."""
    m, n, row_m = extents
    operands = (
        f"i64 %k, ptr %M, i64 {row_m}, ptr {columns}, i64 {column}, ptr %P, i64 %row_p, i64 %col_p, i64 %unrounded, "
        "i64 %onto, i64 %rows"
    )

    def some() -> None:
        f.do(f"call void @rows({operands}, i64 {n})")

    if not a.target.by_lane:
        some()
        return
    # by the size of M, not of a thread's share: no bit of P may depend on the number of threads
    length = f.mul(JobReader(f).field("k"), a.source_m.itemsize)
    whole = f.mul(m, length)
    most = f.select(f.test("sge", whole, FARTHER), "i64", NEAR, NEARER)
    far, near = f.test("sge", whole, FAR), f.test("sle", length, most)
    alone = f.both(f.both(far, near), f.test("eq", n, 1))
    f.either(alone, lambda: f.do(f"call void @stream({operands})"), some)
