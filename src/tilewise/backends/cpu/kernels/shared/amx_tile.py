"""The AMX microkernel: 32 x 32 sums in four tiles of 16 x 16, from two tiles of M and two of N for each 16 words of k.

A word holds four bytes or two bfloat16, consecutive along k. A panel of M has 16 words of each row side by side; a
panel of N has a row of words for each word of k. Both are padded with zeros to a multiple of 16 words.

TDPBF16PS treats subnormal operands as zero and flushes subnormal sums. Each panel of bfloat16 therefore begins with the
lowest exponent of its elements. Where a sum of products of two panels could be subnormal, `exact_sums` computes it with
vector instructions, in the order that AMX defines: for each 16 words one chain of fused multiply-adds over the even k
and one over the odd k, both from +0; the sum of the two chains is added to P's. Both paths give the same bits. (Only a
subnormal sum left by an earlier strip of k is still read as zero.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.convert import narrow
from tilewise.backends.cpu.kernels.shared.masks import mask_below, store_rounded
from tilewise.backends.cpu.kernels.shared.tile import TILE, TileForm
from tilewise.system.llvm_text import IRFunction

SIDE = 16  # rows of a tile, and words of each
# sum of the lowest biased exponents of two panels from which no partial sum is subnormal: products are multiples of
# 2^(e + f - 14), e and f unbiased, and the least normal number is 2^-126
NORMAL = 2 * 127 + 14 - 126
SUBNORMAL = -1000  # stands for the exponent of a panel with a subnormal element
CONFIG = {0: 1, **dict.fromkeys(range(4, 8), 0x00400040), 12: 0x10101010, 13: 0x10101010}  # 8 tiles of 16 x 64 bytes
Products = tuple[tuple[int, int], ...]  # of planes of M and of N; one of a pair stays loaded for the next
M_TILES, N_TILES = 4, 6  # numbers of the first tile of M and of N; sums are tiles 0 to 3


def configure(f: IRFunction) -> None:
    """Load the tile configuration; other libraries load theirs, so it is released after each block."""
    place = f.op("alloca <16 x i32>, align 64")
    f.store("<16 x i32>", f"<{', '.join(f'i32 {CONFIG.get(i, 0)}' for i in range(16))}>", place, 64)
    f.call("void", "llvm.x86.ldtilecfg", [("ptr", place)])


def release(f: IRFunction) -> None:
    f.call("void", "llvm.x86.tilerelease", [])


class AmxTile:
    passes: ClassVar[tuple[Products, ...]] = (((0, 0),),)
    normal = NORMAL

    def __init__(self, a: Arithmetic, form: TileForm) -> None:
        self.a, self.form, self.f = a, form, IRFunction(form.name, TILE)
        self.width = SIDE * form.vectors
        self.panel = 4 * form.panel  # bytes of a row of N's panel, and of what both panels begin with
        sign_m, sign_n = ("u" if dtype.kind == "u" else "s" for dtype in (a.source_m, a.source_n))
        self.multiply = "tdpbf16ps" if a.bounds_exponents else f"tdpb{sign_m}{sign_n}d"

    def function(self) -> IRFunction:
        a, f = self.a, self.f
        stack = f.op(f"alloca [{SIDE * 2 * self.width} x i32], align 64")
        self.place_panels(self.panel if a.bounds_exponents else 0)
        if a.rounds:
            self.P, self.row = stack, str(self.width)
            self.fill()
            return f
        whole = f.both(f.test("eq", "%rows", 2 * SIDE), f.test("eq", "%cols", self.width))
        self.P = f.select(whole, "ptr", "%P", stack)
        self.row = f.select(whole, "i64", "%row_p", self.width)
        self.load_edge(stack, f.negated(f.op(f"or i1 {whole}, %first")))
        self.fill()
        with f.when(f.negated(whole)):
            f.do(
                f"call void @merge(ptr {stack}, ptr null, i64 {self.width}, i64 0, ptr %P, i64 %row_p, i64 0, "
                "i64 %rows, i64 %cols, i1 true, i64 0)"
            )
        return f

    def place_panels(self, head: int) -> None:
        """Where the planes of both panels begin, behind `head` bytes."""
        a, f = self.a, self.f
        self.M, self.N, self.fresh = f.at("i8", "%M", head), f.at("i8", "%N", head), "true" if a.splits else "%first"
        self.planes_m = [self.M, *(f.at("i32", self.M, f.mul("%kc", 2 * SIDE * p)) for p in range(1, a.planes))]
        self.planes_n = [self.N, *(f.at("i8", self.N, f.mul("%kc", self.panel * p)) for p in range(1, a.planes))]

    def fill(self) -> None:
        """Compute the sums; with AMX wherever that is exact."""
        a, f = self.a, self.f

        if not a.bounds_exponents:
            self.by_tiles()
            return
        exponents = [f.load("i32", name, 4) for name in ("%M", "%N")]
        lowest = f.op(f"add i32 {exponents[0]}, {exponents[1]}")
        f.either(f.op(f"icmp sge i32 {lowest}, {self.normal}"), self.by_tiles, self.by_vectors)

    def by_tiles(self) -> None:
        self.f.either(self.f.test("sgt", "%rows", SIDE), lambda: self.sums(2), lambda: self.sums(1))
        if self.a.rounds:
            self.rounded(self.converted)

    def by_vectors(self) -> None:
        a = self.a
        self.exact_sums()
        if a.rounds:
            self.rounded(lambda x: narrow(self.f, a.target, a.partial, a.result, x, SIDE, clear=True))

    def converted(self, sums: str) -> str:
        """Sums rounded by one instruction, which would flush subnormal numbers: there are none."""
        kind = f"<{SIDE} x bfloat>"
        made = self.f.call(kind, "llvm.x86.avx512bf16.cvtneps2bf16.512", [(self.a.vector, sums)])
        return self.f.op(f"bitcast {kind} {made} to <{SIDE} x i16>")

    def load_edge(self, stack: str, condition: str) -> None:
        """Copy the cells of P inside the matrix to the stack: the sums of an edge tile continue from there."""
        f = self.f
        with f.when(condition), f.loop(0, "%rows") as row, f.loop(0, "%cols") as col:
            cell = f.load("i32", f.at("i32", "%P", f.mul(row.index, "%row_p"), col.index), 4)
            f.store("i32", cell, f.at("i32", stack, f.mul(row.index, self.width), col.index), 4)

    def rounded(self, rounding: Callable[[str], str]) -> None:
        """Store the sums, rounded, to the cells inside P."""
        a, f = self.a, self.f
        masks = [mask_below(f, f.sub("%cols", SIDE * v), SIDE) for v in range(self.form.vectors)]
        with f.loop(0, "%rows") as row:
            for v, mask in enumerate(masks):
                found = f.load(a.vector, f.at("i32", self.P, f.mul(row.index, self.width), SIDE * v), 4)
                store_rounded(f, a, rounding(found), f.at(a.cell, "%P", f.mul(row.index, "%row_p"), SIDE * v), mask)

    # with AMX -------------------------------------------------------------------------------------------------

    def tile(self, name: str, number: int, place: str, step: str | int) -> None:
        """Load or store a tile whose rows are `step` bytes apart."""
        self.f.call("void", f"llvm.x86.{name}64", [("i8", number), ("ptr", place), ("i64", step)])

    def each_of_P(self, halves: int) -> list[tuple[int, str]]:
        """The number of each tile of sums, and where it goes."""
        f = self.f
        rows = [self.P, f.at("i32", self.P, f.mul(self.row, SIDE))][:halves]
        return [(2 * i + v, f.at("i32", row, SIDE * v)) for i, row in enumerate(rows) for v in range(self.form.vectors)]

    def sums(self, halves: int) -> None:
        """The upper half of the rows, or both."""
        f, cells, step = self.f, self.each_of_P(halves), self.f.mul(self.row, 4)

        def fresh() -> None:
            for number, _ in cells:
                f.call("void", "llvm.x86.tilezero", [("i8", number)])

        def onto() -> None:
            for number, place in cells:
                self.tile("tileloadd", number, place, step)

        f.either(self.fresh, fresh, onto)
        for products in self.passes:
            self.products(halves, products)
        for number, place in cells:
            self.tile("tilestored", number, place, step)

    def products(self, halves: int, products: Products) -> None:
        """Add the products of these planes, over all of kc."""
        f = self.f
        with f.loop(0, "%kc", SIDE) as w:
            at_m, at_n = f.mul(w.index, 2 * SIDE * 4), f.mul(w.index, self.panel)
            for (m, n), (held_m, held_n) in zip(products, ((-1, -1), *products), strict=False):
                M, N = f.at("i8", self.planes_m[m], at_m), f.at("i8", self.planes_n[n], at_n)
                for v in range(self.form.vectors if n != held_n else 0):
                    self.tile("tileloadd", N_TILES + v, f.at("i8", N, 4 * SIDE * v), self.panel)
                for i in range(halves):
                    if m != held_m:
                        self.tile("tileloadd", M_TILES + i, f.at("i8", M, 4 * SIDE * SIDE * i), 4 * SIDE)
                    for v in range(self.form.vectors):
                        tiles: list[tuple[str, str | int]] = [("i8", x) for x in (2 * i + v, M_TILES + i, N_TILES + v)]
                        f.call("void", f"llvm.x86.{self.multiply}", tiles)

    # with vector instructions ---------------------------------------------------------------------------------

    def exact_sums(self) -> None:
        """The sums of bfloat16, with subnormal numbers."""
        f, kind, count = self.f, "<16 x float>", self.form.vectors
        with f.loop(0, "%rows") as row:
            line = f.at("i32", self.P, f.mul(row.index, self.row))
            places = [f.at("i32", line, SIDE * v) for v in range(count)]
            begin = []
            for place in places:
                old = f.load(kind, place, 4)
                begin.append((kind, f.op(f"select i1 %first, {kind} zeroinitializer, {kind} {old}")))
            with f.loop(0, "%kc", SIDE, begin) as w:
                M = f.at("i32", self.M, f.mul(w.index, 2 * SIDE), f.mul(row.index, SIDE))
                with f.loop(0, SIDE, 1, [(kind, "zeroinitializer")] * (2 * count)) as k:
                    word = f.splat("i32", f.load("i32", f.at("i32", M, k.index), 4), 16)
                    N = f.at("i8", self.N, f.mul(f.add(w.index, k.index), self.panel))
                    for v in range(count):
                        other = f.load("<16 x i32>", f.at("i32", N, SIDE * v), 4)
                        for odd in range(2):
                            at = 2 * v + odd
                            x, y = self.numbers(word, odd), self.numbers(other, odd)
                            k.next[at] = f.call(kind, "llvm.fma.v16f32", [(kind, x), (kind, y), (kind, k.values[at])])
                for v in range(count):
                    both = f.op(f"fadd {kind} {k.values[2 * v]}, {k.values[2 * v + 1]}")
                    w.next[v] = f.op(f"fadd {kind} {w.values[v]}, {both}")
            for value, place in zip(w.values, places, strict=True):
                f.store(kind, value, place, 4)

    def numbers(self, words: str, odd: int) -> str:
        """The even or odd bfloat16 of 16 words, as float32."""
        f, kind = self.f, "<16 x i32>"
        high = f"and {kind} {words}, splat (i32 -65536)" if odd else f"shl {kind} {words}, splat (i32 16)"
        return f.op(f"bitcast {kind} {f.op(high)} to <16 x float>")
