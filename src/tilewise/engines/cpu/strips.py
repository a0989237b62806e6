"""Several threads on one strip of N: packed once, together, and then read by all of them."""

from __future__ import annotations

from tilewise.engines.cpu.arithmetic import Arithmetic
from tilewise.engines.cpu.ir import Function
from tilewise.engines.cpu.job import TASK_PARAMS, JobReader


def pack_strip_function(a: Arithmetic) -> Function:
    """One task: `task_n` columns of the strip, packed to where everybody finds them."""
    f = Function("pack_strip", TASK_PARAMS, public=True)
    job = JobReader(f)
    k, n, KC, NC, task_n = job.words("k", "n", "KC", "NC", "task_n")
    row_n, col_n, strip_j, strip_k = job.words("row_n", "col_n", "strip_j", "strip_k")
    j = f.mul("%task", task_n)
    cols = f.lower(task_n, f.sub(f.lower(NC, f.sub(n, strip_j)), j))
    kc = f.lower(KC, f.sub(k, strip_k))
    N = f.at(f"[{a.source_n.itemsize} x i8]", job.pointer("N"), f.mul(strip_k, row_n), f.mul(f.add(strip_j, j), col_n))
    to = f.at(a.kind, job.pointer("sums"), f.mul(j, f.mul(kc, a.parts)))
    f.do(f"call void @pack_n(ptr {N}, i64 {col_n}, i64 {row_n}, i64 {cols}, i64 {kc}, ptr {to})")
    return f


def run_strip_function(a: Arithmetic) -> Function:
    """One task: `task_m` rows of P, against the strip that lies packed."""
    f = Function("run_strip", TASK_PARAMS, public=True)
    job = JobReader(f)
    m, k, n, KC, NC, task_m, group = job.words("m", "k", "n", "KC", "NC", "task_m", "group")
    row_m, col_m, row_p, strip_j, strip_k = job.words("row_m", "col_m", "row_p", "strip_j", "strip_k")
    i = f.mul("%task", task_m)
    rows, cols = f.lower(task_m, f.sub(m, i)), f.lower(NC, f.sub(n, strip_j))
    kc = f.lower(KC, f.sub(k, strip_k))
    fresh = f.test("eq", f.add(job.word("onto"), strip_k), 0)
    M = f.at(f"[{a.source_m.itemsize} x i8]", job.pointer("M"), f.mul(i, row_m), f.mul(strip_k, col_m))
    P = f.at(a.kind, job.pointer("P"), f.mul(i, row_p), strip_j)
    space = f.at("i8", job.pointer("workspace"), f.mul("%worker", job.word("workspace_bytes")))
    f.do(f"call void @pack_m(ptr {M}, i64 {row_m}, i64 {col_m}, i64 {rows}, i64 {kc}, ptr {space})")
    f.do(
        f"call void @block(i64 {rows}, i64 {cols}, i64 {kc}, ptr {space}, ptr {job.pointer('sums')}, ptr {P}, "
        f"i64 {row_p}, i64 0, i1 {fresh}, i64 0, i64 {group})"
    )
    return f
