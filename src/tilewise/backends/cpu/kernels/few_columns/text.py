"""`few_columns`: N has a handful of columns, so M is read once, and packing it would cost too much.

N, which is small, is packed. Tiles read M's rows in place; for half precision they widen a vector of each row at a
time, while they multiply the previous ones.
"""

from __future__ import annotations

from tilewise.backends.cpu.kernels.packed.text import write_function, write_rows
from tilewise.backends.cpu.kernels.packed_n.text import group_function
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.exact_tile import ExactForm
from tilewise.backends.cpu.kernels.shared.grid import GRID, grid_functions, grid_name, tile_functions
from tilewise.backends.cpu.kernels.shared.job import TASK_PARAMS, JobReader
from tilewise.backends.cpu.kernels.shared.pack import PACK, pack_function
from tilewise.backends.cpu.kernels.shared.task import task_of
from tilewise.system.llvm_text import IRFunction, module

FORM, ANY_STRIDES = ExactForm(1, 1, along_k=True), ExactForm(1, 1)


def few_columns_module(a: Arithmetic) -> str:
    pack_n = pack_function(a, a.width, a.source_n)
    if a.same_storage:
        grids = [part for form in (FORM, ANY_STRIDES) for part in grid_functions(a, form)]
        return module([pack_n, *grids, _run(a)])
    widens = ExactForm(1, 1, along_k=True, panel=a.width, rounds=True, widens=True)
    tiles = tile_functions(a, widens, "group", a.tile[1])
    return module([pack_n, *tiles, group_function(a, widens), write_function(a), _run(a)])


def _run(a: Arithmetic) -> IRFunction:
    """One task: a range of rows of P, all of k, all columns. Half precision with several strips is summed in a block
    and rounded once."""
    f = IRFunction("run", TASK_PARAMS, public=True)
    job, t = JobReader(f), task_of(f, a, "m")
    KC, onto, row_m, col_m, row_n, col_n, row_p = job.fields("KC", "onto", "row_m", "col_m", "row_n", "col_n", "row_p")
    k, n, fresh = t.depth, t.cols, f.test("eq", onto, 0)
    block = f.at(a.kind, t.workspace, f.mul(a.NR, f.lower(KC, k)))
    whole = f.both(f.test("sle", k, KC), fresh)
    with f.loop(0, k, KC) as p:
        kc, first = f.lower(f.sub(k, p.index), KC), f.test("eq", p.index, 0)
        strip_m = f.at(a.element_m, t.M, f.mul(p.index, col_m))
        strip_n = f.at(a.element_n, t.N, f.mul(p.index, row_n))
        f.invoke("pack_n", PACK, src=strip_n, lane=col_n, step=row_n, lanes=n, kc=kc, dst=t.workspace)
        if a.same_storage:
            grids = (f"@{grid_name(form)}" for form in (FORM, ANY_STRIDES))
            grid = f.select(f.test("eq", col_m, 1), "ptr", *grids)
            f.invoke(grid, GRID, kc=kc, M=strip_m, row_m=row_m, step_m=col_m, N=t.workspace, step_n=a.width, P=t.P,
                row_p=row_p, rows=t.rows, cols=n, first=f.both(fresh, first), down="true")  # fmt: skip
        else:
            f.do(
                f"call void @group(i64 {t.rows}, i64 {n}, i64 {kc}, ptr {strip_m}, i64 {row_m}, i64 1, "
                f"ptr {t.workspace}, ptr {block}, i64 {n}, i1 {first}, ptr {t.P}, i64 {row_p}, i1 {whole})"
            )
    if not a.same_storage:
        with f.when(f.negated(whole)):
            write_rows(f, block, n, t.P, row_p, t.rows, n, onto)
    return f
