"""One job for the kernels: everything a task needs to know, as a row of 64-bit words that compiled code reads.

Python fills the words by name, generated code loads them by name; the order here is the only agreement between the two.
"""

from __future__ import annotations

import ctypes
from typing import Any

from tilewise.backends.cpu.kernels.shared.ir import Function

WORDS = (
    "M", "row_m", "col_m",  # addresses, and strides in elements
    "N", "row_n", "col_n",
    "P", "row_p", "col_p",
    "arg", "row_a", "col_a",  # where the winning k go; 0 when nobody asked
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
    "task", "tasks", "workers", "words",  # what runs, how often, by how many; and how many words this job has
    "reduce", "reductions",  # what adds up sums that were left apart, after all tasks; and how often it runs
)  # fmt: skip

COUNTERS = -(-len(WORDS) // 8) * 8 + 8  # behind the words, on lines of their own: what tasks tell each other

FEW_SUMS = 4096  # bytes of sums up to which the calling thread keeps them on its stack: `sums_at` is −1 then

TASK_PARAMS = "ptr job, i64 task, i64 worker"
ENTER = "ptr job, ptr M, ptr N, ptr P"  # of a product that is one task, whose operands come as array objects


def job_of(count: int = len(WORDS), **values: int) -> Any:
    """A job in memory, its words filled by name; `count` words, where counters follow."""
    job = (ctypes.c_int64 * count)()
    for name, value in values.items():
        job[WORDS.index(name)] = value
    return job


class JobReader:
    """Loads words of the job into a function, each where it is first asked for."""

    def __init__(self, f: Function) -> None:
        self.f = f

    def word(self, name: str) -> str:
        place = self.f.op(f"getelementptr i64, ptr %job, i64 {WORDS.index(name)}")
        return self.f.load("i64", place, 8)

    def words(self, *names: str) -> list[str]:
        return [self.word(name) for name in names]

    def pointer(self, name: str) -> str:
        return self.f.op(f"inttoptr i64 {self.word(name)} to ptr")

    def member_of_stack(self, name: str, table: str, member: str, itemsize: int) -> str:
        """The address of one member's matrix."""
        f = self.f
        offset = f.load("i64", f.at("i64", self.pointer(table), member), 8)
        return f.at(f"[{itemsize} x i8]", self.pointer(name), offset)
