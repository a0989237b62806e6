"""A job: the parameters of all tasks of a product, as 64-bit fields that compiled code reads.

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
    "arg", "row_a", "col_a",  # where the winning k go, or 0
    "m", "k", "n",
    "at_m", "at_n", "at_p", "at_a",  # for each member of the stack: how many elements from the first
    "tasks_m", "tasks_n", "tasks_k",  # how P (and k) are cut into tasks
    "task_m", "task_n", "task_k",  # rows, columns and k of a task
    "onto",  # 1: add onto what P holds
    "KC", "MC", "NC", "group",
    "workspace", "workspace_bytes",  # one for each worker
    "sums", "sums_at",  # shared: packed strips of N, or sums of the same cells of P; and how far behind the workspace
    "members",
    "strip",  # elements from one of the two packed strips of N to the other
    "task", "tasks", "workers", "fields",  # the function, how often and by how many workers; this job's size
    "symmetric", "mirror", "mirrors",  # tiles left of the diagonal are not computed; what copies them, and how often
    "reduce", "reductions",  # what adds up sums that were left apart, after all tasks; and how often it runs
)  # fmt: skip

BYTES_HEADER = bytes.__basicsize__ - 1  # before the bytes of such an object, which end with a 0
PACK = struct.Struct(f"{len(JOB_FIELDS)}q")
POSITIONS = {name: at for at, name in enumerate(JOB_FIELDS)}
COUNTERS = -(-len(JOB_FIELDS) // 8) * 8 + 8  # behind the fields, on other cache lines: how far tasks are

FEW_SUMS = 4096  # bytes of sums up to which the calling thread keeps them on its stack: `sums_at` is −1 then

TASK_PARAMS = "ptr job, i64 task, i64 worker"
ENTER = "ptr job, ptr M, ptr N, ptr P"  # of a product that is one task, whose operands come as array objects


def job_of(count: int = len(JOB_FIELDS), **values: int) -> Any:
    """A job in memory, filled by name; `count`: its size where counters follow."""
    job = (ctypes.c_int64 * count)()
    for name, value in values.items():
        job[POSITIONS[name]] = value
    return job


def template_address(template: bytes) -> int:
    """Where the fields of a job are that is only read, as bytes: a ctypes array takes several times as long to make."""
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
