"""One dot product of any dtypes and strides.

Elements are converted as they are loaded. Several vectors of sums hide the latency of an addition; every BLOCK steps
they are added to totals and start again from zero, so that the rounding error grows with the number of blocks and not
with k. The remainder of k is added element by element.

Complex numbers are multiplied in place: one sum is of products of parts in the same lanes, another of products with N's
neighbouring lanes swapped. In the end the first has the real part (odd lanes subtracted), the second the imaginary
part.
"""

from __future__ import annotations

from tilewise.algebra.dtypes import DType
from tilewise.algebra.to_llvm import Renderer, Value, part, vector
from tilewise.backends.cpu.kernels.dots.lanes import store_cell
from tilewise.backends.cpu.kernels.dots.short import CELLS
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.convert import load
from tilewise.backends.cpu.kernels.shared.job import TASK_PARAMS, JobReader
from tilewise.system.llvm_text import IRFunction

# `step_m`, `step_n`: strides of the elements. `unrounded`: not 0 where P is a buffer of sums
PARAMS = "i64 k, ptr M, i64 step_m, ptr N, i64 step_n, ptr P, i64 unrounded, i64 onto"
AT_ONCE = 4  # vectors: two loads a cycle feed one multiply-add, whose latency is four cycles
BLOCK = 256  # steps of this many vectors


def one_function(a: Arithmetic, name: str, lanes: int) -> IRFunction:
    """With several lanes both operands must be contiguous; with one lane they may have any strides."""
    return _One(a, name, lanes).function()


def members_function(a: Arithmetic) -> IRFunction:
    """Dot products of `task_m` members in one task: a task each would cost more than the sums."""
    f = IRFunction("members", TASK_PARAMS)
    job = JobReader(f)
    members, task_m, k, onto = job.fields("members", "task_m", "k", "onto")
    row_m, col_m, row_n, col_n, row_p, col_p = job.fields("row_m", "col_m", "row_n", "col_n", "row_p", "col_p")
    first = f.mul("%task", task_m)
    with f.loop(first, f.lower(f.add(first, task_m), members)) as member:
        M = job.member_of_stack("M", "at_m", member.index, a.source_m.itemsize)
        N = job.member_of_stack("N", "at_n", member.index, a.source_n.itemsize)
        P = job.member_of_stack("P", "at_p", member.index, a.result.itemsize)
        f.invoke("cells", CELLS, rows=1, k=k, M=M, row_m=row_m, col_m=col_m, N=N, row_n=row_n, column=col_n, columns=1,
            P=P, row_p=row_p, col_p=col_p, unrounded=0, onto=onto)  # fmt: skip
    return f


class _One:
    def __init__(self, a: Arithmetic, name: str, lanes: int) -> None:
        self.a, self.lanes, self.f = a, lanes, IRFunction(name, PARAMS)
        self.at_once = 1 if a.heavy else AT_ONCE
        self.paired = lanes > 1 and a.parts == 2 and a.fused and a.source_m == a.source_n == a.partial
        self.each = lanes // 2 if self.paired else lanes  # k of a vector
        self.quiets = a.quiets and a.target.has_fminnm  # once a vector, as in a tile

    def function(self) -> IRFunction:
        a, f, lanes = self.a, self.f, self.lanes
        step = self.at_once * self.each
        bulk = f.mul(f.div("%k", step), step)
        zeros = [(vector(a.kind, lanes), zero) for zero in a.zeros(lanes)]
        with f.loop(0, bulk, BLOCK * step, zeros) as block:
            end = f.lower(f.add(block.index, BLOCK * step), bulk)
            with f.loop(block.index, end, step, zeros * self.at_once) as loop:
                loop.next = self.steps(loop.index, loop.values, lanes)
            block.next = list(self.added(tuple(block.values), self.total_of(self.parted(loop.values))))
        whole = f.mul(f.div("%k", self.each), self.each)
        with f.loop(
            bulk, whole, self.each, [(kind, x) for (kind, _), x in zip(zeros, block.values, strict=True)]
        ) as last:
            last.next = self.steps(last.index, last.values, lanes)
        total = self.horizontal_sum(tuple(last.values))
        with f.loop(whole, "%k", 1, [(a.kind, x) for x in total]) as rest:
            rest.next = self.steps(rest.index, rest.values, 1)
        store_cell(f, a, tuple(rest.values), "%P", unrounded=True)
        return f

    def parted(self, registers: list[str]) -> list[Value]:
        parts = self.a.parts
        return [tuple(registers[i : i + parts]) for i in range(0, len(registers), parts)]

    def steps(self, index: str, sums: list[str], lanes: int) -> list[str]:
        """The sums plus the products from k = `index` on, one vector (or element) for each."""
        a, f = self.a, self.f
        render = a.renderer(f, lanes, quiet=self.quiets)
        sums_after: list[str] = []
        for u, total in enumerate(self.parted(sums)):
            at = f.add(index, u * self.each)
            if self.paired and lanes > 1:
                sums_after += self.pairs(total, at)
                continue
            x, y = self.fetched(a.source_m, "M", at, lanes), self.fetched(a.source_n, "N", at, lanes)
            sums_after += render.accumulate(a.add, a.mul, total, x, y)
        return sums_after

    def pairs(self, total: Value, at: str) -> list[str]:
        """Both sums plus a vector of complex numbers, real and imaginary parts interleaved."""
        a, f, real = self.a, self.f, part(self.a.partial)
        places = [f.at(f"[{a.partial.itemsize} x i8]", name, at) for name in ("%M", "%N")]
        x, y = (f.load(a.vector, place, real.itemsize) for place in places)
        neighbours_swapped = f.shuffle(a.vector, y, "poison", [lane ^ 1 for lane in range(a.lanes)])
        render = Renderer(f, real, a.lanes)
        return [
            render.accumulate(a.add, a.mul, (sum_,), (x,), (other,))[0]
            for sum_, other in zip(total, (y, neighbours_swapped), strict=True)
        ]

    def fetched(self, source: DType, name: str, at: str, lanes: int) -> Value:
        a, f = self.a, self.f
        at = at if self.lanes > 1 else f.mul(at, f"%step_{name.lower()}")
        place = f.at(f"[{source.itemsize} x i8]", f"%{name}", at)
        found = load(f, a.target, source, a.partial, place, lanes)
        return tuple(a.quiet(f, x, lanes) for x in found) if self.quiets else found

    def added(self, one: Value, other: Value) -> Value:
        return self.a.renderer(self.f, self.lanes).value(self.a.add, one, other)

    def total_of(self, sums: list[Value]) -> Value:
        """The sum of all vectors."""
        while len(sums) > 1:
            sums = [self.added(one, other) for one, other in zip(sums[::2], sums[1::2], strict=True)]
        return sums[0]

    def horizontal_sum(self, total: Value) -> Value:
        """The horizontal sum."""
        a, f, lanes = self.a, self.f, self.lanes
        while lanes > 1:
            halves = [tuple(self.half(x, lanes, half) for x in total) for half in (0, 1)]
            lanes //= 2
            if self.paired and lanes == 1:
                halves[1] = (f.op(f"fneg {a.kind} {halves[1][0]}"), halves[1][1])
            total = a.renderer(f, lanes).value(a.add, halves[0], halves[1])
        return total

    def half(self, x: str, lanes: int, half: int) -> str:
        whole, first = vector(self.a.kind, lanes), half * lanes // 2
        if lanes == 2:
            return self.f.op(f"extractelement {whole} {x}, i32 {half}")
        return self.f.shuffle(whole, x, "poison", range(first, first + lanes // 2))
