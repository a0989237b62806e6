"""A task: the part of a product with its number, and the addresses of its operands and workspace."""

from __future__ import annotations

from typing import NamedTuple

from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.job import JobReader
from tilewise.system.llvm_text import IRFunction


class Task(NamedTuple):
    """Values in a function with the parameters of a task. M, N and P: its first elements; `sums`: where it stores its
    sums in a split-K product."""

    rows: str
    depth: str  # of k
    cols: str
    M: str
    N: str
    P: str
    workspace: str  # this worker's
    sums: str
    i: str
    j: str
    k0: str
    member: str


def task_of(f: IRFunction, a: Arithmetic, axes: str) -> Task:
    """`axes`: the axes of m, n and k that a family cuts, the fastest first; tasks have all of the others."""
    job = JobReader(f)
    first, rest, k_split = dict.fromkeys("mnk", "0"), "%task", "0"
    extent = dict(zip("mnk", job.fields(*"mnk"), strict=True))
    m, n = extent["m"], extent["n"]
    for axis in axes:
        tasks, size = job.fields(f"tasks_{axis}", f"task_{axis}")
        number, rest = f.rem(rest, tasks), f.div(rest, tasks)
        first[axis] = f.mul(number, size)
        extent[axis] = f.lower(f.sub(extent[axis], first[axis]), size)
        k_split = number if axis == "k" else k_split
    i, j, k0, member = first["m"], first["n"], first["k"], rest
    places = []
    for name, dtype, (row, column) in (("M", a.source_m, (i, k0)), ("N", a.source_n, (k0, j)), ("P", a.result, (i, j))):
        strides = job.fields(f"row_{name.lower()}", f"col_{name.lower()}")
        start = job.member_of_stack(name, f"at_{name.lower()}", member, dtype.itemsize)
        steps = [f.mul(at, stride) for at, stride in zip((row, column), strides, strict=True) if at != "0"]
        places.append(f.at(f"[{dtype.itemsize} x i8]", start, *steps))
    space = f.at("i8", job.pointer("workspace"), f.mul("%worker", job.field("workspace_bytes")))
    sums = ""
    if "k" in axes:
        before = f.add(f.mul(member, job.field("tasks_k")), k_split)
        sums = f.at(a.sum_kind, job.pointer("sums"), f.mul(before, f.mul(m, n)), f.mul(i, n), j)
    M, N, P = places
    return Task(extent["m"], extent["k"], extent["n"], M, N, P, space, sums, i, j, k0, member)
