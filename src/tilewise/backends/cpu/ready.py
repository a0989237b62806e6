"""A plan made ready: kernel compiled, tasks cut, the job filled but for the addresses. It runs any number of times."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import Array
from tilewise.algebra.no_edge import NoEdge, no_edge_of, run_encoded
from tilewise.arrays.extent import owned
from tilewise.backends.cpu.kernels.packed import PACKED
from tilewise.backends.cpu.kernels.packed.model import MIRRORED, writes_apart
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic, arithmetic
from tilewise.backends.cpu.kernels.shared.job import FEW_SUMS, JOB_FIELDS, PACK, template_address
from tilewise.backends.cpu.kernels.shared.strips import job_size
from tilewise.backends.cpu.kernels.shared.tasks import Extents, workers_for
from tilewise.backends.cpu.kernels.weights.run import look_at
from tilewise.backends.cpu.registry import FAMILIES
from tilewise.backends.cpu.runtime import compile, workspace
from tilewise.backends.cpu.runtime.address import address
from tilewise.backends.cpu.runtime.pool import current_pool, native, num_threads
from tilewise.backends.cpu.runtime.target import Target, host_target
from tilewise.core.blocking import Blocking
from tilewise.core.problem import Layout, Problem, row_major
from tilewise.system.builtin_call import builtin

ALONE = np.zeros(1, np.int64)  # where the one member of no stack begins
AT_ALONE = ALONE.ctypes.data
# rows of P whose packed N is read so seldom that one thread packs a group of it at a time, which the second cache keeps
# (18x596x5834 of float64 by column-major M 1.24 times as fast, 30x500x3000 of int32 over min_plus 1.46 times)
LOW = 64


@lru_cache(maxsize=512)
def kernel_for(name: str, a: Arithmetic) -> dict[str, int]:
    """The addresses of a kernel's functions, compiled on first use."""
    return compile.load(FAMILIES[name].text(a), a.target)


def arithmetic_of(problem: Problem, cut: Blocking, target: Target) -> Arithmetic:
    """What a cut's kernel computes."""
    how = problem.return_arg, cut.columns > 1, cut.k_pack, cut.pairs
    return arithmetic(problem.algebra, problem.dtype_m, problem.dtype_n, target, cut.swapped, *how)


class Kernel:
    """A family's machine code for one arithmetic, and what its products have in common."""

    __slots__ = ("a", "dtypes", "enter", "functions", "lanes", "no_edge", "onto", "result", "tasks")

    def __init__(self, problem: Problem, cut: Blocking, target: Target) -> None:
        a = self.a = arithmetic_of(problem, cut, target)
        assert (a.MR, a.NR) == (cut.MR, cut.NR), f"{cut} is for another instruction set than {target.name}"
        family = FAMILIES[cut.kernel]
        self.functions, self.tasks = kernel_for(cut.kernel, a), family.tasks
        enter = self.functions.get("enter")
        self.enter = builtin(enter, "wooo", answers=False, keeps_gil=family.keeps_gil) if enter else None
        self.no_edge = no_edge_of(problem.algebra)
        self.onto = problem.algebra if problem.accumulate else None
        self.result = problem.result.numpy
        self.dtypes = problem.dtype_m.numpy, problem.dtype_n.numpy
        self.lanes = 1 if a.heavy else a.lanes  # a heavy step takes as long as a vector of light ones, and longer


def _kernel_of(problem: Problem, cut: Blocking, target: Target) -> Kernel:
    """One for all sizes of a problem."""
    key = cut.kernel, cut.swapped, cut.k_pack, cut.pairs
    found: Kernel | None = problem.shared.get(key)
    if found is None or found.a.target is not target:
        found = problem.shared[key] = Kernel(problem, cut, target)
    return found


def _strides(problem: Problem, cut: Blocking) -> tuple[int, int, int, int, int, int]:
    """Rows and columns of M, N and P as the kernel has them; those of one element count as dense."""
    M, N, P = problem.layout_m, problem.layout_n, problem.layout_p
    m, k, n = problem.m, problem.k, problem.n
    of_m = M.row if m > 1 else k or 1, M.col if k > 1 else 1
    of_n = N.row if k > 1 else n or 1, N.col if n > 1 else 1
    of_p = P.row if m > 1 else n or 1, P.col if n > 1 else 1
    if cut.swapped:  # Pᵀ = Nᵀ ⊗ Mᵀ
        of_m, of_n = (
            (N.col if n > 1 else k or 1, N.row if k > 1 else 1),
            (M.col if k > 1 else m or 1, M.row if m > 1 else 1),
        )
        of_p = P.col if n > 1 else m or 1, P.row if m > 1 else 1
    if cut.pairs:  # in parts; a row of N and of P as a real one, its parts side by side
        return 2 * of_m[0], 2 * of_m[1], 2 * of_n[0], 1, 2 * of_p[0], 1
    return *of_m, *of_n, *of_p


def _offsets(lying: list[tuple[int, ...]], stack: tuple[int, ...], each: int) -> Array:
    """Where each member of a stack begins in several operands, a row each, in elements of which a number has `each`."""
    steps = np.array(lying, np.int64)
    if each > 1:
        steps *= each
    offsets = steps[:, :1] * np.arange(stack[0])
    for axis in range(1, len(stack)):
        inner = steps[:, axis, None, None] * np.arange(stack[axis])
        offsets = (offsets[:, :, None] + inner).reshape(len(lying), -1)
    return offsets


class Ready:
    """A product of such operands. `run` takes their addresses."""

    __slots__ = (
        "enter",
        "kernel",
        "look",
        "offsets",
        "shape",
        "space",
        "swapped",
        "template",
        "template_address",
        "workers",
    )

    def __init__(
        self, problem: Problem, cut: Blocking, target: Target | None = None, layout_arg: Layout | None = None
    ) -> None:
        """`layout_arg`: of the winning k, where they are not row-major."""
        kernel = self.kernel = _kernel_of(problem, cut, target or host_target())
        m, k, n, stack = problem.m, problem.k, problem.n, problem.stack
        row_m, col_m, row_n, col_n, row_p, col_p = _strides(problem, cut)
        self.swapped, arg = cut.swapped, None
        if problem.return_arg:
            arg = layout_arg or row_major(m, n, stack)
        if cut.swapped:
            m, n = n, m
        if cut.pairs:
            n *= 2
        at_m = at_n = at_p = at_a = AT_ALONE
        members = 1
        if stack:
            lying = [problem.layout_m.stack, problem.layout_n.stack, problem.layout_p.stack]
            if cut.swapped:
                lying[:2] = lying[1::-1]
            if arg is not None:
                lying.append(arg.stack)
            self.offsets = _offsets(lying, stack, 2 if cut.pairs else 1)
            members, first = self.offsets.shape[1], address(self.offsets)
            at_m, at_n, at_p = first, first + 8 * members, first + 16 * members
            at_a = at_p if arg is None else first + 24 * members
        workers = workers_for(m, k, n, members, num_threads(), kernel.lanes)
        if (
            workers == 1
            and m <= LOW
            and cut.kernel == PACKED.name
            and not (kernel.a.parts > 1 or kernel.a.target.by_lane)
        ):
            cut = cut._replace(NC=min(cut.NC, cut.group))
        x = Extents(m, k, n, members, col_p == 1, row_n == 1, workers, problem.accumulate)
        t = kernel.tasks(kernel.a, cut, x)
        workers = self.workers = min(workers, t.count)
        few = 0 < t.sums <= FEW_SUMS
        sums_at = -1 if few else workers * t.each
        self.space = workers * t.each + (0 if few else t.sums)
        row_a, col_a = (0, 0) if arg is None else (arg.col, arg.row) if cut.swapped else (arg.row, arg.col)
        functions, apart = kernel.functions, t.sums > 0 and not t.strip
        direct = cut.symmetric and col_p == 1 and not (apart or problem.accumulate or writes_apart(kernel.a))
        mirrors = members * -(-m // MIRRORED) if direct else 0
        size = job_size(t.tasks_m) if t.strip else len(JOB_FIELDS)
        template = PACK.pack(
            0, row_m, col_m, 0, row_n, col_n, 0, row_p, col_p, 0, row_a, col_a,
            m, k, n, at_m, at_n, at_p, at_a,
            t.tasks_m, t.tasks_n, t.tasks_k, t.task_m, t.task_n, t.task_k, problem.accumulate,
            cut.KC, cut.MC, cut.NC, cut.group, 0, t.each, 0, sums_at, members, t.strip,
            functions["run_strips" if t.strip else "run"], t.count, workers, size,
            cut.symmetric, functions["mirror"] if mirrors else 0, mirrors,
            functions["reduce"] if apart else 0, members * m if apart else 0,
        )  # fmt: skip
        self.template = template + bytes(8 * (size - len(JOB_FIELDS))) if t.strip else template
        self.template_address = template_address(self.template)
        alone = not stack and t.count == 1 and not (self.space or t.sums)
        self.enter = kernel.enter if alone else None
        self.look = None if kernel.no_edge is None else look_at(kernel.no_edge, problem)
        self.shape: tuple[int, ...] = ()  # of P, for the caller

    @property
    def no_edge(self) -> NoEdge | None:
        return self.kernel.no_edge

    @property
    def result(self) -> np.dtype[Any]:
        return self.kernel.result

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
        if not shape and (enter is None or self.no_edge is not None or self.swapped):
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

        def number(M: Array, N: Array) -> Any:
            P = empty(shape, result)
            enter(job, M, N, P)
            return P[()]

        if not shape:
            return number
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

    def _straight(self) -> Callable[..., Any] | None:
        """A product that looks at no weights, with scratch memory and threads; None where there is more to do."""
        return None if self.no_edge is not None else self._launched("launch_arrays")

    def at_addresses(self) -> Callable[..., Any] | None:
        """The same for elements at addresses, of M, N, P and, with return_arg, the k that won; None where a
        product needs more than one thread, or a look at its weights."""
        return None if self.workers > 1 or self.no_edge is not None else self._launched("launch")

    def _launched(self, function: str) -> Callable[..., Any]:
        """`product(M, N, P, arg=0)` by a function of the pool's: each an array or an address, as that takes them."""
        several, launch, job = self.workers > 1, native()[function], self.template_address
        swapped, scratch = self.swapped, self.space
        borrow, give_back = workspace.borrow, workspace.give_back

        def product(M: Any, N: Any, P: Any, arg: Any = 0) -> Any:
            if swapped:
                M, N = N, M
            pool = current_pool() if several else None
            if not scratch:
                launch(pool.address if pool is not None else 0, job, M, N, P, arg, 0)
                return P
            space = borrow(scratch)
            try:
                launch(pool.address if pool is not None else 0, job, M, N, P, arg, space[1])
            finally:
                give_back(space)
            return P

        return product

    def multiply_with_arg(self, M: Array, N: Array, out: Array | None = None) -> Any:
        """The same and the k that won each cell."""
        P, arg = np.empty(self.shape, self.result) if out is None else out, np.empty(self.shape, np.int64)
        self.run(M, N, P, arg)
        return (P, arg) if self.shape or out is not None else (P[()], arg[()])

    def into_fresh_memory_with_arg(self) -> Callable[[Array, Array], Any]:
        """`multiply_with_arg` without `out`, with everything bound that can be."""
        if self.workers > 1 or not self.shape:
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
        run_encoded(None if weights else self.no_edge, self._launch, M, N, P, arg, self.kernel.onto)

    def _launch(self, M: Array, N: Array, P: Array, arg: Array | None) -> None:
        self._launched("launch_arrays")(M, N, P, 0 if arg is None else address(arg))
