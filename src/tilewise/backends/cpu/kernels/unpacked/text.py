"""`unpacked`: operands fit the caches, so packing would cost more than it saves.

Tiles read M and N in place, and are as high and wide as rows and columns divide evenly. A strip of KC rows of N is
processed along its columns; tiles below each other find the same part of it in L1. N is touched along its rows first if
it was not among the last few and so may be in no cache. A long k of a small P is split, and `reduce` adds the sums.
"""

from __future__ import annotations

from tilewise.backends.cpu.kernels.packed.text import reduce_function, write_function
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.exact_tile import ExactForm
from tilewise.backends.cpu.kernels.shared.grid import GRID, grid_functions, grid_name
from tilewise.backends.cpu.kernels.shared.job import ENTER, TASK_PARAMS, JobReader
from tilewise.backends.cpu.kernels.shared.task import task_of
from tilewise.backends.cpu.kernels.unpacked.model import N_NEAR, P_NEAR
from tilewise.system.llvm_text import IRFunction, Numbers, module

LINE = 64  # bytes
REMEMBERED = 8  # addresses of N that are remembered: about as many as L2 holds
GOLDEN = 0x9E3779B97F4A7C15 - 2**64  # 2⁶⁴ / golden ratio: Fibonacci hashing by the high bits of the product

PIECE = "ptr job, ptr M, ptr N, ptr P, i64 rows, i64 depth, i64 cols, i64 row_p, i64 onto"
TOUCH = "ptr N, i64 row_n, i64 cols, i64 kc"


def unpacked_module(a: Arithmetic) -> str:
    grids = (part for form in forms(a) for part in grid_functions(a, form))
    places = Numbers("places", REMEMBERED)
    sums = [write_function(a), reduce_function(a)]
    parts = [*grids, places, _is_new(), _touch(a), _piece(a), _run(a), _enter(), *sums]
    return module(parts, a.float_state)


def forms(a: Arithmetic) -> list[ExactForm]:
    """M with any strides; and along k, where a machine takes one lane of a vector (NEON)."""
    return [ExactForm(1, 1), ExactForm(1, 1, along_k=True)] if a.target.by_lane and a.fused else [ExactForm(1, 1)]


def _is_new() -> IRFunction:
    """Whether N was not among the last few and so may be in no cache. It is remembered from here on."""
    f = IRFunction("is_new", "ptr N", result="i1")
    key = f.op("ptrtoint ptr %N to i64")
    spread = f.op(f"mul i64 {key}, {GOLDEN}")
    place = f.at("i64", "@places", f.op(f"lshr i64 {spread}, {65 - REMEMBERED.bit_length()}"))
    last = f.op(f"load atomic i64, ptr {place} monotonic, align 8")
    f.do(f"store atomic i64 {key}, ptr {place} monotonic, align 8")
    f.do(f"ret i1 {f.test('ne', last, key)}")
    return f


def _touch(a: Arithmetic) -> IRFunction:
    """Load a byte of every cache line of a strip of N, along its rows: one sequential stream, which the hardware
    prefetches, where tiles read a piece of each row. Loads, because Neoverse-N1 drops prefetches that miss to memory.
    Contiguous rows are one."""
    f = IRFunction("touch", TOUCH)
    joined = f.test("eq", "%row_n", "%cols")
    rows = f.select(joined, "i64", 1, "%kc")
    length = f.mul(f.select(joined, "i64", f.mul("%cols", "%kc"), "%cols"), a.bytes)
    bulk = f.op(f"and i64 {length}, {-4 * LINE}")
    with f.loop(0, rows) as row:
        line = f.at(a.kind, "%N", f.mul(row.index, "%row_n"))
        for start, stop, count in (("0", bulk, 4), (bulk, length, 1)):
            with f.loop(start, stop, count * LINE) as at:
                for u in range(count):
                    f.op(f"load volatile i8, ptr {f.at('i8', line, f.add(at.index, u * LINE))}")
    return f


def _run(a: Arithmetic) -> IRFunction:
    """One task: a piece of one member's P, all of k or a split of it; its sums are stored separately where `reduce`
    adds or stores them."""
    f = IRFunction("run", TASK_PARAMS, public=True)
    job, t = JobReader(f), task_of(f, a, "kmn")
    n, row_p, onto = job.fields("n", "row_p", "onto")
    shared = f.test("ne", job.field("reduce"), 0)
    row_p, onto = (f.select(shared, "i64", one, other) for one, other in ((n, row_p), (0, onto)))
    P = f.select(shared, "ptr", t.sums, t.P)
    f.invoke("piece", PIECE, M=t.M, N=t.N, P=P, rows=t.rows, depth=t.depth, cols=t.cols, row_p=row_p, onto=onto)
    return f


def _enter() -> IRFunction:
    """The entry for a product that is one task; its operands come as array objects."""
    f = IRFunction("enter", ENTER, public=True)
    M, N, P = f.data_of("M", "N", "P")
    m, k, n, row_p, onto = JobReader(f).fields("m", "k", "n", "row_p", "onto")
    f.invoke("piece", PIECE, M=M, N=N, P=P, rows=m, depth=k, cols=n, row_p=row_p, onto=onto)
    return f


def _piece(a: Arithmetic) -> IRFunction:
    """Some rows and columns of P, `depth` of k."""
    f = IRFunction("piece", PIECE)
    m, k, n, KC, row_m, col_m, row_n = JobReader(f).fields("m", "k", "n", "KC", "row_m", "col_m", "row_n")
    fresh, row_bytes = f.test("eq", "%onto", 0), f.mul(n, a.bytes)
    far_n, near_p = f.test("sgt", f.mul(k, row_bytes), N_NEAR), f.test("sle", f.mul(m, row_bytes), P_NEAR)
    down = f.both(far_n, near_p)
    new = f.op("call i1 @is_new(ptr %N)")
    with f.loop(0, "%depth", KC) as p:
        kc = f.lower(f.sub("%depth", p.index), KC)
        first = f.both(fresh, f.test("eq", p.index, 0))
        strip_m = f.at(a.kind, "%M", f.mul(p.index, col_m))
        strip_n = f.at(a.kind, "%N", f.mul(p.index, row_n))
        with f.when(new):
            f.invoke("touch", TOUCH, N=strip_n, row_n=row_n, cols="%cols", kc=kc)

        def tiles(form: ExactForm) -> None:
            f.invoke(grid_name(form), GRID, kc=kc, M=strip_m, row_m=row_m, step_m=col_m, N=strip_n, step_n=row_n,
                first=first, down=down)  # fmt: skip

        any_strides, *along_k = forms(a)
        if along_k:
            f.either(f.test("eq", col_m, 1), lambda: tiles(along_k[0]), lambda: tiles(any_strides))
        else:
            tiles(any_strides)
    return f
