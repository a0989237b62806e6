"""The LLVM of a product of sparse matrices, row by row (Gustavson), over any semiring.

    count    how many cells each row of P has
    fill     their columns, in order, and their values
    once     all of it in one pass, for few cells: one task, memory for every pair that meets

A row of P is gathered in a dense row of sums, all zero before and after, and a bit for each column that is met; reading
the bits in order sorts the columns. Where rows are short beside their width, a second bitset says which words of
the first hold any. The cells of a column are added in the order of k, whichever thread runs the task.
"""

from __future__ import annotations

from tilewise.algebra.semiring import Algebra
from tilewise.algebra.to_llvm import Renderer, constant, scalar_kind
from tilewise.backends.cpu.kernels.shared.job import TASK_PARAMS, JobReader
from tilewise.system.llvm_text import IRFunction, module


def gustavson_module(algebra: Algebra, two_levels: bool) -> str:
    """`count` and `fill`, tasks of `task_m` rows each, beginning with task `tasks_m`; and `once`.

    The job: M, row_m, col_m: M's starts, columns (int32) and values; so for N, and for P. A worker's workspace has the
    column bits, from `strip` on the second-level bits (`two_levels`), from `sums_at` on the sums."""
    return module([_Rows(algebra, two_levels, name).function() for name in ("count", "fill", "once")])


class _Rows:
    def __init__(self, algebra: Algebra, two_levels: bool, name: str) -> None:
        self.algebra, self.two_levels, self.name, self.fills = algebra, two_levels, name, name != "count"
        self.kind = scalar_kind(algebra.partial)
        self.f = f = IRFunction(name, TASK_PARAMS, public=True)
        job = JobReader(f)
        self.m, self.n, self.rows, self.first = job.fields("m", "n", "task_m", "tasks_m")
        self.starts_m, self.columns_m, self.data_m = (job.pointer(x) for x in ("M", "row_m", "col_m"))
        self.starts_n, self.columns_n, self.data_n = (job.pointer(x) for x in ("N", "row_n", "col_n"))
        self.starts_p, self.columns_p, self.data_p = (job.pointer(x) for x in ("P", "row_p", "col_p"))
        own = f.mul("%worker", job.field("workspace_bytes"))
        self.bits = f.at("i8", job.pointer("workspace"), own)
        self.nonzero_words = f.at("i8", self.bits, job.field("strip"))
        self.sums = f.at("i8", self.bits, job.field("sums_at"))
        self.words = f.div(f.add(self.n, 63), 64)

    def function(self) -> IRFunction:
        f = self.f
        first = f.mul(f.add("%task", self.first), self.rows)
        last = f.lower(f.add(first, self.rows), self.m)
        with f.loop(first, last, 1, [("i64", "0")]) as i:
            with f.loop(self._start(self.starts_m, i.index), self._start(self.starts_m, f.add(i.index, 1))) as e:
                self._row_of_n(e.index)
            begin = {"count": "0", "fill": "", "once": i.values[0]}[self.name]
            end = self._all_words(begin or self._start(self.starts_p, i.index))
            if self.name != "fill":
                f.store("i64", end, f.at("i64", self.starts_p, i.index, 1))
            i.next = [end]
        return f

    def _start(self, starts: str, row: str) -> str:
        return self.f.load("i64", self.f.at("i64", starts, row))

    def _column(self, columns: str, cell: str) -> str:
        narrow = self.f.load("i32", self.f.at("i32", columns, cell))
        return self.f.op(f"zext i32 {narrow} to i64")

    def _value(self, data: str, cell: str) -> str:
        return self.f.load(self.kind, self.f.at(self.kind, data, cell))

    def _row_of_n(self, cell: str) -> None:
        """One cell of M times a row of N."""
        f, ring = self.f, self.algebra.semiring
        k = self._column(self.columns_m, cell)
        x = self._value(self.data_m, cell) if self.fills else ""
        with f.loop(self._start(self.starts_n, k), self._start(self.starts_n, f.add(k, 1))) as e:
            j = self._column(self.columns_n, e.index)
            word = f.op(f"lshr i64 {j}, 6")
            self._set(self.bits, word, f.op(f"and i64 {j}, 63"))
            if self.two_levels:
                self._set(self.nonzero_words, f.op(f"lshr i64 {word}, 6"), f.op(f"and i64 {word}, 63"))
            if self.fills:
                y, place = self._value(self.data_n, e.index), f.at(self.kind, self.sums, j)
                total = f.load(self.kind, place)
                step = Renderer(f, self.algebra.partial, 1)
                (made,) = step.accumulate(ring.add, ring.mul, (total,), (x,), (y,))
                f.store(self.kind, made, place)

    def _set(self, bits: str, word: str, bit: str) -> None:
        f = self.f
        place = f.at("i64", bits, word)
        held, own = f.load("i64", place), f.op(f"shl i64 1, {bit}")
        f.store("i64", f.op(f"or i64 {held}, {own}"), place)

    def _all_words(self, begin: str) -> str:
        """The end of a row of P whose cells begin at `begin`; all bits are read and cleared."""
        f = self.f
        if not self.two_levels:
            with f.loop(0, self.words, 1, [("i64", begin)]) as w:
                w.next = [self._word(w.index, w.values[0])]
            return w.values[0]
        with f.loop(0, f.div(f.add(self.words, 63), 64), 1, [("i64", begin)]) as s:
            held, count = self._taken(self.nonzero_words, s.index)
            with f.loop(0, count, 1, [("i64", held), ("i64", s.values[0])]) as b:
                word = f.add(f.mul(s.index, 64), self._lowest(b.values[0]))
                b.next = [self._without_lowest(b.values[0]), self._word(word, b.values[1])]
            s.next = [b.values[1]]
        return s.values[0]

    def _word(self, word: str, begin: str) -> str:
        """The same for the columns of one bit word."""
        f = self.f
        held, count = self._taken(self.bits, word)
        if self.fills:
            (zero,) = constant(self.algebra.zero, self.algebra.partial, 1)
            with f.loop(0, count, 1, [("i64", held)]) as b:
                j = f.add(f.mul(word, 64), self._lowest(b.values[0]))
                place, cell = f.at(self.kind, self.sums, j), f.add(begin, b.index)
                total = f.load(self.kind, place)
                f.store(self.kind, zero, place)
                f.store(self.kind, total, f.at(self.kind, self.data_p, cell))
                f.store("i32", f.op(f"trunc i64 {j} to i32"), f.at("i32", self.columns_p, cell))
                b.next = [self._without_lowest(b.values[0])]
        return f.add(begin, count)

    def _taken(self, bits: str, word: str) -> tuple[str, str]:
        """A word of bits, which is cleared in memory, and its population count."""
        f = self.f
        place = f.at("i64", bits, word)
        held = f.load("i64", place)
        f.store("i64", 0, place)
        return held, f.call("i64", "llvm.ctpop.i64", [("i64", held)])

    def _lowest(self, bits: str) -> str:
        return self.f.call("i64", "llvm.cttz.i64", [("i64", bits), ("i1", "true")])

    def _without_lowest(self, bits: str) -> str:
        return self.f.op(f"and i64 {bits}, {self.f.sub(bits, 1)}")
