"""`packed_n`: M is read in place, contiguous along k; N is packed, a group of columns at a time.

For each strip of KC and each group of columns that fits L2, N is packed along its rows; then tile after tile along the
group, so that P is written along its rows and M's few rows stay in L1. Tiles are as high as the rows divide evenly. An
operand that is read only a few times gains nothing from packing, so this wins until M is read for too many groups.

Complex numbers are pairs of real ones. An N whose rows are not contiguous is packed pair by pair.

Half precision is widened: N as it is packed, as much of k as L2 holds, M a few rows at a time into a buffer. Where one
strip is all of k, tiles round their sums and store to P; else sums are kept in a block and rounded once, at the end.
"""

from __future__ import annotations

from tilewise.algebra.to_llvm import vector
from tilewise.backends.cpu.kernels.packed.text import write_function, write_rows
from tilewise.backends.cpu.kernels.packed_n.model import CHUNK
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.convert import load
from tilewise.backends.cpu.kernels.shared.exact_tile import ExactForm, more_params
from tilewise.backends.cpu.kernels.shared.grid import split_evenly, tallest, tile_functions, tile_of
from tilewise.backends.cpu.kernels.shared.job import TASK_PARAMS, JobReader
from tilewise.backends.cpu.kernels.shared.pack import PACK, pack_function, pack_pairs_functions
from tilewise.backends.cpu.kernels.shared.strips import AGAINST_STRIP, strip_functions
from tilewise.backends.cpu.kernels.shared.task import task_of
from tilewise.system.llvm_text import IRFunction, module

WIDENED = 4  # vectors per round of the loop that widens
ROUNDED = 6  # panels of P summed at a time: with CHUNK rows, they fit L1

GROUP = "i64 rows, i64 cols, i64 kc, ptr M, i64 row_m, i64 step_m, ptr panels, ptr P, i64 row_p, i1 first"
PACK_STRIPS = "ptr job, ptr N, i64 row_n, i64 cols, i64 depth, ptr to"
ROWS = "ptr job, ptr M, ptr wide, ptr panels, ptr block, ptr P, i64 rows, i64 cols, i64 p, i64 depth, i64 i"
WIDEN = "ptr M, i64 row_m, i64 rows, i64 kc, ptr to, i64 row"


def form(a: Arithmetic) -> ExactForm:
    return ExactForm(1, 1, along_k=not a.pairs, panel=a.width, rounds=not a.same_storage)


def packed_n_module(a: Arithmetic) -> str:
    tiles = [
        *(pack_pairs_functions(a) if a.pairs else [pack_function(a, a.width, a.source_n)]),
        *tile_functions(a, form(a), "group", a.tile[1]),
        group_function(a, form(a)),
    ]
    if not a.same_storage:
        halves = [write_function(a), widen_function(a), _pack_strips(a), _rows(a), _run_half(a)]
        return module([*tiles, *halves], a.float_state)
    return module([*tiles, _run(a), _against_strip(a), *strip_functions(a)], a.float_state)


def group_function(a: Arithmetic, form: ExactForm) -> IRFunction:
    """All rows of a task times one packed group of columns and one strip of k."""
    element_m = a.element_m if form.widens else a.kind
    f = IRFunction("group", GROUP + more_params(form))
    parts = split_evenly(f, "%rows", tallest(a, form))
    whole = f.mul(f.div("%cols", a.NR), a.NR)
    left = f.sub("%cols", whole)
    vectors = f.div(f.add(left, a.lanes - 1), a.lanes)
    with f.loop(0, parts.count, 1, [("i64", "0")]) as i:
        (row,) = i.values
        rows = f.sub(parts.larger, f.op(f"zext i1 {f.test('sge', i.index, parts.larger_ones)} to i64"))
        M, P = f.at(element_m, "%M", f.mul(row, "%row_m")), f.at(a.kind, "%P", f.mul(row, "%row_p"))
        out = "" if a.same_storage else f.at(a.element_p, "%out", f.mul(row, "%row_out"))

        def tiles(vectors: str, panel: str, P: str, cols: str, count: str, M: str = M, rows: str = rows) -> None:
            more = f", ptr {out}, i64 %row_out, i1 %whole" if out else ""
            with f.when(f.test("sgt", count, 0)):
                tile = tile_of(f, a, "group", a.tile[1], rows, vectors, cols)
                steps = f"i64 {count}, i64 0, i64 {f.mul('%kc', a.NR)}, i64 {a.NR}{more}"
                f.do(
                    f"call void {tile}(i64 %kc, ptr {M}, i64 %row_m, i64 %step_m, ptr {panel}, i64 {a.NR}, ptr {P}, "
                    f"i64 %row_p, i64 {cols}, i1 %first, {steps})"
                )

        tiles(str(a.tile[1]), "%panels", P, str(a.NR), f.div("%cols", a.NR))
        more = f.op(f"zext i1 {f.test('sgt', left, 0)} to i64")
        out = out and f.at(a.element_p, out, whole)
        tiles(vectors, f.at(a.kind, "%panels", f.mul(whole, "%kc")), f.at(a.kind, P, whole), left, more)
        i.next = [f.add(row, rows)]
    return f


def _run(a: Arithmetic) -> IRFunction:
    """One task: a piece of one member's P."""
    f = IRFunction("run", TASK_PARAMS, public=True)
    job, t = JobReader(f), task_of(f, a, "mn")
    KC, group = job.fields("KC", "group")
    row_m, col_m, row_n, col_n, row_p = job.fields("row_m", "col_m", "row_n", "col_n", "row_p")
    k, rows, cols, M, N, P, space = t.depth, t.rows, t.cols, t.M, t.N, t.P, t.workspace
    fresh = f.test("eq", job.field("onto"), 0)
    with f.loop(0, k, KC) as p, f.loop(0, cols, group) as g:
        first = f.both(fresh, f.test("eq", p.index, 0))
        wide, kc = f.lower(f.sub(cols, g.index), group), f.lower(f.sub(k, p.index), KC)
        strip_m, strip_n = (
            f.at(a.kind, M, f.mul(p.index, col_m)),
            f.at(a.kind, N, f.mul(p.index, row_n), f.mul(g.index, col_n)),
        )
        f.invoke("pack_n", PACK, src=strip_n, lane=col_n, step=row_n, lanes=wide, kc=kc, dst=space)
        f.do(
            f"call void @group(i64 {rows}, i64 {wide}, i64 {kc}, ptr {strip_m}, i64 {row_m}, "
            f"i64 {col_m}, ptr {space}, ptr {f.at(a.kind, P, g.index)}, i64 {row_p}, i1 {first})"
        )
    return f


def widen_function(a: Arithmetic) -> IRFunction:
    """Widen `rows` rows of kc elements to the dtype of sums; the last vector of a row may overlap the one before.
    `axpy` widens rows of N with it, which has the same dtype."""
    f = IRFunction("widen", WIDEN)
    last = f.sub("%kc", a.lanes)
    bulk = f.mul(f.div("%kc", WIDENED * a.lanes), WIDENED * a.lanes)

    def copy(source: str, to: str, k: str, lanes: int) -> None:
        value = load(f, a.target, a.source_m, a.partial, f.at(a.element_m, source, k), lanes)[0]
        f.store(vector(a.kind, lanes), value, f.at(a.kind, to, k), a.bytes)

    with f.loop(0, "%rows") as i:
        source, to = f.at(a.element_m, "%M", f.mul(i.index, "%row_m")), f.at(a.kind, "%to", f.mul(i.index, "%row"))
        with f.loop(0, bulk, WIDENED * a.lanes) as k:
            for v in range(WIDENED):
                copy(source, to, f.add(k.index, v * a.lanes), a.lanes)

        def vectors(source: str = source, to: str = to) -> None:
            with f.loop(bulk, "%kc", a.lanes) as k:
                copy(source, to, f.lower(k.index, last), a.lanes)

        def one_by_one(source: str = source, to: str = to) -> None:
            with f.loop(0, "%kc") as k:
                copy(source, to, k.index, 1)

        f.either(f.test("sge", last, 0), vectors, one_by_one)
    return f


def _chunk(f: IRFunction, rows: str) -> str:
    """Rows of M widened at a time: CHUNK, or one or two fewer, so that the last chunk has more than one row
    (`tasks.no_single_last_row`)."""
    chunk = str(CHUNK - 2)
    for fewer in (CHUNK - 1, CHUNK):
        chunk = f.select(f.test("ne", f.rem(rows, fewer), 1), "i64", fewer, chunk)
    return chunk


def _run_half(a: Arithmetic) -> IRFunction:
    """One task of half precision: a piece of one member's P. Its workspace is a block of sums, CHUNK rows of M, and N
    packed to a depth that L2 holds (`task_k`); where that is all of k, the block has CHUNK rows as well."""
    f = IRFunction("run", TASK_PARAMS, public=True)
    job, t = JobReader(f), task_of(f, a, "mn")
    task_k, task_n, row_m, row_n, row_p = job.fields("task_k", "task_n", "row_m", "row_n", "row_p")
    k, rows, cols, M, N, P, wide = t.depth, t.rows, t.cols, t.M, t.N, t.P, t.workspace
    panels = f.at(a.kind, wide, f.mul(CHUNK, task_k))
    block = f.at(a.kind, panels, f.mul(task_n, task_k))
    chunk = _chunk(f, rows)
    with f.loop(0, k, task_k) as p:
        depth = f.lower(f.sub(k, p.index), task_k)
        strip_n = f.at(a.element_n, N, f.mul(p.index, row_n))
        f.invoke("pack_strips", PACK_STRIPS, N=strip_n, row_n=row_n, cols=cols, depth=depth, to=panels)
        with f.loop(0, rows, chunk) as i:
            some = f.lower(f.sub(rows, i.index), chunk)
            strip_m = f.at(a.element_m, M, f.mul(i.index, row_m), p.index)
            f.invoke("rows", ROWS, M=strip_m, wide=wide, panels=panels, block=block,
                P=f.at(a.element_p, P, f.mul(i.index, row_p)), rows=some, cols=cols, p=p.index, depth=depth,
                i=i.index)  # fmt: skip
    return f


def _pack_strips(a: Arithmetic) -> IRFunction:
    """Pack `depth` rows of N in consecutive strips of KC."""
    f = IRFunction("pack_strips", PACK_STRIPS)
    KC, task_n = JobReader(f).fields("KC", "task_n")
    with f.loop(0, "%depth", KC) as q:
        kc = f.lower(f.sub("%depth", q.index), KC)
        source, to = f.at(a.element_n, "%N", f.mul(q.index, "%row_n")), f.at(a.kind, "%to", f.mul(q.index, task_n))
        f.invoke("pack_n", PACK, src=source, lane=1, step="%row_n", lanes="%cols", kc=kc, dst=to)
    return f


def _rows(a: Arithmetic) -> IRFunction:
    """At most CHUNK rows of a task: widened, multiplied by the packed part of N, and rounded at the end of k; a few
    panels at a time, so that their sums stay in L1."""
    f = IRFunction("rows", ROWS)
    job = JobReader(f)
    k, KC, task_k, task_n, row_m, row_p, onto = job.fields("k", "KC", "task_k", "task_n", "row_m", "row_p", "onto")
    with f.loop(0, "%depth", KC) as q:
        kc = f.lower(f.sub("%depth", q.index), KC)
        source, to = f.at(a.element_m, "%M", q.index), f.at(a.kind, "%wide", f.mul(CHUNK, q.index))
        count, length = _joined(f, "%rows", kc, row_m, kc)
        f.invoke("widen", WIDEN, M=source, row_m=row_m, rows=count, kc=length, to=to, row=kc)
    alone, few = f.test("sle", k, task_k), f.lower(task_n, ROUNDED * a.NR)
    row_s = f.select(alone, "i64", few, task_n)
    whole = f.both(f.test("sle", k, KC), f.test("eq", onto, 0))
    with f.loop(0, "%cols", few) as j:
        some = f.lower(f.sub("%cols", j.index), few)
        apart = f.at(a.kind, "%block", f.mul("%i", task_n), j.index)
        sums = f.select(alone, "ptr", "%block", apart)
        to = f.at(a.element_p, "%P", j.index)
        with f.loop(0, "%depth", KC) as q:
            kc = f.lower(f.sub("%depth", q.index), KC)
            panels = f.at(a.kind, "%panels", f.mul(q.index, task_n), f.mul(j.index, kc))
            strip_m = f.at(a.kind, "%wide", f.mul(CHUNK, q.index))
            f.do(
                f"call void @group(i64 %rows, i64 {some}, i64 {kc}, ptr {strip_m}, i64 {kc}, i64 1, ptr {panels}, "
                f"ptr {sums}, i64 {row_s}, i1 {f.test('eq', f.add('%p', q.index), 0)}, ptr {to}, i64 {row_p}, "
                f"i1 {whole})"
            )
        ends = f.test("sge", f.add("%p", "%depth"), k)
        with f.when(f.both(ends, f.negated(whole))):
            write_rows(f, sums, row_s, to, row_p, "%rows", some, onto)
    return f


def _joined(f: IRFunction, rows: str, length: str, row: str, other: str) -> tuple[str, str]:
    """The number of rows and their length; one long row where both source and target are contiguous."""
    whole = f.both(f.test("eq", row, length), f.test("eq", other, length))
    count = f.select(whole, "i64", 1, rows)
    return count, f.select(whole, "i64", f.mul(rows, length), length)


def _against_strip(a: Arithmetic) -> IRFunction:
    """`rows` of P times a packed strip of N, group by group."""
    f = IRFunction("against_strip", AGAINST_STRIP)
    row_m, col_m, row_p, group = JobReader(f).fields("row_m", "col_m", "row_p", "group")
    with f.loop(0, "%cols", group) as g:
        f.do(
            f"call void @group(i64 %rows, i64 {f.lower(f.sub('%cols', g.index), group)}, i64 %kc, ptr %M, i64 {row_m}, "
            f"i64 {col_m}, ptr {f.at(a.kind, '%panels', f.mul(g.index, '%kc'))}, ptr {f.at(a.kind, '%P', g.index)}, "
            f"i64 {row_p}, i1 %first)"
        )
    return f
