"""A microkernel for any tile height and width: an edge tile computes exactly its rows and columns.

M and N are read in place or packed (rows of a packed N are a panel's width apart). Tiles store to P directly; the last
vector of a row is masked or, without cheap masks, overlaps the one before, whose shared columns are computed twice. A
tile with few accumulators has several sets of them, which take k in turn, to hide the latency of an add.

Complex numbers (`pairs`): N and P are read as real matrices of twice the columns. A row of a tile has two sums, by the
real and by the imaginary parts of M, which are combined as they are stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from tilewise.algebra.to_llvm import vector
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.convert import load, narrow
from tilewise.backends.cpu.kernels.shared.masks import load_lanes, mask_below, masked_source, store_lanes, store_rounded
from tilewise.backends.cpu.kernels.shared.pairs import folded
from tilewise.backends.cpu.kernels.shared.panel import packed_element, packed_vectors, prefetch_row
from tilewise.system.llvm_text import IRFunction

# `count` tiles; next_m, next_n, next_p: the elements from one tile to the next in M, N and P
PARAMS = (
    "i64 kc, ptr M, i64 row_m, i64 step_m, ptr N, i64 step_n, ptr P, i64 row_p, i64 cols, i1 first, "
    "i64 count, i64 next_m, i64 next_n, i64 next_p"
)
# for a form that `rounds`: P, where `P` is a separate block of sums, and whether these cells are rounded into it now
ROUNDING = "ptr out, i64 row_out, i1 whole"
SHALLOW = 32  # k up to which writing P is the cost of a product
AT_ONCE = 4  # k unrolled over a widened vector
AHEAD = 4  # prefetch distance along a row of N, in vectors
# prefetch distance down an unpacked N, in rows, by bytes of a vector: N may come from memory, a line of each row at a
# time. 32 rows took AVX-512 an eighth longer where N is cached
ROWS_AHEAD = {16: 16, 32: 32, 64: 16}


@dataclass(frozen=True)
class ExactForm:
    """`narrow`: fewer columns than a vector has lanes. `panel_m`: rows of a packed panel of M; 0: read in place.
    `panel`: lanes of a packed panel of N; 0: read in place. `along_k`: M is contiguous along k. `prefetches`: N comes
    from memory and is prefetched. `sets`: sets of accumulators, which take k in turn. `rounds`: sums over all of k are
    rounded into P. `widens`: the tile widens M, a vector of each row at a time; kc is at least one vector."""

    rows: int
    vectors: int
    narrow: bool = False
    panel_m: int = 0
    panel: int = 0
    along_k: bool = False
    prefetches: bool = False
    sets: int = 1
    rounds: bool = False
    widens: bool = False

    @property
    def name(self) -> str:
        origin = "packed" if self.panel_m else "direct"
        origin += "_packed" if self.panel else "_direct"
        return f"tile_{origin}_{self.rows}x{self.vectors}" + "_k" * self.along_k + "_narrow" * self.narrow


def by_lane(a: Arithmetic, form: ExactForm) -> bool:
    """Whether M's rows are loaded by whole vectors along k, for NEON's multiply by lane."""
    return form.along_k and a.target.by_lane and a.fused


def more_params(form: ExactForm) -> str:
    """What tiles of a form take beyond PARAMS."""
    return f", {ROUNDING}" * form.rounds


def exact_tile_function(a: Arithmetic, form: ExactForm) -> IRFunction:
    return _ExactTile(a, form).function()


class _ExactTile:
    def __init__(self, a: Arithmetic, form: ExactForm) -> None:
        self.a, self.form = a, form
        self.f = IRFunction(form.name, PARAMS + more_params(form))
        self.quiets = a.quiets and a.target.has_fminnm
        self.render = a.renderer(self.f, a.lanes, quiet=self.quiets)
        self.cells = form.rows * form.vectors * a.sums_each
        self.masked = form.narrow or a.target.cheap_masks
        self.by_lane = by_lane(a, form)
        self.element_m = a.element_m if form.widens else a.kind
        self.element_n, self.source_n = (a.kind, a.partial) if form.panel else (a.element_n, a.source_n)
        near = form.panel or form.prefetches or form.narrow or (form.along_k and not a.target.by_lane)
        self.prefetches_below = not near
        self.sets = form.sets
        # large products consist of the largest tiles; steps that are not unrolled hide the loop overhead by themselves
        large = form.rows * a.sums_each >= a.MR - 1 and form.vectors == a.tile[1]
        several = form.panel and large and (a.fused or a.keeps_k_order)
        self.unroll = max(self.sets, a.lanes if self.by_lane else 4 if several else 1)

    def function(self) -> IRFunction:
        a, f, form = self.a, self.f, self.form
        before = (form.vectors - 1) * a.lanes
        self.wide = f.op(f"alloca [{form.rows} x {a.vector}], align {a.target.vector_bytes}") if form.widens else ""
        self.inside = mask_below(f, f.sub("%cols", before), a.lanes) if self.masked and a.target.masks else None
        self.last = str(before) if self.masked else f.sub("%cols", a.lanes)
        out = [("ptr", "%out")] if form.rounds else []
        with f.loop(0, "%count", 1, [("ptr", "%M"), ("ptr", "%N"), ("ptr", "%P"), *out]) as tile:
            self.M, self.N, self.P, *self.out = tile.values
            self.one()
            size_m = a.packed_m_kind if form.panel_m else self.element_m
            tile.next = [
                f.at(size_m, self.M, "%next_m"),
                f.at(self.element_n, self.N, "%next_n"),
                f.at(a.kind, self.P, "%next_p"),
                *(f.at(a.element_p, out, "%next_p") for out in self.out),
            ]
        return f

    def one(self) -> None:
        """The tile at M, N and P."""
        a, f, form = self.a, self.f, self.form
        rows = range(form.rows) if not form.panel_m else []
        # freeze keeps each address in a register: LLVM would derive one row from another by additions in the loop
        self.rows = [f.op(f"freeze ptr {f.at(self.element_m, self.M, f.mul('%row_m', row))}") for row in rows]
        if form.rounds:
            self.prefetch_P(self.out[0], "%row_out", a.result.itemsize)
        elif form.panel:
            self.prefetch_P(self.P)
        elif not form.panel_m:
            with f.when(f.test("sle", "%kc", SHALLOW)):
                self.prefetch_P(f.at(a.kind, self.P, "%next_p"))
        sums = self.widened_sums() if form.widens else self.sums()
        if form.rounds:
            f.either("%whole", lambda: self.round(sums), lambda: self.write(sums))
        else:
            self.write(sums)

    def sums(self) -> list[str]:
        a, f = self.a, self.f
        zeros = [(a.vector, a.zeros(a.lanes)[0])] * (self.cells * self.sets)
        bulk = f.op(f"and i64 %kc, {-self.unroll}")
        start = "0"
        if self.prefetches_below and a.target.cheap_masks:  # a prefetch past N, on no page, is a page walk each time
            before = f.higher(f.sub("%kc", ROWS_AHEAD[a.target.vector_bytes]), 0)
            start = f.op(f"and i64 {before}, {-self.unroll}")
            with f.loop(0, start, self.unroll, zeros) as loop:
                loop.next = self.steps(loop.index, list(loop.values))
            zeros = [(a.vector, value) for value in loop.values]
            self.prefetches_below = False
        with f.loop(start, bulk, self.unroll, zeros) as loop:
            loop.next = self.steps(loop.index, list(loop.values))
        sums = self.combine_sets(loop.values)
        if self.unroll > 1:
            with f.loop(bulk, "%kc", 1, [(a.vector, value) for value in sums]) as tail:
                tail.next = self.step(tail.index, list(tail.values), [])
            sums = tail.values
        return sums

    def widened_sums(self) -> list[str]:
        """A vector of k at a time: M's elements are widened into a buffer in L1 first. The last vector overlaps the one
        before."""
        a, f = self.a, self.f
        bulk = f.op(f"and i64 %kc, {-a.lanes}")
        # two sets hide the latency of tiles of one vector; chosen by the width, which is that of P and does not vary
        sets = 2 if self.form.vectors == 1 else 1
        carry = [(a.vector, a.zeros(a.lanes)[0])] * (self.cells * sets)
        with f.loop(0, bulk, a.lanes, carry) as loop:
            self.widen(loop.index)
            with f.loop(0, a.lanes, AT_ONCE, [(a.vector, value) for value in loop.values]) as inner:
                values = list(inner.values)
                for u in range(AT_ONCE):
                    self.inner = f.add(inner.index, u)
                    one_set = slice(u % sets * self.cells, (u % sets + 1) * self.cells)
                    values[one_set] = self.step(f.add(loop.index, self.inner), values[one_set], [])
                inner.next = values
            loop.next = list(inner.values)
        sums = self.combine_sets(loop.values)
        with f.loop(bulk, "%kc", a.lanes, [(a.vector, value) for value in sums]) as rest:
            last = f.sub("%kc", a.lanes)
            self.widen(last)
            with f.loop(f.sub(bulk, last), a.lanes, 1, [(a.vector, value) for value in rest.values]) as inner:
                self.inner = inner.index
                inner.next = self.step(f.add(last, inner.index), list(inner.values), [])
            rest.next = list(inner.values)
        return rest.values

    def widen(self, k: str) -> None:
        """Widen a vector of each row of M, from k on."""
        a, f = self.a, self.f
        for row, start in enumerate(self.rows):
            value = load(f, a.target, a.source_m, a.partial, f.at(a.element_m, start, k), a.lanes)[0]
            f.store(a.vector, value, f.at(a.vector, self.wide, row), a.target.vector_bytes)

    def prefetch_P(self, P: str, row_p: str = "%row_p", size: int = 0) -> None:
        """Prefetch this tile of P, or the next one, while sums are computed."""
        f, a = self.f, self.a
        kind, each = (a.element_p, size) if size else (a.kind, a.bytes)
        for row in range(self.form.rows):
            line = f.at(kind, P, f.mul(row_p, row))
            prefetch_row(f, a, kind, each, line, self.form.vectors, ends=bool(self.form.panel))

    def steps(self, k: str, values: list[str]) -> list[str]:
        """`unroll` steps of k, each with the next of the `sets` sets of sums."""
        f, a = self.f, self.a
        along: list[str] = []
        for u in range(self.unroll):
            at = k if u == 0 else f.add(k, u)
            if self.by_lane and u % a.lanes == 0:
                along = [f.load(a.vector, f.at(a.kind, row, at), a.bytes) for row in self.rows]
            one_set = slice(u % self.sets * self.cells, (u % self.sets + 1) * self.cells)
            values[one_set] = self.step(at, values[one_set], [a.in_every_lane(f, x, u % a.lanes) for x in along])
            if a.keeps_k_order and u + 1 < self.unroll:
                values[one_set] = a.pinned(f, values[one_set])
        return values

    def combine_sets(self, values: list[str]) -> list[str]:
        """The sum of all sets."""
        a, sets = self.a, [values[i : i + self.cells] for i in range(0, len(values), self.cells)]
        while len(sets) > 1:
            half = len(sets) // 2
            sets = [
                [self.render.value(a.add, (x,), (y,))[0] for x, y in zip(low, high, strict=True)]
                for low, high in zip(sets[:half], sets[half:], strict=True)
            ]
        return sets[0]

    def step(self, k: str, sums: list[str], lanes: list[str]) -> list[str]:
        """One k: load the vectors of N once, broadcast each element of M (or take it from `lanes`)."""
        a, f, form = self.a, self.f, self.form
        if form.panel_m and a.target.by_lane and a.fused:
            found = packed_vectors(f, a, self.M, form.panel_m, k, form.rows)
            lanes = [a.in_every_lane(f, found[row // a.lanes][0], row % a.lanes) for row in range(form.rows)]
        row_n, ns, result = f.at(self.element_n, self.N, f.mul(k, form.panel or "%step_n")), [], []
        # a 16-byte vector is a quarter of a cache line: prefetch lines further ahead
        far = a.target.by_lane and form.rows <= 2
        for v in range(form.vectors):
            place = f.at(self.element_n, row_n, self.last if v == form.vectors - 1 else v * a.lanes)
            ns.append(self.load_N(place, v))
            if form.prefetches and (v * a.target.vector_bytes % 64 == 0 or not far):
                ahead = f.at(self.element_n, place, max(4 * AHEAD if far else AHEAD, form.vectors) * a.lanes)
                f.prefetch(ahead, 3 if form.rows <= 2 else 2)  # more rows of N evict each other from L1
        if self.prefetches_below:
            below = f.at(self.element_n, self.N, f.mul(f.add(k, ROWS_AHEAD[a.target.vector_bytes]), "%step_n"))
            for v in range(0, form.vectors - 1, max(1, 64 // a.target.vector_bytes)):
                f.prefetch(f.at(self.element_n, below, v * a.lanes))
            f.prefetch(f.at(self.element_n, below, self.last))
        for row in range(form.rows):
            elements = [lanes[row]] if lanes else self.elements_of_M(k, row)
            for v, (number, element) in product(range(form.vectors), enumerate(elements)):
                total = sums[(row * form.vectors + v) * a.sums_each + number]
                result.append(self.render.accumulate(a.add, a.mul, (total,), (element,), (ns[v],))[0])
            if a.starts_from_p and row % 2 and self.cells == a.target.registers // 2:  # as in `tile`
                result[-2 * form.vectors :] = a.pinned(f, result[-2 * form.vectors :])
        return result

    def load_N(self, place: str, v: int) -> str:
        a, f = self.a, self.f
        if v < self.form.vectors - 1 or not self.masked:
            loaded = load(f, a.target, self.source_n, a.partial, place, a.lanes)[0]
        elif self.inside is not None:
            loaded = masked_source(f, a, self.source_n, place, self.inside)
        else:  # lanes past the edge repeat the last column
            loaded, right = "poison", f.sub("%cols", 1)
            for lane in range(a.lanes):
                at = f.at(self.element_n, place, f.lower(lane, right))
                one = load(f, a.target, self.source_n, a.partial, at, 1)[0]
                loaded = f.op(f"insertelement {a.vector} {loaded}, {a.kind} {one}, i32 {lane}")
        return a.quiet(f, loaded, a.lanes) if self.quiets else loaded

    def elements_of_M(self, k: str, row: int) -> list[str]:
        """M[row, k] broadcast; of a pair its real and its imaginary part."""
        a, f, form = self.a, self.f, self.form
        if a.pairs:
            place = f.at(a.kind, self.rows[row], f.mul(k, 2 if form.along_k else "%step_m"))
            return [f.splat(a.kind, f.load(a.kind, f.at(a.kind, place, part), a.bytes), a.lanes) for part in range(2)]
        if form.widens:
            place = f.at(a.kind, f.at(a.vector, self.wide, row), self.inner)
            return [f.splat(a.kind, f.load(a.kind, place, a.bytes), a.lanes)]
        if not form.panel_m:
            place = f.at(a.kind, self.rows[row], k if form.along_k else f.mul(k, "%step_m"))
            element = f.load(a.kind, place, a.bytes)
            return [f.splat(a.kind, a.quiet(f, element, 1) if self.quiets else element, a.lanes)]
        return [packed_element(f, a, self.M, form.panel_m, k, row)[0]]

    def write(self, sums: list[str]) -> None:
        """Store to P, or add to it: all old cells are loaded before any is stored, because vectors may overlap."""
        a, f, form = self.a, self.f, self.form
        if a.pairs:
            sums = [folded(f, a, sums[at : at + 2], a.lanes) for at in range(0, len(sums), 2)]
        places = []
        for cell in range(form.rows * form.vectors):
            row, v = divmod(cell, form.vectors)
            line = f.at(a.kind, self.P, f.mul("%row_p", row))
            places.append(f.at(a.kind, line, self.last if v == form.vectors - 1 else v * a.lanes))
        if self.masked and self.inside is None:
            self.write_one_by_one(sums, places)
            return
        masks = [self.inside if cell % form.vectors == form.vectors - 1 else None for cell in range(len(places))]

        def keep(values: list[str]) -> None:
            for value, place, mask in zip(values, places, masks, strict=True):
                store_lanes(f, a, a.canonical(f, (value,), a.lanes)[0], place, a.lanes, mask)

        def onto() -> None:
            olds = [load_lanes(f, a, place, a.lanes, mask) for place, mask in zip(places, masks, strict=True)]
            keep([self.render.value(a.add, (x,), (y,))[0] for x, y in zip(olds, sums, strict=True)])

        f.either("%first", lambda: keep(sums), onto)

    def round(self, sums: list[str]) -> None:
        """Round into P."""
        a, f, form = self.a, self.f, self.form
        kind = vector(a.element_p, a.lanes)
        for cell, total in enumerate(sums):
            row, v = divmod(cell, form.vectors)
            line = f.at(a.element_p, self.out[0], f.mul("%row_out", row))
            place = f.at(a.element_p, line, self.last if v == form.vectors - 1 else v * a.lanes)
            (total,) = a.canonical(f, (total,), a.lanes)
            rounded = narrow(f, a.target, a.partial, a.result, total, a.lanes, clear=a.fused or a.ordered)
            if not self.masked or v < form.vectors - 1:
                f.store(kind, rounded, place, a.result.itemsize)
            elif a.target.cheap_masks:
                store_rounded(f, a, rounded, place, self.inside or "")
            else:
                for lane in range(a.lanes - 1):
                    with f.when(f.test("sgt", "%cols", lane)):
                        one = f.op(f"extractelement {kind} {rounded}, i32 {lane}")
                        f.store(a.element_p, one, f.at(a.element_p, place, lane))

    def write_one_by_one(self, sums: list[str], places: list[str]) -> None:
        """A narrow tile where there are no masks."""
        a, f = self.a, self.f
        single = a.renderer(f, 1)
        for total, place in zip(sums, places, strict=True):
            for lane in range(a.lanes - 1):
                with f.when(f.test("sgt", "%cols", lane)):
                    value, cell = f.op(f"extractelement {a.vector} {total}, i32 {lane}"), f.at(a.kind, place, lane)

                    def keep(value: str = value, cell: str = cell) -> None:
                        f.store(a.kind, a.canonical(f, (value,), 1)[0], cell)

                    def onto(value: str = value, cell: str = cell) -> None:
                        old = f.load(a.kind, cell, a.bytes)
                        keep(single.value(a.add, (old,), (value,))[0], cell)

                    f.either("%first", keep, onto)
