"""One row of M, on a machine with short vectors: four rows of N at a time, walked along their columns.

A tile over many k, a few vectors wide, would read N in pieces too short for the machine to foresee what comes next, and
sums of one row are too few to hide their own latency. Four rows at once are four long streams, and P, which lies in
the first cache, is read and written once for all four. Two are better where N comes from memory, which likes long
streams and few. Columns do not meet, so no cell's bits depend on its task.
"""

from __future__ import annotations

from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.system.llvm_text import IRFunction

PARAMS = "i64 k, ptr M, i64 step_m, ptr N, i64 row_n, ptr P, i64 cols, i1 first, i1 far"
STREAMS = (4, 2, 1)  # rows of N at a time: the first as long as they last, then what is left of k
FAR = 2**26  # bytes of N from which it comes from memory, two rows at a time
LINE = 64  # bytes
AHEAD = 512  # bytes of each row of N that are prefetched


def has_one_row(a: Arithmetic) -> bool:
    return a.target.by_lane and a.fused and a.same_storage


def one_row_function(a: Arithmetic) -> IRFunction:
    """`cols` cells of P from k elements of M and as many rows of N, afresh if `first`, else onto what is there. `far`:
    N comes from memory."""
    f = IRFunction("one_row", PARAMS)
    wide = LINE // a.target.vector_bytes  # vectors of a line
    with f.when("%first"), f.loop(0, "%cols") as j:
        f.store(a.kind, a.zeros(1)[0], f.at(a.kind, "%P", j.index), a.bytes)
    start = "0"
    for rows in STREAMS:
        stop = f.op(f"and i64 %k, {-rows}")
        if rows == STREAMS[0]:
            stop = f.select("%far", "i64", 0, stop)
        with f.loop(start, stop, rows) as p:
            elements = []
            for row in range(rows):
                place = f.at(a.kind, "%M", f.mul(f.add(p.index, row), "%step_m"))
                elements.append(f.load(a.kind, place, a.bytes))
            rows_n = [f.at(a.kind, "%N", f.mul(f.add(p.index, row), "%row_n")) for row in range(rows)]
            _along(f, a, elements, rows_n, wide)
        start = stop
    return f


def _along(f: IRFunction, a: Arithmetic, elements: list[str], rows_n: list[str], wide: int) -> None:
    """These rows of N, from the first column to the last: by lines, by vectors, and one by one."""
    bulk = f.op(f"and i64 %cols, {-wide * a.lanes}")
    whole = f.op(f"and i64 %cols, {-a.lanes}")
    everyone = [f.splat(a.kind, element, a.lanes) for element in elements]
    for begin, end, vectors, lanes in (("0", bulk, wide, a.lanes), (bulk, whole, 1, a.lanes), (whole, "%cols", 1, 1)):
        with f.loop(begin, end, vectors * lanes) as j:
            places = [f.at(a.kind, line, j.index) for line in rows_n]
            if vectors > 1:
                for place in places:
                    ahead = f.at(a.kind, place, AHEAD // a.bytes)
                    f.prefetch(ahead)
            for v in range(vectors):
                _cells(f, a, everyone if lanes > 1 else elements, [f.at(a.kind, x, v * lanes) for x in places],
                       f.at(a.kind, "%P", j.index, v * lanes), lanes)  # fmt: skip


def _cells(f: IRFunction, a: Arithmetic, elements: list[str], places: list[str], P: str, lanes: int) -> None:
    """The cells at P, a vector of them or one: sums of these k are made apart, then added onto what is there."""
    kind, render = a.vector if lanes > 1 else a.kind, a.renderer(f, lanes)
    total = a.zeros(lanes)
    for element, place in zip(elements, places, strict=True):
        loaded = f.load(kind, place, a.bytes)
        total = render.accumulate(a.add, a.mul, total, (element,), (loaded,))
    old = f.load(kind, P, a.bytes)
    f.store(kind, render.value(a.add, (old,), total)[0], P, a.bytes)
