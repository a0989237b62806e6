"""`few_columns`: N has a handful of columns, so M is read once, along its rows, and packing it would cost too much.

N is packed (it is small), a tile takes 8 rows of M where they lie, k side by side, and as few vectors as cover N.
"""

from __future__ import annotations

from tilewise.engines.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.engines.cpu.kernels.shared.ir import Function, module
from tilewise.engines.cpu.kernels.shared.job import TASK_PARAMS, JobReader
from tilewise.engines.cpu.kernels.shared.merge import merge_function
from tilewise.engines.cpu.kernels.shared.pack import pack_function
from tilewise.engines.cpu.kernels.shared.tile import TileForm, tile_function


def few_columns_module(a: Arithmetic) -> str:
    forms = [TileForm(a.MR, v, direct_m=True, along_k=True, panel=v * a.lanes) for v in range(1, a.tile[1] + 1)]
    packs = [pack_function(a, f"pack_n{form.vectors}", form.panel, a.source_n) for form in forms]
    return module([*packs, merge_function(a), *(tile_function(a, form) for form in forms), _run(a, forms)])


def _run(a: Arithmetic, forms: list[TileForm]) -> Function:
    """One task: a range of rows of P, all of k, all columns."""
    f = Function("run", TASK_PARAMS, public=True)
    job = JobReader(f)
    m, k, n, tasks_m, task_m, KC = job.words("m", "k", "n", "tasks_m", "task_m", "KC")
    row_m, col_m, row_n, col_n, row_p = job.words("row_m", "col_m", "row_n", "col_n", "row_p")
    fresh = f.test("eq", job.word("onto"), 0)
    i0, member = f.mul(f.rem("%task", tasks_m), task_m), f.div("%task", tasks_m)
    rows = f.lower(f.sub(m, i0), task_m)
    M = f.at(a.kind, job.member_of_stack("M", "at_m", member, a.bytes), f.mul(i0, row_m))
    N = job.member_of_stack("N", "at_n", member, a.bytes)
    P = f.at(a.kind, job.member_of_stack("P", "at_p", member, a.bytes), f.mul(i0, row_p))
    space = f.at("i8", job.pointer("workspace"), f.mul("%worker", job.word("workspace_bytes")))
    with f.loop(0, k, KC) as p:
        kc = f.lower(f.sub(k, p.index), KC)
        first = f.op(f"and i1 {fresh}, {f.test('eq', p.index, 0)}")
        strip_m = f.at(a.kind, M, f.mul(p.index, col_m))
        strip_n = f.at(a.kind, N, f.mul(p.index, row_n))
        for form in forms:
            above = f.test("sgt", n, (form.vectors - 1) * a.lanes)
            below = f.test("sle", n, form.vectors * a.lanes)
            with f.when(f.op(f"and i1 {above}, {below}")):
                f.do(
                    f"call void @pack_n{form.vectors}(ptr {strip_n}, i64 {col_n}, i64 {row_n}, i64 {n}, i64 {kc}, "
                    f"ptr {space})"
                )
                with f.loop(0, rows, form.rows) as i:
                    tall = f.at(a.kind, strip_m, f.mul(i.index, row_m))
                    cells = f.at(a.kind, P, f.mul(i.index, row_p))
                    left = f.lower(f.sub(rows, i.index), form.rows)
                    f.do(
                        f"call void @{form.name}(i64 {kc}, ptr {tall}, i64 {row_m}, i64 {col_m}, ptr {space}, i64 0, "
                        f"ptr {cells}, i64 {row_p}, i64 0, i64 {left}, i64 {n}, i1 {first}, i64 0)"
                    )
    return f
