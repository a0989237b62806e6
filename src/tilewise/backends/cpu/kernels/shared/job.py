"""A job: the parameters of all tasks of a product, as 64-bit fields that native code reads.

Python fills the fields by name, generated code loads them by name; both use the order here.
"""

from __future__ import annotations

import ctypes
import struct
from typing import Any

from tilewise.system.llvm_text import IRFunction

JOB_FIELDS = (
    "M", "row_m", "col_m",  # addresses, and strides in elements
    "N", "row_n", "col_n",
    "P", "row_p", "col_p",
    "arg", "row_a", "col_a",  # the array of winning k, or 0
    "m", "k", "n",
    "at_m", "at_n", "at_p", "at_a",  # for each member of the stack: its offset in elements
    "tasks_m", "tasks_n", "tasks_k",  # how P (and k) are cut into tasks
    "task_m", "task_n", "task_k",  # rows, columns and k of a task
    "onto",  # 1: add the product to P
    "KC", "MC", "NC", "group",
    "workspace", "workspace_bytes",  # one for each worker
    "sums", "sums_at",  # shared: packed strips of N, or split-K sums; and their offset after the workspaces
    "members",
    "strip",  # elements from one of the two packed strips of N to the other
    "task", "tasks", "workers", "fields",  # the function, number of tasks and workers; fields of this job
    # tiles left of the diagonal are skipped; the function that mirrors them, and its tasks
    "symmetric", "mirror", "mirrors",
    "reduce", "reductions",  # the function that adds split-K sums after all tasks, and its tasks
)  # fmt: skip

BYTES_HEADER = bytes.__basicsize__ - 1  # before the data of a bytes object, which ends with a 0
PACK = struct.Struct(f"{len(JOB_FIELDS)}q")
POSITIONS = {name: at for at, name in enumerate(JOB_FIELDS)}
COUNTERS = -(-len(JOB_FIELDS) // 8) * 8 + 8  # after the fields, on other cache lines: progress counters

STACK_BYTES = 4096  # up to this many bytes of sums are on the calling thread's stack: `sums_at` is −1 then

TASK_PARAMS = "ptr job, i64 task, i64 worker"
ENTER = "ptr job, ptr M, ptr N, ptr P"  # for a product that is one task; operands are array objects


def job_of(count: int = len(JOB_FIELDS), **values: int) -> Any:
    """A job in memory, filled by name; `count`: its size where counters follow."""
    job = (ctypes.c_int64 * count)()
    for name, value in values.items():
        job[POSITIONS[name]] = value
    return job


def template_address(template: bytes) -> int:
    """The address of a read-only job, a bytes object: a ctypes array takes several times as long to make."""
    return id(template) + BYTES_HEADER


class JobReader:
    """Loads fields of the job in a function."""

    def __init__(self, f: IRFunction) -> None:
        self.f = f

    def field(self, name: str) -> str:
        place = self.f.op(f"getelementptr i64, ptr %job, i64 {POSITIONS[name]}")
        return self.f.load("i64", place, 8)

    def fields(self, *names: str) -> list[str]:
        return [self.field(name) for name in names]

    def pointer(self, name: str) -> str:
        return self.f.op(f"inttoptr i64 {self.field(name)} to ptr")

    def member_of_stack(self, name: str, table: str, member: str, itemsize: int) -> str:
        """The address of one member's matrix."""
        f = self.f
        offset = f.load("i64", f.at("i64", self.pointer(table), member), 8)
        return f.at(f"[{itemsize} x i8]", self.pointer(name), offset)
