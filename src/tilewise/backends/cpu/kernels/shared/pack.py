"""Packing: a strip of M or N, with any strides and dtype, into panels that the tile reads sequentially.

A panel holds `width` lanes (rows of M, columns of N) for every k: dst[panel][k][lane]; imaginary parts follow the real
ones. Lanes past the edge repeat the last one or are 0, and their results are never stored. No k is padded.
"""

from __future__ import annotations

from functools import partial

from tilewise.algebra.dtypes import DType
from tilewise.algebra.to_llvm import Value, vector
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.convert import load
from tilewise.backends.cpu.kernels.shared.masks import load_cells, mask_below, masked_source
from tilewise.system.llvm_text import IRFunction

PACK = "ptr src, i64 lane, i64 step, i64 lanes, i64 kc, ptr dst"
SQUARE = 8  # the side of the squares that are transposed in registers
# NEON: k copied together, whole cache lines of a panel, and the prefetch distance: a row of a panel is less than a
# line, and panels map to the same sets (1000 columns of float32 0.50 ns each without; 0.27)
TOGETHER, AHEAD = 4, 8


def pack_pairs_functions(a: Arithmetic) -> list[IRFunction]:
    """`pack_n` of complex numbers as pairs, which have two lanes: rows of N are rows of real numbers; else pairs are
    moved as one."""
    f = IRFunction("pack_n", PACK)

    def rows() -> None:
        f.invoke("pack_rows", PACK)

    def pairs() -> None:
        f.invoke("pack_pairs", PACK, step=f.op("ashr i64 %step, 1"), lanes=f.div("%lanes", 2))

    f.either(f.test("eq", "%lane", 1), rows, pairs)
    by_rows = _Pack(a, "pack_rows", a.width, a.source_n).function()
    return [by_rows, _Pack(a, "pack_pairs", a.width // 2, a.source_n, unit=2).function(), f]


def pack_function(a: Arithmetic, width: int, source: DType) -> IRFunction:
    """Panels of N. `lane` and `step` are the strides, in elements, from lane to lane and from k to k."""
    return _Pack(a, "pack_n", width, source).function()


def pack_m_function(a: Arithmetic, width: int) -> IRFunction:
    """Panels of M, whose elements may be replicated: to 32 bits, or once per lane of the tile's vectors."""
    return _Pack(a, "pack_m", width, a.source_m, a.spread, a.repeats).function()


class _Pack:
    """`unit`: values moved as one, which are converted neither."""

    def __init__(
        self, a: Arithmetic, name: str, width: int, source: DType, spread: int = 1, repeats: int = 1, unit: int = 1
    ) -> None:
        self.a, self.width, self.source, self.spread, self.repeats = a, width, source, spread, repeats
        self.unit = unit
        self.f = IRFunction(name, PACK)
        self.kind = "i32" if spread > 1 else a.kind
        self.place = (
            vector(self.kind, repeats) if unit == 1 else f"[{unit} x {self.kind}]"
        )  # the type of an element in the panel
        self.bytes = 4 if spread > 1 else a.bytes
        self.row = width * a.parts  # elements of one k in a panel
        even, lanes = width & -width, a.target.vector_bytes // (self.bytes * unit)
        narrow = width <= min(lanes, SQUARE) and not a.target.by_lane  # a panel is one chunk, and part of a square
        self.chunk = width if narrow else min(even, lanes)
        self.square = SQUARE if narrow and width > SQUARE // 2 else min(even, SQUARE)
        plain = a.parts == 1 and not a.bits and spread == repeats == 1 and source.kind != "c" and self.chunk == a.lanes
        self.unconverted = source == a.partial and spread == repeats == unit == 1 and not a.bits
        self.together = TOGETHER if a.target.by_lane else 1
        self.reaches = plain and a.target.by_lane  # the last vector of a row overlaps the one before
        self.masked = plain and (a.target.cheap_masks or (a.target.masks and source.itemsize >= 4))

    def function(self) -> IRFunction:
        f = self.f
        lane_by_lane, k_by_k = f.test("eq", "%lane", 1), f.test("eq", "%step", 1)
        whole = f.div("%lanes", self.width)
        panels = f.div(f.add("%lanes", self.width - 1), self.width)

        def copied() -> None:
            if self.reaches:  # first: with fewer lanes than a vector it writes into the panel before
                f.either(f.test("slt", "%lanes", self.chunk), lambda: self.copy_edge(whole, panels), self.reach_back)
            self.copy_lanes(whole)
            if not self.reaches:
                self.copy_edge(whole, panels)

        def not_copied() -> None:
            pack = self.repeat if self.repeats > 1 else self.transpose
            f.either(k_by_k, lambda: pack(panels), lambda: self.one_by_one("0", panels))

        f.either(lane_by_lane if self.unit == 1 else "false", copied, not_copied)
        return f

    def fetch(self, address: str, lanes: int) -> Value:
        value = load(self.f, self.a.target, self.source, self.a.partial, address, lanes * self.unit)
        if self.a.quiets or self.spread == 1:
            return self.quieted(value, lanes)
        narrow, wide = vector(self.a.kind, lanes), vector("i32", lanes)
        times = "-1" if self.a.bits else "16843009" if self.a.bytes == 1 else "65537"
        times = times if lanes == 1 else f"splat (i32 {times})"
        return (self.f.op(f"mul {wide} {self.f.op(f'zext {narrow} {value[0]} to {wide}')}, {times}"),)

    def quieted(self, value: Value, lanes: int) -> Value:
        return (self.a.quiet(self.f, value[0], lanes),) if self.a.quiets else value

    def size(self, count: int = 1) -> str:
        """The type whose size is `count` source elements."""
        return f"[{count * self.unit * self.source.itemsize} x i8]"

    def keep(self, value: Value, address: str, lanes: int) -> None:
        for number, register in enumerate(value):
            place = self.f.at(self.place, address, number * self.width)
            if self.repeats == 1:
                self.f.store(vector(self.kind, lanes * self.unit), register, place, self.bytes)
                continue
            for lane in range(lanes):
                repeated = self.repeated(register, lane, lanes)
                self.f.store(self.place, repeated, self.f.at(self.place, place, lane), self.bytes)

    def repeated(self, register: str, lane: int, lanes: int) -> str:
        """One lane of a register, in every lane of a vector."""
        kind = vector(self.kind, lanes)
        if lanes == 1:
            kind, lane = self.place, 0
            register = self.f.op(f"insertelement {kind} poison, {self.kind} {register}, i32 0")
        return self.f.shuffle(kind, register, "poison", [lane] * self.repeats)

    def copy_lanes(self, whole: str) -> None:
        """Contiguous lanes: copies, k by k, so that the source is read along its rows."""
        f = self.f
        together = self.together
        bulk = f.op(f"and i64 %kc, {-together}") if together > 1 else "0"
        if together > 1:
            self.copy_some(whole, "0", bulk, together)
        self.copy_some(whole, bulk, "%kc", 1)

    def copy_some(self, whole: str, first: str, stop: str, together: int) -> None:
        """Copy `together` k at a time."""
        f = self.f
        panel = f.mul("%kc", self.row)
        with f.loop(first, stop, together) as k:
            src = f.at(self.size(), "%src", f.mul(k.index, "%step"))
            dst = f.at(self.place, "%dst", f.mul(k.index, self.row))
            with f.loop(0, whole) as p:
                start = f.at(self.size(self.width), src, p.index)
                to = f.at(self.place, dst, f.mul(p.index, panel))
                for u in range(together):
                    row = f.at(self.size(), start, f.mul("%step", u)) if u else start
                    for c in range(0, self.width, self.chunk):
                        place = f.at(self.size(), row, c)
                        if self.together == 1 or (together > 1 and c == 0):
                            ahead = AHEAD if together > 1 else 2
                            f.prefetch(f.at(self.size(), place, f.mul("%step", ahead)))
                        value = self.fetch(place, self.chunk)
                        self.keep(value, f.at(self.place, to, u * self.row + c), self.chunk)

    def reach_back(self) -> None:
        """The last panel by whole vectors, each for all k; memory past the last lane is not written."""
        f, whole = self.f, self.f.div("%lanes", self.width)
        to = f.at(self.place, "%dst", f.mul(whole, f.mul("%kc", self.row)))
        first = f.mul(whole, self.width)
        left = f.sub("%lanes", first)
        with f.loop(0, left, self.chunk) as c:
            lane = f.lower(c.index, f.sub(left, self.chunk))
            start, place = f.at(self.size(), "%src", f.add(first, lane)), f.at(self.place, to, lane)
            with f.loop(0, "%kc") as k:
                value = self.fetch(f.at(self.size(), start, f.mul(k.index, "%step")), self.chunk)
                self.keep(value, f.at(self.place, place, f.mul(k.index, self.row)), self.chunk)

    def copy_edge(self, whole: str, panels: str) -> None:
        """The last panel, if partial: whole vectors, then the rest under a mask, or one by one to the end of a
        vector."""
        f = self.f
        left = f.sub("%lanes", f.mul(whole, self.width))
        vectors = f.mul(f.div(left, self.chunk), self.chunk)
        end = f.lower(self.whole_vectors(left), self.width)
        last = f.sub(left, 1)
        with f.loop(whole, panels) as p:
            to = f.at(self.place, "%dst", f.mul(p.index, f.mul("%kc", self.row)))
            start = f.at(self.size(self.width), "%src", p.index)
            with f.loop(0, "%kc") as k:
                src = f.at(self.size(), start, f.mul(k.index, "%step"))
                place = f.at(self.place, to, f.mul(k.index, self.row))
                with f.loop(0, vectors, self.chunk) as c:
                    value = self.fetch(f.at(self.size(), src, c.index), self.chunk)
                    self.keep(value, f.at(self.place, place, c.index), self.chunk)
                with f.loop(vectors, end, self.chunk if self.masked else 1) as c:
                    to_edge = f.at(self.place, place, c.index)
                    if self.masked:
                        some = mask_below(f, f.sub(left, c.index), self.chunk)
                        found = masked_source(f, self.a, self.source, f.at(self.size(), src, c.index), some)
                        self.keep(self.quieted((found,), self.chunk), to_edge, self.chunk)
                    else:
                        self.keep(self.fetch(f.at(self.size(), src, f.lower(c.index, last)), 1), to_edge, 1)

    def transpose(self, panels: str) -> None:
        """Contiguous k: squares are loaded along k and transposed in registers. Of complex numbers a remainder of k is
        a square, too, if it is half of one: it overlaps the square before, or is loaded under a mask."""
        f, side = self.f, self.square
        last = f.sub("%lanes", 1)
        bulk = f.mul(f.div("%kc", side), side)
        short = f.test("slt", "%kc", side)
        with f.loop(0, panels) as p:
            to = f.at(self.place, "%dst", f.mul(p.index, f.mul("%kc", self.row)))
            first = f.mul(p.index, self.width)
            one = self.width <= self.a.lanes
            end = str(self.width) if one else f.lower(self.whole_vectors(f.sub("%lanes", first)), self.width)
            with f.loop(0, end, side) as r:
                rows = []
                for i in range(min(side, self.width)):
                    lane = f.lower(f.add(f.add(first, r.index), i), last)
                    rows.append(f.at(self.size(), "%src", f.mul(lane, "%lane")))
                ahead = f.mul("%lane", self.width)
                with f.loop(0, bulk, side) as k:
                    places = [f.at(self.size(), row, k.index) for row in rows]
                    # prefetch the next panel's rows: each piece is too short for the hardware prefetcher; NEON's L1 is
                    # too small for both (128 rows 256 KB apart: 0.93 ns an element with prefetch, 0.65 without)
                    for place in places if not self.a.target.by_lane else []:
                        f.prefetch(f.at(self.size(), place, ahead))
                    place = f.at(self.place, to, f.mul(k.index, self.row), r.index)
                    self.square_from(places, place)

                def overlapping(rows: list[str] = rows, r: str = r.index, to: str = to) -> None:
                    k = f.sub("%kc", side)
                    places = [f.at(self.size(), row, k) for row in rows]
                    self.square_from(places, f.at(self.place, to, f.mul(k, self.row), r))

                def masked(rows: list[str] = rows, r: str = r.index, to: str = to) -> None:
                    self.squares(rows, f.at(self.place, to, r), mask_below(f, "%kc", side))

                def one_by_one(rows: list[str] = rows, r: str = r.index, to: str = to) -> None:
                    with f.loop(bulk, "%kc") as k:
                        place = f.at(self.place, to, f.mul(k.index, self.row), r)
                        for i, row in enumerate(rows):
                            self.keep(self.fetch(f.at(self.size(), row, k.index), 1), f.at(self.place, place, i), 1)

                under_mask = self.a.target.cheap_masks and self.unconverted
                more = partial(f.either, short, masked if under_mask else one_by_one, overlapping)
                half = f.test("sge", f.sub("%kc", bulk), side // 2)
                f.either(half if self.a.parts * self.unit > 1 else "false", more, one_by_one)

    def square_from(self, places: list[str], place: str) -> None:
        if self.a.bits and self.source.itemsize == 1 and self.width == self.square == SQUARE:
            self.truths(places, place)
        else:
            self.squares(places, place)

    def whole_vectors(self, lanes: str) -> str:
        """As many lanes, in whole vectors: what tiles read of the last panel."""
        each = max(1, self.a.lanes // self.unit)
        return self.f.mul(self.f.div(self.f.add(lanes, each - 1), each), each)

    def repeat(self, panels: str) -> None:
        """Contiguous k, every element replicated to a vector: a vector along k of each row, lane by lane."""
        f, side, last = self.f, self.a.lanes, self.f.sub("%lanes", 1)
        bulk = f.mul(f.div("%kc", side), side)
        with f.loop(0, panels) as p:
            to = f.at(self.place, "%dst", f.mul(p.index, f.mul("%kc", self.row)))
            first, rows = f.mul(p.index, self.width), []
            for i in range(self.width):
                rows.append(f.at(self.size(), "%src", f.mul(f.lower(f.add(first, i), last), "%lane")))
            ahead = f.mul("%lane", self.width)
            with f.loop(0, bulk, side) as k:
                place = f.at(self.place, to, f.mul(k.index, self.row))
                for i, row in enumerate(rows):
                    start = f.at(self.size(), row, k.index)
                    f.prefetch(f.at(self.size(), start, ahead))
                    for number, register in enumerate(self.fetch(start, side)):
                        for u in range(side):
                            cell = f.at(self.place, place, u * self.row + number * self.width + i)
                            repeated = self.repeated(register, u, side)
                            f.store(self.place, repeated, cell, self.bytes)
            with f.loop(bulk, "%kc") as k:
                place = f.at(self.place, to, f.mul(k.index, self.row))
                for i, row in enumerate(rows):
                    self.keep(self.fetch(f.at(self.size(), row, k.index), 1), f.at(self.place, place, i), 1)

    def squares(self, places: list[str], to: str, mask: str | None = None) -> None:
        """A square of elements, loaded along k and stored along its lanes; under a mask only the first kc of k."""
        f, side, height = self.f, self.square, len(places)
        if mask is None:
            loaded = [self.fetch(place, side) for place in places]
        else:
            loaded = [self.quieted(load_cells(f, self.a, place, side, mask), side) for place in places]
        columns: list[list[str]] = []
        for number in range(self.a.parts):
            rows = [value[number] for value in loaded] + ["poison"] * (side - height)
            columns.append(transposed(f, self.kind, rows, self.unit))
            if height < side:
                kind = vector(self.kind, side)
                columns[-1] = [f.shuffle(kind, column, "poison", range(height)) for column in columns[-1]]

        def kept(i: int) -> None:
            for number, column in enumerate(columns):
                self.keep((column[i],), f.at(self.place, to, i * self.row + number * self.width), height)

        for i in range(side):
            if mask is None:
                kept(i)
            else:
                with f.when(f.test("sgt", "%kc", i)):
                    kept(i)

    def truths(self, places: list[str], to: str) -> None:
        """Eight rows of eight booleans as one register of bytes: tested, transposed and expanded together."""
        f = self.f
        joined, width = [f.load("<8 x i8>", place, 1) for place in places], 8
        while len(joined) > 1:
            pairs = zip(joined[::2], joined[1::2], strict=True)
            joined = [f.shuffle(f"<{width} x i8>", low, high, range(2 * width)) for low, high in pairs]
            width *= 2
        mask = f.op(f"icmp ne <64 x i8> {joined[0]}, zeroinitializer")
        ones = f.op(f"sext <64 x i1> {mask} to <64 x i8>")
        for two in range(0, 8, 2):  # two k at a time: sixteen lanes of all ones or zeros
            part = f.shuffle("<64 x i8>", ones, "poison", [8 * row + k for k in (two, two + 1) for row in range(8)])
            wide = f.op(f"sext <16 x i8> {part} to <16 x i32>")
            f.store("<16 x i32>", wide, f.at("i32", to, 8 * two), 4)

    def one_by_one(self, start: str, panels: str) -> None:
        """Any strides: element by element; lanes past the edge repeat the last one."""
        f = self.f
        last = f.sub("%lanes", 1)
        with f.loop(start, panels) as p:
            to = f.at(self.place, "%dst", f.mul(p.index, f.mul("%kc", self.row)))
            first = f.mul(p.index, self.width)
            with f.loop(0, "%kc") as k:
                src = f.at(self.size(), "%src", f.mul(k.index, "%step"))
                place = f.at(self.place, to, f.mul(k.index, self.row))
                with f.loop(0, self.width) as lane:
                    number = f.lower(f.add(first, lane.index), last)
                    value = self.fetch(f.at(self.size(), src, f.mul(number, "%lane")), 1)
                    self.keep(value, f.at(self.place, place, lane.index), 1)


def transposed(f: IRFunction, element: str, rows: list[str], unit: int = 1) -> list[str]:
    """A square of registers of `unit` elements each, transposed by halves: log₂ rounds of two-register shuffles."""
    side = len(rows)
    kind = vector(element, side * unit)
    half = side // 2
    while half:
        result = list(rows)
        for i in range(side):
            if i & half:
                continue
            up, down = rows[i], rows[i + half]
            low = [j if not j & half else side + (j ^ half) for j in range(side)]
            high = [j ^ half if not j & half else side + j for j in range(side)]
            for at, picks in ((i, low), (i + half, high)):
                result[at] = f.shuffle(kind, up, down, [unit * pick + u for pick in picks for u in range(unit)])
        rows, half = result, half // 2
    return rows
