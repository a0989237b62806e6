"""`few_columns`: N has a handful of columns, so M is read once, along its rows, and packing it would cost too much.

N is packed (it is small): its rows lie side by side, whatever its strides. Tiles take M's rows where they lie; those of
half precision they widen, a vector of each row at a time, while they multiply the ones before.
"""

from __future__ import annotations

from tilewise.backends.cpu.kernels.packed.text import write_function, write_rows
from tilewise.backends.cpu.kernels.packed_n.text import group_function
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.exact_tile import ExactForm
from tilewise.backends.cpu.kernels.shared.grid import GRID, grid_functions, tile_functions
from tilewise.backends.cpu.kernels.shared.job import TASK_PARAMS, JobReader
from tilewise.backends.cpu.kernels.shared.pack import PACK, pack_function
from tilewise.system.llvm_text import IRFunction, module

FORM = ExactForm(1, 1, along_k=True)


def few_columns_module(a: Arithmetic) -> str:
    pack_n = pack_function(a, "pack_n", a.width, a.source_n)
    if a.same_storage:
        return module([pack_n, *grid_functions(a, FORM), _run(a)])
    widens = ExactForm(1, 1, along_k=True, panel=a.width, rounds=True, widens=True)
    tiles = tile_functions(a, widens, "group", a.tile[1])
    return module([pack_n, *tiles, group_function(a, widens), write_function(a), _run_apart(a)])


def _run(a: Arithmetic) -> IRFunction:
    """One task: a range of rows of P, all of k, all columns."""
    f = IRFunction("run", TASK_PARAMS, public=True)
    job = JobReader(f)
    m, k, n, tasks_m, task_m, KC = job.fields("m", "k", "n", "tasks_m", "task_m", "KC")
    row_m, col_m, row_n, col_n, row_p = job.fields("row_m", "col_m", "row_n", "col_n", "row_p")
    fresh = f.test("eq", job.field("onto"), 0)
    i0, member = f.mul(f.rem("%task", tasks_m), task_m), f.div("%task", tasks_m)
    rows = f.lower(f.sub(m, i0), task_m)
    M = f.at(a.kind, job.member_of_stack("M", "at_m", member, a.bytes), f.mul(i0, row_m))
    N = job.member_of_stack("N", "at_n", member, a.bytes)
    P = f.at(a.kind, job.member_of_stack("P", "at_p", member, a.bytes), f.mul(i0, row_p))
    space = f.at("i8", job.pointer("workspace"), f.mul("%worker", job.field("workspace_bytes")))
    with f.loop(0, k, KC) as p:
        kc = f.lower(f.sub(k, p.index), KC)
        first = f.both(fresh, f.test("eq", p.index, 0))
        strip_m = f.at(a.kind, M, f.mul(p.index, col_m))
        strip_n = f.at(a.kind, N, f.mul(p.index, row_n))
        f.invoke("pack_n", PACK, src=strip_n, lane=col_n, step=row_n, lanes=n, kc=kc, dst=space)
        f.invoke("grid_k", GRID, kc=kc, M=strip_m, row_m=row_m, step_m=col_m, N=space, step_n=a.width, P=P,
            row_p=row_p, rows=rows, cols=n, first=first, down="true")  # fmt: skip
    return f


def _run_apart(a: Arithmetic) -> IRFunction:
    """One task of half precision: a range of rows. Sums of several strips are made in a block, and rounded once."""
    f = IRFunction("run", TASK_PARAMS, public=True)
    job = JobReader(f)
    m, k, n, tasks_m, task_m, KC = job.fields("m", "k", "n", "tasks_m", "task_m", "KC")
    row_m, row_n, col_n, row_p, onto = job.fields("row_m", "row_n", "col_n", "row_p", "onto")
    i0, member = f.mul(f.rem("%task", tasks_m), task_m), f.div("%task", tasks_m)
    rows = f.lower(f.sub(m, i0), task_m)
    M = f.at(a.element_m, job.member_of_stack("M", "at_m", member, a.source_m.itemsize), f.mul(i0, row_m))
    N = job.member_of_stack("N", "at_n", member, a.source_n.itemsize)
    P = f.at(a.element_p, job.member_of_stack("P", "at_p", member, a.result.itemsize), f.mul(i0, row_p))
    space = f.at("i8", job.pointer("workspace"), f.mul("%worker", job.field("workspace_bytes")))
    block = f.at(a.kind, space, f.mul(a.NR, f.lower(KC, k)))
    whole = f.both(f.test("sle", k, KC), f.test("eq", onto, 0))
    with f.loop(0, k, KC) as p:
        kc = f.lower(f.sub(k, p.index), KC)
        strip_n = f.at(a.element_n, N, f.mul(p.index, row_n))
        f.invoke("pack_n", PACK, src=strip_n, lane=col_n, step=row_n, lanes=n, kc=kc, dst=space)
        f.do(
            f"call void @group(i64 {rows}, i64 {n}, i64 {kc}, ptr {f.at(a.element_m, M, p.index)}, i64 {row_m}, "
            f"ptr {space}, ptr {block}, i64 {n}, i1 {f.test('eq', p.index, 0)}, ptr {P}, i64 {row_p}, i1 {whole})"
        )
    with f.when(f.negated(whole)):
        write_rows(f, block, n, P, row_p, rows, n, onto)
    return f
