"""`few_rows`: M has a handful of rows, so N is read once, in place; packing it would cost more than the product.

M is packed strip by strip: its rows, and N's, are often a power of two apart and would compete for the same few sets of
L1. A strip of KC rows of N is read along its columns, in whole cache lines; tiles are as high as the rows divide
evenly, and those below each other find N in L1.
"""

from __future__ import annotations

from tilewise.backends.cpu.kernels.packed.text import reduce_function, write_function, write_rows
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.exact_tile import ExactForm
from tilewise.backends.cpu.kernels.shared.grid import GRID, grid_functions
from tilewise.backends.cpu.kernels.shared.job import TASK_PARAMS, JobReader
from tilewise.backends.cpu.kernels.shared.pack import PACK, pack_m_function
from tilewise.backends.cpu.kernels.shared.task import task_of
from tilewise.core.blocking import SKINNY
from tilewise.system.llvm_text import IRFunction, module

FORM = ExactForm(1, 1, panel_m=SKINNY, prefetches=True)


def few_rows_module(a: Arithmetic) -> str:
    reduce = [reduce_function(a)] if a.same_storage else []
    return module([pack_m_function(a, SKINNY), *grid_functions(a, FORM), write_function(a), *reduce, _run(a)])


def _run(a: Arithmetic) -> IRFunction:
    """One task: a range of columns of one member's P, all rows, all of k or a stretch of it."""
    f = IRFunction("run", TASK_PARAMS, public=True)
    job, t = JobReader(f), task_of(f, a, "nk" if a.same_storage else "n")
    n, KC, onto, row_m, col_m, row_n, row_p = job.fields("n", "KC", "onto", "row_m", "col_m", "row_n", "row_p")
    if a.same_storage:  # split-K: each task stores its sums separately, and `reduce` adds them
        shared = f.test("sgt", job.field("tasks_k"), 1)
        sums, row_s = f.select(shared, "ptr", t.sums, t.P), f.select(shared, "i64", n, row_p)
        fresh = f.op(f"or i1 {shared}, {f.test('eq', onto, 0)}")
    else:  # sums over all strips are rounded once, at the end
        sums = f.at("i8", t.workspace, f.mul(SKINNY * a.packed_m_bytes, f.lower(KC, t.depth)))
        row_s, fresh = job.field("task_n"), "true"
    with f.loop(0, t.depth, KC) as p:
        kc = f.lower(f.sub(t.depth, p.index), KC)
        first = f.both(fresh, f.test("eq", p.index, 0))
        strip_m = f.at(a.element_m, t.M, f.mul(p.index, col_m))
        strip_n = f.at(a.element_n, t.N, f.mul(p.index, row_n))
        f.invoke("pack_m", PACK, src=strip_m, lane=row_m, step=col_m, lanes=t.rows, kc=kc, dst=t.workspace)
        f.invoke("grid", GRID, kc=kc, M=t.workspace, row_m=0, step_m=0, N=strip_n, step_n=row_n, P=sums,
            row_p=row_s, rows=t.rows, cols=t.cols, first=first, down="true")  # fmt: skip
    if not a.same_storage:
        write_rows(f, sums, row_s, t.P, row_p, t.rows, t.cols, onto)
    return f
