"""A task that makes a range of P's rows: how many, and where its operands, its part of P and its workspace begin."""

from __future__ import annotations

from typing import NamedTuple

from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.job import JobReader
from tilewise.system.llvm_text import IRFunction


class RowsTask(NamedTuple):
    """Values of a function with the parameters of a task."""

    rows: str
    k: str
    n: str
    M: str  # the first of those rows
    N: str
    P: str
    workspace: str  # this worker's
    row_m: str
    row_n: str
    col_n: str
    row_p: str
    col_p: str
    onto: str


def rows_task(f: IRFunction, a: Arithmetic, task: str = "%task") -> RowsTask:
    job = JobReader(f)
    m, k, n, tasks_m, task_m = job.fields("m", "k", "n", "tasks_m", "task_m")
    row_m, row_n, col_n, row_p, col_p, onto = job.fields("row_m", "row_n", "col_n", "row_p", "col_p", "onto")
    i0, member = f.mul(f.rem(task, tasks_m), task_m), f.div(task, tasks_m)
    rows = f.lower(f.sub(m, i0), task_m)
    M = job.member_of_stack("M", "at_m", member, a.source_m.itemsize)
    N = job.member_of_stack("N", "at_n", member, a.source_n.itemsize)
    P = job.member_of_stack("P", "at_p", member, a.result.itemsize)
    M, P = (
        f.at(f"[{dtype.itemsize} x i8]", x, f.mul(i0, row))
        for x, dtype, row in ((M, a.source_m, row_m), (P, a.result, row_p))
    )
    workspace = f.at("i8", job.pointer("workspace"), f.mul("%worker", job.field("workspace_bytes")))
    return RowsTask(rows, k, n, M, N, P, workspace, row_m, row_n, col_n, row_p, col_p, onto)
