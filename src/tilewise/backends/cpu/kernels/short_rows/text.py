"""`short_rows`: a few rows of integers of one or two bytes, so N is read once, in place.

k_pack rows of N are interleaved in registers by instructions that stay within 128 bits, so the sums of a block of
columns are in another order until the last strip of k, and are reordered then. The last block of a row may overlap the
one before; the shared columns are stored once. Where there are more rows than a tile has, the first tile stores the
interleaved rows for those below it.
"""

from __future__ import annotations

from tilewise.algebra.to_llvm import vector
from tilewise.backends.cpu.kernels.interleaved.pack import interleave_function
from tilewise.backends.cpu.kernels.packed.text import write_function, write_rows
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.dot import dot
from tilewise.backends.cpu.kernels.shared.job import TASK_PARAMS, JobReader
from tilewise.backends.cpu.kernels.shared.pack import PACK
from tilewise.backends.cpu.kernels.shared.task import task_of
from tilewise.backends.cpu.kernels.short_dots.text import as_words, cells, sign_flipped
from tilewise.backends.cpu.kernels.short_rows.model import tile_rows
from tilewise.system.llvm_text import FunctionTable, IRFunction, module

QUARTER = 4  # words in 128 bits
PARAMS = "i64 kc, ptr M, ptr N, i64 row_n, ptr sums, i64 row_s, i1 first, ptr interleaved"

STRIP, STRAIGHTEN = f"i64 rows, i64 cols, {PARAMS}", "ptr sums, i64 blocks"


def short_rows_module(a: Arithmetic) -> str:
    most = tile_rows(a)
    tiles = [_InterleavedTile(a, rows, role).function() for role in ("alone", "below") for rows in range(1, most + 1)]
    tiles.append(_InterleavedTile(a, most, "above").function())
    table = FunctionTable("tiles", [tile.name for tile in tiles])
    pack_m = interleave_function(a, "pack_m", most, a.source_m, sums=a.compensates)
    return module([pack_m, *tiles, table, write_function(a), _reorder(a), _strip(a), _run(a)])


class _InterleavedTile:
    """Some rows times a block of columns, `kc` of k. `role`: alone, above others, or below one that stored the
    interleaved rows."""

    def __init__(self, a: Arithmetic, rows: int, role: str) -> None:
        self.a, self.rows, self.role, self.block = a, rows, role, a.k_pack * a.lanes
        self.f = IRFunction(f"{role}{rows}", PARAMS)

    def function(self) -> IRFunction:
        a, f = self.a, self.f
        self.words = f.at("i32", "%M", tile_rows(a) if a.compensates else 0)  # after the compensation
        whole, places = f.div("%kc", a.k_pack), self.places()
        with f.loop(0, whole, 1, [("ptr", "%N"), *((a.vector, x) for x in self.start(places))]) as g:
            rows_n = [f.at(a.element_n, g.values[0], f.mul("%row_n", d)) for d in range(a.k_pack)]
            after = f.at(a.element_n, g.values[0], f.mul("%row_n", a.k_pack))
            g.next = [after, *self.step(g.index, rows_n, g.values[1:])]
        last = [("ptr", g.values[0]), *((a.vector, x) for x in g.values[1:])]
        with f.loop(f.mul(whole, a.k_pack), "%kc", a.k_pack, last) as t:  # M is padded with zeros
            left = f.sub(f.sub("%kc", t.index), 1)
            rows_n = [f.at(a.element_n, t.values[0], f.mul("%row_n", f.lower(d, left))) for d in range(a.k_pack)]
            t.next = [t.values[0], *self.step(whole, rows_n, t.values[1:])]
        for total, place in zip(t.values[1:], places, strict=True):
            f.store(a.vector, total, place, 4)
        return f

    def places(self) -> list[str]:
        f, a = self.f, self.a
        rows = [f.at("i32", "%sums", f.mul("%row_s", row)) for row in range(self.rows)]
        return [f.at("i32", row, v * a.lanes) for row in rows for v in range(a.k_pack)]

    def start(self, places: list[str]) -> list[str]:
        a, f = self.a, self.f
        result = []
        for number, place in enumerate(places):
            old = f.load(a.vector, place, 4)
            value = f.select("%first", a.vector, "zeroinitializer", old)
            if a.compensates:
                less = f.load("i32", f.at("i32", "%M", number // a.k_pack), 4)
                value = f.op(f"add {a.vector} {value}, {f.splat(a.kind, less, a.lanes)}")
            result.append(value)
        return result

    def step(self, group: str, rows_n: list[str], sums: list[str]) -> list[str]:
        """One word of k."""
        a, f = self.a, self.f
        interleaved = self.interleaved(group, rows_n)
        result = []
        for row in range(self.rows):
            word = f.load("i32", f.at("i32", self.words, f.mul(group, tile_rows(a)), row), 4)
            m = f.splat(a.kind, word, a.lanes)
            for v, n in enumerate(interleaved):
                pair = (n, m) if a.compensates else (m, n)  # here N has the flipped sign bits
                result.append(dot(f, a, sums[row * a.k_pack + v], *pair))
        return result

    def interleaved(self, group: str, rows_n: list[str]) -> list[str]:
        a, f = self.a, self.f
        kept = [f.at("i32", "%interleaved", f.mul(group, self.block), v * a.lanes) for v in range(a.k_pack)]
        if self.role == "below":
            return [f.load(a.vector, place, 4) for place in kept]
        found = [sign_flipped(f, a, cells(f, a, a.source_n, line, self.block), self.block) for line in rows_n]
        words = [as_words(f, a, x) for x in interleave(f, a, found)]
        if self.role == "above":
            for x, place in zip(words, kept, strict=True):
                f.store(a.vector, x, place, 4)
        return words


def interleave(f: IRFunction, a: Arithmetic, rows: list[str]) -> list[str]:
    """Rows of elements as vectors of words, each with the elements of one column. Of every 4 · k_pack columns, vector v
    has the v-th four."""
    bits, count = 32 // a.k_pack, a.k_pack * a.lanes
    if a.k_pack == 2:
        return _unpacked(f, rows[0], rows[1], bits, count)
    low, high = (_unpacked(f, rows[i], rows[i + 1], bits, count) for i in (0, 2))
    pairs = [[f.op(f"bitcast <{count} x i8> {x} to <{count // 2} x i16>") for x in both] for both in (low, high)]
    words = [x for one, other in zip(*pairs, strict=True) for x in _unpacked(f, one, other, 16, count // 2)]
    return [f.op(f"bitcast <{count // 2} x i16> {x} to <{count} x i8>") for x in words]


def _unpacked(f: IRFunction, x: str, y: str, bits: int, count: int) -> list[str]:
    """punpckl and punpckh (zip1, zip2): the lower and the upper halves of each 128 bits, alternating."""
    kind, each = vector(f"i{bits}", count), 128 // bits
    result = []
    for half in (0, each // 2):
        lanes = [start + half + i for start in range(0, count, each) for i in range(each // 2)]
        result.append(f.shuffle(kind, x, y, [number for lane in lanes for number in (lane, lane + count)]))
    return result


def _reorder(a: Arithmetic) -> IRFunction:
    """Reorder the sums of blocks by their columns."""
    f = IRFunction("straighten", STRAIGHTEN)
    kind = vector("i32", QUARTER)
    with f.loop(0, "%blocks") as b:
        base = f.at("i32", "%sums", f.mul(b.index, a.k_pack * a.lanes))
        quarters = [(v, lane) for lane in range(0, a.lanes, QUARTER) for v in range(a.k_pack)]
        found = [f.load(kind, f.at("i32", base, v * a.lanes + lane), 4) for v, lane in quarters]
        for number, x in enumerate(found):
            f.store(kind, x, f.at("i32", base, number * QUARTER), 4)
    return f


def _strip(a: Arithmetic) -> IRFunction:
    """All rows times a strip of N, with M packed: whole blocks, and one that ends with the last column."""
    f = IRFunction("strip", STRIP)
    high, block = tile_rows(a), a.k_pack * a.lanes
    panel = f.mul(a.emit_rows_n(f, a.emit_groups(f, "%kc")), high)
    several = f.test("sgt", "%rows", high)
    with f.loop(0, "%cols", block) as j:
        N = f.at(a.element_n, "%N", f.lower(j.index, f.sub("%cols", block)))
        sums = f.at("i32", "%sums", j.index)
        with f.loop(0, "%rows", high) as i:
            rows = f.lower(f.sub("%rows", i.index), high)
            below = f.select(f.test("eq", i.index, 0), "i64", 2 * high, f.add(rows, high - 1))
            number = f.select(several, "i64", below, f.sub(rows, 1))
            tile = f.load("ptr", f.at("ptr", "@tiles", number))
            M = f.at("i32", "%M", f.mul(f.div(i.index, high), panel))
            to = f.at("i32", sums, f.mul(i.index, "%row_s"))
            f.invoke(tile, PARAMS, M=M, N=N, sums=to)
    return f


def _run(a: Arithmetic) -> IRFunction:
    """One task: a range of columns of one member's P, all of k, all rows."""
    f = IRFunction("run", TASK_PARAMS, public=True)
    job, t = JobReader(f), task_of(f, a, "n")
    task_n, KC, row_m, col_m, row_n, row_p, onto = job.fields(
        "task_n", "KC", "row_m", "col_m", "row_n", "row_p", "onto"
    )
    m, k, cols, M, N, P, space, block = t.rows, t.depth, t.cols, t.M, t.N, t.P, t.workspace, a.k_pack * a.lanes
    row_s = f.add(task_n, block)
    interleaved = f.at("i32", space, f.mul(m, row_s))
    packed = f.at("i32", interleaved, f.mul(a.emit_groups(f, f.lower(KC, k)), block))
    with f.loop(0, k, KC) as p:
        kc, first = f.lower(f.sub(k, p.index), KC), f.test("eq", p.index, 0)
        strip_m = f.at(a.element_m, M, f.mul(p.index, col_m))
        strip_n = f.at(a.element_n, N, f.mul(p.index, row_n))
        f.invoke("pack_m", PACK, src=strip_m, lane=row_m, step=col_m, lanes=m, kc=kc, dst=packed)
        f.invoke("strip", STRIP, rows=m, cols=cols, kc=kc, M=packed, N=strip_n, row_n=row_n, sums=space,
            row_s=row_s, first=first, interleaved=interleaved)  # fmt: skip
    blocks = f.div(f.add(cols, block - 1), block)
    with f.loop(0, m) as i:
        f.invoke("straighten", STRAIGHTEN, sums=f.at("i32", space, f.mul(i.index, row_s)), blocks=blocks)
    whole = f.mul(f.div(cols, block), block)
    left = f.sub(cols, whole)
    over = f.at("i32", space, f.sub(f.add(whole, block), left))
    for sums, to, count in ((space, P, whole), (over, f.at(a.element_p, P, whole), left)):
        write_rows(f, sums, row_s, to, row_p, m, count, onto)
    return f
