"""Floyd–Warshall on a square that fits the first cache, in place: what a blocked closure does on its diagonal."""

from __future__ import annotations

from tilewise.engines.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.engines.cpu.kernels.shared.ir import Function, module
from tilewise.engines.cpu.kernels.shared.masks import along, everywhere, load_lanes, store_lanes

ROWS = 4  # that take a vector of row k from a register


def floyd_module(a: Arithmetic) -> str:
    """for k: for i: D[i] = add(D[i], mul(D[i, k], D[k])), a vector of columns of a few rows at a time. Row k may be
    among them: its own D[k, k] is the one of mul, or the square holds a cycle that improves and is thrown away."""
    f = Function("floyd", [("ptr", "D"), ("i64", "n"), ("i64", "row")], public=True)
    bulk = f.mul(f.div("%n", ROWS), ROWS)
    with f.loop(0, "%n") as k:
        with f.loop(0, bulk, ROWS) as i:
            _rows(f, a, k.index, i.index, ROWS)
        with f.loop(bulk, "%n") as i:
            _rows(f, a, k.index, i.index, 1)
    return module([f])


def _rows(f: Function, a: Arithmetic, k: str, i: str, count: int) -> None:
    """`count` rows from i, by way of k."""
    row_k, first = (f.at(a.kind, "%D", f.mul(at, "%row")) for at in (k, i))
    rows = [first]
    for _ in range(count - 1):
        rows.append(f.at(a.kind, rows[-1], "%row"))
    elements = [f.op(f"load {a.kind}, ptr {f.at(a.kind, row, k)}") for row in rows]
    spread = [everywhere(f, a, element, a.lanes) for element in elements]

    def columns(j: str, lanes: int, mask: str | None) -> None:
        y = load_lanes(f, a, f.at(a.kind, row_k, j), lanes, mask)
        places = [f.at(a.kind, row, j) for row in rows]
        totals = [load_lanes(f, a, place, lanes, mask) for place in places]
        ones = spread if lanes > 1 else elements
        render = a.renderer(f, lanes)
        for total, one, place in zip(totals, ones, places, strict=True):
            store_lanes(f, a, render.accumulate(a.add, a.mul, (total,), (one,), (y,))[0], place, lanes, mask)

    along(f, a, "%n", columns)
