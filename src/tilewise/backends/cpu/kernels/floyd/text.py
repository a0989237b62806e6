"""Floyd–Warshall in place on a square that fits L1: the diagonal step of a blocked closure."""

from __future__ import annotations

from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.masks import load_lanes, store_lanes, vector_loop
from tilewise.system.llvm_text import IRFunction, module

ROWS = 4  # rows that share a loaded vector of row k


def floyd_module(a: Arithmetic) -> str:
    """for k: for i: D[i] = add(D[i], mul(D[i, k], D[k])), a few rows by a vector of columns at a time. Row k may be one
    of them: mul reads its old D[k, k], unless a cycle improves, and then the square is discarded."""
    f = IRFunction("floyd", "ptr D, i64 n, i64 row", public=True)
    bulk = f.mul(f.div("%n", ROWS), ROWS)
    pairs = a.target.by_lane
    if pairs:
        _by_pairs(f, a, bulk)
    with f.loop(bulk if pairs else 0, "%n") as k:
        with f.loop(0, bulk, ROWS) as i:
            _rows(f, a, i.index, ROWS, [k.index])
        with f.loop(bulk, "%n") as i:
            _rows(f, a, i.index, 1, [k.index])
    return module([f, *([_pair(a, ROWS), _pair(a, 1)] if pairs else [])])


def _by_pairs(f: IRFunction, a: Arithmetic, bulk: str) -> None:
    """k and k + 1 together, for every k below `bulk`: halves the loads and stores of D where a store costs as much as a
    step. Row k + 1 is updated with k first; the group of rows that contains both comes last, so that the others read
    the old row k."""

    def rows(i: str, count: int, k: str) -> None:
        f.do(f"call void @pair{count}(ptr %D, i64 %n, i64 %row, i64 {i}, i64 {k})")

    with f.loop(0, bulk, 2) as k:
        among = f.op(f"and i64 {k.index}, {-ROWS}")
        _rows(f, a, f.add(k.index, 1), 1, [k.index])
        with f.loop(0, among, ROWS) as i:
            rows(i.index, ROWS, k.index)
        with f.loop(f.add(among, ROWS), bulk, ROWS) as i:
            rows(i.index, ROWS, k.index)
        with f.loop(bulk, "%n") as i:
            rows(i.index, 1, k.index)
        rows(among, ROWS, k.index)


def _pair(a: Arithmetic, count: int) -> IRFunction:
    f = IRFunction(f"pair{count}", "ptr D, i64 n, i64 row, i64 i, i64 k")
    _rows(f, a, "%i", count, ["%k", f.add("%k", 1)])
    return f


def _rows(f: IRFunction, a: Arithmetic, i: str, count: int, ks: list[str]) -> None:
    """`count` rows from i, updated with every k in turn."""
    first = f.at(a.kind, "%D", f.mul(i, "%row"))
    rows = [first]
    for _ in range(count - 1):
        rows.append(f.at(a.kind, rows[-1], "%row"))
    row_ks = [f.at(a.kind, "%D", f.mul(k, "%row")) for k in ks]
    elements: list[list[str]] = []
    for number, k in enumerate(ks):
        found = [f.load(a.kind, f.at(a.kind, row, k)) for row in rows]
        for before in range(number):  # after the steps of the previous k
            by = f.load(a.kind, f.at(a.kind, row_ks[before], k))
            pairs = zip(found, elements[before], strict=True)
            found = [a.renderer(f, 1).accumulate(a.add, a.mul, (x,), (one,), (by,))[0] for x, one in pairs]
        elements.append(found)
    spread = [[f.splat(a.kind, element, a.lanes) for element in of_k] for of_k in elements]

    def columns(j: str, lanes: int, mask: str | None) -> None:
        ys = [load_lanes(f, a, f.at(a.kind, row_k, j), lanes, mask) for row_k in row_ks]
        places = [f.at(a.kind, row, j) for row in rows]
        totals = [load_lanes(f, a, place, lanes, mask) for place in places]
        render = a.renderer(f, lanes)
        for y, ones in zip(ys, spread if lanes > 1 else elements, strict=True):
            pairs = zip(totals, ones, strict=True)
            totals = [render.accumulate(a.add, a.mul, (total,), (one,), (y,))[0] for total, one in pairs]
        for total, place in zip(totals, places, strict=True):
            store_lanes(f, a, total, place, lanes, mask)

    vector_loop(f, a, "%n", columns)
