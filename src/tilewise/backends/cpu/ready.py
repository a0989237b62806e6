"""A plan made ready: kernel compiled, tasks cut, the job filled but for the addresses. It runs any number of times."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import Array
from tilewise.algebra.no_edge import around, no_edge_of
from tilewise.arrays.extent import owned
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic, arithmetic
from tilewise.backends.cpu.kernels.shared.job import FEW_SUMS, JOB_FIELDS, job_of
from tilewise.backends.cpu.kernels.shared.strips import job_size
from tilewise.backends.cpu.kernels.shared.tasks import Extents
from tilewise.backends.cpu.kernels.weights.run import look_at
from tilewise.backends.cpu.registry import FAMILIES
from tilewise.backends.cpu.runtime import compile, workspace
from tilewise.backends.cpu.runtime.address import address, data_field
from tilewise.backends.cpu.runtime.pool import current_pool, native, num_threads
from tilewise.backends.cpu.runtime.target import Target, host_target
from tilewise.core.blocking import Blocking
from tilewise.core.plan import Plan
from tilewise.core.problem import Problem
from tilewise.system.builtin_call import builtin


@lru_cache(maxsize=512)
def kernel_for(name: str, a: Arithmetic) -> dict[str, int]:
    """The addresses of a kernel's functions, compiled on first use."""
    return compile.load(FAMILIES[name].text(a), a.target)


def arithmetic_of(problem: Problem, cut: Blocking, target: Target, *, arg: bool = False) -> Arithmetic:
    """What a cut's kernel computes."""
    sources, bits = (problem.dtype_m, problem.dtype_n), cut.columns > 1
    return arithmetic(
        problem.algebra, *sources, target, swapped=cut.swapped, arg=arg, bits=bits, deep=cut.deep, pairs=cut.pairs
    )


@dataclass(frozen=True)
class StridedMatrix:
    """How a matrix (or a stack of them) lies: strides in elements, and where each member of the stack begins."""

    row: int
    col: int
    rows: int
    cols: int
    offsets: Array

    @classmethod
    def of(cls, x: Array, stack: tuple[int, ...]) -> StridedMatrix:
        size, offsets = x.itemsize, np.zeros(1, np.int64)
        if stack:
            for extent, stride in zip(stack, np.broadcast_to(x, (*stack, *x.shape[-2:])).strides[:-2], strict=True):
                offsets = (offsets[:, None] + np.arange(extent) * (stride // size)).ravel()
        rows, cols = x.shape[-2:]
        row, col = (stride // size for stride in x.strides[-2:])
        return cls(row if rows > 1 else max(cols, 1), col if cols > 1 else 1, rows, cols, offsets)

    def transposed(self) -> StridedMatrix:
        """The transposed matrix, in the same place."""
        row = self.col if self.cols > 1 else max(self.rows, 1)
        return StridedMatrix(row, self.row if self.rows > 1 else 1, self.cols, self.rows, self.offsets)

    def in_pairs(self, beside: bool) -> StridedMatrix:
        """A complex matrix with strides in parts; `beside`: as a real one, the parts of a row side by side."""
        cols, col = (2 * self.cols, 1) if beside else (self.cols, 2 * self.col)
        return StridedMatrix(2 * self.row, col, self.rows, cols, 2 * self.offsets)


class Ready:
    """A product of such operands. `run` takes their addresses."""

    def __init__(self, plan: Plan, M: Array, N: Array, P: Array, arg: Array | None, target: Target | None) -> None:
        problem, cut = plan.problem, plan.blocking
        assert cut is not None
        self.swapped = cut.swapped
        a = arithmetic_of(problem, cut, target or host_target(), arg=arg is not None)
        assert (a.MR, a.NR) == (cut.MR, cut.NR), f"{cut} is for another instruction set than {a.target.name}"
        self.placed = [StridedMatrix.of(x, problem.stack) for x in (M, N, P, *([] if arg is None else [arg]))]
        if cut.swapped:
            self.placed = [x.transposed() for x in self.placed]
            self.placed[0], self.placed[1] = self.placed[1], self.placed[0]
        if cut.pairs:
            self.placed = [x.in_pairs(beside) for x, beside in zip(self.placed, (False, True, True), strict=True)]
        self.functions = kernel_for(cut.kernel, a)
        extents = _extents(a, self.placed)
        self.tasks = FAMILIES[cut.kernel].tasks(a, cut, extents)
        self.workers = min(extents.workers, self.tasks.count)
        few = 0 < self.tasks.sums <= FEW_SUMS
        self.sums_at = -1 if few else self.workers * self.tasks.each
        self.space = self.workers * self.tasks.each + (0 if few else self.tasks.sums)
        self.template = self._job(cut, problem.accumulate)
        self.template_address = ctypes.addressof(self.template)
        self.by_object = bool(data_field())
        self.launch = native()["launch_arrays" if self.by_object else "launch"]
        alone = not problem.stack and self.tasks.count == 1 and not (self.space or self.tasks.sums)
        short = "enter" in self.functions and alone and data_field()
        self.keeps_gil = FAMILIES[cut.kernel].keeps_gil
        enter = self.functions.get("enter", 0)
        self.enter = builtin(enter, "wooo", answers=False, keeps_gil=self.keeps_gil) if short else None
        self.no_edge = no_edge_of(problem.algebra)
        self.look = look_at(self.no_edge, M, N)
        self.onto = problem.algebra if problem.accumulate else None
        self.result = problem.result.numpy
        self.dtypes = problem.dtype_m.numpy, problem.dtype_n.numpy
        self.shape: tuple[int, ...] = ()  # of P, for the caller

    def _job(self, cut: Blocking, onto: bool) -> Any:
        t = self.tasks
        count = job_size(t.tasks_m) if t.strip else len(JOB_FIELDS)
        M, N = self.placed[:2]
        values = {"m": M.rows, "k": M.cols, "n": N.cols, "onto": int(onto), "fields": count}
        for name, x in zip(("m", "n", "p", "a"), self.placed, strict=False):
            values |= {f"row_{name}": x.row, f"col_{name}": x.col, f"at_{name}": x.offsets.ctypes.data}
        values |= {
            "tasks_m": t.tasks_m, "tasks_n": t.tasks_n, "tasks_k": t.tasks_k,
            "task_m": t.task_m, "task_n": t.task_n, "task_k": t.task_k, "members": len(self.placed[2].offsets),
            "KC": cut.KC, "MC": cut.MC, "NC": cut.NC, "group": cut.group, "strip": t.strip,
            "workspace_bytes": t.each, "sums_at": self.sums_at,
            "task": self.functions["run_strips" if t.strip else "run"], "tasks": t.count, "workers": self.workers,
        }  # fmt: skip
        if t.sums and not t.strip:
            values |= {"reduce": self.functions["reduce"], "reductions": len(self.placed[2].offsets) * M.rows}
        return job_of(count, **values)

    def multiply(self, M: Array, N: Array, out: Array | None = None) -> Any:
        """The product of operands that lie as the ones this was made for."""
        P = np.empty(self.shape, self.result) if out is None else out
        if self.enter is not None and (self.no_edge is None or (self.look is not None and self.look(M, N))):
            if self.swapped:
                M, N = N, M
            self.enter(self.template_address, M, N, P)
        else:
            self.run(M, N, P)
        return P if self.shape or out is not None else P[()]

    def into_fresh_memory(self) -> Callable[[Array, Array], Any]:
        """`multiply` without `out`, with everything bound that can be: small products take a microsecond."""
        enter, job, shape, result, empty = self.enter, self.template_address, self.shape, self.result, np.empty
        if not shape:
            into = self.into_given_memory()
            return lambda M, N: into(M, N, empty(shape, result))[()]
        if enter is None and (straight := self._straight()) is not None:
            return lambda M, N: straight(M, N, empty(shape, result))
        if enter is None or self.no_edge is not None:
            return self.multiply

        def product(M: Array, N: Array) -> Any:
            P = empty(shape, result)
            enter(job, M, N, P)
            return P

        def exchanged(M: Array, N: Array) -> Any:
            P = empty(shape, result)
            enter(job, N, M, P)
            return P

        return exchanged if self.swapped else product

    def into_given_memory(self) -> Callable[[Array, Array, Array], Any]:
        """The same for a P that is there, and is known to be as it should."""
        enter, job, swapped = self.enter, self.template_address, self.swapped
        if enter is None or self.no_edge is not None:
            return self._straight() or self.multiply

        def product(M: Array, N: Array, P: Array) -> Any:
            if swapped:
                enter(job, N, M, P)
            else:
                enter(job, M, N, P)
            return P

        return product

    def _straight(self) -> Callable[[Array, Array, Array], Any] | None:
        """A product that looks at no weights, with scratch memory and threads; None where there is more to do."""
        if not self.by_object or self.no_edge is not None:
            return None
        several, launch, job = self.workers > 1, self.launch, self.template_address
        swapped, scratch = self.swapped, self.space
        borrow, give_back = workspace.borrow, workspace.give_back

        def product(M: Array, N: Array, P: Array) -> Any:
            if swapped:
                M, N = N, M
            pool = current_pool() if several else None
            if not scratch:
                launch(pool.address if pool is not None else 0, job, M, N, P, 0, 0)
                return P
            space = borrow(scratch)
            try:
                launch(pool.address if pool is not None else 0, job, M, N, P, 0, space[1])
            finally:
                give_back(space)
            return P

        return product

    def at_addresses(self) -> Callable[..., Any] | None:
        """The same for elements at addresses, of M, N, P and, with return_arg, the k that won; None where a
        product needs more than one thread, or a look at its weights."""
        if self.workers > 1 or self.no_edge is not None:
            return None
        launch, job, swapped = native()["launch"], self.template_address, self.swapped
        scratch, borrow, give_back = self.space, workspace.borrow, workspace.give_back

        def product(M: int, N: int, P: int, arg: int = 0) -> None:
            if swapped:
                M, N = N, M
            if not scratch:
                launch(0, job, M, N, P, arg, 0)
                return
            space = borrow(scratch)
            try:
                launch(0, job, M, N, P, arg, space[1])
            finally:
                give_back(space)

        return product

    def multiply_with_arg(self, M: Array, N: Array, out: Array | None = None) -> Any:
        """The same and the k that won each cell."""
        P, arg = np.empty(self.shape, self.result) if out is None else out, np.empty(self.shape, np.int64)
        self.run(M, N, P, arg)
        return (P, arg) if self.shape or out is not None else (P[()], arg[()])

    def into_fresh_memory_with_arg(self) -> Callable[[Array, Array], Any]:
        """`multiply_with_arg` without `out`, with everything bound that can be."""
        if self.workers > 1 or not (self.by_object and self.shape):
            return self.multiply_with_arg
        launch, job, shape, result = native()["launch_arrays_and_arg"], self.template_address, self.shape, self.result
        edges, look, swapped, empty, whole = self.no_edge, self.look, self.swapped, np.empty, np.dtype(np.int64)
        scratch, borrow, give_back = self.space, workspace.borrow, workspace.give_back

        def product(M: Array, N: Array) -> Any:
            if edges is not None and (look is None or not look(M, N)):
                return self.multiply_with_arg(M, N)
            P, arg = empty(shape, result), empty(shape, whole)
            if swapped:
                M, N = N, M
            space = borrow(scratch)
            try:
                launch(0, job, M, N, P, arg, space[1])
            finally:
                give_back(space)
            return P, arg

        return product

    def takes(self, out: Any, M: Array, N: Array) -> bool:
        """Whether `out` can be written straight: an array of the product's shape and dtype, apart from M and N."""
        if type(out) is not np.ndarray or out.shape != self.shape or out.dtype != self.result:
            return False
        flags = out.flags
        if not (flags.writeable and owned(out)):
            return False
        if flags.owndata and M.flags.owndata and N.flags.owndata:  # two owners share no memory
            return out is not M and out is not N
        return not (np.may_share_memory(out, M) or np.may_share_memory(out, N))

    def run(self, M: Array, N: Array, P: Array, arg: Array | None = None) -> None:
        weights = self.look is not None and self.look(M, N)
        around(None if weights else self.no_edge, self._launch, M, N, P, arg, self.onto)

    def _launch(self, M: Array, N: Array, P: Array, arg: Array | None) -> None:
        if self.swapped:
            M, N = N, M
        where = (M, N, P) if self.by_object else (address(M), address(N), address(P))
        args = 0 if arg is None else address(arg)
        pool = current_pool() if self.workers > 1 else None
        threads = pool.address if pool is not None else 0
        if not self.space:
            self.launch(threads, self.template_address, *where, args, 0)
            return
        space = workspace.borrow(self.space)
        try:
            self.launch(threads, self.template_address, *where, args, space[1])
        finally:
            workspace.give_back(space)


def _extents(a: Arithmetic, placed: list[StridedMatrix]) -> Extents:
    M, N, P = placed[:3]
    lanes = 1 if a.heavy else a.lanes  # a heavy step takes as long as a vector of light ones, and longer
    return Extents(M.rows, M.cols, N.cols, len(P.offsets), P.col == 1, N.row == 1, num_threads(), lanes)
