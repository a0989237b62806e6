"""`packed`: BLIS's loops around the microkernel, for everything large.

For a strip of NC columns and KC of k, N is packed once; for each MC rows M is packed; then tile after tile along the
columns of a group that fits L2, so that P is written along its rows. Each task owns a piece of P. Where tiles cannot
store into P (half precision, strided columns, args) a task computes its piece in a block of its own and stores it at
the end.

Of a symmetric product the tiles left of the diagonal are skipped: `below` is how far the first row of a piece is below
its first column, NO_DIAGONAL in all other products. A task's own block is stored twice, the second time transposed; a P
that tiles store into is mirrored after all tasks.
"""

from __future__ import annotations

from functools import partial

from tilewise.algebra.to_llvm import Value, vector
from tilewise.backends.cpu.kernels.packed.model import MIRRORED, needs_block
from tilewise.backends.cpu.kernels.shared.amx_split_tile import AmxSplitTile
from tilewise.backends.cpu.kernels.shared.amx_tile import AmxTile, configure, release
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.convert import load, store
from tilewise.backends.cpu.kernels.shared.job import TASK_PARAMS, JobReader
from tilewise.backends.cpu.kernels.shared.masks import (
    load_cells,
    mask_below,
    masked_load,
    masked_result,
    masked_source,
    store_cells,
)
from tilewise.backends.cpu.kernels.shared.merge import merge_function
from tilewise.backends.cpu.kernels.shared.pack import PACK, pack_function, pack_m_function
from tilewise.backends.cpu.kernels.shared.strips import AGAINST_STRIP, NO_DIAGONAL, rows_below_diagonal, strip_functions
from tilewise.backends.cpu.kernels.shared.task import task_of
from tilewise.backends.cpu.kernels.shared.tile import TileForm, tile_function
from tilewise.system.llvm_text import IRFunction, module

REDUCED = 8  # k splits that are summed before their sum is added to the total
BLOCK = "i64 mc, i64 nc, i64 kc, ptr M, ptr N, ptr P, i64 row_p, i64 plane, i1 first, i64 k0, i64 group, i64 below"
MULTIPLY = (
    "ptr job, ptr M, ptr N, ptr P, i64 row_p, i64 plane, i64 m, i64 k, i64 n, i1 fresh, i64 k0, ptr space, i64 below"
)
READ = "ptr block, i64 row_b, ptr P, i64 row_p, i64 col_p, i64 rows, i64 cols"
WRITE = (
    "ptr block, i64 row_b, i64 plane, ptr P, i64 row_p, i64 col_p, ptr arg, i64 row_a, i64 col_a, "
    "i64 rows, i64 cols, i64 onto, i64 below"
)


def packed_module(a: Arithmetic) -> str:
    pack_n = pack_function(a, a.width, a.source_n)
    return module_around(a, [pack_m_function(a, a.MR), pack_n], write_function(a))


def module_around(a: Arithmetic, packing: list[IRFunction], write: IRFunction) -> str:
    """The module with these functions to pack M and N, and to write a task's block to P."""
    rows, vectors = a.tile
    forms = [TileForm(rows, v, panel=a.width, edge=v < vectors) for v in range(1, vectors + 1)]
    functions = [
        *packing,
        merge_function(a),
        *(_tile(a, form) for form in forms),
        block_function(a, forms),
        multiply_function(a),
        write,
        *([read_function(a)] if a.ordered else []),
        run_function(a),
        reduce_function(a),
        *([] if needs_block(a) else [_against_strip(a), *strip_functions(a)]),
        *([] if needs_block(a) or a.rounds else [mirror_function(a)]),
    ]
    return module(functions, a.float_state)


def _tile(a: Arithmetic, form: TileForm) -> IRFunction:
    """The microkernel."""
    return (AmxSplitTile if a.splits else AmxTile)(a, form).function() if a.amx else tile_function(a, form)


def block_function(a: Arithmetic, forms: list[TileForm]) -> IRFunction:
    """mc × nc of P from packed M and packed N: groups of columns, panels of M, tiles along the group. `kc` counts rows
    of a panel, which may hold several k each."""
    f = IRFunction("block", BLOCK)
    if a.amx:
        configure(f)
    panel_m, rows_n = f.mul(a.emit_rows_m(f, "%kc"), a.MR * a.parts * a.packed_m_bytes), a.emit_rows_n(f, "%kc")
    with f.loop(0, "%nc", "%group") as g:
        stop = f.lower(f.add(g.index, "%group"), "%nc")
        with f.loop(0, "%mc", a.MR) as i:
            rows = f.lower(f.sub("%mc", i.index), a.MR)
            M = f.at("i8", "%M", f.mul(f.div(i.index, a.MR), panel_m))
            # columns of whole tiles left of the diagonal
            left = f.mul(f.div(f.higher(f.add("%below", i.index), 0), a.NR), a.NR)
            with f.loop(f.higher(g.index, left), stop, a.NR) as j:
                cols = f.lower(f.sub(stop, j.index), a.NR)
                N = f.at(a.kind, "%N", f.mul(f.div(j.index, a.columns), f.mul(rows_n, a.parts)))
                at = f.add(f.mul(i.index, "%row_p"), f.div(j.index, a.columns))
                plane = plane_at(f, a, "%plane", at)
                cols = f.div(f.add(cols, a.columns - 1), a.columns)
                _choose_width(f, a, forms, (rows, cols, M, N, f.at(a.cell, "%P", at), plane))
    if a.amx:
        release(f)
    return f


def plane_at(f: IRFunction, a: Arithmetic, plane: str, at: str) -> str:
    """The distance from a cell to its arg: args have 8 bytes each, so it grows with the cell's index where cells are
    narrower."""
    return f.add(plane, f.mul(at, 8 - a.bytes)) if a.tracks_arg and a.bytes < 8 else plane


def _choose_width(f: IRFunction, a: Arithmetic, forms: list[TileForm], place: tuple[str, ...]) -> None:
    """The narrowest tile that covers the columns left; the packed panel of N keeps its full width."""
    rows, cols, M, N, P, plane = place
    for form in reversed(forms):
        call = (
            f"call void @{form.name}(i64 %kc, ptr {M}, ptr {N}, ptr {P}, i64 %row_p, i64 {plane}, i64 {rows}, "
            f"i64 {cols}, i1 %first, i64 %k0)"
        )
        if form.vectors == len(forms):
            with f.when(f.test("sgt", cols, (form.vectors - 1) * a.lanes)):
                f.do(call)
            continue
        above = f.test("sgt", cols, (form.vectors - 1) * a.lanes)
        below = f.test("sle", cols, form.vectors * a.lanes)
        with f.when(f.both(above, below)):
            f.do(call)


def multiply_function(a: Arithmetic) -> IRFunction:
    """One task's product: the loops over columns, k and rows, with packing where each strip begins."""
    f = IRFunction("multiply", MULTIPLY)
    job = JobReader(f)
    row_m, col_m, row_n, col_n = job.fields("row_m", "col_m", "row_n", "col_n")
    KC, MC, NC, group = job.fields("KC", "MC", "NC", "group")
    size_m, size_n = (f"[{d.itemsize} x i8]" for d in (a.source_m, a.source_n))
    depth = a.emit_rows_n(f, a.emit_groups(f, f.lower(KC, "%k")))
    panels = f.mul(f.div(f.add(f.lower(NC, "%n"), a.NR - 1), a.NR), a.width * a.parts)
    packed_m = f.at(a.kind, "%space", f.mul(panels, depth))
    with f.loop(0, "%n", NC) as j:
        nc = f.lower(f.sub("%n", j.index), NC)
        with f.loop(0, "%k", KC) as p:
            kc = f.lower(f.sub("%k", p.index), KC)
            groups = a.emit_groups(f, kc)
            first = f.both("%fresh", f.test("eq", p.index, 0))
            N = f.at(size_n, "%N", f.mul(p.index, row_n), f.mul(j.index, col_n))
            f.invoke("pack_n", PACK, src=N, lane=col_n, step=row_n, lanes=nc, kc=kc, dst="%space")
            with f.loop(0, "%m", MC) as i:
                mc, below = f.lower(f.sub("%m", i.index), MC), f.add("%below", f.sub(i.index, j.index))
                with f.when(f.test("slt", below, nc)):
                    M = f.at(size_m, "%M", f.mul(i.index, row_m), f.mul(p.index, col_m))
                    f.invoke("pack_m", PACK, src=M, lane=row_m, step=col_m, lanes=mc, kc=kc, dst=packed_m)
                    at = f.add(f.mul(i.index, "%row_p"), f.div(j.index, a.columns))
                    P, plane = f.at(a.cell, "%P", at), plane_at(f, a, "%plane", at)
                    f.invoke("block", BLOCK, mc=mc, nc=nc, kc=groups, M=packed_m, N="%space", P=P, plane=plane,
                        first=first, k0=f.add(p.index, "%k0"), group=group, below=below)  # fmt: skip
    return f


def _against_strip(a: Arithmetic) -> IRFunction:
    """`rows` rows of P times a packed strip of N; their M is packed first."""
    f = IRFunction("against_strip", AGAINST_STRIP)
    row_m, col_m, row_p, group = JobReader(f).fields("row_m", "col_m", "row_p", "group")
    with f.when(f.test("slt", "%below", "%cols")):
        f.invoke("pack_m", PACK, src="%M", lane=row_m, step=col_m, lanes="%rows", dst="%space")
        f.invoke("block", BLOCK, mc="%rows", nc="%cols", kc=a.emit_groups(f, "%kc"), M="%space", N="%panels",
            row_p=row_p, plane=0, k0=0, group=group)  # fmt: skip
    return f


def run_function(a: Arithmetic) -> IRFunction:
    """One task: find its member of the stack, its piece of P and its k split, and multiply."""
    f = IRFunction("run", TASK_PARAMS, public=True)
    job, t = JobReader(f), task_of(f, a, "kmn")
    n, tasks_k, task_m, task_n = job.fields("n", "tasks_k", "task_m", "task_n")
    row_p, col_p, onto = job.fields("row_p", "col_p", "onto")
    cell, start = f"[{a.result.itemsize} x i8]", job.member_of_stack("P", "at_p", t.member, a.result.itemsize)
    mirrored = f.at(cell, start, f.mul(t.j, row_p), f.mul(t.i, col_p))
    below, fresh = rows_below_diagonal(f, job, t.i, t.j), f.test("eq", onto, 0)

    def call(P: str, row_p: str, plane: str, fresh: str, space: str) -> None:
        f.invoke("multiply", MULTIPLY, M=t.M, N=t.N, P=P, row_p=row_p, plane=plane, m=t.rows, k=t.depth, n=t.cols,
            fresh=fresh, k0=t.k0, space=space, below=below)  # fmt: skip

    def own_block() -> None:
        """The piece is computed in `partial`, row-major, in the workspace; then it is stored to P."""
        row_b = f.div(task_n, a.columns)
        plane, after = _after_block(f, a, t.workspace, f.mul(task_m, row_b))
        if a.ordered:
            with f.when(f.negated(fresh)):
                f.invoke("read", READ, block=t.workspace, row_b=row_b, P=t.P, row_p=row_p, col_p=col_p,
                    rows=t.rows, cols=t.cols)  # fmt: skip
        call(t.workspace, row_b, plane, fresh if a.ordered else "true", after)
        place, row_a, col_a = _place_of_arg(f, job, a, t.member, t.i, t.j)
        block = {"block": t.workspace, "row_b": row_b, "plane": plane, "rows": t.rows, "cols": t.cols, "onto": onto}
        if a.ordered:  # chains are added to what P holds, one after the other
            block["onto"] = "0"
        f.invoke(
            "write", WRITE, **block, P=t.P, row_p=row_p, col_p=col_p, arg=place, row_a=row_a, col_a=col_a, below=below
        )
        write_mirrored(f, job, mirrored, below, **block)

    def shared_cells() -> None:
        """Split-K: several tasks compute the same cells; each stores its sums separately, and `reduce` adds them in
        order."""
        call(t.sums, n, "0", "true", t.workspace)

    def alone() -> None:
        if a.rounds:
            call(t.P, row_p, "0", fresh, t.workspace)
        elif not needs_block(a):  # P's old values may not be symmetric
            one_half = f.both(f.test("ne", job.field("symmetric"), 0), f.negated(fresh))
            direct = f.both(f.test("eq", col_p, 1), f.negated(one_half))
            f.either(direct, lambda: call(t.P, row_p, "0", fresh, t.workspace), own_block)
        else:
            own_block()

    with f.when(f.test("slt", below, t.cols)):
        if a.tracks_arg:
            alone()
        else:
            f.either(f.test("sgt", tasks_k, 1), shared_cells, alone)
    return f


def write_mirrored(f: IRFunction, job: JobReader, P: str, below: str, **block: str | int) -> None:
    """Of a symmetric product: store the cells of a block right of the diagonal once more, transposed, from P on."""
    row_p, col_p, symmetric = job.fields("row_p", "col_p", "symmetric")
    with f.when(f.test("ne", symmetric, 0)):
        f.invoke("write", WRITE, **block, P=P, row_p=col_p, col_p=row_p, arg="null", row_a=0, col_a=0,
            below=f.add(below, 1))  # fmt: skip


def _after_block(f: IRFunction, a: Arithmetic, space: str, size: str) -> tuple[str, str]:
    """The distance from a block's cells to their args, and the free address after it, aligned to 64 bytes."""
    after, plane = f.at(a.sum_kind, space, size), "0"
    if a.tracks_arg:
        plane = f.mul(f.div(f.add(f.mul(size, a.bytes), 63), 64), 64)  # args after the cells, in bytes
        after = f.at("i64", f.at("i8", space, plane), size)
    aligned = f.op(f"and i64 {f.add(f.op(f'ptrtoint ptr {after} to i64'), 63)}, -64")
    return plane, f.op(f"inttoptr i64 {aligned} to ptr")


def _place_of_arg(f: IRFunction, job: JobReader, a: Arithmetic, member: str, i: str, j: str) -> tuple[str, str, str]:
    """The address for the winning k of cell (i, j), and the strides from there."""
    arg, row_a, col_a = job.fields("arg", "row_a", "col_a")
    at = f.load("i64", f.at("i64", job.pointer("at_a"), member)) if a.tracks_arg else "0"
    place = f.op(f"inttoptr i64 {arg} to ptr")
    return f.at("i64", place, at, f.mul(i, row_a), f.mul(j, col_a)), row_a, col_a


def write_function(a: Arithmetic) -> IRFunction:
    """Store a row-major block of `partial` to P: any strides, P's dtype, added to P with `onto`; and the args."""
    f = IRFunction("write", WRITE)
    element = f"[{a.result.itemsize} x i8]"

    def cells(row: str, start: str, stop: str, lanes: int) -> None:
        with f.loop(start, stop, lanes) as col:
            new = load_cells(f, a, f.at(a.sum_kind, "%block", f.mul(row, "%row_b"), col.index), lanes)
            place = f.at(element, "%P", f.mul(row, "%row_p"), f.mul(col.index, "%col_p"))

            def keep(value: Value) -> None:
                store(f, a.target, a.partial, a.result, a.canonical(f, value, lanes), place, lanes, clear=a.ordered)

            def onto() -> None:
                old = load(f, a.target, a.result, a.partial, place, lanes)
                keep(a.renderer(f, lanes).value(a.add, old, new))

            f.either(f.test("eq", "%onto", 0), lambda: keep(new), onto)
            if a.tracks_arg:
                args = f.op("getelementptr i8, ptr %block, i64 %plane")
                k = f.load("i64", f.at("i64", args, f.mul(row, "%row_b"), col.index))
                f.store("i64", k, f.at("i64", "%arg", f.mul(row, "%row_a"), f.mul(col.index, "%col_a")))

    def under_mask(row: str, start: str) -> None:
        """The last columns of a row, fewer than a vector has lanes."""
        mask = mask_below(f, f.sub("%cols", start), a.lanes)
        new = masked_load(f, a, f.at(a.kind, "%block", f.mul(row, "%row_b"), start), mask)
        place = f.at(element, "%P", f.mul(row, "%row_p"), start)

        def keep(value: Value) -> None:
            masked_result(f, a, a.canonical(f, value, a.lanes)[0], place, mask)

        def onto() -> None:
            old = masked_source(f, a, a.result, place, mask)
            keep(a.renderer(f, a.lanes).value(a.add, (old,), (new,)))

        f.either(f.test("eq", "%onto", 0), lambda: keep((new,)), onto)

    lanes = 1 if a.tracks_arg else a.lanes
    side_by_side = f.test("eq", "%col_p", 1)
    with f.loop(0, "%rows") as row:
        first = f.lower(f.higher(f.add("%below", row.index), 0), "%cols")
        whole = f.mul(f.div(f.sub("%cols", first), lanes), lanes)
        bulk = f.add(first, f.select(side_by_side, "i64", whole, 0)) if lanes > 1 else first
        if lanes > 1:
            cells(row.index, first, bulk, lanes)
        one_by_one = partial(cells, row.index, bulk, "%cols", 1)
        if lanes > 1 and a.target.cheap_masks and a.parts == 1 and a.columns == 1:
            f.either(side_by_side, partial(under_mask, row.index, bulk), one_by_one)
        else:
            one_by_one()
    return f


def read_function(a: Arithmetic) -> IRFunction:
    """Load a row-major block of `partial` from P: any strides, P's dtype."""
    f = IRFunction("read", READ)
    element = f"[{a.result.itemsize} x i8]"
    with f.loop(0, "%rows") as row, f.loop(0, "%cols") as col:
        place = f.at(element, "%P", f.mul(row.index, "%row_p"), f.mul(col.index, "%col_p"))
        to = f.at(a.sum_kind, "%block", f.mul(row.index, "%row_b"), col.index)
        store_cells(f, a, load(f, a.target, a.result, a.partial, place, 1), to, 1)
    return f


def write_rows(f: IRFunction, block: str, row_b: str, P: str, row_p: str, rows: str, cols: str, onto: str) -> None:
    """Call `write` for contiguous rows of P, without args."""
    f.invoke("write", WRITE, block=block, row_b=row_b, plane=0, P=P, row_p=row_p, col_p=1, arg="null", row_a=0, col_a=0,
             rows=rows, cols=cols, onto=onto, below=NO_DIAGONAL)  # fmt: skip


def reduce_function(a: Arithmetic) -> IRFunction:
    """Task `row`: one row of P from the sums of the k splits, added in the order of k: groups of REDUCED first, and
    then their totals, which rounds less than one long chain."""
    f = IRFunction("reduce", TASK_PARAMS, public=True)
    job = JobReader(f)
    m, n, tasks_k = job.fields("m", "n", "tasks_k")
    row, member = f.rem("%task", m), f.div("%task", m)
    size = f.mul(m, n)
    base = f.at(a.sum_kind, job.pointer("sums"), f.mul(member, f.mul(tasks_k, size)), f.mul(row, n))

    def cells(start: str, stop: str, lanes: int) -> None:
        kind = vector(a.kind, lanes)
        with f.loop(start, stop, lanes) as col:

            def part(k_split: str) -> Value:
                return load_cells(f, a, f.at(a.sum_kind, base, f.mul(k_split, size), col.index), lanes)

            def summed(start: str, stop: str, first: list[tuple[str, str]]) -> list[str]:
                with f.loop(start, stop, 1, first) as s:
                    s.next = list(render.value(a.add, tuple(s.values), part(s.index)))
                return s.values

            render = a.renderer(f, lanes)
            if a.ordered:  # each part is one chain
                totals = summed("1", tasks_k, [(kind, x) for x in part("0")])
            else:
                zeros = [(kind, zero) for zero in a.zeros(lanes)]
                with f.loop(0, tasks_k, REDUCED, zeros) as g:
                    group = summed(g.index, f.lower(f.add(g.index, REDUCED), tasks_k), zeros)
                    g.next = list(render.value(a.add, tuple(g.values), tuple(group)))
                totals = g.values
            store_cells(f, a, tuple(totals), f.at(a.sum_kind, base, col.index), lanes)

    bulk = f.mul(f.div(n, a.lanes), a.lanes)
    cells("0", bulk, a.lanes)
    cells(bulk, n, 1)
    P = job.member_of_stack("P", "at_p", member, a.result.itemsize)
    row_p, col_p, onto = job.fields("row_p", "col_p", "onto")
    element, below = f"[{a.result.itemsize} x i8]", rows_below_diagonal(f, job, row, "0")
    block: dict[str, str | int] = {"block": base, "row_b": n, "plane": 0, "rows": 1, "cols": n, "onto": onto}
    f.invoke("write", WRITE, **block, P=f.at(element, P, f.mul(row, row_p)), row_p=row_p, col_p=col_p, arg="null",
        row_a=0, col_a=0, below=below)  # fmt: skip
    write_mirrored(f, job, f.at(element, P, f.mul(row, col_p)), below, **block)
    return f


def mirror_function(a: Arithmetic) -> IRFunction:
    """Task: copy the cells left of the diagonal, of MIRRORED rows of a member of P, from above the diagonal. A vector
    is gathered from as many rows; their cache lines serve all columns of the task."""
    f = IRFunction("mirror", TASK_PARAMS, public=True)
    job = JobReader(f)
    m, row_p = job.fields("m", "row_p")
    blocks = f.div(f.add(m, MIRRORED - 1), MIRRORED)
    P = job.member_of_stack("P", "at_p", f.div("%task", blocks), a.result.itemsize)
    first = f.mul(f.rem("%task", blocks), MIRRORED)
    last = f.lower(f.add(first, MIRRORED), m)
    kind, lanes = (a.element_p, min(a.lanes, 16)) if a.parts == 1 else (f"i{8 * a.result.itemsize}", 1)

    def copied(row: str, col: str, lanes: int) -> None:
        place = f.at(kind, P, f.mul(col, row_p), row)
        values = [f.load(kind, place if i == 0 else f.at(kind, place, f.mul(row_p, i)), a.bytes) for i in range(lanes)]
        made = "poison"
        for i, value in enumerate(values):
            made = f.op(f"insertelement <{lanes} x {kind}> {made}, {kind} {value}, i32 {i}")
        f.store(f"<{lanes} x {kind}>", made, f.at(kind, P, f.mul(row, row_p), col), a.bytes)

    with f.loop(0, first, lanes) as col, f.loop(first, last) as row:
        copied(row.index, col.index, lanes)
    with f.loop(first, last) as row, f.loop(first, row.index) as col:
        copied(row.index, col.index, 1)
    return f
