"""`closure` on a card: Floyd–Warshall in two levels of blocks, every product by the plain kernels.

As on the CPU: close the diagonal block, multiply it into its row and its column of blocks, then D ⊕= D[:, K] ⊗ D[K, :].
The two panels are copied first, so that no product reads what it writes. Everything is queued on one stream; the host
waits at the end only. D takes n² cells and the panels a few per cent: what does not fit is refused before it starts.
"""

from __future__ import annotations

import ctypes
import math
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import DTYPES, Array, DType
from tilewise.algebra.semiring import Algebra
from tilewise.arrays.card import allocate, memory
from tilewise.arrays.device_array import DeviceArray, to_device
from tilewise.arrays.operand import Operand
from tilewise.backends.cuda.device import describe
from tilewise.backends.cuda.launcher import Launcher, launch_now
from tilewise.compose.graph.laws import algebra_with_zero, choose_sentinel, one_of
from tilewise.core.problem import Layout, Problem
from tilewise.errors import OutOfMemoryError
from tilewise.kernels.closure.text import SIDE, ClosureForm, render_closure
from tilewise.kernels.transforms.pack import copy_recipe
from tilewise.planning.choose import make_plan
from tilewise.planning.launchers import run_plan

BLOCKS = (512, SIDE)  # block sizes, outermost first; one kernel closes a block of the last
BAND = 1024  # rows whose predecessors are updated at a time
LOST_BLOCKS = 264  # thread blocks of the search for lost rows, each with two rows of workspace
INT, LONG = DTYPES["int32"], DTYPES["int64"]


@dataclass(frozen=True)
class _Matrix:
    """A matrix on the card, at its address."""

    pointer: int
    dtype: DType
    rows: int
    cols: int
    layout: Layout


def _copy(source: _Matrix, target: _Matrix, device: str, stream: Any) -> None:
    places = (source.dtype, source.layout, target.dtype, target.layout)
    recipe = copy_recipe(source.rows, source.cols, (), *places)
    Launcher(recipe, device)(int(stream.handle), M=source.pointer, P=target.pointer)


@dataclass
class CardClosure:
    """`improves`: whether there is an improving cycle, so that no closure exists."""

    improves: bool
    lost: Array  # sources whose predecessors contain a cycle and must be searched again


def close_on_card(
    W: Operand, P: Operand, table: Operand | None, given: Algebra, work: Algebra, stream: Any, progress: Any = None
) -> CardClosure:
    """Write the closure of W into P, and predecessors into `table` if given; all are on the card."""
    n, device = W.shape[0], P.device
    with ExitStack() as workspaces:
        if not n:
            return CardClosure(False, np.zeros(0, np.int64))
        _check_room(n, W, given, work, table is not None, device)
        one, form0 = one_of(work), ClosureForm(given, work, one_of(work), work.zero, table is not None)
        absent = choose_sentinel(work, n, lambda: _heaviest(W, form0, device, stream))
        form = ClosureForm(given, work, one, absent, table is not None)
        job = _CardBlocks(form, n, W, P, table, device, stream, workspaces)
        job.start()
        job.close(0, n, 0, progress)
        improves = job.finish()
        lost = job.lost_rows() if table is not None and not form.counts_hops and not improves else np.zeros(0, np.int64)
        return CardClosure(improves, lost)


def host_copy(W: Operand, stream: Any) -> Array:
    """A host copy of a matrix on a card."""
    rows, cols = W.shape
    with DeviceArray(W.shape, W.dtype, W.device) as copy:
        source = _Matrix(W.pointer, W.dtype, rows, cols, W.layout(()))
        _copy(source, _Matrix(copy.pointer, W.dtype, rows, cols, Layout(cols, 1)), W.device, stream)
        stream.sync()
        return copy.numpy()


def put_rows(table: Operand, rows: Array, values: Array, stream: Any) -> None:
    """Write these rows of a table on a card."""
    n = table.shape[1]
    with to_device(values, table.device) as held:
        for number, row in enumerate(rows):
            source, target = (
                _Matrix(start + int(i) * n * 8, LONG, 1, n, Layout(n, 1))
                for start, i in ((held.pointer, number), (table.pointer, row))
            )
            _copy(source, target, table.device, stream)
        stream.sync()


def _heaviest(W: Operand, form: ClosureForm, device: str, stream: Any) -> int:
    found = DeviceArray((1,), LONG, device)
    found.copy_from(np.zeros(1, np.int64))
    arguments = (ctypes.c_void_p(W.pointer), ctypes.c_void_p(found.pointer), *_extent_and_strides(W))
    blocks = min(1056, math.ceil(W.shape[0] ** 2 / 256))
    launch_now(render_closure.key("heaviest", form), "heaviest", (blocks,), (256,), arguments, device, stream)
    stream.sync()
    return int(found.numpy().view(np.uint64)[0])


def _extent_and_strides(W: Operand) -> tuple[Any, ...]:
    return (ctypes.c_int(W.shape[0]), *(ctypes.c_longlong(s) for s in W.strides))


def needed_bytes(n: int, given: Algebra, work: Algebra, tracks: bool) -> int:
    """Memory beside W and the results: D unless it is the result itself, panels, bands of predecessors."""
    size, block = work.partial.itemsize, min(n, BLOCKS[0])
    total = 0 if _result_is_D(given, work) else n * n * size
    total += 2 * n * block * size + 8
    packed = 2 * n * block * 4  # packed operands of a product
    if tracks:
        total += block * n * 8 + min(n, BAND) * n * (size + 8) + 2 * LOST_BLOCKS * n * 4
    return total + packed


def _result_is_D(given: Algebra, work: Algebra) -> bool:
    return given.result == work.partial


def _check_room(n: int, W: Operand, given: Algebra, work: Algebra, tracks: bool, device: str) -> None:
    free, _ = memory(device)
    if needed_bytes(n, given, work, tracks) <= free:
        return
    low, high = 0, n
    each = W.dtype.itemsize + given.result.itemsize + (8 if tracks else 0)
    room = free + each * n * n  # a smaller graph would also need less for W and the results
    while high - low > 1:
        middle = (low + high) // 2
        fits = needed_bytes(middle, given, work, tracks) + each * middle * middle <= room
        low, high = (middle, high) if fits else (low, middle)
    raise OutOfMemoryError(
        f"the closure of {n} nodes needs {needed_bytes(n, given, work, tracks):,} bytes beside W, and {free:,} are "
        f"free on {device}: up to {low} nodes fit"
    )


@dataclass
class _CardBlocks:
    """The buffers of a closure and its launches."""

    form: ClosureForm
    n: int
    W: Operand
    P: Operand
    predecessors: Operand | None
    device: str
    stream: Any
    workspaces: ExitStack

    def __post_init__(self) -> None:
        n, size = self.n, self.form.work.partial.itemsize
        block = min(n, BLOCKS[0])
        self.machine = describe(self.device)
        self.flags = DeviceArray((2,), INT, self.device)  # an improving cycle, a weight below zero
        self.flags.copy_from(np.zeros(2, np.int32))
        self.workspaces.callback(self.flags.free)
        self.D = self.P.pointer if _result_is_D(self.form.given, self.form.work) else self._memory(n * n * size)
        self.left, self.right = self._memory(n * block * size), self._memory(n * block * size)
        if self.predecessors is not None:
            self.steps = self._memory(block * n * 8)
            self.made, self.won = (self._memory(min(n, BAND) * n * each) for each in (size, 8))
        self.nonnegative = False
        assert not isinstance(self.form.absent, complex)
        self.semiring = algebra_with_zero(self.form.work, self.form.absent).semiring

    def _memory(self, nbytes: int) -> int:
        buffer = allocate(max(nbytes, 16), self.device, self.stream)
        self.workspaces.callback(buffer.close, self.stream)
        return int(buffer.handle)

    def _queue(self, file: str, kernel: str, blocks: int, *arguments: Any) -> None:
        source = render_closure.key(file, self.form)
        launch_now(source, kernel, (blocks,), (256,), arguments, self.device, self.stream)

    def _predecessors_at(self, cell: int) -> tuple[Any, ...]:
        return () if self.predecessors is None else (ctypes.c_void_p(self.predecessors.pointer + cell * 8),)

    def start(self) -> None:
        """Write D from W; set `nonnegative` if no weight is below 0, for the faster min and max kernels."""
        flags = self.flags.pointer
        self._queue(
            "start", "start_closure", math.ceil(self.n * self.n / 256), ctypes.c_void_p(self.W.pointer),
            ctypes.c_void_p(self.D), ctypes.c_void_p(flags + 4), *self._predecessors_at(0),
            *_extent_and_strides(self.W),
        )  # fmt: skip
        work = self.form.work
        if work.partial.name == "float32" and not isinstance(work.zero, complex) and work.zero >= 0:
            self.stream.sync()
            self.nonnegative = not self.flags.numpy()[1]

    def close(self, start: int, stop: int, level: int, progress: Any = None) -> None:
        """Close the square of nodes start to stop, with blocks of this level's side."""
        while level < len(BLOCKS) and stop - start <= BLOCKS[level]:
            level += 1
        if level == len(BLOCKS):
            self._close_small(start, stop)
            return
        side = BLOCKS[level]
        for number, k in enumerate(range(start, stop, side)):
            K, square = slice(k, min(k + side, stop)), slice(start, stop)
            self.close(K.start, K.stop, level + 1)
            self._relax_through(K, K, square)
            self._relax_through(square, K, K)
            self._relax_through(square, K, square)
            if progress is not None:
                self.stream.sync()
                progress(number + 1, math.ceil((stop - start) / side))

    def _close_small(self, start: int, stop: int) -> None:
        cell = start * self.n + start
        self._queue(
            "close_block", "close_block", 1, ctypes.c_void_p(self.D + cell * self.form.work.partial.itemsize),
            *self._predecessors_at(cell), ctypes.c_void_p(self.flags.pointer), ctypes.c_int(stop - start),
            ctypes.c_longlong(self.n),
        )  # fmt: skip

    def _part(self, pointer: int, dtype: DType, rows: slice, cols: slice) -> _Matrix:
        at = pointer + (rows.start * self.n + cols.start) * dtype.itemsize
        return _Matrix(at, dtype, rows.stop - rows.start, cols.stop - cols.start, Layout(self.n, 1, (), at % 16))

    def _copied(self, part: _Matrix, pointer: int) -> _Matrix:
        made = _Matrix(pointer, part.dtype, part.rows, part.cols, Layout(part.cols, 1))
        _copy(part, made, self.device, self.stream)
        return made

    def _relax_through(self, rows: slice, K: slice, cols: slice) -> None:
        """D[rows, cols] ⊕= D[rows, K] ⊗ D[K, cols]."""
        dtype = self.form.work.partial
        left = self._copied(self._part(self.D, dtype, rows, K), self.left)
        right = self._copied(self._part(self.D, dtype, K, cols), self.right)
        target = self._part(self.D, dtype, rows, cols)
        if self.predecessors is None:
            self._multiply(left, right, target, accumulate=True)
            return
        steps = self._copied(self._part(self.predecessors.pointer, LONG, K, cols), self.steps)
        for top in range(0, target.rows, BAND):
            band = min(BAND, target.rows - top)
            part = _Matrix(left.pointer + top * left.cols * dtype.itemsize, dtype, band, left.cols, left.layout)
            made = _Matrix(self.made, dtype, band, target.cols, Layout(target.cols, 1))
            self._multiply(part, right, made, where=self.won)
            cell = (rows.start + top) * self.n + cols.start
            self._queue(
                "improve", "improve", math.ceil(band * target.cols / 256),
                ctypes.c_void_p(self.D + cell * dtype.itemsize), ctypes.c_void_p(self.predecessors.pointer + cell * 8),
                *(ctypes.c_void_p(x) for x in (self.made, self.won, steps.pointer)), ctypes.c_int(band),
                ctypes.c_int(target.cols), ctypes.c_longlong(self.n),
            )  # fmt: skip

    def _multiply(self, M: _Matrix, N: _Matrix, P: _Matrix, *, accumulate: bool = False, where: int = 0) -> None:
        problem = Problem(
            M.rows, M.cols, N.cols, (), M.dtype, N.dtype, self.semiring, M.layout, N.layout, P.layout,
            accumulate, "ieee", bool(where), self.nonnegative,
        )  # fmt: skip
        plan = make_plan(problem, self.machine)
        run_plan(plan, self.device, self.stream, M=M.pointer, N=N.pointer, P=P.pointer, arg=where)

    def finish(self) -> bool:
        """Write P from D and synchronise; whether there is an improving cycle."""
        self._queue(
            "finish", "finish_closure", math.ceil(self.n * self.n / 256), ctypes.c_void_p(self.D),
            ctypes.c_void_p(self.P.pointer), ctypes.c_void_p(self.flags.pointer), ctypes.c_int(self.n),
        )  # fmt: skip
        self.stream.sync()
        return bool(self.flags.numpy()[0])

    def lost_rows(self) -> Array:
        """Sources from some of whose targets the predecessors do not lead back, because ties closed a cycle."""
        scratch = self._memory(2 * LOST_BLOCKS * self.n * 4)
        flags = DeviceArray((self.n,), INT, self.device)
        flags.copy_from(np.zeros(self.n, np.int32))
        doublings = max(1, self.n - 1).bit_length()
        self._queue(
            "lost", "lost", min(self.n, LOST_BLOCKS), *self._predecessors_at(0), ctypes.c_void_p(scratch),
            ctypes.c_void_p(flags.pointer), ctypes.c_int(self.n), ctypes.c_int(doublings),
        )  # fmt: skip
        self.stream.sync()
        found = np.flatnonzero(flags.numpy())
        flags.free()
        return found
