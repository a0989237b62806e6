"""`few_rows`: M has a handful of rows, so N is read once, where it lies; packing it would cost more than the product.

M is packed, strip by strip: its rows, and N's, are often a power of two apart, and where they lie all would want the
same few places of the first cache. A strip of KC rows of N is walked along its columns, so memory is read in long
lines, and a tile is as tall as registers allow: N passes sixteen rows at once, fewer in tiles of 8, 4, 2 and 1.
"""

from __future__ import annotations

from tilewise.blocking import FEW
from tilewise.engines.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.engines.cpu.kernels.shared.ir import Function, module
from tilewise.engines.cpu.kernels.shared.job import TASK_PARAMS, JobReader
from tilewise.engines.cpu.kernels.shared.merge import merge_function
from tilewise.engines.cpu.kernels.shared.pack import pack_m_function
from tilewise.engines.cpu.kernels.shared.tile import TileForm, tile_function

WIDEST = 6  # vectors of a tile of one row


def few_rows_module(a: Arithmetic) -> str:
    forms = row_forms(a)
    edges = [_one_vector(form, masked) for form in forms for masked in (False, True)]
    tiles = {form.name: tile_function(a, form) for form in [*forms, *edges]}
    pack = pack_m_function(a, FEW)
    return module([pack, merge_function(a), *tiles.values(), _run(a, forms)])


def row_forms(a: Arithmetic) -> list[TileForm]:
    """Fewer rows, more vectors: the sums fill the registers either way."""
    sums = a.MR * a.tile[1]
    heights = [height for height in (16, 8, 4, 2, 1) if height <= sums]
    return [TileForm(rows, min(WIDEST, sums // rows), direct_n=True, panel_m=FEW) for rows in heights]


def _one_vector(form: TileForm, masked: bool) -> TileForm:
    return TileForm(form.rows, 1, direct_n=True, panel_m=FEW, edge=form.vectors > 1, masked=masked)


def _run(a: Arithmetic, forms: list[TileForm]) -> Function:
    """One task: a range of columns of one member's P, all of k, all rows."""
    f = Function("run", TASK_PARAMS, public=True)
    job = JobReader(f)
    m, k, n, tasks_n, task_n, KC = job.words("m", "k", "n", "tasks_n", "task_n", "KC")
    row_m, col_m, row_n, row_p = job.words("row_m", "col_m", "row_n", "row_p")
    fresh = f.test("eq", job.word("onto"), 0)
    j0, member = f.mul(f.rem("%task", tasks_n), task_n), f.div("%task", tasks_n)
    cols = f.lower(f.sub(n, j0), task_n)
    M = job.member_of_stack("M", "at_m", member, a.bytes)
    N = f.at(a.kind, job.member_of_stack("N", "at_n", member, a.bytes), j0)
    P = f.at(a.kind, job.member_of_stack("P", "at_p", member, a.bytes), j0)
    space = f.at("i8", job.pointer("workspace"), f.mul("%worker", job.word("workspace_bytes")))
    size_m = a.packed_m_kind
    with f.loop(0, k, KC) as p:
        kc = f.lower(f.sub(k, p.index), KC)
        first = f.op(f"and i1 {fresh}, {f.test('eq', p.index, 0)}")
        strip_m = f.at(a.kind, M, f.mul(p.index, col_m))
        strip_n = f.at(a.kind, N, f.mul(p.index, row_n))
        f.do(f"call void @pack_m(ptr {strip_m}, i64 {row_m}, i64 {col_m}, i64 {m}, i64 {kc}, ptr {space})")
        step = WIDEST * a.lanes
        with f.loop(0, cols, step) as j:
            left = f.lower(f.sub(cols, j.index), step)
            row = "0"
            for form in forms:
                stop = f.add(row, f.mul(f.div(f.sub(m, row), form.rows), form.rows))
                with f.loop(row, stop, form.rows) as i:
                    tall = f.at(size_m, space, i.index)
                    cells = f.at(a.kind, P, f.mul(i.index, row_p))
                    _along(f, a, form, (kc, tall, strip_n, row_n, cells, row_p, first), (j.index, left))
                row = stop
    return f


def _along(f: Function, a: Arithmetic, form: TileForm, strip: tuple[str, ...], columns: tuple[str, str]) -> None:
    """`left` columns from `column` on: whole tiles, single vectors, and what is left of one."""
    kc, M, N, row_n, P, row_p, first = strip
    column, left = columns

    def tile(form: TileForm, at: str, cols: str | int) -> None:
        f.do(
            f"call void @{form.name}(i64 {kc}, ptr {M}, i64 0, i64 0, ptr {f.at(a.kind, N, at)}, i64 {row_n}, "
            f"ptr {f.at(a.kind, P, at)}, i64 {row_p}, i64 0, i64 {form.rows}, i64 {cols}, i1 {first}, i64 0)"
        )

    width = form.vectors * a.lanes
    whole = f.mul(f.div(left, width), width)
    with f.loop(0, whole, width) as j:
        tile(form, f.add(column, j.index), width)
    vectors = f.mul(f.div(left, a.lanes), a.lanes)
    with f.loop(whole, vectors, a.lanes) as j:
        tile(_one_vector(form, False), f.add(column, j.index), a.lanes)
    with f.when(f.test("slt", vectors, left)):
        tile(_one_vector(form, True), f.add(column, vectors), f.sub(left, vectors))
