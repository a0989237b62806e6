"""`few_rows`: M has a handful of rows, so N is read once, where it lies; packing it would cost more than the product.

M is packed, strip by strip: its rows, and N's, are often a power of two apart, and where they lie all would want the
same few places of the first cache. A strip of KC rows of N is walked along its columns, so memory is read in long
lines; its tiles are as high as the rows divide evenly, and those below each other find N in the first cache.
"""

from __future__ import annotations

from tilewise.backends.cpu.kernels.packed.text import reduce_function, write_function, write_rows
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.exact_tile import ExactForm
from tilewise.backends.cpu.kernels.shared.grid import GRID, grid_functions
from tilewise.backends.cpu.kernels.shared.job import TASK_PARAMS, JobReader
from tilewise.backends.cpu.kernels.shared.pack import PACK, pack_m_function
from tilewise.core.blocking import FEW
from tilewise.system.llvm_text import IRFunction, module

FORM = ExactForm(1, 1, panel_m=FEW, prefetches=True)


def few_rows_module(a: Arithmetic) -> str:
    reduce = [reduce_function(a)] if a.same_storage else []
    return module([pack_m_function(a, FEW), *grid_functions(a, FORM), write_function(a), *reduce, _run(a)])


def _run(a: Arithmetic) -> IRFunction:
    """One task: a range of columns of one member's P, all rows, all of k or a stretch of it."""
    f = IRFunction("run", TASK_PARAMS, public=True)
    job = JobReader(f)
    m, k, n, tasks_n, task_n, KC = job.fields("m", "k", "n", "tasks_n", "task_n", "KC")
    row_m, col_m, row_n, row_p = job.fields("row_m", "col_m", "row_n", "row_p")
    fresh = f.test("eq", job.field("onto"), 0)
    j0, rest = f.mul(f.rem("%task", tasks_n), task_n), f.div("%task", tasks_n)
    k0, member = "0", rest
    if a.same_storage:
        tasks_k, task_k = job.fields("tasks_k", "task_k")
        stretch, member = f.rem(rest, tasks_k), f.div(rest, tasks_k)
        k0 = f.mul(stretch, task_k)
        k = f.lower(k, f.add(k0, task_k))
    cols = f.lower(f.sub(n, j0), task_n)
    M = job.member_of_stack("M", "at_m", member, a.source_m.itemsize)
    N = f.at(a.element_n, job.member_of_stack("N", "at_n", member, a.source_n.itemsize), j0)
    P = f.at(a.element_p, job.member_of_stack("P", "at_p", member, a.result.itemsize), j0)
    space = f.at("i8", job.pointer("workspace"), f.mul("%worker", job.field("workspace_bytes")))
    sums, row_s = P, row_p
    if a.same_storage:  # several stretches make the same cells: each leaves its sums apart, and `reduce` adds them
        shared, apart = f.test("sgt", tasks_k, 1), f.at(a.kind, job.pointer("sums"), f.mul(stretch, f.mul(m, n)), j0)
        sums = f.select(shared, "ptr", apart, P)
        row_s = f.select(shared, "i64", n, row_p)
        fresh = f.op(f"or i1 {shared}, {fresh}")
    if not a.same_storage:  # what is added up strip by strip is rounded once, at the end
        sums, row_s, fresh = f.at("i8", space, f.mul(FEW * a.packed_m_bytes, f.lower(KC, k))), task_n, "true"

    with f.loop(k0, k, KC) as p:
        kc = f.lower(f.sub(k, p.index), KC)
        first = f.both(fresh, f.test("eq", p.index, k0))
        strip_m = f.at(a.element_m, M, f.mul(p.index, col_m))
        strip_n = f.at(a.element_n, N, f.mul(p.index, row_n))
        f.invoke("pack_m", PACK, src=strip_m, lane=row_m, step=col_m, lanes=m, kc=kc, dst=space)
        f.invoke("grid", GRID, kc=kc, M=space, row_m=0, step_m=0, N=strip_n, step_n=row_n, P=sums,
            row_p=row_s, rows=m, cols=cols, first=first, down="true")  # fmt: skip
    if not a.same_storage:
        write_rows(f, sums, row_s, P, row_p, m, cols, job.field("onto"))
    return f
