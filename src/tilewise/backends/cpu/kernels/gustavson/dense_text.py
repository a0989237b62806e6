"""The LLVM of a sparse matrix with a dense one (SpMM) or a vector (SpMV), over any semiring; a task is a band of rows.

gather    P[i] = ⊕ S[i, k] ⊗ N[k], sums in registers: S by the rows of P
scatter   P[j] ⊕= S[k, j] ⊗ N[k], sums in memory, those of each task apart: S by the rows of N, as it is stored
"""

from __future__ import annotations

from collections.abc import Callable

from tilewise.algebra.to_llvm import constant, vector
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.job import TASK_PARAMS, JobReader
from tilewise.backends.cpu.kernels.shared.masks import load_lanes, mask_below, store_lanes, vector_loop
from tilewise.system.llvm_text import IRFunction, module

VECTORS = (4, 2)  # vectors of columns per pass, the most first; the remainder one by one
ARRAYS = ("starts", "columns", "data", "N", "P")
CALL = f"{', '.join(f'ptr {name}' for name in ARRAYS)}, i64 rows, i64 n"
# independent sums of a row times a vector, to hide the latency of a step; least cells for which that pays
CHAINS, LONG = 4, 16


def dense_module(a: Arithmetic, scatter: bool, single: bool, start: str, direct: bool = False) -> str:
    """`multiply`, a task; `single`: N has one column; `start`: the type of the starts, i32 or i64. `direct`: all rows
    at once, of arrays that come as objects (`CALL`), columns of the same type as starts; `scatter` then with one
    column and P, of n elements, filled first.

    The job: M, row_m, col_m: the starts, columns (int32) and values of S; N and P with n columns, rows side by side;
    at_m the first row of each task and the end of the last one, row_p the elements from one task's P to the next.
    """
    return module([_Product(a, scatter, single, start, direct).function()])


class _Product:
    def __init__(self, a: Arithmetic, scatter: bool, single: bool, start: str, direct: bool) -> None:
        self.a, self.scatter, self.single, self.start = a, scatter, single, start
        self.column = start if direct else "i32"
        self.f = f = IRFunction("multiply", CALL if direct else TASK_PARAMS, public=True)
        if direct:
            self.starts, self.columns, self.data, self.N, self.P = f.data_of(*ARRAYS)
            self.n, self.rows = "1" if single else "%n", ("0", "%rows")
            if scatter:
                vector_loop(f, a, "%n", self._filled)
            return
        job = JobReader(f)
        self.n = "1" if single else job.field("n")
        self.starts, self.columns, self.data = (job.pointer(x) for x in ("M", "row_m", "col_m"))
        self.N = job.pointer("N")
        self.P = f.at(a.kind, job.pointer("P"), f.mul("%task", job.field("row_p")))
        bands = f.at("i64", job.pointer("at_m"), "%task")
        self.rows = f.load("i64", bands), f.load("i64", f.at("i64", bands, 1))

    def _filled(self, at: str, lanes: int, mask: str | None) -> None:
        store_lanes(self.f, self.a, self._zero(lanes), self.f.at(self.a.kind, self.P, at), lanes, mask)

    def function(self) -> IRFunction:
        f = self.f
        with f.loop(*self.rows, 1, [("i64", self._start(self.rows[0]))]) as i:
            ends = i.values[0], self._start(f.add(i.index, 1))
            i.next = [ends[1]]
            if self.scatter:
                self._scattered(i.index, ends)
            elif self.single:
                self._gathered_single(i.index, ends)
            else:
                self._along(lambda j, count, lanes, mask: self._gathered(i.index, ends, j, count, lanes, mask))
        return f

    def _along(self, body: Callable[[str, int, int, str | None], None]) -> None:
        """body(column, vectors, lanes, mask) for all columns."""
        f, lanes = self.f, self.a.lanes
        done = "0"
        for count in VECTORS if self.a.target.masks else (*VECTORS, 1):
            whole = f.mul(f.div(self.n, count * lanes), count * lanes)
            with f.loop(done, whole, count * lanes) as j:
                body(j.index, count, lanes, None)
            done = whole
        if not self.a.target.masks:
            lanes = 1
        with f.loop(done, self.n, lanes) as j:
            body(j.index, 1, lanes, mask_below(f, f.sub(self.n, j.index), lanes) if lanes > 1 else None)

    def _start(self, row: str) -> str:
        found = self.f.load(self.start, self.f.at(self.start, self.starts, row))
        return found if self.start == "i64" else self.f.op(f"zext i32 {found} to i64")

    def _column(self, cell: str) -> str:
        found = self.f.load(self.column, self.f.at(self.column, self.columns, cell))
        return found if self.column == "i64" else self.f.op(f"zext i32 {found} to i64")

    def _value(self, cell: str, lanes: int = 1) -> str:
        element = self.f.load(self.a.kind, self.f.at(self.a.kind, self.data, cell))
        return self.f.splat(self.a.kind, element, lanes)

    def _step(self, total: str, x: str, y: str, lanes: int) -> str:
        return self.a.renderer(self.f, lanes).accumulate(self.a.add, self.a.mul, (total,), (x,), (y,))[0]

    def _zero(self, lanes: int) -> str:
        return constant(self.a.zero, self.a.partial, lanes)[0]

    def _places(self, base: str, row: str, j: str, count: int, lanes: int) -> list[str]:
        first = self.f.at(self.a.kind, base, self.f.mul(row, self.n), j)
        return [self.f.at(self.a.kind, first, at * lanes) for at in range(count)]

    def _gathered(self, i: str, ends: tuple[str, str], j: str, count: int, lanes: int, mask: str | None) -> None:
        f, a = self.f, self.a
        with f.loop(*ends, 1, [(vector(a.kind, lanes), self._zero(lanes))] * count) as e:
            x = self._value(e.index, lanes)
            places = self._places(self.N, self._column(e.index), j, count, lanes)
            ys = [load_lanes(f, a, place, lanes, mask) for place in places]
            e.next = [self._step(total, x, y, lanes) for total, y in zip(e.values, ys, strict=True)]
        for total, place in zip(e.values, self._places(self.P, i, j, count, lanes), strict=True):
            store_lanes(f, a, total, place, lanes, mask)

    def _gathered_single(self, i: str, ends: tuple[str, str]) -> None:
        f, kind = self.f, self.a.kind

        def step(total: str, cell: str) -> str:
            return self._step(total, self._value(cell), f.load(kind, f.at(kind, self.N, self._column(cell))), 1)

        def stored(first: str, total: str) -> None:
            with f.loop(first, ends[1], 1, [(kind, total)]) as e:
                e.next = [step(e.values[0], e.index)]
            f.store(kind, e.values[0], f.at(kind, self.P, i))

        def in_chains() -> None:
            bulk = f.add(ends[0], f.op(f"and i64 {count}, {-CHAINS}"))
            with f.loop(ends[0], bulk, CHAINS, [(kind, self._zero(1))] * CHAINS) as e:
                e.next = [step(total, f.add(e.index, at)) for at, total in enumerate(e.values)]
            total, *others = e.values
            for other in others:
                (total,) = self.a.renderer(f, 1).value(self.a.add, (total,), (other,))
            stored(bulk, total)

        count = f.sub(ends[1], ends[0])
        f.either(f.test("sge", count, LONG), in_chains, lambda: stored(ends[0], self._zero(1)))  # short rows overlap

    def _scattered(self, k: str, ends: tuple[str, str]) -> None:
        f, a = self.f, self.a
        whole = f.load(a.kind, f.at(a.kind, self.N, k)) if self.single else ""
        with f.loop(*ends) as e:
            row = self._column(e.index)

            def columns(j: str, count: int, lanes: int, mask: str | None) -> None:
                x = self._value(e.index, lanes)
                ys = [load_lanes(f, a, y, lanes, mask) for y in self._places(self.N, k, j, count, lanes)]
                for y, place in zip(ys, self._places(self.P, row, j, count, lanes), strict=True):
                    total = load_lanes(f, a, place, lanes, mask)
                    store_lanes(f, a, self._step(total, x, y, lanes), place, lanes, mask)

            if self.single:
                place = f.at(a.kind, self.P, row)
                f.store(a.kind, self._step(f.load(a.kind, place), self._value(e.index), whole, 1), place)
            else:
                self._along(columns)
