"""A plan prepared for execution: kernel compiled, tasks cut, the job filled except for the addresses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from tilewise.algebra.dtypes import Array
from tilewise.algebra.no_edge import NoEdge, no_edge_of, run_encoded
from tilewise.arrays.address import address
from tilewise.arrays.extent import writable
from tilewise.arrays.numpy_signature import CLASSES
from tilewise.backends.cpu.kernels.packed import PACKED
from tilewise.backends.cpu.kernels.packed.model import MIRRORED, needs_block
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic, arithmetic
from tilewise.backends.cpu.kernels.shared.job import JOB_FIELDS, PACK, STACK_BYTES, template_address
from tilewise.backends.cpu.kernels.shared.strips import job_size
from tilewise.backends.cpu.kernels.shared.tasks import Extents, workers_for
from tilewise.backends.cpu.kernels.weights.run import weight_check
from tilewise.backends.cpu.registry import FAMILIES
from tilewise.backends.cpu.runtime import compile, workspace
from tilewise.backends.cpu.runtime.pool import current_pool, native, num_threads
from tilewise.backends.cpu.runtime.target import Target, host_target
from tilewise.core.blocking import Blocking
from tilewise.core.problem import Layout, Problem, row_major
from tilewise.system.builtin_call import builtin

ZERO_OFFSET = np.zeros(1, np.int64)  # offset of the only member where there is no stack
ZERO_OFFSET_ADDRESS = ZERO_OFFSET.ctypes.data
# up to this many rows of P one thread packs N a group at a time, which stays in L2: each panel is read only a few times
# (18x596x5834 of float64 by column-major M 1.24 times as fast, 30x500x3000 of int32 over min_plus 1.46 times)
LOW_P = 64
AMX_VECTORS = 8  # with what packing takes
# least threads with enough work for AMX: two take 1.2 to 1.5 times as long as one (159x1645x35 bfloat16 and int8), and
# three 0.9 of the time (1031x93x137)
AMX_WORKERS = 3
BESIDE = Struct("2q")  # workspace and workers of a filled job
FILLED_BYTES = PACK.size + BESIDE.size


@lru_cache(maxsize=512)
def kernel_for(name: str, a: Arithmetic) -> dict[str, int]:
    """The addresses of a kernel's functions, compiled on first use."""
    return compile.load(FAMILIES[name].text(a), a.target)


def arithmetic_of(problem: Problem, cut: Blocking, target: Target) -> Arithmetic:
    """The arithmetic of a blocking's kernel."""
    how = problem.return_arg, cut.columns > 1, cut.k_pack, cut.pairs, cut.amx, cut.rounds, problem.ordered
    return arithmetic(problem.algebra, problem.dtype_m, problem.dtype_n, target, cut.swapped, *how)


class Kernel:
    """A family's machine code for one arithmetic, and the values that all of its products share."""

    __slots__ = ("a", "dtypes", "enter", "functions", "lanes", "no_edge", "onto", "result", "tasks")

    def __init__(self, problem: Problem, cut: Blocking, target: Target) -> None:
        a = self.a = arithmetic_of(problem, cut, target)
        assert (a.MR, a.NR) == (cut.MR, cut.NR), f"{cut} is for another instruction set than {target.name}"
        family = FAMILIES[cut.kernel]
        self.functions, self.tasks = kernel_for(cut.kernel, a), family.tasks
        enter = self.functions.get("enter")
        self.enter = builtin(enter, "wooo", returns=False, keeps_gil=family.keeps_gil) if enter else None
        self.no_edge = no_edge_of(problem.algebra)
        self.onto = problem.algebra if problem.accumulate else None
        self.result = problem.result.numpy
        self.dtypes = problem.dtype_m.numpy, problem.dtype_n.numpy
        # a heavy step takes as long as a vector of light ones, and longer; AMX multiplies sixteen vectors at a time
        self.lanes = 1 if a.heavy else a.lanes * (AMX_VECTORS if a.amx and not a.splits else 1)


def kernel_of(problem: Problem, cut: Blocking, target: Target) -> Kernel:
    """Cached for all sizes of a problem."""
    key = cut.kernel, cut.swapped, cut.k_pack, cut.pairs, cut.amx, cut.rounds
    found: Kernel | None = problem.shared.get(key)
    if found is None or found.a.target is not target:
        found = problem.shared[key] = Kernel(problem, cut, target)
    return found


def _strides(problem: Problem, cut: Blocking) -> tuple[int, int, int, int, int, int]:
    """Row and column strides of M, N and P as the kernel uses them; an axis of one element counts as dense."""
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
    if cut.pairs:  # in real numbers, of which a column has two: rows of P have their parts interleaved
        return 2 * of_m[0], 2 * of_m[1], 2 * of_n[0], of_n[1], 2 * of_p[0], 1
    return *of_m, *of_n, *of_p


def _offsets(stacks: list[tuple[int, ...]], stack: tuple[int, ...], each: int) -> Array:
    """The offset of each member of a stack, a row for each operand, in elements; a number is `each` of them."""
    steps = np.array(stacks, np.int64)
    if each > 1:
        steps *= each
    offsets = steps[:, :1] * np.arange(stack[0])
    for axis in range(1, len(stack)):
        inner = steps[:, axis, None, None] * np.arange(stack[axis])
        offsets = (offsets[:, :, None] + inner).reshape(len(stacks), -1)
    return offsets


class Filled(NamedTuple):
    """A job, and what launching it takes."""

    values: tuple[int, ...]  # of JOB_FIELDS
    size: int  # fields and counters
    space: int  # bytes of workspace
    workers: int
    one_task: bool  # the kernel may be entered directly


def fill(
    kernel: Kernel, problem: Problem, cut: Blocking, members: int, at: Sequence[int], arg: Layout | None = None
) -> Filled:
    """The job of a product, whose members have their offsets at these addresses."""
    m, k, n = problem.m, problem.k, problem.n
    row_m, col_m, row_n, col_n, row_p, col_p = _strides(problem, cut)
    if cut.swapped:
        m, n = n, m
    if cut.pairs:
        n *= 2
    workers = workers_for(m, k, n, members, num_threads(), kernel.lanes)
    if kernel.a.amx and workers_for(m, k, n, members, AMX_WORKERS, kernel.lanes) < AMX_WORKERS:
        workers = 1
    if (
        workers == 1
        and m <= LOW_P
        and (cut.kernel == PACKED.name or cut.amx)
        and not (kernel.a.parts > 1 or kernel.a.target.by_lane)
    ):
        cut = cut._replace(NC=min(cut.NC, cut.group))
    t = kernel.tasks(kernel.a, cut, Extents(m, k, n, members, col_p == 1, row_n == 1, workers, problem.accumulate))
    workers = min(workers, t.count)
    few = 0 < t.sums <= STACK_BYTES
    sums_at = -1 if few else workers * t.each
    space = workers * t.each + (0 if few else t.sums)
    row_a, col_a = (0, 0) if arg is None else (arg.col, arg.row) if cut.swapped else (arg.row, arg.col)
    functions, reduces = kernel.functions, t.sums > 0 and not t.strip
    direct = cut.symmetric and col_p == 1 and not (reduces or problem.accumulate or needs_block(kernel.a))
    mirrors = members * -(-m // MIRRORED) if direct else 0
    size = job_size(t.tasks_m) if t.strip else len(JOB_FIELDS)
    values = (
        0, row_m, col_m, 0, row_n, col_n, 0, row_p, col_p, 0, row_a, col_a,
        m, k, n, *at,
        t.tasks_m, t.tasks_n, t.tasks_k, t.task_m, t.task_n, t.task_k, problem.accumulate,
        cut.KC, cut.MC, cut.NC, cut.group, 0, t.each, 0, sums_at, members, t.strip,
        functions["run_strips" if t.strip else "run"], t.count, workers, size,
        cut.symmetric, functions["mirror"] if mirrors else 0, mirrors,
        functions["reduce"] if reduces else 0, members * m if reduces else 0,
    )  # fmt: skip
    return Filled(values, size, space, workers, not problem.stack and t.count == 1 and not (space or t.sums))


class Ready:
    """A product of operands with these layouts; each call passes their addresses."""

    __slots__ = (
        "enter",
        "kernel",
        "offsets",
        "scan",
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
        kernel = kernel_of(problem, cut, target or host_target())
        stack, arg = problem.stack, None
        if problem.return_arg:
            arg = layout_arg or row_major(problem.m, problem.n, stack)
        members, at = 1, (ZERO_OFFSET_ADDRESS,) * 4
        if stack:
            stacks = [problem.layout_m.stack, problem.layout_n.stack, problem.layout_p.stack]
            if cut.swapped:
                stacks[:2] = stacks[1::-1]
            if arg is not None:
                stacks.append(arg.stack)
            self.offsets = _offsets(stacks, stack, 2 if cut.pairs else 1)
            members, first = self.offsets.shape[1], address(self.offsets)
            at = first, first + 8 * members, first + 16 * members, first + (16 if arg is None else 24) * members
        filled = fill(kernel, problem, cut, members, at, arg)
        template = PACK.pack(*filled.values) + bytes(8 * (filled.size - len(JOB_FIELDS)))
        self._set(kernel, cut.swapped, filled.one_task, template, filled.space, filled.workers)
        self.scan = None if kernel.no_edge is None else weight_check(kernel.no_edge, problem)

    @classmethod
    def filled(cls, template: bytes, kernel: Kernel, swapped: bool, one_task: bool) -> Ready:
        """The same of a job that has been filled, with its `space` and `workers` after its fields; without a stack or a
        check of weights."""
        made = cls.__new__(cls)
        made._set(kernel, swapped, one_task, template, *BESIDE.unpack_from(template, PACK.size))
        made.scan = None
        return made

    def _set(self, kernel: Kernel, swapped: bool, one_task: bool, template: bytes, space: int, workers: int) -> None:
        self.kernel, self.swapped, self.template, self.space, self.workers = kernel, swapped, template, space, workers
        self.template_address = template_address(template)
        self.enter = kernel.enter if one_task else None
        self.shape: tuple[int, ...] = ()  # of P

    @property
    def no_edge(self) -> NoEdge | None:
        return self.kernel.no_edge

    @property
    def result(self) -> np.dtype[Any]:
        return self.kernel.result

    def multiply(self, M: Array, N: Array, out: Array | None = None) -> Any:
        """The product of operands with the layouts this was prepared for."""
        P = np.empty(self.shape, self.result) if out is None else out
        if self.enter is not None and (self.no_edge is None or (self.scan is not None and self.scan(M, N))):
            if self.swapped:
                M, N = N, M
            self.enter(self.template_address, M, N, P)
        else:
            self.run(M, N, P)
        return P if self.shape or out is not None else P[()]

    def into_fresh_memory(self) -> Callable[[Array, Array], Any]:
        """`multiply` without `out` as a closure without attribute lookups: small products take a microsecond."""
        enter, job, shape, result, empty = self.enter, self.template_address, self.shape, self.result, np.empty
        if not shape and (enter is None or self.no_edge is not None or self.swapped):
            into = self.into_given_memory()
            return lambda M, N: into(M, N, empty(shape, result))[()]
        if enter is None and (unchecked := self._unchecked()) is not None:
            return lambda M, N: unchecked(M, N, empty(shape, result))
        if enter is None or self.no_edge is not None:
            return self.multiply

        def product(M: Array, N: Array) -> Any:
            P = empty(shape, result)
            enter(job, M, N, P)
            return P

        def swapped_product(M: Array, N: Array) -> Any:
            P = empty(shape, result)
            enter(job, N, M, P)
            return P

        def number(M: Array, N: Array) -> Any:
            P = empty(shape, result)
            enter(job, M, N, P)
            return P[()]

        if not shape:
            return number
        return swapped_product if self.swapped else product

    def into_given_memory(self) -> Callable[[Array, Array, Array], Any]:
        """The same for a given P, which the caller has checked."""
        enter, job, swapped = self.enter, self.template_address, self.swapped
        if enter is None or self.no_edge is not None:
            return self._unchecked() or self.multiply

        def product(M: Array, N: Array, P: Array) -> Any:
            if swapped:
                enter(job, N, M, P)
            else:
                enter(job, M, N, P)
            return P

        return product

    def _unchecked(self) -> Callable[..., Any] | None:
        """A product with workspace and threads; None where weights must be checked first."""
        return None if self.no_edge is not None else self._launched("launch_arrays")

    def at_addresses(self) -> Callable[..., Any] | None:
        """The same for the addresses of M, N, P and, with return_arg, the winning k; None where a product needs several
        threads or a scan of its weights."""
        return None if self.workers > 1 or self.no_edge is not None else self._launched("launch")

    def _launched(self, function: str) -> Callable[..., Any]:
        """`product(M, N, P, arg=0)` by a native function of the pool, which takes arrays or addresses."""
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
        """The same and the winning k of each cell."""
        P, arg = np.empty(self.shape, self.result) if out is None else out, np.empty(self.shape, np.int64)
        self.run(M, N, P, arg)
        return (P, arg) if self.shape or out is not None else (P[()], arg[()])

    def into_fresh_memory_with_arg(self) -> Callable[[Array, Array], Any]:
        """`multiply_with_arg` without `out`, as a closure without attribute lookups."""
        if self.workers > 1 or not self.shape:
            return self.multiply_with_arg
        launch, job, shape, result = native()["launch_arrays_and_arg"], self.template_address, self.shape, self.result
        edges, scan, swapped, empty, whole = (self.no_edge, self.scan, self.swapped, np.empty, np.dtype(np.int64))
        scratch, borrow, give_back = self.space, workspace.borrow, workspace.give_back

        def product(M: Array, N: Array) -> Any:
            if edges is not None and (scan is None or not scan(M, N)):
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
        """Whether `out` can be written directly: an array of P's shape and dtype that overlaps neither operand."""
        if out.__class__ not in CLASSES or out.shape != self.shape or out.dtype != self.result:
            return False
        if not writable(out):
            return False
        if out.flags.owndata and M.flags.owndata and N.flags.owndata:  # two owners share no memory
            return out is not M and out is not N
        return not (np.may_share_memory(out, M) or np.may_share_memory(out, N))

    def run(self, M: Array, N: Array, P: Array, arg: Array | None = None) -> None:
        weights = self.scan is not None and self.scan(M, N)
        run_encoded(None if weights else self.no_edge, self._launch, M, N, P, arg, self.kernel.onto)

    def _launch(self, M: Array, N: Array, P: Array, arg: Array | None) -> None:
        self._launched("launch_arrays")(M, N, P, 0 if arg is None else address(arg))
