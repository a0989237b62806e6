"""Packing with several k in a 32-bit word: dst[panel][word of k][lane], each of `k_pack` consecutive k of a lane.

`flips`: the sign bits of bytes are flipped (+128), for vpdpbusd's unsigned operand. `sums`: a panel begins with the
compensation for that, −128 · the sum of its bytes, for each lane. With AMX a panel of bfloat16 begins with its lowest
exponent; its panels of M are packed by `pack_rows`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewise.algebra.dtypes import DType
from tilewise.algebra.to_llvm import scalar_kind, vector
from tilewise.backends.cpu.kernels.shared.amx_tile import SIDE, SUBNORMAL
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.convert import alternating
from tilewise.backends.cpu.kernels.shared.masks import mask_below
from tilewise.backends.cpu.kernels.shared.pack import PACK, SQUARE, transposed
from tilewise.system.llvm_text import IRFunction, Operand

HIGH_BITS = -2139062144  # 0x80808080: 128 in each byte
CHUNK = 16  # lanes interleaved per step
TOGETHER = 8  # words of a panel packed before those of the next panel, for AMX: reads along N's rows are long
AHEAD = 8  # prefetch distance in words of k: a panel is a narrow piece of each row


def interleave_function(
    a: Arithmetic, name: str, width: int, source: DType, *, flips: bool = False, sums: bool = False
) -> IRFunction:
    """`lane` and `step` are the strides, in elements, from lane to lane and from k to k."""
    return Interleave(a, name, width, source, flips, sums).function()


class Interleave:
    def __init__(self, a: Arithmetic, name: str, width: int, source: DType, flips: bool, sums: bool) -> None:
        self.a, self.width, self.source, self.flips, self.sums = a, width, source, flips, sums
        self.f = IRFunction(name, PACK)
        self.k_pack, self.kind, self.size = a.k_pack, scalar_kind(source), f"[{source.itemsize} x i8]"
        self.cell = f"i{32 // a.k_pack}"
        even = width & -width
        self.chunk = min(even, CHUNK if a.k_pack == 2 else a.lanes)
        self.square = min(even, SQUARE, a.lanes)
        self.bounds, self.head_rows = a.bounds_exponents, int(sums or a.bounds_exponents)
        self.identity = -1 if self.bounds else 0  # of the totals that a panel begins with
        self.inside: str | None = None  # mask of the lanes that exist, at an edge

    def function(self) -> IRFunction:
        f = self.f
        self.whole = f.div("%kc", self.k_pack)  # full words
        self.words = self.a.emit_groups(f, "%kc")
        self.panel = f.mul(f.add(self.words, self.head_rows), self.width)  # words of a panel
        self.panels = f.div(f.add("%lanes", self.width - 1), self.width)

        def not_lanes() -> None:
            f.either(f.test("eq", "%step", 1), self.along_k, self.any_strides)

        if self.head_rows:
            kind, identity = vector("i32", self.a.lanes), self.number(self.identity, self.a.lanes)
            with f.loop(0, self.panels) as p:
                for lane in range(0, self.width, self.a.lanes):
                    f.store(kind, identity, f.at("i32", self.head(p.index), lane), 4)
        f.either(f.test("eq", "%lane", 1), self.along_lanes, not_lanes)
        if self.bounds:
            self.keep_exponents()
        return f

    def keep_exponents(self) -> None:
        """Reduce the least magnitudes of the lanes to the panel's lowest biased exponent."""
        f, kind = self.f, "<32 x i16>"
        with f.loop(0, self.panels) as p:
            lanes = [(kind, f.load(kind, f.at("i32", self.head(p.index), SIDE * v), 4)) for v in range(2)]
            least = f.call("i16", "llvm.vector.reduce.umin.v32i16", [(kind, f.call(kind, "llvm.umin.v32i16", lanes))])
            magnitude = f.op(f"add i32 {f.op(f'zext i16 {least} to i32')}, 1")
            exponent = f.op(f"lshr i32 {magnitude}, 7")
            subnormal = f.op(f"icmp eq i32 {exponent}, 0")
            f.store("i32", f.select(subnormal, "i32", SUBNORMAL, exponent), self.head(p.index), 4)

    # places ---------------------------------------------------------------------------------------------------

    def source_at(self, lane: Operand, k: Operand) -> str:
        f = self.f
        return f.at(self.size, "%src", f.mul(lane, "%lane"), f.mul(k, "%step"))

    def head(self, panel: str) -> str:
        return self.f.at("i32", "%dst", self.f.mul(panel, self.panel))

    def word_at(self, panel: str, word: Operand) -> str:
        f = self.f
        return f.at("i32", self.head(panel), f.mul(f.add(word, self.head_rows), self.width))

    def place(self, panel: str, word: str, lane: str) -> str:
        return self.f.at("i32", self.word_at(panel, word), lane)

    # words ----------------------------------------------------------------------------------------------------

    def cells(self, raw: str, count: int) -> str:
        """Elements as they are packed: bytes, or widened to 16 bits."""
        kind, cell = vector(self.kind, count), vector(self.cell, count)
        if kind == cell:
            return raw
        return self.f.op(f"{'sext' if self.source.kind == 'i' else 'zext'} {kind} {raw} to {cell}")

    def store(self, words: str, place: str, count: int) -> None:
        f, kind = self.f, vector("i32", count)
        if self.flips:
            words = f.op(f"xor {kind} {words}, {self.number(HIGH_BITS, count)}")
        f.store(kind, words, place, 4)

    def number(self, value: int, count: int) -> str:
        return str(value) if count == 1 else f"splat (i32 {value})"

    def add_up(self, totals: list[str], words: list[str], count: int) -> list[str]:
        """The totals plus 128 times the sum of the bytes of each word; or, of bfloat16, the least of the totals and the
        magnitudes of nonzero elements, as bits less one (which makes zero the largest)."""
        f, kind = self.f, vector("i32", count)
        if self.bounds:
            pair, name = f"<{2 * count} x i16>", f"llvm.umin.v{2 * count}i16"
            result = []
            for total, word in zip(totals, words, strict=True):
                magnitude = f.op(f"and {pair} {f.op(f'bitcast {kind} {word} to {pair}')}, splat (i16 32767)")
                below = f.op(f"add {pair} {magnitude}, splat (i16 -1)")
                least = f.call(pair, name, [(pair, below), (pair, f.op(f"bitcast {kind} {total} to {pair}"))])
                result.append(f.op(f"bitcast {pair} {least} to {kind}"))
            return result
        if not self.sums:
            return totals
        if 4 <= count <= self.a.lanes:
            high = (kind, self.number(HIGH_BITS, count))
            name = f"llvm.x86.avx512.vpdpbusd.{32 * count}"
            pairs = zip(totals, words, strict=True)
            return [f.call(kind, name, [(kind, total), high, (kind, word)]) for total, word in pairs]
        result = []
        for total, word in zip(totals, words, strict=True):
            for byte in range(4):
                moved = f.op(f"shl {kind} {word}, {self.number(24 - 8 * byte, count)}")
                times = f.op(f"ashr {kind} {moved}, {self.number(17, count)}")
                total = f.op(f"add {kind} {total}, {f.op(f'and {kind} {times}, {self.number(-128, count)}')}")
            result.append(total)
        return result

    def start(self, count: int, many: int) -> list[tuple[str, str]]:
        return [(vector("i32", count), self.number(self.identity, count))] * (many if self.head_rows else 0)

    def keep_totals(self, totals: list[str], panel: str, lane: Operand, count: int) -> None:
        """Combined with what the head of the panel has of these lanes."""
        f, kind = self.f, vector("i32", count)
        for i, total in enumerate(totals):
            place = f.at("i32", self.head(panel), lane, i * count)
            old = f.load(kind, place, 4)
            if self.sums:
                f.store(kind, f.op(f"sub {kind} {old}, {total}"), place, 4)
                continue
            pair = f"<{2 * count} x i16>"
            both = [(pair, f.op(f"bitcast {kind} {x} to {pair}")) for x in (old, total)]
            f.store(pair, f.call(pair, f"llvm.umin.v{2 * count}i16", both), place, 4)

    # loops ----------------------------------------------------------------------------------------------------

    def along_lanes(self) -> None:
        """Contiguous lanes: `k_pack` rows at a time, interleaved into words. At the edge: whole vectors, then the rest
        under a mask, or lane by lane to the end of a vector."""
        f, count = self.f, self.chunk
        whole = f.div("%lanes", self.width)
        bulk = f.op(f"and i64 {self.whole}, {-TOGETHER}") if self.a.amx else "0"
        with f.loop(0, bulk, TOGETHER) as w, f.loop(0, whole) as p:  # a few rows of all panels: long reads
            self.interleaved(p.index, "0", self.width // count, w.index, f.add(w.index, TOGETHER))
        with f.loop(0, whole) as p:
            self.interleaved(p.index, "0", self.width // count, bulk)
        with f.loop(whole, self.panels) as p:
            left = f.sub("%lanes", f.mul(whole, self.width))
            vectors = f.mul(f.div(left, count), count)
            with f.loop(0, vectors, count) as c:
                self.interleaved(p.index, c.index, 1)
            lanes = self.width if self.a.amx else self.a.lanes
            end = f.lower(f.mul(f.div(f.add(left, lanes - 1), lanes), lanes), self.width)
            with f.when(f.test("slt", vectors, left)):
                self.edge(p.index, vectors, left, end)

    def edge(self, panel: str, vectors: str, left: str, end: str) -> None:
        """The last lanes of the last panel, fewer than a vector has."""
        f, count = self.f, self.chunk
        if self.a.target.cheap_masks:
            with f.loop(vectors, end, count) as c:
                self.inside = mask_below(f, f.sub(left, c.index), count)
                self.interleaved(panel, c.index, 1)
            return
        if self.sums:
            self.one_by_one(panel, vectors, end)
            return
        # whole vectors may read past the edge into the following rows, as long as there are any; lanes past the edge
        # are ignored
        back = f.add(f.div(count, f.select(f.test("sgt", "%step", 0), "i64", "%step", 1)), 1)
        safe = f.div(f.sub("%kc", f.lower("%kc", back)), self.k_pack)
        safe = f.select(f.test("sgt", "%step", 0), "i64", safe, 0)
        with f.loop(vectors, end, count) as c:
            self.interleaved(panel, c.index, 1, stop=safe)
        self.one_by_one(panel, vectors, end, safe)

    def interleaved(self, panel: str, lane: str, vectors: int, start: str = "0", stop: str | None = None) -> None:
        """Some vectors of a panel from `lane` and the word `start` on: all words, or the full ones before `stop`."""
        f, count = self.f, self.chunk
        first = f.add(f.mul(panel, self.width), lane)
        with f.loop(start, stop or self.whole, 1, self.start(count, vectors)) as w:
            rows = [self.source_at(first, f.add(f.mul(w.index, self.k_pack), d)) for d in range(self.k_pack)]
            for row in rows if not self.a.amx else []:
                ahead = f.at(self.size, row, f.mul("%step", AHEAD * self.k_pack))
                f.prefetch(ahead)
            words = self.interleave(rows, [""] * self.k_pack, panel, w.index, lane, vectors)
            w.next = self.add_up(list(w.values), words, count)
        if stop is not None:
            self.keep_totals(w.values, panel, lane, count)
            return
        with f.loop(
            self.whole,
            self.words,
            1,
            [(kind, x) for (kind, _), x in zip(self.start(count, vectors), w.values, strict=True)],
        ) as w:
            k, last = f.mul(w.index, self.k_pack), f.sub("%kc", 1)
            rows = [self.source_at(first, f.lower(f.add(k, d), last)) for d in range(self.k_pack)]
            there = [f.test("slt", f.add(k, d), "%kc") for d in range(self.k_pack)]
            words = self.interleave(rows, there, panel, w.index, lane, vectors)
            w.next = self.add_up(list(w.values), words, count)
        self.keep_totals(w.values, panel, lane, count)

    def interleave(
        self, rows: list[str], there: Sequence[str], panel: str, word: str, lane: str, vectors: int
    ) -> list[str]:
        """`k_pack` rows of vectors interleaved element by element. `there`: whether each row exists ("" if it is known
        to); a missing row is zeros."""
        f, count = self.f, self.chunk
        result = []
        for v in range(vectors):
            cells = []
            for row, real in zip(rows, there, strict=True):
                place = f.at(self.size, row, v * count)
                found = self.cells(self.loaded(place), count)
                cell = vector(self.cell, count)
                if real:
                    found = f.select(real, cell, found, "zeroinitializer")
                cells.append(found)
            words = self.side_by_side(cells)
            self.store(words, f.at("i32", self.word_at(panel, word), lane, v * count), count)
            result.append(words)
        return result

    def loaded(self, place: str) -> str:
        f, kind = self.f, vector(self.kind, self.chunk)
        if self.inside is None:
            return f.load(kind, place, 1)
        args: list[tuple[str, str | int]] = [("ptr", place), ("i32", 1), (vector("i1", self.chunk), self.inside)]
        return f.call(kind, f"llvm.masked.load.v{self.chunk}{self.kind}.p0", [*args, (kind, "zeroinitializer")])

    def side_by_side(self, cells: list[str]) -> str:
        f, count, cell, kind = self.f, self.chunk, vector(self.cell, self.chunk), vector("i32", self.chunk)
        if self.k_pack == 1:
            return cells[0]
        if self.k_pack == 2:
            both = f.shuffle(cell, cells[0], cells[1], alternating(count))
            return f.op(f"bitcast {vector(self.cell, 2 * count)} {both} to {kind}")
        total = ""
        for d, found in enumerate(cells):
            wide = f.op(f"zext {cell} {found} to {kind}")
            wide = f.op(f"shl {kind} {wide}, {self.number(8 * d, count)}") if d else wide
            total = f.op(f"or {kind} {total}, {wide}") if total else wide
        return total

    def along_k(self) -> None:
        """Contiguous k: a load is several words of a lane; squares of words are transposed in registers."""
        f, side = self.f, self.square
        last, bulk = f.sub("%lanes", 1), f.mul(f.div(self.whole, side), side)
        with f.loop(0, self.panels) as p, f.loop(0, self.width, side) as r:
            first = f.add(f.mul(p.index, self.width), r.index)
            lanes = [self.source_at(f.lower(f.add(first, i), last), 0) for i in range(side)]
            with f.loop(0, bulk, side, self.start(side, 1)) as w:
                loaded = [self.words_along_k(lane, w.index, side) for lane in lanes]
                totals = list(w.values)
                for i, words in enumerate(transposed(f, "i32", loaded)):
                    self.store(words, f.at("i32", self.word_at(p.index, f.add(w.index, i)), r.index), side)
                    totals = self.add_up(totals, [words], side)
                w.next = totals
            self.keep_totals(w.values, p.index, r.index, side)
            for i, lane in enumerate(lanes):
                at = f.add(r.index, i)
                with f.loop(bulk, self.whole, 1, self.start(1, 1)) as w:
                    word = self.words_along_k(lane, w.index, 1)
                    self.store(word, f.at("i32", self.word_at(p.index, w.index), at), 1)
                    w.next = self.add_up(list(w.values), [word], 1)
                with f.loop(self.whole, self.words, 1, [("i32", x) for x in w.values]) as w:
                    k = f.mul(w.index, self.k_pack)
                    word = self.word_of(lane, "1", k, f.lower(self.k_pack, f.sub("%kc", k)))
                    self.store(word, f.at("i32", self.word_at(p.index, w.index), at), 1)
                    w.next = self.add_up(list(w.values), [word], 1)
                self.keep_totals(w.values, p.index, at, 1)

    def words_along_k(self, lane: str, word: str, count: int) -> str:
        f, elements = self.f, count * self.k_pack
        raw = f.load(vector(self.kind, elements), f.at(self.size, lane, f.mul(word, self.k_pack)), 1)
        return f.op(f"bitcast {vector(self.cell, elements)} {self.cells(raw, elements)} to {vector('i32', count)}")

    def any_strides(self) -> None:
        with self.f.loop(0, self.panels) as p:
            self.one_by_one(p.index, "0", str(self.width))

    def one_by_one(self, panel: str, lane: str, lanes: str, start: str = "0") -> None:
        """Some lanes of a panel from a word on, element by element. Lanes past the edge repeat the last one."""
        f = self.f
        first, last = f.mul(panel, self.width), f.sub("%lanes", 1)
        with f.loop(lane, lanes) as c:
            place = self.source_at(f.lower(f.add(first, c.index), last), 0)
            with f.loop(start, self.words, 1, self.start(1, 1)) as w:
                k = f.mul(w.index, self.k_pack)
                word = self.word_of(place, "%step", k, f.lower(self.k_pack, f.sub("%kc", k)))
                self.store(word, self.place(panel, w.index, c.index), 1)
                w.next = self.add_up(list(w.values), [word], 1)
            self.keep_totals(w.values, panel, c.index, 1)

    def word_of(self, lane: str, step: str, k: str, count: str) -> str:
        """A word of the first `count` elements; the others are zeros."""
        f, most, total = self.f, self.f.sub(count, 1), ""
        for d in range(self.k_pack):
            place = f.at(self.size, lane, f.mul(f.add(k, f.lower(d, most)), step))
            element = self.cells(f.load(self.kind, place, 1), 1)
            wide = element if self.k_pack == 1 else f.op(f"zext {self.cell} {element} to i32")
            there = f.select(f.test("slt", d, count), "i32", wide, 0)
            moved = f.op(f"shl i32 {there}, {32 // self.k_pack * d}")
            total = f.op(f"or i32 {total}, {moved}") if total else moved
        return total
