"""The LLVM of products of structured values.

pack     an operand's field as panels: dst[panel][k][lane]; lanes past the edge repeat the last one
tile     MR × NV vectors of P, all fields of their cells in registers over kc; one program a step
run      a task's tiles: strips of k, panels of N, panels of M
unpack   a field of P from its tiles [rows][panels][MR][NR] to P's layout
limit    the step alone, on registers: the upper bound for these instructions
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tilewise.algebra.dtypes import DType
from tilewise.algebra.program import StraightLine, run
from tilewise.algebra.program_llvm import Registers
from tilewise.algebra.structured import StructuredAlgebra
from tilewise.algebra.to_llvm import constant, scalar_kind, vector
from tilewise.backends.cpu.kernels.shared.job import TASK_PARAMS, JobReader
from tilewise.backends.cpu.runtime.target import Target
from tilewise.system.llvm_text import IRFunction, module

STRIP_BYTES = 24 * 1024  # of a panel of N: a strip of k stays in L1
SIZES = (1, 2, 4, 8)  # of the elements that are packed


@dataclass(frozen=True)
class StructuredArithmetic:
    """The algebra of a kernel and its target."""

    algebra: StructuredAlgebra
    target: Target

    @cached_property
    def dtypes(self) -> tuple[DType, ...]:
        return self.algebra.dtypes

    @cached_property
    def step(self) -> StraightLine:
        return self.algebra.step

    @cached_property
    def lanes(self) -> int:
        """The same for every field: the lanes of the widest one."""
        return self.target.vector_bytes // max(dtype.itemsize for dtype in self.dtypes)

    @cached_property
    def tile(self) -> tuple[int, int]:
        """Rows and vectors of P whose fields take half of the registers; the step uses the other half."""
        cells = max(1, self.target.registers // (2 * len(self.dtypes)))
        return (4, 2) if cells >= 8 else (cells, 1)

    @property
    def MR(self) -> int:
        return self.tile[0]

    @property
    def NR(self) -> int:
        return self.tile[1] * self.lanes

    @cached_property
    def KC(self) -> int:
        return max(16, STRIP_BYTES // (self.NR * sum(dtype.itemsize for dtype in self.dtypes)))

    @cached_property
    def kinds(self) -> list[str]:
        return [scalar_kind(dtype) for dtype in self.dtypes]

    @cached_property
    def vectors(self) -> list[str]:
        return [vector(kind, self.lanes) for kind in self.kinds]


def structured_module(c: StructuredArithmetic) -> str:
    moving = [made(size) for size in sorted({d.itemsize for d in c.dtypes}) for made in (_pack, _unpack)]
    return module([_tile(c), _run(c), _limit(c), *moving])


def _fields(c: StructuredArithmetic) -> str:
    return ", ".join(f"ptr {operand}{i}" for operand in "MNP" for i in range(len(c.dtypes)))


def _tile(c: StructuredArithmetic) -> IRFunction:
    f = IRFunction("tile", f"i64 kc, i1 first, {_fields(c)}")
    rows, vectors = c.tile
    places, carry = [], []
    for cell in range(rows * vectors):
        row, v = divmod(cell, vectors)
        for i, (kind, wide, dtype) in enumerate(zip(c.kinds, c.vectors, c.dtypes, strict=True)):
            place = f.at(kind, f"%P{i}", row * c.NR + v * c.lanes)
            old = f.load(wide, place, dtype.itemsize)
            zero = constant(c.algebra.zero[i], dtype, c.lanes)[0]
            places.append(place)
            carry.append((wide, f.select("%first", wide, zero, old)))
    with f.loop(0, "%kc", 1, carry) as loop:
        loop.next = _steps(c, f, loop.index, loop.values)
    for (kind, _), place, value in zip(carry, places, loop.values, strict=True):
        f.store(kind, value, place, 1)
    return f


def _steps(c: StructuredArithmetic, f: IRFunction, k: str, values: list[str]) -> list[str]:
    """One k for all cells of the tile."""
    rows, vectors = c.tile
    fields, result = len(c.dtypes), list(values)
    right = []
    for v in range(vectors):
        places = [f.at(kind, f"%N{i}", f.mul(k, c.NR), v * c.lanes) for i, kind in enumerate(c.kinds)]
        right.append(
            [f.load(wide, place, d.itemsize) for wide, place, d in zip(c.vectors, places, c.dtypes, strict=True)]
        )
    for row in range(rows):
        left = [
            f.splat(kind, f.load(kind, f.at(kind, f"%M{i}", f.mul(k, rows), row), d.itemsize), c.lanes)
            for i, (kind, d) in enumerate(zip(c.kinds, c.dtypes, strict=True))
        ]
        for v in range(vectors):
            own = slice((row * vectors + v) * fields, (row * vectors + v + 1) * fields)
            operands = {"t": values[own], "x": left, "y": right[v]}
            result[own] = run(c.step, c.dtypes, operands, Registers(f, c.lanes))
    return result


def _run(c: StructuredArithmetic) -> IRFunction:
    """Task t, counted from `tasks_m`: its panels of M (as many as `task_m`, of `m`), all panels of N (of `n`), all of
    k."""
    f = IRFunction("run", TASK_PARAMS, public=True)
    job = JobReader(f)
    m, k, n, task_m = job.fields("m", "k", "n", "task_m")
    start = f.mul(f.add("%task", job.field("tasks_m")), task_m)
    stop = f.lower(f.add(start, task_m), m)
    bases = {}
    for letter in "MNP":
        table = job.pointer(letter)
        for i in range(len(c.dtypes)):
            bases[letter, i] = f.load("ptr", f.at("ptr", table, i), 8)
    with f.loop(0, k, c.KC) as strip:
        kc = f.lower(f.sub(k, strip.index), c.KC)
        first = f.test("eq", strip.index, 0)
        with f.loop(0, n) as column, f.loop(start, stop) as row:
            places = []
            for letter, width, panel in (("M", c.MR, row.index), ("N", c.NR, column.index)):
                at = f.mul(f.add(f.mul(panel, k), strip.index), width)
                places += [f.at(kind, bases[letter, x], at) for x, kind in enumerate(c.kinds)]
            cell = f.mul(f.add(f.mul(row.index, n), column.index), c.MR * c.NR)
            places += [f.at(kind, bases["P", x], cell) for x, kind in enumerate(c.kinds)]
            f.do(f"call void @tile(i64 {kc}, i1 {first}, {', '.join(f'ptr {place}' for place in places)})")
    return f


def _pack(size: int) -> IRFunction:
    """Task t: panel t of `width` (field n) lanes; strides in bytes from lane to lane and from k to k."""
    f = IRFunction(f"pack{size}", TASK_PARAMS, public=True)
    job = JobReader(f)
    lanes, k, width, lane_bytes, k_bytes = job.fields("m", "k", "n", "row_m", "col_m")
    source, target = job.pointer("M"), job.pointer("P")
    first, last, kind = f.mul("%task", width), f.sub(lanes, 1), f"i{8 * size}"
    panel = f.at(kind, target, f.mul(first, k))

    def by_vectors() -> None:
        start, nbytes = f.at("i8", source, f.mul(first, size)), f.mul(width, size)
        with f.loop(0, k) as kk:
            line, to = f.at("i8", start, f.mul(kk.index, k_bytes)), f.at("i8", panel, f.mul(kk.index, nbytes))
            with f.loop(0, nbytes, 16) as at:
                value = f.load("<16 x i8>", f.at("i8", line, at.index), 1)
                f.store("<16 x i8>", value, f.at("i8", to, at.index), 1)

    def one_by_one() -> None:
        with f.loop(0, k) as kk, f.loop(0, width) as lane:
            at = f.lower(f.add(first, lane.index), last)
            place = f.at("i8", source, f.mul(at, lane_bytes), f.mul(kk.index, k_bytes))
            value = f.load(kind, place, 1)
            f.store(kind, value, f.at(kind, panel, f.mul(kk.index, width), lane.index), size)

    whole = f.test("sle", f.add(first, width), lanes)
    beside = f.both(whole, f.test("eq", lane_bytes, size))
    even = f.test("eq", f.rem(f.mul(width, size), 16), 0)
    f.either(f.both(beside, even), by_vectors, one_by_one)
    return f


def _unpack(size: int) -> IRFunction:
    """Task t: rows t · MR … of P (m × n, strides in bytes), from tiles of MR × NR (fields task_m, task_n)."""
    f, kind = IRFunction(f"unpack{size}", TASK_PARAMS, public=True), f"i{8 * size}"
    job = JobReader(f)
    m, n, MR, NR, row_bytes, col_bytes = job.fields("m", "n", "task_m", "task_n", "row_p", "col_p")
    source, target, panels = job.pointer("M"), job.pointer("P"), job.field("k")
    top = f.mul("%task", MR)
    rows = f.lower(f.sub(m, top), MR)
    with f.loop(0, panels) as panel, f.loop(0, rows) as row:
        left = f.mul(panel.index, NR)
        cols = f.lower(f.sub(n, left), NR)
        start = f.mul(f.add(f.mul(f.add(f.mul("%task", panels), panel.index), MR), row.index), NR)
        line = f.at("i8", target, f.mul(f.add(top, row.index), row_bytes), f.mul(left, col_bytes))
        with f.loop(0, cols) as col:
            value = f.load(kind, f.at(kind, source, start, col.index), size)
            f.store(kind, value, f.at("i8", line, f.mul(col.index, col_bytes)), 1)
    return f


def _limit(c: StructuredArithmetic) -> IRFunction:
    """Every cell of a tile accumulates its neighbour's value in turn, `k` times: LLVM can remove no step, and none
    waits."""
    f = IRFunction("limit", TASK_PARAMS, public=True)
    job = JobReader(f)
    place, fields, cells = job.pointer("M"), len(c.dtypes), c.tile[0] * c.tile[1]
    x = [f.load(wide, place, 1) for wide in c.vectors]
    carry = list(zip(c.vectors, x, strict=True)) * cells
    with f.loop(0, job.field("k"), 1, carry) as loop:
        values = list(loop.values)
        for cell in range(cells):
            own, beside = (slice(i * fields, (i + 1) * fields) for i in (cell, (cell + 1) % cells))
            operands = {"t": values[own], "x": x, "y": values[beside]}
            values[own] = run(c.step, c.dtypes, operands, Registers(f, c.lanes))
        loop.next = values
    for (wide, _), value in zip(carry, loop.values, strict=True):
        f.do(f"store volatile {wide} {value}, ptr {place}, align 1")
    return f
