"""A plan made ready: kernel compiled, tasks cut, the job's words filled but for the addresses. Runs again and again."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.blocking import Blocking
from tilewise.engines.cpu import compile, workspace
from tilewise.engines.cpu.address import address, data_field
from tilewise.engines.cpu.arithmetic import Arithmetic, arithmetic
from tilewise.engines.cpu.dots import dots_module
from tilewise.engines.cpu.few_columns import few_columns_module
from tilewise.engines.cpu.few_rows import few_rows_module
from tilewise.engines.cpu.job import WORDS
from tilewise.engines.cpu.packed import packed_module, writes_apart
from tilewise.engines.cpu.pool import num_threads, run_tasks
from tilewise.engines.cpu.target import Target, host_target
from tilewise.engines.cpu.tasks import Tasks, cut_tasks
from tilewise.engines.cpu.tiny import tiny_module
from tilewise.planning import Plan

Array = np.ndarray[Any, np.dtype[Any]]

MODULES: dict[str, tuple[Callable[[Arithmetic], str], tuple[str, ...]]] = {
    "packed": (packed_module, ("run", "reduce")),
    "bits": (packed_module, ("run", "reduce")),
    "few_rows": (lambda a: few_rows_module(a, data_field()), ("run", "enter")),
    "few_columns": (few_columns_module, ("run",)),
    "dots": (dots_module, ("run",)),
    "tiny": (lambda a: tiny_module(a, data_field()), ("run", "enter")),
}
JobWords = ctypes.c_int64 * len(WORDS)
AT = {name: number for number, name in enumerate(WORDS)}
ENTER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


@lru_cache(maxsize=512)
def kernel_for(name: str, a: Arithmetic) -> dict[str, int]:
    """The addresses of a kernel's functions, compiled on first use."""
    write, names = MODULES[name]
    if name == "packed" and not writes_apart(a):
        names = (*names, "pack_strip", "run_strip")
    return compile.load(write(a), a.target, names)


@dataclass(frozen=True)
class Placed:
    """How a matrix (or a stack of them) lies: strides in elements, and where each member of the stack begins."""

    row: int
    col: int
    rows: int
    cols: int
    offsets: Array

    @classmethod
    def of(cls, x: Array, stack: tuple[int, ...]) -> Placed:
        size, offsets = x.itemsize, np.zeros(1, np.int64)
        if stack:
            for extent, stride in zip(stack, np.broadcast_to(x, (*stack, *x.shape[-2:])).strides[:-2], strict=True):
                offsets = (offsets[:, None] + np.arange(extent) * (stride // size)).ravel()
        rows, cols = x.shape[-2:]
        row, col = (stride // size for stride in x.strides[-2:])
        return cls(row if rows > 1 else max(cols, 1), col if cols > 1 else 1, rows, cols, offsets)

    def turned(self) -> Placed:
        """The transposed matrix, in the same place."""
        row = self.col if self.cols > 1 else max(self.rows, 1)
        return Placed(row, self.row if self.rows > 1 else 1, self.cols, self.rows, self.offsets)


class Ready:
    """A product of such operands. `run` takes their addresses."""

    def __init__(self, plan: Plan, M: Array, N: Array, P: Array, arg: Array | None, target: Target | None) -> None:
        problem, cut = plan.problem, plan.blocking
        assert cut is not None
        self.swapped = cut.swapped
        a = arithmetic(
            problem.algebra,
            problem.dtype_m,
            problem.dtype_n,
            target or host_target(),
            swapped=cut.swapped,
            arg=arg is not None,
            bits=cut.columns > 1,
        )
        self.placed = [Placed.of(x, problem.stack) for x in (M, N, P, *([] if arg is None else [arg]))]
        if cut.swapped:
            self.placed = [x.turned() for x in self.placed]
            self.placed[0], self.placed[1] = self.placed[1], self.placed[0]
        self.functions = kernel_for(cut.kernel, a)
        threads = num_threads()
        self.tasks = _tasks(a, cut, self.placed, threads)
        self.workers = min(threads, self.tasks.count) if self.tasks.worth_threads else 1
        self.template = self._words(cut, problem.accumulate)
        self.template_address = ctypes.addressof(self.template)
        short = "enter" in self.functions and not problem.stack and self.tasks.count == 1 and data_field()
        self.enter = ENTER(self.functions["enter"]) if short else None
        self.result = problem.result.numpy
        self.shape: tuple[int, ...] = ()  # of P, as the caller sees it
        self.keeps: Any = None  # what must not go while this is known by its id

    def _words(self, cut: Blocking, onto: bool) -> Any:
        words, t = JobWords(), self.tasks
        values = dict(
            zip(("m", "k", "n"), (self.placed[0].rows, self.placed[0].cols, self.placed[1].cols), strict=True)
        )
        for name, x in zip(("m", "n", "p", "a"), self.placed, strict=False):
            values |= {f"row_{name}": x.row, f"col_{name}": x.col, f"at_{name}": x.offsets.ctypes.data}
        values |= {
            "tasks_m": t.tasks_m, "tasks_n": t.tasks_n, "tasks_k": t.tasks_k, "onto": int(onto),
            "task_m": t.task_m, "task_n": t.task_n, "task_k": t.task_k, "members": len(self.placed[2].offsets),
            "KC": cut.KC, "MC": cut.MC, "NC": cut.NC, "group": cut.group, "workspace_bytes": t.each,
        }  # fmt: skip
        for name, value in values.items():
            words[AT[name]] = value
        return words

    def multiply(self, M: Array, N: Array, out: Array | None = None) -> Any:
        """The product of operands that lie as the ones this was made for."""
        P = np.empty(self.shape, self.result) if out is None else out
        if self.enter is not None:
            if self.swapped:
                M, N = N, M
            self.enter(self.template_address, id(M), id(N), id(P))
        else:
            self.run(address(M), address(N), address(P))
        return P if self.shape or out is not None else P[()]

    def takes(self, out: Any, M: Array, N: Array) -> bool:
        """Whether `out` can be written straight: an array of the product's shape and dtype, apart from M and N."""
        return (
            type(out) is np.ndarray
            and out.shape == self.shape
            and out.dtype == self.result
            and out.flags.writeable
            and not np.may_share_memory(out, M)
            and not np.may_share_memory(out, N)
        )

    def run(self, M: int, N: int, P: int, arg: int = 0) -> None:
        job = JobWords.from_buffer_copy(self.template)
        job[AT["M"]], job[AT["N"]] = (N, M) if self.swapped else (M, N)
        job[AT["P"]], job[AT["arg"]] = P, arg
        t = self.tasks
        if not t.each and not t.sums:
            run_tasks(self.functions["run"], ctypes.addressof(job), t.count, self.workers)
            return
        space = workspace.borrow(self.workers * t.each + t.sums)
        try:
            job[AT["workspace"]], job[AT["sums"]] = space[1], space[1] + self.workers * t.each
            if t.strips:
                self._strip_by_strip(job)
                return
            run_tasks(self.functions["run"], ctypes.addressof(job), t.count, self.workers)
            if t.tasks_k > 1:
                rows = job[AT["members"]] * job[AT["m"]]
                run_tasks(self.functions["reduce"], ctypes.addressof(job), rows, 1)
        finally:
            workspace.give_back(space)

    def _strip_by_strip(self, job: Any) -> None:
        """Every strip of N is packed by all workers together, and then multiplied by all of them."""
        t, at = self.tasks, ctypes.addressof(job)
        n, k, NC, KC = (job[AT[name]] for name in ("n", "k", "NC", "KC"))
        pack, multiply = (self.functions[name] for name in ("pack_strip", "run_strip"))
        for j in range(0, n, NC):
            job[AT["strip_j"]] = j
            pieces = -(-min(NC, n - j) // t.task_n)
            for p in range(0, k, KC):
                job[AT["strip_k"]] = p
                run_tasks(pack, at, pieces, self.workers)
                run_tasks(multiply, at, t.count, self.workers)


def _tasks(a: Arithmetic, cut: Blocking, placed: list[Placed], threads: int) -> Tasks:
    M, N, P = placed[:3]
    return cut_tasks(a, cut, M.rows, M.cols, N.cols, len(P.offsets), P.col == 1, N.row == 1, threads)
