"""The AMX microkernel of float32: each element is the sum of three bfloat16, hi + mid + lo (`interleaved/split.py`).

Six products of planes are added up; the three left out are below 2^-25 of the product of the elements. The sums of a
strip begin at zero, are scaled back, and are added to P's. Where elements of two panels span too many powers of two, or
one is Inf or NaN, the elements are restored and multiplied by vector instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from tilewise.backends.cpu.kernels.shared.amx_tile import SIDE, SUBNORMAL, AmxTile, Products
from tilewise.backends.cpu.kernels.shared.masks import mask_below, masked_load, masked_store
from tilewise.system.llvm_text import IRFunction

DEPTH = 768  # k of a strip at most
MODE = 4  # of rounding: the one that the thread has set
ROWS = 4  # whose sums of even and of odd k registers hold, beside two vectors of N
FLOATS, WORDS = f"<{SIDE} x float>", f"<{SIDE} x i32>"


class AmxSplitTile(AmxTile):
    # the small products have a loop of their own, the first: added to large sums each would round them once more
    passes: ClassVar[tuple[Products, ...]] = (((0, 2), (0, 1), (1, 1), (1, 0), (2, 0)), ((0, 0),))
    normal = 2 * 127 - 60  # products of three planes each are multiples of 2^(e + f - 46), e and f unbiased

    def function(self) -> IRFunction:
        f = self.f
        self.P, self.row = f.op(f"alloca [{SIDE * 2 * self.width} x i32], align 64"), str(self.width)
        self.memory = [f.op(f"alloca [{2 * SIDE * DEPTH} x float], align 64") for _ in "MN"]
        self.place_panels(self.panel)
        with f.loop(0, "%rows") as row:
            for v in range(self.form.vectors):
                f.prefetch(f.at("i32", "%P", f.mul(row.index, "%row_p"), SIDE * v))
        self.fill()
        return f

    def by_tiles(self) -> None:
        super().by_tiles()
        self.added(self.unscaled)

    def by_vectors(self) -> None:
        self.restored()
        self.restored_sums()
        self.added(lambda sums: sums)

    def added(self, finished: Callable[[str], str]) -> None:
        """Add the sums to the cells inside P, or store them there."""
        a, f = self.a, self.f
        masks = [mask_below(f, f.sub("%cols", SIDE * v), SIDE) for v in range(self.form.vectors)]
        with f.loop(0, "%rows") as row:
            for v, mask in enumerate(masks):
                made = finished(f.load(FLOATS, f.at("i32", self.P, f.mul(row.index, self.width), SIDE * v), 4))
                place = f.at("i32", "%P", f.mul(row.index, "%row_p"), SIDE * v)
                there = f.op(f"select i1 %first, <{SIDE} x i1> zeroinitializer, <{SIDE} x i1> {mask}")
                masked_store(f, a, f.op(f"fadd {FLOATS} {masked_load(f, a, place, there)}, {made}"), place, mask)

    def unscaled(self, sums: str) -> str:
        """Sums divided by the powers of two by which M and N were scaled."""
        f = self.f
        power = f.op(f"add i32 {self.power('%M')}, {self.power('%N')}")
        by = f.splat("float", f.op(f"sitofp i32 {f.op(f'sub i32 0, {power}')} to float"), SIDE)
        args: list[tuple[str, str | int]] = [(FLOATS, x) for x in (sums, by, "zeroinitializer")]
        args += [("i16", -1), ("i32", MODE)]
        return f.call(FLOATS, "llvm.x86.avx512.mask.scalef.ps.512", args)

    def power(self, panel: str) -> str:
        """The power of two by which a panel was scaled."""
        return self.f.load("i32", self.f.at("i32", panel, 1), 4)

    # with vector instructions ---------------------------------------------------------------------------------

    def restored(self) -> None:
        """The elements of both panels: of M, for each row and 16 words, the even k and then the odd ones; of N, rows of
        the panel for each k."""
        f, (of_m, of_n) = self.f, self.memory
        with f.loop(0, "%kc", SIDE) as w, f.loop(0, 2 * SIDE) as row:
            at = f.add(f.mul(w.index, 2 * SIDE), f.mul(row.index, SIDE))
            words = [f.load(WORDS, f.at("i32", plane, at), 4) for plane in self.planes_m]
            to = f.at("float", of_m, f.mul(row.index, DEPTH), f.mul(w.index, 2))
            for odd in range(2):
                f.store(FLOATS, self.element("%M", words, odd), f.at("float", to, SIDE * odd), 4)
        with f.loop(0, "%kc") as w:
            for v in range(self.form.vectors):
                rows = [f.at("i8", plane, f.mul(w.index, self.panel)) for plane in self.planes_n]
                words = [f.load(WORDS, f.at("i32", row, SIDE * v), 4) for row in rows]
                for odd in range(2):
                    to = f.at("float", of_n, f.mul(f.add(f.mul(w.index, 2), odd), self.width), SIDE * v)
                    f.store(FLOATS, self.element("%N", words, odd), to, 4)

    def element(self, panel: str, planes: list[str], odd: int) -> str:
        """The even or odd elements of 16 words: their bits, or the sum of the planes, scaled back."""
        f, change = self.f, "and {} {}, splat (i32 -65536)" if odd else "shl {} {}, splat (i32 16)"
        high = [f.op(change.format(WORDS, words)) for words in planes]
        hi, mid, lo = (f.op(f"bitcast {WORDS} {bits} to {FLOATS}") for bits in high)
        both = f.op(f"fadd {FLOATS} {hi}, {f.op(f'fadd {FLOATS} {mid}, {lo}')}")
        factor = f.op(f"shl i32 {f.op(f'sub i32 127, {self.power(panel)}')}, 23")
        unscaled = f.op(f"fmul {FLOATS} {both}, {f.splat('float', f.op(f'bitcast i32 {factor} to float'), SIDE)}")
        bits = f.op(f"or {WORDS} {high[0]}, {f.op(f'lshr {WORDS} {high[1]}, splat (i32 16)')}")
        raw = f.op(f"icmp eq i32 {f.load('i32', panel, 4)}, {SUBNORMAL}")
        return f.op(f"select i1 {raw}, {FLOATS} {f.op(f'bitcast {WORDS} {bits} to {FLOATS}')}, {FLOATS} {unscaled}")

    def restored_sums(self) -> None:
        """The sums of the elements' products: one chain over the even k and one over the odd."""
        f, count, (of_m, of_n) = self.f, self.form.vectors, self.memory
        zeros = [(FLOATS, "zeroinitializer")] * (2 * ROWS * count)
        with f.loop(0, "%rows", ROWS) as row:
            with f.loop(0, "%kc", 1, zeros) as w:
                inside = f.rem(w.index, SIDE)
                M = f.at("float", of_m, f.mul(row.index, DEPTH), f.sub(f.mul(w.index, 2), inside))
                N = f.at("float", of_n, f.mul(w.index, 2 * self.width))
                for odd in range(2):
                    vectors = [f.load(FLOATS, f.at("float", N, odd * self.width, SIDE * v), 4) for v in range(count)]
                    for r in range(ROWS):
                        x = f.splat("float", f.load("float", f.at("float", M, r * DEPTH, SIDE * odd), 4), SIDE)
                        for v, y in enumerate(vectors):
                            at = (odd * ROWS + r) * count + v
                            terms = [(FLOATS, x), (FLOATS, y), (FLOATS, w.values[at])]
                            w.next[at] = f.call(FLOATS, "llvm.fma.v16f32", terms)
            for i, pair in enumerate(zip(w.values[: ROWS * count], w.values[ROWS * count :], strict=True)):
                place = f.at("i32", self.P, f.mul(f.add(row.index, i // count), self.width), SIDE * (i % count))
                f.store(FLOATS, f.op(f"fadd {FLOATS} {pair[0]}, {pair[1]}"), place, 4)
