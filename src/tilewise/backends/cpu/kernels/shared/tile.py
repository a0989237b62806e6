"""The microkernel: a tile of P, rows × vectors, whose sums stay in registers over all of kc.

A step of k loads the vectors of N, broadcasts each element of M, and does rows × vectors accumulations. M and N are
packed panels (`exact_tile` reads them in place). Afterwards the sums are stored to P, or added to those of earlier
strips of k (a min or a max may start from those instead); edge tiles go through the stack.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewise.algebra.dtypes import DTYPES
from tilewise.algebra.to_llvm import Value, constant, vector
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.dot import dot, one_instruction
from tilewise.backends.cpu.kernels.shared.masks import load_cells, store_cells
from tilewise.backends.cpu.kernels.shared.panel import packed_element, packed_vectors, prefetch_row
from tilewise.system.llvm_text import IRFunction, IRLoop

# plane: the distance in bytes from P's cells to their args
TILE = "i64 kc, ptr M, ptr N, ptr P, i64 row_p, i64 plane, i64 rows, i64 cols, i1 first, i64 k0"


@dataclass(frozen=True)
class TileForm:
    rows: int
    vectors: int
    panel: int  # lanes of a packed panel of N
    edge: bool = False  # only for P's edge: shorter code matters more than a faster loop

    @property
    def name(self) -> str:
        return f"tile_packed_packed_{self.rows}x{self.vectors}"


def tile_function(a: Arithmetic, form: TileForm) -> IRFunction:
    return _PackedTile(a, form).function()


def index_kind(a: Arithmetic) -> str:
    """The integer type, as wide as a lane, of a tile's k counters."""
    return f"i{8 * a.bytes}"


class _PackedTile:
    def __init__(self, a: Arithmetic, form: TileForm) -> None:
        self.a, self.form = a, form
        self.f = IRFunction(form.name, TILE)
        self.render = a.renderer(self.f, a.lanes, quiet=a.quiets)
        long_loop = (a.partial.kind in "fc" or one_instruction(a)) and not (a.heavy or a.tracks_arg)
        if a.target.by_lane or a.target.registers < 32:  # the sums leave too few registers for several k
            long_loop &= a.fused and not (a.target.by_lane and a.parts > 1)
        long_loop = (long_loop or a.keeps_k_order) and not form.edge
        self.unroll = 4 if long_loop else 1
        self.width = form.vectors * a.lanes
        self.index_vector = vector(index_kind(a), a.lanes)

    def function(self) -> IRFunction:
        a, f, form = self.a, self.f, self.form
        cells = form.rows * form.vectors
        self.stack = f.op(f"alloca [{form.rows * self.width * a.parts} x {a.kind}], align 64")
        self.counts = f.op(f"alloca [{form.rows * self.width} x {index_kind(a)}], align 64") if a.tracks_arg else "null"
        if not a.tracks_arg:
            full = f.both(f.test("eq", "%rows", form.rows), f.test("eq", "%cols", self.width))
        self.prefetch_P()
        if a.starts_from_p:
            carry = [(a.vector, z) for z in self.initial_sums(full, cells)]
        else:
            carry = [(a.vector, z) for i in range(cells) for z in self.start(i % form.vectors)]
        if a.tracks_arg:
            carry += [(self.index_vector, self.number(-1))] * cells + [(self.index_vector, self.number(0))]
        bulk = f.op(f"and i64 %kc, {-self.unroll}")
        values = self.steps("0", bulk, self.unroll, carry)
        if self.unroll > 1:
            carry = [(kind, value) for (kind, _), value in zip(carry, values, strict=True)]
            values = self.steps(bulk, "%kc", 1, carry)
        totals = [tuple(values[i * a.parts : (i + 1) * a.parts]) for i in range(cells)]
        if a.tracks_arg:
            self.store_through_stack(totals, values[cells : 2 * cells])
        else:
            f.either(full, lambda: self.store_full_tile(totals), lambda: self.store_through_stack(totals, []))
        return f

    def start(self, v: int) -> Value:
        """The start of the sums of vector v: zero, or the compensation in the panel of N."""
        a = self.a
        if not a.compensates:
            return a.zeros(a.lanes)
        return (self.f.load(a.vector, self.f.at(a.kind, "%N", v * a.lanes), a.bytes),)

    def initial_sums(self, full: str, cells: int) -> list[str]:
        """The start of a full tile's sums: P's cells, or zero in the first strip of k."""
        a, f = self.a, self.f
        zero, old, fresh, begin = a.zeros(a.lanes), f.label("old"), f.label("fresh"), f.label("begin")
        onto = f.both(full, f.negated("%first"))
        f.branch(onto, old, fresh)
        found = []
        for i in range(cells):
            place = self.place_in_P(*divmod(i, self.form.vectors))
            cell = f.load(a.vector, place, a.bytes)
            found.append(self.render.value(a.add, (cell,), zero)[0] if a.partial.kind == "f" else cell)  # drops NaN
        f.goto(begin)
        f.start(fresh)
        f.goto(begin)
        f.start(begin)
        return [f.op(f"phi {a.vector} [{x}, %{old}], [{zero[0]}, %{fresh}]") for x in found]

    def number(self, value: int) -> str:
        return constant(value, DTYPES[f"int{8 * self.a.bytes}"], self.a.lanes)[0]

    def prefetch_P(self) -> None:
        """Prefetch P while the sums are computed: this tile's cells, or those of the second tile after it where sums
        start from P."""
        f, a = self.f, self.a
        ahead = 2 * self.width if a.starts_from_p else 0
        for row in range(self.form.rows):
            line = f.at(a.sum_kind, "%P", f.mul("%row_p", row))
            prefetch_row(f, a, a.kind, a.bytes, line, self.form.vectors * a.parts, ahead, ends=not a.starts_from_p)

    def steps(self, start: str, stop: str, unroll: int, carry: list[tuple[str, str]]) -> list[str]:
        """The loop over k from start to stop; the sums after it."""
        f = self.f
        with f.loop(start, stop, unroll, carry) as loop:
            values = list(loop.values)
            for u in range(unroll):
                values = self.step(loop, u, values)
                if self.a.keeps_k_order and u + 1 < unroll:
                    values = self.a.pinned(f, values)
            loop.next = values
        return loop.values

    def step(self, loop: IRLoop, u: int, values: list[str]) -> list[str]:
        a, f, form = self.a, self.f, self.form
        k = loop.index if u == 0 else f.add(loop.index, u)
        row_n = f.at(a.kind, "%N", f.mul(a.emit_rows_n(f, k), form.panel * a.parts))
        ns: list[Value] = []
        for v in range(form.vectors):
            places = [f.at(a.kind, row_n, number * form.panel + v * a.lanes) for number in range(a.parts)]
            ns.append(tuple(f.load(a.vector, place, a.bytes) for place in places))
        result = list(values)
        cells = form.rows * form.vectors
        count = values[-1] if a.tracks_arg else ""
        whole = a.target.by_lane and a.fused and not form.rows % a.lanes
        columns = packed_vectors(f, a, "%M", form.rows, k, form.rows) if whole else []
        for row in range(form.rows):
            if whole:
                element = tuple(a.in_every_lane(f, x, row % a.lanes) for x in columns[row // a.lanes])
            else:
                element = packed_element(f, a, "%M", form.rows, k, row)
            for v in range(form.vectors):
                i = row * form.vectors + v
                if a.tracks_arg:
                    product = self.render.value(a.mul, element, ns[v])[0]
                    wins = a.better(f, product, values[i], a.lanes)
                    mask = vector("i1", a.lanes)
                    result[i] = f.op(f"select {mask} {wins}, {a.vector} {product}, {a.vector} {values[i]}")
                    kind = self.index_vector
                    result[cells + i] = f.op(f"select {mask} {wins}, {kind} {count}, {kind} {values[cells + i]}")
                    continue
                total = tuple(values[i * a.parts : (i + 1) * a.parts])
                if a.k_pack > 1:
                    result[i] = dot(f, a, total[0], element[0], ns[v][0])
                    continue
                result[i * a.parts : (i + 1) * a.parts] = self.render.accumulate(a.add, a.mul, total, element, ns[v])
            # else LLVM computes all products of a k first, and spills
            if a.starts_from_p and row % 2 and not form.edge:
                line = slice(row * form.vectors, (row + 1) * form.vectors)
                result[line] = a.pinned(f, result[line])
        if a.tracks_arg:
            result[-1] = f.op(f"add {self.index_vector} {count}, {self.number(1)}")
        return result

    def place_in_P(self, row: int, v: int) -> str:
        return self.f.at(self.a.sum_kind, "%P", self.f.mul("%row_p", row), v * self.a.lanes)

    def store_full_tile(self, totals: list[Value]) -> None:
        """A full tile is stored to P directly."""
        a, f = self.a, self.f

        def write(onto: bool) -> None:
            for i, total in enumerate(totals):
                place = self.place_in_P(*divmod(i, self.form.vectors))
                if onto:
                    total = self.render.value(a.add, load_cells(f, a, place, a.lanes), total)
                store_cells(f, a, a.canonical(f, total, a.lanes), place, a.lanes)

        if a.starts_from_p:
            write(False)
        else:
            f.either("%first", lambda: write(False), lambda: write(True))

    def store_through_stack(self, totals: list[Value], args: list[str]) -> None:
        """Sums are stored to the stack, and `merge` copies the cells inside P from there."""
        a, f = self.a, self.f
        size = self.form.rows * self.width
        for i, total in enumerate(totals):
            for number, register in enumerate(total):
                place = f.at(a.kind, self.stack, number * size + i * a.lanes)
                f.store(a.vector, register, place, a.bytes)
        for i, register in enumerate(args):
            place = f.at(index_kind(a), self.counts, i * a.lanes)
            f.store(self.index_vector, register, place, a.bytes)
        f.do(
            f"call void @merge(ptr {self.stack}, ptr {self.counts}, i64 {self.width}, i64 {size}, ptr %P, i64 %row_p, "
            "i64 %plane, i64 %rows, i64 %cols, i1 %first, i64 %k0)"
        )
