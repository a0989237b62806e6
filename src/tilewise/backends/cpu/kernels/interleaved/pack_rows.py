"""Packing panels of M for AMX: dst[panel][16 words of k][lane][word], a row of a tile for each lane."""

from __future__ import annotations

from tilewise.algebra.to_llvm import vector
from tilewise.backends.cpu.kernels.interleaved.pack import Interleave
from tilewise.backends.cpu.kernels.shared.amx_tile import SIDE
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.masks import mask_below
from tilewise.backends.cpu.kernels.shared.pack import transposed
from tilewise.system.llvm_text import IRFunction


def pack_rows_function(a: Arithmetic, name: str = "pack_m") -> IRFunction:
    return _Rows(a, name, a.MR, a.source_m, False, False).function()


class _Rows(Interleave):
    """`place` and the two loops over contiguous memory differ from `Interleave`."""

    def place(self, panel: str, word: str, lane: str) -> str:
        f = self.f
        return f.at("i32", self.row_at(panel, f.div(word, SIDE), lane), f.rem(word, SIDE))

    def row_at(self, panel: str, row: str, lane: str) -> str:
        """Where a lane's words go, from 16 * row on."""
        f = self.f
        start = f.mul(f.add(f.mul(row, SIDE), self.head_rows), self.width)
        return f.at("i32", self.head(panel), start, f.mul(lane, SIDE))

    def along_k(self) -> None:
        """k side by side: copied, 64 bytes at a time; the last of them under a mask."""
        f, each = self.f, SIDE * self.k_pack
        kind, last = vector(self.kind, each), f.sub("%lanes", 1)
        rows, whole = f.div(self.words, SIDE), f.div("%kc", each)

        def copy(panel: str, row: str, left: str | None) -> None:
            with f.loop(0, self.width, 1, self.start(SIDE, 1)) as lane:
                at = f.lower(f.add(f.mul(panel, self.width), lane.index), last)
                place = self.source_at(at, f.mul(row, each))
                found = f.load(kind, place, 1) if left is None else self.some(kind, place, left)
                f.store(kind, found, self.row_at(panel, row, lane.index), 4)
                words = f.op(f"bitcast {kind} {found} to {vector('i32', SIDE)}")
                lane.next = self.add_up(list(lane.values), [words], SIDE)
            self.keep_totals(lane.values, panel, 0, SIDE)

        with f.loop(0, self.panels) as p:
            with f.loop(0, whole) as r:
                copy(p.index, r.index, None)
            with f.loop(whole, rows) as r:
                copy(p.index, r.index, mask_below(f, f.sub("%kc", f.mul(r.index, each)), each))

    def some(self, kind: str, place: str, mask: str) -> str:
        """The elements under a mask, and zeros."""
        count = SIDE * self.k_pack
        args: list[tuple[str, str | int]] = [("ptr", place), ("i32", 1), (vector("i1", count), mask)]
        return self.f.call(kind, f"llvm.masked.load.v{count}{self.kind}.p0", [*args, (kind, "zeroinitializer")])

    def along_lanes(self) -> None:
        """Lanes side by side: 16 words of 16 lanes are made and transposed in registers."""
        f, each = self.f, SIDE * self.k_pack
        rows, whole = f.div(self.words, SIDE), f.div("%kc", each)

        def square(panel: str, row: str, lane: str, full: bool) -> None:
            first, k0, words = f.add(f.mul(panel, self.width), lane), f.mul(row, each), []
            self.inside = mask_below(f, f.sub("%lanes", first), SIDE)
            for w in range(SIDE):
                cells = []
                for d in range(self.k_pack):
                    k = f.add(k0, w * self.k_pack + d)
                    found = self.cells(self.loaded(self.source_at(first, k if full else f.lower(k, f.sub("%kc", 1)))),
                                       SIDE)  # fmt: skip
                    if not full:
                        found = f.select(f.test("slt", k, "%kc"), vector(self.cell, SIDE), found, "zeroinitializer")
                    cells.append(found)
                words.append(self.side_by_side(cells))
            totals = [number for _, number in self.start(SIDE, 1)]
            for i, column in enumerate(transposed(f, "i32", words)):
                f.store(vector("i32", SIDE), column, self.row_at(panel, row, f.add(lane, i)), 4)
                totals = self.add_up(totals, [column], SIDE)
            self.keep_totals(totals, panel, 0, SIDE)

        with f.loop(0, self.panels) as p, f.loop(0, self.width, SIDE) as c:
            with f.loop(0, whole) as r:
                square(p.index, r.index, c.index, True)
            with f.loop(whole, rows) as r:
                square(p.index, r.index, c.index, False)
